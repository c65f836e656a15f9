//! What commands that judge have in common: outputs, baseline, and turning evidence into events.

use std::io::{self, Write as _};
use std::path::Path;

use crate::baseline::{Baseline, Unmatched};
use crate::catalogue::Catalogue;
use crate::check;
use crate::check::picture::Picture;
use crate::cli::{Exit, Failure, suite};
use crate::evidence::Evidence;
use crate::report::events::{FORMAT, Totals};
use crate::report::{
    self, Attempt, Event, Finished, Format, Narrowed, Output, Plain, Progress, Reporter as _,
    Reports, Summary,
};
use crate::verdict::{ScenarioVerdict, Verdict};

/// Judges scenarios one after the other, tells the reports, and counts.
pub struct Session<'c> {
    catalogue: &'c Catalogue,
    reports: Reports,
    /// Known failures.
    pub baseline: Baseline,
    /// A scenario that passes only when it is run again is as expected.
    pub flaky_passes: bool,
    /// Verdicts before the baseline was applied, when somebody wants to update it.
    pub seen: Option<Vec<ScenarioVerdict>>,
    /// Numbers so far.
    pub summary: Summary,
    failure: Option<Failure>,
}

impl<'c> Session<'c> {
    /// Opens the outputs and reads the baseline.
    ///
    /// # Errors
    /// When an output cannot be written, two go to standard output, or the baseline cannot be used.
    pub fn open(
        catalogue: &'c Catalogue,
        outputs: &[Output],
        baseline: Option<&Path>,
        verbose: bool,
        live: Live,
    ) -> Result<Self, Failure> {
        Self::new(catalogue, open_reports(outputs, verbose, live)?, baseline)
    }

    /// Reads the baseline; the reports are open already.
    ///
    /// # Errors
    /// When the baseline cannot be used.
    pub fn new(
        catalogue: &'c Catalogue,
        reports: Reports,
        baseline: Option<&Path>,
    ) -> Result<Self, Failure> {
        let baseline = match baseline {
            None => Baseline::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::usage(format!("baseline {}: {error}", path.display()))
                })?;
                read_baseline(path, &text)?
            }
        };
        Ok(Self {
            catalogue,
            reports,
            baseline,
            flaky_passes: false,
            seen: None,
            summary: Summary::default(),
            failure: None,
        })
    }

    /// Tells an event. An output that cannot be written ends the run with a message, at its end.
    pub fn tell(&mut self, event: &Event) {
        if let Err(error) = self.reports.event(event)
            && self.failure.is_none()
        {
            // A reader that has gone, as `head` does, is nobody's fault and not worth a word.
            let quiet = error.kind() == io::ErrorKind::BrokenPipe;
            let message = if quiet {
                String::new()
            } else {
                format!("cannot write a report: {error}")
            };
            self.failure = Some(Failure::harness(message));
        }
    }

    /// The first event.
    pub fn begin(&mut self, beginning: Beginning<'_>) {
        let Beginning {
            subject,
            about,
            selected,
            jobs,
            seed,
            narrowed,
        } = beginning;
        self.summary.selected = selected;
        self.tell(&Event::Run {
            format: FORMAT,
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            subject: subject.to_owned(),
            about: about.to_owned(),
            selected,
            jobs,
            seed,
            narrowed,
        });
    }

    /// Judges evidence, with the baseline.
    pub fn judge(&mut self, evidence: &Evidence) -> ScenarioVerdict {
        let mut verdict = check::judge(evidence);
        if let Some(seen) = &mut self.seen {
            seen.push(verdict.clone());
        }
        self.baseline.apply(&mut verdict);
        verdict
    }

    /// Counts and tells a verdict.
    pub fn finish(&mut self, evidence: &Evidence, verdict: &ScenarioVerdict, past: Past) {
        self.summary.count(verdict.verdict);
        let finished = finished(self.catalogue, evidence, verdict, past);
        self.summary.flaky += usize::from(finished.flaky);
        let event = Event::Finished(Box::new(finished));
        self.tell(&event);
    }

    /// The last events, and the exit code.
    ///
    /// # Errors
    /// When an output could not be written.
    pub fn end(mut self, known: &[&str]) -> Result<Exit, Failure> {
        let unmatched: Vec<Unmatched> = self.baseline.unmatched(known);
        for Unmatched { entry, problem } in &unmatched {
            self.tell(&Event::Unmatched {
                entry: entry.clone(),
                problem: problem.clone(),
            });
        }
        let summary = self.summary;
        self.tell(&Event::Summary(Totals::Run(summary)));
        let flaky_passes = self.flaky_passes;
        self.close()?;
        Ok(Exit::of(&summary, unmatched.len(), flaky_passes))
    }

    /// Nothing more is told.
    ///
    /// # Errors
    /// When an output could not be written.
    pub fn close(self) -> Result<(), Failure> {
        match self.failure {
            Some(failure) if !failure.message.is_empty() => Err(failure),
            _ => Ok(()),
        }
    }
}

/// A kill matrix has no form in some formats.
///
/// # Errors
/// When one of those is asked for.
pub fn matrix_has_form(outputs: &[Output]) -> Result<(), Failure> {
    let without = |output: &&Output| !output.format.tells_a_matrix();
    match outputs.iter().find(without) {
        None => Ok(()),
        Some(output) => Err(Failure::usage(format!(
            "{} has no form for a matrix; there are {}",
            output.format.word(),
            report::format_words(Format::tells_a_matrix)
        ))),
    }
}

