//! Faults in how a child is watched and ended.

use std::sync::Arc;
use std::time::Duration;

use reference::pi::run::{Effect, Input};
use reference::pi::seam::{Reach, RunTwist, Twist};
use reference::pi::{Cause, Cleanup, Launch, Limits, Outcome};

use crate::{Mutant, mutant};

pub const MUTANTS: &[Mutant] = &[
    mutant::<NoKill>(
        "no-kill",
        "SIGTERM is sent, SIGKILL never.",
        &["drain.term-then-kill"],
    ),
    mutant::<KillUnlessTermSent>(
        "kill-only-if-term-was-not-sent",
        "SIGKILL is held back once SIGTERM was sent, whether it helped or not.",
        &["drain.term-then-kill", "drain.term-resistant-descendant"],
    ),
    mutant::<KillAtOnce>(
        "kill-at-once",
        "SIGKILL comes first, without asking.",
        &["drain.term-honoured-no-kill"],
    ),
    mutant::<ChildOnly>(
        "child-but-not-its-group",
        "Signals reach the child alone.",
        &[
            "drain.descendants-gone-after-abort",
            "drain.descendants-gone-after-success",
        ],
    ),
    mutant::<GroupOnly>(
        "group-but-not-strays",
        "Signals reach the group, and nothing that fled to a session of its own.",
        &[
            "field.own-session-holder",
            "drain.descendants-gone-after-timeout",
        ],
    ),
    mutant::<SettlesOnExit>(
        "settles-on-exit",
        "The exit ends the run, and what is still in the pipe is dropped.",
        &["drain.output-before-exit-not-lost", "field.burst-then-exit"],
    ),
    mutant::<WaitsForEndOfOutput>(
        "waits-for-end-of-output-only",
        "The exit counts only once both pipes have ended.",
        &[
            "drain.descendant-holds-stdout",
            "drain.post-exit-guard-bounded",
        ],
    ),
    mutant::<NeverMindStayers>(
        "waits-for-the-exit-after-the-answer",
        "A child that stays after its answer is waited for.",
        &[
            "drain.semantic-completion-guard",
            "semantics.valid-answer-survives-forced-cleanup",
        ],
    ),
    mutant::<NoDeadline>(
        "no-deadline",
        "The deadline never comes.",
        &["deadline.mandatory", "wait.hang-is-bounded-when-limit-set"],
    ),
    mutant::<MovingDeadline>(
        "deadline-moved-by-activity",
        "Each record moves the deadline.",
        &["deadline.activity-does-not-extend"],
    ),
    mutant::<NoWatchdog>(
        "no-start-watchdog",
        "A prompt that starts nothing is waited on.",
        &["field.accepted-but-silent"],
    ),
    mutant::<NeverQuiet>(
        "waits-for-settled-only",
        "A Pi that never says settled is waited on.",
        &["field.older-pi-without-settled"],
    ),
    mutant::<DeafToAbort>(
        "abort-ignored",
        "An abort changes nothing.",
        &["cancel.abort-during-model-activity"],
    ),
    mutant::<CancelledIsFine>(
        "cancelled-is-success",
        "A cancelled run that said something is a success.",
        &["cancel.never-success"],
    ),
    mutant::<CleanupDenied>(
        "cleanup-denied",
        "What was forced is not told.",
        &[
            "drain.cleanup-metadata-accurate",
            "semantics.valid-answer-survives-forced-cleanup",
        ],
    ),
    mutant::<LeaksDescriptors>(
        "descriptor-leaked",
        "Each run leaves a descriptor open.",
        &["isolate.repeatable-calls", "field.descriptor-limit"],
    ),
    mutant::<LeavesZombies>(
        "zombies",
        "A process that has ended is never reaped.",
        &["drain.no-zombies"],
    ),
    Mutant {
        name: "two-settlements",
        about: "Each call is answered twice.",
        breaks: &[
            "semantics.settles-exactly-once",
            "cancel.no-duplicate-completion",
        ],
        main: |args| reference::main_with(args, Arc::new(AnswersTwice)),
    },
];

/// Longer than any scenario is watched.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

#[derive(Default)]
struct NoKill;

impl RunTwist for NoKill {
    // Neither the guardian nor the runtime is to do what this one forgets.
    fn guarded(&self) -> bool {
        false
    }

    fn launch(&mut self, launch: &mut Launch) {
        launch.kill_on_drop = false;
    }

    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        if effect == Effect::Kill {
            Vec::new()
        } else {
            vec![effect]
        }
    }
}

#[derive(Default)]
struct KillUnlessTermSent {
    asked: bool,
}

impl RunTwist for KillUnlessTermSent {
    fn launch(&mut self, launch: &mut Launch) {
        launch.kill_on_drop = false;
    }

