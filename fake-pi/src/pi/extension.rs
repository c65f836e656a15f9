//! Extensions, as far as they show on the wire: what their handlers do at which moment.

use serde_json::{Map, Value, json};

/// When a handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the first command is read.
    SessionStart,
    /// Before `agent_start` is written.
    AgentStart,
    /// Between `tool_execution_start` and the tool itself.
    ToolCall,
    /// After `turn_end`.
    TurnEnd,
    /// Before `agent_end` is written.
    AgentEnd,
    /// When Pi is about to exit.
    SessionShutdown,
}

impl Moment {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::AgentStart => "agent_start",
            Self::ToolCall => "tool_call",
            Self::TurnEnd => "turn_end",
            Self::AgentEnd => "agent_end",
            Self::SessionShutdown => "session_shutdown",
        }
    }
}

/// One thing that a handler does.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// A UI request that wants no answer (`notify`, `setStatus`, `setWidget`, `setTitle`, `set_editor_text`).
    /// `{answers}` inside its strings stands for the answers so far, as JSON.
    Tell(UiRequest),
    /// A dialog (`select`, `confirm`, `input`, `editor`): the handler goes on when it is answered, or after `timeout`.
    Ask(UiRequest),
    /// Only for [`Moment::ToolCall`]: a `confirm`; anything but yes fails the tool with this text.
    Gate(UiRequest, String),
    /// Throws an error with this text.
    Throw(String),
    /// Never returns.
    Hang,
    /// Asks Pi to exit (`ctx.shutdown()`).
    Shutdown,
}

/// A UI request without its id: the method, and its further fields in wire order.
#[derive(Debug, Clone, PartialEq)]
pub struct UiRequest {
    /// `confirm`, `select`, `notify` …
    pub method: String,
    /// `title`, `message`, `options`, `timeout` …
    pub fields: Map<String, Value>,
}

impl UiRequest {
    /// Milliseconds after which Pi answers the dialog itself.
    pub fn timeout(&self) -> Option<u64> {
        self.fields.get("timeout").and_then(Value::as_u64)
    }

    /// The `extension_ui_request` record, `{answers}` and `{tool}` filled in.
    pub fn to_record(&self, id: &str, answers: &[Value], tool: &str) -> Value {
        let mut record = json!({"type": "extension_ui_request", "id": id, "method": self.method});
        for (name, field) in &self.fields {
            record[name] = match field {
                Value::String(text) => {
                    let text = text.replace("{tool}", tool);
                    Value::String(text.replace("{answers}", &super::js::line(&json!(answers))))
                }
                other => other.clone(),
            };
        }
        record
    }

    /// What a dialog's answer is for the handler: `response` is the `extension_ui_response`, `None` a timeout.
    pub fn answer(&self, response: Option<&Value>) -> Value {
        let Some(response) =
            response.filter(|response| response.get("cancelled") != Some(&Value::Bool(true)))
        else {
            return if self.method == "confirm" {
                Value::Bool(false)
            } else {
                Value::Null
            };
        };
        match self.method.as_str() {
            "confirm" => Value::Bool(response.get("confirmed") == Some(&Value::Bool(true))),
            _ => response.get("value").cloned().unwrap_or(Value::Null),
        }
    }
}

/// A handler of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// When.
    pub moment: Moment,
    /// What.
    pub deeds: Vec<Deed>,
}

/// A slash command of an extension: `/name args` through `prompt`. `{args}` inside strings stands for the arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it does.
    pub deeds: Vec<Deed>,
}

/// One extension.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extension {
    /// Its path.
    pub path: String,
    /// What it prints while it loads; Pi sends all of that to standard error.
    pub prints: Vec<String>,
    /// Its handlers.
    pub hooks: Vec<Hook>,
    /// Its commands.
    pub commands: Vec<ExtensionCommand>,
}

impl Extension {
    /// The handlers of one moment, as one list of deeds.
    pub fn deeds(&self, moment: Moment) -> Vec<Deed> {
        self.hooks
            .iter()
            .filter(|hook| hook.moment == moment)
            .flat_map(|hook| hook.deeds.clone())
            .collect()
    }
}

/// The entries of `get_commands`.
pub fn command_records(extensions: &[Extension]) -> Vec<Value> {
    let record = |extension: &Extension, command: &ExtensionCommand| {
        json!({
            "name": command.name,
            "description": command.description,
            "source": "extension",
            "sourceInfo": {
                "path": extension.path, "source": "cli", "scope": "temporary", "origin": "top-level",
            },
        })
    };
    extensions
        .iter()
        .flat_map(|e| e.commands.iter().map(move |c| record(e, c)))
        .collect()
}

/// Puts the command line's arguments into the deeds of a command.
pub fn with_arguments(deeds: &[Deed], args: &str) -> Vec<Deed> {
    let fill = |request: &UiRequest| {
        let mut request = request.clone();
        for field in request.fields.values_mut() {
            if let Value::String(text) = field {
                *text = text.replace("{args}", args);
            }
        }
        request
    };
    deeds
        .iter()
        .map(|deed| match deed {
            Deed::Tell(request) => Deed::Tell(fill(request)),
            Deed::Ask(request) => Deed::Ask(fill(request)),
            other => other.clone(),
        })
        .collect()
}
