//! What all scenarios of one run share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What all scenarios of one run share.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The program that becomes warden, fake-pi and the bundled subjects: `pi-conform` itself.
    pub executable: PathBuf,
    /// File name under which `{{ bin.delegate }}` of an adapter is linked: `delegate`, or `mutant-NAME`.
    pub bundled: String,
    /// Folder below which bundles are written, one folder each. `None`: evidence stays in memory.
    pub bundles: Option<PathBuf>,
    /// Keep the scenarios' folders (they are named in the bundles).
    pub keep_folders: bool,
    /// Folder below which npm packages are looked for (see [`crate::runner::parts`]).
    pub packages: PathBuf,
    /// The checkout that an adapter may ask for.
    pub checkout: Option<PathBuf>,
    /// Command line that runs one scenario again; its name is put in place of `{name}`.
    pub reproduce: String,
    /// Set when the run is to end early.
    pub interrupt: Interrupt,
    /// Set when no further scenario is to begin; those that run go on to their end.
    pub enough: Interrupt,
}

impl RunContext {
    /// A run of the bundled reference, that keeps nothing on disk.
    pub fn new(executable: impl Into<PathBuf>) -> Self {
        Self {
            executable: executable.into(),
            bundled: "delegate".into(),
            bundles: None,
            keep_folders: false,
            packages: super::parts::packages_folder(None),
            checkout: None,
            reproduce: "pi-conform run '{name}'".into(),
            interrupt: Interrupt::default(),
            enough: Interrupt::default(),
        }
    }
}

/// Tells all scenarios of a run to end now.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ends the run: waits give up, subjects are ended, folders are removed.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was raised.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
