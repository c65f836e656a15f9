//! An assistant's message while it grows, and how it looks in records.

use serde_json::{Value, json};

use super::broken_json;
use super::js;
use super::options::{Api, Model};
use super::provider::ModelPiece;
use super::usage::{self, Tokens};
use crate::act::Flavour;

/// A content block.
#[derive(Debug, Clone)]
enum Block {
    Text(String),
    Thinking { text: String, signature: String },
    Tool(ToolCall),
}

/// A tool call inside an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, or what could be salvaged of them.
    pub arguments: Value,
    /// 1.6.0: why the arguments could not be read.
    pub broken: Option<String>,
    /// Their JSON text as it came.
    text: String,
}

impl ToolCall {
    fn record(&self, flavour: Flavour) -> Value {
        let mut call = json!({
            "type": "toolCall", "id": self.id, "name": self.name, "arguments": self.arguments,
        });
        if let (Flavour::V1_6_0, Some(broken)) = (flavour, &self.broken) {
            call["argumentsError"] = json!(broken);
        }
        call
    }
}

/// Fields that a record shows as they were when Pi took the event up. `content` (and `usage` with the messages API) is an
/// object that goes on changing: it shows what has been read by the time the record is written.
#[derive(Debug, Clone)]
pub struct Scalars {
    stop: String,
    response_id: Option<String>,
    usage: Value,
    error: Option<String>,
}

/// Something that a message update tells.
#[derive(Debug, Clone)]
pub enum Change {
    /// The message begins.
    Start,
    /// A block opens.
    Open(usize),
    /// A block grows.
    Delta(usize, String),
    /// A block is closed.
    Close(usize),
    /// The message is whole.
    Done,
}

/// An assistant's message.
#[derive(Debug, Clone)]
pub struct Message {
    flavour: Flavour,
    api: Api,
    head: Value,
    blocks: Vec<(Block, bool)>,
    scalars: Scalars,
    timestamp: u64,
    raw_stop: Option<String>,
    /// The turn was given up before it started: `errorMessage` then stands before `timestamp` (1.6.0).
    never_started: bool,
    thinking_level: String,
    duration: u64,
    tokens: Tokens,
    finished: bool,
}

impl Message {
    /// A message without content.
    pub fn new(flavour: Flavour, model: &Model, thinking_level: &str, now: u64) -> Self {
        let stop = if flavour == Flavour::V1_6_0 {
            "pending"
        } else {
            "stop"
        };
        Self {
            flavour,
            api: model.api,
            head: json!({"api": model.api.name(), "provider": model.provider, "model": model.id}),
            blocks: Vec::new(),
            scalars: Scalars {
                stop: stop.to_owned(),
                response_id: None,
                usage: usage::nothing(),
                error: None,
            },
            timestamp: now,
            raw_stop: None,
            never_started: false,
            thinking_level: thinking_level.to_owned(),
            duration: 0,
            tokens: Tokens::default(),
            finished: false,
        }
    }

    /// The message of a turn that was aborted before a request was made.
    pub fn never_started(flavour: Flavour, model: &Model, thinking_level: &str, now: u64) -> Self {
        let mut message = Self::new(flavour, model, thinking_level, now);
        message.fail("aborted", aborted_early(flavour), now);
        message.never_started = flavour == Flavour::V1_6_0;
        if message.never_started {
            message.scalars.error = Some("This operation was aborted".to_owned());
        }
        message
    }