    // Neither the guardian nor the runtime is to do what this one forgets.
    fn guarded(&self) -> bool {
        false
    }

    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        self.asked |= effect == Effect::Term;
        if self.asked && effect == Effect::Kill {
            Vec::new()
        } else {
            vec![effect]
        }
    }
}

#[derive(Default)]
struct KillAtOnce;

impl RunTwist for KillAtOnce {
    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        vec![if effect == Effect::Term {
            Effect::Kill
        } else {
            effect
        }]
    }
}

#[derive(Default)]
struct ChildOnly;

impl RunTwist for ChildOnly {
    fn reach(&self) -> Reach {
        Reach::Child
    }
}

#[derive(Default)]
struct GroupOnly;

impl RunTwist for GroupOnly {
    fn reach(&self) -> Reach {
        Reach::Group
    }
}

/// Reads are handled one behind, as a loop does that waits for the exit and the output at once; the exit then drops what
/// has not been handled.
#[derive(Default)]
struct SettlesOnExit {
    unread: Vec<u8>,
}

impl RunTwist for SettlesOnExit {
    fn rewrites(&self) -> bool {
        true
    }

    fn bytes(&mut self, bytes: &mut Vec<u8>) {
        std::mem::swap(bytes, &mut self.unread);
    }

    fn input(&mut self, input: Input) -> Vec<Input> {
        match input {
            Input::Exited(_) => vec![Input::StdoutEnd(false), Input::StderrEnd, input],
            _ => vec![input],
        }
    }
}

#[derive(Default)]
struct WaitsForEndOfOutput {
    exited: Option<Input>,
    ended: usize,
}

impl RunTwist for WaitsForEndOfOutput {
    fn input(&mut self, input: Input) -> Vec<Input> {
        self.ended += usize::from(matches!(input, Input::StdoutEnd(_) | Input::StderrEnd));
        let mut told = Vec::new();
        match input {
            Input::Exited(_) => self.exited = Some(input),
            input => told.push(input),
        }
        if self.ended >= 2 {
            told.extend(self.exited.take());
        }
        told
    }
}

#[derive(Default)]
struct NeverMindStayers;

impl RunTwist for NeverMindStayers {
    fn limits(&mut self, limits: &mut Limits) {
        limits.post_answer_drain = FOR_EVER;
    }
}

#[derive(Default)]
struct NoDeadline;

impl RunTwist for NoDeadline {
    fn limits(&mut self, limits: &mut Limits) {
        limits.deadline = FOR_EVER;
    }
}

#[derive(Default)]
struct MovingDeadline;

impl RunTwist for MovingDeadline {
    fn lag(&self, heard: Duration) -> Duration {
        heard
    }
}

#[derive(Default)]
struct NoWatchdog;

impl RunTwist for NoWatchdog {
    fn limits(&mut self, limits: &mut Limits) {
        limits.start_watchdog = None;
    }
}

#[derive(Default)]
struct NeverQuiet;

impl RunTwist for NeverQuiet {
    fn limits(&mut self, limits: &mut Limits) {
        limits.quiet = FOR_EVER;
    }
}

#[derive(Default)]
struct DeafToAbort;

impl RunTwist for DeafToAbort {
    fn input(&mut self, input: Input) -> Vec<Input> {
        if matches!(input, Input::Stop(_)) {
            Vec::new()
        } else {
            vec![input]
        }
    }
}

#[derive(Default)]
struct CancelledIsFine;

impl RunTwist for CancelledIsFine {
    fn outcome(&mut self, outcome: &mut Outcome) {
        if matches!(outcome.cause, Cause::Stopped(_)) {
            outcome.cause = Cause::Settled;
            outcome.answered = true;
            outcome.stop_reason = "stop".into();
            outcome.text.push_str("stopped in good order");
        }
    }
}

#[derive(Default)]
struct CleanupDenied;

impl RunTwist for CleanupDenied {
    fn outcome(&mut self, outcome: &mut Outcome) {
        outcome.cleanup = Cleanup {
            drained: true,
            ..Cleanup::default()
        };
    }
}

#[derive(Default)]
struct LeaksDescriptors;

impl RunTwist for LeaksDescriptors {
    fn outcome(&mut self, _outcome: &mut Outcome) {
        std::mem::forget(std::fs::File::open("/dev/null"));
    }
}

#[derive(Default)]
struct LeavesZombies;

impl RunTwist for LeavesZombies {
    fn outcome(&mut self, _outcome: &mut Outcome) {
        // Entered as a child that somebody waits for, so nobody else takes its status; and nobody waits for it.
        let mut own = reference::pi::group::own_children();
        if let Ok(child) = std::process::Command::new("/bin/true").spawn() {
            own.add(child.id().cast_signed());
            std::mem::forget(child);
        }
    }
}

struct AnswersTwice;

impl Twist for AnswersTwice {
    fn answers(&self) -> usize {
        2
    }
}
