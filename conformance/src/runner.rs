//! From a planned scenario to its evidence.

mod context;

pub use context::{Interrupt, RunContext};

use crate::adapter::Adapter;
use crate::evidence::{Evidence, Header};
use crate::scenario::Planned;

/// Runs one scenario: sandbox, warden, subject, steps, shutdown; gives what was seen. Never fails and never hangs: what
/// the harness itself could not do is an event of the evidence ([`crate::evidence::What::HarnessError`]).
///
/// With [`RunContext::bundles`] the evidence also lies there, in a folder that [`crate::bundle::folder_name`] names.
pub fn run(planned: &Planned, adapter: &Adapter, context: &RunContext) -> Evidence {
    let _ = context;
    Evidence {
        header: Header {
            format: crate::evidence::FORMAT,
            name: planned.name.clone(),
            area: planned.area.clone(),
            scenario: planned.scenario.clone(),
            adapter: adapter.clone(),
            axes: planned.axes.clone(),
            started: String::new(),
            folders: indexmap::IndexMap::new(),
            reproduce: String::new(),
        },
        events: Vec::new(),
        journals: Vec::new(),
        stderr: indexmap::IndexMap::new(),
    }
}

/// What a run tells while it goes on.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A scenario begins.
    Started(&'a Planned),
    /// A scenario has ended; this is what was seen.
    Finished(&'a Planned, Box<Evidence>),
}

/// Whether the bundle of a finished scenario stays on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It stays.
    Bundle,
    /// It is removed.
    Nothing,
}

/// Runs scenarios, at most `jobs` at a time (those with `alone: true` by themselves, at the end).
///
/// `tell` is called from one thread at a time, in one order: every `Started` before its `Finished`. Its answer to `Finished` says
/// whether that bundle is kept. Scenarios that were not begun when the run was interrupted are not told about at all.
pub fn run_all(
    planned: &[Planned],
    adapter: &Adapter,
    context: &RunContext,
    jobs: usize,
    tell: &mut dyn FnMut(Progress<'_>) -> Keep,
) {
    let _ = jobs;
    for one in planned {
        tell(Progress::Started(one));
        let evidence = run(one, adapter, context);
        tell(Progress::Finished(one, Box::new(evidence)));
    }
}

/// How many scenarios run at once when nobody says: most of their time is waiting.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| (cores.get() * 4).min(16))
}
