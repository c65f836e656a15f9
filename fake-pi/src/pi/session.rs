//! The state machine: inputs, runs, turns, abort, and the end.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::entries::Entries;
use super::extension::{Deed, Moment};
use super::handlers::Handler;
use super::ids::Ids;
use super::message::{Change, Message, ToolCall};
use super::options::{Mode, Options};
use super::print_mode::Print;
use super::provider::ModelPiece;
use super::queue::Queue;
use super::recovery::Compaction;
use super::tools::ToolResult;
use super::turn::Batch;
use crate::act::{Flavour, Signal};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input<'a> {
    /// The process is up. Must come first, once.
    Start,
    /// A line of standard input, without its LF.
    Line(&'a [u8]),
    /// Several lines that were read at once: Pi takes all of them up before it answers the first.
    Lines(&'a [&'a [u8]]),
    /// Standard input came to its end.
    Eof,
    /// A signal arrived.
    Signal(Signal),
    /// A piece of the reply that was asked for; its records are written at once.
    Model(ModelPiece),
    /// A piece of the reply was read, but Pi has not come to write about it yet.
    ModelAhead(ModelPiece),
    /// Pi writes the next record about what it has read. The pieces are read after it took the event up and before it
    /// wrote the record.
    Emit(&'a [ModelPiece]),
    /// A running tool shows its output so far.
    ToolUpdate {
        /// The call.
        id: &'a str,
        /// Its whole output so far.
        text: &'a str,
        /// `details` of the partial result (`{}` for bash).
        details: Option<Value>,
    },
    /// A tool has ended.
    ToolEnd {
        /// The call.
        id: &'a str,
        /// With what.
        result: ToolResult,
    },
    /// The command of an RPC `bash` printed something.
    BashOutput(&'a str),
    /// The command of an RPC `bash` ended: its exit code, `None` when it was aborted.
    BashEnd(Option<i32>),
    /// A timer has expired.
    Timer(TimerId),
    /// A run begins again without a prompt (a script whose child speaks on after the end of a run).
    Again,
    /// An extension acts on its own, outside any moment (a script's `ask` act).
    Deeds(Vec<Deed>),
}

/// A timer that the session may ask for; each is armed at most once at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimerId {
    /// The wait before a retry.
    Retry,
    /// The client library's own wait before it repeats a request.
    HiddenRetry,
    /// An extension's dialog is answered by Pi itself.
    Dialog,
}

/// What the session wants of the outside, or says to it. In order.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A record for standard output; write it with [`super::js::line`].
    Record(Value),
    /// A line of plain text for standard output (text mode).
    Text(String),
    /// A line for standard error.
    Stderr(String),
    /// A model reply is wanted.
    WantModel(Purpose),
    /// The reply is not wanted any more.
    DropModel,
    /// This tool is to be run; [`Input::ToolEnd`] is expected for it.
    RunTool(ToolCall),
    /// All running tools are to be killed. Each still has to end.
    KillTools,
    /// This command of an RPC `bash` is to be run.
    RunBash(String),
    /// That command is to be killed. It still has to end.
    KillBash,
    /// A timer is to be set, in milliseconds.
    Arm(TimerId, u64),
    /// A timer is off.
    Disarm(TimerId),
    /// The process ends.
    Exit(Ending),
}

/// What a model reply is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The next answer of the conversation.
    Answer,
    /// A summary, for a compaction.
    Summary,
}

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With an exit code.
    Code(i32),
    /// By this signal.
    Signal(Signal),
}

/// Where a session stands (the picture is in the module's text).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Requested,
    Streaming,
    Tools,
    RetryWait,
    Compacting,
    Over,
}

/// One agent run: from `agent_start` to `agent_end`.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) messages: Vec<Value>,
}

