//! The acts, one after the other.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::events;
use super::stage::{Given, Interrupted, Stage, State, close};
use super::talk;
use crate::act::{Act, Occasion, Script, StreamName, Wait, WaitFor, Written};
use crate::args::Args;
use crate::content;
use crate::descendant;
use crate::journal::{Journal, What};
use crate::pi::{Ending, Input, Mode, js};
use crate::reply::{self, Changes};

/// How long what was written gets to reach the pipe before a scripted end; a reader that has stopped does not hold it.
const EXIT_PATIENCE: Duration = Duration::from_secs(60);

/// What an act gives: it was done, or an occasion interrupted it.
pub(super) type Done = Result<(), Interrupted>;

/// Plays a start to its end.
pub fn play(
    script: Script,
    args: Args,
    argv: Vec<String>,
    folder: PathBuf,
    journal: Arc<Journal>,
) -> ExitCode {
    let cwd =
        std::env::current_dir().map_or(String::new(), |path| path.to_string_lossy().into_owned());
    let mode = args.mode;
    let given = Given {
        script,
        args,
        argv,
        cwd,
        folder,
    };
    let stage = Stage::new(
        State {
            reading: true,
            ..State::default()
        },
        journal,
        given,
    );
    talk::choose_child(&stage, &mut stage.lock(), None);
    // A child that begins by not reading must not lose its first bytes to the reader.
    let first = stage
        .lock()
        .chosen
        .as_ref()
        .and_then(|chosen| chosen.acts.first().cloned());
    if matches!(first, Some(Act::StopReading(_))) {
        stage.lock().reading = false;
    }
    events::watch(&stage, mode == Mode::Rpc);
    if mode != Mode::Rpc {
        one_shot_task(&stage);
    }
    let mut player = Player {
        stage,
        replies: 0,
        opened: false,
        captures: false,
    };
    let Ok(Some((name, mut acts, on))) = player.chosen() else {
        return ExitCode::from(crate::EXIT_BAD_SCRIPT);
    };
    let mut path = format!("{name}.acts");
    loop {
        let interrupted = match player.all(&acts, &path).and_then(|()| player.over()) {
            Err(Interrupted(occasion)) => occasion,
            Ok(()) => continue,
        };
        // What was being written when the occasion came is given up; what was already written stays.
        player.stage.out.end_capture();
        player.captures = false;
        player.stage.lock().changes = Changes::default();
        acts = on.get(&interrupted).cloned().unwrap_or_default();
        path = format!("{name}.on.{}", word(interrupted));
    }
}

fn word(occasion: Occasion) -> String {
    serde_json::to_value(occasion)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// The task of a one-shot mode: piped text, `@FILE`s and the first message; further messages are further runs.
fn one_shot_task(stage: &Stage) {
    // Pi takes the text of standard input without the blanks around it (`json-stdin-piped`).
    let mut first = events::piped_text(stage).trim().to_owned();
    let args = &stage.given.args;
    for file in &args.files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let path = std::path::Path::new(&stage.given.cwd).join(file);
        first.push_str(&format!(
            "<file name=\"{}\">\n{text}\n</file>\n",
            path.display()
        ));
    }
    let mut messages = args.messages.clone();
    match messages.first_mut() {
        Some(message) => *message = format!("{first}{message}"),
        None if !first.is_empty() => messages.push(first.clone()),
        None => {}
    }
    let via = match (args.messages.is_empty(), args.files.is_empty()) {
        (_, false) => "file",
        (false, true) => "argument",
        (true, true) => "stdin",
    };
    let mut state = stage.lock();
    state.prompts.extend(messages.iter().cloned());
    match messages.first() {
        Some(task) => talk::task_known(stage, &mut state, via, task),
        None => talk::ensure_session(stage, &mut state, true),
    }
}

/// Plays the acts of one child.
pub(super) struct Player {
    pub(super) stage: Stage,
    pub(super) replies: u64,
    /// The script itself wrote the opening events of the run that comes next.
    pub(super) opened: bool,
    captures: bool,
}

type Chosen = (String, Vec<Act>, IndexMap<Occasion, Vec<Act>>);

