//! What the runner needs of a subject, however it is talked to: as an MCP server, as a Pi extension in a real parent, or as a plain
//! command. Each turns these requests into its own, and its own messages into events.

use serde_json::{Map, Value};

/// A tool call that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// The call's name in the scenario.
    pub call: String,
    /// Number, unique in the scenario.
    pub id: u64,
    /// Tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The abort goes out in the same write.
    pub aborted: bool,
}

/// A subject that runs. Nothing here blocks: answers come as events.
pub trait Host: Send {
    /// Begins the handshake. It is over when the fact `SUBJECT.starts` holds.
    fn greet(&mut self);
    /// The handshake is over: whatever is still to be said about that.
    fn greeted(&mut self);
    /// Makes a call.
    fn call(&mut self, call: &Outgoing);
    /// Fires one call's own abort.
    fn abort(&mut self, id: u64);
    /// Asks for the tools, to be kept under a name.
    fn list_tools(&mut self, name: &str, id: u64);
    /// A raw request.
    fn request(&mut self, call: &str, id: u64, method: &str, params: Value);
    /// A parent-run event: `started`, `interrupted`, `settled`.
    fn parent(&mut self, event: &str, params: Value);
    /// A barrier opens, for whatever of a child's script the host itself plays.
    fn open(&mut self, _barrier: &str) {}
    /// Ends the session: no input comes any more.
    fn close(&mut self);
}
