//! What runner and warden say to each other: JSON lines on one socket.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::evidence::{Process, Snapshot};

/// Environment variable that marks everything below a warden; its value is unique for each warden.
pub const MARK: &str = "PI_CONFORM_MARK";

/// From the runner. The first one is `Start`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Start the subject.
    Start(Box<Start>),
    /// Take a snapshot of the subject.
    Sample {
        /// Comes back with it.
        id: u64,
        /// Count the peak of memory anew, from after this sample.
        reset_peak: bool,
    },
    /// Send a signal to the subject itself.
    Signal {
        /// Full name, such as `SIGTERM`.
        signal: String,
    },
    /// The scenario is over. Wait this long for the tree to be empty, tell what survives, end it.
    Finish {
        /// Milliseconds.
        grace_ms: u64,
    },
}

/// How to start the subject.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Start {
    /// Program (an absolute path) and arguments.
    pub argv: Vec<String>,
    /// Its whole environment; the mark is added.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub cwd: String,
    /// Value of [`MARK`].
    pub mark: String,
    /// Signals that it inherits blocked, by full name.
    pub blocked: Vec<String>,
    /// Signals that it inherits ignored, by full name.
    pub ignored: Vec<String>,
    /// Limit of open descriptors.
    pub descriptors: Option<u64>,
    /// Folders in which a new file says that a process started.
    pub journals: Vec<String>,
    /// The scenario's folder: removed when the runner dies.
    pub folder: Option<String>,
}

/// From the warden.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// The subject runs.
    Started {
        /// When.
        t_ns: u64,
        /// Its process id.
        pid: i32,
    },
    /// It could not be started.
    NotStarted {
        /// Why.
        message: String,
    },
    /// A process was seen for the first time.
    Seen {
        /// When.
        t_ns: u64,
        /// It.
        process: Process,
    },
    /// A process has ended.
    Gone {
        /// When.
        t_ns: u64,
        /// Its id.
        pid: i32,
        /// Its start time.
        start_ticks: u64,
    },
    /// An orphan came home and was reaped.
    Reaped {
        /// When.
        t_ns: u64,
        /// Its id.
        pid: i32,
        /// Exit code.
        code: Option<i32>,
        /// Signal, by short name.
        signal: Option<String>,
    },
    /// The subject itself has ended.
    Exited {
        /// When.
        t_ns: u64,
        /// Exit code.
        code: Option<i32>,
        /// Signal, by short name.
        signal: Option<String>,
    },
    /// A snapshot; `id` 0 for those that the warden takes by itself.
    Sampled {
        /// Of the order.
        id: u64,
        /// When.
        t_ns: u64,
        /// `None`: the subject was gone.
        snapshot: Option<Snapshot>,
    },
    /// A piece of the subject's standard error, base64.
    Stderr(String),
    /// What was alive at the end.
    Survivors {
        /// When it was looked.
        t_ns: u64,
        /// They.
        processes: Vec<Process>,
    },
    /// Something that the warden should be able to do, but could not.
    Fault {
        /// What.
        message: String,
    },
    /// All is ended; the warden goes.
    Done,
}

/// Bytes of standard error as a report carries them.
pub fn encode_stderr(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

impl Report {
    /// The bytes of a [`Report::Stderr`].
    pub fn stderr_bytes(text: &str) -> Vec<u8> {
        STANDARD.decode(text).unwrap_or_default()
    }
}