impl Player {
    fn chosen(&self) -> Result<Option<Chosen>, Interrupted> {
        self.stage.wait(None, |state| {
            let chosen = state.chosen.as_ref()?;
            Some((chosen.name.clone(), chosen.acts.clone(), chosen.on.clone()))
        })
    }

    fn all(&mut self, acts: &[Act], path: &str) -> Done {
        for (place, act) in acts.iter().enumerate() {
            let path = format!("{path}[{place}]");
            self.stage.journal.write(What::Act {
                path: path.clone(),
                act: key(act),
            });
            self.one(act, &path)?;
        }
        Ok(())
    }

    /// Nothing more to do: Pi takes what comes, until it ends.
    fn idle(&mut self) -> Done {
        let mut state = self.stage.lock();
        state.idle = true;
        let waiting: Vec<String> = state.prompts.drain(..).collect();
        talk::ensure_session(&self.stage, &mut state, true);
        for prompt in waiting {
            state.taken += 1;
            self.stage
                .tell_locked(&mut state, Input::Line(prompt.as_bytes()));
        }
        drop(state);
        self.stage.wait(None, |_| None::<()>).map(|_| ())
    }

    /// The acts are over: a one-shot Pi that is done ends now.
    fn over(&mut self) -> Done {
        let ending = self.stage.lock().ending.take();
        match ending {
            Some(ending) => self.end(ending),
            None => self.idle(),
        }
    }

    fn one(&mut self, act: &Act, path: &str) -> Done {
        match act {
            Act::Accept(_) => self.accept(),
            Act::Acknowledge(_) => self.acknowledge(),
            Act::Reject(error) => self.reject(error),
            Act::Read(_) => self.prompt().map(|_| ()),
            Act::Answer(reply) | Act::Reply(reply) => self.reply(&reply::full(reply)),
            Act::Stream(stream) => self.stream(stream),
            Act::Tool(tool) => self.tool(tool),
            Act::Retry(retry) => self.retry(retry),
            Act::Compaction(compaction) => self.compaction(compaction),
            Act::Ask(ask) => self.ask(ask),
            Act::Record(record) => {
                self.opened |=
                    matches!(record["type"].as_str(), Some("agent_start" | "turn_start"));
                self.record(record)
            }
            Act::Raw(raw) => {
                let bytes = content::raw(raw).unwrap_or_else(|fault| self.fault(&fault));
                self.emit(bytes)
            }
            Act::Written(written) => self.written(written, path),
            Act::Big(big) => {
                let bytes = content::big(big).unwrap_or_else(|fault| self.fault(&fault));
                self.emit(bytes)
            }
            Act::Endless(endless) => {
                let stream = if endless.stderr {
                    StreamName::Stderr
                } else {
                    StreamName::Stdout
                };
                events::blocks(&self.stage, stream, content::endless(endless))?;
                self.flush()
            }
            Act::Flood(flood) => {
                events::blocks(&self.stage, flood.stream, content::flood(flood))?;
                self.flush()
            }
            Act::Firehose(firehose) => {
                match content::firehose(firehose.mix.as_deref(), firehose.bytes.0) {
                    Ok(blocks) => {
                        events::blocks(&self.stage, StreamName::Stdout, blocks)?;
                        self.flush()
                    }
                    Err(fault) => self.fault(&fault),
                }
            }
            Act::Wait(wait) => self.wait(wait),
            Act::Reach(name) => {
                self.flush()?;
                let (records, bytes) = self.stage.out.written();
                self.stage.journal.write(What::Wrote { records, bytes });
                self.stage.journal.write(What::Reach { name: name.clone() });
                Ok(())
            }
            Act::Hang(_) => self.idle(),
            Act::Loop(repeat) => {
                let mut round = 0;
                while repeat.times.is_none_or(|times| round < times) {
                    self.all(&repeat.acts, &format!("{path}.do"))?;
                    round += 1;
                    if let Some(every) = repeat.every {
                        self.pause(every.0)?;
                    }
                }
                Ok(())
            }
            Act::Exit(code) => self.end(Ending::Code(*code)),
            Act::Die(signal) => self.end(Ending::Signal(*signal)),
            Act::Ignore(signals) => {
                let mut state = self.stage.lock();
                state
                    .ignored
                    .extend(signals.iter().map(|signal| signal.name()));
                Ok(())
            }
            Act::Close(stream) => {
                self.flush()?;
                close(*stream);
                Ok(())
            }
            Act::StopReading(_) => {
                self.stage.lock().reading = false;
                Ok(())
            }
            Act::ResumeReading(_) => {
                self.stage.lock().reading = true;
                Ok(())
            }
            Act::Descendant(act) => {
                let name = act.name.clone().unwrap_or_else(|| "descendant".to_owned());
                match descendant::spawn(act, &self.stage.given.folder) {
                    Ok(pid) => self.stage.journal.write(What::Descendant {
                        name,
                        child_pid: pid,
                    }),
                    Err(fault) => self.fault(&fault),
                }
                Ok(())
            }
            Act::Stderr(raw) => {
                let bytes = content::raw(raw).unwrap_or_else(|fault| self.fault(&fault));
                self.stage.stderr(&bytes);
                Ok(())
            }
            Act::SessionFile(file) => {
                let mut state = self.stage.lock();
                talk::ensure_session(&self.stage, &mut state, true);
                let session = state.session.as_ref();
                let place = session.and_then(|session| {
                    Some((
                        session.session_file()?.to_owned(),
                        session.session_id().to_owned(),
                    ))
                });
                drop(state);
                let Some((path, id)) = place else {
                    self.fault("`session-file`: Pi keeps no session file without --session or --session-dir, or with --no-session")
                };
                let message = json!({"role": "assistant", "content": [{"type": "text", "text": file.text}],
                    "stopReason": file.stop.as_deref().unwrap_or("stop")});
                talk::append_message(std::path::Path::new(&path), &id, &message);
                Ok(())
            }
            Act::Touch(path) => {
                if let Err(error) = std::fs::write(path, b"") {
                    self.fault(&format!("cannot make `{path}`: {error}"));
                }
                Ok(())
            }
        }
    }

