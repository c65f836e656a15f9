//! A recording played again: the session gets what Pi got, at the same places of the order, and must say the same.
//!
//! Two things are not in a recording and are found out on the way: when a piece of a model reply had been *read* (Pi's
//! records show what had come in by the time they were written, which is a race with the network), and when a tool or a
//! timer was done. Both are taken as late as the recorded records allow.

use std::collections::{HashMap, VecDeque};

use fake_pi::act::{Flavour, Signal};
use fake_pi::pi::extension::{self, Moment, UiRequest};
use fake_pi::pi::{
    Api, Counting, Ending, Input, Mode, Model, ModelPiece, Options, Output, Session, TimerId,
    ToolResult, ToolSpec, js,
};
use serde_json::Value;

use super::compare::{self, Ids};
use super::json::{self, Json};
use super::table::{Bash, Case, Deed, Piece, ToolUpdate};
use super::trace::{Event, Trace};

/// An input that can be kept and given again.
#[derive(Debug, Clone)]
enum Step {
    Start,
    Lines(Vec<String>),
    Eof,
    Signal(Signal),
    Read(ModelPiece),
    Write(Vec<ModelPiece>),
    Update(String, String, Option<Value>),
    End(String, ToolResult),
    Timer(TimerId),
    BashOutput(String),
    BashEnd(Option<i32>),
}

fn give(session: &mut Session, step: &Step, now: u64) -> Vec<Output> {
    match step {
        Step::Start => session.handle(Input::Start, now),
        Step::Lines(lines) => match lines.as_slice() {
            [line] => session.handle(Input::Line(line.as_bytes()), now),
            lines => {
                let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
                session.handle(Input::Lines(&lines), now)
            }
        },
        Step::Eof => session.handle(Input::Eof, now),
        Step::Signal(signal) => session.handle(Input::Signal(*signal), now),
        Step::Read(piece) => session.handle(Input::ModelAhead(piece.clone()), now),
        Step::Write(between) => session.handle(Input::Emit(between), now),
        Step::Update(id, text, details) => session.handle(
            Input::ToolUpdate {
                id,
                text,
                details: details.clone(),
            },
            now,
        ),
        Step::End(id, result) => session.handle(
            Input::ToolEnd {
                id,
                result: result.clone(),
            },
            now,
        ),
        Step::Timer(timer) => session.handle(Input::Timer(*timer), now),
        Step::BashOutput(delta) => session.handle(Input::BashOutput(delta), now),
        Step::BashEnd(exit) => session.handle(Input::BashEnd(*exit), now),
    }
}

struct Replay<'a> {
    case: &'a Case,
    flavour: Flavour,
    options: Options,
    session: Session,
    log: Vec<Step>,
    pending: VecDeque<Output>,
    stderr: Vec<String>,
    ids: Ids,
    replies: VecDeque<Vec<Piece>>,
    /// The pieces of the reply that is being read, still to come.
    coming: VecDeque<Piece>,
    running: HashMap<String, VecDeque<ToolUpdate>>,
    timers: Vec<TimerId>,
    bash: VecDeque<Bash>,
    bash_runs: Option<VecDeque<String>>,
    ended: Option<Ending>,
}

/// Plays a recording, and returns what was written here for each of its records. What is different first is the error.
pub fn replay(trace: &Trace, flavour: Flavour, case: &Case) -> Result<Vec<String>, String> {
    let options = options(trace, flavour, case);
    let one_shot = options.mode != Mode::Rpc;
    let mut replay = Replay {
        case,
        flavour,
        session: Session::new(options.clone(), Box::new(Counting::default())),
        options,
        log: Vec::new(),
        pending: VecDeque::new(),
        stderr: Vec::new(),
        ids: Ids::default(),
        replies: case.replies.iter().cloned().collect(),
        coming: VecDeque::new(),
        running: HashMap::new(),
        timers: Vec::new(),
        bash: case.bash.iter().cloned().collect(),
        bash_runs: None,
        ended: None,
    };
    replay.step(Step::Start);
    let mut told = Vec::new();
    let mut swallowed = false;
    for (at, (time, event)) in trace.events.iter().enumerate() {
        match event {
            // A one-shot mode takes its standard input as a whole, before it starts.
            Event::Stdin(_) | Event::Close if one_shot => {}
            Event::Stdin(lines) => {
                let lines = lines.iter().map(|line| replay.with_our_ids(line)).collect();
                replay.step(Step::Lines(lines));
            }
            Event::Stdout(line) => {
                let ours = replay
                    .expect(line)
                    .map_err(|what| format!("record {}: {what}", told.len() + 1))?;
                told.push(ours);
            }
            Event::Stderr(_) => {}
            Event::Close if swallowed => {}
            Event::Close => replay.step(Step::Eof),
            Event::Signal(name) => {
                // When the input was closed within the same moment, Pi saw that end first.
                let closed = trace.events[at + 1..]
                    .iter()
                    .any(|(when, next)| *next == Event::Close && when - time < 100.0);
                if closed {
                    swallowed = true;
                    replay.step(Step::Eof);
                }
                replay.step(Step::Signal(signal(name)));
            }
            Event::Exit { code, signal: by } => replay.expect_end(*code, by.as_deref())?,
        }
    }
    let errors: Vec<&String> = trace
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Stderr(line) => Some(line),
            _ => None,
        })
        .collect();
    replay.expect_stderr(&errors)?;
    Ok(told)
}

