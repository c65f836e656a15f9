//! The two lines of Pi that are in use, and where they lie.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One published line of Pi.
pub struct Line {
    pub version: &'static str,
    /// Its program, below `node_modules`.
    cli: &'static str,
}

pub const LINES: &[Line] = &[
    Line {
        version: "1.6.0",
        cli: "@earendil-works/pi-coding-agent/dist/bundle/cli.js",
    },
    Line {
        version: "0.73.1",
        cli: "@mariozechner/pi-coding-agent/dist/cli.js",
    },
];

/// What a person types at the root of the repository.
const BRING: &str = "npm install --prefix target/pi node@22 @earendil-works/pi-coding-agent@1.6.0 @mariozechner/pi-coding-agent@0.73.1";

impl Line {
    fn modules() -> PathBuf {
        // Cargo's folder for the tests' files lies beside the profiles, in the target folder.
        Path::new(env!("CARGO_TARGET_TMPDIR"))
            .with_file_name("pi")
            .join("node_modules")
    }

    fn node() -> PathBuf {
        Line::modules().join("node/bin/node")
    }

    fn program(&self) -> PathBuf {
        Line::modules().join(self.cli)
    }

    /// What is missing, and how to bring it.
    pub fn is_there(&self) -> Result<(), String> {
        for (what, path) in [
            ("Node 22".to_owned(), Line::node()),
            (format!("Pi {}", self.version), self.program()),
        ] {
            if !path.exists() {
                return Err(format!("{what} is not there; `{BRING}` brings it"));
            }
        }
        Ok(())
    }

    /// Writes a program `pi` that becomes this Pi: `exec`, so that the process the delegator started is Pi's own.
    pub fn write_program(&self, path: &Path) {
        let script = format!(
            "#!/bin/sh\nexec '{}' '{}' \"$@\"\n",
            Line::node().display(),
            self.program().display()
        );
        std::fs::write(path, script).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
