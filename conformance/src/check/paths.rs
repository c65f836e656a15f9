//! The left side of a check as data: what is looked at, and which look it is.
//!
//! `[each ]ROOT[#N][.LOOK]`. The root is a call, a child, a subject, a listing of tools or one of the words for the whole
//! scenario; which of them a name is comes from the scenario's own steps and children.

use indexmap::IndexSet;

use crate::check::words::nearest;
use crate::scenario::{Scenario, Step};

/// An observation path, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// `each` stands before it: every call or launch must satisfy the check.
    pub each: bool,
    /// Whom it is about.
    pub root: Root,
    /// What of it, such as `answer` or `descendant.d.gone`; empty for the roots that are looks themselves.
    pub look: String,
}

/// Whom an observation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// A call, or with `each` all calls whose names start so.
    Call(String),
    /// A child; the number is that of `#N`, counted from 1.
    Child(String, Option<usize>),
    /// A subject.
    Subject(String),
    /// A listing of tools, by the name its step gave.
    Tools(String),
    /// One tool of the last listing: the one that `spawn` calls.
    Tool,
    /// The adapter's further facts (right side of `same-as`).
    Facts,
    /// The whole scenario: `launches`, `survivors` …
    Whole(String),
}

/// Looks at the whole scenario.
pub const WHOLE: [&str; 7] = [
    "launches",
    "pids-differ",
    "traps",
    "survivors",
    "leftovers",
    "leftovers.modes",
    "work-files",
];

/// Looks at a call that need no declaration of the adapter.
pub const CALL_BUILT_IN: [&str; 17] = [
    "text",
    "is-error",
    "details",
    "settled",
    "settlements",
    "settles",
    "duration",
    "protocol-error",
    "updates",
    "updates.text",
    "updates.bytes",
    "updates.late",
    "launches",
    "task",
    "aborted",
    "result",
    "word",
];

/// Looks at a call that adapters declare.
pub const CALL_DECLARED: [&str; 30] = [
    "ok",
    "outcome",
    "reason",
    "answer",
    "stop-reason",
    "error",
    "message",
    "stderr",
    "exit-code",
    "exit-signal",
    "usage",
    "usage.input",
    "usage.output",
    "usage.cache-read",
    "usage.cache-write",
    "usage.total",
    "usage.cost",
    "truncated",
    "truncation.original",
    "truncation.kept",
    "cleanup.forced",
    "cleanup.term",
    "cleanup.kill",
    "cleanup.drained",
    "cleanup.strays",
    "cleanup.incomplete",
    "model",
    "profile",
    "warnings",
    "duration-claimed",
];

/// Looks at a child. Those ending in `.` take a name.
pub const CHILD: [&str; 34] = [
    "launches",
    "argv",
    "args",
    "flag.",
    "flags",
    "env",
    "env.",
    "cwd",
    "pid",
    "pid-leads-group",
    "pgid",
    "sid",
    "task",
    "task-bytes",
    "task-sha256",
    "task-intact",
    "via",
    "prompts",
    "stdin.",
    "stdin-eof",
    "stdin-lines",
    "signals",
    "blocked",
    "ignored",
    "extra-fds",
    "parent-argv",
    "parent-is-shell",
    "ended",
    "reached",
    "write-failed",
    "faults",
    "exited",
    "started",
    "descendant.",
];

/// Looks at a descendant.
pub const DESCENDANT: [&str; 6] = ["signals", "gone", "sid", "pgid", "started", "argv"];

/// Looks at a subject.
pub const SUBJECT: [&str; 13] = [
    "starts",
    "exit-code",
    "exit-signal",
    "alive",
    "exits",
    "stderr",
    "strays",
    "memory-growth",
    "sample.",
    "zombies-at-end",
    "pid",
    "pgid",
    "sid",
];

/// What a sample holds.
pub const SAMPLE: [&str; 6] = ["fds", "children", "zombies", "threads", "rss", "peak-rss"];

/// Looks at a listing of tools.
pub const TOOLS: [&str; 2] = ["names", "count"];

