//! The parent's model: what it answers, and what its requests show.
//!
//! The runner tells the parent to do something (`kit-parent-N …`); the model answers that prompt with the tool calls of the step, and
//! every other request of the parent with a plain sentence. Children that live inside the parent ask the same model; their
//! tasks carry the mark of their script, and they get what that says.

use serde_json::{Value, json};

use crate::adapter::ParentPi;
use crate::stub_provider::{Reply, Role, Script, ToolCall, Words};

use super::super::host::Outgoing;

/// What the model says when there is nothing to do.
const NOTHING: &str = "Nothing more is to be done.";

/// The prompt that makes the parent's model act.
pub fn prompt(id: u64) -> String {
    format!("kit-parent-{id}: do what is to be done next")
}

/// Id of the tool call that a step becomes.
pub fn tool_call(id: u64) -> String {
    format!("kit_{id}")
}

/// The number of a step's call, out of the id of its tool call.
pub fn call_of(tool_call: &str) -> Option<u64> {
    tool_call.strip_prefix("kit_")?.parse().ok()
}

/// The replies for one step: first what the adapter has to say before (once a session), then the call itself.
pub fn script(
    call: Option<&Outgoing>,
    parent: &ParentPi,
    first: bool,
    children: &[Reply],
) -> Script {
    let mut replies = Vec::new();
    if let Some(call) = call {
        let answers = |calls: Vec<ToolCall>| Reply {
            match_last: Some(Words::One(format!("kit-parent-{}:", call.id))),
            tool_calls: calls,
            ..Reply::default()
        };
        if first {
            for (at, before) in parent.prelude.iter().enumerate() {
                replies.push(answers(vec![ToolCall {
                    name: before.tool.clone(),
                    arguments: json!(before.arguments),
                    id: Some(format!("before_{at}")),
                }]));
            }
        }
        replies.push(answers(vec![ToolCall {
            name: call.tool.clone(),
            arguments: Value::Object(call.arguments.clone()),
            id: Some(tool_call(call.id)),
        }]));
    }
    // Whatever else the parent asks; before the children, whose marks stand in its conversation too.
    replies.push(Reply {
        match_any: Some(Words::One("kit-parent-".to_owned())),
        text: Some(NOTHING.to_owned()),
        times: Some(0),
        ..Reply::default()
    });
    replies.extend(children.iter().cloned());
    Script {
        replies,
        default: Some(Box::new(Reply {
            text: Some(NOTHING.to_owned()),
            ..Reply::default()
        })),
        ..Script::default()
    }
}

/// What the runner learns from one request of the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Learned {
    /// It is the parent's own conversation.
    pub parents: bool,
    /// Results that the model sees, by the id of their tool call.
    pub results: Vec<(String, String)>,
    /// A message that came without a prompt of ours: pushed by the extension.
    pub pushed: Option<String>,
    /// The tools on offer, as MCP lists them.
    pub tools: Value,
}

/// Looks at a request's body.
pub fn learn(body: &Value, roles: &[Role], last_user: &str) -> Learned {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let any = |word: &str| {
        messages
            .iter()
            .any(|message| text(&message["content"]).contains(word))
    };
    let parents = any("kit-parent-");
    let mut learned = Learned {
        parents,
        tools: tools(body),
        ..Learned::default()
    };
    if !parents {
        return learned;
    }
    learned.results = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| {
            let id = message["tool_call_id"].as_str()?;
            Some((id.to_owned(), text(&message["content"])))
        })
        .collect();
    if roles.last() == Some(&Role::User) && !last_user.contains("kit-parent-") {
        learned.pushed = Some(last_user.to_owned());
    }
    learned
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Tools that a parent Pi has of its own: they are nobody's delegation.
const PARENTS_OWN: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

fn tools(body: &Value) -> Value {
    let tools = body["tools"].as_array().into_iter().flatten();
    let functions = tools.map(|tool| &tool["function"]);
    let extensions = functions.filter(|function| {
        let name = function["name"].as_str().unwrap_or_default();
        !PARENTS_OWN.contains(&name)
    });
    let listed = extensions.map(|function| {
        json!({
            "name": function["name"], "description": function["description"], "inputSchema": function["parameters"],
        })
    });
    Value::Array(listed.collect())
}
