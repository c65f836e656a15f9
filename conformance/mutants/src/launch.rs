//! Faults in how a child is started.

use std::ffi::OsStr;

use reference::pi::Launch;
use reference::pi::seam::RunTwist;

use crate::{Mutant, mutant};

pub const MUTANTS: &[Mutant] = &[
    mutant::<TaskInArguments>(
        "task-in-argv",
        "The task stands in the arguments too, for everybody to read.",
        &["launch.argv-profile-contract"],
    ),
    mutant::<InheritsDescriptors>(
        "descriptors-inherited",
        "Pipes are opened without close-on-exec, and every child gets them.",
        &[
            "isolate.descriptors-not-inherited",
            "field.no-descriptor-inheritance",
        ],
    ),
    mutant::<AmbientSkills>(
        "ambient-skills",
        "One isolation flag is forgotten.",
        &["launch.argv-isolation"],
    ),
    mutant::<CallersThinking>(
        "thinking-not-the-profiles",
        "Thinking is always high, whatever the profile says.",
        &["config.thinking-profile-controlled"],
    ),
    mutant::<OwnFolder>(
        "cwd-ignored",
        "Every child runs where the delegator runs.",
        &["launch.cwd-honoured"],
    ),
];

#[derive(Default)]
struct TaskInArguments;

impl RunTwist for TaskInArguments {
    fn launch(&mut self, launch: &mut Launch) {
        launch.args.push(launch.task.clone().into());
    }
}

#[derive(Default)]
struct InheritsDescriptors;

impl RunTwist for InheritsDescriptors {
    fn launch(&mut self, _launch: &mut Launch) {
        // `pipe` without O_CLOEXEC, and nobody who closes it.
        std::mem::forget(nix::unistd::pipe());
    }
}

#[derive(Default)]
struct AmbientSkills;

impl RunTwist for AmbientSkills {
    fn launch(&mut self, launch: &mut Launch) {
        launch.args.retain(|arg| arg != "--no-skills");
    }
}

#[derive(Default)]
struct CallersThinking;

impl RunTwist for CallersThinking {
    fn launch(&mut self, launch: &mut Launch) {
        if let Some(at) = launch
            .args
            .iter()
            .position(|arg| arg == OsStr::new("--thinking"))
        {
            launch.args[at + 1] = "high".into();
        }
    }
}

#[derive(Default)]
struct OwnFolder;

impl RunTwist for OwnFolder {
    fn launch(&mut self, launch: &mut Launch) {
        if let Ok(folder) = std::env::current_dir() {
            launch.cwd = folder;
        }
    }
}
