//! A folder with a server in it, and the program on PATH.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The program.
pub const EXECUTABLE: &str = env!("CARGO_BIN_EXE_pi-conform");

/// Whether python3 runs.
pub fn has_python() -> bool {
    let asked = Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// A folder of a test's own, with `tmp/` for the program.
pub struct Place(tempfile::TempDir);

impl Place {
    /// With one file in it.
    pub fn with(name: &str, text: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.path("tmp")).unwrap();
        place.file(name, text);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command here, with the program first on PATH.
    pub fn dressed(&self, program: &str) -> Command {
        let own = std::path::Path::new(EXECUTABLE)
            .parent()
            .unwrap()
            .to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&path))).unwrap();
        let mut command = Command::new(program);
        command
            .current_dir(self.0.path())
            .env("PATH", path)
            .env("TMPDIR", self.path("tmp"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// A line of a shell: both outputs in one text, and the exit code.
    pub fn shell(&self, line: &str) -> (String, Option<i32>) {
        let output = self
            .dressed("sh")
            .arg("-c")
            .arg(format!("{{ {line}\n}} 2>&1"))
            .output()
            .unwrap();
        (text(&output.stdout), output.status.code())
    }

    /// The program.
    pub fn pi_conform(&self, args: &[&str]) -> Output {
        self.dressed(EXECUTABLE).args(args).output().unwrap()
    }

    /// Nothing was left in the temporary folder.
    pub fn is_tidy(&self) {
        let left: Vec<_> = std::fs::read_dir(self.path("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
