//! The evidence with an index over it: calls, launches, descendants, subjects.

use fake_pi::journal::{Entry, Start, What as Wrote};
use indexmap::IndexMap;
use serde_json::Value;

use crate::check::paths::Names;
use crate::evidence::{Evidence, Process, What};

/// Evidence of one scenario, indexed.
pub struct World<'a> {
    /// The evidence itself.
    pub evidence: &'a Evidence,
    /// Names of the scenario.
    pub names: Names,
    /// Calls by name, in the order in which they were sent.
    pub calls: IndexMap<&'a str, Call<'a>>,
    /// Starts of fake-pi as a child, in order of time.
    pub launches: Vec<Launch<'a>>,
    /// Journals of descendants.
    pub descendants: Vec<Launch<'a>>,
    /// Runs of trap programs, by name.
    pub traps: Vec<String>,
    /// Processes that the kernel showed: first seen, and gone.
    pub processes: IndexMap<(i32, u64), Seen<'a>>,
    /// What was alive at the end, if the warden looked.
    pub survivors: Option<&'a [Process]>,
}

/// A process in the kernel's eyes.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// When it was first seen.
    pub seen: u64,
    /// As it was then.
    pub process: &'a Process,
    /// When it was found to be gone.
    pub gone: Option<u64>,
}

/// One call.
pub struct Call<'a> {
    /// Its name.
    pub name: &'a str,
    /// When it was sent.
    pub sent: u64,
    /// To which subject.
    pub subject: &'a str,
    /// Its unique word in the task.
    pub word: &'a str,
    /// The child that it is meant for.
    pub child: Option<&'a str>,
    /// Digest and length of the task that was sent.
    pub task: (&'a str, u64),
    /// Responses: time, result, error.
    pub responses: Vec<(u64, Option<&'a Value>, Option<&'a Value>)>,
    /// Progress: time and parameters.
    pub updates: Vec<(u64, &'a Value)>,
    /// When its abort was sent.
    pub aborted: Option<u64>,
}

impl Call<'_> {
    /// When it settled.
    pub fn settled(&self) -> Option<u64> {
        self.responses.first().map(|(t, ..)| *t)
    }
}

/// One start of fake-pi, as a child or as a descendant.
pub struct Launch<'a> {
    /// What it wrote.
    pub journal: &'a [Entry],
    /// Its first entry.
    pub start: &'a Start,
    /// Its process id.
    pub pid: i32,
    /// When it started.
    pub at: u64,
    /// Name of the script that was chosen, or of the descendant.
    pub name: Option<&'a str>,
    /// The call whose word stood in its task.
    pub call: Option<&'a str>,
}

impl<'a> Launch<'a> {
    /// Entries of one sort, with their times.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &'a Wrote)> + use<'a> {
        self.journal.iter().map(|entry| (entry.t_ns, &entry.what))
    }

    /// Its last entry's time: it was alive then.
    pub fn last(&self) -> u64 {
        self.journal.last().map_or(self.at, |entry| entry.t_ns)
    }

    /// Whether it ended by its own doing: exit code or signal.
    pub fn own_end(&self) -> Option<(Option<i32>, Option<&'a str>)> {
        self.entries().find_map(|(_, what)| match what {
            Wrote::Exit { code, signal } => Some((*code, signal.as_deref())),
            _ => None,
        })
    }

    /// The kernel's name for it.
    pub fn key(&self) -> (i32, u64) {
        (self.pid, self.start.start_ticks)
    }
}

impl<'a> World<'a> {
    /// Indexes evidence.
    pub fn of(evidence: &'a Evidence) -> Self {
        let mut world = Self {
            evidence,
            names: Names::of(&evidence.header.scenario),
            calls: IndexMap::new(),
            launches: Vec::new(),
            descendants: Vec::new(),
            traps: Vec::new(),
            processes: IndexMap::new(),
            survivors: None,
        };
        for event in &evidence.events {
            world.take(event.t_ns, &event.what);
        }
        for journal in &evidence.journals {
            world.take_journal(journal);
        }
        world.launches.sort_by_key(|launch| launch.at);
        world.descendants.sort_by_key(|launch| launch.at);
        world
    }

    fn take(&mut self, t: u64, what: &'a What) {
        match what {
            What::CallSent {
                call,
                subject,
                child,
                word,
                task_sha256,
                task_bytes,
                ..
            } => {
                self.names.calls.insert(call.clone());
                self.calls.insert(
                    call,
                    Call {
                        name: call,
                        sent: t,
                        subject,
                        word,
                        child: child.as_deref(),
                        task: (task_sha256, *task_bytes),
                        responses: Vec::new(),
                        updates: Vec::new(),
                        aborted: None,
                    },
                );
            }
            What::AbortSent { call } => {
                if let Some(call) = self.calls.get_mut(call.as_str()) {
                    call.aborted.get_or_insert(t);
                }
            }
            What::Response {
                call,
                result,
                error,
            } => {
                if let Some(call) = self.calls.get_mut(call.as_str()) {
                    call.responses.push((t, result.as_ref(), error.as_ref()));
                }
            }
            What::Update { call, params } => {
                if let Some(call) = self.calls.get_mut(call.as_str()) {
                    call.updates.push((t, params));
                }
            }
            What::ProcessSeen(process) => {
                let key = (process.pid, process.start_ticks);
                self.processes.entry(key).or_insert(Seen {
                    seen: t,
                    process,
                    gone: None,
                });
            }
            What::ProcessGone { pid, start_ticks } => {
                if let Some(seen) = self.processes.get_mut(&(*pid, *start_ticks)) {
                    seen.gone.get_or_insert(t);
                }
            }
            What::Survivors { processes } => self.survivors = Some(processes),
            _ => {}
        }
    }

