//! Where scenarios run: folders, links of the one executable, a clean environment. Nothing of it stays.

use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

mod files;

pub use files::{fill, lay_out};

/// Name of every run root begins so.
const PREFIX: &str = "pi-conform-";

/// The folder of one run below the temporary folder, with one copy of the executable. It goes when this is dropped.
#[derive(Debug)]
pub struct Root {
    folder: PathBuf,
    keep: bool,
}

impl Root {
    /// Makes it, and puts one copy of `executable` there; everything that a scenario starts is a hard link of that.
    ///
    /// # Errors
    /// When the temporary folder cannot be written, or its path is not UTF-8.
    pub fn new(executable: &Path, keep: bool) -> io::Result<Self> {
        let base = std::fs::canonicalize(std::env::temp_dir())?;
        if base.to_str().is_none() {
            return Err(io::Error::other(format!(
                "the path of the temporary folder `{}` is not UTF-8",
                base.display()
            )));
        }
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(base)?
            .keep();
        let root = Self { folder, keep };
        link(executable, &root.executable())?;
        Ok(root)
    }

    /// The one copy.
    pub fn executable(&self) -> PathBuf {
        self.folder.join("pi-conform")
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if !self.keep {
            remove(&self.folder);
        }
    }
}

/// The folders of one scenario. They go when this is dropped.
#[derive(Debug)]
pub struct Sandbox {
    run: PathBuf,
    keep: bool,
}

/// Folders of a scenario, besides `run` itself.
const FOLDERS: [&str; 7] = ["bin", "home", "agent", "work", "tmp", "cwd", "programs"];

impl Sandbox {
    /// Makes the folders of one scenario below the root.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn new(root: &Root, name: &str) -> io::Result<Self> {
        let prefix: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '-' {
                    c
                } else {
                    '_'
                }
            })
            .take(40)
            .collect();
        let run = tempfile::Builder::new()
            .prefix(&format!("{prefix}."))
            .tempdir_in(&root.folder)?
            .keep();
        let sandbox = Self {
            run,
            keep: root.keep,
        };
        for name in FOLDERS {
            std::fs::create_dir(sandbox.run.join(name))?;
        }
        Ok(sandbox)
    }

    /// The scenario's folder.
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// One of its folders.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.run.join(name)
    }

    /// Folders by name, as texts: `run`, `bin`, `home`, `agent`, `work`, `project` (the same), `tmp`, `cwd`.
    pub fn folders(&self) -> IndexMap<String, String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut folders = IndexMap::from([("run".to_owned(), text(self.run.clone()))]);
        for name in FOLDERS {
            folders.insert(name.to_owned(), text(self.folder(name)));
        }
        folders.insert("project".to_owned(), text(self.folder("work")));
        folders
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.keep {
            remove(&self.run);
        }
    }
}

/// Makes `to` a hard link of `from`; a copy where they lie on different file systems or links are not allowed.
///
/// # Errors
/// When neither works.
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    if std::fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    std::fs::copy(from, to).map(|_| ())
}

/// For the warden of a runner that died: removes a scenario's folder, and the run root with the last of them.
pub fn remove_abandoned(folder: &Path) {
    remove(folder);
    let Some(root) = folder.parent() else {
        return;
    };
    let is_root = root
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let others = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    if is_root && !others {
        remove(root);
    }
}

/// Removes a folder with everything in it, also where something in it was made unreadable or unwritable.
fn remove(folder: &Path) {
    if std::fs::remove_dir_all(folder).is_ok() {
        return;
    }
    open_up(folder);
    // What cannot be removed even now is not ours to force.
    let _ = std::fs::remove_dir_all(folder);
}

fn open_up(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
