//! Configuration: which profiles are in force, and under which limits.
//!
//! Three layers, the later one winning: bundled, the user's file, the project's file, and that last one only when the
//! session trusts the project. An entry of a layer adds a profile, replaces one *wholly*, or takes one away (`null`).
//! The working directory of a call plays no part; a file that changes later plays none either, since the result is
//! resolved once and cannot be changed.
//!
//! Validation is strict, and whatever is wrong stops every delegation: a profile that silently lost its read-only tool
//! list is worse than none. All faults are reported together, each with its place and with what to write instead.
//!
//! [`parse`] is pure: text in, definitions or diagnostics out; so is [`layer`], which lays them over one another.
//! [`read`](mod@read) touches the file system: bounded
//! reading, and the canonical paths of extensions and skills.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::profile::{Origin, Registry};

pub mod json;
pub mod layer;
pub mod parse;
pub mod read;

pub use json::Place;

/// Largest configuration file in bytes (ruling 28 of the catalogue). Not more than one byte over it is ever read.
pub const SIZE_LIMIT: usize = 256 * 1024;
/// Most diagnostics that are shown; a file that is wrong in more places is wrong in the same way everywhere.
pub const DIAGNOSTIC_LIMIT: usize = 20;

/// Limits of every run of a session. What a profile decides (its deadline) is not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long a prompt may stay without a sign that its run began. `None`: until the deadline.
    pub start_watchdog: Option<Duration>,
    /// How long a tool known to be fast may run. `None`: until the deadline.
    pub tool_timeout: Option<Duration>,
    /// Most bytes of answer text in a result.
    pub output_cap: usize,
    /// Most bytes of the child's stderr that are kept, counted from its end.
    pub stderr_cap: usize,
    /// Longest record of the child, in bytes without its LF.
    pub record_cap: usize,
    /// Longest task, in UTF-16 code units, as Pi counts (ruling 15 of the catalogue).
    pub task_chars: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start_watchdog: Some(Duration::from_secs(30)),
            tool_timeout: Some(Duration::from_secs(120)),
            output_cap: 50 * 1024,
            stderr_cap: 64 * 1024,
            record_cap: 8 * 1024 * 1024,
            task_chars: 100_000,
        }
    }
}

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The profiles.
    pub profiles: Registry,
    /// The limits.
    pub limits: Limits,
    /// The files that it was read from, weakest first.
    pub sources: Vec<(Origin, PathBuf)>,
    /// A project file that exists and was left alone, because the project is not trusted.
    pub ignored: Option<PathBuf>,
}

impl Config {
    /// What holds without any file.
    pub fn bundled() -> Self {
        Self {
            profiles: Registry::bundled(),
            limits: Limits::default(),
            sources: Vec::new(),
            ignored: None,
        }
    }
}

/// One fault of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// The place in it, where there is one.
    pub place: Option<Place>,
    /// The profile in whose definition it lies.
    pub profile: Option<String>,
    /// The key that it is about.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to write or do instead.
    pub correction: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(place) = self.place {
            write!(f, ":{place}")?;
        }
        f.write_str(": ")?;
        if let Some(profile) = &self.profile {
            write!(f, "profile `{}`: ", clip(profile))?;
        }
        if let Some(key) = &self.key {
            write!(f, "`{}`: ", clip(key))?;
        }
        write!(f, "{}; {}", self.problem, self.correction)
    }
}

/// Everything that is wrong with a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// The first [`DIAGNOSTIC_LIMIT`] faults, in the order of the files.
    pub faults: Vec<Diagnostic>,
    /// How many more there are.
    pub more: usize,
}

impl Diagnostics {
    /// Keeps the first ones. `None` when there is nothing wrong.
    pub fn new(mut faults: Vec<Diagnostic>) -> Option<Self> {
        let more = faults.len().saturating_sub(DIAGNOSTIC_LIMIT);
        faults.truncate(DIAGNOSTIC_LIMIT);
        (!faults.is_empty()).then_some(Self { faults, more })
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Where the files of a session lie.
#[derive(Debug, Clone)]
pub struct Locations {
    /// Pi's agent directory; the user's file is `delegator.json` in it.
    pub agent: PathBuf,
    /// The session's working directory; the project's file is `.pi/delegator.json` in it.
    pub project: PathBuf,
    /// Whether the project's file counts.
    pub trusted: bool,
}

impl Locations {
    /// The user's file.
    pub fn user_file(&self) -> PathBuf {
        self.agent.join("delegator.json")
    }

    /// The project's file.
    pub fn project_file(&self) -> PathBuf {
        self.project.join(".pi").join("delegator.json")
    }
}

/// Resolves the configuration of a session. A file that does not exist is no fault.
///
/// # Errors
/// Every fault of every layer that counts.
pub fn load(locations: &Locations) -> Result<Config, Diagnostics> {
    let mut files = vec![(
        Origin::User,
        locations.user_file(),
        locations.agent.as_path(),
    )];
    let project_file = locations.project_file();
    let mut ignored = None;
    if locations.trusted {
        files.push((Origin::Project, project_file, locations.project.as_path()));
    } else if project_file.symlink_metadata().is_ok() {
        ignored = Some(project_file);
    }
    let mut faults = Vec::new();
    let mut sources = Vec::new();
    let mut layers = Vec::new();
    for (origin, file, root) in files {
        match read::layer(origin, &file, root) {
            Ok(None) => {}
            Ok(Some(layer)) => {
                layers.push(layer);
                sources.push((origin, file));
            }
            Err(found) => faults.extend(found),
        }
    }
    // Layers are merged even when one of them is faulty, so that one start shows everything that is wrong.
    let merged = match layer::merge(layers) {
        Ok((profiles, limits)) => Some(Config {
            profiles,
            limits,
            sources,
            ignored,
        }),
        Err(found) => {
            faults.extend(found);
            None
        }
    };
    match (merged, Diagnostics::new(faults)) {
        (Some(config), None) => Ok(config),
        (_, Some(diagnostics)) => Err(diagnostics),
        // A merge that fails says why; should it ever not, nothing may run on a guess.
        (None, None) => Err(Diagnostics {
            faults: Vec::new(),
            more: 0,
        }),
    }
}

/// Text from a file or a caller as a message may show it: at most 80 characters, control characters escaped.
pub fn clip(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The word of `known` that was probably meant, for messages that say "did you mean".
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LIKE: f64 = 0.75;
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&word, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= LIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// `a, b, c`, for messages that list what there is.
pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// Whether `path` lies in `root`; both canonical.
pub fn within(path: &Path, root: &Path) -> bool {
    path.starts_with(root)
}