    /// An act that cannot be played as written ends the child: whatever came after would show something else.
    pub(super) fn fault(&self, message: &str) -> ! {
        self.stage.journal.write(What::Fault {
            message: message.to_owned(),
        });
        self.stage
            .stderr(format!("fake-pi: {message}\n").as_bytes());
        self.stage.leave(
            Ending::Code(i32::from(crate::EXIT_BAD_SCRIPT)),
            Duration::ZERO,
        )
    }

    fn end(&mut self, ending: Ending) -> Done {
        let limit = Instant::now() + EXIT_PATIENCE;
        let out = self.stage.out.clone();
        self.stage
            .wait(Some(limit), |_| out.is_empty().then_some(()))?;
        self.stage.leave(ending, Duration::ZERO)
    }

    // ---- the prompt ------------------------------------------------------------------------------------------

    /// The next prompt. In the one-shot modes it was there from the start.
    fn prompt(&self) -> Result<String, Interrupted> {
        self.stage.lock().wants_prompt = true;
        let prompt = self.stage.wait(None, |state| {
            let prompt = state.prompts.pop_front()?;
            state.taken += 1;
            state.wants_prompt = false;
            Some(prompt)
        })?;
        Ok(prompt.unwrap_or_default())
    }

    fn accept(&self) -> Done {
        if self.stage.given.args.mode == Mode::Rpc {
            let line = self.prompt()?;
            self.stage.tell(Input::Line(line.as_bytes()));
        } else {
            let mut state = self.stage.lock();
            state.taken += 1;
            talk::ensure_session(&self.stage, &mut state, true);
        }
        self.flush()
    }

    fn acknowledge(&self) -> Done {
        let line = self.prompt()?;
        let newer = self
            .stage
            .lock()
            .chosen
            .as_ref()
            .is_some_and(|c| c.flavour == crate::act::Flavour::V1_6_0);
        let mut response = response(&line, true);
        if newer {
            response["data"] = json!({"disposition": "started"});
        }
        self.record(&response)
    }

    fn reject(&self, error: &str) -> Done {
        let line = self.prompt()?;
        let mut response = response(&line, false);
        response["error"] = json!(error);
        self.record(&response)
    }