fn signal(name: &str) -> Signal {
    match name {
        "SIGTERM" => Signal::Term,
        "SIGHUP" => Signal::Hup,
        "SIGINT" => Signal::Int,
        "SIGKILL" => Signal::Kill,
        other => panic!("signal {other}"),
    }
}

impl Replay<'_> {
    fn step(&mut self, step: Step) {
        let outputs = give(&mut self.session, &step, self.log.len() as u64);
        self.log.push(step);
        self.pending.extend(outputs);
    }

    /// An answer to a UI request names the request by its id; here that is ours.
    fn with_our_ids(&self, line: &str) -> String {
        let answered =
            json::parse(line).filter(|line| line.text_of("type") == "extension_ui_response");
        let theirs = answered
            .as_ref()
            .map(|answer| answer.text_of("id"))
            .unwrap_or_default();
        match self.ids.ours(theirs) {
            Some(ours) => line.replace(theirs, ours),
            None => line.to_owned(),
        }
    }

    /// The next record or line of text that is already there.
    fn written(&mut self) -> Option<String> {
        while let Some(output) = self.pending.pop_front() {
            match output {
                Output::Record(record) => return Some(js::line(&record)),
                Output::Text(text) => return Some(text),
                Output::Stderr(line) => self.stderr.push(line),
                Output::WantModel(_) => {
                    self.coming = self.replies.pop_front().unwrap_or_default().into()
                }
                Output::DropModel => self.coming.clear(),
                Output::RunTool(call) => {
                    let updates = self
                        .case
                        .tools
                        .get(&call.id)
                        .map(|tool| tool.updates.clone())
                        .unwrap_or_default();
                    self.running.insert(call.id, updates.into());
                }
                Output::RunBash(_) => {
                    self.bash_runs = self.bash.front().map(|bash| bash.prints.clone().into());
                }
                Output::Arm(timer, _) => self.timers.push(timer),
                Output::Disarm(timer) => self.timers.retain(|armed| *armed != timer),
                Output::KillTools | Output::KillBash => {}
                Output::Exit(ending) => self.ended = Some(ending),
            }
        }
        None
    }

    /// The session must write this line next.
    fn expect(&mut self, line: &str) -> Result<String, String> {
        let theirs = json::parse(line);
        let kind = theirs
            .as_ref()
            .map(|record| record.text_of("type").to_owned())
            .unwrap_or_default();
        loop {
            if let Some(ours) = self.written() {
                self.same(line, theirs.as_ref(), &ours)?;
                return Ok(ours);
            }
            if let Some(ending) = self.ended {
                return Err(format!("the end ({ending:?}) in place of {}", head(line)));
            }
            if !self.go_on(line, theirs.as_ref(), &kind) {
                return Err(format!(
                    "nothing comes where the recording has {}",
                    head(line)
                ));
            }
        }
    }

    /// Lets the world outside go one step further. Whether there was one.
    fn go_on(&mut self, line: &str, theirs: Option<&Json>, kind: &str) -> bool {
        if self.session.unwritten() > 0 {
            let write = self.when_read(line, theirs);
            for step in write {
                if let Step::Read(_) = step {
                    self.coming.pop_front();
                }
                if let Step::Write(between) = &step {
                    self.coming.drain(..between.len());
                }
                self.step(step);
            }
            return true;
        }
        let call = theirs
            .map(|record| record.text_of("toolCallId"))
            .unwrap_or_default();
        if kind == "tool_execution_update"
            && let Some(update) = self.running.get_mut(call).and_then(VecDeque::pop_front)
        {
            let (text, details) = match update {
                ToolUpdate::Text(text) => (text, serde_json::json!({})),
                ToolUpdate::Full { text, details } => (text, details),
            };
            self.step(Step::Update(call.to_owned(), text, Some(details)));
            return true;
        }
        if kind == "tool_execution_end" && self.running.remove(call).is_some() {
            let result = self
                .case
                .tools
                .get(call)
                .and_then(|tool| tool.end(self.flavour));
            if let Some(result) = result {
                self.step(Step::End(call.to_owned(), result));
                return true;
            }
        }
        if let Some(Piece::Comes(piece)) = self.coming.front().cloned() {
            self.coming.pop_front();
            self.step(Step::Read(piece));
            return true;
        }
        if let Some(runs) = &mut self.bash_runs {
            let step = match runs.pop_front() {
                Some(delta) => Step::BashOutput(delta),
                None => {
                    self.bash_runs = None;
                    Step::BashEnd(self.bash.pop_front().and_then(|bash| bash.exit))
                }
            };
            self.step(step);
            return true;
        }
        if let Some(timer) = self.timers.pop() {
            self.step(Step::Timer(timer));
            return true;
        }
        false
    }

    /// How much of the reply must have been read before and while the next record was written, for it to be `line`.
    fn when_read(&self, line: &str, theirs: Option<&Json>) -> Vec<Step> {
        let coming: Vec<ModelPiece> = self
            .coming
            .iter()
            .map_while(|piece| match piece {
                Piece::Comes(piece) => Some(piece.clone()),
                Piece::Hang => None,
            })
            .collect();
        if !theirs.is_some_and(|record| record.text_of("type").starts_with("message_")) {
            return vec![Step::Write(Vec::new())];
        }
        for before in 0..=coming.len() {
            for between in 0..=coming.len() - before {
                let mut steps: Vec<Step> =
                    coming[..before].iter().cloned().map(Step::Read).collect();
                steps.push(Step::Write(coming[before..before + between].to_vec()));
                if self.would_write(&steps, line, theirs) {
                    return steps;
                }
            }
        }
        vec![Step::Write(Vec::new())]
    }

    fn would_write(&self, steps: &[Step], line: &str, theirs: Option<&Json>) -> bool {
        let mut twin = Session::new(self.options.clone(), Box::new(Counting::default()));
        for (now, step) in self.log.iter().enumerate() {
            give(&mut twin, step, now as u64);
        }
        let mut outputs = Vec::new();
        for (now, step) in steps.iter().enumerate() {
            outputs.extend(give(&mut twin, step, (self.log.len() + now) as u64));
        }
        let first = outputs.iter().find_map(|output| match output {
            Output::Record(record) => Some(js::line(record)),
            Output::Text(text) => Some(text.clone()),
            _ => None,
        });
        let mut ids = self.ids.clone();
        first.is_some_and(|ours| match (theirs, json::parse(&ours)) {
            (Some(theirs), Some(ours)) => compare::difference(theirs, &ours, &mut ids).is_none(),
            _ => line == ours,
        })
    }

    fn same(&mut self, line: &str, theirs: Option<&Json>, ours: &str) -> Result<(), String> {
        let difference = match (theirs, json::parse(ours)) {
            (Some(theirs), Some(ours)) => compare::difference(theirs, &ours, &mut self.ids),
            _ if line == ours => None,
            _ => Some(format!("{line:?} in the recording, {ours:?} here")),
        };
        match difference {
            None => Ok(()),
            Some(what) => Err(format!(
                "{what}\n    recording {}\n    here      {}",
                head(line),
                head(ours)
            )),
        }
    }

    fn expect_end(&mut self, code: Option<i64>, signal: Option<&str>) -> Result<(), String> {
        loop {
            if let Some(more) = self.written() {
                return Err(format!("before the end there is still {}", head(&more)));
            }
            // A one-shot mode comes to its end by itself.
            if self.ended.is_some() || self.options.mode == Mode::Rpc || !self.go_on("", None, "") {
                break;
            }
        }
        let ours = match self.ended {
            Some(Ending::Code(code)) => (Some(i64::from(code)), None),
            Some(Ending::Signal(signal)) => (None, Some(format!("SIG{signal:?}").to_uppercase())),
            None => {
                return Err(format!(
                    "the recording ends ({code:?} {signal:?}), here it goes on"
                ));
            }
        };
        if ours == (code, signal.map(str::to_owned)) {
            return Ok(());
        }
        Err(format!(
            "the recording ends with {code:?} {signal:?}, here it is {ours:?}"
        ))
    }

    fn expect_stderr(&self, theirs: &[&String]) -> Result<(), String> {
        if self.case.settings.node_trace && self.stderr.iter().all(|ours| theirs.contains(&ours)) {
            return Ok(());
        }
        let same = theirs.len() == self.stderr.len()
            && theirs
                .iter()
                .zip(&self.stderr)
                .all(|(theirs, ours)| compare::texts_agree(theirs, ours));
        if same {
            Ok(())
        } else {
            Err(format!(
                "standard error is {theirs:?}, here {:?}",
                self.stderr
            ))
        }
    }
}

