//! The scenarios as tests of Rust's own harness, so that `cargo nextest` lists, filters, partitions and retries them.
//!
//! A test target of its own (`harness = false`) calls [`main`]; `pi-conform harness` does the same from the one executable.
//! Each scenario is a test `AREA/NAME`. One that does not apply to the adapter is *ignored*, and so are those that a test target
//! leaves out by default: `cargo test` runs one of each area, and everything with `PI_CONFORM_SUITE=all`. Whoever asks for ignored
//! tests (`--include-ignored`) gets those too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, PoisonError, RwLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::adapter::Adapter;
use crate::bundle;
use crate::catalogue::Catalogue;
use crate::check::{self, inapplicable};
use crate::cli::tell;
use crate::runner::{self, RunContext};
use crate::scenario::Planned;
use crate::verdict::Verdict;

/// The environment variable that names the adapter of a test target.
pub const ADAPTER: &str = "PI_CONFORM_ADAPTER";

/// The environment variable that says how much a test target runs: `all`, or by default one scenario of each area.
pub const SUITE: &str = "PI_CONFORM_SUITE";

/// What the tests are made of.
#[derive(Debug)]
pub struct Suite {
    /// The scenarios for the adapter.
    pub planned: Vec<Planned>,
    /// Whom they run on.
    pub adapter: Adapter,
    /// How they run.
    pub context: RunContext,
    /// Run everything that applies, not one scenario of each area.
    pub all: bool,
}

/// A test target's `main`: the scenarios that the library carries, on the adapter in `PI_CONFORM_ADAPTER` (default: the bundled
/// reference). `executable` is `pi-conform`, which becomes everything that a scenario starts.
///
/// # Panics
/// Never; what is wrong is told, and the exit code is that of `pi-conform`.
pub fn main(executable: impl Into<PathBuf>) -> ExitCode {
    let arguments = Arguments::from_args();
    let adapter = std::env::var(ADAPTER).unwrap_or_else(|_| "reference-delegator".to_owned());
    let all = std::env::var(SUITE).is_ok_and(|value| value == "all");
    tell::suite(&adapter, &[], executable.into(), all).map_or_else(tell::failure, |suite| {
        // As cargo's own tests end when one fails.
        const FAILED: u8 = 101;
        if run(suite, arguments) {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        }
    })
}

/// Runs the tests that the arguments choose, or lists them; whether none failed.
pub fn run(suite: Suite, mut arguments: Arguments) -> bool {
    // A scenario mostly waits.
    let threads = arguments
        .test_threads
        .get_or_insert_with(runner::default_jobs);
    *threads = (*threads).max(1);
    let representative = representative(&suite);
    let left_out = suite.planned.len() - representative.len();
    if !suite.all && !arguments.list && left_out > 0 && !chooses(&arguments) {
        tell::note(&format!(
            "{left_out} of {} scenarios are left out; {SUITE}=all or --include-ignored runs them",
            suite.planned.len()
        ));
    }
    let shared = Arc::new(Shared {
        adapter: suite.adapter,
        context: suite.context,
        alone: RwLock::new(()),
    });
    let trials = suite.planned.into_iter().map(|planned| {
        let name = format!("{}/{}", planned.area, planned.name);
        let ignored = inapplicable(&planned.scenario, &shared.adapter).is_some()
            || !suite.all && !representative.contains(&planned.name);
        let shared = Arc::clone(&shared);
        Trial::ignorable_test(name, move || shared.run(&planned)).with_ignored_flag(ignored)
    });
    !libtest_mimic::run(&arguments, trials.collect()).has_failed()
}

/// Whether the arguments say themselves what runs.
fn chooses(arguments: &Arguments) -> bool {
    arguments.ignored || arguments.include_ignored || arguments.filter.is_some()
}

/// The first scenario of each area that applies and needs no machine of its own.
fn representative(suite: &Suite) -> BTreeSet<String> {
    let mut areas = BTreeSet::new();
    let fits = |planned: &&Planned| {
        !planned.scenario.alone && inapplicable(&planned.scenario, &suite.adapter).is_none()
    };
    let first = suite
        .planned
        .iter()
        .filter(fits)
        .filter(|planned| areas.insert(planned.area.as_str()));
    first.map(|planned| planned.name.clone()).collect()
}

struct Shared {
    adapter: Adapter,
    context: RunContext,
    /// Written by a scenario that must run by itself, read by all others.
    alone: RwLock<()>,
}

impl Shared {
    fn run(&self, planned: &Planned) -> Result<Completion, Failed> {
        let (_mine, _shared) = if planned.scenario.alone {
            let mine = self.alone.write().unwrap_or_else(PoisonError::into_inner);
            (Some(mine), None)
        } else {
            let shared = self.alone.read().unwrap_or_else(PoisonError::into_inner);
            (None, Some(shared))
        };
        let folder = tempfile::Builder::new().prefix("pi-conform-").tempdir()?;
        let mut context = self.context.clone();
        context.bundles = Some(folder.path().to_owned());
        let mut evidence = runner::run(planned, &self.adapter, &context);
        let mut verdict = check::judge(&evidence);
        if verdict.verdict == Verdict::Inconclusive {
            // The machine stalled while time mattered: once more.
            evidence = runner::run(planned, &self.adapter, &context);
            verdict = check::judge(&evidence);
        }
        match verdict.verdict {
            Verdict::Pass | Verdict::Differs => Ok(Completion::Completed),
            Verdict::NotApplicable => {
                let why = verdict
                    .checks
                    .first()
                    .map_or("", |check| check.seen.as_str());
                Ok(Completion::ignored_with(why))
            }
            _ => {
                let kept: &Path = &folder.keep().join(bundle::folder_name(&planned.name));
                let catalogue = Catalogue::embedded()?;
                Err(tell::in_full(&catalogue, &evidence, &verdict, kept).into())
            }
        }
    }
}
