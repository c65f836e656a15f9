//! One connection: takes requests, finds their replies, plays the steps, and notes how each ended.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::http::{Connection, Incoming};
use super::script::{Counted, Cut, Facts, Reply, Role, Script, Step};
use super::wire::{self, Block, Chat, Messages, Wire};

/// A model request, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its number, from 1, over all connections.
    pub number: usize,
    /// Which reply it took: its place in the script. None for the default, and when there was none.
    pub reply: Option<usize>,
    /// That reply's label.
    pub name: Option<String>,
    /// `/v1/chat/completions` or `/v1/messages`.
    pub path: String,
    /// Model id.
    pub model: String,
    /// Who wrote the messages, in order.
    pub roles: Vec<Role>,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
    /// Last user message.
    pub last_user: String,
    /// The whole request.
    pub body: Value,
    /// How the reply ended; none while it is being sent.
    pub end: Option<End>,
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Sent as scripted, to its end.
    Sent,
    /// Cut as scripted.
    Cut(Cut),
    /// The client closed the connection first: what an abort does.
    ClientGone,
    /// No reply was left, so the request was refused.
    NoReply,
}

/// What the connections share with the handle.
pub(super) struct Shared {
    script: Mutex<Counted>,
    pub requests: watch::Sender<Vec<Request>>,
    pub released: watch::Sender<BTreeSet<String>>,
}

impl Shared {
    pub fn new(script: Script) -> Self {
        Shared {
            script: Mutex::new(Counted::new(script)),
            requests: watch::Sender::new(Vec::new()),
            released: watch::Sender::new(BTreeSet::new()),
        }
    }

    pub fn replace(&self, script: Script) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = Counted::new(script);
    }

    pub fn models(&self) -> Vec<String> {
        self.script
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .models()
    }

    /// Notes a request and gives its number and its reply.
    fn take(&self, path: &str, body: Value, facts: &Facts) -> (usize, Option<Reply>) {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = script.take(facts);
        let mut number = 0;
        self.requests.send_modify(|requests| {
            number = requests.len() + 1;
            requests.push(Request {
                number,
                reply: taken.as_ref().and_then(|(index, _)| *index),
                name: taken.as_ref().and_then(|(_, reply)| reply.name.clone()),
                path: path.to_owned(),
                model: facts.model.clone(),
                roles: facts.roles.clone(),
                tools: facts.tools.clone(),
                last_user: facts.last_user.clone(),
                body,
                end: None,
            });
        });
        (number, taken.map(|(_, reply)| reply))
    }

    fn ended(&self, number: usize, end: End) {
        self.requests
            .send_modify(|requests| requests[number - 1].end = Some(end));
    }
}

/// Serves one client until it goes away, or a script cuts it off.
pub(super) async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    // A client that breaks off or talks nonsense is its own affair: the connection ends, the provider goes on.
    while let Ok(Some(incoming)) = connection.request().await {
        match answer(&mut connection, &shared, incoming).await {
            Ok(After::Next) => {}
            Ok(After::Reset) => {
                drop(connection.reset());
                return;
            }
            Ok(After::Close) | Err(_) => return,
        }
    }
}

/// What happens to the connection behind a reply.
enum After {
    Next,
    Close,
    Reset,
}

async fn answer(
    connection: &mut Connection,
    shared: &Shared,
    incoming: Incoming,
) -> io::Result<After> {
    let Incoming { method, path, body } = incoming;
    if method == "GET" && path.ends_with("/models") {
        let models: Vec<Value> = shared
            .models()
            .iter()
            .map(|id| json!({"id": id, "object": "model"}))
            .collect();
        return refuse(connection, 200, &json!({"object": "list", "data": models})).await;
    }
    let messages = path.ends_with("/messages");
    if method != "POST" || !(messages || path.ends_with("/chat/completions")) {
        return refuse(connection, 404, &error("no such path")).await;
    }
    let body: Value = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(wrong) => return refuse(connection, 400, &error(&format!("not JSON: {wrong}"))).await,
    };
    let facts = Facts::of(&body);
    let (number, reply) = shared.take(&path, body, &facts);
    let Some(reply) = reply else {
        shared.ended(number, End::NoReply);
        let last: String = facts.last_user.chars().take(200).collect();
        return refuse(
            connection,
            400,
            &error(&format!(
                "no scripted reply for the last user message {last:?}"
            )),
        )
        .await;
    };
    let end = match play(connection, shared, &reply, &facts, number, messages).await {
        Ok(end) => end,
        Err(_) => End::ClientGone,
    };
    let after = match end {
        End::Sent | End::NoReply => After::Next,
        End::Cut(Cut::Rst) => After::Reset,
        End::Cut(Cut::Fin) | End::ClientGone => After::Close,
    };
    shared.ended(number, end);
    Ok(after)
}

