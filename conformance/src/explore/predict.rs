//! What an honest delegator may say of a call, from the case alone.

use super::case::{Abort, Call, Case, Ending};

/// The outcome that a call must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prediction {
    /// Success with just this answer.
    Success(String),
    /// No success.
    Failure,
    /// Either: two things race, or honest contracts differ.
    Either,
}

/// Predicts one call. Its neighbours have no say in it.
pub fn predict(case: &Case, call: &Call) -> Prediction {
    if let Abort::After(_) = call.abort {
        // The abort may come before, while or after the child answers.
        return match call.ending {
            Ending::Answer(_) | Ending::AnswerExit(_) | Ending::AnswerStay(_) => Prediction::Either,
            _ => Prediction::Failure,
        };
    }
    let aborted = call.abort == Abort::AtWork || case.deadline;
    match &call.ending {
        // Pi itself takes an answer without any text for none.
        Ending::Answer(text) | Ending::AnswerExit(text) | Ending::AnswerStay(text)
            if text.trim().is_empty() =>
        {
            Prediction::Either
        }
        Ending::Answer(text) | Ending::AnswerExit(text) | Ending::AnswerStay(text) if !aborted => {
            Prediction::Success(text.clone())
        }
        // At work and already answering: the abort may come too late.
        Ending::Answer(_) | Ending::AnswerExit(_) | Ending::AnswerStay(_) => Prediction::Either,
        Ending::Length(_)
        | Ending::Error(_)
        | Ending::Rejected
        | Ending::Exit(_)
        | Ending::Killed
        | Ending::Cut
        | Ending::Hang
        | Ending::Stream => Prediction::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(ending: Ending, abort: Abort) -> Call {
        Call {
            descendants: Vec::new(),
            noise: Vec::new(),
            ending,
            stubborn: false,
            chop: None,
            abort,
        }
    }

    #[test]
    fn only_a_whole_answer_that_nothing_races_is_a_success() {
        let case = |deadline| Case {
            calls: Vec::new(),
            together: false,
            deadline,
        };
        let answer = || Ending::Answer("a".into());
        for (ending, abort, deadline, expected) in [
            (answer(), Abort::No, false, Prediction::Success("a".into())),
            (
                Ending::AnswerStay("a".into()),
                Abort::No,
                false,
                Prediction::Success("a".into()),
            ),
            (answer(), Abort::After(3), false, Prediction::Either),
            (answer(), Abort::AtWork, false, Prediction::Either),
            (
                Ending::Answer(" ".into()),
                Abort::No,
                false,
                Prediction::Either,
            ),
            (
                Ending::Length("half".into()),
                Abort::No,
                false,
                Prediction::Failure,
            ),
            (Ending::Hang, Abort::No, true, Prediction::Failure),
            (Ending::Hang, Abort::After(3), false, Prediction::Failure),
            (Ending::Cut, Abort::No, false, Prediction::Failure),
        ] {
            let call = call(ending, abort);
            assert_eq!(predict(&case(deadline), &call), expected, "{call:?}");
        }
    }
}
