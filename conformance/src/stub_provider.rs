//! A scripted model provider on loopback: what stands behind a real Pi when a test must not depend on a network, a key
//! or chance.
//!
//! A [`Script`] says, reply by reply, what the model streams back. [`StubProvider::start`] serves it in the
//! chat-completions format and in the messages format, on 127.0.0.1 and nothing else, until it is dropped. The handle
//! tells what was asked ([`StubProvider::requests`]), lets go replies that wait ([`StubProvider::release`]), and writes
//! the `models.json` that makes a Pi use it ([`StubProvider::write_models`]).
//!
//! ```text
//! script.rs  the format, which reply a request takes, the steps of a reply   ← pure
//! wire.rs    steps in the two formats' words                                 ← pure
//! child.rs   a fake child's script as far as a model can play it  ← pure
//! http.rs    HTTP/1.1 as far as a model client speaks it
//! serve.rs   one connection: request, reply, steps
//! ```

pub mod child;
mod http;
mod script;
mod serve;
mod wire;

pub use script::{
    Cut, Reply, Role, Script, ScriptError, ShortUsage, Step, ToolCall, Usage, Words, Yes,
};
pub use serve::{End, Request};

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use serve::Shared;

/// The provider that speaks chat completions: `--model stub/x`.
pub const CHAT_MODEL: &str = "stub/x";
/// The provider that speaks the messages format, in which each text is a block of its own: `--model stub-blocks/x`.
pub const MESSAGES_MODEL: &str = "stub-blocks/x";

/// A running provider. Dropping it closes every connection and the port.
pub struct StubProvider {
    port: u16,
    shared: Arc<Shared>,
    server: AbortHandle,
}

impl StubProvider {
    /// Serves the script on a free loopback port. Needs a tokio runtime that keeps turning.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::new(script));
        let state = Arc::clone(&shared);
        let server = tokio::spawn(async move {
            // Dropping the set, when this task is aborted, ends the connections with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve::connection(stream, Arc::clone(&state)));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(StubProvider {
            port,
            shared,
            server: server.abort_handle(),
        })
    }

    /// The loopback port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// All model requests so far, in the order of their coming.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.borrow().clone()
    }

    /// Waits until `holds` is true of the requests. False when `within` ran out first.
    pub async fn wait_for(
        &self,
        within: Duration,
        mut holds: impl FnMut(&[Request]) -> bool,
    ) -> bool {
        let mut requests = self.shared.requests.subscribe();
        let waited = tokio::time::timeout(within, requests.wait_for(|seen| holds(seen))).await;
        waited.is_ok_and(|held| held.is_ok())
    }

    /// The requests as they come: each change is a new one, or the end of one.
    pub fn subscribe(&self) -> tokio::sync::watch::Receiver<Vec<Request>> {
        self.shared.requests.subscribe()
    }

    /// Lets go every reply that waits, or will wait, on `{"wait": NAME}`.
    pub fn release(&self, name: &str) {
        self.shared.released.send_modify(|names| {
            names.insert(name.to_owned());
        });
    }

    /// Takes another script. Uses are counted anew; replies under way end as the old script said.
    pub fn replace(&self, script: Script) {
        self.shared.replace(script);
    }

    /// A `models.json` for Pi with both providers, [`CHAT_MODEL`] and [`MESSAGES_MODEL`].
    pub fn models_json(&self) -> Value {
        let models: Vec<Value> = self.shared.models().iter().map(|id| model(id)).collect();
        let root = format!("http://127.0.0.1:{}", self.port);
        json!({"providers": {
            "stub": {
                "baseUrl": format!("{root}/v1"), "api": "openai-completions", "apiKey": "stub-key", "models": models,
                "compat": {"supportsDeveloperRole": false, "supportsReasoningEffort": false},
            },
            "stub-blocks": {"baseUrl": root, "api": "anthropic-messages", "apiKey": "stub-key", "models": models},
        }})
    }

    /// Writes `models.json` into a `PI_CODING_AGENT_DIR`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_models(&self, agent_dir: &Path) -> io::Result<()> {
        std::fs::write(
            agent_dir.join("models.json"),
            format!("{:#}\n", self.models_json()),
        )
    }
}

impl Drop for StubProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn model(id: &str) -> Value {
    json!({
        "id": id, "name": format!("Stub {id}"), "reasoning": true, "input": ["text"],
        "contextWindow": 128_000, "maxTokens": 16_384,
        "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1.25},
    })
}

#[cfg(test)]
mod tests;
