//! A small MCP client: starts `delegate mcp`, sends calls and cancellations as lines, and reads answers.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than any answer here takes on a machine that is busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A running `delegate mcp`.
pub struct Delegate {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    last_id: u64,
    /// Read while something else was waited for.
    unread: Vec<Value>,
}

impl Delegate {
    /// Starts it and shakes hands.
    pub async fn start(mut command: Command, stderr: &Path) -> Self {
        command
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command.stderr(std::fs::File::create(stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut delegate = Delegate {
            child,
            stdin,
            stdout,
            last_id: 0,
            unread: Vec::new(),
        };
        let client = json!({"name": "real-pi", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let id = delegate.request("initialize", hello).await;
        delegate.response(id).await;
        delegate
            .send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        delegate
    }

    pub fn pid(&self) -> i32 {
        self.child.id().unwrap().cast_signed()
    }

    /// Sends a call of the tool and gives its id.
    pub async fn call(&mut self, arguments: Value) -> u64 {
        self.request(
            "tools/call",
            json!({"name": "delegate", "arguments": arguments}),
        )
        .await
    }

    /// Waits for the result of a call: its structured content, and the whole of it.
    pub async fn result(&mut self, id: u64) -> Outcome {
        let response = self.response(id).await;
        let result = response["result"].clone();
        assert!(result.is_object(), "the call was answered with {response}");
        Outcome {
            is_error: result["isError"] == true,
            details: result["structuredContent"].clone(),
            whole: result,
        }
    }

    /// Aborts a call, as an MCP client does.
    pub async fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id, "reason": "no longer wanted"});
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await;
    }

    /// Closes its input and waits for its end.
    pub async fn close(mut self) -> ExitStatus {
        drop(self.stdin);
        timeout(PATIENCE, self.child.wait())
            .await
            .expect("delegate does not end with its input")
            .unwrap()
    }

    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    async fn send(&mut self, message: Value) {
        self.stdin
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn response(&mut self, id: u64) -> Value {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(at) = self.unread.iter().position(is_it) {
            return self.unread.remove(at);
        }
        loop {
            let line = timeout(PATIENCE, self.stdout.next_line()).await;
            let line =
                line.unwrap_or_else(|_| panic!("no answer to request {id} within {PATIENCE:?}"));
            let line = line
                .unwrap()
                .unwrap_or_else(|| panic!("delegate ended before it answered request {id}"));
            let message =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"));
            if is_it(&message) {
                return message;
            }
            self.unread.push(message);
        }
    }
}

/// What a call came back with.
#[derive(Debug)]
pub struct Outcome {
    pub is_error: bool,
    /// `structuredContent`.
    pub details: Value,
    pub whole: Value,
}

impl Outcome {
    /// Asserts a success with this answer.
    pub fn succeeded_with(&self, answer: &str) {
        assert_eq!(self.details["outcome"], "success", "{:#}", self.whole);
        assert_eq!(self.details["answer"], answer, "{:#}", self.whole);
        assert!(
            !self.is_error && self.details["ok"] == true,
            "{:#}",
            self.whole
        );
    }

    /// Asserts an ending that is none, by its outcome and its reason.
    pub fn ended_as(&self, outcome: &str, reason: &str) {
        let found = (
            self.details["outcome"].as_str(),
            self.details["reason"].as_str(),
        );
        assert_eq!(found, (Some(outcome), Some(reason)), "{:#}", self.whole);
        assert!(
            self.is_error && self.details["ok"] == false,
            "{:#}",
            self.whole
        );
    }
}
