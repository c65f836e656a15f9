//! Faults in what the caller is told.

use std::sync::{Mutex, PoisonError};

use reference::pi::run::{Effect, Input};
use reference::pi::seam::RunTwist;
use reference::pi::wire::{Message, Record};
use reference::pi::{Limits, Outcome};

use crate::{Mutant, mutant};

pub const MUTANTS: &[Mutant] = &[
    mutant::<ErrorIsAnswer>(
        "provider-error-as-answer",
        "Hands the provider's error text to the caller as the answer.",
        &[
            "semantics.provider-error-captured",
            "field.error-outlives-leak",
        ],
    ),
    mutant::<EmptyIsSuccess>(
        "empty-answer-as-success",
        "Invents a text where the child said nothing.",
        &["field.tool-text-never-decides"],
    ),
    mutant::<CutIsFailure>(
        "own-cap-as-failure",
        "Takes an answer that it has cut itself for one that the model did not finish.",
        &["semantics.output-cap-is-not-failure"],
    ),
    mutant::<NoOutputCap>(
        "no-output-cap",
        "Returns an answer whole, however long it is.",
        &["bounds.text-50kib", "field.answer-cap-reaches-caller"],
    ),
    mutant::<ExitLost>(
        "exit-status-lost",
        "Does not tell how the child ended, nor whether it ended well.",
        &["semantics.abnormal-exit-fails"],
    ),
    mutant::<AnswersMixed>(
        "answers-mixed-up",
        "Keeps the answer in one place for all calls.",
        &["isolate.parallel-outputs"],
    ),
    mutant::<NoUpdates>(
        "no-progress",
        "Tells nobody what the child does.",
        &["semantics.progress-compact"],
    ),
];

/// Applies `change` to every complete message.
fn changed(input: Input, change: impl FnOnce(&mut Message)) -> Vec<Input> {
    match input {
        Input::Record(Record::AssistantEnd(mut message), replaced) => {
            change(&mut message);
            vec![Input::Record(Record::AssistantEnd(message), replaced)]
        }
        other => vec![other],
    }
}

#[derive(Default)]
struct ErrorIsAnswer;

impl RunTwist for ErrorIsAnswer {
    fn input(&mut self, input: Input) -> Vec<Input> {
        changed(input, |message| {
            if message.stop_reason == "error" {
                message.stop_reason = "stop".into();
                message.text = std::mem::take(&mut message.error);
            }
        })
    }
}

#[derive(Default)]
struct EmptyIsSuccess;

impl RunTwist for EmptyIsSuccess {
    fn input(&mut self, input: Input) -> Vec<Input> {
        changed(input, |message| {
            if message.text.trim().is_empty() {
                message.text = "(no output)".into();
            }
        })
    }
}

#[derive(Default)]
struct CutIsFailure;

impl RunTwist for CutIsFailure {
    fn outcome(&mut self, outcome: &mut Outcome) {
        if (outcome.text.len() as u64) < outcome.original_bytes {
            outcome.stop_reason = "length".into();
        }
    }
}

#[derive(Default)]
struct NoOutputCap;

impl RunTwist for NoOutputCap {
    fn limits(&mut self, limits: &mut Limits) {
        limits.output_cap = usize::MAX;
    }
}

#[derive(Default)]
struct ExitLost;

impl RunTwist for ExitLost {
    fn outcome(&mut self, outcome: &mut Outcome) {
        outcome.exit.code = Some(0);
        outcome.exit.signal = None;
    }
}

/// The answer of whichever call answered last.
static LAST: Mutex<String> = Mutex::new(String::new());

#[derive(Default)]
struct AnswersMixed;

impl RunTwist for AnswersMixed {
    fn input(&mut self, input: Input) -> Vec<Input> {
        if let Input::Record(Record::AssistantEnd(message), _) = &input {
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            last.clone_from(&message.text);
        }
        vec![input]
    }

    fn outcome(&mut self, outcome: &mut Outcome) {
        if outcome.answered {
            let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.text.clone_from(&last);
        }
    }
}

#[derive(Default)]
struct NoUpdates;

impl RunTwist for NoUpdates {
    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        match effect {
            Effect::Tell(_) => vec![],
            other => vec![other],
        }
    }
}
