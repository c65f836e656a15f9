//! What stands ready before a subject starts: the child binary, traps, files, environment.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fake_pi::act::{Act, Child, Script};
use indexmap::IndexMap;
use serde_json::Value;

use super::context::RunContext;
use super::parts::{self, Missing};
use super::pi;
use crate::adapter::{Adapter, Scope, TemplateError, Transport};
use crate::sandbox::{Root, Sandbox, lay_out, link};
use crate::scenario::{ChildBinary, FileContent, Scenario};
use crate::warden::Start;

/// Why a scenario could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A file or folder of it.
    #[error("cannot set up `{what}`: {source}")]
    Io {
        /// What.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A template of the adapter.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The script could not be written as JSON.
    #[error("cannot write the children's script: {0}")]
    Script(#[from] serde_json::Error),
    /// The subject's program.
    #[error("cannot start the subject: {0}")]
    Command(String),
    /// Something that it is made of.
    #[error("{0}")]
    Missing(#[from] Missing),
}

/// A scenario's folders with everything in place.
#[derive(Debug)]
pub struct Stage {
    /// The folders.
    pub sandbox: Sandbox,
    /// Their names, with `child`.
    pub folders: IndexMap<String, String>,
    /// Names for the adapter's templates.
    pub scope: Scope,
    /// Where the fakes' journals appear.
    pub journals: Vec<PathBuf>,
    /// Where barriers are opened.
    barriers: Vec<PathBuf>,
    traps: Vec<PathBuf>,
    /// The one copy of the executable.
    executable: PathBuf,
    /// What all scenarios of a run share on disk.
    shared: PathBuf,
}

/// Word after which a command follows that is started anew for each call.
pub const EACH_CALL: &str = "each-call";

/// Exit code of a trap.
const TRAPPED: i32 = 97;
/// Length of the path of a child that is missing under a long path.
const LONG_PATH: usize = 4000;

impl Stage {
    /// Makes the folders and names them. Nothing is laid out yet: the scenario's texts are to be filled first.
    ///
    /// # Errors
    /// When the folders cannot be made.
    pub fn new(
        root: &Root,
        name: &str,
        scenario: &Scenario,
        adapter: &Adapter,
        context: &RunContext,
    ) -> Result<Self, StageError> {
        let io = |what: &Path| {
            let what = what.display().to_string();
            move |source| StageError::Io { what, source }
        };
        let sandbox = Sandbox::new(root, name).map_err(io(root.folder()))?;
        let mut folders = sandbox.folders();
        let subject = sandbox.folder("programs").join(&context.bundled);
        link(&root.executable(), &subject).map_err(io(&subject))?;
        let programs = IndexMap::from([("delegate".to_owned(), text(&subject))]);
        folders.insert("self".to_owned(), text(&root.executable()));
        let mut scope = Scope::new(adapter, &scenario.setup.settings, &folders, &programs);
        for (name, part) in parts::find(adapter, &context.packages, context.checkout.as_deref())? {
            scope = scope.with(&name, part);
        }
        let mut stage = Self {
            sandbox,
            folders,
            scope,
            journals: Vec::new(),
            barriers: Vec::new(),
            traps: Vec::new(),
            executable: root.executable(),
            shared: root.folder().to_owned(),
        };
        let child = stage.children_paths(adapter, scenario)?.remove(0);
        stage.folders.insert("child".to_owned(), text(&child));
        stage.scope = stage.scope.clone().with("child", text(&child).into());
        stage.folders.shift_remove("self");
        Ok(stage)
    }

    /// Where the child binary is put; never empty.
    fn children_paths(
        &self,
        adapter: &Adapter,
        scenario: &Scenario,
    ) -> Result<Vec<PathBuf>, StageError> {
        let bin = self.sandbox.folder("bin");
        if scenario.setup.child == ChildBinary::MissingLong {
            let mut path = bin;
            while path.as_os_str().len() + 201 < LONG_PATH {
                path.push("missing-".repeat(25));
            }
            let left = LONG_PATH
                .saturating_sub(path.as_os_str().len() + 1)
                .clamp(2, 200);
            path.push("p".repeat(left));
            return Ok(vec![path]);
        }
        let mut paths = Vec::new();
        for template in &adapter.child {
            paths.push(PathBuf::from(self.scope.render("child", template)?));
        }
        if paths.is_empty() {
            paths.push(bin.join("pi"));
        }
        Ok(paths)
    }

    /// Puts everything in place.
    ///
    /// # Errors
    /// When something cannot be written, or a template is wrong.
    pub fn lay_out(
        &mut self,
        root: &Root,
        scenario: &Scenario,
        adapter: &Adapter,
    ) -> Result<(), StageError> {
        let script = Script {
            children: scenario.children.clone(),
        };
        for path in self.children_paths(adapter, scenario)? {
            let folder = path.parent().unwrap_or(self.sandbox.run()).to_owned();
            let io = |source| StageError::Io {
                what: path.display().to_string(),
                source,
            };
            match scenario.setup.child {
                ChildBinary::FakePi => {
                    self.fake(&folder, &script)?;
                    link(&root.executable(), &path).map_err(io)?;
                }
                ChildBinary::Missing | ChildBinary::MissingLong => {}
                ChildBinary::NotExecutable => {
                    fs::write(&path, "#!/bin/sh\nexit 0\n").map_err(io)?;
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).map_err(io)?;
                }
                ChildBinary::Folder => fs::create_dir_all(&path).map_err(io)?,
                ChildBinary::Garbage => {
                    fs::write(&path, b"\x7fNOT A PROGRAM\n").map_err(io)?;
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(io)?;
                }
            }
        }
        for name in &scenario.setup.traps {
            self.trap(root, name)?;
        }
        for (path, template) in &adapter.files {
            let path = self.scope.render("files", path)?;
            let content = self.scope.render(&format!("files.{path}"), template)?;
            // A file whose template comes out empty is none: the subject's defaults hold.
            if !content.trim().is_empty() {
                self.write(&path, &FileContent::Text(content))?;
            }
        }
        for (path, content) in &scenario.setup.files {
            self.write(path, content)?;
        }
        Ok(())
    }

    /// Writes one file below the scenario's folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &str, content: &FileContent) -> Result<(), StageError> {
        lay_out(self.sandbox.run(), path, content).map_err(|source| StageError::Io {
            what: path.to_owned(),
            source,
        })
    }

    /// Makes a folder one that fake-pi can be played in.
    fn fake(&mut self, folder: &Path, script: &Script) -> Result<(), StageError> {
        let io = |source| StageError::Io {
            what: folder.display().to_string(),
            source,
        };
        let (journal, barriers) = (folder.join("journal"), folder.join("barriers"));
        fs::create_dir_all(&journal).map_err(io)?;
        fs::create_dir_all(&barriers).map_err(io)?;
        let json = serde_json::to_vec_pretty(script)?;
        fs::write(folder.join("fake-pi.script.json"), json).map_err(io)?;
        if !self.journals.contains(&journal) {
            self.journals.push(journal);
            self.barriers.push(barriers);
        }
        Ok(())
    }

    /// A program that only says that it was run.
    fn trap(&mut self, root: &Root, name: &str) -> Result<(), StageError> {
        let folder = self.sandbox.folder("traps").join(name);
        let acts = Child::Acts(vec![Act::Exit(TRAPPED)]);
        let script = Script {
            children: IndexMap::from([(format!("trap:{name}"), acts)]),
        };
        self.fake(&folder, &script)?;
        let path = folder.join(name);
        link(&root.executable(), &path).map_err(|source| StageError::Io {
            what: path.display().to_string(),
            source,
        })?;
        self.traps.push(folder);
        Ok(())
    }

    /// Files that open a barrier.
    pub fn barrier_files(&self, barrier: &str) -> Vec<PathBuf> {
        let folders = self.barriers.iter();
        folders.map(|folder| folder.join(barrier)).collect()
    }

    /// Opens a barrier.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(&self, barrier: &str) -> io::Result<()> {
        self.barrier_files(barrier)
            .into_iter()
            .try_for_each(|file| fs::write(file, ""))
    }

    /// Closes a barrier, for the next round of a repetition.
    pub fn shut(&self, barrier: &str) {
        for folder in &self.barriers {
            let _ = fs::remove_file(folder.join(barrier));
        }
    }

    /// How the subject is started.
    ///
    /// # Errors
    /// When a template is wrong, or the program is not there.
    pub fn start(&self, scenario: &Scenario, adapter: &Adapter) -> Result<Start, StageError> {
        let mut env = Vec::new();
        let mut argv = match adapter.transport {
            Transport::Mcp => self.command(adapter)?,
            Transport::Command if adapter.uses.serves => self.command(adapter)?,
            Transport::Command => {
                let mut argv = vec![text(&self.executable), EACH_CALL.to_owned()];
                argv.extend(self.command(adapter)?);
                argv
            }
            Transport::PiExtension => self.parent(adapter, &mut env)?,
        };
        argv.extend(scenario.setup.args.iter().cloned());
        Ok(Start {
            argv,
            env: self.environment(scenario, adapter, env)?,
            cwd: text(&self.sandbox.folder("work")),
            mark: uuid::Uuid::new_v4().to_string(),
            blocked: scenario.setup.blocked.iter().map(signal_name).collect(),
            ignored: scenario.setup.ignored.iter().map(signal_name).collect(),
            descriptors: scenario.setup.descriptors,
            journals: self.journals.iter().map(|path| text(path)).collect(),
            folder: Some(text(self.sandbox.run())),
        })
    }

    /// The adapter's command.
    fn command(&self, adapter: &Adapter) -> Result<Vec<String>, StageError> {
        let mut argv = self.words("command", &adapter.command)?;
        if let Some(first) = argv.first_mut() {
            *first = program(first).map_err(StageError::Command)?;
        }
        Ok(argv)
    }

    /// Templates as words; one that comes out empty is left out, unless it is the first.
    fn words(&self, place: &str, templates: &[String]) -> Result<Vec<String>, StageError> {
        let mut words = Vec::new();
        for (at, template) in templates.iter().enumerate() {
            let word = self.scope.render(&format!("{place}[{at}]"), template)?;
            if at == 0 || !word.is_empty() {
                words.push(word);
            }
        }
        Ok(words)
    }

    /// A real Pi with the extension, its children led to fake-pi; and the variables that this needs.
    fn parent(
        &self,
        adapter: &Adapter,
        env: &mut Vec<(String, String)>,
    ) -> Result<Vec<String>, StageError> {
        let parent = self.real_parent()?;
        let io = |source| StageError::Io {
            what: "the parent Pi".to_owned(),
            source,
        };
        let fake = PathBuf::from(&self.folders["child"]);
        let entry = parent
            .lay_out(
                adapter.parent.interpose,
                &self.sandbox.folder("parent"),
                &fake,
            )
            .map_err(io)?;
        // What Node and the loader of extensions compile is kept for the run: it depends on nothing that a scenario does.
        let cache = self.compiled();
        fs::create_dir_all(&cache).map_err(io)?;
        let loader = self.sandbox.folder("tmp").join(pi::LOADER_CACHE);
        match std::os::unix::fs::symlink(&cache, &loader) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
            _ => {}
        }
        env.push(("NODE_COMPILE_CACHE".to_owned(), text(&cache)));
        env.extend(
            [("PI_OFFLINE", "1"), ("PI_TELEMETRY", "0")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        env.extend(entry.env);
        let mut argv = vec![text(&parent.node), text(&entry.script)];
        argv.extend(parent.flags().iter().map(|flag| (*flag).to_owned()));
        for extension in self.words("parent.extensions", &adapter.parent.extensions)? {
            argv.extend(["-e".to_owned(), extension]);
        }
        let default = vec!["--no-session".to_owned()];
        let args = adapter.parent.args.as_ref().unwrap_or(&default);
        argv.extend(self.words("parent.args", args)?);
        Ok(argv)
    }

    /// The parent Pi that the adapter's packages give.
    ///
    /// # Errors
    /// When one of the packages is not as npm leaves it.
    pub fn real_parent(&self) -> Result<pi::Parent, StageError> {
        let folder = |name: &str| self.scope.path(&format!("packages.{name}"));
        pi::Parent::of(&folder("node"), &folder("pi")).map_err(|source| StageError::Io {
            what: "the parent Pi".to_owned(),
            source,
        })
    }

    /// A file in the temporary folder that the runner itself put there.
    pub fn is_ours(&self, path: &str) -> bool {
        let link = self.sandbox.folder("tmp").join(path);
        fs::read_link(link).is_ok_and(|target| target == self.compiled())
    }

    /// Where Node and the loader of extensions keep what they compiled, for the whole run.
    fn compiled(&self) -> PathBuf {
        self.shared.join("compiled")
    }

    /// A clean environment: what every program needs, then the transport's, then the adapter's, then the scenario's. An empty value of the
    /// adapter's is left out.
    fn environment(
        &self,
        scenario: &Scenario,
        adapter: &Adapter,
        transport: Vec<(String, String)>,
    ) -> Result<Vec<(String, String)>, StageError> {
        let mut env: IndexMap<String, String> = IndexMap::new();
        let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
        set("PATH", self.path());
        for (name, folder) in [
            ("HOME", "home"),
            ("TMPDIR", "tmp"),
            ("PI_CODING_AGENT_DIR", "agent"),
        ] {
            set(name, text(&self.sandbox.folder(folder)));
        }
        set("LANG", "C.UTF-8".to_owned());
        env.extend(transport);
        for (name, template) in &adapter.env {
            let value = self.scope.render(&format!("env.{name}"), template)?;
            if !value.is_empty() {
                env.insert(name.clone(), value);
            }
        }
        for (name, value) in &scenario.setup.env {
            match value {
                Some(value) => env.insert(name.clone(), value.clone()),
                None => env.shift_remove(name),
            };
        }
        Ok(env.into_iter().collect())
    }

    /// Traps, then the child, then the runner's own, but without any real `pi`: no scenario may ever start that.
    fn path(&self) -> String {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let others = std::env::split_paths(&own).filter(|folder| !folder.join("pi").exists());
        let folders = self
            .traps
            .iter()
            .cloned()
            .chain([self.sandbox.folder("bin")])
            .chain(others)
            .filter(|folder| folder.is_absolute());
        let folders: Vec<String> = folders.map(|folder| text(&folder)).collect();
        folders.join(":")
    }
}

