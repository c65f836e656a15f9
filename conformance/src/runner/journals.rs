//! The fakes' journals while they are written, and the facts about children that stand in them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use fake_pi::journal::{Entry, What};

/// Follows all journals of one scenario.
#[derive(Debug, Default)]
pub struct Journals {
    folders: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Journal>,
}

#[derive(Debug, Default)]
struct Journal {
    read: u64,
    rest: Vec<u8>,
    entries: Vec<Entry>,
    fault: Option<String>,
}

/// A fact about a child that a step waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildFact {
    /// It started.
    Started,
    /// It read its task.
    Task,
    /// It reached this point.
    Reached(String),
    /// Its process has ended.
    Exited,
    /// This signal arrived.
    Signal(String),
    /// A command of this type was read.
    Stdin(String),
    /// Its input came to its end.
    StdinEof,
    /// A descendant started.
    DescendantStarted(String),
    /// A descendant has ended.
    DescendantGone(String),
}

impl ChildFact {
    /// Reads what stands behind the child's name.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.split_once('.') {
            None => match text {
                "started" => Self::Started,
                "task" => Self::Task,
                "exited" => Self::Exited,
                "stdin-eof" => Self::StdinEof,
                _ => return None,
            },
            Some(("reached", name)) => Self::Reached(name.to_owned()),
            Some(("signal", name)) => Self::Signal(name.to_owned()),
            Some(("stdin", name)) => Self::Stdin(name.to_owned()),
            Some(("descendant", rest)) => match rest.rsplit_once('.')? {
                (name, "started") => Self::DescendantStarted(name.to_owned()),
                (name, "gone") => Self::DescendantGone(name.to_owned()),
                _ => return None,
            },
            Some(_) => return None,
        })
    }
}

/// What must be asked of the kernel to know a fact: these processes must have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It holds.
    Holds,
    /// Not yet.
    NotYet,
    /// It holds once one of these (pid and start time) has ended.
    WhenGone(Vec<(i32, u64)>),
}

impl Journals {
    /// Follows the journals in these folders.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self {
            folders,
            files: BTreeMap::new(),
        }
    }

    /// Reads what was written since the last time.
    pub fn poll(&mut self) {
        for folder in &self.folders {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.extension().is_some_and(|ext| ext == "jsonl") {
                    self.files.entry(path).or_default();
                }
            }
        }
        for (path, journal) in &mut self.files {
            journal.follow(path);
        }
    }

    /// Whether a fact holds for the `nth` launch (from 1) of a child, counting launches from time `since` on.
    pub fn holds(&self, child: &str, nth: usize, since: u64, fact: &ChildFact) -> Answer {
        let mut launches: Vec<&Journal> = self
            .files
            .values()
            .filter(|journal| journal.plays(child) && journal.started() >= since)
            .collect();
        launches.sort_by_key(|journal| journal.started());
        match nth.checked_sub(1).and_then(|at| launches.get(at)) {
            Some(launch) => self.of_launch(launch, fact),
            None => Answer::NotYet,
        }
    }

    /// Whether a fact holds for the first launch that read this call's word.
    pub fn holds_for(&self, word: &str, fact: &ChildFact) -> Answer {
        let read = |entry: &Entry| matches!(&entry.what, What::Task { call: Some(its), .. } if its == word);
        let served = |journal: &&Journal| journal.entries.iter().any(read);
        match self
            .files
            .values()
            .filter(served)
            .min_by_key(|journal| journal.started())
        {
            Some(launch) => self.of_launch(launch, fact),
            None => Answer::NotYet,
        }
    }

    fn of_launch(&self, launch: &Journal, fact: &ChildFact) -> Answer {
        let any = |pick: &dyn Fn(&What) -> bool| {
            if launch.entries.iter().any(|entry| pick(&entry.what)) {
                Answer::Holds
            } else {
                Answer::NotYet
            }
        };
        match fact {
            ChildFact::Started => Answer::Holds,
            ChildFact::Task => any(&|what| matches!(what, What::Task { .. })),
            ChildFact::Reached(name) => {
                any(&|what| matches!(what, What::Reach { name: its } if its == name))
            }
            ChildFact::Signal(name) => {
                any(&|what| matches!(what, What::Signal { name: its, .. } if its == name))
            }
            ChildFact::Stdin(kind) => {
                any(&|what| matches!(what, What::Stdin { command: Some(its), .. } if its == kind))
            }
            ChildFact::StdinEof => any(&|what| matches!(what, What::StdinEof)),
            ChildFact::Exited => Answer::WhenGone(launch.key().into_iter().collect()),
            ChildFact::DescendantStarted(name) | ChildFact::DescendantGone(name) => {
                let descendants = self.descendants(launch, name);
                if descendants.is_empty() {
                    Answer::NotYet
                } else if matches!(fact, ChildFact::DescendantStarted(_)) {
                    Answer::Holds
                } else {
                    Answer::WhenGone(descendants)
                }
            }
        }
    }

    /// Descendants of a launch by name: those that it started, else, after a double fork, those of that name.
    fn descendants(&self, launch: &Journal, name: &str) -> Vec<(i32, u64)> {
        let started: Vec<i32> = launch
            .entries
            .iter()
            .filter_map(|entry| match &entry.what {
                What::Descendant {
                    name: its,
                    child_pid,
                } if its == name => Some(*child_pid),
                _ => None,
            })
            .collect();
        let named = |journal: &&Journal| {
            matches!(journal.entries.first().map(|entry| &entry.what),
                Some(What::Start(start)) if start.role == "descendant" && start.name.as_deref() == Some(name))
        };
        let all: Vec<(i32, u64)> = self
            .files
            .values()
            .filter(named)
            .filter_map(Journal::key)
            .collect();
        let own: Vec<_> = all
            .iter()
            .copied()
            .filter(|(pid, _)| started.contains(pid))
            .collect();
        if own.is_empty() { all } else { own }
    }

    /// All journals with their entries, in order of their starts; and what could not be read.
    pub fn take(&mut self) -> (Vec<Vec<Entry>>, Vec<String>) {
        self.poll();
        let mut journals = Vec::new();
        let mut faults = Vec::new();
        for (path, journal) in std::mem::take(&mut self.files) {
            if let Some(fault) = journal.fault {
                faults.push(format!(
                    "cannot read the journal `{}`: {fault}",
                    path.display()
                ));
            }
            if !journal.entries.is_empty() {
                journals.push(journal.entries);
            }
        }
        journals.sort_by_key(|entries: &Vec<Entry>| entries.first().map_or(0, |entry| entry.t_ns));
        (journals, faults)
    }
}

impl Journal {
    fn follow(&mut self, path: &Path) {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(path)?;
            let mut bytes = Vec::new();
            if file.metadata()?.len() > self.read {
                file.seek(SeekFrom::Start(self.read))?;
                file.read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        };
        let Ok(bytes) = read() else {
            return;
        };
        self.read += bytes.len() as u64;
        self.rest.extend_from_slice(&bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(entry) => self.entries.push(entry),
                Err(error) => {
                    self.fault.get_or_insert(error.to_string());
                }
            }
        }
    }

    fn plays(&self, child: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(&entry.what, What::Chosen { child: its } if its == child))
    }

    fn started(&self) -> u64 {
        self.entries.first().map_or(0, |entry| entry.t_ns)
    }

    fn key(&self) -> Option<(i32, u64)> {
        let first = self.entries.first()?;
        match &first.what {
            What::Start(start) => Some((first.pid, start.start_ticks)),
            _ => None,
        }
    }
}