    /// A run that the model can speak in: the prompt is taken if there is one, else a run goes on without.
    pub(super) fn run(&mut self) -> Done {
        let (busy, taken, waiting) = {
            let state = self.stage.lock();
            let busy = state
                .session
                .as_ref()
                .is_some_and(crate::pi::Session::wants_model);
            (busy, state.taken, !state.prompts.is_empty())
        };
        if busy {
            return Ok(());
        }
        if taken == 0 || waiting {
            return self.accept();
        }
        let mut state = self.stage.lock();
        state.changes.no_opening = self.opened;
        self.stage.tell_locked(&mut state, Input::Again);
        Ok(())
    }

    // ---- bytes and time --------------------------------------------------------------------------------------

    pub(super) fn record(&self, record: &Value) -> Done {
        let mut line = js::line(record).into_bytes();
        line.push(b'\n');
        self.emit(line)
    }

    fn emit(&self, bytes: Vec<u8>) -> Done {
        self.stage.out.emit(bytes);
        self.flush()
    }

    /// Holds the acts back while the pipe is full.
    pub(super) fn room(&self) -> Done {
        let out = self.stage.out.clone();
        // Where there is nothing to wait for there is nothing to interrupt: a mark that comes next is reached.
        if out.is_empty() {
            return Ok(());
        }
        self.stage
            .wait(None, |_| out.has_room().then_some(()))
            .map(|_| ())
    }

    /// Waits until what was said has been written; inside a capture there is nothing to wait for.
    pub(super) fn flush(&self) -> Done {
        let out = self.stage.out.clone();
        // Where there is nothing to wait for there is nothing to interrupt: a mark that comes next is reached.
        if out.is_empty() {
            return Ok(());
        }
        self.stage
            .wait(None, |_| out.is_empty().then_some(()))
            .map(|_| ())
    }

    fn written(&mut self, written: &Written, path: &str) -> Done {
        let outermost = !self.captures && self.stage.out.start_capture();
        self.captures = true;
        self.all(&written.acts, &format!("{path}.do"))?;
        if outermost {
            self.captures = false;
            let bytes = self.stage.out.end_capture();
            self.stage.out.emit_chunks(content::cut(bytes, written));
        }
        self.flush()
    }

    pub(super) fn pause(&self, span: Duration) -> Done {
        self.stage
            .wait(Some(Instant::now() + span), |_| None::<()>)
            .map(|_| ())
    }

    fn wait(&self, wait: &Wait) -> Done {
        let stage = &self.stage;
        match wait {
            Wait::For(span) => self.pause(span.0),
            Wait::Until(WaitFor::Barrier(name)) => {
                let path = stage.given.folder.join("barriers").join(name);
                stage
                    .wait(None, |_| path.exists().then_some(()))
                    .map(|_| ())
            }
            Wait::Until(WaitFor::Command(name)) => self.wait_seen(name),
            Wait::Until(WaitFor::Signal(signal)) => self.wait_seen(&signal.name()),
            Wait::Until(WaitFor::Eof(_)) => stage
                .wait(None, |state| state.eof.then_some(()))
                .map(|_| ()),
            Wait::Until(WaitFor::Descendant(name)) => {
                let folder = stage.given.folder.join("journal");
                stage
                    .wait(None, |_| descendant::has_ended(&folder, name).then_some(()))
                    .map(|_| ())
            }
        }
    }

    fn wait_seen(&self, key: &str) -> Done {
        let take = |state: &mut State| {
            let count = state.seen.get_mut(key).filter(|count| **count > 0)?;
            *count -= 1;
            Some(())
        };
        self.stage.wait(None, take).map(|_| ())
    }
}

/// The response to a prompt, without its data or error.
fn response(line: &str, success: bool) -> Value {
    let id = serde_json::from_str::<Value>(line)
        .ok()
        .and_then(|line| line.get("id").cloned());
    let mut response = Map::new();
    response.extend(id.map(|id| ("id".to_owned(), id)));
    response.insert("type".to_owned(), json!("response"));
    response.insert("command".to_owned(), json!("prompt"));
    response.insert("success".to_owned(), json!(success));
    Value::Object(response)
}

/// The key of an act, as it stands in a script.
fn key(act: &Act) -> String {
    match serde_json::to_value(act) {
        Ok(Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}