fn head(text: &str) -> String {
    text.chars().take(700).collect()
}

// ---- what a recording was started with -----------------------------------------------------------------------------

fn options(trace: &Trace, flavour: Flavour, case: &Case) -> Options {
    let mut options = Options::new(flavour, Mode::Text);
    options.cwd = "/work-dir".to_owned();
    options.session_file = None;
    let mut words = trace.argv.iter().skip(1);
    // Without a word about it, a model that can think does so moderately.
    options.thinking = "medium".to_owned();
    let mut messages = Vec::new();
    let mut no_session = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().unwrap_or_default();
        match word.as_str() {
            "--mode" => {
                options.mode = match value().as_str() {
                    "rpc" => Mode::Rpc,
                    "json" => Mode::Json,
                    _ => Mode::Text,
                }
            }
            "--session" => options.session_file = Some(value()),
            "--no-session" => no_session = true,
            "--model" => {
                let model = value();
                let (model, level) = model.split_once(':').unwrap_or((&model, ""));
                if let Some((provider, id)) = model.split_once('/') {
                    options.model = Model {
                        name: name_of(id),
                        ..Model::stub(provider, id)
                    };
                }
                if !level.is_empty() {
                    options.thinking = level.to_owned();
                }
            }
            // A wrong level is warned about and not taken.
            "--thinking" => {
                options.thinking = Some(value())
                    .filter(|level| level != "enormous")
                    .unwrap_or(options.thinking)
            }
            "--tools" => options.tools = value().split(',').filter_map(ToolSpec::builtin).collect(),
            "--system-prompt" => options.system_prompt = value(),
            "--session-dir" => options.session_file = Some(format!("{}/", value())),
            "-e" | "--provider" | "--extension" => {
                value();
            }
            word if word.starts_with('-') => {}
            message => messages.push(message.to_owned()),
        }
    }
    if no_session {
        options.session_file = None;
    }
    let settings = &case.settings;
    if let Some(text) = &settings.stdin {
        match messages.first_mut() {
            Some(first) => *first = format!("{text}{first}"),
            None => messages.push(text.clone()),
        }
    }
    if options.mode != Mode::Rpc {
        options.messages = messages;
    }
    if settings.api.as_deref() == Some("messages") {
        options.model.api = Api::Messages;
    }
    if let Some(window) = settings.context_window {
        options.model.context_window = window;
    }
    options.models = vec![options.model.clone()];
    options.model.record = settings.model.clone();
    options.retry.enabled = settings.retry.unwrap_or(true);
    options.retry.base_delay_ms = settings.retry_delay.unwrap_or(2000);
    options.compaction.reserve = settings.reserve.unwrap_or(options.compaction.reserve);
    options.compaction.keep_recent = settings
        .keep_recent
        .unwrap_or(options.compaction.keep_recent);
    options.no_key.clone_from(&settings.no_key);
    options.warnings.clone_from(&settings.warnings);
    options.history.clone_from(&settings.history);
    options.extensions = settings.extension.iter().map(extension).collect();
    options
}

