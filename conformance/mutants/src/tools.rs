//! Faults in watching the child's tools.

use std::collections::BTreeSet;

use reference::pi::Limits;
use reference::pi::run::Input;
use reference::pi::seam::RunTwist;
use reference::pi::wire::Record;

use crate::{Mutant, mutant};

pub const MUTANTS: &[Mutant] = &[
    mutant::<NoToolTimeout>(
        "no-tool-timeout",
        "Sets no limit on tools that are known to be fast.",
        &["tool-timeout.armed-for-known-fast"],
    ),
    mutant::<ToolTimerKept>(
        "tool-timer-never-cleared",
        "Lets the timer of a tool run on when the tool has ended.",
        &["tool-timeout.cleared-by-matching-end"],
    ),
    mutant::<OneToolTimer>(
        "one-timer-for-all-tools",
        "Clears the timers of all tools when one of them ends.",
        &["tool-timeout.ids-independent"],
    ),
    mutant::<BashIsFast>(
        "bash-is-a-fast-tool",
        "Gives bash the limit of the fast tools.",
        &["tool-timeout.bash-exempt"],
    ),
    mutant::<AnyToolError>(
        "tool-error-decides",
        "Ends the run as failed when a tool fails, though the model gets over it.",
        &["field.tool-text-never-decides"],
    ),
];

#[derive(Default)]
struct NoToolTimeout;

impl RunTwist for NoToolTimeout {
    fn limits(&mut self, limits: &mut Limits) {
        limits.tool_timeout = None;
    }
}

#[derive(Default)]
struct ToolTimerKept;

impl RunTwist for ToolTimerKept {
    fn input(&mut self, input: Input) -> Vec<Input> {
        match input {
            Input::Record(Record::ToolEnd { .. }, replaced) => {
                vec![Input::Record(Record::Other, replaced)]
            }
            other => vec![other],
        }
    }
}

#[derive(Default)]
struct OneToolTimer {
    open: BTreeSet<String>,
}

impl RunTwist for OneToolTimer {
    fn input(&mut self, input: Input) -> Vec<Input> {
        if let Input::Record(Record::ToolStart { id, .. }, _) = &input {
            self.open.insert(id.clone());
        }
        let Input::Record(Record::ToolEnd { .. }, _) = &input else {
            return vec![input];
        };
        let ends = std::mem::take(&mut self.open).into_iter().map(|id| {
            let (name, text) = (String::new(), String::new());
            let end = Record::ToolEnd {
                id,
                name,
                failed: false,
                text,
            };
            Input::Record(end, false)
        });
        ends.chain([input]).collect()
    }
}

#[derive(Default)]
struct BashIsFast;

impl RunTwist for BashIsFast {
    fn input(&mut self, input: Input) -> Vec<Input> {
        match input {
            Input::Record(Record::ToolStart { id, name, detail }, replaced) => {
                let name = if name == "bash" {
                    "read".to_owned()
                } else {
                    name
                };
                vec![Input::Record(
                    Record::ToolStart { id, name, detail },
                    replaced,
                )]
            }
            other => vec![other],
        }
    }
}

#[derive(Default)]
struct AnyToolError;

impl RunTwist for AnyToolError {
    fn input(&mut self, input: Input) -> Vec<Input> {
        match input {
            Input::Record(
                Record::ToolEnd {
                    failed: true,
                    id,
                    text,
                    ..
                },
                replaced,
            ) => {
                let text = format!("{text}\nCommand timed out after all");
                let name = "bash".to_owned();
                let end = Record::ToolEnd {
                    failed: true,
                    id,
                    name,
                    text,
                };
                vec![Input::Record(end, replaced)]
            }
            other => vec![other],
        }
    }
}
