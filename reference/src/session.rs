//! What a session is given once and keeps: where it started, which configuration holds, which program its children
//! are, what is known of its parent. Read from the environment at the start; nothing looks there again.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::{self, Config, Diagnostics, Locations};
use crate::profile::{BadModel, check_model};

/// Variable that names the child program.
pub const PROGRAM_VARIABLE: &str = "PI_DELEGATOR_PI_BINARY";
/// Variable that makes the project's configuration count.
pub const TRUST_VARIABLE: &str = "PI_DELEGATOR_TRUST_PROJECT";
/// Variable that every child has: who finds it set at its start runs inside a child, where nothing is delegated.
pub const MARK_VARIABLE: &str = "PI_DELEGATE_RUN_ID";

/// The child program as the session was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// At this absolute path. Whether something lies there shows when it is started.
    At(PathBuf),
    /// Nowhere to be found; the sentence says where it was looked for.
    Missing(String),
}

/// One session.
#[derive(Debug)]
pub struct Session {
    /// Absolute path of the directory in which it was started: where children run unless a call says otherwise.
    pub cwd: PathBuf,
    /// The configuration, or everything that is wrong with it.
    pub config: Result<Config, Diagnostics>,
    /// The child program.
    pub program: Program,
    /// Whether this session runs inside a child.
    pub nested: bool,
    parent_model: Mutex<Option<String>>,
}

/// A session that cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell the working directory: {0}")]
pub struct NoDirectory(#[from] std::io::Error);

impl Session {
    /// Begins a session with this process's environment. `trust` makes the project's configuration count.
    ///
    /// # Errors
    /// The working directory is gone.
    pub fn begin(trust: bool) -> Result<Self, NoDirectory> {
        let cwd = env::current_dir()?;
        let trusted = trust || env::var_os(TRUST_VARIABLE).is_some_and(|value| value == "1");
        let home = env::var_os("HOME").map(PathBuf::from);
        let agent = env::var_os("PI_CODING_AGENT_DIR")
            .filter(|value| !value.is_empty())
            .map(|value| expand(value, home.as_deref()))
            .or_else(|| home.map(|home| home.join(".pi").join("agent")))
            // Without a home there is no user's file; this path, which cannot exist, says so.
            .unwrap_or_else(|| PathBuf::from("/dev/null/.pi/agent"));
        let locations = Locations {
            agent: cwd.join(agent),
            project: cwd.clone(),
            trusted,
        };
        Ok(Self {
            config: config::load(&locations),
            program: program(env::var_os(PROGRAM_VARIABLE), env::var_os("PATH"), &cwd),
            nested: env::var_os(MARK_VARIABLE).is_some_and(|value| !value.is_empty()),
            parent_model: Mutex::new(None),
            cwd,
        })
    }

    /// The parent's model, as far as it is known.
    pub fn parent_model(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Notes the model that the parent's run uses from now on; `None` leaves it open.
    ///
    /// # Errors
    /// What is wrong with the id; what was known before then stays.
    pub fn set_parent_model(&self, model: Option<String>) -> Result<(), BadModel> {
        if let Some(model) = &model {
            check_model(model)?;
        }
        *self.lock() = model;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        // Nothing can panic while the lock is held, so a poisoned lock still guards a whole value.
        self.parent_model
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// `~` and `~/…` in `PI_CODING_AGENT_DIR`, which Pi expands itself.
fn expand(value: OsString, home: Option<&Path>) -> PathBuf {
    let path = PathBuf::from(value);
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

/// Finds the child program: the override as it is, when it holds a `/`; else a word looked up along the search path.
///
/// The result is absolute, because a relative one would be looked up in the child's working directory.
fn program(named: Option<OsString>, search: Option<OsString>, cwd: &Path) -> Program {
    let named = named.filter(|name| !name.is_empty());
    let word = named.as_deref().unwrap_or(OsStr::new("pi"));
    if word.as_encoded_bytes().contains(&b'/') {
        return Program::At(cwd.join(word));
    }
    let search = search.unwrap_or_default();
    let found = env::split_paths(&search)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| cwd.join(folder).join(word))
        .find(|path| is_program(path));
    found.map_or_else(
        || {
            Program::Missing(format!(
                "there is no program `{}` on PATH; {PROGRAM_VARIABLE} can name one",
                word.display()
            ))
        },
        Program::At,
    )
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(named: Option<&str>, search: &str) -> Program {
        program(
            named.map(OsString::from),
            Some(search.into()),
            Path::new("/start"),
        )
    }

    // shows: launch.test-binary-override
    #[test]
    fn the_child_program_is_absolute_or_named_as_missing() {
        assert_eq!(find(Some("/x/pi"), ""), Program::At("/x/pi".into()));
        assert_eq!(
            find(Some("bin/pi"), ""),
            Program::At("/start/bin/pi".into())
        );
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        for (place, mode) in [(&first, 0o644), (&second, 0o755)] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("pi"), "").unwrap();
            fs::set_permissions(place.join("pi"), fs::Permissions::from_mode(mode)).unwrap();
        }
        let search = format!("/no/such:{}::{}", first.display(), second.display());
        assert_eq!(find(None, &search), Program::At(second.join("pi")));
        assert_eq!(find(Some(""), &search), Program::At(second.join("pi")));
        let missing = "there is no program `nopi` on PATH; PI_DELEGATOR_PI_BINARY can name one";
        assert_eq!(
            find(Some("nopi"), &search),
            Program::Missing(missing.into())
        );
    }
}
