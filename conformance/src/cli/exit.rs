//! Exit codes. They are API; `docs/exit-codes.md` is this enum in words.

use std::process::ExitCode;

use crate::report::Summary;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// 0: everything is as expected. Known failures, declared policies and checks that do not apply are expected.
    AsExpected = 0,
    /// 1: something is not: a violation, a flaky scenario, a stale, expired or unmatched entry of the baseline, a mutant that survives, a scenario with a mistake.
    Failures = 1,
    /// 2: the command was given something wrong: an option, a name, a file.
    Usage = 2,
    /// 3: incomplete: something planned never ran, saw nothing that it could judge, or stayed inconclusive.
    Incomplete = 3,
    /// 4: nothing was selected.
    NothingSelected = 4,
    /// 70: the harness itself failed.
    Harness = 70,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The code of a run. The harness goes before violations, violations before what is missing.
    /// With `flaky_passes` what passed only when it was run again is as expected.
    pub fn of(summary: &Summary, unmatched: usize, flaky_passes: bool) -> Self {
        let flaky = if flaky_passes { 0 } else { summary.flaky };
        let bad = summary.fail + summary.stale + unmatched + flaky;
        let open = summary.no_evidence
            + summary.inconclusive
            + summary.selected.saturating_sub(summary.judged());
        if summary.harness_error > 0 {
            Self::Harness
        } else if bad > 0 {
            Self::Failures
        } else if summary.selected == 0 {
            Self::NothingSelected
        } else if open > 0 || summary.not_applicable == summary.selected {
            // A run of which nothing applied has judged nothing: that is not a success.
            Self::Incomplete
        } else {
            Self::AsExpected
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    fn exit(verdicts: &[Verdict], selected: usize, unmatched: usize) -> Exit {
        let mut summary = Summary {
            selected,
            ..Summary::default()
        };
        verdicts.iter().for_each(|verdict| summary.count(*verdict));
        Exit::of(&summary, unmatched, false)
    }

    #[test]
    fn the_worst_thing_decides_the_exit_code() {
        use Verdict::*;
        for (verdicts, selected, unmatched, expected) in [
            (
                &[Pass, Differs, KnownFailure, NotApplicable][..],
                4,
                0,
                Exit::AsExpected,
            ),
            (&[Pass, Fail], 2, 0, Exit::Failures),
            (&[Pass, Stale], 2, 0, Exit::Failures),
            (&[Pass], 1, 1, Exit::Failures),
            (&[Pass, NoEvidence], 2, 0, Exit::Incomplete),
            (&[Pass, Inconclusive], 2, 0, Exit::Incomplete),
            (&[Pass], 2, 0, Exit::Incomplete),
            (&[NotApplicable], 1, 0, Exit::Incomplete),
            (&[Fail, NoEvidence], 2, 0, Exit::Failures),
            (&[Fail, HarnessError], 2, 0, Exit::Harness),
            (&[], 0, 0, Exit::NothingSelected),
        ] {
            assert_eq!(
                exit(verdicts, selected, unmatched),
                expected,
                "{verdicts:?} of {selected}, {unmatched} unmatched"
            );
        }
    }

    #[test]
    fn what_passes_only_now_and_then_fails_unless_that_is_allowed() {
        let mut summary = Summary {
            selected: 1,
            flaky: 1,
            ..Summary::default()
        };
        summary.count(Verdict::Pass);
        assert_eq!(Exit::of(&summary, 0, false), Exit::Failures);
        assert_eq!(Exit::of(&summary, 0, true), Exit::AsExpected);
    }

    #[test]
    fn the_document_names_every_code() {
        let text = include_str!("../../../docs/exit-codes.md");
        for exit in [
            Exit::AsExpected,
            Exit::Failures,
            Exit::Usage,
            Exit::Incomplete,
            Exit::NothingSelected,
            Exit::Harness,
        ] {
            assert!(
                text.contains(&format!("| {} |", exit as u8)),
                "{exit:?} is not in docs/exit-codes.md"
            );
        }
    }
}