/// Absolute path of a program: given as a path, or found on the runner's PATH.
///
/// # Errors
/// When there is none; the text completes "cannot start the subject: …".
pub fn program(name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("the template of its name comes out empty".to_owned());
    }
    let executable = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        let path = std::path::absolute(name).map_err(|error| format!("`{name}`: {error}"))?;
        return match fs::metadata(&path) {
            Err(error) => Err(format!("`{name}`: {error}")),
            Ok(_) if executable(&path) => Ok(text(&path)),
            Ok(meta) if meta.is_dir() => Err(format!("`{name}` is a folder")),
            Ok(_) => Err(format!(
                "`{name}` is not executable; `chmod +x` makes it so"
            )),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| executable(path))
        .map(|path| text(&path))
        .ok_or_else(|| format!("there is no program `{name}` on PATH"))
}

fn signal_name(signal: &fake_pi::act::Signal) -> String {
    let short = serde_json::to_value(signal).unwrap_or_default();
    format!("SIG{}", short.as_str().unwrap_or_default())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Puts the folders' names in a scenario.
///
/// # Errors
/// When a filled text is no longer what stands there, such as a path in place of a number.
pub fn filled(
    scenario: &Scenario,
    folders: &IndexMap<String, String>,
) -> Result<Scenario, serde_json::Error> {
    let mut value: Value = serde_json::to_value(scenario)?;
    crate::sandbox::fill(&mut value, folders);
    serde_json::from_value(value)
}
