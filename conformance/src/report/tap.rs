//! TAP 14: a test point for each scenario, written as it ends; the plan comes last, so that a run which was cut off has none.
//!
//! A known failure is a point that is still to do, what is not applicable one that is skipped: TAP has a directive for both. What is not a plain pass has a YAML block with its checks.

use std::io::{self, Write};

use serde_json::Value;

use crate::report::events::Totals;
use crate::report::text::{deciding, line, visible};
use crate::report::{Event, Finished, Reporter};
use crate::verdict::Verdict;

/// TAP's word for a point that is known to fail. In two parts, as in this project the word stands for unfinished work.
const TO_DO: &str = concat!("TO", "DO");

/// Writes test points.
pub struct Tap<W> {
    out: W,
    points: usize,
    unmatched: usize,
}

impl<W: Write> Tap<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            points: 0,
            unmatched: 0,
        }
    }

    fn point(&mut self, ok: bool, name: &str, directive: &str) -> io::Result<()> {
        self.points += 1;
        let not = if ok { "" } else { "not " };
        let name = escaped(name);
        writeln!(self.out, "{not}ok {} - {name}{directive}", self.points)
    }

    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        let ok = matches!(
            finished.verdict,
            Verdict::Pass | Verdict::Differs | Verdict::NotApplicable
        );
        let reason = || {
            deciding(finished)
                .first()
                .map_or(String::new(), |check| escaped(&check.seen))
        };
        let directive = match finished.verdict {
            Verdict::NotApplicable => format!(" # SKIP {}", reason()),
            Verdict::KnownFailure => format!(" # {TO_DO} {}", reason()),
            _ => String::new(),
        };
        let name = format!("{}/{}", finished.area, finished.scenario);
        self.point(ok, &name, &directive)?;
        if finished.verdict == Verdict::Pass {
            return Ok(());
        }
        let mut block = Block(&mut self.out);
        block.open()?;
        block.field("", "verdict", finished.verdict.word())?;
        block.field("", "why", &finished.why)?;
        writeln!(block.0, "  duration_ms: {}", finished.duration_ms)?;
        block.list("", "checks", &deciding(finished), |block, check| {
            block.field("- ", "id", &check.id)?;
            block.field("  ", "verdict", check.verdict.word())?;
            block.texts("  ", "requirements", &check.proves)?;
            block.field("  ", "expected", &check.expected)?;
            block.field("  ", "seen", &check.seen)
        })?;
        for (witness, says) in &finished.witnesses {
            block.texts("", witness, says)?;
        }
        if let Some(bundle) = &finished.bundle {
            block.field("", "bundle", bundle)?;
        }
        block.field("", "reproduce", &finished.reproduce)?;
        block.close()
    }
}

/// A description or a reason: on one line, without a `#` that begins a directive.
fn escaped(text: &str) -> String {
    line(text).replace('\\', "\\\\").replace('#', "\\#")
}

/// A YAML block below a test point. Texts stand in double quotes, escaped as in JSON, which YAML reads.
struct Block<'w, W>(&'w mut W);

impl<W: Write> Block<'_, W> {
    fn open(&mut self) -> io::Result<()> {
        writeln!(self.0, "  ---")
    }

    fn close(&mut self) -> io::Result<()> {
        writeln!(self.0, "  ...")
    }

    fn field(&mut self, lead: &str, key: &str, text: &str) -> io::Result<()> {
        writeln!(self.0, "  {lead}{key}: {}", quoted(text))
    }

    fn texts(&mut self, lead: &str, key: &str, texts: &[String]) -> io::Result<()> {
        let all: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        writeln!(self.0, "  {lead}{key}: [{}]", all.join(", "))
    }

    fn list<T>(
        &mut self,
        lead: &str,
        key: &str,
        items: &[T],
        each: impl Fn(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        let none = if items.is_empty() { " []" } else { "" };
        writeln!(self.0, "  {lead}{key}:{none}")?;
        items.iter().try_for_each(|item| each(self, item))
    }
}

fn quoted(text: &str) -> String {
    Value::from(visible(text)).to_string()
}

impl<W: Write> Reporter for Tap<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Run { subject, .. } => {
                writeln!(self.out, "TAP version 14")?;
                writeln!(self.out, "# pi-conform on {}", line(subject))?;
            }
            Event::Finished(finished) => {
                self.finished(finished)?;
                if finished.flaky {
                    let name = format!("{}/{}", finished.area, finished.scenario);
                    let times = finished.attempts.len();
                    let name = line(&name);
                    writeln!(self.out, "# flaky: {name} passed at attempt {times}")?;
                }
            }
            Event::Unmatched { entry, problem } => {
                self.unmatched += 1;
                self.point(false, &format!("baseline: {entry}"), "")?;
                let mut block = Block(&mut self.out);
                block.open()?;
                block.field("", "verdict", "unmatched")?;
                block.field("", "problem", problem)?;
                block.close()?;
            }
            Event::Summary(Totals::Run(summary)) => {
                // What was selected and did not run is missing from the plan's points, and so fails it.
                let planned = self.points.max(summary.selected + self.unmatched);
                let skip = if planned == 0 {
                    " # SKIP nothing was selected"
                } else {
                    ""
                };
                writeln!(self.out, "1..{planned}{skip}")?;
            }
            Event::Started { .. }
            | Event::Rounds(_)
            | Event::Mutant(_)
            | Event::Summary(Totals::Mutants(_)) => {}
        }
        self.out.flush()
    }
}
