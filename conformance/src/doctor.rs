//! What a run needs of the machine: what is there, what is missing, and the command that brings it.
//!
//! Checks are a table; each says what it is for, looks, and knows its cure. Whether something missing matters depends on the
//! adapter: a real Pi is of no use to an MCP server.

mod checks;

use std::path::PathBuf;

use serde::Serialize;

use crate::adapter::Adapter;
use crate::runner::RunContext;

pub use checks::CHECKS;

/// One check.
pub struct Check {
    /// Its name, which stays.
    pub name: &'static str,
    /// What needs it.
    pub purpose: &'static str,
    /// Whether this adapter does.
    pub needed: fn(&Adapter) -> bool,
    /// Looks. What was found, or what is wrong and the command that mends it.
    pub look: fn(&Patient<'_>) -> Result<String, Missing>,
}

/// What is looked at.
pub struct Patient<'a> {
    /// The adapter.
    pub adapter: &'a Adapter,
    /// The context of a run.
    pub context: &'a RunContext,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What.
    pub what: String,
    /// The exact command, or the deed where no command does it.
    pub cure: String,
}

impl Missing {
    fn new(what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            cure: cure.into(),
        }
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The check.
    pub name: &'static str,
    /// What needs it.
    pub purpose: &'static str,
    /// Whether the adapter does.
    pub needed: bool,
    /// It is there.
    pub there: bool,
    /// What was found, or is wrong.
    pub says: String,
    /// What brings it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

/// Looks at everything.
pub fn look(adapter: &Adapter, context: &RunContext) -> Vec<Found> {
    let patient = Patient { adapter, context };
    let found = |check: &Check| {
        let (there, says, cure) = match (check.look)(&patient) {
            Ok(says) => (true, says, None),
            Err(missing) => (false, missing.what, Some(missing.cure)),
        };
        Found {
            name: check.name,
            purpose: check.purpose,
            needed: (check.needed)(adapter),
            there,
            says,
            cure,
        }
    };
    CHECKS.iter().map(found).collect()
}

/// A folder that goes again when it is dropped, where scenarios would have theirs.
fn folder() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("pi-conform-doctor-")
        .tempdir()
}

/// Where the temporary folder is.
fn temporary() -> PathBuf {
    std::env::temp_dir()
}
