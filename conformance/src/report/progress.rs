//! Progress while a run lasts: a bar on a terminal, plain lines in a pipe. On standard error, so that reports stay clean.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::{Event, Finished, Reporter, Summary};
use crate::verdict::Verdict;

/// A bar with what runs now and what went wrong so far.
pub struct Progress {
    bar: ProgressBar,
    running: Vec<String>,
    summary: Summary,
}

impl Progress {
    /// A bar, if standard error is a terminal.
    pub fn on_terminal() -> Option<Self> {
        io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(200));
            Self {
                bar,
                running: Vec::new(),
                summary: Summary::default(),
            }
        })
    }

    fn message(&self) -> String {
        let s = &self.summary;
        let bad = s.fail + s.stale + s.no_evidence + s.inconclusive + s.harness_error;
        let bad = if bad == 0 {
            String::new()
        } else {
            format!("{bad} not as expected  ")
        };
        format!("{bad}{}", self.running.first().map_or("", String::as_str))
    }
}

impl Reporter for Progress {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Run { selected, .. } => {
                self.bar.set_length(*selected as u64);
                let style =
                    ProgressStyle::with_template("{elapsed:>4} [{bar:30}] {pos}/{len}  {msg}");
                self.bar.set_style(style.map_err(io::Error::other)?);
            }
            Event::Started { scenario, .. } => self.running.push(scenario.clone()),
            Event::Finished(finished) => {
                self.running.retain(|name| *name != finished.scenario);
                self.summary.count(finished.verdict);
                self.bar.inc(1);
                if finished.verdict > Verdict::KnownFailure || finished.flaky {
                    self.bar.println(line(finished));
                }
            }
            Event::Mutant(_) => self.bar.inc(0),
            Event::Unmatched { .. } | Event::Rounds(_) => {}
            Event::Summary(_) => self.bar.finish_and_clear(),
        }
        self.bar.set_message(self.message());
        Ok(())
    }
}

/// After so many finished scenarios there is a line, so that a log shows that the run goes on.
const EVERY: usize = 25;

/// Lines for a log: one each [`EVERY`] finished scenarios, and one for each that is not as expected, as it comes.
pub struct Plain<W> {
    out: W,
    selected: usize,
    finished: usize,
    wrong: usize,
}

impl<W: io::Write> Plain<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            selected: 0,
            finished: 0,
            wrong: 0,
        }
    }
}

impl<W: io::Write> Reporter for Plain<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Run { selected, .. } => self.selected = *selected,
            Event::Finished(finished) => {
                self.finished += 1;
                if finished.verdict > Verdict::KnownFailure || finished.flaky {
                    self.wrong += 1;
                    writeln!(self.out, "{}", line(finished))?;
                }
                if self.finished.is_multiple_of(EVERY) && self.finished < self.selected {
                    let (finished, selected, wrong) = (self.finished, self.selected, self.wrong);
                    writeln!(
                        self.out,
                        "{finished} of {selected} scenarios, {wrong} not as expected"
                    )?;
                }
            }
            Event::Mutant(mutant) => {
                let word = if mutant.killed { "killed" } else { "survived" };
                writeln!(self.out, "{word}  {}", mutant.mutant)?;
            }
            Event::Started { .. }
            | Event::Unmatched { .. }
            | Event::Rounds(_)
            | Event::Summary(_) => {}
        }
        Ok(())
    }
}

/// What is said at once of a scenario that is not as expected.
fn line(finished: &Finished) -> String {
    format!(
        "{}  {}/{}",
        if finished.flaky {
            "flaky"
        } else {
            finished.verdict.word()
        },
        finished.area,
        finished.scenario
    )
}