/// One Pi process, seen from its pipes.
pub struct Session {
    pub(super) options: Options,
    pub(super) ids: Box<dyn Ids>,
    pub(super) now: u64,
    pub(super) out: Vec<Output>,
    pub(super) phase: Phase,
    pub(super) queue: Queue,
    pub(super) transcript: Vec<Value>,
    pub(super) entries: Entries,
    pub(super) session_id: String,
    pub(super) session_name: Option<String>,
    pub(super) run: Option<Run>,
    /// The answer that is being made, and what is not written of it yet.
    pub(super) message: Option<Message>,
    pub(super) changes: VecDeque<Change>,
    /// Whether the error of the last answer is worth another attempt, or means a full window.
    pub(super) transient: bool,
    pub(super) overflow: bool,
    pub(super) last_stop: String,
    pub(super) batch: Batch,
    /// Retries of the last prompt so far; requests that the client library repeated unseen.
    pub(super) attempt: u32,
    pub(super) repeated: u32,
    pub(super) aborting: bool,
    /// `abort` commands whose response is owed: their `id` fields.
    pub(super) aborts: Vec<Option<Value>>,
    pub(super) compaction: Option<Compaction>,
    /// `compact` commands that wait for the run to be given up: their `id` fields.
    pub(super) compact_later: Vec<Option<Value>>,
    /// From which entry on the last compaction kept the conversation.
    pub(super) kept_from: Option<Value>,
    pub(super) handler: Option<Handler>,
    /// A `bash` command that runs: its `id` field and its output.
    pub(super) bash: Option<(Option<Value>, String)>,
    pub(super) print: Print,
    /// While several lines are taken up at once: responses and prompts wait here.
    pub(super) together: Option<Together>,
    /// An extension asked for the end.
    pub(super) quitting: bool,
    /// A shutdown is under way but hangs in a handler; terminations that were swallowed.
    pub(super) hanging_shutdown: bool,
    pub(super) swallowed: u32,
}

/// Responses and prompts of lines that were read at once.
#[derive(Debug, Default)]
pub(super) struct Together {
    pub(super) responses: Vec<Value>,
    pub(super) prompts: Vec<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("phase", &self.phase)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session that has not started yet.
    pub fn new(options: Options, mut ids: Box<dyn Ids>) -> Self {
        let session_id = ids.uuid();
        let history = options.history.clone();
        Self {
            transcript: history,
            print: Print::new(options.messages.clone()),
            options,
            ids,
            session_id,
            now: 0,
            out: Vec::new(),
            phase: Phase::Idle,
            queue: Queue::default(),
            entries: Entries::default(),
            session_name: None,
            run: None,
            message: None,
            changes: VecDeque::new(),
            transient: false,
            overflow: false,
            last_stop: String::new(),
            batch: Batch::default(),
            attempt: 0,
            repeated: 0,
            aborting: false,
            aborts: Vec::new(),
            compaction: None,
            kept_from: None,
            compact_later: Vec::new(),
            handler: None,
            bash: None,
            together: None,
            quitting: false,
            hanging_shutdown: false,
            swallowed: 0,
        }
    }

    /// Whether a reply of the model is being waited for or read.
    pub fn wants_model(&self) -> bool {
        matches!(
            self.phase,
            Phase::Requested | Phase::Streaming | Phase::Compacting
        ) && self.handler.is_none()
    }

    /// The session file, as it is named by now; `None` without one.
    pub fn session_file(&self) -> Option<&str> {
        self.options.session_file.as_deref()
    }

    /// The session's identifier, as it stands in records and in the session file.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// How many records about what was read of the answer are still to be written (see [`Input::ModelAhead`]).
    pub fn unwritten(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing runs: the next prompt would start a run.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle && self.handler.is_none()
    }

    /// Whether an answer has begun and not ended.
    pub fn is_streaming(&self) -> bool {
        self.phase == Phase::Streaming
    }

    /// Whether a failed answer is about to be tried again.
    pub fn waits_for_retry(&self) -> bool {
        self.phase == Phase::RetryWait
    }

    /// Takes one input in. `now` is in milliseconds since 1970 and never goes back.
    pub fn handle(&mut self, input: Input<'_>, now: u64) -> Vec<Output> {
        self.now = self.now.max(now);
        if self.phase != Phase::Over {
            self.take(input);
        }
        std::mem::take(&mut self.out)
    }

