//! Layers of configuration, and what comes of laying them over one another. Pure.

use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;

use super::json::Place;
use super::{Diagnostic, Limits, nearest};
use crate::profile::{Origin, Profile, Registry};

/// Most profiles in force: they all stand in the tool schema.
pub const PROFILE_LIMIT: usize = 64;

/// What a file says about one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<T> {
    /// The name.
    pub name: String,
    /// Where what is said about it begins.
    pub place: Place,
    /// The definition; `None` takes the name away.
    pub definition: Option<T>,
}

/// What a file says about the limits; what it leaves out stays as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitChanges {
    pub(super) start_watchdog: Option<Option<Duration>>,
    pub(super) tool_timeout: Option<Option<Duration>>,
    pub(super) output_cap: Option<usize>,
    pub(super) stderr_cap: Option<usize>,
    pub(super) record_cap: Option<usize>,
    pub(super) task_chars: Option<u64>,
}

impl LimitChanges {
    fn apply(&self, limits: &mut Limits) {
        limits.start_watchdog = self.start_watchdog.unwrap_or(limits.start_watchdog);
        limits.tool_timeout = self.tool_timeout.unwrap_or(limits.tool_timeout);
        limits.output_cap = self.output_cap.unwrap_or(limits.output_cap);
        limits.stderr_cap = self.stderr_cap.unwrap_or(limits.stderr_cap);
        limits.record_cap = self.record_cap.unwrap_or(limits.record_cap);
        limits.task_chars = self.task_chars.unwrap_or(limits.task_chars);
    }
}

/// One file, read; `T` is a [`Definition`] at first and a [`Profile`] once its paths are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer<T> {
    /// Which layer it is.
    pub origin: Origin,
    /// The file.
    pub file: PathBuf,
    /// Its entries, in order.
    pub entries: Vec<Entry<T>>,
    /// Its limits.
    pub limits: LimitChanges,
}

/// Lays the files over what is bundled, weakest first.
///
/// # Errors
/// A name taken away that is not there, or nothing left.
pub fn merge(layers: Vec<Layer<Profile>>) -> Result<(Registry, Limits), Vec<Diagnostic>> {
    let mut limits = Limits::default();
    let bundled = Registry::bundled();
    let mut profiles: IndexMap<String, Profile> = bundled
        .iter()
        .map(|profile| (profile.name.clone(), profile.clone()))
        .collect();
    let mut faults = Vec::new();
    let mut last = PathBuf::new();
    for layer in layers {
        layer.limits.apply(&mut limits);
        for entry in layer.entries {
            if let Some(profile) = entry.definition {
                profiles.insert(entry.name, profile);
            } else if profiles.shift_remove(&entry.name).is_none() {
                let names = profiles.keys().map(String::as_str);
                faults.push(Diagnostic {
                    file: layer.file.clone(),
                    place: Some(entry.place),
                    key: None,
                    problem: "null disables a profile, and there is none of this name".into(),
                    correction: match nearest(&entry.name, names) {
                        Some(name) => format!("did you mean `{name}`?"),
                        None => "remove the entry".into(),
                    },
                    profile: Some(entry.name),
                });
            }
        }
        last = layer.file;
    }
    let whole = |problem: String, correction: &str| Diagnostic {
        file: last.clone(),
        place: None,
        profile: None,
        key: Some("profiles".into()),
        problem,
        correction: correction.into(),
    };
    if profiles.is_empty() && faults.is_empty() {
        faults.push(whole(
            "every profile is disabled".into(),
            "leave at least one profile in force",
        ));
    }
    if profiles.len() > PROFILE_LIMIT {
        let problem = format!(
            "{} profiles are in force, at most {PROFILE_LIMIT} are allowed",
            profiles.len()
        );
        faults.push(whole(problem, "remove some or disable some with null"));
    }
    if faults.is_empty() {
        Ok((Registry::new(profiles.into_values()), limits))
    } else {
        Err(faults)
    }
}
