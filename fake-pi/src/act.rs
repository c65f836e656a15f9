//! The act language: what one fake child does, as data.
//!
//! A [`Script`] lies beside the fake-pi binary and holds one or more [`Child`]ren. A child is picked by a mark
//! (in the task, the arguments or the working directory), never by start order. Its acts run from top to bottom;
//! what Pi itself does about them (responses, queues, the order of events, exit codes) follows the recordings of
//! the real Pi, unless an act goes below that level and writes records or raw bytes itself.
//!
//! ```yaml
//! children:
//!   a:
//!     - accept: prompt
//!     - descendant: {holds: [stdout], lives: 60s}
//!     - answer: two files found
//!     - exit: 0
//! ```
//!
//! These types are the language: the published JSON schema, the loader's errors and the player all come from them.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod units;

pub use units::{Size, Span};

/// Implements `Deserialize` for an enum of a short and a long form: the shape of the value decides, so that what is
/// wrong inside is told in the words of that form. (serde's own untagged enums only say that nothing matched.)
#[macro_export]
macro_rules! by_shape {
    ($type:ident, $what:literal, $($shape:pat => $variant:ident),+ $(,)?) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error;
                let value = serde_json::Value::deserialize(deserializer)?;
                match &value {
                    $($shape => serde_json::from_value(value).map(Self::$variant).map_err(D::Error::custom),)+
                    #[allow(unreachable_patterns)]
                    _ => Err(D::Error::custom(concat!("expected ", $what))),
                }
            }
        }
    };
}

/// All children that one folder's fake-pi may be asked to play.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Script {
    /// Children by name. With exactly one, every start plays it; with several, each start is matched by its mark.
    pub children: IndexMap<String, Child>,
}

/// One child: a plain list of acts, or acts with a flavour and a mark of its own.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Child {
    /// Just the acts.
    Acts(Vec<Act>),
    /// Acts with settings.
    Full(FullChild),
}

by_shape!(Child, "a list of acts, or a map with `acts`", Value::Array(_) => Acts, Value::Object(_) => Full);

/// A child with settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FullChild {
    /// Which Pi line it speaks like; default 1.6.0.
    #[serde(default)]
    pub flavour: Flavour,
    /// What picks this child. Default: the word `kit-child-NAME` in the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Mark>,
    /// What it does.
    pub acts: Vec<Act>,
    /// What it does when something happens, in place of what Pi would do.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub on: IndexMap<Occasion, Vec<Act>>,
}

/// Which Pi line a child speaks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Flavour {
    /// `@earendil-works/pi-coding-agent` 1.6.0: `agent_settled`, `willRetry`, deltas.
    #[default]
    #[serde(rename = "1.6.0")]
    V1_6_0,
    /// `@mariozechner/pi-coding-agent` 0.73.1: no `agent_settled`, cumulative updates.
    #[serde(rename = "0.73.1")]
    V0_73_1,
}

/// What picks a child; all that is given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mark {
    /// A word in the task text. In RPC mode the task is known only once the prompt has been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// A word in any argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<String>,
    /// The end of the working directory's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Something that may happen to a child at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// An `abort` command was read.
    Abort,
    /// A `steer` command was read.
    Steer,
    /// A second `prompt`, or any prompt while the acts run.
    Prompt,
    /// Standard input came to its end.
    Eof,
    /// SIGTERM arrived.
    Term,
    /// SIGINT arrived.
    Int,
    /// SIGHUP arrived.
    Hup,
}

