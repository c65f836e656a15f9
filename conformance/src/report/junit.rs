//! JUnit XML: a suite for each area, a case for each scenario.
//!
//! A violation or a stale entry is a *failure*; what could not be judged is an *error*; what is not applicable or known to fail is
//! *skipped*, with the reason. A differing policy is a success that says so in its output. What failed before it was run again is a
//! `flakyFailure` of a success, or a `rerunFailure` of a failure.

use std::io::{self, Write};
use std::time::Duration;

use indexmap::IndexMap;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use crate::report::{Attempt, Event, Finished, Reporter};
use crate::verdict::Verdict;

/// Collects the run and writes it at its end.
pub struct Junit<W> {
    out: W,
    name: String,
    suites: IndexMap<String, TestSuite>,
}

impl<W: Write> Junit<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            name: "pi-conform".to_owned(),
            suites: IndexMap::new(),
        }
    }
}

impl<W: Write> Reporter for Junit<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Run { subject, .. } => self.name = format!("pi-conform on {subject}"),
            Event::Finished(finished) => {
                let area = &finished.area;
                let suite = self
                    .suites
                    .entry(area.clone())
                    .or_insert_with(|| TestSuite::new(area.as_str()));
                suite.add_test_case(case(finished));
            }
            Event::Unmatched { entry, problem } => {
                let suite = self
                    .suites
                    .entry("baseline".to_owned())
                    .or_insert_with(|| TestSuite::new("baseline"));
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type("unmatched").set_message(problem.as_str());
                suite.add_test_case(TestCase::new(entry.as_str(), status));
            }
            Event::Summary(_) => {
                let mut report = Report::new(self.name.as_str());
                report.add_test_suites(std::mem::take(&mut self.suites).into_values());
                report.serialize(&mut self.out).map_err(io::Error::other)?;
                self.out.flush()?;
            }
            Event::Started { .. } | Event::Rounds(_) | Event::Mutant(_) => {}
        }
        Ok(())
    }
}

fn case(finished: &Finished) -> TestCase {
    let word = finished.verdict.word();
    let told = || {
        let wrong = finished
            .checks
            .iter()
            .filter(|check| check.verdict == finished.verdict);
        let lines = wrong.map(|check| {
            format!(
                "{}: expected {}; saw {}",
                check.id, check.expected, check.seen
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut status = match finished.verdict {
        Verdict::Pass | Verdict::Differs => TestCaseStatus::success(),
        Verdict::NotApplicable | Verdict::KnownFailure => {
            let mut status = TestCaseStatus::skipped();
            status.set_type(word).set_message(told());
            status
        }
        Verdict::Fail | Verdict::Stale => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status
                .set_type(word)
                .set_message(told())
                .set_description(details(finished));
            status
        }
        Verdict::Inconclusive | Verdict::NoEvidence | Verdict::HarnessError => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status
                .set_type(word)
                .set_message(told())
                .set_description(details(finished));
            status
        }
    };
    let before = finished.attempts.split_last().map_or(&[][..], |(_, b)| b);
    status.add_reruns(before.iter().map(rerun));
    let mut case = TestCase::new(finished.scenario.as_str(), status);
    case.set_classname(finished.area.as_str());
    case.set_time(Duration::from_millis(finished.duration_ms));
    if finished.verdict == Verdict::Differs {
        case.set_system_out(told());
    }
    case
}

/// An attempt before the last.
fn rerun(attempt: &Attempt) -> TestRerun {
    let kind = match attempt.verdict {
        Verdict::Fail | Verdict::Stale => NonSuccessKind::Failure,
        _ => NonSuccessKind::Error,
    };
    let mut rerun = TestRerun::new(kind);
    let lines = attempt.checks.iter().map(|check| {
        format!(
            "{}: expected {}; saw {}",
            check.id, check.expected, check.seen
        )
    });
    rerun
        .set_type(attempt.verdict.word())
        .set_message(lines.collect::<Vec<_>>().join("\n"))
        .set_time(Duration::from_millis(attempt.duration_ms));
    if let Some(bundle) = &attempt.bundle {
        rerun.set_description(format!("bundle: {bundle}"));
    }
    rerun
}

fn details(finished: &Finished) -> String {
    let mut lines = vec![finished.why.clone()];
    for (witness, says) in &finished.witnesses {
        lines.extend(says.iter().map(|line| format!("{witness}: {line}")));
    }
    lines.extend(finished.timeline.iter().cloned());
    lines.extend(finished.bundle.iter().map(|path| format!("bundle: {path}")));
    lines.push(format!("reproduce: {}", finished.reproduce));
    lines.join("\n")
}
