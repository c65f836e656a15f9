//! What the harness says, which is no command but has the same words.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::catalogue::Catalogue;
use crate::cli::session::{self, Past};
use crate::cli::{Failure, suite as carried};
use crate::evidence::Evidence;
use crate::harness::Suite;
use crate::report::Human;
use crate::runner::{self, RunContext};
use crate::verdict::ScenarioVerdict;

/// The scenarios for an adapter, ready to run.
///
/// # Errors
/// When an adapter or a scenario is not right, or the subject cannot be started.
pub fn suite(
    adapter: &str,
    files: &[PathBuf],
    executable: PathBuf,
    all: bool,
) -> Result<Suite, Failure> {
    let adapter_name = adapter;
    let adapter = carried::adapter(adapter_name)?;
    let planned = carried::plan(files, &adapter)?;
    let mut context = RunContext::new(executable);
    if adapter_name != "reference-delegator" {
        context.reproduce += &format!(" --adapter {adapter_name}");
    }
    for file in files {
        context.reproduce += &format!(" --scenarios {}", file.display());
    }
    runner::check_command(&adapter, &context).map_err(Failure::usage)?;
    Ok(Suite {
        planned,
        adapter,
        context,
        all,
    })
}

/// Says what is wrong; gives the exit code.
pub fn failure(failure: Failure) -> ExitCode {
    anstream::eprintln!("pi-conform: {failure}");
    failure.exit.into()
}

/// Says something on the side.
pub fn note(text: &str) {
    anstream::eprintln!("pi-conform: {text}");
}

/// The report for people on one scenario.
pub fn in_full(
    catalogue: &Catalogue,
    evidence: &Evidence,
    verdict: &ScenarioVerdict,
    bundle: &Path,
) -> String {
    let past = Past {
        bundle: Some(bundle.display().to_string()),
        ..Past::default()
    };
    let finished = session::finished(catalogue, evidence, verdict, past);
    let mut page = Vec::new();
    let mut human = Human::new(&mut page, false);
    // Memory takes whatever is written.
    let _ = human.in_full(&finished);
    drop(human);
    let plain = anstream::adapter::strip_bytes(&page).into_vec();
    String::from_utf8_lossy(&plain).trim().to_owned()
}
