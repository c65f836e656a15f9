//! A badge: the JSON that shields.io takes from an endpoint.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::gathered::{End, Gathered};
use crate::report::{Event, Reporter, Summary};

/// Writes one JSON object at the end.
pub struct Badge<W> {
    out: W,
    run: Gathered,
}

/// The endpoint's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    schema_version: u32,
    label: &'static str,
    message: String,
    color: &'static str,
}

impl<W: Write> Badge<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            run: Gathered::default(),
        }
    }
}

fn of_run(summary: &Summary, unmatched: usize) -> (String, &'static str) {
    let judged = summary.judged() - summary.not_applicable;
    let bad = summary.fail + summary.stale + unmatched;
    let open = summary.open();
    if summary.harness_error > 0 {
        ("harness error".to_owned(), "lightgrey")
    } else if bad > 0 {
        let fine = summary.pass + summary.differs;
        let known = known(summary);
        (format!("{fine} pass, {bad} fail{known}"), "red")
    } else if open > 0 {
        (format!("incomplete, {open} open"), "yellow")
    } else if judged == 0 {
        ("nothing judged".to_owned(), "lightgrey")
    } else {
        let color = if summary.known_failure > 0 {
            "green"
        } else {
            "brightgreen"
        };
        let fine = summary.pass + summary.differs;
        (format!("{fine} pass{}", known(summary)), color)
    }
}

fn known(summary: &Summary) -> String {
    match summary.known_failure {
        0 => String::new(),
        number => format!(", {number} known"),
    }
}

impl<W: Write> Reporter for Badge<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let (message, color) = match self.run.take(event) {
            None => return Ok(()),
            Some(End::Run(summary)) => of_run(summary, self.run.unmatched.len()),
            Some(End::Matrix(summary)) => {
                let fine = summary.survived.is_empty() && summary.sound_accused.is_empty();
                (
                    format!("{} of {} mutants killed", summary.killed, summary.mutants),
                    if fine { "brightgreen" } else { "red" },
                )
            }
        };
        let endpoint = Endpoint {
            schema_version: 1,
            label: "pi-conform",
            message,
            color,
        };
        serde_json::to_writer(&mut self.out, &endpoint)?;
        writeln!(self.out)?;
        self.out.flush()
    }
}
