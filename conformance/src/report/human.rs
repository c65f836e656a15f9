//! The report for people: calm while things are as they must be, and for each failure all that is needed to understand it.

use std::io::{self, Write};
use std::time::Instant;

use anstyle::{AnsiColor, Style};

use crate::report::events::{MutantJudged, MutantSummary, Narrowed, Totals};
use crate::report::{Event, Finished, Reporter, Rounds, Summary};
use crate::verdict::{CheckVerdict, Verdict};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Writes text; failures in full at the end.
pub struct Human<W> {
    out: W,
    verbose: bool,
    began: Instant,
    subject: String,
    bad: Vec<Finished>,
    known: Vec<Finished>,
    flaky: Vec<Finished>,
    rounds: Option<Rounds>,
    seed: Option<u64>,
    narrowed: Vec<Narrowed>,
    unmatched: Vec<(String, String)>,
    mutants: Vec<MutantJudged>,
}

/// A verdict's colour.
fn style(verdict: Verdict) -> Style {
    let color = match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::NotApplicable | Verdict::KnownFailure => AnsiColor::BrightBlack,
        Verdict::Differs => AnsiColor::Cyan,
        Verdict::Inconclusive | Verdict::NoEvidence => AnsiColor::Yellow,
        Verdict::Stale | Verdict::Fail | Verdict::HarnessError => AnsiColor::Red,
    };
    color.on_default()
}

impl<W: Write> Human<W> {
    /// Writes to `out`; with `verbose` each scenario has a line.
    pub fn new(out: W, verbose: bool) -> Self {
        Self {
            out,
            verbose,
            began: Instant::now(),
            subject: String::new(),
            bad: Vec::new(),
            known: Vec::new(),
            flaky: Vec::new(),
            rounds: None,
            seed: None,
            narrowed: Vec::new(),
            unmatched: Vec::new(),
            mutants: Vec::new(),
        }
    }

    fn line(&mut self, finished: &Finished) -> io::Result<()> {
        let style = style(finished.verdict);
        let word = word(finished);
        writeln!(
            self.out,
            "{style}{word:<14}{style:#} {}/{}  {DIM}{} ms{DIM:#}",
            finished.area, finished.scenario, finished.duration_ms
        )?;
        if finished.verdict == Verdict::Differs || finished.verdict == Verdict::NotApplicable {
            let checks = finished
                .checks
                .iter()
                .filter(|check| check.verdict == finished.verdict);
            if let Some(check) = checks.into_iter().next() {
                writeln!(
                    self.out,
                    "{:<14} {DIM}{}: {}{DIM:#}",
                    "", check.expected, check.seen
                )?;
            }
        }
        Ok(())
    }

