//! A scenario laid out for somebody who starts the subject by hand, under a debugger say: the folders, how to start it, what
//! to feed it step by step; afterwards what its children wrote.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::command::CommandHost;
use super::compose;
use super::context::RunContext;
use super::host::Host;
use super::journals::Journals;
use super::leftovers;
use super::mcp::Mcp;
use super::recorder::Recorder;
use super::stage::{Stage, StageError, filled};
use super::story::FIRST;
use crate::adapter::{Adapter, Transport};
use crate::clock::now_ns;
use crate::evidence::{Event, Evidence, Header, What};
use crate::sandbox::Root;
use crate::scenario::{Abort, FullAbort, ParentStep, Planned, Scenario, Spawn, Step, WaitStep};
use crate::warden::Start;

/// One thing for whoever feeds the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A word about it.
    Note(String),
    /// A line for the subject's standard input.
    Line(String),
}

/// A scenario that is laid out. Its folders go when this is dropped, unless the context keeps them.
pub struct Attached {
    adapter: Adapter,
    scenario: Scenario,
    header: Header,
    stage: Stage,
    /// How the subject is started.
    pub start: Start,
    sent: Vec<Event>,
    /// Removed last: the scenario's folder lies in it.
    _root: Root,
}

impl Attached {
    /// Lays a scenario out. Nothing is started.
    ///
    /// # Errors
    /// When something cannot be written, or a template is wrong.
    pub fn lay_out(
        planned: &Planned,
        adapter: &Adapter,
        context: &RunContext,
    ) -> Result<Self, StageError> {
        let root = Root::new(&context.executable, context.keep_folders).map_err(|source| {
            let what = std::env::temp_dir().display().to_string();
            StageError::Io { what, source }
        })?;
        let mut stage = Stage::new(&root, &planned.name, &planned.scenario, adapter, context)?;
        let scenario = filled(&planned.scenario, &stage.folders)?;
        stage.lay_out(&root, &scenario, adapter)?;
        let start = stage.start(&scenario, adapter)?;
        let header = Header {
            format: crate::evidence::FORMAT,
            name: planned.name.clone(),
            area: planned.area.clone(),
            scenario: scenario.clone(),
            adapter: adapter.clone(),
            axes: planned.axes.clone(),
            started: jiff::Timestamp::now().to_string(),
            folders: stage.folders.clone(),
            reproduce: context.reproduce.replace("{name}", &planned.name),
        };
        Ok(Self {
            adapter: adapter.clone(),
            scenario,
            header,
            stage,
            start,
            sent: Vec::new(),
            _root: root,
        })
    }

    /// The scenario's folder.
    pub fn folder(&self) -> String {
        self.stage.sandbox.run().display().to_string()
    }

    /// All that is to be fed, in order, with a word about each step.
    pub fn script(&mut self) -> Vec<Said> {
        let recorder = Arc::new(Recorder::default());
        let (host, lines): (Box<dyn Host>, _) = match self.adapter.transport {
            Transport::Mcp => {
                let (host, lines) = Mcp::unconnected(FIRST, recorder);
                (Box::new(host), lines)
            }
            Transport::Command => {
                let (host, lines) = CommandHost::unconnected(FIRST, recorder);
                (Box::new(host), lines)
            }
            Transport::PiExtension => {
                let note = "a real Pi needs a model that says what to call, which nobody can feed by hand; take the prompts from `pi-conform run --keep`";
                return vec![Said::Note(note.to_owned())];
            }
        };
        let mut feeder = Feeder {
            attached: self,
            host,
            lines,
            said: Vec::new(),
            calls: Vec::new(),
            next: 0,
        };
        feeder.note("the handshake; go on when it has answered");
        feeder.host.greet();
        feeder.take();
        feeder.host.greeted();
        feeder.take();
        let steps = feeder.attached.scenario.steps.clone();
        feeder.steps(&steps, "steps");
        feeder.note("the end of its input: the session is over");
        feeder.said
    }

    /// What the children wrote so far, as evidence. The subject's claims and the kernel's are not in it.
    pub fn evidence(&self) -> Evidence {
        let mut journals = Journals::new(self.stage.journals.clone());
        let (journals, faults) = journals.take();
        let event = |what| Event {
            t_ns: now_ns(),
            what,
        };
        let sandbox = &self.stage.sandbox;
        let mut events = self.sent.clone();
        events.extend(
            faults
                .into_iter()
                .map(|message| event(What::HarnessError { message })),
        );
        let mut files = leftovers::with_modes(&sandbox.folder("tmp"));
        files.retain(|path, _| !self.stage.is_ours(path));
        events.push(event(What::Leftovers { files }));
        events.push(event(What::WorkFiles {
            files: leftovers::work_files(sandbox.run()),
        }));
        events.push(event(What::End));
        Evidence {
            header: self.header.clone(),
            events,
            journals,
            stderr: indexmap::IndexMap::new(),
        }
    }
}