fn error(message: &str) -> Value {
    json!({"error": {"type": "stub_script", "message": message}})
}

async fn refuse(connection: &mut Connection, status: u16, body: &Value) -> io::Result<After> {
    connection
        .respond(status, &Map::new(), body.to_string().as_bytes())
        .await?;
    Ok(After::Next)
}

/// Sends one reply. An error means that the client is no longer there to be sent to.
async fn play(
    connection: &mut Connection,
    shared: &Shared,
    reply: &Reply,
    facts: &Facts,
    number: usize,
    messages: bool,
) -> io::Result<End> {
    if reply.delay_ms > 0
        && !connection
            .pause(Duration::from_millis(reply.delay_ms))
            .await
    {
        return Ok(End::ClientGone);
    }
    if let Some(status) = reply.status.filter(|status| *status != 200) {
        let default = || error(&format!("scripted HTTP {status}"));
        let body = match reply.body.clone().unwrap_or_else(default) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        connection
            .respond(status, &reply.headers, body.as_bytes())
            .await?;
        return Ok(End::Sent);
    }
    if !facts.stream {
        let body = wire::whole(number, reply, facts).to_string();
        connection
            .respond(200, &reply.headers, body.as_bytes())
            .await?;
        return Ok(End::Sent);
    }
    connection.begin_stream(&reply.headers).await?;
    let wire = if messages {
        Wire::Messages(Messages::new(number, reply, &facts.model))
    } else {
        Wire::Chat(Chat::new(number, reply, &facts.model))
    };
    let mut stage = Stage {
        connection,
        shared,
        reply,
        number,
        wire,
        calls: 0,
    };
    stage.connection.part(&stage.wire.start()).await?;
    for step in reply.plan() {
        if let Some(end) = stage.step(step).await? {
            return Ok(end);
        }
    }
    stage.connection.end_stream().await?;
    Ok(End::Sent)
}

/// A streamed reply under way.
struct Stage<'a> {
    connection: &'a mut Connection,
    shared: &'a Shared,
    reply: &'a Reply,
    number: usize,
    wire: Wire,
    calls: usize,
}

impl Stage<'_> {
    /// Plays one step; an end when the reply is over with it.
    async fn step(&mut self, step: Step) -> io::Result<Option<End>> {
        let going_on = |still_there: bool| {
            if still_there {
                None
            } else {
                Some(End::ClientGone)
            }
        };
        let text = match step {
            Step::Text(text) => {
                let open = self.wire.open(Block::Text);
                return self
                    .stream(open, Block::Text, &text, self.reply.chunk)
                    .await;
            }
            Step::Thinking(text) => {
                let open = self.wire.open(Block::Thinking);
                return self
                    .stream(open, Block::Thinking, &text, self.reply.chunk)
                    .await;
            }
            Step::ToolCall(call) => {
                self.calls += 1;
                let id = call
                    .id
                    .clone()
                    .unwrap_or_else(|| wire::call_id(self.number, self.calls));
                let arguments = call.arguments_text();
                let open = self.wire.tool(&id, &call.name);
                let size = self.reply.chunk.unwrap_or(usize::MAX);
                return self.stream(open, Block::Tool, &arguments, Some(size)).await;
            }
            Step::SleepMs(time) => {
                return Ok(going_on(
                    self.connection.pause(Duration::from_millis(time)).await,
                ));
            }
            Step::Wait(name) => {
                let mut released = self.shared.released.subscribe();
                let still_there = tokio::select! {
                    _ = released.wait_for(|names| names.contains(&name)) => true,
                    () = self.connection.gone() => false,
                };
                return Ok(going_on(still_there));
            }
            Step::Hang(_) => {
                self.connection.gone().await;
                return Ok(Some(End::ClientGone));
            }
            Step::Cut(how) => {
                if how == Cut::Fin {
                    self.connection.end_stream().await?;
                }
                return Ok(Some(End::Cut(how)));
            }
            Step::Raw(text) => text,
            Step::Sse(object) => self.wire.object(&object),
            Step::Error(error) => self.wire.error(&error),
            Step::Finish(reason) => self.wire.finish(&reason),
            Step::Usage(usage) => self.wire.usage(&usage),
            Step::Done(_) => self.wire.done(),
        };
        self.connection.part(&text).await?;
        Ok(None)
    }

    async fn stream(
        &mut self,
        open: String,
        block: Block,
        text: &str,
        size: Option<usize>,
    ) -> io::Result<Option<End>> {
        self.connection.part(&open).await?;
        for piece in wire::pieces(text, size) {
            let part = self.wire.piece(block, piece);
            self.connection.part(&part).await?;
            let delay = self.reply.chunk_delay_ms;
            if delay > 0 && !self.connection.pause(Duration::from_millis(delay)).await {
                return Ok(Some(End::ClientGone));
            }
        }
        Ok(None)
    }
}
