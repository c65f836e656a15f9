//! An MCP client of our own, on raw lines: a library would hide what a witness must see (answers to nothing, second answers,
//! junk between messages). Every message is held against the protocol's types, in both directions.

use std::collections::HashMap;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolResult, ClientJsonRpcMessage, InitializeResult, ListToolsResult, ServerJsonRpcMessage,
};
use serde_json::{Map, Value, json};

use super::host::{Host, Outgoing};
use super::recorder::Recorder;
use super::wire::{Listener, Wire};
use crate::evidence::What;

/// The version that is asked for; a subject may answer with an older one.
const VERSION: &str = "2025-06-18";
/// Pages of tools that are asked for at most.
const MOST_PAGES: usize = 100;

/// What an answer is for.
#[derive(Debug, Clone)]
enum Asked {
    Initialize,
    Tools {
        name: String,
        sofar: Vec<Value>,
        pages: usize,
    },
    Call(String),
    Raw(String),
}

/// The client's side of one connection, shared by the one who asks and the thread that reads.
#[derive(Debug)]
struct Shared {
    subject: String,
    recorder: Arc<Recorder>,
    asked: Mutex<HashMap<u64, (Asked, bool)>>,
    wire: Arc<Wire>,
}

/// An MCP server as subject.
#[derive(Debug)]
pub struct Mcp {
    shared: Arc<Shared>,
}

impl Mcp {
    /// Talks to a subject through its standard input and output.
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
            asked: Mutex::new(HashMap::new()),
        });
        (Self { shared }, lines)
    }
}

impl Host for Mcp {
    fn greet(&mut self) {
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "pi-conform", "version": env!("CARGO_PKG_VERSION")},
        });
        self.shared
            .ask(0, Asked::Initialize, "initialize", params, &[]);
    }

    fn greeted(&mut self) {
        self.shared
            .send(&[json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]);
    }

    fn call(&mut self, call: &Outgoing) {
        let params = json!({
            "name": call.tool,
            "arguments": call.arguments,
            "_meta": {"progressToken": call.id},
        });
        let after: &[Value] = &[cancelled(call.id)];
        let after = if call.aborted { after } else { &[] };
        self.shared.ask(
            call.id,
            Asked::Call(call.call.clone()),
            "tools/call",
            params,
            after,
        );
    }

    fn abort(&mut self, id: u64) {
        self.shared.send(&[cancelled(id)]);
    }

    fn list_tools(&mut self, name: &str, id: u64) {
        let asked = Asked::Tools {
            name: name.to_owned(),
            sofar: Vec::new(),
            pages: 1,
        };
        self.shared.ask(id, asked, "tools/list", json!({}), &[]);
    }

    fn request(&mut self, call: &str, id: u64, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.shared.expect(id, Asked::Raw(call.to_owned()));
        // Raw on purpose: what the types would refuse may be just what a scenario wants to say.
        self.shared.wire.send(&[message]);
    }

    fn parent(&mut self, event: &str, params: Value) {
        let method = format!("notifications/pi/parent/{event}");
        self.shared
            .send(&[json!({"jsonrpc": "2.0", "method": method, "params": params})]);
    }

    fn close(&mut self) {
        self.shared.wire.close();
    }
}

fn cancelled(id: u64) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "aborted by the caller"},
    })
}

impl Listener for Shared {
    fn line(&self, line: &[u8]) -> Result<(), String> {
        let message: Value =
            serde_json::from_slice(line).map_err(|error| format!("not JSON ({error})"))?;
        let typed = serde_json::from_value::<ServerJsonRpcMessage>(message.clone())
            .map(|_| ())
            .map_err(|error| format!("no valid message ({error})"));
        let Value::Object(mut message) = message else {
            return Err("not an object".to_owned());
        };
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .map(str::to_owned);
        match (method, message.remove("id")) {
            (Some(method), Some(id)) => {
                let params = message.remove("params").unwrap_or_default();
                self.requested(&method, &id, params);
                typed
            }
            (Some(method), None) => {
                let params = message.remove("params").unwrap_or_default();
                self.notified(&method, params)?;
                typed
            }
            (None, Some(id)) => {
                if self.answered(&id, message)? {
                    typed
                } else {
                    Err("an answer to nothing".to_owned())
                }
            }
            (None, None) => Err("neither a request nor an answer".to_owned()),
        }
    }
}