    fn take(&mut self, input: Input<'_>) {
        match input {
            Input::Start => self.start(),
            Input::Line(line) => self.line(line),
            Input::Lines(lines) => self.lines(lines),
            Input::Eof => self.eof(),
            Input::Signal(signal) => self.signal(signal),
            Input::Model(piece) => {
                self.read(piece);
                while self.emit(&[]) {}
            }
            Input::ModelAhead(piece) => self.read(piece),
            Input::Emit(between) => {
                self.emit(between);
            }
            Input::ToolUpdate { id, text, details } => self.tool_update(id, text, details),
            Input::ToolEnd { id, result } => self.tool_end(id, result),
            Input::BashOutput(delta) => self.bash_output(delta),
            Input::BashEnd(exit) => self.bash_end(exit),
            Input::Timer(TimerId::Retry) => self.retry_now(),
            Input::Timer(TimerId::HiddenRetry) => self.request_again(),
            Input::Timer(TimerId::Dialog) => self.dialog_answered(None),
            Input::Again if self.phase == Phase::Idle => self.start_run(None, false),
            Input::Again => {}
            Input::Deeds(deeds) => self.deeds(deeds),
        }
    }

    pub(super) fn newer(&self) -> bool {
        self.options.flavour == Flavour::V1_6_0
    }

    pub(super) fn record(&mut self, record: Value) {
        match self.options.mode {
            Mode::Text => {}
            Mode::Rpc | Mode::Json => self.out.push(Output::Record(record)),
        }
    }

    // ---- start and end ---------------------------------------------------------------------------------------

    fn start(&mut self) {
        self.name_session_file();
        let model =
            json!({"provider": self.options.model.provider, "modelId": self.options.model.id});
        let thinking = json!({"thinkingLevel": self.options.thinking});
        self.add_entry("model_change", &model);
        self.add_entry("thinking_level_change", &thinking);
        for message in self.transcript.clone() {
            self.add_entry("message", &json!({"message": message}));
        }
        let prints: Vec<String> = self
            .options
            .extensions
            .iter()
            .flat_map(|e| e.prints.clone())
            .collect();
        for line in self.options.warnings.clone().into_iter().chain(prints) {
            self.out.push(Output::Stderr(line));
        }
        if self.options.mode == Mode::Json {
            let timestamp = super::entries::iso(self.now);
            let header = json!({
                "type": "session", "version": 3, "id": self.session_id, "timestamp": timestamp,
                "cwd": self.options.cwd,
            });
            self.record(header);
        }
        if self.moment(Moment::SessionStart, super::handlers::Then::Ready) {
            return self.next_message();
        }
        if self.options.mode == Mode::Rpc {
            // Pi reads no input while a session_start handler waits; with nothing left to do, Node ends the process.
            self.exit(Ending::Code(0));
        }
    }

    pub(super) fn add_entry(&mut self, kind: &str, fields: &Value) -> Value {
        let id = self.ids.entry();
        self.entries.add(&id, kind, self.now, fields)
    }

    pub(super) fn exit(&mut self, ending: Ending) {
        self.phase = Phase::Over;
        self.out.push(Output::Exit(ending));
    }

    fn eof(&mut self) {
        if self.options.mode != Mode::Rpc {
            return;
        }
        if self.hangs_in(Moment::SessionShutdown) {
            self.hanging_shutdown = true;
            return;
        }
        if self.newer() && self.handler.as_ref().is_some_and(Handler::hangs) {
            return;
        }
        if self.newer() {
            // 0.73.1 leaves a running command behind.
            self.kill_tools();
        }
        self.exit(Ending::Code(0));
    }

    fn kill_tools(&mut self) {
        if self.batch.running() {
            self.out.push(Output::KillTools);
        }
    }

