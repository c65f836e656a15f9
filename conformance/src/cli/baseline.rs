//! `baseline`: keeping a list of known failures true.

use std::path::Path;

use crate::baseline::update;
use crate::cli::args::{Baseline, BaselineCommand, BaselineUpdate};
use crate::cli::{Exit, Failure, suite};
use crate::report::Event;
use crate::verdict::{ScenarioVerdict, Verdict};

/// Runs the command.
pub fn main(args: &Baseline) -> Result<Exit, Failure> {
    let BaselineCommand::Update(args) = &args.command;
    let adapter = suite::adapter(&args.subject.adapter)?;
    let all = suite::plan(&args.files, &adapter)?;
    let seen = seen(args)?;
    let run = seen.iter().map(|verdict| verdict.name.as_str());
    let known: Vec<&str> = all
        .iter()
        .map(|planned| planned.name.as_str())
        .chain(run)
        .collect();
    write(&args.file, &seen, &known)?;
    Ok(Exit::AsExpected)
}

/// Brings the file up to date with what was seen, and says what changed.
///
/// # Errors
/// When it is not right or cannot be written.
pub fn write(path: &Path, seen: &[ScenarioVerdict], known: &[&str]) -> Result<(), Failure> {
    let named =
        |error: std::io::Error| Failure::usage(format!("baseline {}: {error}", path.display()));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "known-failures:\n".to_owned()
        }
        Err(error) => return Err(named(error)),
    };
    let change = update(&path.to_string_lossy(), &text, seen, known)
        .map_err(|error| suite::diagnostic(*error))?;
    if change.text != text || !path.exists() {
        std::fs::write(path, &change.text).map_err(named)?;
    }
    for entry in &change.removed {
        anstream::eprintln!("removed  {entry}");
    }
    for entry in &change.added {
        anstream::eprintln!("added    {entry}");
    }
    let (added, removed) = (change.added.len(), change.removed.len());
    anstream::eprintln!(
        "baseline {}: {added} added, {removed} removed",
        path.display()
    );
    Ok(())
}

/// The verdicts of runs, as they were before any baseline.
fn seen(args: &BaselineUpdate) -> Result<Vec<ScenarioVerdict>, Failure> {
    let mut seen = Vec::new();
    for path in &args.from {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
        for (index, line) in text.lines().enumerate() {
            let event: Event = serde_json::from_str(line).map_err(|error| {
                let number = index + 1;
                Failure::usage(format!(
                    "{name}:{number}: no event of a run: {error}; `run --format json:FILE` writes such a file"
                ))
            })?;
            let Event::Finished(finished) = event else {
                continue;
            };
            let mut checks = finished.checks;
            for check in &mut checks {
                check.verdict = match check.verdict {
                    // A failure has a kind; what is known without one was blank.
                    Verdict::KnownFailure if check.kind.is_none() => Verdict::NoEvidence,
                    Verdict::KnownFailure => Verdict::Fail,
                    Verdict::Stale => Verdict::Pass,
                    verdict => verdict,
                };
            }
            seen.push(ScenarioVerdict {
                name: finished.scenario,
                area: finished.area,
                verdict: checks
                    .iter()
                    .map(|check| check.verdict)
                    .max()
                    .unwrap_or(finished.verdict),
                checks,
            });
        }
    }
    Ok(seen)
}