/// One act. Each is a map with one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    // ---- what Pi says -------------------------------------------------------------------------------------
    /// Wait for the prompt and take it the way Pi does: the response, then the opening events of a run.
    Accept(Command),
    /// Wait for the prompt and answer success, but start no run.
    Acknowledge(Command),
    /// Wait for the prompt and refuse it with this error text.
    Reject(String),
    /// Wait for the prompt (it is journalled) and say nothing.
    Read(Command),
    /// The model's last answer of a run: the whole message with its deltas, then the end of the run.
    Answer(Reply),
    /// One model reply. With `tools` the run goes on (tool events, next turn); without, it ends like `answer`.
    Reply(Reply),
    /// Deltas of an answer that is not finished by this act.
    Stream(Stream),
    /// One tool call's events, or only one end of it.
    Tool(Tool),
    /// An attempt that fails with a retryable error: error turn, `agent_end` (willRetry), `auto_retry_start`.
    Retry(Retry),
    /// A compaction: start and end.
    Compaction(Compaction),
    /// An `extension_ui_request`; with `wait` the acts go on once it was answered.
    Ask(Ask),
    /// One record, exactly these fields in this order.
    Record(Value),

    // ---- bytes ----------------------------------------------------------------------------------------------
    /// Bytes on standard output as they are.
    Raw(Raw),
    /// Runs acts, but changes how their bytes reach the pipe.
    Written(Written),
    /// One record of exactly `bytes` bytes (without the LF).
    Big(Big),
    /// Bytes without any LF.
    Endless(Endless),
    /// Very many lines or records.
    Flood(Flood),
    /// N bytes of a named mix of records, as fast as the pipe takes them, then the answer.
    Firehose(Firehose),

    // ---- time -----------------------------------------------------------------------------------------------
    /// Wait for a time, or for a fact.
    Wait(Wait),
    /// Say that this point is reached (a journal entry that steps and checks can name).
    Reach(String),
    /// Do nothing for ever. Commands and signals are still handled as Pi would.
    Hang(Always),
    /// Repeat acts.
    Loop(Loop),

    // ---- process --------------------------------------------------------------------------------------------
    /// End with this code, at once, without draining anything.
    Exit(i32),
    /// End by this signal.
    Die(Signal),
    /// Ignore these signals from here on.
    Ignore(Vec<Signal>),
    /// Close one of the standard streams.
    Close(StreamName),
    /// Stop reading standard input (so a writer can fill the pipe). `resume-reading` undoes it.
    StopReading(Always),
    /// Read standard input again.
    ResumeReading(Always),
    /// Start a process below this child.
    Descendant(Descendant),
    /// Text on standard error.
    Stderr(Raw),
    /// Write a Pi session file with the answer, at `--session` or in `--session-dir`.
    SessionFile(SessionFile),
    /// Make a file in the working directory (absolute paths too), to show that an act was reached.
    Touch(String),
}

/// The command that an act waits for; only `prompt` exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// The prompt: RPC record, last argument, standard input, or `@FILE`.
    Prompt,
}

/// `true`, for acts that take no argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Always(pub bool);

/// A model reply: a text alone, or with details.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reply {
    /// The text; it stops naturally.
    Text(String),
    /// With details.
    Full(Box<FullReply>),
}

by_shape!(Reply, "a text, or a map", Value::String(_) => Text, Value::Object(_) => Full);

/// A model reply with details. Nothing given means an empty text with a natural stop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FullReply {
    /// The text of the answer.
    pub text: Option<String>,
    /// The text is this piece, repeated.
    pub repeat: Option<Repeat>,
    /// The text comes from the call: see [`Echo`].
    pub echo: Option<Echo>,
    /// Several text blocks in place of one.
    pub blocks: Vec<String>,
    /// Reasoning, streamed before the text.
    pub thinking: Option<String>,
    /// Tools that the model calls. The run then goes on with the next `reply` or `answer`.
    pub tools: Vec<Tool>,
    /// `stop`, `length`, `toolUse`, `error`, `aborted`, or any other word. Default by content.
    pub stop: Option<String>,
    /// `errorMessage` of the message; the stop reason is then `error`.
    pub error: Option<String>,
    /// `errorMessage` is this piece, repeated.
    pub error_repeat: Option<Repeat>,
    /// Token usage.
    pub usage: Option<Usage>,
    /// Characters a delta; default: words.
    pub chunk: Option<usize>,
    /// `false`: no deltas, only message start and end.
    pub deltas: Option<bool>,
    /// `false`: stop after `message_end`; no `turn_end`, `agent_end`, `agent_settled`.
    pub settle: Option<bool>,
    /// `false`: stop after `agent_end`; no `agent_settled`.
    pub settled: Option<bool>,
}

/// A piece of text and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Repeat {
    /// The piece.
    pub piece: String,
    /// How often; or give `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Up to this many bytes of UTF-8 (whole pieces, then cut at a character boundary).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Put before it, once (to move what follows by a byte).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
}

