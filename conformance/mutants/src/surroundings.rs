//! Faults towards what lies around a run: the machine, the other runs, the day on which the delegator dies.

use std::fs::File;
use std::io::Write as _;

use reference::pi::Launch;
use reference::pi::run::Effect;
use reference::pi::seam::RunTwist;

use crate::{Mutant, mutant};

pub const MUTANTS: &[Mutant] = &[
    mutant::<ThroughShell>(
        "started-through-a-shell",
        "Starts the child below a shell.",
        &["launch.no-shell"],
    ),
    mutant::<TaskFileLeft>(
        "temporary-file-left",
        "Writes the task to a temporary file and leaves it there.",
        &["field.temporary-files-removed"],
    ),
    mutant::<SignalsSiblings>(
        "signals-the-siblings",
        "Ends every child that it has when one call is aborted.",
        &[
            "drain.sibling-tree-untouched",
            "isolate.abort-spares-sibling",
        ],
    ),
    mutant::<NoGuardian>(
        "no-guardian",
        "Leaves it to the children to notice that it was killed.",
        &["field.delegator-killed"],
    ),
];

#[derive(Default)]
struct ThroughShell;

impl RunTwist for ThroughShell {
    fn launch(&mut self, launch: &mut Launch) {
        let program = std::mem::replace(&mut launch.program, "/bin/sh".into());
        // The last command of a shell may take its place; this one is not the last.
        let script = r#""$0" "$@"; exit $?"#;
        let before = ["-c".into(), script.into(), program.into_os_string()];
        launch.args.splice(..0, before);
    }
}

#[derive(Default)]
struct TaskFileLeft;

impl RunTwist for TaskFileLeft {
    fn launch(&mut self, launch: &mut Launch) {
        let path = std::env::temp_dir().join(format!("task-{}", launch.mark));
        if let Ok(mut file) = File::create(path) {
            let _ = file.write_all(launch.task.as_bytes());
        }
    }
}

#[derive(Default)]
struct SignalsSiblings;

impl RunTwist for SignalsSiblings {
    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        if effect == Effect::Term {
            for child in own_children() {
                // One that has gone meanwhile is what was wanted.
                let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGTERM);
            }
        }
        vec![effect]
    }
}

/// The children of this process, whichever of its threads started them.
fn own_children() -> Vec<nix::unistd::Pid> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let children = lists.flat_map(|list| {
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.collect::<Vec<i32>>()
    });
    children.map(nix::unistd::Pid::from_raw).collect()
}

#[derive(Default)]
struct NoGuardian;

impl RunTwist for NoGuardian {
    fn guarded(&self) -> bool {
        false
    }
}
