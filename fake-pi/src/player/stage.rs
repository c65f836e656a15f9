//! What all threads of a child share: one lock, one condition.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use serde_json::Value;

use super::choose::Chosen;
use crate::act::{Act, Occasion, Script, Signal, StreamName, Wait, WaitFor};
use crate::args::Args;
use crate::descendant;
use crate::journal::{Journal, What};
use crate::out::Out;
use crate::pi::{Ending, Input, Mode, Output, Session, TimerId, ToolCall, js};
use crate::reply::{Changes, Known};

/// How long the end of input waits for records that are still in the queue.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Something interrupted the acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted(pub Occasion);

/// What the acts catch, so that Pi does nothing about it.
#[derive(Debug, Default)]
pub struct Catches {
    eof: bool,
    signals: HashSet<String>,
    commands: HashSet<String>,
    /// How many prompts the acts take in all.
    prompts: u32,
}

impl Catches {
    /// Of a whole child: whatever is waited for anywhere in it.
    pub fn of(chosen: &Chosen) -> Self {
        let mut catches = Self::default();
        for acts in std::iter::once(&chosen.acts).chain(chosen.on.values()) {
            catches.scan(acts);
        }
        catches
    }

    fn scan(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Accept(_) | Act::Acknowledge(_) | Act::Reject(_) | Act::Read(_) => {
                    self.prompts += 1
                }
                // The first of these takes the prompt itself, if no act before it did.
                Act::Answer(_) | Act::Reply(_) | Act::Stream(_) | Act::Tool(_) | Act::Retry(_) => {
                    self.prompts = self.prompts.max(1);
                }
                Act::Wait(Wait::Until(WaitFor::Eof(_))) => self.eof = true,
                Act::Wait(Wait::Until(WaitFor::Signal(signal))) => {
                    self.signals.insert(signal.name());
                }
                Act::Wait(Wait::Until(WaitFor::Command(name))) => {
                    self.commands.insert(name.clone());
                }
                Act::Written(written) => self.scan(&written.acts),
                Act::Loop(repeat) => self.scan(&repeat.acts),
                _ => {}
            }
        }
    }
}

/// The state behind the lock.
#[derive(Default)]
pub struct State {
    /// Pi, once a child is chosen or a command had to be answered before.
    pub session: Option<Session>,
    /// The child, once it is chosen.
    pub chosen: Option<Chosen>,
    /// What its acts catch.
    pub catches: Catches,
    /// Prompts that no act has taken: the line in RPC mode, the text otherwise.
    pub prompts: VecDeque<String>,
    /// Prompts that acts or Pi have taken.
    pub taken: u32,
    /// An act waits for the next prompt.
    pub wants_prompt: bool,
    /// The acts are over, or hang: Pi takes what comes.
    pub idle: bool,
    /// A one-shot Pi is done, and ends once the acts are: they may still have something else in mind.
    pub ending: Option<Ending>,
    /// Standard input came to its end.
    pub eof: bool,
    /// Standard input is not to be read.
    pub reading: bool,
    /// How often a command or signal came, minus what acts have taken.
    pub seen: HashMap<String, u32>,
    /// Signals that are ignored.
    pub ignored: HashSet<String>,
    /// Occasions that have come and whose acts have not begun.
    pub occasions: VecDeque<Occasion>,
    /// Tools that Pi wants run.
    pub to_run: VecDeque<ToolCall>,
    /// Running tools are to be killed.
    pub kill_tools: bool,
    /// What the reply that is being played changes in Pi's records.
    pub changes: Changes,
    /// Timers that are armed.
    pub timers: HashMap<TimerId, Instant>,
    /// A `retry` act fires the retry timer itself.
    pub own_retry: bool,
    /// The next uuid that Pi is to use.
    pub next_id: Arc<Mutex<Option<String>>>,
    /// Answered UI requests.
    pub answered: HashSet<String>,
    /// What `echo` can say.
    pub known: Known,
}