/// Where an answer's text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// The whole task.
    Task,
    /// The word `kit-call-…` in the task, which the runner puts there for each call.
    Call,
    /// The SHA-256 of the task's UTF-8 bytes, in hex.
    TaskHash,
    /// The SHA-256 of `--system-prompt` (the file's content if it names one).
    PromptHash,
}

/// Token usage of one message. What is not given is zero.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Usage {
    /// Prompt tokens without cached ones.
    pub input: u64,
    /// Completion tokens.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
    /// Reasoning tokens (part of `output`).
    pub reasoning: u64,
}

/// Deltas without an end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stream {
    /// Text of each delta.
    pub text: String,
    /// How many; absent: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Pause after each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Tool {
    /// The tool's name; default `read`.
    pub name: Option<String>,
    /// The call's id; default `call_N`.
    pub id: Option<String>,
    /// Arguments; default `{}`.
    pub args: Option<Value>,
    /// Text of the result.
    pub output: Option<String>,
    /// The result's text is this piece, repeated.
    pub output_repeat: Option<Repeat>,
    /// The tool failed (`isError`).
    pub error: bool,
    /// Only this part of the events.
    pub phase: Phase,
    /// A real command, run as Pi's bash tool runs one (own session); in place of `output`.
    pub exec: Option<String>,
}

/// Which part of a tool call's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Start, an update, end.
    #[default]
    Whole,
    /// Only the start.
    Start,
    /// Only an update.
    Update,
    /// Only the end.
    End,
}

/// An attempt that fails and is retried.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Retry {
    /// Error text of the failed attempt.
    pub error: String,
    /// Which attempt comes next, from 1.
    pub attempt: u32,
    /// Of how many; default 3.
    pub of: Option<u32>,
    /// Pause before the next attempt starts (its `agent_start` is written after it).
    pub delay: Option<Span>,
    /// Text that had already come when the attempt failed.
    pub text: Option<String>,
    /// `true`: this was the last attempt; `agent_end(willRetry false)`, `auto_retry_end(false)`, settled.
    pub last: bool,
}

/// A compaction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Compaction {
    /// `manual`, `threshold` (default) or `overflow`.
    pub reason: Option<String>,
    /// `willRetry` of its end.
    pub will_retry: bool,
    /// `errorMessage` of its end.
    pub error: Option<String>,
    /// Only the start.
    pub start_only: bool,
}

/// A UI request to the parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ask {
    /// `confirm`, `select`, `input`, `editor`, `notify`, `setStatus`, …
    pub method: String,
    /// Its id; default a fresh uuid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Further fields as Pi sends them (`title`, `message`, `options` …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Value>,
    /// Wait for the response before the next act. While it waits, SIGTERM and end of input are held off as in 1.6.0.
    #[serde(default)]
    pub wait: bool,
}

/// Bytes as they are: a text alone, or with details.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Raw {
    /// These characters as UTF-8; no LF is added.
    Text(String),
    /// With details.
    Full(Box<FullRaw>),
}

by_shape!(Raw, "a text, or a map", Value::String(_) => Text, Value::Object(_) => Full);

/// Bytes with details.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FullRaw {
    /// Characters as UTF-8.
    pub text: Option<String>,
    /// Base64 of any bytes.
    pub base64: Option<String>,
    /// Hexadecimal of any bytes, blanks allowed.
    pub hex: Option<String>,
    /// A piece, repeated.
    pub repeat: Option<Repeat>,
    /// A record (compact JSON), cut to its first `cut` bytes when that is given.
    pub record: Option<Value>,
    /// Keep only this many bytes.
    pub cut: Option<Size>,
    /// Add an LF.
    pub lf: bool,
}

/// How the bytes of the acts inside reach the pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Written {
    /// The acts.
    #[serde(rename = "do")]
    pub acts: Vec<Act>,
    /// Collect everything and write it with one call (as far as the pipe takes it).
    #[serde(default)]
    pub burst: bool,
    /// Pieces of this many bytes, each its own write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<usize>,
    /// Cut at these byte offsets of the whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<u64>,
    /// Pause between writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// CR LF in place of LF.
    #[serde(default)]
    pub crlf: bool,
    /// `false`: leave out the very last LF.
    #[serde(default = "yes")]
    pub last_lf: bool,
    /// Keep only this many bytes of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Size>,
}

