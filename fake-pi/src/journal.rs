//! The journal: what one fake child (or one of its descendants) saw, as JSON lines.
//!
//! Each process writes a file of its own, `journal/PID-STARTTICKS.jsonl` beside the binary, one `write` call an entry
//! straight to the file: a killed process loses nothing that was already written. Times are `CLOCK_MONOTONIC`
//! nanoseconds, the clock that the runner uses too, so all witnesses stand on one line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use indexmap::IndexMap;
use nix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// When: `CLOCK_MONOTONIC`, nanoseconds.
    pub t_ns: u64,
    /// Which process wrote it.
    pub pid: i32,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What a journal entry says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// The process started; always the first entry.
    Start(Box<Start>),
    /// The script was picked. From here on the entries belong to `child`.
    Chosen {
        /// Name of the child in the script.
        child: String,
    },
    /// The task was read, by whatever way.
    Task {
        /// How it came: `rpc`, `argument`, `stdin`, `file`.
        via: String,
        /// The text, at most 4 KiB of it.
        text: String,
        /// Its length in bytes.
        bytes: u64,
        /// SHA-256 of the whole, hex.
        sha256: String,
        /// The word `kit-call-…` in it: which call of the runner this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The same for what begins with the runner's first mark, where something stands before it: a delegator may put a word of
        /// its own there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        marked: Option<Digest>,
    },
    /// One record from standard input.
    Stdin {
        /// The line without LF, at most 4 KiB of it, lossily decoded.
        line: String,
        /// Its length in bytes.
        bytes: u64,
        /// Its `type`, if it is a JSON object that has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// End of file on standard input.
    StdinEof,
    /// A signal arrived.
    Signal {
        /// Short name, such as `TERM`.
        name: String,
        /// Who sent it, where the kernel tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<i32>,
    },
    /// An act begins.
    Act {
        /// Its path in the script, such as `a.acts[2]` or `a.on.term[0]`.
        path: String,
        /// Its key, such as `answer`.
        act: String,
    },
    /// A `reach` act.
    Reach {
        /// Its name.
        name: String,
    },
    /// A descendant was started.
    Descendant {
        /// Its name.
        name: String,
        /// Its process id.
        child_pid: i32,
    },
    /// Everything written so far on standard output.
    Wrote {
        /// Records (lines) so far.
        records: u64,
        /// Bytes so far.
        bytes: u64,
    },
    /// A write failed (the reader has gone).
    WriteFailed {
        /// `stdout` or `stderr`.
        stream: String,
        /// The error's name, such as `EPIPE`.
        error: String,
    },
    /// The process is about to end by itself; always the last entry when there is one.
    Exit {
        /// Exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// Signal that it raises on itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
    /// The script could not be played as written.
    Fault {
        /// Why.
        message: String,
    },
}

/// State of a process at its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// `child` or `descendant`.
    pub role: String,
    /// Name of a descendant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Full argument vector.
    pub argv: Vec<String>,
    /// Whole environment.
    pub env: IndexMap<String, String>,
    /// Working directory, links resolved.
    pub cwd: String,
    /// Parent at the start.
    pub ppid: i32,
    /// What the parent ran (`/proc/PPID/cmdline`).
    pub parent_argv: Vec<String>,
    /// Process group.
    pub pgid: i32,
    /// Session.
    pub sid: i32,
    /// Start time in clock ticks since boot (`/proc/self/stat` field 22); with the pid it names the process for ever.
    pub start_ticks: u64,
    /// Open descriptors: number and what `/proc/self/fd` shows.
    pub fds: Vec<Descriptor>,
    /// Blocked signals, by name.
    pub blocked: Vec<String>,
    /// Ignored signals, by name.
    pub ignored: Vec<String>,
}

/// A text by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Digest {
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// One open descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Descriptor {
    /// Its number.
    pub fd: i32,
    /// What it is, such as `pipe:[123]`.
    pub target: String,
}

/// Longest text that an entry carries whole, in bytes.
pub const TEXT_LIMIT: usize = 4096;

/// `CLOCK_MONOTONIC`, nanoseconds.
pub fn now_ns() -> u64 {
    // The clock is always there on Linux; zero would only show an entry at the wrong place.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

/// At most [`TEXT_LIMIT`] bytes of a text, cut at a character.
pub fn bounded(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_LIMIT)].to_owned()
}

/// Writes the journal of this process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    pid: i32,
}

impl Journal {
    /// Makes the journal of this process in `folder`, and the folder too. `start` is its first entry.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn create(folder: &Path, start: Start) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let pid = nix::unistd::getpid().as_raw();
        let path = folder.join(format!("{pid}-{}.jsonl", start.start_ticks));
        // Rust opens files close-on-exec, so no descendant inherits it.
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let journal = Self { file, pid };
        journal.write(What::Start(Box::new(start)));
        Ok(journal)
    }

    /// Writes one entry with one `write` call.
    pub fn write(&self, what: What) {
        let entry = Entry {
            t_ns: now_ns(),
            pid: self.pid,
            what,
        };
        if let Ok(mut line) = serde_json::to_vec(&entry) {
            line.push(b'\n');
            // A full disk loses the witness, not the act; the runner sees that the journal stops.
            let _ = (&self.file).write_all(&line);
        }
    }
}