    /// Everything about a scenario that is not as expected.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn in_full(&mut self, finished: &Finished) -> io::Result<()> {
        let style = style(finished.verdict);
        let out = &mut self.out;
        writeln!(out)?;
        writeln!(
            out,
            "{style}{}{style:#}  {BOLD}{}/{}{BOLD:#}",
            finished.verdict.word(),
            finished.area,
            finished.scenario
        )?;
        writeln!(out, "  {}", finished.why)?;
        let wrong = |check: &&CheckVerdict| check.verdict > Verdict::KnownFailure;
        for check in finished.checks.iter().filter(wrong) {
            writeln!(out)?;
            writeln!(
                out,
                "  {BOLD}{}{BOLD:#}  {}{}",
                check.id,
                check.verdict.word(),
                check
                    .kind
                    .map_or(String::new(), |kind| format!(" ({})", kind.word()))
            )?;
            for id in &check.proves {
                let rule = finished.rules.get(id).map_or("", String::as_str);
                writeln!(out, "    requirement  {id}: {rule}")?;
            }
            writeln!(out, "    expected     {}", check.expected)?;
            writeln!(out, "    saw          {}", check.seen)?;
        }
        if !finished.witnesses.is_empty() {
            writeln!(out)?;
        }
        for (witness, says) in &finished.witnesses {
            let mut name = witness.as_str();
            for line in says {
                writeln!(out, "  {name:<9}{line}")?;
                name = "";
            }
        }
        if !finished.timeline.is_empty() {
            writeln!(out, "  timeline")?;
        }
        for line in &finished.timeline {
            writeln!(out, "  {DIM}{line}{DIM:#}")?;
        }
        writeln!(out)?;
        if let Some(bundle) = &finished.bundle {
            writeln!(out, "  bundle     {bundle}")?;
        }
        writeln!(out, "  reproduce  {}", finished.reproduce)
    }

    /// A scenario that passed only when it was run again: what each attempt before that saw.
    fn attempts(&mut self, finished: &Finished) -> io::Result<()> {
        let style = style(Verdict::Inconclusive);
        let (area, name) = (&finished.area, &finished.scenario);
        let words: Vec<&str> = finished.attempts.iter().map(|a| a.verdict.word()).collect();
        let out = &mut self.out;
        writeln!(out)?;
        writeln!(out, "{style}flaky{style:#}  {BOLD}{area}/{name}{BOLD:#}")?;
        writeln!(out, "  attempts   {}", words.join(", "))?;
        for attempt in &finished.attempts {
            for check in &attempt.checks {
                writeln!(out, "  {}: expected {}", check.id, check.expected)?;
                writeln!(out, "    saw      {}", check.seen)?;
            }
            if let Some(bundle) = &attempt.bundle {
                writeln!(out, "  bundle     {bundle}")?;
            }
        }
        writeln!(out, "  reproduce  {}", finished.reproduce)
    }

    /// What several rounds came to: the scenarios that were not always the same.
    fn tally(&mut self, rounds: &Rounds) -> io::Result<()> {
        let out = &mut self.out;
        let (all, count) = (rounds.scenarios.len(), rounds.rounds);
        let plural = if count == 1 { "" } else { "s" };
        let steady = rounds.scenarios.iter().filter(|it| it.is_steady()).count();
        writeln!(out)?;
        writeln!(
            out,
            "{count} round{plural}: {steady} of {all} scenarios had one verdict each time"
        )?;
        if let Some(seed) = self.seed {
            writeln!(out, "the order came from --seed {seed}")?;
        }
        for tally in rounds.scenarios.iter().filter(|tally| !tally.is_steady()) {
            let mut words: Vec<String> = tally
                .verdicts
                .iter()
                .map(|(verdict, times)| format!("{times} {}", verdict.word()))
                .collect();
            if tally.flaky > 0 {
                words.push(format!("{} flaky", tally.flaky));
            }
            let (area, name) = (&tally.area, &tally.scenario);
            writeln!(out, "  {area}/{name}: {}", words.join(", "))?;
        }
        Ok(())
    }

    fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        for finished in std::mem::take(&mut self.known) {
            let reason = finished
                .checks
                .iter()
                .find(|check| check.verdict == Verdict::KnownFailure);
            let reason = reason.map_or("", |check| check.seen.as_str());
            writeln!(
                self.out,
                "{DIM}known failure  {}/{}: {reason}{DIM:#}",
                finished.area, finished.scenario
            )?;
        }
        for finished in std::mem::take(&mut self.flaky) {
            self.attempts(&finished)?;
        }
        if let Some(rounds) = self.rounds.take() {
            self.tally(&rounds)?;
        }
        // The worst last, where the eye is when the run has ended.
        self.bad.sort_by_key(|finished| finished.verdict);
        for finished in std::mem::take(&mut self.bad) {
            self.in_full(&finished)?;
        }
        let unmatched = std::mem::take(&mut self.unmatched);
        for (entry, problem) in &unmatched {
            let style = style(Verdict::Fail);
            writeln!(
                self.out,
                "\n{style}unmatched{style:#}  the baseline's entry {entry}: {problem}"
            )?;
        }
        let secs = self.began.elapsed().as_secs_f64();
        let counts = [
            (Verdict::Pass, summary.pass),
            (Verdict::Differs, summary.differs),
            (Verdict::NotApplicable, summary.not_applicable),
            (Verdict::KnownFailure, summary.known_failure),
            (Verdict::Stale, summary.stale),
            (Verdict::Inconclusive, summary.inconclusive),
            (Verdict::NoEvidence, summary.no_evidence),
            (Verdict::Fail, summary.fail),
            (Verdict::HarnessError, summary.harness_error),
        ];
        let told: Vec<String> = counts
            .iter()
            .filter(|(verdict, count)| {
                *count > 0 || *verdict == Verdict::Pass || *verdict == Verdict::Fail
            })
            .map(|(verdict, count)| {
                let style = style(*verdict);
                format!("{style}{count} {}{style:#}", verdict.word())
            })
            .collect();
        let mut told = told.join(", ");
        if summary.flaky > 0 {
            let style = style(Verdict::Inconclusive);
            told += &format!(", {style}{} flaky{style:#}", summary.flaky);
        }
        let plural = if summary.selected == 1 { "" } else { "s" };
        writeln!(self.out)?;
        if !self.narrowed.is_empty() {
            let without = self.narrowed.iter();
            let without: Vec<String> = without
                .map(|it| format!("`{}` ({})", it.capability, it.reason))
                .collect();
            writeln!(self.out, "narrowed: without {}", without.join(", "))?;
        }
        writeln!(
            self.out,
            "{} scenario{plural} on {} in {secs:.1} s",
            summary.selected, self.subject
        )?;
        writeln!(self.out, "{told}")?;
        writeln!(self.out, "{}", summary.conclusion(unmatched.len()))?;
        let not_run = summary.not_run();
        if not_run > 0 {
            writeln!(self.out, "{not_run} of {} did not run", summary.selected)?;
        }
        self.out.flush()
    }

    fn matrix(&mut self, summary: &MutantSummary) -> io::Result<()> {
        let width = self
            .mutants
            .iter()
            .map(|mutant| mutant.mutant.len())
            .max()
            .unwrap_or(0);
        writeln!(self.out)?;
        for mutant in std::mem::take(&mut self.mutants) {
            let (style, word) = if mutant.killed {
                (style(Verdict::Pass), "killed  ")
            } else {
                (style(Verdict::Fail), "survived")
            };
            let by = mutant.killers.first().map_or_else(
                || {
                    format!(
                        "nobody of {} scenarios; breaks {}",
                        mutant.scenarios,
                        mutant.breaks.join(", ")
                    )
                },
                |killer| format!("{} / {}", killer.scenario, killer.check),
            );
            let more = mutant.killers.len().saturating_sub(1);
            let more = if more == 0 {
                String::new()
            } else {
                format!("  {DIM}and {more} more{DIM:#}")
            };
            writeln!(
                self.out,
                "{style}{word}{style:#}  {:<width$}  {by}{more}",
                mutant.mutant
            )?;
        }
        writeln!(self.out)?;
        for name in &summary.sound_accused {
            let style = style(Verdict::Fail);
            writeln!(
                self.out,
                "{style}accused{style:#}   the sound reference fails {name}"
            )?;
        }
        writeln!(
            self.out,
            "{} mutants, {} killed, {} survived; the sound reference is accused by {} scenarios",
            summary.mutants,
            summary.killed,
            summary.survived.len(),
            summary.sound_accused.len()
        )?;
        self.out.flush()
    }
}

