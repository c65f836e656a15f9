//! All that one scenario's threads see, in one place; on disk as it comes.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;

use crate::clock::now_ns;
use crate::evidence::{Event, Snapshot, What};

/// So many events of one scenario are kept; a subject that says more is flooding.
const MOST_EVENTS: usize = 200_000;

/// The events of one scenario, shared by its threads.
#[derive(Debug, Default)]
pub struct Recorder {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    /// First time of each fact of a call or subject, such as `call.settled`.
    facts: HashMap<String, u64>,
    /// Subjects of which nothing more can be expected.
    lost: HashSet<String>,
    samples: HashMap<u64, Option<Snapshot>>,
    finished: HashSet<String>,
    survivors: Vec<crate::evidence::Process>,
    pids: HashMap<String, i32>,
    stderr: IndexMap<String, Vec<u8>>,
    live: Option<File>,
    dropped: bool,
}

impl Recorder {
    /// With a file that gets each event as it comes.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn new(live: Option<&Path>) -> std::io::Result<Self> {
        let live = live.map(File::create).transpose()?;
        let recorder = Self::default();
        recorder.lock().live = live;
        Ok(recorder)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock has at worst left out its own event.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an event that happens now.
    pub fn note(&self, what: What) {
        self.note_at(now_ns(), what);
    }

    /// Notes an event that happened at this time.
    pub fn note_at(&self, t_ns: u64, what: What) {
        let mut state = self.lock();
        for fact in facts_of(&what) {
            state.facts.entry(fact).or_insert(t_ns);
        }
        if let What::SubjectStarted { subject, pid, .. } = &what {
            state.pids.insert(subject.clone(), *pid);
        }
        if let What::SubjectExited { subject, .. } = &what {
            state.lost.insert(subject.clone());
        }
        state.push(Event { t_ns, what });
        drop(state);
        self.changed.notify_all();
    }

    /// Notes what the harness itself could not do.
    pub fn fault(&self, message: impl Into<String>) {
        self.note(What::HarnessError {
            message: message.into(),
        });
    }

    /// Nothing more can come from this subject: it flooded, or its warden died.
    pub fn lose(&self, subject: &str) {
        self.lock().lost.insert(subject.to_owned());
        self.changed.notify_all();
    }

    /// Whether something may still come from this subject.
    pub fn is_lost(&self, subject: &str) -> bool {
        self.lock().lost.contains(subject)
    }

    /// A snapshot that was ordered under this number.
    pub fn put_sample(&self, id: u64, snapshot: Option<Snapshot>) {
        self.lock().samples.insert(id, snapshot);
        self.changed.notify_all();
    }

    /// Takes the snapshot with this number, once it came.
    pub fn take_sample(&self, id: u64) -> Option<Option<Snapshot>> {
        self.lock().samples.remove(&id)
    }

    /// A subject's warden has said who survived; they are all told together at the end.
    pub fn put_survivors(&self, processes: Vec<crate::evidence::Process>) {
        self.lock().survivors.extend(processes);
    }

    /// All that survived.
    pub fn survivors(&self) -> Vec<crate::evidence::Process> {
        self.lock().survivors.clone()
    }

    /// A subject's warden has gone.
    pub fn finish(&self, subject: &str) {
        self.lock().finished.insert(subject.to_owned());
        self.changed.notify_all();
    }

    /// Whether a subject's warden has gone.
    pub fn is_finished(&self, subject: &str) -> bool {
        self.lock().finished.contains(subject)
    }

    /// A piece of a subject's standard error.
    pub fn put_stderr(&self, subject: &str, bytes: &[u8]) {
        let mut state = self.lock();
        state
            .stderr
            .entry(subject.to_owned())
            .or_default()
            .extend_from_slice(bytes);
    }

    /// When a fact of a call or subject first held.
    pub fn fact(&self, fact: &str) -> Option<u64> {
        self.lock().facts.get(fact).copied()
    }

    /// A subject's process id, once it was started.
    pub fn pid(&self, subject: &str) -> Option<i32> {
        self.lock().pids.get(subject).copied()
    }

    /// Facts that hold from now on and are no events of their own.
    pub fn happened(&self, facts: &[String]) {
        let mut state = self.lock();
        for fact in facts {
            state.facts.entry(fact.clone()).or_insert_with(now_ns);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until something was noted, at most this long. May return early.
    pub fn wait(&self, at_most: Duration) {
        let state = self.lock();
        // Whether it timed out does not matter: the caller looks again.
        let _ = self.changed.wait_timeout(state, at_most);
    }

    /// Everything, in order of time.
    pub fn take(&self) -> (Vec<Event>, IndexMap<String, String>) {
        let mut state = self.lock();
        let mut events = std::mem::take(&mut state.events);
        events.sort_by_key(|event| event.t_ns);
        let stderr = std::mem::take(&mut state.stderr);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let stderr = stderr
            .into_iter()
            .map(|(subject, bytes)| (subject, text(bytes)))
            .collect();
        (events, stderr)
    }
}

impl State {
    fn push(&mut self, event: Event) {
        let bounded = matches!(
            event.what,
            What::Update { .. }
                | What::Notification { .. }
                | What::Stray { .. }
                | What::Response { .. }
        );
        if bounded && self.events.len() >= MOST_EVENTS {
            if !std::mem::replace(&mut self.dropped, true) {
                self.push(Event {
                    t_ns: event.t_ns,
                    what: What::HarnessError {
                        message: format!("more than {MOST_EVENTS} events in one scenario"),
                    },
                });
            }
            return;
        }
        if let Some(file) = &mut self.live {
            let line = serde_json::to_vec(&event).map(|mut line| {
                line.push(b'\n');
                line
            });
            // A full disk must not end the run: what was seen is still judged from memory.
            if !line.is_ok_and(|line| file.write_all(&line).is_ok()) {
                self.live = None;
            }
        }
        self.events.push(event);
    }
}

/// Facts with a time that steps may wait for, out of one event.
fn facts_of(what: &What) -> Vec<String> {
    match what {
        What::CallSent { call, .. } => vec![format!("{call}.sent")],
        What::AbortSent { call } => vec![format!("{call}.aborted")],
        What::Response { call, .. } => vec![format!("{call}.settled")],
        What::Update { call, .. } => vec![format!("{call}.update")],
        What::Tools { name, .. } => vec![format!("{name}.listed")],
        What::Initialized { subject, .. } => vec![format!("{subject}.starts")],
        What::InputClosed { subject } => vec![format!("{subject}.input-closed")],
        What::SubjectSignalled { subject, .. } => vec![format!("{subject}.signalled")],
        What::SubjectStarted { subject, .. } => vec![format!("{subject}.started")],
        What::SubjectExited { subject, .. } => vec![format!("{subject}.exited")],
        What::ProcessGone { pid, start_ticks } => vec![format!("gone {pid} {start_ticks}")],
        _ => Vec::new(),
    }
}
