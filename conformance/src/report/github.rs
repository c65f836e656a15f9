//! GitHub workflow commands: what is not as it must be shows as annotations of the job.
//!
//! A violation, a stale or unmatched entry of the baseline and a failure of the harness are errors; what could not be judged is a
//! warning. GitHub shows ten of each kind a step, so they come at the end, the worst first. The last line is plain.

use std::io::{self, Write};

use crate::report::gathered::{End, Gathered};
use crate::report::text::{count, deciding, line};
use crate::report::{Event, Finished, Reporter, Summary};
use crate::verdict::Verdict;

/// Collects the run and writes it at its end.
pub struct Github<W> {
    out: W,
    run: Gathered,
}

impl<W: Write> Github<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            run: Gathered::default(),
        }
    }

    fn annotation(&mut self, kind: &str, title: &str, message: &str) -> io::Result<()> {
        let (title, message) = (property(title), data(message));
        writeln!(self.out, "::{kind} title={title}::{message}")
    }

    fn end(&mut self, summary: &Summary) -> io::Result<()> {
        let run = std::mem::take(&mut self.run);
        for finished in run.worst_first(|verdict| verdict > Verdict::KnownFailure) {
            let kind = match finished.verdict {
                Verdict::Inconclusive | Verdict::NoEvidence => "warning",
                _ => "error",
            };
            let title = format!(
                "{}: {}/{}",
                finished.verdict.word(),
                finished.area,
                finished.scenario
            );
            self.annotation(kind, &title, &message(finished))?;
        }
        for finished in run.flaky() {
            let title = format!("flaky: {}/{}", finished.area, finished.scenario);
            let words: Vec<&str> = finished.attempts.iter().map(|a| a.verdict.word()).collect();
            let said = format!(
                "attempts: {}\nreproduce: {}",
                words.join(", "),
                line(&finished.reproduce)
            );
            self.annotation("warning", &title, &said)?;
        }
        for (entry, problem) in &run.unmatched {
            let title = format!("unmatched: {entry}");
            self.annotation(
                "error",
                &title,
                &format!("the baseline's entry: {}", line(problem)),
            )?;
        }
        let bad = summary.fail + summary.stale + summary.harness_error + run.unmatched.len();
        let open = summary.open();
        writeln!(
            self.out,
            "pi-conform on {}: {}, {} pass, {bad} not as expected, {open} open",
            line(&run.subject),
            count(summary.selected, "scenario"),
            summary.pass,
        )?;
        self.out.flush()
    }
}

/// What an annotation says: each check that decided, and how to see it again.
fn message(finished: &Finished) -> String {
    let mut lines = Vec::new();
    for check in deciding(finished) {
        lines.push(format!(
            "{}: expected {}; saw {}",
            line(&check.id),
            line(&check.expected),
            line(&check.seen)
        ));
        for id in &check.proves {
            if let Some(rule) = finished.rules.get(id) {
                lines.push(format!("  {id}: {}", line(rule)));
            }
        }
    }
    lines.push(format!("reproduce: {}", line(&finished.reproduce)));
    lines.join("\n")
}

/// A message, escaped as the runner of workflows takes it back.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property's value.
fn property(text: &str) -> String {
    data(&line(text)).replace(':', "%3A").replace(',', "%2C")
}

impl<W: Write> Reporter for Github<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match self.run.take(event) {
            Some(End::Run(summary)) => self.end(summary),
            Some(End::Matrix(_)) | None => Ok(()),
        }
    }
}