fn yes() -> bool {
    true
}

/// One record of an exact size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Big {
    /// `tool_execution_end`, `tool_execution_update`, `message_update`, `message_end` (an assistant's answer), `unknown`.
    pub record: String,
    /// Bytes of the line without its LF.
    pub bytes: Size,
    /// `false`: no LF after it.
    #[serde(default = "yes")]
    pub lf: bool,
}

/// Bytes without LF.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Endless {
    /// How many bytes.
    pub bytes: Size,
    /// They start like this (default: a text delta's head, so that they look like a record).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// On standard error in place of standard output.
    #[serde(default)]
    pub stderr: bool,
}

/// Very many lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flood {
    /// `stdout` (deltas) or `stderr` (numbered lines `line N …`).
    pub stream: StreamName,
    /// How many lines; or give `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// About how many bytes in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// This record in place of a delta.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Value>,
}

/// A stream for measuring a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Firehose {
    /// About how many bytes.
    pub bytes: Size,
    /// `deltas` (default), `mixed`, `large`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<String>,
}

/// Wait for a time or a fact.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Wait {
    /// This long.
    For(Span),
    /// Until this.
    Until(WaitFor),
}

by_shape!(
    Wait,
    "a time, or a map with what to wait for",
    Value::String(_) | Value::Number(_) => For,
    Value::Object(_) => Until
);

/// A fact to wait for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitFor {
    /// The runner opens this barrier.
    Barrier(String),
    /// A command of this type is read from standard input.
    Command(String),
    /// This signal arrives (it then has no other effect, if the acts catch it).
    Signal(Signal),
    /// Standard input comes to its end.
    Eof(Always),
    /// The named descendant has ended.
    Descendant(String),
}

/// Repeats acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Loop {
    /// How often; absent: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The acts.
    #[serde(rename = "do")]
    pub acts: Vec<Act>,
    /// Pause after each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
}

/// Standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamName {
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Signals by their usual short names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Signal {
    Hup,
    Int,
    Quit,
    Abrt,
    Kill,
    Usr1,
    Segv,
    Usr2,
    Pipe,
    Term,
    Chld,
}

impl Signal {
    /// Its number.
    pub fn number(self) -> i32 {
        use nix::sys::signal::Signal as Kernel;
        let signal = match self {
            Self::Hup => Kernel::SIGHUP,
            Self::Int => Kernel::SIGINT,
            Self::Quit => Kernel::SIGQUIT,
            Self::Abrt => Kernel::SIGABRT,
            Self::Kill => Kernel::SIGKILL,
            Self::Usr1 => Kernel::SIGUSR1,
            Self::Segv => Kernel::SIGSEGV,
            Self::Usr2 => Kernel::SIGUSR2,
            Self::Pipe => Kernel::SIGPIPE,
            Self::Term => Kernel::SIGTERM,
            Self::Chld => Kernel::SIGCHLD,
        };
        signal as i32
    }

    /// Its short name, as in scripts and journals.
    pub fn name(self) -> String {
        crate::start::signal_name(self.number())
    }
}

/// A process below the child. It journals its own start, its signals and (when it can) its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Descendant {
    /// Its name in the journal; default `descendant`.
    pub name: Option<String>,
    /// Which of the child's streams it keeps open; the others are `/dev/null`.
    pub holds: Vec<StreamName>,
    /// Signals that it ignores.
    pub ignores: Vec<Signal>,
    /// How long it lives; default 60 s.
    pub lives: Option<Span>,
    /// Its own process group.
    pub group: bool,
    /// Its own session (setsid).
    pub session: bool,
    /// Forked twice, so that its parent is gone.
    pub double_fork: bool,
    /// It writes this text to the first stream that it holds, again and again.
    pub writes: Option<String>,
    /// Pause between those writes; default 20 ms.
    pub every: Option<Span>,
    /// It has ended at once and is never reaped by the child.
    pub zombie: bool,
    /// Its environment is scrubbed: no marker of the delegator is left in it.
    pub scrubbed: bool,
}

/// A session file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SessionFile {
    /// The assistant's text in it.
    pub text: String,
    /// Its stop reason; default `stop`.
    pub stop: Option<String>,
}