    fn take_journal(&mut self, journal: &'a [Entry]) {
        let Some((first, Wrote::Start(start))) = journal.first().map(|entry| (entry, &entry.what))
        else {
            return;
        };
        let mut launch = Launch {
            journal,
            start,
            pid: first.pid,
            at: first.t_ns,
            name: start.name.as_deref(),
            call: None,
        };
        for (_, what) in launch.entries() {
            match what {
                Wrote::Chosen { child } => launch.name = Some(child),
                Wrote::Task { call, .. } if launch.call.is_none() => launch.call = call.as_deref(),
                _ => {}
            }
        }
        let trap = launch.name.and_then(|name| name.strip_prefix("trap:"));
        match (trap, start.role.as_str()) {
            (Some(trap), _) => self.traps.push(trap.to_owned()),
            (None, "trap") => self.traps.push(launch.name.unwrap_or("unnamed").to_owned()),
            (None, "descendant") => self.descendants.push(launch),
            (None, _) => self.launches.push(launch),
        }
    }

    /// Launches that played the script `child`.
    pub fn launches_of<'w>(&'w self, child: &'w str) -> impl Iterator<Item = &'w Launch<'a>> {
        self.launches
            .iter()
            .filter(move |launch| launch.name == Some(child))
    }

    /// Launches that served a call: those that read its word; else, when it is the only call that is meant for
    /// its child and no word reached any of them, that child's.
    pub fn launches_for<'w>(&'w self, call: &'w Call<'a>) -> Vec<&'w Launch<'a>> {
        let by_word: Vec<_> = self
            .launches
            .iter()
            .filter(|launch| launch.call == Some(call.word))
            .collect();
        if !by_word.is_empty() {
            return by_word;
        }
        let Some(child) = call.child else {
            return by_word;
        };
        let only = self
            .calls
            .values()
            .filter(|other| other.child == Some(child))
            .count()
            == 1;
        let wordless = |launch: &&Launch<'_>| launch.call.is_none();
        if only {
            self.launches_of(child).filter(wordless).collect()
        } else {
            Vec::new()
        }
    }

    /// The call that a launch served.
    pub fn call_of<'w>(&'w self, launch: &Launch<'_>) -> Option<&'w Call<'a>> {
        match launch.call {
            Some(word) => self.calls.values().find(|call| call.word == word),
            None => {
                let mut meant = self
                    .calls
                    .values()
                    .filter(|call| call.child.is_some() && call.child == launch.name);
                let first = meant.next()?;
                meant.next().is_none().then_some(first)
            }
        }
    }

    /// Descendants of a launch by name: those that it started, else those of that name when only one launch could
    /// have started them.
    pub fn descendants_of<'w>(&'w self, launch: &Launch<'_>, name: &str) -> Vec<&'w Launch<'a>> {
        let mut started = Vec::new();
        for (_, what) in launch.entries() {
            if let Wrote::Descendant {
                name: its,
                child_pid,
            } = what
                && its == name
            {
                started.push(*child_pid);
            }
        }
        let named = || self.descendants.iter().filter(|d| d.name == Some(name));
        let by_pid: Vec<_> = named().filter(|d| started.contains(&d.pid)).collect();
        if !by_pid.is_empty() || self.launches.len() > 1 {
            return by_pid;
        }
        named().collect()
    }

    /// When the kernel found a process gone.
    pub fn gone(&self, launch: &Launch<'_>) -> Option<u64> {
        self.processes.get(&launch.key()).and_then(|seen| seen.gone)
    }

    /// Whether a process was alive at the end; `None` if nobody looked.
    pub fn survives(&self, launch: &Launch<'_>) -> Option<bool> {
        let key = launch.key();
        let survivors = self.survivors?;
        Some(
            survivors
                .iter()
                .any(|process| (process.pid, process.start_ticks) == key),
        )
    }

    /// First event that `pick` wants, with its time.
    pub fn first<T>(&self, mut pick: impl FnMut(&'a What) -> Option<T>) -> Option<(u64, T)> {
        self.evidence
            .events
            .iter()
            .find_map(|event| pick(&event.what).map(|t| (event.t_ns, t)))
    }

    /// Something in this scenario was seen to live: a call settled or a child started.
    pub fn anything_happened(&self) -> bool {
        !self.launches.is_empty() || self.calls.values().any(|call| call.settled().is_some())
    }

    /// A subject was seen to end.
    pub fn subject_ended(&self) -> bool {
        self.first(|what| matches!(what, What::SubjectExited { .. }).then_some(()))
            .is_some()
    }

    /// Sum of the stalls that overlap a stretch of time, in nanoseconds. A stall is noted at its end.
    pub fn stalled(&self, from: u64, to: u64) -> u64 {
        let overlap = |t: u64, ns: u64| t.min(to).saturating_sub(t.saturating_sub(ns).max(from));
        let events = self.evidence.events.iter();
        events
            .map(|event| match &event.what {
                What::Stall { ns } => overlap(event.t_ns, *ns),
                _ => 0,
            })
            .sum()
    }
}
