//! From a planned scenario to its evidence.

pub mod attach;
mod busy;
mod canary;
mod command;
mod compose;
mod context;
mod host;
mod journals;
mod leftovers;
mod lines;
mod mcp;
pub mod parts;
mod pi;
mod recorder;
mod stage;
mod steps;
mod story;
mod subject;
mod task;
mod wire;

use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;

pub use command::each_call;
pub use context::{Interrupt, RunContext};
pub use stage::{EACH_CALL, StageError};
pub use story::{FIRST, INTERRUPTED};

use crate::adapter::{Adapter, Scope, Transport};
use crate::evidence::{Event, Evidence, Header, What};
use crate::sandbox::Root;
use crate::scenario::Planned;
use canary::Canary;

/// Runs one scenario: sandbox, warden, subject, steps, shutdown; gives what was seen. Never fails and never hangs: what
/// the harness itself could not do is an event of the evidence ([`crate::evidence::What::HarnessError`]).
///
/// With [`RunContext::bundles`] the evidence also lies there, in a folder that [`crate::bundle::folder_name`] names.
pub fn run(planned: &Planned, adapter: &Adapter, context: &RunContext) -> Evidence {
    let canary = Canary::start();
    match Root::new(&context.executable, context.keep_folders) {
        Ok(root) => story::run(planned, adapter, context, &root, &canary),
        Err(error) => nowhere(planned, adapter, context, &error),
    }
}

/// Evidence of a scenario that could not even be given a folder.
fn nowhere(
    planned: &Planned,
    adapter: &Adapter,
    context: &RunContext,
    error: &std::io::Error,
) -> Evidence {
    let message = format!(
        "cannot make a folder in `{}`: {error}; set TMPDIR to a folder that can be written",
        std::env::temp_dir().display()
    );
    let event = |what| Event {
        t_ns: crate::clock::now_ns(),
        what,
    };
    Evidence {
        header: Header {
            format: crate::evidence::FORMAT,
            name: planned.name.clone(),
            area: planned.area.clone(),
            scenario: planned.scenario.clone(),
            adapter: adapter.clone(),
            axes: planned.axes.clone(),
            started: jiff::Timestamp::now().to_string(),
            folders: IndexMap::new(),
            reproduce: context.reproduce.replace("{name}", &planned.name),
        },
        events: vec![event(What::HarnessError { message }), event(What::End)],
        journals: Vec::new(),
        stderr: IndexMap::new(),
    }
}

/// Whether the subject's command can be started at all. Asked once before a run: that it cannot is a fault of the
/// adapter's user, not of the subject.
///
/// # Errors
/// When there is no such program, or it is not executable; or a template of the command is wrong.
pub fn check_command(adapter: &Adapter, context: &RunContext) -> Result<(), StageError> {
    let parts = parts::find(adapter, &context.packages, context.checkout.as_deref())?;
    if adapter.transport == Transport::PiExtension {
        return Ok(());
    }
    let folders = IndexMap::from([("self".to_owned(), context.executable.display().to_string())]);
    let programs = IndexMap::from([(
        "delegate".to_owned(),
        context.executable.display().to_string(),
    )]);
    let mut scope = Scope::new(adapter, &IndexMap::new(), &folders, &programs);
    for (name, part) in parts {
        scope = scope.with(&name, part);
    }
    let command = adapter.command.first().map_or("", String::as_str);
    let rendered = scope.render("command[0]", command)?;
    stage::program(&rendered)
        .map(|_| ())
        .map_err(StageError::Command)
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
    let canary = Canary::start();
    let root = Root::new(&context.executable, context.keep_folders);
    let one = |planned: &Planned| match &root {
        Ok(root) => story::run(planned, adapter, context, root, &canary),
        Err(error) => nowhere(planned, adapter, context, error),
    };
    let (alone, together): (Vec<_>, Vec<_>) =
        planned.iter().partition(|planned| planned.scenario.alone);
    for (group, jobs) in [(together, jobs.max(1)), (alone, 1)] {
        let queue = Mutex::new(group.into_iter());
        let (say, hear) = channel();
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                let (queue, one, say) = (&queue, &one, say.clone());
                scope.spawn(move || {
                    while !context.interrupt.raised() && !context.enough.raised() {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some(planned) = next else {
                            return;
                        };
                        // The other end outlives these threads.
                        let _ = say.send((planned, None));
                        let _ = say.send((planned, Some(Box::new(one(planned)))));
                    }
                });
            }
            drop(say);
            for (planned, evidence) in hear {
                let Some(evidence) = evidence else {
                    tell(Progress::Started(planned));
                    continue;
                };
                if tell(Progress::Finished(planned, evidence)) == Keep::Nothing {
                    drop_bundle(planned, context);
                }
            }
        });
    }
}

/// How many scenarios run at once when nobody says: most of their time is waiting.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| (cores.get() * 4).min(16))
}

fn drop_bundle(planned: &Planned, context: &RunContext) {
    if let Some(bundles) = &context.bundles {
        // What cannot be removed stays: it is evidence, not a fault.
        let _ = std::fs::remove_dir_all(bundles.join(crate::bundle::folder_name(&planned.name)));
    }
}
