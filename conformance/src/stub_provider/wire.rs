//! The two formats in which a provider streams: every function gives the text to send for one step, and nothing else
//! happens here.

use serde_json::{Map, Value, json};

use super::script::{Facts, Reply, ShortUsage, Step, Usage};

/// What a block of the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    Text,
    Thinking,
    Tool,
}

/// One reply being put into the words of its format.
pub(super) enum Wire {
    Chat(Chat),
    Messages(Messages),
}

impl Wire {
    /// What comes before the first step.
    pub fn start(&self) -> String {
        match self {
            Wire::Chat(_) => String::new(),
            Wire::Messages(wire) => wire.start(),
        }
    }

    /// Opens a text or thinking block. Chat completions have no blocks.
    pub fn open(&mut self, block: Block) -> String {
        match self {
            Wire::Chat(_) => String::new(),
            Wire::Messages(wire) => wire.open(match block {
                Block::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
                Block::Text | Block::Tool => json!({"type": "text", "text": ""}),
            }),
        }
    }

    /// Opens a tool call.
    pub fn tool(&mut self, id: &str, name: &str) -> String {
        match self {
            Wire::Chat(wire) => wire.tool(id, name),
            Wire::Messages(wire) => {
                wire.open(json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
            }
        }
    }

    /// A piece of the block that is open.
    pub fn piece(&mut self, block: Block, piece: &str) -> String {
        match self {
            Wire::Chat(wire) => wire.piece(block, piece),
            Wire::Messages(wire) => wire.change(match block {
                Block::Text => json!({"type": "text_delta", "text": piece}),
                Block::Thinking => json!({"type": "thinking_delta", "thinking": piece}),
                Block::Tool => json!({"type": "input_json_delta", "partial_json": piece}),
            }),
        }
    }

    pub fn object(&self, object: &Value) -> String {
        match self {
            Wire::Chat(_) => data(object),
            Wire::Messages(_) => event(object["type"].as_str().unwrap_or("message"), object),
        }
    }

    pub fn error(&self, error: &Value) -> String {
        match self {
            Wire::Chat(_) => data(&json!({"error": error})),
            Wire::Messages(_) => event("error", &json!({"type": "error", "error": error})),
        }
    }

    pub fn finish(&mut self, reason: &str) -> String {
        match self {
            Wire::Chat(wire) => wire.delta(Map::new(), Some(reason)),
            Wire::Messages(wire) => wire.finish(reason),
        }
    }

    pub fn usage(&mut self, usage: &Usage) -> String {
        match self {
            Wire::Chat(wire) => wire.usage(usage),
            Wire::Messages(wire) => {
                wire.usage = Some(tokens(usage));
                String::new()
            }
        }
    }

    pub fn done(&self) -> String {
        match self {
            Wire::Chat(_) => "data: [DONE]\n\n".to_owned(),
            Wire::Messages(wire) => wire.done(),
        }
    }
}

fn data(object: &Value) -> String {
    format!("data: {object}\n\n")
}

fn event(kind: &str, object: &Value) -> String {
    format!("event: {kind}\ndata: {object}\n\n")
}

/// Chat-completions chunks.
pub(super) struct Chat {
    id: String,
    model: String,
    reasoning_field: String,
    started: bool,
    calls: usize,
}

impl Chat {
    pub fn new(number: usize, reply: &Reply, model: &str) -> Self {
        Chat {
            id: format!("chatcmpl-stub-{number}"),
            model: model.to_owned(),
            reasoning_field: reply
                .reasoning_field
                .clone()
                .unwrap_or_else(|| "reasoning_content".to_owned()),
            started: false,
            calls: 0,
        }
    }

    fn chunk(&self, choices: Value) -> Value {
        json!({"id": self.id, "object": "chat.completion.chunk", "created": CREATED, "model": self.model, "choices": choices})
    }

