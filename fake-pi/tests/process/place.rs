//! A folder with fake-pi and a script, and a child started there.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fake_pi::journal::{Entry, What};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// Polls until a fact holds.
pub fn until<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(Instant::now() < deadline, "no sign of: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder with the executable and a script; every process that wrote a journal there is killed in the end.
pub struct Place {
    pub folder: tempfile::TempDir,
}

impl Place {
    pub fn new(script: &str) -> Self {
        // A link, not a copy: a file that was open for writing while another test forked could not be started ("text
        // file busy"). Links need the same file system.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_fake-pi"), folder.path().join("pi")).unwrap();
        fs::write(folder.path().join("fake-pi.script.yaml"), script).unwrap();
        Self { folder }
    }

    pub fn acts(acts: &str) -> Self {
        Self::new(&format!("children:\n  a: [{acts}]\n"))
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.folder.path().join("pi"));
        command.args(args).current_dir(self.folder.path());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running(self.command(args).spawn().unwrap())
    }

    pub fn rpc(&self) -> Running {
        self.start(&["--mode", "rpc"])
    }

    pub fn journal(&self) -> Vec<Entry> {
        let Ok(files) = fs::read_dir(self.folder.path().join("journal")) else {
            return Vec::new();
        };
        let files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
        let texts = files
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok());
        texts
            .flat_map(|text| {
                let whole = text.rfind('\n').map_or(0, |end| end + 1);
                let lines = text[..whole].lines();
                lines
                    .map(|line| serde_json::from_str(line).unwrap())
                    .collect::<Vec<Entry>>()
            })
            .collect()
    }

    pub fn seen<T>(&self, what: &str, fact: impl Fn(&Entry) -> Option<T>) -> T {
        until(what, || self.journal().iter().find_map(&fact))
    }

    pub fn reached(&self, wanted: &str) {
        self.seen(wanted, |entry| {
            matches!(&entry.what, What::Reach { name } if name == wanted).then_some(())
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for entry in self.journal() {
            if let What::Start(start) = entry.what {
                // The pid may be somebody else's by now; only the program of this folder is ours to kill.
                let exe = fs::read_link(format!("/proc/{}/exe", entry.pid)).unwrap_or_default();
                if exe.starts_with(self.folder.path()) && start.start_ticks > 0 {
                    let _ = kill(Pid::from_raw(entry.pid), Signal::SIGKILL);
                }
            }
        }
    }
}

/// A child that does not outlive its test.
pub struct Running(pub Child);

impl Running {
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).unwrap())
    }

    pub fn prompt(&mut self, message: &str) -> &mut ChildStdin {
        let line = serde_json::json!({"id": "1", "type": "prompt", "message": message});
        let stdin = self.0.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin
    }

    pub fn wait(&mut self) -> ExitStatus {
        until("the end of the child", || self.0.try_wait().unwrap())
    }

    pub fn output(&mut self) -> String {
        let mut text = String::new();
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    pub fn errors(&mut self) -> String {
        let mut text = String::new();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn types(output: &str) -> Vec<String> {
    let records = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    records
        .map(|record| record["type"].as_str().unwrap_or_default().to_owned())
        .collect()
}