    /// Takes a piece in; what follows from it for the wire is added to `changes`.
    pub fn take(&mut self, piece: &ModelPiece, model: &Model, changes: &mut Vec<Change>) {
        match piece {
            ModelPiece::Begin => changes.push(Change::Start),
            ModelPiece::Id(id) => self.scalars.response_id = Some(id.clone()),
            ModelPiece::StartTokens(tokens) | ModelPiece::Tokens(tokens) => {
                self.tokens = *tokens;
                self.scalars.usage = tokens.record(self.flavour, self.api, &model.cost);
            }
            ModelPiece::TextBlock if self.api == Api::Messages => {
                self.open(Block::Text(String::new()), changes)
            }
            ModelPiece::ThinkingBlock if self.api == Api::Messages => {
                self.open(
                    Block::Thinking {
                        text: String::new(),
                        signature: String::new(),
                    },
                    changes,
                );
            }
            ModelPiece::Text(text) => {
                let at = self
                    .find(|block| matches!(block, Block::Text(_)))
                    .unwrap_or_else(|| {
                        self.open(Block::Text(String::new()), changes);
                        self.blocks.len() - 1
                    });
                if let Block::Text(whole) = &mut self.blocks[at].0 {
                    js::append(whole, text);
                }
                changes.push(Change::Delta(at, text.clone()));
            }
            ModelPiece::Thinking(text) => {
                let at = self
                    .find(|block| matches!(block, Block::Thinking { .. }))
                    .unwrap_or_else(|| {
                        let signature = if self.api == Api::Completions {
                            "reasoning_content"
                        } else {
                            ""
                        };
                        self.open(
                            Block::Thinking {
                                text: String::new(),
                                signature: signature.to_owned(),
                            },
                            changes,
                        );
                        self.blocks.len() - 1
                    });
                if let Block::Thinking { text: whole, .. } = &mut self.blocks[at].0 {
                    js::append(whole, text);
                }
                changes.push(Change::Delta(at, text.clone()));
            }
            ModelPiece::Signature(more) => {
                if let Some(at) = self.find(|block| matches!(block, Block::Thinking { .. }))
                    && let Block::Thinking { signature, .. } = &mut self.blocks[at].0
                {
                    signature.push_str(more);
                }
            }
            ModelPiece::ToolStart { id, name } => {
                let call = ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: json!({}),
                    broken: None,
                    text: String::new(),
                };
                self.open(Block::Tool(call), changes);
                if self.api == Api::Completions {
                    // The chunk that opens a call already carries an empty piece of its arguments.
                    changes.push(Change::Delta(self.blocks.len() - 1, String::new()));
                }
            }
            ModelPiece::ToolArguments(text) => {
                let last = self
                    .blocks
                    .iter()
                    .rposition(|(block, _)| matches!(block, Block::Tool(_)));
                if let Some(at) = last {
                    if let Block::Tool(call) = &mut self.blocks[at].0 {
                        call.text.push_str(text);
                        call.arguments = broken_json::salvage(&call.text);
                    }
                    changes.push(Change::Delta(at, text.clone()));
                }
            }
            ModelPiece::BlockEnd if self.api == Api::Messages => self.close_all(changes),
            ModelPiece::Finish(reason) => self.finish(reason),
            ModelPiece::End => {
                self.close_all(changes);
                changes.push(Change::Done);
            }
            // Chat completions know no blocks; a failure is taken by the session.
            ModelPiece::TextBlock
            | ModelPiece::ThinkingBlock
            | ModelPiece::BlockEnd
            | ModelPiece::Fail(_) => {}
        }
    }

    /// The block that a piece goes to: the last open one of its kind (messages API), or the only one of its kind.
    fn find(&self, kind: impl Fn(&Block) -> bool) -> Option<usize> {
        self.blocks
            .iter()
            .rposition(|(block, open)| *open && kind(block))
    }

    fn open(&mut self, block: Block, changes: &mut Vec<Change>) {
        if self.api == Api::Messages {
            self.close_all(changes);
        }
        self.blocks.push((block, true));
        changes.push(Change::Open(self.blocks.len() - 1));
    }

    /// Closes what is open, in block order.
    pub fn close_all(&mut self, changes: &mut Vec<Change>) {
        for (at, (block, open)) in self.blocks.iter_mut().enumerate() {
            if !std::mem::take(open) {
                continue;
            }
            if let Block::Tool(call) = block {
                let newer = self.flavour == Flavour::V1_6_0;
                let error =
                    broken_json::error(&call.text, true).filter(|_| newer && !call.text.is_empty());
                if let Some(error) = error {
                    call.arguments = json!({});
                    call.broken = Some(format!("{error}\n\nReceived arguments:\n{}", call.text));
                }
            }
            changes.push(Change::Close(at));
        }
    }

    fn finish(&mut self, reason: &str) {
        self.finished = true;
        self.raw_stop = Some(reason.to_owned());
        let stop = match reason {
            "stop" | "end_turn" | "stop_sequence" | "pause_turn" => "stop",
            "length" | "max_tokens" => "length",
            "tool_calls" | "function_call" | "tool_use" => "toolUse",
            other => {
                self.scalars.error = Some(format!("Provider finish_reason: {other}"));
                "error"
            }
        };
        self.scalars.stop = stop.to_owned();
    }

    /// Whether the provider has said why the model stopped.
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// Ends the message badly: `error` or `aborted`, with its text.
    pub fn fail(&mut self, stop: &str, error: &str, now: u64) {
        self.scalars.stop = stop.to_owned();
        self.scalars.error = Some(error.to_owned());
        self.complete(now);
    }

    /// The moment at which it ended.
    pub fn complete(&mut self, now: u64) {
        self.duration = now.saturating_sub(self.timestamp);
        if self.scalars.stop == "pending" {
            self.scalars.stop = "stop".to_owned();
        }
    }

    /// Its stop reason.
    pub fn stop(&self) -> &str {
        &self.scalars.stop
    }

    /// Its `errorMessage`.
    pub fn error(&self) -> Option<&str> {
        self.scalars.error.as_deref()
    }

    /// Its token counts.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// The tool calls in it, in order.
    pub fn calls(&self) -> Vec<ToolCall> {
        let call = |(block, _): &(Block, bool)| match block {
            Block::Tool(call) => Some(call.clone()),
            _ => None,
        };
        self.blocks.iter().filter_map(call).collect()
    }

    /// Its text blocks, joined.
    pub fn text(&self) -> String {
        let text = |(block, _): &(Block, bool)| match block {
            Block::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.blocks.iter().filter_map(text).collect()
    }

    /// The values that a record keeps from the moment at which Pi took the event up.
    pub fn scalars(&self) -> Scalars {
        self.scalars.clone()
    }

    fn block(&self, at: usize) -> Value {
        let (block, open) = &self.blocks[at];
        let mut record = match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Thinking { text, signature } => {
                json!({"type": "thinking", "thinking": text, "thinkingSignature": signature})
            }
            Block::Tool(call) => call.record(self.flavour),
        };
        if *open && self.flavour == Flavour::V0_73_1 {
            // 0.73.1 shows what its provider code notes in a block while that block is open.
            match (self.api, block) {
                (Api::Completions, Block::Tool(call)) => {
                    record["partialArgs"] = json!(call.text);
                    let calls = self.blocks[..at]
                        .iter()
                        .filter(|(block, _)| matches!(block, Block::Tool(_)));
                    record["streamIndex"] = json!(calls.count());
                }
                (Api::Completions, _) => {}
                (Api::Messages, block) => {
                    if let Block::Tool(call) = block {
                        record["partialJson"] = json!(call.text);
                    }
                    record["index"] = json!(at);
                }
            }
        }
        record
    }

    /// The message as it stands, with the scalars of an earlier moment.
    pub fn growing(&self, scalars: &Scalars) -> Value {
        let content: Vec<Value> = (0..self.blocks.len()).map(|at| self.block(at)).collect();
        let mut message = json!({"role": "assistant", "content": content});
        for (name, field) in self.head.as_object().into_iter().flatten() {
            message[name] = field.clone();
        }
        let usage = if self.api == Api::Completions {
            &scalars.usage
        } else {
            &self.scalars.usage
        };
        message["usage"] = usage.clone();
        message["stopReason"] = json!(scalars.stop);
        if let (true, Some(error)) = (self.never_started, &self.scalars.error) {
            message["errorMessage"] = json!(error);
        }
        message["timestamp"] = json!(self.timestamp);
        if let Some(id) = &scalars.response_id {
            message["responseId"] = json!(id);
        }
        if let (Flavour::V0_73_1, Some(error)) = (self.flavour, &scalars.error) {
            message["errorMessage"] = json!(error);
        }
        message
    }

    /// The whole message, as `message_end` and everything after it shows it.
    pub fn whole(&self) -> Value {
        let mut message = self.growing(&self.scalars);
        let newer = self.flavour == Flavour::V1_6_0;
        if let (true, Some(raw)) = (newer, &self.raw_stop) {
            message["rawStopReason"] = json!(raw);
        }
        if let (false, Some(error)) = (self.never_started, &self.scalars.error) {
            message["errorMessage"] = json!(error);
        }
        if newer {
            message["durationMs"] = json!(self.duration);
            message["thinkingLevel"] = json!(self.thinking_level);
        }
        message
    }

    /// The `assistantMessageEvent` of a change, without `partial`.
    pub fn event(&self, change: &Change) -> Value {
        let kind = |at: usize| match &self.blocks[at].0 {
            Block::Text(_) => "text",
            Block::Thinking { .. } => "thinking",
            Block::Tool(_) => "toolcall",
        };
        match change {
            Change::Open(at) => {
                let mut event = json!({"type": format!("{}_start", kind(*at)), "contentIndex": at});
                if let (Flavour::V1_6_0, Block::Tool(call)) = (self.flavour, &self.blocks[*at].0) {
                    event["id"] = json!(call.id);
                    event["toolName"] = json!(call.name);
                }
                event
            }
            Change::Delta(at, delta) => {
                json!({"type": format!("{}_delta", kind(*at)), "contentIndex": at, "delta": delta})
            }
            Change::Close(at) => {
                let mut event = json!({"type": format!("{}_end", kind(*at)), "contentIndex": at});
                match &self.blocks[*at].0 {
                    Block::Text(text) | Block::Thinking { text, .. } => {
                        event["content"] = json!(text)
                    }
                    Block::Tool(call) => event["toolCall"] = call.record(self.flavour),
                }
                event
            }
            Change::Start | Change::Done => Value::Null,
        }
    }

    /// The `message_update` record of a change that Pi took up when the scalars were `scalars`.
    pub fn update(&self, change: &Change, scalars: &Scalars) -> Value {
        let mut event = self.event(change);
        match self.flavour {
            Flavour::V1_6_0 => json!({
                "type": "message_update", "usage": self.scalars.usage, "assistantMessageEvent": event,
            }),
            Flavour::V0_73_1 => {
                event["partial"] = self.growing(&self.scalars);
                json!({
                    "type": "message_update", "assistantMessageEvent": event, "message": self.growing(scalars),
                })
            }
        }
    }
}

/// What an answer says that was aborted before the provider said anything.
pub fn aborted_early(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::V1_6_0 => "Request aborted",
        Flavour::V0_73_1 => "Request was aborted.",
    }
}