    fn signal(&mut self, signal: Signal) {
        let code = match signal {
            Signal::Term => 143,
            Signal::Hup => 129,
            other => return self.exit(Ending::Signal(other)),
        };
        let stuck = self.hanging_shutdown || (self.newer() && self.handler.is_some());
        if stuck {
            self.swallowed += 1;
            let (enough, ending) = match self.newer() {
                true => (2, Ending::Code(code)),
                false => (1, Ending::Signal(signal)),
            };
            if self.swallowed >= enough {
                self.exit(ending);
            }
            return;
        }
        if self.hangs_in(Moment::SessionShutdown) {
            self.hanging_shutdown = true;
            self.swallowed += 1;
            return;
        }
        self.kill_tools();
        self.exit(Ending::Code(code));
    }

    fn hangs_in(&self, moment: Moment) -> bool {
        self.options
            .extensions
            .iter()
            .any(|extension| extension.deeds(moment).contains(&Deed::Hang))
    }

    // ---- runs and turns --------------------------------------------------------------------------------------

    /// Starts a run with a user's message, or (a retry) without one.
    pub(super) fn start_run(&mut self, prompt: Option<String>, settled_early: bool) {
        self.aborting = false;
        self.run = Some(Run::default());
        self.phase = Phase::Requested;
        // Handlers of agent_start don't wait for anybody here; what they throw comes first.
        self.moment(Moment::AgentStart, super::handlers::Then::Nothing);
        self.record(json!({"type": "agent_start"}));
        if settled_early && self.newer() {
            self.record(json!({"type": "agent_settled", "aborted": false}));
        }
        let waiting = self.queue.next_steering();
        self.begin_turn(prompt, waiting);
    }

    fn begin_turn(&mut self, prompt: Option<String>, waiting: Vec<String>) {
        self.record(json!({"type": "turn_start"}));
        if let Some(prompt) = prompt {
            if self.newer() && self.transcript.is_empty() {
                let system = self.system_message();
                self.say(system);
            }
            self.say_user(&prompt);
        }
        for text in waiting {
            if self.queue.delivered(&text) {
                let update = self.queue.record();
                self.record(update);
            }
            self.say_user(&text);
        }
        self.new_answer();
    }

    fn say_user(&mut self, text: &str) {
        let message = json!({
            "role": "user", "content": [{"type": "text", "text": text}], "timestamp": self.now,
        });
        self.say(message);
    }

    /// A whole message at once: start, end, and into the conversation.
    pub(super) fn say(&mut self, message: Value) {
        self.record(json!({"type": "message_start", "message": message}));
        self.record(json!({"type": "message_end", "message": message}));
        self.keep(message);
    }

    pub(super) fn keep(&mut self, message: Value) {
        self.add_entry("message", &json!({"message": message}));
        if let Some(run) = &mut self.run {
            run.messages.push(message.clone());
        }
        self.transcript.push(message);
    }

    fn system_message(&self) -> Value {
        let tools: Vec<Value> = self
            .options
            .tools
            .iter()
            .map(super::options::ToolSpec::to_record)
            .collect();
        json!({
            "role": "system",
            "content": "",
            "sections": {
                "preamble": self.options.system_prompt,
                "cwd": format!("<cwd>\n{}\n</cwd>", self.options.cwd),
            },
            "timestamp": self.now,
            "toolsAdded": tools,
        })
    }

    /// A turn is over: the next one, if there is anything left to answer.
    pub(super) fn next_turn(&mut self, after_tools: bool) {
        let mut waiting = self.queue.next_steering();
        if waiting.is_empty() && !after_tools {
            waiting = self.queue.next_follow_up();
            if waiting.is_empty() {
                return self.end_run();
            }
        }
        self.begin_turn(None, waiting);
    }

    pub(super) fn turn_end(&mut self, message: &Value, results: &[Value]) {
        self.record(json!({"type": "turn_end", "message": message, "toolResults": results}));
        self.moment(Moment::TurnEnd, super::handlers::Then::Nothing);
    }

