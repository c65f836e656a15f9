//! A plain command as subject: JSON requests in, JSON outcomes out, one a line.
//!
//! | to the subject | from it |
//! |---|---|
//! | `{"hello": {"protocol": 1}}` | `{"hello": {"protocol": 1, "name": …, "version": …}}` |
//! | `{"id": 1, "do": "TOOL", …arguments}` | `{"id": 1, "outcome": {…}}`, at any time, in any order; before it `{"id": 1, "update": …}` |
//! | `{"id": 1, "abort": true}` | |
//! | end of input: the session is over | ends |
//!
//! A command that serves only one request is started anew for each by [`each`], which speaks this protocol for it.

mod each;

use std::collections::HashMap;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use each::main as each_call;

use super::host::{Host, Outgoing};
use super::recorder::Recorder;
use super::wire::{Listener, Wire};
use crate::evidence::What;

/// The protocol's number.
pub const PROTOCOL: u32 = 1;

/// A message of a subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Reply {
    /// It is ready.
    Hello {
        /// Who it is.
        hello: Hello,
    },
    /// A call is over.
    Outcome {
        /// Which.
        id: u64,
        /// What came of it: any object; the adapter's observations point into it.
        outcome: Map<String, Value>,
    },
    /// Progress of a call.
    Update {
        /// Which.
        id: u64,
        /// Anything.
        update: Value,
    },
}

/// Who a subject is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A command as subject.
pub struct CommandHost {
    shared: Arc<Shared>,
}

struct Shared {
    subject: String,
    recorder: Arc<Recorder>,
    wire: Arc<Wire>,
    /// Names of the calls by number.
    calls: Mutex<HashMap<u64, String>>,
}

impl CommandHost {
    /// Talks to a subject through its standard streams.
    pub fn new(
        subject: &str,
        stdin: ChildStdin,
        stdout: ChildStdout,
        recorder: Arc<Recorder>,
    ) -> Self {
        let (host, lines) = Self::unconnected(subject, recorder);
        let listener = Arc::clone(&host.shared) as Arc<dyn Listener>;
        host.shared.wire.connect(lines, stdin, stdout, listener);
        host
    }

    /// Talks to nobody: what would be sent is there to be read.
    pub fn unconnected(subject: &str, recorder: Arc<Recorder>) -> (Self, Receiver<Vec<u8>>) {
        let (wire, lines) = Wire::new(subject, Arc::clone(&recorder));
        let shared = Arc::new(Shared {
            subject: subject.to_owned(),
            recorder,
            wire,
            calls: Mutex::new(HashMap::new()),
        });
        (Self { shared }, lines)
    }
}

impl Host for CommandHost {
    fn greet(&mut self) {
        let hello = Hello {
            protocol: PROTOCOL,
            ..Hello::default()
        };
        self.shared.wire.send(&[json!({"hello": hello})]);
    }

    fn greeted(&mut self) {}

    fn call(&mut self, call: &Outgoing) {
        self.shared.calls().insert(call.id, call.call.clone());
        let mut request = Map::from_iter([
            ("id".to_owned(), call.id.into()),
            ("do".to_owned(), call.tool.clone().into()),
        ]);
        request.extend(call.arguments.clone());
        self.shared.wire.send(&[Value::Object(request)]);
    }

    fn abort(&mut self, id: u64) {
        self.shared.wire.send(&[json!({"id": id, "abort": true})]);
    }

    fn list_tools(&mut self, _name: &str, _id: u64) {
        self.shared.recorder.fault("a command has no list of tools");
    }

    fn request(&mut self, call: &str, _id: u64, _method: &str, _params: Value) {
        self.shared
            .recorder
            .fault(format!("`{call}`: a command takes no raw request"));
    }

    fn parent(&mut self, _event: &str, _params: Value) {}

    fn close(&mut self) {
        self.shared.wire.close();
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, id: u64) -> Result<String, String> {
        let name = self.calls().get(&id).cloned();
        name.ok_or_else(|| format!("nothing was asked under the number {id}"))
    }
}

impl Listener for Shared {
    fn line(&self, line: &[u8]) -> Result<(), String> {
        let value: Value =
            serde_json::from_slice(line).map_err(|error| format!("not JSON ({error})"))?;
        let reply: Reply = serde_json::from_value(value).map_err(|_| {
            "neither `hello`, `outcome` nor `update` with the keys that belong to it".to_owned()
        })?;
        match reply {
            Reply::Hello { hello } if hello.protocol != PROTOCOL => {
                self.recorder.lose(&self.subject);
                return Err(format!(
                    "it speaks protocol {}, and the suite speaks {PROTOCOL}",
                    hello.protocol
                ));
            }
            Reply::Hello { hello } => self.recorder.note(What::Initialized {
                subject: self.subject.clone(),
                result: json!(hello),
            }),
            Reply::Outcome { id, outcome } => self.recorder.note(What::Response {
                call: self.named(id)?,
                result: Some(Value::Object(outcome)),
                error: None,
            }),
            Reply::Update { id, update } => self.recorder.note(What::Update {
                call: self.named(id)?,
                params: json!({"message": update}),
            }),
        }
        Ok(())
    }
}
