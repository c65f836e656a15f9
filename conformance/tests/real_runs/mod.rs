//! A place for tests that start the real program: a folder of their own with a temporary folder in it.
#![allow(dead_code, reason = "each test program uses its part")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with `tmp/` for the program's own.
pub struct Place(tempfile::TempDir);

/// How the program ended.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.folder("tmp");
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn folder(&self, name: &str) {
        fs::create_dir(self.path(name)).unwrap();
    }

    pub fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn program(&self, name: &str, text: &str) {
        self.file(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A scenario whose child answers "done", and whose check wants `wanted`.
    pub fn scenario(&self, name: &str, wanted: &str) {
        let text = format!(
            "scenario: {name}\nproves: [drain.clean-exit]\nwhy: A test.\nchildren: {{a: [{{answer: done}}]}}\nsteps: [{{call: {{child: a}}}}]\nchecks:\n  - call.text: {{contains: {wanted}}}\n"
        );
        self.file(&format!("{name}.yaml"), &text);
    }

    /// An adapter file for a command, that soon loses patience; gives its text.
    pub fn subject(&self, name: &str, command: &str) -> String {
        let text = format!(
            r#"adapter: {name}
transport: mcp
command: {command}
child-mode: rpc
figures: {{grace: 1s, post-exit-drain: 1s, post-answer-drain: 1s, output-cap: 50KiB, extra-text: 4KiB, record-cap: 8MiB,
  stderr-cap: 64KiB, task-limit: 100000, model-limit: 256, patience: 2s}}
profiles: [only]
operations: {{spawn: {{tool: work, arguments: {{task: "{{{{ task }}}}", cwd: "{{{{ cwd }}}}", model: "{{{{ model }}}}"}}}}}}
observations: {{answer: text}}
"#
        );
        self.file(&format!("{name}.yaml"), &text);
        text
    }

    /// The program with arguments, in this place.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-conform"));
        command.args(args);
        self.dressed(command)
    }

    /// Any command, in this place.
    pub fn dressed(&self, mut command: Command) -> Command {
        command
            .current_dir(self.0.path())
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null());
        command
    }

    pub fn pi_conform(&self, args: &[&str]) -> Done {
        finish(self.command(args))
    }

    /// Nothing was left in the temporary folder.
    pub fn is_tidy(&self) {
        let left: Vec<_> = fs::read_dir(self.path("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

pub fn finish(mut command: Command) -> Done {
    done(command.output().unwrap())
}

pub fn done(output: Output) -> Done {
    Done {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Whether a process runs that has this word among its arguments.
pub fn runs(word: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|arg| arg == word.as_bytes())
    })
}

/// Waits for a fact.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
