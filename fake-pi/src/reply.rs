//! A `reply` or `answer` act as the pieces of a model's reply, and what it changes in the records that Pi makes of them
//! (pure).

use serde_json::{Value, json};

use crate::act::{Echo, FullReply, Reply, Tool};
use crate::content;
use crate::pi::provider::words;
use crate::pi::{Failure, ModelPiece, Tokens};

/// Stop reasons that Pi itself can arrive at.
const NATURAL: [&str; 3] = ["stop", "length", "toolUse"];

/// What the task and prompt are, for `echo`.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The whole task.
    pub task: String,
    /// The `kit-call-…` word in it.
    pub call: String,
    /// SHA-256 of the task, hex.
    pub task_hash: String,
    /// SHA-256 of the system prompt, hex.
    pub prompt_hash: String,
}

/// A reply with its details; a plain text is one without any.
pub fn full(reply: &Reply) -> FullReply {
    match reply {
        Reply::Text(text) => FullReply {
            text: Some(text.clone()),
            ..FullReply::default()
        },
        Reply::Full(full) => (**full).clone(),
    }
}

/// The error that a reply ends with, if it does.
fn error(reply: &FullReply) -> Option<String> {
    let repeated = || reply.error_repeat.as_ref().map(content::repeat);
    let named = || (reply.stop.as_deref() == Some("error")).then(|| "the model failed".to_owned());
    reply.error.clone().or_else(repeated).or_else(named)
}

fn text(reply: &FullReply, known: &Known) -> Vec<String> {
    let echoed = reply.echo.map(|echo| match echo {
        Echo::Task => known.task.clone(),
        Echo::Call => known.call.clone(),
        Echo::TaskHash => known.task_hash.clone(),
        Echo::PromptHash => known.prompt_hash.clone(),
    });
    let one = reply
        .text
        .clone()
        .or_else(|| reply.repeat.as_ref().map(content::repeat))
        .or(echoed);
    one.into_iter()
        .chain(reply.blocks.iter().cloned())
        .filter(|text| !text.is_empty())
        .collect()
}

/// The pieces that make Pi write this reply. `number` counts replies, for ids.
pub fn pieces(reply: &FullReply, known: &Known, number: u64) -> Vec<ModelPiece> {
    let mut pieces = vec![
        ModelPiece::Begin,
        ModelPiece::Id(format!("chatcmpl-fake-{number}")),
    ];
    if let Some(thinking) = &reply.thinking {
        pieces.extend(cut(thinking, reply.chunk).map(ModelPiece::Thinking));
    }
    let texts = text(reply, known);
    for text in &texts {
        if !reply.blocks.is_empty() {
            pieces.push(ModelPiece::TextBlock);
        }
        pieces.extend(cut(text, reply.chunk).map(ModelPiece::Text));
        if !reply.blocks.is_empty() {
            pieces.push(ModelPiece::BlockEnd);
        }
    }
    for (place, tool) in reply.tools.iter().enumerate() {
        let call = Call::of(tool, number, place);
        pieces.push(ModelPiece::ToolStart {
            id: call.id,
            name: call.name,
        });
        pieces.push(ModelPiece::ToolArguments(call.args.to_string()));
    }
    if let Some(error) = error(reply) {
        let begun = !texts.is_empty() || reply.thinking.is_some();
        let failed = ModelPiece::Fail(Failure::Text(error, false));
        // A request that fails before any stream has no beginning.
        return if begun {
            pieces.into_iter().chain([failed]).collect()
        } else {
            vec![failed]
        };
    }
    let finish = match reply.stop.as_deref() {
        Some("length") => "length",
        Some("toolUse") => "tool_calls",
        None if !reply.tools.is_empty() => "tool_calls",
        _ => "stop",
    };
    pieces.push(ModelPiece::Finish(finish.to_owned()));
    let usage = reply.usage.unwrap_or_default();
    pieces.push(ModelPiece::Tokens(Tokens {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        reasoning: usage.reasoning,
    }));
    pieces.push(ModelPiece::End);
    pieces
}

fn cut(text: &str, chunk: Option<usize>) -> Box<dyn Iterator<Item = String> + '_> {
    let Some(chunk) = chunk else {
        return Box::new(words(text).map(str::to_owned));
    };
    let mut rest = text;
    Box::new(std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(chunk.max(1))
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then(|| piece.to_owned())
    }))
}

/// A tool call with everything filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Arguments.
    pub args: Value,
}