/// Looks at a tool.
pub const TOOL: [&str; 8] = [
    "name",
    "properties",
    "required",
    "description",
    "title",
    "text",
    "output",
    "enum.",
];

/// Why a path means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", .nearest.as_ref().map_or(String::new(), |word| format!("; nearest is `{word}`")))]
pub struct PathError {
    /// What is wrong.
    pub what: String,
    /// A word that would be right.
    pub nearest: Option<String>,
}

/// Names that a scenario gives to things.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// Calls, with the rounds of a `repeat` spelled out.
    pub calls: IndexSet<String>,
    /// Children.
    pub children: IndexSet<String>,
    /// Subjects; always holds `subject`.
    pub subjects: IndexSet<String>,
    /// Listings of tools.
    pub listings: IndexSet<String>,
    /// Samples.
    pub samples: IndexSet<String>,
}

/// Rounds of a `repeat` whose names are spelled out for checks.
const ROUNDS: u64 = 1000;

impl Names {
    /// All names of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let mut names = Self {
            children: scenario.children.keys().cloned().collect(),
            ..Self::default()
        };
        names.subjects.insert("subject".to_owned());
        names.listings.insert("tools".to_owned());
        names.walk(&scenario.steps, "");
        names
    }

    fn walk(&mut self, steps: &[Step], suffix: &str) {
        for step in steps {
            match step {
                Step::Spawn(spawn) | Step::Call(spawn) => {
                    let name = spawn.name.as_deref().unwrap_or("call");
                    self.calls.insert(format!("{name}{suffix}"));
                }
                Step::Request(request) => {
                    self.calls.insert(format!("{}{suffix}", request.name));
                }
                Step::ListTools(named) => {
                    self.listings.insert(format!("{}{suffix}", named.name));
                }
                Step::Subject(named) => {
                    self.subjects.insert(format!("{}{suffix}", named.name));
                }
                Step::Sample(named) => {
                    self.samples.insert(format!("{}{suffix}", named.name));
                }
                Step::Repeat(repeat) => {
                    for round in 1..=repeat.times.min(ROUNDS) {
                        self.walk(&repeat.steps, &format!("{suffix}-{round}"));
                    }
                }
                _ => {}
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let words = WHOLE.iter().copied().chain(["tool"]);
        let given = [&self.calls, &self.children, &self.subjects, &self.listings];
        words.chain(given.into_iter().flatten().map(String::as_str))
    }
}

impl Path {
    /// Takes a path apart. Only names and the grammar are looked at; [`check_look`] knows the looks.
    pub fn parse(text: &str, names: &Names) -> Result<Self, PathError> {
        let text = text.trim();
        if WHOLE.contains(&text) {
            return Ok(Self {
                each: false,
                root: Root::Whole(text.to_owned()),
                look: String::new(),
            });
        }
        let (each, rest) = match text.strip_prefix("each ") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let (head, look) = rest.split_once('.').unwrap_or((rest, ""));
        let (name, number) = match head.split_once('#') {
            None => (head, None),
            Some((name, number)) => match number.parse() {
                Ok(n) if n > 0 => (name, Some(n)),
                _ => {
                    return Err(wrong(format!(
                        "`#{number}` in `{text}` is no launch number; the first is `#1`"
                    )));
                }
            },
        };
        let owned = name.to_owned();
        let has = |set: &IndexSet<String>| {
            set.contains(name) || each && set.iter().any(|its| its.starts_with(name))
        };
        // A name that a call and a child share is the one of which there is such a look.
        let (call, child) = (has(&names.calls), has(&names.children));
        let root = if number.is_some() || child && (!call || is_child_look(look)) {
            Root::Child(owned, number)
        } else if call {
            Root::Call(owned)
        } else if names.subjects.contains(name) {
            Root::Subject(owned)
        } else if names.listings.contains(name) {
            Root::Tools(owned)
        } else if name == "tool" {
            Root::Tool
        } else if name == "facts" {
            Root::Facts
        } else {
            return Err(PathError {
                what: format!(
                    "`{name}` in `{text}` is no call, child or subject of this scenario, nor a word for the whole"
                ),
                nearest: nearest(name, names.all()).map(str::to_owned),
            });
        };
        if let Root::Child(name, _) = &root
            && !names.children.contains(name)
            && !child
        {
            return Err(PathError {
                what: format!("`{name}` in `{text}` is no child of this scenario"),
                nearest: nearest(name, names.children.iter().map(String::as_str))
                    .map(str::to_owned),
            });
        }
        Ok(Self {
            each,
            root,
            look: look.to_owned(),
        })
    }

    /// The look exists for such a root. `declared` are observations that an adapter adds.
    pub fn check_look<'a>(
        &self,
        names: &Names,
        declared: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), PathError> {
        match &self.root {
            Root::Whole(_) | Root::Facts => Ok(()),
            Root::Call(_) => {
                if let Some(look) = self.look.strip_prefix("child.") {
                    return child_look(look);
                }
                let known = CALL_BUILT_IN
                    .into_iter()
                    .chain(CALL_DECLARED)
                    .chain(declared);
                known_look(&self.look, known, "a call")
            }
            Root::Child(..) => child_look(&self.look),
            Root::Subject(_) => match self.look.strip_prefix("sample.") {
                None => known_look(&self.look, SUBJECT, "a subject"),
                Some(rest) => {
                    let (sample, look) = rest.rsplit_once('.').unwrap_or((rest, ""));
                    let samples = names.samples.iter().map(String::as_str).chain(["auto"]);
                    known_look(sample, samples, "the samples of this scenario")?;
                    known_look(look, SAMPLE, "a sample")
                }
            },
            Root::Tools(_) => known_look(&self.look, TOOLS, "a listing of tools"),
            Root::Tool => known_look(&self.look, TOOL, "a tool"),
        }
    }
}

