//! The tool as the parent sees it: name, description, schemas. Made from the profiles in force, so that what is
//! offered is what works.

use serde_json::{Map, Value, json};

use super::request::PARAMETERS;
use super::result::CallResult;
use crate::config::{Config, Diagnostics};
use crate::profile::MODEL_LIMIT;

/// The tool's name.
pub const NAME: &str = "delegate";

/// A tool, ready for any protocol that has tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Title for people.
    pub title: &'static str,
    /// Description for the parent's model.
    pub description: String,
    /// JSON schema of the arguments.
    pub input: Map<String, Value>,
    /// JSON schema of the structured result.
    pub output: Map<String, Value>,
    /// Whether no profile in force can change anything.
    pub read_only: bool,
}

/// The tool of a session. With a faulty configuration it says that every call will be refused, and why.
pub fn tool(config: Result<&Config, &Diagnostics>) -> Tool {
    let (description, profile, limit) = match config {
        Ok(config) => {
            let mut text = String::from(
                "Hands a task to a fresh agent with a context of its own, waits for it, and returns its final answer. \
                 The agent sees nothing of this conversation, so the task has to say everything it needs. \
                 Several calls may run at the same time.\n\nProfiles:",
            );
            for profile in config.profiles.iter() {
                text.push_str(&format!("\n- {}: {}", profile.name, profile.description));
            }
            let choices: Vec<_> = config
                .profiles
                .iter()
                .map(|profile| json!({"const": profile.name, "description": profile.description}))
                .collect();
            let schema = json!({
                "type": "string",
                "enum": config.profiles.names(),
                "oneOf": choices,
                "description": "Which kind of agent does it.",
            });
            (text, schema, config.limits.task_chars)
        }
        Err(diagnostics) => {
            let text = format!(
                "Out of order: the configuration is faulty, and every call is refused until it is corrected and the \
                 session started anew.\n{diagnostics}"
            );
            let schema = json!({"type": "string", "description": "Which kind of agent does it."});
            (text, schema, crate::config::Limits::default().task_chars)
        }
    };
    let properties = json!({
        "task": {
            "type": "string",
            "minLength": 1,
            "maxLength": limit,
            "description": "What to do, with all the context that is needed.",
        },
        "profile": profile,
        "cwd": {
            "type": "string",
            "minLength": 1,
            "description": "Working directory of the agent: an existing folder. Default: this session's.",
        },
        "model": {
            "type": "string",
            "minLength": 1,
            "maxLength": MODEL_LIMIT,
            "description": "Model for this call only. Default: the profile's, else this session's.",
        },
    });
    debug_assert!(
        properties
            .as_object()
            .is_some_and(|known| known.keys().eq(PARAMETERS))
    );
    let input = object(json!({
        "type": "object",
        "properties": properties,
        "required": ["task", "profile"],
        "additionalProperties": false,
    }));
    let output = object(schemars::schema_for!(CallResult).to_value());
    let read_only = config.is_ok_and(|config| {
        let changes = |tool: &String| ["bash", "edit", "write"].contains(&tool.as_str());
        config
            .profiles
            .iter()
            .all(|profile| profile.extensions.is_empty() && !profile.tools.iter().any(changes))
    });
    Tool {
        title: "Delegate a task",
        description,
        input,
        output,
        read_only,
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
