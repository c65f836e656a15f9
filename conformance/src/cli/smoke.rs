//! `smoke`: is the adapter right, apart from the delegator?

use std::fmt::Write as _;
use std::time::Instant;

use crate::adapter::Adapter;
use crate::cli::args::Style;
use crate::cli::author_args::Smoke;
use crate::cli::marks::{Mark, line};
use crate::cli::{Bundled, Exit, Failure, session, suite};
use crate::evidence::{Evidence, What};
use crate::runner::{self, RunContext};
use crate::smoke::{self, Finding, Outcome};

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Smoke) -> Result<Exit, Failure> {
    let adapter = suite::adapter(&args.subject.adapter)?;
    let context = suite::context_of(bundled, &args.subject)?;
    suite::watch_interrupts(&context.interrupt);
    let began = Instant::now();
    let (_, findings) = probe(&adapter, &context, args.patience.0)?;
    let text = match args.format {
        Style::Json => {
            let lines = findings.iter().map(serde_json::to_string);
            let lines: Result<Vec<String>, _> = lines.collect();
            lines.map_err(Failure::harness)?.join("\n") + "\n"
        }
        Style::Human => {
            let mut text = told(&findings);
            let _ = writeln!(
                text,
                "\n{} in {:.1} s: {}",
                adapter.adapter,
                began.elapsed().as_secs_f64(),
                verdict(&findings)
            );
            text
        }
    };
    session::print(text.as_bytes())?;
    Ok(exit(&findings))
}

/// Makes the calls, and looks.
///
/// # Errors
/// When the command cannot be started, or the suite itself could not do something.
pub fn probe(
    adapter: &Adapter,
    context: &RunContext,
    patience: std::time::Duration,
) -> Result<(Evidence, Vec<Finding>), Failure> {
    runner::check_command(adapter, context).map_err(|error| {
        Failure::usage(format!(
            "{error}; it is the `command` of the adapter `{}`",
            adapter.adapter
        ))
    })?;
    let evidence = smoke::run(adapter, context, patience).map_err(Failure::harness)?;
    if context.interrupt.raised() {
        return Err(Failure {
            message: runner::INTERRUPTED.to_owned(),
            exit: Exit::Incomplete,
        });
    }
    let started = |what: &What| matches!(what, What::SubjectStarted { .. });
    let harness = evidence.events.iter().find_map(|event| match &event.what {
        What::HarnessError { message } => Some(message.clone()),
        _ => None,
    });
    // What the harness could not do after the start shows in what was not seen.
    if let Some(message) = harness
        && !evidence.events.iter().any(|event| started(&event.what))
    {
        return Err(Failure::harness(message));
    }
    let findings = smoke::look(&evidence);
    Ok((evidence, findings))
}

/// One line a finding, or more where it has several faults.
pub fn told(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        match &finding.outcome {
            Outcome::Right(says) => line(&mut text, Mark::Right, finding.probe, says, None),
            Outcome::Open(why) => line(&mut text, Mark::Open, finding.probe, why, None),
            Outcome::Wrong(faults) => {
                for fault in faults {
                    let help = fault.help.as_deref();
                    line(&mut text, Mark::Wrong, finding.probe, &fault.message, help);
                }
            }
        }
    }
    text
}

fn faults(findings: &[Finding]) -> usize {
    let of = |finding: &Finding| match &finding.outcome {
        Outcome::Wrong(faults) => faults.len(),
        _ => 0,
    };
    findings.iter().map(of).sum()
}

/// In words.
pub fn verdict(findings: &[Finding]) -> String {
    match faults(findings) {
        0 => "the adapter is right".to_owned(),
        1 => "1 fault".to_owned(),
        n => format!("{n} faults"),
    }
}

/// The exit code.
pub fn exit(findings: &[Finding]) -> Exit {
    if faults(findings) == 0 {
        Exit::AsExpected
    } else {
        Exit::Failures
    }
}