    fn delta(&mut self, mut delta: Map<String, Value>, finish: Option<&str>) -> String {
        if !std::mem::replace(&mut self.started, true) {
            delta.insert("role".to_owned(), json!("assistant"));
        }
        data(&self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}])))
    }

    fn piece(&mut self, block: Block, piece: &str) -> String {
        let (key, value) = match block {
            Block::Text => ("content", json!(piece)),
            Block::Thinking => (self.reasoning_field.as_str(), json!(piece)),
            Block::Tool => {
                let index = self.calls.saturating_sub(1);
                (
                    "tool_calls",
                    json!([{"index": index, "function": {"arguments": piece}}]),
                )
            }
        };
        let delta = Map::from_iter([(key.to_owned(), value)]);
        self.delta(delta, None)
    }

    fn tool(&mut self, id: &str, name: &str) -> String {
        self.calls += 1;
        let call = json!([{"index": self.calls - 1, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]);
        self.delta(Map::from_iter([("tool_calls".to_owned(), call)]), None)
    }

    fn usage(&self, usage: &Usage) -> String {
        let mut chunk = self.chunk(json!([]));
        chunk["usage"] = chat_usage(usage);
        data(&chunk)
    }
}

/// When every scripted answer was made: a fixed second, so that two runs give the same bytes.
const CREATED: u64 = 1_700_000_000;