impl Call {
    /// The call of a `tool`, the `place`-th of reply `number`.
    pub fn of(tool: &Tool, number: u64, place: usize) -> Self {
        let command = tool.exec.as_deref().unwrap_or("true");
        let name = tool.name.clone().unwrap_or_else(|| "read".to_owned());
        // Pi refuses a call without its required arguments; they are made up where the script gives none.
        let args = tool.args.clone().unwrap_or_else(|| match name.as_str() {
            "bash" => json!({"command": command}),
            "write" => json!({"path": "file.txt", "content": ""}),
            "edit" => json!({"path": "file.txt", "edits": []}),
            "grep" | "find" => json!({"pattern": "x"}),
            "ls" => json!({}),
            _ => json!({"path": "file.txt"}),
        });
        Self {
            id: tool
                .id
                .clone()
                .unwrap_or_else(|| format!("call_{number}_{}", place + 1)),
            name,
            args,
        }
    }
}

/// What a reply changes in Pi's records.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// No `message_update`.
    pub no_deltas: bool,
    /// Nothing after `message_end` of the assistant.
    pub end_at_message: bool,
    /// No `agent_settled`.
    pub no_settled: bool,
    /// The stop reason, when it is one that Pi would not arrive at.
    pub stop: Option<String>,
    /// The run goes on without its opening events, which the script wrote itself.
    pub no_opening: bool,
}

impl Changes {
    /// Of a reply.
    pub fn of(reply: &FullReply) -> Self {
        let odd = |stop: &&String| !NATURAL.contains(&stop.as_str()) && stop.as_str() != "error";
        Self {
            no_deltas: reply.deltas == Some(false),
            end_at_message: reply.settle == Some(false),
            no_settled: reply.settled == Some(false),
            stop: reply.stop.as_ref().filter(odd).cloned(),
            no_opening: false,
        }
    }

    /// The record as it is to be written, or `None` when it is not.
    pub fn apply(&self, mut record: Value) -> Option<Value> {
        let kind = record["type"].as_str().unwrap_or_default().to_owned();
        let dropped = match kind.as_str() {
            "message_update" => self.no_deltas,
            "turn_end" | "agent_end" => self.end_at_message,
            "agent_settled" => self.end_at_message || self.no_settled,
            "agent_start" | "turn_start" => self.no_opening,
            _ => false,
        };
        if dropped {
            return None;
        }
        if let Some(stop) = &self.stop {
            let messages = match kind.as_str() {
                "message_end" | "turn_end" => record.get_mut("message").into_iter().collect(),
                "agent_end" => record
                    .get_mut("messages")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                    .collect(),
                _ => Vec::new(),
            };
            for message in messages {
                if message["role"] == "assistant" && message["stopReason"] == "stop" {
                    message["stopReason"] = json!(stop);
                }
            }
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> FullReply {
        full(&serde_saphyr::from_str::<Reply>(text).unwrap())
    }

    #[test]
    fn a_text_is_cut_into_words_or_characters() {
        let texts = |reply: &FullReply| {
            let pieces = pieces(reply, &Known::default(), 1);
            let text = |piece| {
                if let ModelPiece::Text(text) = piece {
                    Some(text)
                } else {
                    None
                }
            };
            pieces.into_iter().filter_map(text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&reply("two words")), ["two ", "words"]);
        assert_eq!(texts(&reply("{text: é✓𝄞a, chunk: 2}")), ["é✓", "𝄞a"]);
    }

    #[test]
    fn an_error_before_any_text_fails_the_request_itself() {
        let failed = pieces(&reply("{error: refused}"), &Known::default(), 1);
        assert_eq!(
            failed,
            [ModelPiece::Fail(Failure::Text("refused".into(), false))]
        );
        let later = pieces(&reply("{text: half, error: refused}"), &Known::default(), 1);
        assert_eq!(later.first(), Some(&ModelPiece::Begin));
    }

    #[test]
    fn an_odd_stop_reason_is_put_into_every_record_that_shows_it() {
        let changes = Changes::of(&reply("{text: x, stop: sideways}"));
        let message = json!({"role": "assistant", "stopReason": "stop"});
        let end = changes
            .apply(json!({"type": "message_end", "message": message}))
            .unwrap();
        assert_eq!(end["message"]["stopReason"], "sideways");
        let end = changes
            .apply(json!({"type": "agent_end", "messages": [message]}))
            .unwrap();
        assert_eq!(end["messages"][0]["stopReason"], "sideways");
    }
}
