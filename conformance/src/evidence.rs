//! Evidence: all that the three witnesses saw in one scenario, on one clock.
//!
//! The runner writes it, the judge reads it, nothing else passes between them. On disk it is a bundle:
//!
//! ```text
//! BUNDLE/
//!   bundle.json      the expanded scenario, the resolved adapter, who and when  (Header)
//!   events.jsonl     what the runner did and heard, what the warden saw         (Event)
//!   journal/*.jsonl  what each fake child and descendant wrote                  (fake_pi::journal::Entry)
//!   stderr/NAME.log  what each subject wrote on standard error
//! ```

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapter::Adapter;
use crate::scenario::Scenario;

/// Format number of bundles; a reader refuses a higher one.
pub const FORMAT: u32 = 1;

/// `bundle.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Full name with axis values.
    pub name: String,
    /// Area: the folder that the scenario lies in.
    pub area: String,
    /// The scenario after expansion; figures and axis values are filled in.
    pub scenario: Scenario,
    /// The adapter as it was used.
    pub adapter: Adapter,
    /// Axis values.
    pub axes: IndexMap<String, Value>,
    /// When it started (RFC 3339).
    pub started: String,
    /// Folders by name (`run`, `work`, `agent`, `home`, `project`, `tmp`, `child`).
    pub folders: IndexMap<String, String>,
    /// One line that runs it again.
    pub reproduce: String,
}

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// `CLOCK_MONOTONIC` nanoseconds.
    pub t_ns: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    // ---- the runner's own doing -----------------------------------------------------------------------------
    /// A step begins.
    Step {
        /// Its place, such as `steps[2]` or `steps[1].do[0]#3`.
        path: String,
        /// Its key.
        step: String,
    },
    /// A wait ran out of patience.
    GaveUp {
        /// The step's place.
        path: String,
        /// What was waited for.
        fact: String,
    },
    /// A subject was started.
    SubjectStarted {
        /// `subject`, or the name given by a `subject` step.
        subject: String,
        /// Its process id.
        pid: i32,
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A subject ended.
    SubjectExited {
        /// Its name.
        subject: String,
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<String>,
    },
    /// A signal was sent to a subject by a step.
    SubjectSignalled {
        /// Its name.
        subject: String,
        /// Signal.
        signal: String,
    },
    /// The subject's input was closed.
    InputClosed {
        /// Its name.
        subject: String,
    },
    /// A call was sent.
    CallSent {
        /// Its name.
        call: String,
        /// Which subject.
        subject: String,
        /// JSON-RPC id.
        id: u64,
        /// Child that it is meant for.
        child: Option<String>,
        /// Its unique word, which also stands in the task: `kit-call-N`.
        word: String,
        /// Tool.
        tool: String,
        /// Arguments as sent (strings over 4 KiB are cut and say so).
        arguments: Value,
        /// The exact task's SHA-256 and length in bytes.
        task_sha256: String,
        /// Bytes of the task.
        task_bytes: u64,
    },
    /// The abort of a call was sent.
    AbortSent {
        /// Its name.
        call: String,
    },

    // ---- witness 1: the subject's claims ------------------------------------------------------------------------
    /// The `initialize` answer.
    Initialized {
        /// Which subject.
        subject: String,
        /// Its result.
        result: Value,
    },
    /// Answer to `tools/list`, under the step's name.
    Tools {
        /// Name given by the step.
        name: String,
        /// The tools.
        tools: Value,
    },
    /// A response to a call: the first settles it, further ones are evidence against the subject.
    Response {
        /// Which call.
        call: String,
        /// `result` of a `tools/call`.
        result: Option<Value>,
        /// JSON-RPC error.
        error: Option<Value>,
    },
    /// Progress of a call.
    Update {
        /// Which call.
        call: String,
        /// The notification's parameters.
        params: Value,
    },
    /// Any other notification or request of the subject.
    Notification {
        /// Which subject.
        subject: String,
        /// Method.
        method: String,
        /// Parameters.
        params: Value,
    },
    /// A message that the subject put before the parent's model by itself, with no prompt of the runner's.
    Pushed {
        /// Which subject.
        subject: String,
        /// The message.
        text: String,
    },
    /// A line on the subject's output that is not a valid message, or answers nothing.
    Stray {
        /// Which subject.
        subject: String,
        /// What is wrong with it.
        problem: String,
        /// The line (at most 4 KiB).
        line: String,
    },

    // ---- witness 3: the kernel -----------------------------------------------------------------------------------
    /// A process below the warden was seen for the first time.
    ProcessSeen(Box<Process>),
    /// A process that was seen is no longer there.
    ProcessGone {
        /// Its id.
        pid: i32,
        /// Start time; pid and this name it.
        start_ticks: u64,
    },
    /// The warden reaped an orphan that came home to it.
    OrphanReaped {
        /// Its id.
        pid: i32,
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<String>,
    },
    /// A snapshot of one subject.
    Sample {
        /// Name given by the step; `auto` for those that the warden takes by itself.
        name: String,
        /// Which subject.
        subject: String,
        /// What it has.
        sample: Snapshot,
    },
    /// After the subject has ended and its grace is over: what is still alive. Taken before the warden ends it.
    Survivors {
        /// They.
        processes: Vec<Process>,
    },
    /// Files left behind in the temporary folder at the end.
    Leftovers {
        /// Paths with their mode (octal), relative to the folder.
        files: IndexMap<String, String>,
    },
    /// Every file below the scenario's work folders at the end, to show what was made there.
    WorkFiles {
        /// Paths relative to the scenario's folder.
        files: Vec<String>,
    },
    /// The machine stalled: a thread of the runner that should have run did not.
    Stall {
        /// How long, nanoseconds.
        ns: u64,
    },
    /// The harness itself could not do something. The verdict is then `harness-error`.
    HarnessError {
        /// Why.
        message: String,
    },
    /// The end of the scenario.
    End,
}

/// A process as the kernel showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
    /// Parent.
    pub ppid: i32,
    /// Process group.
    pub pgid: i32,
    /// Session.
    pub sid: i32,
    /// State letter of `/proc/PID/stat`.
    pub state: String,
    /// Command line.
    pub argv: Vec<String>,
}

/// What one process has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Resident memory, bytes.
    pub rss: u64,
    /// Highest resident memory so far, bytes (`VmHWM`).
    pub peak_rss: u64,
    /// Open descriptors.
    pub fds: u64,
    /// Threads.
    pub threads: u64,
    /// Live children.
    pub children: u64,
    /// Zombie children.
    pub zombies: u64,
}

/// All evidence of one scenario, in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// `bundle.json`.
    pub header: Header,
    /// Events in order of time.
    pub events: Vec<Event>,
    /// Journals of all fake processes, each in its own order.
    pub journals: Vec<Vec<fake_pi::journal::Entry>>,
    /// Standard error of each subject (at most 1 MiB each).
    pub stderr: IndexMap<String, String>,
}
