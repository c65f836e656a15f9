//! What the executable carries, loaded: scenarios, adapters, and the context of a run.

use std::path::PathBuf;

use crate::adapter::{self, Adapter};
use crate::cli::args::Subject;
use crate::cli::{Bundled, Failure};
use crate::runner::parts::packages_folder;
use crate::runner::{Interrupt, RunContext};
use crate::scenario::{self, Loaded, Planned};

/// An adapter by name or file.
///
/// # Errors
/// When there is none, or it is not right; the message shows the place and the nearest right word.
pub fn adapter(name: &str) -> Result<Adapter, Failure> {
    adapter::load(name).map_err(diagnostic)
}

/// An adapter out of the text of a file that may not be there yet.
///
/// # Errors
/// When it is not right.
pub fn adapter_text(file: &str, text: &str) -> Result<Adapter, Failure> {
    adapter::parse_at(file, text).map_err(diagnostic)
}

/// All adapters that the program carries.
///
/// # Errors
/// When one is not right.
pub fn adapters() -> Result<Vec<Adapter>, Failure> {
    adapter::bundled_names().into_iter().map(adapter).collect()
}

/// Scenarios of files and folders, or those that the program carries when there are none.
///
/// # Errors
/// When a file is not right.
pub fn load(files: &[PathBuf]) -> Result<Vec<Loaded>, Failure> {
    if files.is_empty() {
        return scenario::embedded().map_err(diagnostic);
    }
    let mut loaded = Vec::new();
    for path in files {
        loaded.extend(scenario::from_path(path).map_err(diagnostic)?);
    }
    Ok(loaded)
}

/// All scenarios for an adapter, axes expanded.
///
/// # Errors
/// When a file is not right.
pub fn plan(files: &[PathBuf], adapter: &Adapter) -> Result<Vec<Planned>, Failure> {
    let mut planned = Vec::new();
    for loaded in load(files)? {
        planned.extend(scenario::expand(&loaded, adapter).map_err(|error| diagnostic(*error))?);
    }
    Ok(planned)
}

/// The context of a run on the bundled reference.
///
/// # Errors
/// When the program does not know where it lies.
pub fn context(bundled: &Bundled) -> Result<RunContext, Failure> {
    let executable = std::env::current_exe().map_err(|error| {
        Failure::harness(format!("cannot find out where this program lies: {error}"))
    })?;
    let mut context = RunContext::new(executable);
    if let Some(sound) = bundled.subjects.iter().find(|subject| subject.sound) {
        context.bundled.clone_from(&sound.name);
    }
    Ok(context)
}

/// The context of a run on a subject that the options name.
///
/// # Errors
/// As [`context`].
pub fn context_of(bundled: &Bundled, subject: &Subject) -> Result<RunContext, Failure> {
    let mut context = context(bundled)?;
    context.packages = packages_folder(subject.packages.as_deref());
    context.checkout.clone_from(&subject.checkout);
    Ok(context)
}

/// An error with the place that it is about.
pub fn diagnostic<E: miette::Diagnostic + Send + Sync + 'static>(error: E) -> Failure {
    if error.labels().is_none() {
        // No place to show: the sentence is all.
        let help = error
            .help()
            .map_or(String::new(), |help| format!("; {help}"));
        return Failure::usage(format!("{error}{help}"));
    }
    let report = format!("{:?}", miette::Report::new(error));
    Failure::usage(report.trim().trim_start_matches(['×', 'x', ' ']))
}

/// Ends the run in order at the first SIGINT, SIGTERM or SIGHUP: subjects are ended and folders removed. A second one ends the program.
pub fn watch_interrupts(interrupt: &Interrupt) {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = interrupt.clone();
    let watch = async move {
        let (Ok(mut int), Ok(mut term), Ok(mut hup)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) else {
            return;
        };
        loop {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
                _ = hup.recv() => {}
            }
            if interrupt.raised() {
                std::process::exit(130);
            }
            interrupt.raise();
        }
    };
    std::thread::spawn(move || {
        // Without a runtime the run is ended by the signal itself, which is what happens to any program.
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
        {
            runtime.block_on(watch);
        }
    });
}