/// The path of another observation or fact, on the right side. Beside `each call`, `call.word` means that same call, also where
/// none is called just `call`.
///
/// # Errors
/// As [`Path::parse`].
pub fn parse_other(text: &str, names: &Names, each: bool) -> Result<Path, PathError> {
    Path::parse(text, names).or_else(|error| {
        let same = if each {
            Path::parse(&format!("each {text}"), names)
        } else {
            return Err(error);
        };
        same.map_err(|_| error)
    })
}

/// Looks and facts that only a child has.
fn is_child_look(look: &str) -> bool {
    let facts = ["reached.", "signal.", "stdin.", "descendant."];
    let shared = ["launches", "task"].contains(&look);
    !shared && (child_look(look).is_ok() || facts.iter().any(|fact| look.starts_with(fact)))
}

fn child_look(look: &str) -> Result<(), PathError> {
    match look.strip_prefix("descendant.") {
        None => known_look(look, CHILD, "a child"),
        Some(rest) => {
            let (_, look) = rest.split_once('.').unwrap_or((rest, ""));
            known_look(look, DESCENDANT, "a descendant")
        }
    }
}

/// A look is known when it is in the list, or begins with an entry that ends in `.` and takes a name.
fn known_look<'a>(
    look: &str,
    known: impl IntoIterator<Item = &'a str>,
    of: &str,
) -> Result<(), PathError> {
    let known: Vec<&str> = known.into_iter().collect();
    let fits = |entry: &&&str| {
        **entry == look
            || entry.ends_with('.') && look.len() > entry.len() && look.starts_with(**entry)
    };
    if known.iter().any(|entry| fits(&entry)) {
        return Ok(());
    }
    let what = if look.is_empty() {
        format!("nothing is said about what of {of} is looked at")
    } else {
        format!("`{look}` is nothing that can be seen of {of}")
    };
    Err(PathError {
        what,
        nearest: nearest(look, known).map(|word| word.trim_end_matches('.').to_owned()),
    })
}

fn wrong(what: String) -> PathError {
    PathError {
        what,
        nearest: None,
    }
}
