//! Records whose fields are not of the expected shape: what can be understood of them is, the rest is taken as absent.
//! Slower than the usual way, and taken only when that fails.

use serde_json::Value;

use super::{DIALOGS, Message, Record, TOOL_TEXT};

/// Reads a record; `None` when it is no JSON object.
pub fn read(text: &str) -> Option<Record> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.is_object().then(|| record(&value))
}

fn record(value: &Value) -> Record {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let message = &value["message"];
    let is_answer = message["role"] == "assistant";
    match value["type"].as_str().unwrap_or_default() {
        "response" if value["command"] == "prompt" => Record::PromptResponse {
            success: value["success"].as_bool().unwrap_or(false),
            error: text("error"),
            disposition: !value["data"]["disposition"].is_null(),
        },
        "agent_start" => Record::AgentStart,
        "turn_start" => Record::TurnStart,
        "message_start" if is_answer => Record::AssistantStart,
        "message_end" if is_answer => Record::AssistantEnd(Box::new(answer(message))),
        "tool_execution_start" => Record::ToolStart {
            id: text("toolCallId"),
            name: text("toolName"),
            detail: String::new(),
        },
        "tool_execution_end" => {
            let blocks = value["result"]["content"].as_array().into_iter().flatten();
            let said: String = blocks.filter_map(|block| block["text"].as_str()).collect();
            let from = said.ceil_char_boundary(said.len().saturating_sub(TOOL_TEXT));
            Record::ToolEnd {
                id: text("toolCallId"),
                name: text("toolName"),
                failed: value["isError"].as_bool().unwrap_or(false),
                text: said[from..].to_owned(),
            }
        }
        "agent_end" => Record::AgentEnd {
            will_retry: value["willRetry"].as_bool(),
        },
        "agent_settled" => Record::Settled,
        "auto_retry_start" | "compaction_start" => Record::RecoveryStart,
        "auto_retry_end" => Record::RecoveryEnd(false),
        "compaction_end" => Record::RecoveryEnd(value["willRetry"].as_bool().unwrap_or(false)),
        "extension_ui_request" if DIALOGS.iter().any(|method| value["method"] == *method) => {
            Record::Dialog { id: text("id") }
        }
        _ => Record::Other,
    }
}

fn answer(message: &Value) -> Message {
    let word = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            let texts = blocks.filter(|block| block["type"] == "text");
            texts.filter_map(|block| block["text"].as_str()).collect()
        }
    };
    let usage = &message["usage"];
    let counts = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"];
    Message {
        text,
        stop_reason: word("stopReason"),
        error: word("errorMessage"),
        tokens: counts.map(|key| usage[key].as_u64().unwrap_or(0)),
        cost: usage["cost"]["total"].as_f64().unwrap_or(0.0),
    }
}
