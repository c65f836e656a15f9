//! What goes into a run and what comes out of it: data without behaviour.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::framing::RECORD_CAP;

/// What is started, and under which limits.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Changes of its environment; `None` takes a variable away.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The task; it travels on standard input.
    pub task: String,
    /// Unique mark of the run, in its environment as [`MARK_VARIABLE`]: by it strays are told apart.
    pub mark: String,
    /// The limits.
    pub limits: Limits,
    /// Whether a run that is dropped in the middle kills its child. Only a mutant says no.
    pub kill_on_drop: bool,
}

/// The variable that carries a run's mark.
pub const MARK_VARIABLE: &str = "PI_DELEGATE_RUN_ID";

/// Limits of a run. Each is a bound that a promise rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock limit of the whole run.
    pub deadline: Duration,
    /// Limit of a tool that is known to be fast; `None`: only the deadline.
    pub tool_timeout: Option<Duration>,
    /// From the prompt to the first sign of its run; `None`: only the deadline.
    pub start_watchdog: Option<Duration>,
    /// Longest record, in bytes without its LF.
    pub record_cap: usize,
    /// Longest answer that is kept, in bytes.
    pub output_cap: usize,
    /// How much of the end of stderr is kept, in bytes.
    pub stderr_cap: usize,
    /// From SIGTERM to SIGKILL.
    pub term_grace: Duration,
    /// From SIGKILL to giving up on what it did not end.
    pub kill_grace: Duration,
    /// From the child's exit to giving up on the end of its pipes.
    pub post_exit_drain: Duration,
    /// From the settled answer to SIGTERM for a child that stays.
    pub post_answer_drain: Duration,
    /// From the child's exit to SIGTERM for what it left behind: what is about to end by itself is let go.
    pub linger: Duration,
    /// Silence after an `agent_end` that ends a run of a Pi without `agent_settled`.
    pub quiet: Duration,
    /// Whether a Bash tool that timed out or was aborted ends the run (a choice of the dialect).
    pub bash_timeout_ends_run: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(600),
            tool_timeout: None,
            start_watchdog: Some(Duration::from_secs(30)),
            record_cap: RECORD_CAP,
            output_cap: 50 * 1024,
            stderr_cap: 64 * 1024,
            term_grace: Duration::from_secs(2),
            kill_grace: Duration::from_secs(1),
            post_exit_drain: Duration::from_secs(1),
            post_answer_drain: Duration::from_secs(3),
            linger: Duration::from_millis(100),
            quiet: Duration::from_secs(1),
            bash_timeout_ends_run: true,
        }
    }
}

/// What a child was seen to do, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// The run began.
    Started,
    /// A tool began.
    Tool {
        /// Its name.
        name: String,
        /// The argument that says most.
        detail: String,
    },
}

/// Who told a run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The caller, or the parent's user.
    Aborted,
    /// The session ends.
    Shutdown,
}

/// Why a run ended. The first that comes holds; nothing that happens later changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The child said that all work is over.
    Settled,
    /// The child's output or the child itself ended first.
    Ended,
    /// It was told to stop.
    Stopped(Why),
    /// The deadline passed.
    Deadline,
    /// A tool that is known to be fast took too long.
    ToolTimeout(String),
    /// A Bash command ran into its own limit, or was aborted; Pi's words.
    BashTimeout(String),
    /// Nothing followed the prompt.
    NotStarted {
        /// Whether the prompt was answered at least.
        accepted: bool,
    },
    /// The prompt was refused, with these words.
    PromptRefused(String),
    /// A record that matters is over the cap.
    Oversized,
    /// The output ended inside its last record.
    IncompleteRecord,
    /// The child could not be started.
    Spawn(String),
}

/// How the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exit {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
}

/// What was needed to end the tree. These facts stand beside the cause and never change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleanup {
    /// SIGTERM was sent.
    pub term: bool,
    /// SIGKILL was sent.
    pub kill: bool,
    /// Both pipes came to their end.
    pub drained: bool,
    /// Processes that outlived the child.
    pub strays: usize,
    /// Processes that could not be ended, or a pipe that somebody unknown still holds.
    pub incomplete: bool,
}

impl Cleanup {
    /// Whether anything had to be forced.
    pub fn forced(&self) -> bool {
        self.term || self.kill || self.strays > 0
    }
}

/// How a run came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Why it ended.
    pub cause: Cause,
    /// Whether the last assistant message was complete when it ended.
    pub answered: bool,
    /// Text of that message, at most [`Limits::output_cap`] bytes.
    pub text: String,
    /// Bytes that it had before it was cut.
    pub original_bytes: u64,
    /// Its stop reason.
    pub stop_reason: String,
    /// Its error, bounded like the text.
    pub error: String,
    /// How the process ended.
    pub exit: Exit,
    /// Sum of the usage: input, output, cache read, cache write, total.
    pub tokens: [u64; 5],
    /// Sum of the cost, in dollars.
    pub cost: f64,
    /// The end of stderr.
    pub stderr_tail: String,
    /// What was needed to end the tree.
    pub cleanup: Cleanup,
    /// Remarks on what was not as it should be and did no harm.
    pub health: Vec<String>,
}
