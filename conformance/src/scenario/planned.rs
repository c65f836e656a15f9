//! One scenario that is ready to run: expanded, with a full name.

use indexmap::IndexMap;
use serde_json::Value;

use super::Scenario;

/// A scenario after expansion, as the runner takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Full name with axis values: `oversized-line-bounded[size=over]`.
    pub name: String,
    /// Area: the folder that its file lies in.
    pub area: String,
    /// The file, as it is shown to people.
    pub file: String,
    /// Axis values.
    pub axes: IndexMap<String, Value>,
    /// The scenario; figures and axis values are filled in, folders (`{work}`) are not.
    pub scenario: Scenario,
}
