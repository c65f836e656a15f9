//! The conversation with a parent Pi: JSON lines both ways, and the model that the runner serves for it.

use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fake_pi::act::Child;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::model;
use super::session::{Effect, GREETING, Session};
use super::tolerant;
use crate::adapter::ParentPi;
use crate::clock::now_ns;
use crate::evidence::What;
use crate::runner::host::{Host, Outgoing};
use crate::runner::recorder::Recorder;
use crate::runner::subject::TalkPi;
use crate::runner::wire::{Listener, Wire};
use crate::stub_provider::{Reply, StubProvider, child};

/// The model of a parent, served on loopback.
pub struct Model {
    /// Taken only when this is dropped.
    runtime: Option<Runtime>,
    stub: StubProvider,
    children: Vec<Reply>,
    /// Marks of children inside the parent, each with what has happened once a request carries it.
    reaches: Vec<(String, Vec<String>)>,
}

impl Model {
    /// Starts to serve. `children` are those that live inside the parent, whose model it is too.
    ///
    /// # Errors
    /// When there is no port or no thread.
    pub fn start<'a>(
        inside: impl Iterator<Item = (&'a String, &'a Child)>,
    ) -> std::io::Result<Self> {
        let mut children = Vec::new();
        let mut reaches = Vec::new();
        for (name, child) in inside {
            // One that a model cannot play makes the scenario inapplicable; none comes here.
            children.extend(child::replies(name, child).unwrap_or_default());
            let points = child::reaches(child).into_iter();
            let points = points.map(|point| format!("{name}.reached.{point}"));
            let facts = [format!("{name}.started"), format!("{name}.task")];
            reaches.push((
                format!("kit-child-{name} "),
                facts.into_iter().chain(points).collect(),
            ));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let script = model::script(None, &ParentPi::default(), false, &children);
        let stub = runtime.block_on(StubProvider::start(script))?;
        Ok(Self {
            runtime: Some(runtime),
            stub,
            children,
            reaches,
        })
    }

    /// Lets go every reply that waits for this name.
    pub fn release(&self, name: &str) {
        self.stub.release(name);
    }

    /// Makes Pi use it: `models.json`, and `settings.json` unless there is one.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn settle_in(&self, agent: &std::path::Path) -> std::io::Result<()> {
        self.stub.write_models(agent)?;
        let settings = agent.join("settings.json");
        if settings.exists() {
            return Ok(());
        }
        let text = json!({
            "defaultProvider": "stub", "defaultModel": "x", "retry": {"enabled": false}, "enableInstallTelemetry": false,
        });
        std::fs::write(settings, text.to_string())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It may be one of its own threads that lets go last, and that cannot wait for itself.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The runner's side, shared by the one who asks, the thread that reads and the one that watches the model.
struct Shared {
    subject: String,
    recorder: Arc<Recorder>,
    session: Mutex<Session>,
    wire: Arc<Wire>,
    model: Model,
    parent: ParentPi,
    /// Whether a call has been made in this session.
    begun: Mutex<bool>,
    /// Names under which the next list of tools is wanted.
    listings: Mutex<Vec<String>>,
}

/// An extension in a real parent.
pub struct PiHost {
    shared: Arc<Shared>,
}

impl PiHost {
    /// Talks to a parent through its standard streams, and plays its model.
    pub fn new(
        subject: &str,
        stdin: ChildStdin,
        stdout: ChildStdout,
        recorder: Arc<Recorder>,
        talk: TalkPi,
    ) -> Self {
        let (wire, lines) = Wire::new(subject, Arc::clone(&recorder));
        let shared = Arc::new(Shared {
            subject: subject.to_owned(),
            recorder,
            session: Mutex::new(Session::new(talk.tells_settled)),
            wire: Arc::clone(&wire),
            model: talk.model,
            parent: talk.parent,
            begun: Mutex::new(false),
            listings: Mutex::new(Vec::new()),
        });
        wire.connect(
            lines,
            stdin,
            stdout,
            Arc::clone(&shared) as Arc<dyn Listener>,
        );
        let mut requests = shared.model.stub.subscribe();
        let watching = Arc::downgrade(&shared);
        let watch = async move {
            let mut seen = 0;
            while requests.changed().await.is_ok() {
                let Some(shared) = watching.upgrade() else {
                    return;
                };
                let new: Vec<_> = requests.borrow_and_update()[seen..].to_vec();
                seen += new.len();
                for request in &new {
                    shared.asked(&request.body, &request.roles, &request.last_user);
                }
            }
        };
        if let Some(runtime) = &shared.model.runtime {
            runtime.spawn(watch);
        }
        Self { shared }
    }
}

impl Host for PiHost {
    fn greet(&mut self) {
        self.shared
            .send(json!({"id": GREETING, "type": "get_state"}));
    }

    fn greeted(&mut self) {}

    fn call(&mut self, call: &Outgoing) {
        let effects = lock(&self.shared.session).call(call.clone());
        self.shared.carry_out(effects);
    }

    fn abort(&mut self, _id: u64) {
        self.shared.send(json!({"type": "abort"}));
    }

    fn list_tools(&mut self, name: &str, id: u64) {
        lock(&self.shared.listings).push(name.to_owned());
        // What is on offer shows in the request of the model that this run makes.
        let effects = lock(&self.shared.session).look(id);
        self.shared.carry_out(effects);
    }

    fn request(&mut self, call: &str, _id: u64, _method: &str, _params: Value) {
        self.shared
            .recorder
            .fault(format!("`{call}`: a parent Pi takes no raw request"));
    }

    fn parent(&mut self, event: &str, _params: Value) {
        // Started and settled are what the parent does by itself; interrupting it is all that its user can do.
        if event == "interrupted" {
            self.shared.send(json!({"type": "abort"}));
        }
    }

    fn open(&mut self, barrier: &str) {
        self.shared.model.release(barrier);
    }

    fn close(&mut self) {
        self.shared.wire.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener for Shared {
    fn line(&self, line: &[u8]) -> Result<(), String> {
        let now = now_ns();
        let event = tolerant::value(line).map_err(|error| format!("not JSON ({error})"))?;
        let Value::Object(event) = event else {
            return Err("not an object".to_owned());
        };
        let effects = lock(&self.session).heard(now, &event)?;
        self.carry_out(effects);
        Ok(())
    }

    /// A parent tells all that its extension tells it; that may be long, but is no fault.
    fn too_long(&self, _bytes: usize) -> Result<(), String> {
        Ok(())
    }

    fn ended(&self) {
        let effects = lock(&self.session).gone();
        self.carry_out(effects);
    }
}

impl Shared {
    fn send(&self, message: Value) {
        self.wire.send(&[message]);
    }

    /// The model was asked.
    fn asked(&self, body: &Value, roles: &[crate::stub_provider::Role], last_user: &str) {
        let learned = model::learn(body, roles, last_user);
        if !learned.parents {
            let said = body["messages"].to_string();
            for (mark, facts) in &self.model.reaches {
                if said.contains(mark) {
                    self.recorder.happened(facts);
                }
            }
            return;
        }
        for name in lock(&self.listings).drain(..) {
            let tools = learned.tools.clone();
            self.recorder.note(What::Tools { name, tools });
        }
        if let Some(text) = learned.pushed {
            let subject = self.subject.clone();
            self.recorder.note(What::Pushed { subject, text });
        }
        let effects = lock(&self.session).seen(&learned.results);
        self.carry_out(effects);
    }

    fn carry_out(&self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(message) => self.send(message),
                Effect::Begin(call) => {
                    let first = call.is_some() && !std::mem::replace(&mut *lock(&self.begun), true);
                    let children = &self.model.children;
                    let script = model::script(call.as_ref(), &self.parent, first, children);
                    self.model.stub.replace(script);
                }
                Effect::Settled {
                    call,
                    t_ns,
                    result,
                    error,
                } => self.recorder.note_at(
                    t_ns,
                    What::Response {
                        call,
                        result,
                        error,
                    },
                ),
                Effect::Update { call, params } => {
                    self.recorder.note(What::Update { call, params });
                }
                Effect::Told { method, params } => self.recorder.note(What::Notification {
                    subject: self.subject.clone(),
                    method,
                    params,
                }),
                Effect::Ready(result) => self.recorder.note(What::Initialized {
                    subject: self.subject.clone(),
                    result,
                }),
            }
        }
    }
}