/// Whether there is something to wait for, so that progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live {
    /// Scenarios run.
    Yes,
    /// All is there already.
    No,
}

/// Reporters for the outputs; human on standard output when none is asked for. While there is something to wait for,
/// progress goes to standard error: a bar on a terminal, else plain lines.
///
/// # Errors
/// When a file cannot be made, or two outputs go to standard output.
pub fn open_reports(outputs: &[Output], verbose: bool, live: Live) -> Result<Reports, Failure> {
    let mut outputs = outputs.to_vec();
    if outputs
        .iter()
        .filter(|output| output.file.is_none())
        .count()
        > 1
    {
        return Err(Failure::usage(
            "only one report can go to standard output; give the others a file, as in `junit:report.xml`",
        ));
    }
    if outputs.iter().all(|output| output.file.is_some()) {
        outputs.push(Output {
            format: Format::Human,
            file: None,
        });
    }
    let mut reports = Reports::default();
    if live == Live::Yes {
        match Progress::on_terminal() {
            Some(bar) => reports.0.push(Box::new(bar)),
            // With `--verbose` every scenario has a line anyway.
            None if !verbose => reports.0.push(Box::new(Plain::new(io::stderr()))),
            None => {}
        }
    }
    for output in &outputs {
        reports
            .0
            .push(report::reporter(output, verbose).map_err(Failure::usage)?);
    }
    Ok(reports)
}

/// What stands in the first event.
#[derive(Debug, Clone, Default)]
pub struct Beginning<'a> {
    /// The adapter's name.
    pub subject: &'a str,
    /// What it is.
    pub about: &'a str,
    /// How many scenarios.
    pub selected: usize,
    /// How many at once.
    pub jobs: usize,
    /// Of the order, where it is not the written one.
    pub seed: Option<u64>,
    /// Capabilities that are left out.
    pub narrowed: Vec<Narrowed>,
}

/// What came before the verdict that is told.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Where the evidence lies, if it was kept.
    pub bundle: Option<String>,
    /// Runs again because the machine had stalled.
    pub reruns: u32,
    /// All attempts, the last one too; nothing when there was just one.
    pub attempts: Vec<Attempt>,
}

/// A baseline out of a file.
///
/// # Errors
/// When it cannot be used; the message shows the place.
pub fn read_baseline(path: &Path, text: &str) -> Result<Baseline, Failure> {
    // A day of the whole world: the same on every machine of a run.
    let today = jiff::tz::Offset::UTC
        .to_datetime(jiff::Timestamp::now())
        .date();
    Baseline::parse(&path.to_string_lossy(), text, today).map_err(|error| suite::diagnostic(*error))
}

/// How long a scenario took, milliseconds.
pub fn duration_ms(evidence: &Evidence) -> u64 {
    let first = evidence.events.first().map_or(0, |event| event.t_ns);
    let last = evidence.events.last().map_or(0, |event| event.t_ns);
    last.saturating_sub(first) / 1_000_000
}

/// All that reports need of a judged scenario.
pub fn finished(
    catalogue: &Catalogue,
    evidence: &Evidence,
    verdict: &ScenarioVerdict,
    past: Past,
) -> Finished {
    let header = &evidence.header;
    let told_in_full = verdict.verdict > Verdict::KnownFailure;
    let wrong = verdict
        .checks
        .iter()
        .filter(|check| check.verdict > Verdict::Pass);
    let rule = |id: &String| Some((id.clone(), catalogue.requirements.get(id)?.rule.clone()));
    let witnesses = || {
        check::story::witnesses(evidence)
            .into_iter()
            .map(|(name, says)| (name.to_owned(), says))
    };
    Finished {
        scenario: verdict.name.clone(),
        area: verdict.area.clone(),
        axes: header.axes.clone(),
        why: header.scenario.why.clone(),
        verdict: verdict.verdict,
        duration_ms: duration_ms(evidence),
        reruns: past.reruns,
        flaky: is_flaky(verdict.verdict, &past.attempts),
        attempts: past.attempts,
        rules: wrong
            .flat_map(|check| &check.proves)
            .filter_map(rule)
            .collect(),
        checks: verdict.checks.clone(),
        witnesses: if told_in_full {
            witnesses().collect()
        } else {
            indexmap::IndexMap::new()
        },
        timeline: if told_in_full {
            check::story::timeline(evidence)
        } else {
            Vec::new()
        },
        picture: (verdict.verdict > Verdict::NotApplicable)
            .then(|| Picture::of(evidence))
            .filter(|picture| picture.end_ns > 0),
        bundle: past.bundle,
        reproduce: header.reproduce.clone(),
    }
}

/// It is as expected now, and a violation or a blank was seen before, with nothing changed between. That the machine stalled
/// is nobody's flakiness.
fn is_flaky(last: Verdict, attempts: &[Attempt]) -> bool {
    let failed = |verdict: Verdict| matches!(verdict, Verdict::Fail | Verdict::NoEvidence);
    last <= Verdict::KnownFailure && attempts.iter().any(|attempt| failed(attempt.verdict))
}

/// Writes to standard output. A reader that has gone is no fault.
///
/// # Errors
/// When it cannot be written otherwise.
pub fn print(bytes: &[u8]) -> Result<Exit, Failure> {
    let mut out = anstream::AutoStream::auto(io::stdout());
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::harness(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(Exit::AsExpected),
    }
}