fn chat_usage(usage: &Usage) -> Value {
    let short = match usage {
        Usage::Short(short) => short,
        Usage::Own(own) => return Value::Object(own.clone()),
    };
    let mut object = json!({
        "prompt_tokens": short.r#in, "completion_tokens": short.out, "total_tokens": short.r#in + short.out,
    });
    let mut details = Map::new();
    if let Some(cached) = short.cached {
        details.insert("cached_tokens".to_owned(), json!(cached));
    }
    if let Some(written) = short.cache_write {
        details.insert("cache_write_tokens".to_owned(), json!(written));
    }
    if !details.is_empty() {
        object["prompt_tokens_details"] = Value::Object(details);
    }
    if let Some(reasoning) = short.reasoning {
        object["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
    }
    object
}

/// Events of the messages format.
pub(super) struct Messages {
    id: String,
    model: String,
    announced: Option<Usage>,
    blocks: usize,
    open: Option<Block>,
    reason: Option<String>,
    usage: Option<Value>,
}

impl Messages {
    pub fn new(number: usize, reply: &Reply, model: &str) -> Self {
        Messages {
            id: format!("msg_stub_{number}"),
            model: model.to_owned(),
            announced: reply.usage.clone(),
            blocks: 0,
            open: None,
            reason: None,
            usage: None,
        }
    }

    fn start(&self) -> String {
        let mut usage = tokens(
            self.announced
                .as_ref()
                .unwrap_or(&Usage::Short(ShortUsage::default())),
        );
        usage["output_tokens"] = json!(0);
        let message = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        event(
            "message_start",
            &json!({"type": "message_start", "message": message}),
        )
    }

    fn open(&mut self, block: Value) -> String {
        let mut text = self.close();
        self.open = Some(match block["type"].as_str() {
            Some("thinking") => Block::Thinking,
            Some("tool_use") => Block::Tool,
            _ => Block::Text,
        });
        self.blocks += 1;
        text += &event(
            "content_block_start",
            &json!({"type": "content_block_start", "index": self.blocks - 1, "content_block": block}),
        );
        text
    }

    fn change(&self, delta: Value) -> String {
        let index = self.blocks.saturating_sub(1);
        event(
            "content_block_delta",
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        )
    }

    fn close(&mut self) -> String {
        let Some(block) = self.open.take() else {
            return String::new();
        };
        let mut text = String::new();
        if block == Block::Thinking {
            text += &self.change(json!({"type": "signature_delta", "signature": "stub-signature"}));
        }
        let index = self.blocks.saturating_sub(1);
        text += &event(
            "content_block_stop",
            &json!({"type": "content_block_stop", "index": index}),
        );
        text
    }

    fn finish(&mut self, reason: &str) -> String {
        let own = match reason {
            "stop" => "end_turn",
            "length" => "max_tokens",
            "tool_calls" => "tool_use",
            other => other,
        };
        self.reason = Some(own.to_owned());
        self.close()
    }

    fn done(&self) -> String {
        let usage = self
            .usage
            .clone()
            .unwrap_or_else(|| json!({"output_tokens": 0}));
        let reason = self.reason.as_deref().unwrap_or("end_turn");
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        event(
            "message_delta",
            &json!({"type": "message_delta", "delta": delta, "usage": usage}),
        ) + &event("message_stop", &json!({"type": "message_stop"}))
    }
}

fn tokens(usage: &Usage) -> Value {
    let short = match usage {
        Usage::Short(short) => short,
        Usage::Own(own) => return Value::Object(own.clone()),
    };
    let (cached, written) = (short.cached.unwrap_or(0), short.cache_write.unwrap_or(0));
    json!({
        "input_tokens": short.r#in.saturating_sub(cached + written), "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written, "output_tokens": short.out,
    })
}

/// The same reply as one chat-completions object, for a request that does not stream.
pub(super) fn whole(number: usize, reply: &Reply, facts: &Facts) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut finish = "stop".to_owned();
    let (mut usage, mut calls) = (reply.usage.clone(), Vec::new());
    let append = |message: &mut Value, key: &str, text: &str| {
        message[key] = json!(message[key].as_str().unwrap_or_default().to_owned() + text);
    };
    for step in reply.plan() {
        match step {
            Step::Text(text) => append(&mut message, "content", &text),
            Step::Thinking(text) => append(&mut message, "reasoning_content", &text),
            Step::ToolCall(call) => {
                let id = call
                    .id
                    .clone()
                    .unwrap_or_else(|| call_id(number, calls.len() + 1));
                let function = json!({"name": call.name, "arguments": call.arguments_text()});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            Step::Finish(reason) => finish = reason,
            Step::Usage(counts) => usage = Some(counts),
            _ => {}
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let mut object = json!({
        "id": format!("chatcmpl-stub-{number}"), "object": "chat.completion", "created": CREATED, "model": facts.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    });
    if let Some(usage) = usage {
        object["usage"] = chat_usage(&usage);
    }
    object
}

/// The id of a call that the script gives none.
pub(super) fn call_id(request: usize, call: usize) -> String {
    format!("call_{request}_{call}")
}

/// Text cut into pieces of `size` characters or, without a size, into words with the blanks behind them.
pub(super) fn pieces(text: &str, size: Option<usize>) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut count, mut in_blanks) = (0, 0, false);
    for (at, c) in text.char_indices() {
        let cut = match size {
            Some(size) => count == size.max(1),
            None => in_blanks && !c.is_whitespace(),
        };
        if cut && at > start {
            pieces.push(&text[start..at]);
            (start, count) = (at, 0);
        }
        count += 1;
        in_blanks = c.is_whitespace();
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_words_or_of_a_size_and_lose_nothing() {
        let table: [(&str, Option<usize>, &[&str]); 7] = [
            ("", None, &[""]),
            ("one", None, &["one"]),
            ("one  two\n three ", None, &["one  ", "two\n ", "three "]),
            ("  lead", None, &["  ", "lead"]),
            ("héllo", Some(2), &["hé", "ll", "o"]),
            ("abcd", Some(2), &["ab", "cd"]),
            ("abc", Some(0), &["a", "b", "c"]),
        ];
        for (text, size, expected) in table {
            assert_eq!(pieces(text, size), expected, "{text:?} {size:?}");
            assert_eq!(pieces(text, size).concat(), text);
        }
    }

    #[test]
    fn each_messages_step_is_a_block_of_its_own() {
        let wire = &mut Wire::Messages(Messages::new(1, &Reply::default(), "x"));
        let mut text = wire.start();
        for (block, piece) in [
            (Block::Text, "a"),
            (Block::Thinking, "b"),
            (Block::Text, "c"),
        ] {
            text += &wire.open(block);
            text += &wire.piece(block, piece);
        }
        text += &wire.finish("length");
        text += &wire.done();
        assert_eq!(
            text.matches("event: content_block_start").count(),
            3,
            "{text}"
        );
        assert_eq!(
            text.matches("event: content_block_stop").count(),
            3,
            "{text}"
        );
        assert_eq!(text.matches("signature_delta").count(), 1, "{text}");
        assert!(text.contains(r#""stop_reason":"max_tokens""#), "{text}");
    }
}
