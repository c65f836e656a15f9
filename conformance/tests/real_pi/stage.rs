//! The folders, the model, the delegate and the mark of one trial; and the cleaning up, also after a failure.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use conformance::stub_provider::{Request, Script, StubProvider};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::delegate::{Delegate, PATIENCE};
use crate::line::Line;
use crate::processes::{self, Process, VARIABLE};

/// How long a bounded cleanup may take, with room for a machine that is busy: the delegate's own bounds are a few seconds.
pub const CLEANUP: Duration = Duration::from_secs(30);

/// One trial's world.
pub struct Stage {
    folder: TempDir,
    mark: String,
    pub model: StubProvider,
}

impl Stage {
    /// Folders, a `pi` that is this line, a model that plays the script, and the profile `hand` with the deadline.
    pub async fn set(line: &Line, deadline: Duration, script: Value) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("real-pi-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        for name in ["agent", "bin", "home", "tmp", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        line.write_program(&folder.path().join("bin/pi"));
        place(
            Path::new(env!("CARGO_BIN_EXE_pi-conform")),
            &folder.path().join("bin/delegate"),
        );
        let model = StubProvider::start(Script::from_json(&script.to_string()).unwrap())
            .await
            .unwrap();
        let agent = folder.path().join("agent");
        model.write_models(&agent).unwrap();
        // A provider that fails is asked again soon, and by Pi itself only.
        let retry = json!({"maxRetries": 2, "baseDelayMs": 20, "provider": {"maxRetries": 0}});
        write(&agent.join("settings.json"), &json!({"retry": retry}));
        let hand = json!({
            "description": "Does what the script says.", "model": "stub/x", "thinking": "off", "prompt": "You are a hand.",
            "tools": ["read", "bash"], "extensions": [], "skills": [], "deadlineMs": u64::try_from(deadline.as_millis()).unwrap(),
        });
        // A busy machine takes its time to start two Node programs; what is tried here is not the start.
        let limits = json!({"taskChars": 1_000_000, "startWatchdogMs": 300_000});
        write(
            &agent.join("delegator.json"),
            &json!({"profiles": {"hand": hand}, "limits": limits}),
        );
        Stage {
            folder,
            mark: uuid::Uuid::new_v4().to_string(),
            model,
        }
    }

    /// Where the child works.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// `delegate`, ready for its arguments, in a world that has nothing of this machine's user.
    pub fn command(&self) -> Command {
        let path = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(path("bin/delegate"));
        command
            .current_dir(path("work"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", path("home"))
            .env("TMPDIR", path("tmp"))
            .env("PI_CODING_AGENT_DIR", path("agent"))
            .env("PI_DELEGATOR_PI_BINARY", path("bin/pi"))
            .env("PI_OFFLINE", "1")
            .env(VARIABLE, &self.mark);
        command
    }

    pub async fn delegate(&self) -> Delegate {
        Delegate::start(self.command(), &self.folder.path().join("stderr.log")).await
    }

    /// Live processes of the trial, without the delegate and its guardian, which is a part of it.
    pub fn others(&self, delegate: &Delegate) -> Vec<Process> {
        processes::marked(&self.mark)
            .into_iter()
            .filter(|process| process.pid != delegate.pid() && !is_guardian(process))
            .collect()
    }

    /// Children of the delegate, zombies too, without its guardian.
    fn children(&self, delegate: &Delegate) -> Vec<i32> {
        let marked = processes::marked(&self.mark);
        let guardians: Vec<i32> = marked
            .iter()
            .filter(|p| is_guardian(p))
            .map(|p| p.pid)
            .collect();
        let mut children = processes::children(delegate.pid());
        children.retain(|pid| !guardians.contains(pid));
        children
    }

    /// Asserts that of the trial only the delegate lives, and that it has no child, not even a zombie.
    ///
    /// `within` is for an ending that has no answer to wait for, a cancellation.
    pub async fn nothing_is_left(&self, delegate: &Delegate, within: Option<Duration>) {
        let left = || (self.others(delegate), self.children(delegate));
        until(within.unwrap_or_default(), || {
            left() == (Vec::new(), Vec::new())
        })
        .await;
        assert_eq!(
            left(),
            (Vec::new(), Vec::new()),
            "processes, and children of the delegate, that are left"
        );
    }

    /// The same for an ending that nothing answers.
    pub async fn nothing_is_left_soon(&self, delegate: &Delegate) {
        self.nothing_is_left(delegate, Some(CLEANUP)).await;
    }

    /// Asserts that nothing of the trial lives.
    pub fn all_is_gone(&self) {
        assert_eq!(processes::marked(&self.mark), [], "processes that are left");
    }

    /// Waits for the model to have been asked so.
    pub async fn asked(&self, what: &str, holds: impl FnMut(&[Request]) -> bool) {
        let asked = self.model.wait_for(PATIENCE, holds).await;
        assert!(
            asked,
            "the model was never asked: {what}; its requests: {:#?}",
            self.heads()
        );
    }

    /// The requests in short, for a message.
    fn heads(&self) -> Vec<String> {
        let head = |request: &Request| {
            format!(
                "{} {:?} {:?} {:?}",
                request.number, request.roles, request.name, request.end
            )
        };
        self.model.requests().iter().map(head).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        processes::end_all(&self.mark);
        if std::thread::panicking() {
            let stderr =
                std::fs::read_to_string(self.folder.path().join("stderr.log")).unwrap_or_default();
            eprintln!(
                "the model was asked: {:#?}\nthe delegate's stderr:\n{stderr}",
                self.heads()
            );
        }
    }
}

/// Waits until it holds, looking again and again. Whoever asks asserts it afterwards.
pub async fn until(patience: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + patience;
    while !holds() && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A hard link, as the suite does it: the file name says what the executable is. A copy where the file system has none.
fn place(program: &Path, name: &Path) {
    if std::fs::hard_link(program, name).is_err() {
        std::fs::copy(program, name).unwrap();
    }
}

fn write(path: &Path, value: &Value) {
    std::fs::write(path, format!("{value:#}\n")).unwrap();
}

/// The process that ends what a killed delegate leaves: it lives as long as the delegate does.
fn is_guardian(process: &Process) -> bool {
    process.command.ends_with("delegate guardian")
}
