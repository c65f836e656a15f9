//! Faults in what is made of what the child said.

use reference::pi::run::Input;
use reference::pi::seam::RunTwist;
use reference::pi::wire::{Message, Record};
use reference::pi::{Cause, Outcome};

use crate::{Mutant, mutant};

pub const MUTANTS: &[Mutant] = &[
    mutant::<LengthIsFine>(
        "length-is-success",
        "An answer cut by the token limit is an answer.",
        &["semantics.basic-failure-and-success-shape"],
    ),
    mutant::<UnknownStopIsFine>(
        "unknown-stop-is-success",
        "A stop reason that nobody knows is a natural end.",
        &["field.unknown-stop-reason"],
    ),
    mutant::<ErrorLost>(
        "error-text-lost",
        "The provider's words are dropped.",
        &["semantics.provider-error-captured"],
    ),
    mutant::<AgentEndIsTheEnd>(
        "agent-end-is-the-end",
        "The first agent_end ends the run, whatever follows.",
        &["field.stale-settled", "field.older-pi-without-settled"],
    ),
    mutant::<FirstSettledWins>(
        "first-settled-wins",
        "A settled event counts although another attempt runs.",
        &["field.stale-settled"],
    ),
    mutant::<FirstMessageWins>(
        "first-message-wins",
        "The first message is the answer.",
        &["semantics.terminal-answer-captured"],
    ),
    mutant::<UsageTwice>(
        "usage-counted-twice",
        "Usage is counted at each mention.",
        &["semantics.usage-aggregated"],
    ),
    mutant::<CutAtBytes>(
        "cut-at-bytes",
        "An answer is cut in the middle of a character.",
        &["bounds.truncation-keeps-utf8-valid"],
    ),
    mutant::<CutInSilence>(
        "truncation-not-told",
        "A cut answer looks whole.",
        &["bounds.truncation-disclosed"],
    ),
    mutant::<ExitDecides>(
        "exit-code-decides",
        "Exit code 0 is a success, answer or not.",
        &[
            "semantics.no-terminal-answer-fails",
            "framing.empty-stdout-exit",
        ],
    ),
    mutant::<BashTimeoutHidden>(
        "bash-timeout-hidden",
        "A Bash command that timed out is forgotten once there is an answer.",
        &["drain.bash-timeout-ends-run"],
    ),
];

/// Changes every message of the assistant.
fn message(input: Input, change: impl FnOnce(&mut Message)) -> Input {
    match input {
        Input::Record(Record::AssistantEnd(mut message), replaced) => {
            change(&mut message);
            Input::Record(Record::AssistantEnd(message), replaced)
        }
        input => input,
    }
}

#[derive(Default)]
struct LengthIsFine;

impl RunTwist for LengthIsFine {
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![message(input, |message| {
            if message.stop_reason == "length" {
                message.stop_reason = "stop".into();
            }
        })]
    }
}

#[derive(Default)]
struct UnknownStopIsFine;

impl RunTwist for UnknownStopIsFine {
    fn input(&mut self, input: Input) -> Vec<Input> {
        let known = ["stop", "length", "toolUse", "error", "aborted"];
        vec![message(input, |message| {
            if !known.contains(&message.stop_reason.as_str()) {
                message.stop_reason = "stop".into();
            }
        })]
    }
}

#[derive(Default)]
struct ErrorLost;

impl RunTwist for ErrorLost {
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![message(input, |message| message.error.clear())]
    }
}

#[derive(Default)]
struct AgentEndIsTheEnd;

impl RunTwist for AgentEndIsTheEnd {
    fn input(&mut self, input: Input) -> Vec<Input> {
        match input {
            Input::Record(Record::AgentEnd { .. }, replaced) => vec![
                Input::Record(
                    Record::AgentEnd {
                        will_retry: Some(false),
                    },
                    replaced,
                ),
                Input::Record(Record::Settled, false),
            ],
            _ => vec![input],
        }
    }
}

#[derive(Default)]
struct FirstSettledWins;

impl RunTwist for FirstSettledWins {
    fn input(&mut self, input: Input) -> Vec<Input> {
        let record = match input {
            Input::Record(
                Record::AgentEnd {
                    will_retry: Some(_),
                },
                _,
            ) => Record::AgentEnd {
                will_retry: Some(false),
            },
            Input::Record(Record::RecoveryStart | Record::RecoveryEnd(_), _) => Record::Other,
            input => return vec![input],
        };
        vec![Input::Record(record, false)]
    }
}

#[derive(Default)]
struct FirstMessageWins {
    first: Option<Message>,
}

impl RunTwist for FirstMessageWins {
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![message(input, |message| {
            let first = self.first.get_or_insert_with(|| message.clone());
            message.text.clone_from(&first.text);
        })]
    }
}

#[derive(Default)]
struct UsageTwice;

impl RunTwist for UsageTwice {
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![message(input, |message| {
            message.tokens = message.tokens.map(|tokens| 2 * tokens)
        })]
    }
}

/// Where the caller's text is cut.
const CAP: usize = 51_199;

#[derive(Default)]
struct CutAtBytes;

impl RunTwist for CutAtBytes {
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![message(input, |message| {
            if message.text.len() > CAP {
                let cut = &message.text.as_bytes()[..CAP - 2];
                let rest = "x".repeat(message.text.len() - cut.len());
                message.text = String::from_utf8_lossy(cut).into_owned() + &rest;
            }
        })]
    }
}

#[derive(Default)]
struct CutInSilence;

impl RunTwist for CutInSilence {
    fn outcome(&mut self, outcome: &mut Outcome) {
        outcome.original_bytes = outcome.text.len() as u64;
    }
}

#[derive(Default)]
struct ExitDecides;

impl RunTwist for ExitDecides {
    fn outcome(&mut self, outcome: &mut Outcome) {
        if outcome.exit.code == Some(0) && !outcome.answered {
            outcome.cause = Cause::Settled;
            outcome.answered = true;
            outcome.stop_reason = "stop".into();
            outcome.text = "(the child said nothing)".into();
        }
    }
}

#[derive(Default)]
struct BashTimeoutHidden;

impl RunTwist for BashTimeoutHidden {
    fn limits(&mut self, limits: &mut reference::pi::Limits) {
        limits.bash_timeout_ends_run = false;
    }
}
