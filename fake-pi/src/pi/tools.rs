//! Results of tools, in the words of Pi's own tools.

use serde_json::{Value, json};

use super::message::ToolCall;
use super::options::ToolSpec;
use crate::act::Flavour;

/// How a tool ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The text that the model gets.
    pub text: String,
    /// `details` of the result.
    pub details: Option<Value>,
    /// 1.6.0: `structuredContent`, shown in `tool_execution_end` only.
    pub structured: Option<Value>,
    /// Whether it failed.
    pub failed: bool,
    /// 1.6.0: the result itself says `isError` (a command with a non-zero exit).
    pub marked: bool,
    /// Whether the tool ran at all; if not, no `durationMs` is shown.
    pub ran: bool,
}

impl ToolResult {
    /// A good result with this text.
    pub fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            details: None,
            structured: None,
            failed: false,
            marked: false,
            ran: true,
        }
    }

    /// A failure with this text.
    pub fn failure(text: &str) -> Self {
        Self {
            details: Some(json!({})),
            failed: true,
            ..Self::text(text)
        }
    }

    /// A call that was refused, so that nothing ran.
    pub fn refused(text: &str) -> Self {
        Self {
            ran: false,
            ..Self::failure(text)
        }
    }

    /// `read`: the text of a file.
    pub fn read(text: &str) -> Self {
        Self {
            structured: Some(json!(text)),
            ..Self::text(text)
        }
    }

    /// `bash`: everything that the command printed, its exit code, and how long it ran (seconds).
    pub fn bash(flavour: Flavour, output: &str, exit: i32, seconds: f64) -> Self {
        let structured = Some(json!({
            "output": output,
            "truncated": false,
            "exit_code": exit,
            "wall_time_seconds": super::js::number((seconds * 10.0).round() / 10.0),
        }));
        let shown = if output.is_empty() {
            "(no output)"
        } else {
            output
        };
        if exit == 0 {
            return Self {
                structured,
                ..Self::text(shown)
            };
        }
        let text = format!("{shown}\n\nCommand exited with code {exit}");
        match flavour {
            Flavour::V1_6_0 => Self {
                structured,
                failed: true,
                marked: true,
                ..Self::text(&text)
            },
            Flavour::V0_73_1 => Self::failure(&text),
        }
    }

    /// `bash` that was ended: `what` is `Command aborted` or `Command timed out after N seconds`.
    pub fn bash_ended(output: &str, what: &str) -> Self {
        match output {
            "" => Self::failure(what),
            output => Self::failure(&format!("{output}\n\n{what}")),
        }
    }

    /// The `result` of `tool_execution_end`.
    pub fn record(&self, flavour: Flavour) -> Value {
        let mut result = json!({"content": self.content()});
        if let Some(details) = &self.details {
            result["details"] = details.clone();
        }
        if flavour == Flavour::V1_6_0 {
            if let Some(structured) = &self.structured {
                result["structuredContent"] = structured.clone();
            }
            if self.marked {
                result["isError"] = json!(true);
            }
        }
        result
    }

    /// The content blocks.
    pub fn content(&self) -> Value {
        json!([{"type": "text", "text": self.text}])
    }

    /// The `toolResult` message. `duration` in milliseconds.
    pub fn message(&self, flavour: Flavour, call: &ToolCall, duration: u64, now: u64) -> Value {
        let mut message = json!({
            "role": "toolResult", "toolCallId": call.id, "toolName": call.name, "content": self.content(),
        });
        if let Some(details) = &self.details {
            message["details"] = details.clone();
        }
        message["isError"] = json!(self.failed);
        if flavour == Flavour::V1_6_0 && self.ran {
            message["durationMs"] = json!(duration);
        }
        message["timestamp"] = json!(now);
        message
    }
}

/// Why a call is not run, or `None` when it is. `cut`: the answer hit the output limit.
pub fn refusal(
    flavour: Flavour,
    call: &ToolCall,
    tools: &[ToolSpec],
    cut: bool,
) -> Option<ToolResult> {
    let newer = flavour == Flavour::V1_6_0;
    let name = &call.name;
    if newer && cut {
        return Some(ToolResult::refused(&format!(
            "Tool call \"{name}\" was not executed: the response hit the output token limit, so its arguments may be \
             truncated. Re-issue the tool call with complete arguments."
        )));
    }
    let Some(tool) = tools.iter().find(|tool| tool.name == *name) else {
        return Some(ToolResult::refused(&format!("Tool {name} not found")));
    };
    if let Some(broken) = &call.broken {
        return Some(ToolResult::refused(&format!(
            "Invalid arguments for tool \"{name}\": {broken}"
        )));
    }
    let nothing = serde_json::Map::new();
    let missing = tool.missing(call.arguments.as_object().unwrap_or(&nothing));
    if missing.is_empty() {
        return None;
    }
    let problem = |argument: &&str| match flavour {
        Flavour::V1_6_0 => format!("  - {argument}: missing"),
        Flavour::V0_73_1 => format!("  - {argument}: must have required properties {argument}"),
    };
    let problems: Vec<String> = missing.iter().map(problem).collect();
    let received = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    Some(ToolResult::refused(&format!(
        "Validation failed for tool \"{name}\":\n{}\n\nReceived arguments:\n{received}",
        problems.join("\n")
    )))
}