/// The lock, the condition, and what needs no lock.
#[derive(Clone)]
pub struct Stage {
    shared: Arc<(Mutex<State>, Condvar)>,
    stderr_failed: Arc<AtomicBool>,
    /// The journal.
    pub journal: Arc<Journal>,
    /// Standard output.
    pub out: Out,
    /// What this start was given.
    pub given: Arc<Given>,
}

/// What a start was given; it does not change.
#[derive(Debug)]
pub struct Given {
    /// The script.
    pub script: Script,
    /// The command line, understood.
    pub args: Args,
    /// The command line, as it came.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: String,
    /// The folder of script, barriers and journal.
    pub folder: PathBuf,
}

impl Stage {
    /// A stage.
    pub fn new(state: State, journal: Arc<Journal>, given: Given) -> Self {
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        Self {
            shared,
            stderr_failed: Arc::default(),
            journal,
            out: Out::default(),
            given: Arc::new(given),
        }
    }

    /// The state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits.
    pub fn wake(&self) {
        self.shared.1.notify_all();
    }

    /// Waits until `ready` gives something, at most until `deadline`; `None` when that is over. The condition is also
    /// looked at every few milliseconds, for what nobody wakes for (a barrier is a file).
    ///
    /// # Errors
    /// When an occasion comes first.
    pub fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, Interrupted> {
        let mut state = self.lock();
        loop {
            if let Some(occasion) = state.occasions.pop_front() {
                return Err(Interrupted(occasion));
            }
            if let Some(found) = ready(&mut state) {
                return Ok(Some(found));
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(None);
            }
            let most = Duration::from_millis(5);
            let wait = deadline.map_or(most, |deadline| most.min(deadline - now));
            state = self
                .shared
                .1
                .wait_timeout(state, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Brings an input to Pi and carries out what it says. Nothing happens before a session exists.
    pub fn tell(&self, input: Input<'_>) {
        let mut state = self.lock();
        self.tell_locked(&mut state, input);
        drop(state);
        self.wake();
    }

    /// As [`Stage::tell`], under a lock that is already held.
    pub fn tell_locked(&self, state: &mut State, input: Input<'_>) {
        let signal = match input {
            Input::Signal(signal) => Some(signal),
            _ => None,
        };
        let quick = signal.is_some();
        let Some(session) = &mut state.session else {
            return;
        };
        for output in session.handle(input, wall_ms()) {
            match output {
                Output::Record(record) => {
                    self.keep(state, &record);
                    if let Some(record) = state.changes.apply(record) {
                        let mut line = js::line(&record).into_bytes();
                        line.push(b'\n');
                        self.out.emit(line);
                    }
                }
                Output::Text(text) => self.out.emit(format!("{text}\n").into_bytes()),
                Output::Stderr(text) => self.stderr(format!("{text}\n").as_bytes()),
                Output::RunTool(call) => state.to_run.push_back(call),
                Output::KillTools => state.kill_tools = true,
                Output::Arm(TimerId::Retry, _) if state.own_retry => {}
                Output::Arm(timer, after) => {
                    state
                        .timers
                        .insert(timer, Instant::now() + Duration::from_millis(after));
                }
                Output::Disarm(timer) => {
                    state.timers.remove(&timer);
                }
                Output::Exit(ending)
                    if !quick && !state.idle && self.given.args.mode != Mode::Rpc =>
                {
                    state.ending = Some(ending);
                }
                Output::Exit(ending) => {
                    self.leave(ending, if quick { Duration::ZERO } else { LAST_WORDS })
                }
                // Replies and commands come from acts; without one, the model is silent and the command runs on.
                Output::WantModel(_)
                | Output::DropModel
                | Output::RunBash(_)
                | Output::KillBash => {}
            }
        }
        // To Pi itself this run is over; what still stands here is the script, and a signal ends that as it would end Pi.
        if let (Some(signal), Some(_)) = (signal, &state.ending) {
            let ending = match signal {
                Signal::Int => Ending::Signal(signal),
                other => Ending::Code(128 + other.number()),
            };
            self.leave(ending, Duration::ZERO);
        }
    }

    /// Ends the process. Records in the queue get `patience` to be written.
    pub fn leave(&self, ending: Ending, patience: Duration) -> ! {
        self.out.flush(patience);
        let (records, bytes) = self.out.written();
        self.journal.write(What::Wrote { records, bytes });
        match ending {
            Ending::Code(code) => {
                self.journal.write(What::Exit {
                    code: Some(code),
                    signal: None,
                });
                std::process::exit(code)
            }
            Ending::Signal(signal) => {
                self.journal.write(What::Exit {
                    code: None,
                    signal: Some(signal.name()),
                });
                descendant::end_by(signal.number(), &super::caught())
            }
        }
    }

    /// Writes to standard error, all of it. A reader that has gone is no reason to stop; the journal tells of the first
    /// write that failed.
    pub fn stderr(&self, bytes: &[u8]) {
        if let Err(error) = write_stderr(bytes)
            && !self.stderr_failed.swap(true, Ordering::Relaxed)
        {
            self.journal.write(What::WriteFailed {
                stream: "stderr".to_owned(),
                error: format!("{error:?}"),
            });
        }
    }

    /// Keeps a finished message in the session file, as Pi does.
    fn keep(&self, state: &State, record: &Value) {
        // Asked anew each time: `new_session` goes on in another file.
        let Some(session) = &state.session else {
            return;
        };
        if let Some(path) = session.session_file()
            && record["type"] == "message_end"
        {
            super::talk::append_message(Path::new(path), session.session_id(), &record["message"]);
        }
    }
}

/// Milliseconds since 1970, for records.
pub fn wall_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as u64)
}

fn write_stderr(mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match nix::unistd::write(std::io::stderr(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            // The end may be shared with somebody who made it non-blocking.
            Err(Errno::EAGAIN) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Puts `/dev/null` in the place of a standard stream: the pipe is closed, and its number is not given to another file.
pub fn close(stream: StreamName) {
    let Ok(null) = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    else {
        return;
    };
    let _ = match stream {
        StreamName::Stdin => nix::unistd::dup2_stdin(null),
        StreamName::Stdout => nix::unistd::dup2_stdout(null),
        StreamName::Stderr => nix::unistd::dup2_stderr(null),
    };
}

impl State {
    /// What came, by a command or signal: to an occasion's acts, to acts that wait for it, or to nobody (`false`).
    pub fn taken_by_acts(&mut self, occasion: Option<Occasion>, key: &str, caught: bool) -> bool {
        *self.seen.entry(key.to_owned()).or_default() += 1;
        if caught {
            return true;
        }
        let has_acts = |occasion: &Occasion| {
            self.chosen
                .as_ref()
                .is_some_and(|c| c.on.contains_key(occasion))
        };
        match occasion.filter(has_acts) {
            Some(occasion) => {
                self.occasions.push_back(occasion);
                true
            }
            None => false,
        }
    }

    /// Whether acts catch this signal.
    pub fn catches_signal(&self, name: &str) -> bool {
        self.catches.signals.contains(name)
    }

    /// Whether acts catch this command.
    pub fn catches_command(&self, name: &str) -> bool {
        self.catches.commands.contains(name)
    }

    /// Whether acts will take another prompt, once this many were taken.
    pub fn awaits_prompt(&self, taken: u32) -> bool {
        // The first one is never Pi's before the acts had their say.
        self.catches.prompts.max(1) > taken
    }

    /// Whether acts catch the end of input.
    pub fn catches_eof(&self) -> bool {
        self.catches.eof
    }
}

/// The occasion of a signal.
pub fn occasion(signal: Signal) -> Option<Occasion> {
    match signal {
        Signal::Term => Some(Occasion::Term),
        Signal::Int => Some(Occasion::Int),
        Signal::Hup => Some(Occasion::Hup),
        _ => None,
    }
}
