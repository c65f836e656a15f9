//! The kernel's word on which processes of a trial live: every one of them carries the trial's mark in its environment,
//! in whatever group or session it is and whoever is its parent now.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that holds the mark.
pub const VARIABLE: &str = "PI_CONFORM_TRIAL";

/// A live process of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    /// Program and arguments, with blanks between.
    pub command: String,
}

/// All live processes with this mark. Zombies have no environment any more and don't count.
pub fn marked(mark: &str) -> Vec<Process> {
    let needle = format!("{VARIABLE}={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == needle.as_bytes())
        {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<_> = command
                .split(|byte| *byte == 0)
                .map(String::from_utf8_lossy)
                .collect();
            found.push(Process {
                pid,
                command: words.join(" ").trim_end().to_owned(),
            });
        }
    }
    found
}

/// Direct children of a process, zombies among them.
pub fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let files = threads.map(|thread| thread.path().join("children"));
    let lists: Vec<String> = files
        .filter_map(|file: PathBuf| std::fs::read_to_string(file).ok())
        .collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Ends whatever of the trial lives, by pid, until nothing does. For the end of a trial that failed.
pub fn end_all(mark: &str) {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let left = marked(mark);
        if left.is_empty() || Instant::now() > patience {
            return;
        }
        for process in left {
            // It may have ended by itself meanwhile: that is as good.
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