/// The recorder's `models.json` names its model; an id that is not in it has no name of its own.
fn name_of(id: &str) -> String {
    if id == "x" {
        "Stub X".to_owned()
    } else {
        id.to_owned()
    }
}

fn extension(entry: &super::table::Extension) -> extension::Extension {
    let moment = |name: &str| match name {
        "session_start" => Moment::SessionStart,
        "agent_start" => Moment::AgentStart,
        "tool_call" => Moment::ToolCall,
        "turn_end" => Moment::TurnEnd,
        "agent_end" => Moment::AgentEnd,
        "session_shutdown" => Moment::SessionShutdown,
        other => panic!("no moment {other}"),
    };
    let hook = |hook: &super::table::Hook| extension::Hook {
        moment: moment(&hook.at),
        deeds: deeds(&hook.deeds),
    };
    let command = |command: &super::table::Command| extension::ExtensionCommand {
        name: command.name.clone(),
        description: command.description.clone(),
        deeds: deeds(&command.deeds),
    };
    extension::Extension {
        path: "/work-dir/ext.js".to_owned(),
        prints: entry.prints.clone(),
        hooks: entry.hooks.iter().map(hook).collect(),
        commands: entry.command.iter().map(command).collect(),
    }
}

fn deeds(entries: &[Deed]) -> Vec<extension::Deed> {
    let request = |value: &Value| {
        let mut fields = value.as_object().cloned().unwrap();
        let method = fields.shift_remove("method").unwrap();
        UiRequest {
            method: method.as_str().unwrap().to_owned(),
            fields,
        }
    };
    let deed = |deed: &Deed| match deed {
        Deed::Tell(value) => extension::Deed::Tell(request(value)),
        Deed::Ask(value) => extension::Deed::Ask(request(value)),
        Deed::Gate {
            request: value,
            refusal,
        } => extension::Deed::Gate(request(value), refusal.clone()),
        Deed::Throw(text) => extension::Deed::Throw(text.clone()),
        Deed::Hang(_) => extension::Deed::Hang,
        Deed::Shutdown(_) => extension::Deed::Shutdown,
    };
    entries.iter().map(deed).collect()
}
