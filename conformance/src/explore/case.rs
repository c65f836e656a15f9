//! A case: what each child does and when its call is aborted.

/// A scenario before it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The calls, each with a child of its own.
    pub calls: Vec<Call>,
    /// All at once; otherwise one after the other.
    pub together: bool,
    /// A deadline ends what does not end by itself, where the subject has one; otherwise an abort does.
    pub deadline: bool,
}

/// One call and its child.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Processes that the child starts first.
    pub descendants: Vec<Descendant>,
    /// What comes before the end of the run.
    pub noise: Vec<Noise>,
    /// How the run ends.
    pub ending: Ending,
    /// The child ignores SIGTERM.
    pub stubborn: bool,
    /// How its bytes reach the pipe.
    pub chop: Option<Chop>,
    /// The call's own abort.
    pub abort: Abort,
}

/// A process below the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descendant {
    /// It keeps standard output open.
    pub stdout: bool,
    /// It keeps standard error open.
    pub stderr: bool,
    /// It ignores SIGTERM.
    pub stubborn: bool,
    /// It has a session of its own.
    pub session: bool,
    /// It was forked twice.
    pub double_fork: bool,
    /// It goes on writing to what it holds.
    pub writes: bool,
}

/// What a run may have before its end, and what does not change how it ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// A tool call with its result.
    Tool(String),
    /// An attempt that fails and is repeated.
    Retry,
    /// A compaction.
    Compaction,
    /// A line that is no JSON.
    Malformed,
    /// A record that nobody knows.
    Unknown,
    /// JSON that is no object.
    Scalar,
    /// An empty line.
    Blank,
    /// A record of this many bytes that carries no answer.
    Big(u64),
    /// This many bytes on standard error.
    Stderr(u64),
    /// A question to the user, which the child waits for.
    Dialog,
    /// An earlier reply, which is not the last.
    Reply(String),
    /// A pause, milliseconds.
    Pause(u64),
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// With this answer; the child then waits for the end of its input.
    Answer(String),
    /// With this answer; the child then ends.
    AnswerExit(String),
    /// With this answer; the child then stays whatever happens to its input.
    AnswerStay(String),
    /// Cut by the token limit, with this much text.
    Length(String),
    /// With the provider's error.
    Error(String),
    /// The prompt is refused.
    Rejected,
    /// The child ends with this code, without an answer.
    Exit(i32),
    /// The child dies by a signal, without an answer.
    Killed,
    /// The last record is cut in the middle.
    Cut,
    /// Never.
    Hang,
    /// Never, with deltas for ever.
    Stream,
}

/// How bytes reach the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chop {
    /// So many bytes at a time; 0: all at once.
    pub every: usize,
    /// CR LF in place of LF.
    pub crlf: bool,
}

/// When a call's own abort is fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abort {
    /// Never.
    No,
    /// Once the child is at work.
    AtWork,
    /// This many milliseconds after the call was sent, whatever happens then.
    After(u64),
}

impl Ending {
    /// It ends only because somebody ends it.
    pub fn is_endless(&self) -> bool {
        matches!(self, Self::Hang | Self::Stream)
    }
}