    pub(super) fn end_run(&mut self) {
        // Handlers of agent_end hold the event back until they return.
        if self.moment(Moment::AgentEnd, super::handlers::Then::EndRun) {
            self.run_ended();
        }
    }

    /// Everything is over that the last prompt set off.
    pub(super) fn settle(&mut self, aborted: bool) {
        self.phase = Phase::Idle;
        self.aborting = false;
        self.attempt = 0;
        if self.newer() {
            self.record(json!({"type": "agent_settled", "aborted": aborted}));
        }
        for id in std::mem::take(&mut self.aborts) {
            self.respond(id.as_ref(), &json!("abort"), Ok(None));
        }
        if self.quitting && self.newer() {
            return self.exit(Ending::Code(0));
        }
        for id in std::mem::take(&mut self.compact_later) {
            self.compact_by_command(id);
        }
        self.next_message();
    }

    /// The `compact` command. What runs is given up first, as by an abort.
    pub(super) fn compact_by_command(&mut self, id: Option<Value>) {
        match self.phase {
            Phase::Idle => self.compact("manual", Some(id)),
            Phase::Compacting => {
                let error = "Compaction already in progress".to_owned();
                self.respond(id.as_ref(), &json!("compact"), Err(error));
            }
            _ => {
                self.compact_later.push(id);
                self.abort_run();
            }
        }
    }

    // ---- abort -----------------------------------------------------------------------------------------------

    /// The `abort` command. Its response comes when all is over.
    pub(super) fn abort(&mut self, id: Option<Value>) {
        if self.phase == Phase::Idle && self.handler.is_none() {
            return self.respond(id.as_ref(), &json!("abort"), Ok(None));
        }
        self.aborts.push(id);
        self.abort_run();
    }

    fn abort_run(&mut self) {
        match self.phase {
            Phase::Requested => {
                self.out.push(Output::DropModel);
                self.out.push(Output::Disarm(TimerId::HiddenRetry));
                self.answer_failed(
                    "aborted",
                    super::message::aborted_early(self.options.flavour),
                );
            }
            Phase::Streaming => {
                self.out.push(Output::DropModel);
                self.close_blocks();
                self.answer_failed("aborted", "Request was aborted");
            }
            Phase::Tools => {
                self.aborting = true;
                self.kill_tools();
            }
            Phase::RetryWait => {
                self.give_up_retry();
                self.settle(true);
            }
            Phase::Compacting => self.abort_compaction(),
            Phase::Idle | Phase::Over => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pi::{Counting, js};

    fn lines(outputs: Vec<Output>) -> Vec<String> {
        let kind = |record: &Value| record["type"].as_str().unwrap_or_default().to_owned();
        outputs
            .iter()
            .map(|output| match output {
                Output::Record(record) if record["type"] == "response" => js::line(record),
                Output::Record(record) => kind(record),
                other => format!("{other:?}"),
            })
            .collect()
    }

    fn ask(flavour: Flavour) -> Vec<String> {
        let mut session = Session::new(
            Options::new(flavour, Mode::Rpc),
            Box::new(Counting::default()),
        );
        let mut seen = lines(session.handle(Input::Start, 0));
        seen.extend(lines(session.handle(
            Input::Line(br#"{"id":1,"type":"prompt","message":"hi"}"#),
            1,
        )));
        for piece in ModelPiece::answer("r1", "two words", None) {
            seen.extend(lines(session.handle(Input::Model(piece), 2)));
        }
        assert!(session.is_idle());
        seen
    }

    #[test]
    fn a_prompt_is_answered_in_both_flavours() {
        let old = ask(Flavour::V0_73_1);
        let newer = ask(Flavour::V1_6_0);
        assert_eq!(
            newer[0],
            r#"{"id":1,"type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}"#
        );
        assert_eq!(newer.last().map(String::as_str), Some("agent_settled"));
        assert_eq!(old.last().map(String::as_str), Some("agent_end"));
        // The newer one says the system message and the end of all work besides.
        assert_eq!(newer.len(), old.len() + 3);
    }
}