/// Writes the script.
struct Feeder<'a> {
    attached: &'a mut Attached,
    host: Box<dyn Host>,
    lines: Receiver<Vec<u8>>,
    said: Vec<Said>,
    /// Names and numbers of the calls.
    calls: Vec<(String, u64)>,
    next: u64,
}

impl Feeder<'_> {
    fn note(&mut self, text: impl Into<String>) {
        self.said.push(Said::Note(text.into()));
    }

    /// Takes what the host would have sent.
    fn take(&mut self) {
        for bytes in self.lines.try_iter() {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let lines = text.lines().map(|line| Said::Line(line.to_owned()));
            self.said.extend(lines);
        }
    }

    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn steps(&mut self, steps: &[Step], path: &str) {
        for (at, step) in steps.iter().enumerate() {
            let path = format!("{path}[{at}]");
            self.step(step, &path);
            self.take();
        }
    }

    fn step(&mut self, step: &Step, path: &str) {
        match step {
            Step::Spawn(spawn) => self.call(spawn, &format!("{path} spawn"), ""),
            Step::Call(spawn) => {
                self.call(
                    spawn,
                    &format!("{path} call"),
                    "; go on when it has its result",
                );
            }
            Step::Abort(Abort::Call(call) | Abort::Full(FullAbort { call, .. })) => {
                self.note(format!("{path} abort: `{call}`"));
                let number = self.calls.iter().rev().find(|(name, _)| name == call);
                if let Some((_, id)) = number {
                    self.host.abort(*id);
                }
            }
            Step::Wait(WaitStep::Fact(fact)) => self.note(format!("{path} wait: {fact}")),
            Step::Wait(WaitStep::All(facts)) => {
                self.note(format!("{path} wait: {}", facts.join(", ")));
            }
            Step::Open(barrier) => {
                let files = self.attached.stage.barrier_files(barrier).into_iter();
                let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
                self.note(format!("{path} open: touch {}", shell_words::join(files)));
            }
            Step::ListTools(_) => {
                self.note(format!("{path} list-tools"));
                let id = self.id();
                if self.attached.adapter.transport == Transport::Mcp {
                    self.host.list_tools("tools", id);
                }
            }
            Step::Shutdown(_) => self.note(format!("{path} shutdown: end its input")),
            Step::Signal(signal) => {
                let name = serde_json::to_value(signal.send).unwrap_or_default();
                let name = name.as_str().unwrap_or_default().to_owned();
                self.note(format!("{path} signal: kill -{name} the subject"));
            }
            Step::Subject(named) => self.note(format!(
                "{path} subject: start it once more, as `{}`",
                named.name
            )),
            Step::Sample(_) => {}
            Step::Parent(parent) => {
                self.note(format!("{path} parent"));
                let none = serde_json::json!({});
                match parent {
                    ParentStep::Started(facts) => {
                        self.host.parent("started", serde_json::json!(facts));
                    }
                    ParentStep::Interrupted(_) => self.host.parent("interrupted", none),
                    ParentStep::Settled(_) => self.host.parent("settled", none),
                }
            }
            Step::Write(write) => {
                self.note(format!("{path} write: {} as the scenario says", write.path))
            }
            Step::Repeat(repeat) => {
                self.note(format!(
                    "{path} repeat: {} times; this is the first",
                    repeat.times
                ));
                self.steps(&repeat.steps, &format!("{path}.do"));
            }
            Step::Pause(span) => self.note(format!("{path} pause: {span}")),
            Step::Watch(span) => self.note(format!("{path} watch: {span}")),
            Step::Request(request) => {
                self.note(format!("{path} request: {}", request.method));
                let id = self.id();
                let params = request.params.clone();
                self.host
                    .request(&request.name, id, &request.method, params);
            }
        }
    }

    fn call(&mut self, spawn: &Spawn, path: &str, then: &str) {
        let id = self.id();
        let name = spawn.name.clone().unwrap_or_else(|| "call".to_owned());
        self.note(format!("{path}: `{name}`{then}"));
        let Attached { adapter, stage, .. } = &*self.attached;
        match compose::call(adapter, &stage.scope, spawn, &name, id) {
            Ok((outgoing, sent)) => {
                self.host.call(&outgoing);
                self.attached.sent.push(Event {
                    t_ns: now_ns(),
                    what: sent,
                });
                self.calls.push((name, id));
            }
            Err(message) => self.note(format!("it cannot be made: {message}")),
        }
    }
}