/// The word for people: a flaky pass is not just a pass.
fn word(finished: &Finished) -> &'static str {
    if finished.flaky {
        "flaky"
    } else {
        finished.verdict.word()
    }
}

impl<W: Write> Reporter for Human<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Run {
                subject,
                seed,
                narrowed,
                ..
            } => {
                self.subject.clone_from(subject);
                self.seed = *seed;
                self.narrowed.clone_from(narrowed);
            }
            Event::Started { .. } => {}
            Event::Finished(finished) => {
                if self.verbose {
                    self.line(finished)?;
                }
                match finished.verdict {
                    _ if finished.flaky => self.flaky.push((**finished).clone()),
                    Verdict::Pass | Verdict::Differs | Verdict::NotApplicable => {}
                    Verdict::KnownFailure => self.known.push((**finished).clone()),
                    _ => self.bad.push((**finished).clone()),
                }
            }
            Event::Unmatched { entry, problem } => {
                self.unmatched.push((entry.clone(), problem.clone()))
            }
            Event::Rounds(rounds) => self.rounds = Some((**rounds).clone()),
            Event::Mutant(mutant) => self.mutants.push((**mutant).clone()),
            Event::Summary(Totals::Run(summary)) => self.summary(summary)?,
            Event::Summary(Totals::Mutants(summary)) => self.matrix(summary)?,
        }
        Ok(())
    }
}