impl Shared {
    fn asked(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Asked, bool)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, id: u64, asked: Asked) {
        self.asked().insert(id, (asked, false));
    }

    fn ask(&self, id: u64, asked: Asked, method: &str, params: Value, after: &[Value]) {
        self.expect(id, asked);
        let mut messages =
            vec![json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})];
        messages.extend_from_slice(after);
        self.send(&messages);
    }

    /// Sends messages with one write, after holding them against the protocol's types.
    fn send(&self, messages: &[Value]) {
        for message in messages {
            if let Err(error) = serde_json::from_value::<ClientJsonRpcMessage>(message.clone()) {
                self.recorder
                    .fault(format!("the runner would send an invalid message: {error}"));
            }
        }
        self.wire.send(messages);
    }

    /// The subject asks the client. Only `ping` is anything that this client can do.
    fn requested(&self, method: &str, id: &Value, params: Value) {
        let answer = if method == "ping" {
            json!({"jsonrpc": "2.0", "id": id, "result": {}})
        } else {
            let error =
                json!({"code": -32601, "message": format!("this client has no `{method}`")});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        };
        self.wire.send(&[answer]);
        self.note_notification(method, params);
    }

    fn note_notification(&self, method: &str, params: Value) {
        self.recorder.note(What::Notification {
            subject: self.subject.clone(),
            method: method.to_owned(),
            params,
        });
    }

    fn notified(&self, method: &str, params: Value) -> Result<(), String> {
        if method != "notifications/progress" {
            self.note_notification(method, params);
            return Ok(());
        }
        let call = match params.get("progressToken").and_then(Value::as_u64) {
            Some(token) => match self.asked().get(&token) {
                Some((Asked::Call(call), _)) => call.clone(),
                _ => return Err("progress of nothing".to_owned()),
            },
            None => return Err("progress without the token that was given".to_owned()),
        };
        self.recorder.note(What::Update { call, params });
        Ok(())
    }

    /// `false`: nothing was asked under this number.
    fn answered(&self, id: &Value, mut message: Map<String, Value>) -> Result<bool, String> {
        let Some(id) = id.as_u64() else {
            return Ok(false);
        };
        let Some((asked, before)) = self
            .asked()
            .get_mut(&id)
            .map(|(asked, answered)| (asked.clone(), std::mem::replace(answered, true)))
        else {
            return Ok(false);
        };
        let result = message.remove("result");
        let error = message.remove("error");
        match asked {
            Asked::Call(call) => {
                self.recorder.note(What::Response {
                    call,
                    result: result.clone(),
                    error: error.clone(),
                });
                check::<CallToolResult>("a tool call", result.as_ref(), error.as_ref())?;
            }
            Asked::Raw(call) => self.recorder.note(What::Response {
                call,
                result,
                error,
            }),
            _ if before => return Err("a second answer to the same request".to_owned()),
            Asked::Initialize => {
                check::<InitializeResult>("`initialize`", result.as_ref(), error.as_ref())?;
                match result {
                    Some(result) => self.recorder.note(What::Initialized {
                        subject: self.subject.clone(),
                        result,
                    }),
                    None => {
                        self.recorder.lose(&self.subject);
                        let error = error.unwrap_or_default();
                        return Err(format!("`initialize` was refused: {error}"));
                    }
                }
            }
            Asked::Tools { name, sofar, pages } => {
                check::<ListToolsResult>("`tools/list`", result.as_ref(), error.as_ref())?;
                self.listed(id, name, sofar, pages, result.unwrap_or_default());
            }
        }
        Ok(true)
    }

    /// A page of tools; asks for the next, or notes them all.
    fn listed(
        &self,
        id: u64,
        name: String,
        mut sofar: Vec<Value>,
        pages: usize,
        mut result: Value,
    ) {
        if let Some(Value::Array(tools)) = result.get_mut("tools").map(Value::take) {
            sofar.extend(tools);
        }
        match result.get("nextCursor").and_then(Value::as_str) {
            Some(cursor) if pages < MOST_PAGES => {
                let asked = Asked::Tools {
                    name,
                    sofar,
                    pages: pages + 1,
                };
                self.ask(id, asked, "tools/list", json!({"cursor": cursor}), &[]);
            }
            _ => self.recorder.note(What::Tools {
                name,
                tools: Value::Array(sofar),
            }),
        }
    }
}

/// The general type of a message takes any result; this holds it against the one that was asked for.
fn check<T: serde::de::DeserializeOwned>(
    what: &str,
    result: Option<&Value>,
    error: Option<&Value>,
) -> Result<(), String> {
    match (result, error) {
        (Some(result), None) => serde_json::from_value::<T>(result.clone())
            .map(|_| ())
            .map_err(|error| format!("no valid result of {what} ({error})")),
        (None, Some(_)) => Ok(()),
        (Some(_), Some(_)) => Err(format!(
            "an answer to {what} with both a result and an error"
        )),
        (None, None) => Err(format!(
            "an answer to {what} with neither a result nor an error"
        )),
    }
}
