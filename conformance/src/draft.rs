//! A first adapter for a delegator: its tool and arguments suggested from what it says of itself, its observations from what
//! it answers, and all of it written as a file that a person goes on with.

mod file;
mod suggest;

use indexmap::IndexMap;
use serde_json::Value;

use crate::adapter::Observation;

pub use suggest::{Argument, Arguments, TASK, arguments, of_schema, task_arguments, tools};

/// What is known of a delegator so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The adapter's name.
    pub name: String,
    /// Its transport's word.
    pub transport: String,
    /// Program and arguments; extensions, with transport `pi-extension`.
    pub command: Vec<String>,
    /// Variables for the subject, as templates.
    pub env: IndexMap<String, String>,
    /// Which of Pi's modes its children run in.
    pub child_mode: String,
    /// The child was seen in that mode.
    pub mode_seen: bool,
    /// The tool that starts a child.
    pub tool: String,
    /// Its arguments, each a template or a plain value.
    pub arguments: IndexMap<String, Value>,
    /// Arguments of the tool that are left out: name and kind.
    pub left_out: Vec<(String, String)>,
    /// Agents or profiles.
    pub profiles: Vec<String>,
    /// Observations.
    pub observations: IndexMap<String, Observation>,
}

impl Draft {
    /// The adapter file.
    pub fn file(&self) -> String {
        file::write(self)
    }
}
