//! The script format: replies, the conditions under which a request takes one, and the steps that a reply is sent in.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A whole script.
///
/// A request takes the *first* reply that still has uses left and whose conditions all hold. So the list is a sequence,
/// and several sequences can share it when each has a condition of its own. With none left, `default` answers; without
/// a default the request is refused with HTTP 400, which Pi does not repeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The replies, first match first.
    pub replies: Vec<Reply>,
    /// Answers when no reply is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Box<Reply>>,
    /// Model ids on offer; `x` when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
}

/// A script that is not one.
#[derive(Debug, thiserror::Error)]
#[error("not a model script: {0}")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    /// Reads the JSON form. A bare list of replies is a script too.
    ///
    /// # Errors
    /// Broken JSON, an unknown key, a value of the wrong kind; with line and column.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        if text.trim_start().starts_with('[') {
            return Ok(Script {
                replies: serde_json::from_str(text)?,
                ..Script::default()
            });
        }
        Ok(serde_json::from_str(text)?)
    }
}

/// One scripted reply: under which conditions, how often, and what is sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// A label for the list of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Stands in the last user message. In a tool loop that message stays the same, so one word follows a whole turn.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub match_last: Option<Words>,
    /// Stands in the first user message, the task: holds for the whole conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_first: Option<Words>,
    /// Stands in the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_system: Option<Words>,
    /// Stands in any message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_any: Option<Words>,
    /// The request's model id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who wrote the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_role: Option<Role>,
    /// How often it may be used; 1 when absent, 0 for always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,

    /// Reasoning, streamed before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answer is the first, repeated as often as the second says: for huge ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_text: Option<(String, usize)>,
    /// Tools to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// `stop` or, with tool calls, `tool_calls` when absent. `null` sends no finish at all.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<Option<String>>,
    /// Token counts at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The long form: these steps instead of the short fields above. The usual ending (finish, usage, done) is added
    /// unless there is a `cut`, `hang` or `done`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,

    /// Milliseconds before the response's head.
    pub delay_ms: u64,
    /// Characters in a piece of text or arguments. Absent: text in words, arguments in one piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<usize>,
    /// Milliseconds between pieces.
    pub chunk_delay_ms: u64,
    /// An HTTP status other than 200. Then `body` is sent instead of a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// With `status`: an object, or a string sent as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Further response headers.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Under which name reasoning is streamed; `reasoning_content` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_field: Option<String>,
}

/// An explicit `null` is something else than an absent key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// One string that must be found, or several that must all be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Words {
    /// This one.
    One(String),
    /// Each of them.
    All(Vec<String>),
}

impl Words {
    fn all_in(&self, text: &str) -> bool {
        match self {
            Words::One(word) => text.contains(word),
            Words::All(words) => words.iter().all(|word| text.contains(word)),
        }
    }
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A prompt, a steering message.
    User,
    /// A tool's result; in the messages format a user message that holds nothing but results.
    Tool,
    /// The model.
    Assistant,
    /// The system prompt, or the developer's.
    System,
}

/// A tool that the model wants run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments; a string is sent as it is, broken JSON too.
    #[serde(default)]
    pub arguments: Value,
    /// `call_N` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl ToolCall {
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            other => other.to_string(),
        }
    }
}

/// One thing that is done while a reply is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Text of the answer; in the messages format a block of its own.
    Text(String),
    /// Reasoning.
    Thinking(String),
    /// A tool to run.
    ToolCall(ToolCall),
    /// Wait, in milliseconds.
    SleepMs(u64),
    /// Wait until the handle releases this name.
    Wait(String),
    /// Send nothing more and keep the connection open.
    Hang(Yes),
    /// Close the connection here.
    Cut(Cut),
    /// These bytes, within the response's body.
    Raw(String),
    /// One data line with this object.
    Sse(Value),
    /// An error inside the stream.
    Error(Value),
    /// The finish, with this reason.
    Finish(String),
    /// Token counts.
    Usage(Usage),
    /// The end of the stream.
    Done(Yes),
}

/// How a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// In good order: the body ends, but the stream in it has no end.
    Fin,
    /// By a TCP reset: an error for the client.
    Rst,
}

/// `true`, for steps that need no more to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "bool", into = "bool")]
#[schemars(with = "bool")]
pub struct Yes;

impl TryFrom<bool> for Yes {
    type Error = &'static str;
    fn try_from(yes: bool) -> Result<Self, Self::Error> {
        if yes {
            Ok(Yes)
        } else {
            Err("only `true` means anything here; leave the step out instead")
        }
    }
}

impl From<Yes> for bool {
    fn from(_: Yes) -> bool {
        true
    }
}

/// Token counts, short or in the provider's own words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Usage {
    /// The short form, put into the words of either format.
    Short(ShortUsage),
    /// Sent as it is.
    Own(Map<String, Value>),
}

/// Token counts in short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShortUsage {
    /// Tokens read, cached ones included.
    pub r#in: u64,
    /// Tokens written.
    pub out: u64,
    /// Of those read, taken from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Of those read, put into the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Of those written, reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// The parts of a request that conditions look at.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Facts {
    pub model: String,
    pub stream: bool,
    pub first_user: String,
    pub last_user: String,
    pub system: String,
    pub any: String,
    pub roles: Vec<Role>,
    pub tools: Vec<String>,
}

impl Facts {
    pub fn of(request: &Value) -> Self {
        let mut facts = Facts {
            model: request["model"].as_str().unwrap_or_default().to_owned(),
            stream: request["stream"].as_bool().unwrap_or_default(),
            system: content_text(&request["system"]),
            ..Facts::default()
        };
        for message in request["messages"].as_array().into_iter().flatten() {
            let Some(role) = role_of(message) else {
                continue;
            };
            let text = content_text(&message["content"]);
            append_line(&mut facts.any, &text);
            match role {
                Role::User => {
                    if !facts.roles.contains(&Role::User) {
                        facts.first_user.clone_from(&text);
                    }
                    facts.last_user = text;
                }
                Role::System => append_line(&mut facts.system, &text),
                Role::Tool | Role::Assistant => {}
            }
            facts.roles.push(role);
        }
        let tools = request["tools"].as_array().into_iter().flatten();
        let name = |tool: &Value| {
            tool["name"]
                .as_str()
                .or(tool["function"]["name"].as_str())
                .map(str::to_owned)
        };
        facts.tools = tools.filter_map(name).collect();
        facts
    }
}

fn append_line(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// The plain text of a message's content, a string or a list of parts.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

fn role_of(message: &Value) -> Option<Role> {
    let only_results = |parts: &Vec<Value>| {
        !parts.is_empty() && parts.iter().all(|part| part["type"] == "tool_result")
    };
    match message["role"].as_str()? {
        "user" if message["content"].as_array().is_some_and(only_results) => Some(Role::Tool),
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "tool" => Some(Role::Tool),
        "system" | "developer" => Some(Role::System),
        _ => None,
    }
}

impl Reply {
    fn holds(&self, facts: &Facts) -> bool {
        let found = |words: &Option<Words>, text: &str| {
            words.as_ref().is_none_or(|words| words.all_in(text))
        };
        found(&self.match_last, &facts.last_user)
            && found(&self.match_first, &facts.first_user)
            && found(&self.match_system, &facts.system)
            && found(&self.match_any, &facts.any)
            && self
                .model
                .as_ref()
                .is_none_or(|model| *model == facts.model)
            && self
                .last_role
                .is_none_or(|role| facts.roles.last() == Some(&role))
    }

    /// The steps, with the usual ending where none is given.
    pub(super) fn plan(&self) -> Vec<Step> {
        let mut steps = if self.steps.is_empty() {
            self.short_steps()
        } else {
            self.steps.clone()
        };
        let has = |wanted: fn(&Step) -> bool| steps.iter().any(wanted);
        if has(|step| matches!(step, Step::Cut(_) | Step::Hang(_) | Step::Done(_))) {
            return steps;
        }
        let finish = if has(|step| matches!(step, Step::Finish(_))) {
            None
        } else {
            let calls = has(|step| matches!(step, Step::ToolCall(_)));
            let usual = || Some(if calls { "tool_calls" } else { "stop" }.to_owned());
            self.finish_reason.clone().unwrap_or_else(usual)
        };
        let usage = if has(|step| matches!(step, Step::Usage(_))) {
            None
        } else {
            self.usage.clone()
        };
        steps.extend(finish.map(Step::Finish));
        steps.extend(usage.map(Step::Usage));
        steps.push(Step::Done(Yes));
        steps
    }

    fn short_steps(&self) -> Vec<Step> {
        let text = match &self.repeat_text {
            Some((unit, times)) => Some(unit.repeat(*times)),
            None => self.text.clone(),
        };
        let thinking = self.thinking.clone().map(Step::Thinking);
        let calls = self.tool_calls.iter().cloned().map(Step::ToolCall);
        thinking
            .into_iter()
            .chain(text.map(Step::Text))
            .chain(calls)
            .collect()
    }
}

/// A script and how often each reply was used.
pub(super) struct Counted {
    script: Script,
    used: Vec<u32>,
}

impl Counted {
    pub fn new(script: Script) -> Self {
        Counted {
            used: vec![0; script.replies.len()],
            script,
        }
    }

    pub fn models(&self) -> Vec<String> {
        if self.script.models.is_empty() {
            vec!["x".to_owned()]
        } else {
            self.script.models.clone()
        }
    }

    /// The reply for a request, with its place in the list (none for the default).
    pub fn take(&mut self, facts: &Facts) -> Option<(Option<usize>, Reply)> {
        for (index, reply) in self.script.replies.iter().enumerate() {
            let times = reply.times.unwrap_or(1);
            if (times == 0 || self.used[index] < times) && reply.holds(facts) {
                self.used[index] += 1;
                return Some((Some(index), reply.clone()));
            }
        }
        self.script
            .default
            .as_ref()
            .map(|reply| (None, Reply::clone(reply)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn take(counted: &mut Counted, messages: Value) -> Option<usize> {
        let facts = Facts::of(&json!({"model": "x", "messages": messages}));
        counted.take(&facts).and_then(|(index, _)| index)
    }

    #[test]
    fn a_request_takes_the_first_reply_that_holds_and_has_uses_left() {
        let script = Script::from_json(
            r#"{"replies": [
                {"match": "parent", "last_role": "tool", "text": "end"},
                {"match_first": "parent", "text": "twice", "times": 2},
                {"match": ["both", "words"], "text": "all", "times": 0},
                {"match_system": "scout", "text": "by system"},
                {"match_any": "said before", "text": "any"}
            ], "default": {"text": "default"}}"#,
        );
        let counted = &mut Counted::new(script.unwrap());
        let user = |text: &str| json!({"role": "user", "content": text});
        let table = [
            (json!([user("the parent")]), Some(1)),
            (json!([user("the parent"), user("more")]), Some(1)),
            (json!([user("the parent")]), None),
            (
                json!([user("the parent"), {"role": "tool", "content": "r"}]),
                Some(0),
            ),
            (json!([user("both")]), None),
            (json!([user("both of the words")]), Some(2)),
            (json!([user("words, both again")]), Some(2)),
            (
                json!([{"role": "developer", "content": "a scout"}, user("x")]),
                Some(3),
            ),
            (
                json!([{"role": "assistant", "content": [{"type": "text", "text": "said before"}]}, user("x")]),
                Some(4),
            ),
            (
                json!([user("the parent"), {"role": "user", "content": [{"type": "tool_result"}]}]),
                None,
            ),
        ];
        for (messages, expected) in table {
            assert_eq!(take(counted, messages.clone()), expected, "{messages}");
        }
    }

    #[test]
    fn the_usual_ending_is_added_where_none_is_given() {
        let plan = |text: &str| {
            let reply: Reply = serde_json::from_str(text).unwrap();
            serde_json::to_value(reply.plan()).unwrap()
        };
        let table = [
            (
                r#"{"text": "a"}"#,
                json!([{"text": "a"}, {"finish": "stop"}, {"done": true}]),
            ),
            (r#"{"finish_reason": null}"#, json!([{"done": true}])),
            (
                r#"{"thinking": "t", "tool_calls": [{"name": "read", "arguments": {}}], "usage": {"in": 1}}"#,
                json!([{"thinking": "t"}, {"tool_call": {"name": "read", "arguments": {}}}, {"finish": "tool_calls"},
                       {"usage": {"in": 1, "out": 0}}, {"done": true}]),
            ),
            (
                r#"{"steps": [{"text": "a"}, {"hang": true}]}"#,
                json!([{"text": "a"}, {"hang": true}]),
            ),
            (
                r#"{"steps": [{"finish": "length"}]}"#,
                json!([{"finish": "length"}, {"done": true}]),
            ),
            (
                r#"{"repeat_text": ["ab", 2]}"#,
                json!([{"text": "abab"}, {"finish": "stop"}, {"done": true}]),
            ),
        ];
        for (reply, expected) in table {
            assert_eq!(plan(reply), expected, "{reply}");
        }
    }

    #[test]
    fn a_wrong_script_is_refused() {
        let wrong = [
            (r#"{"reply": []}"#, "unknown field `reply`"),
            (r#"[{"txt": "a"}]"#, "unknown field `txt`"),
            (r#"[{"steps": [{"cut": "now"}]}]"#, "unknown variant `now`"),
            (r#"[{"steps": [{"hang": false}]}]"#, "only `true`"),
            (r#"[{"steps": [{"say": "a"}]}]"#, "unknown variant `say`"),
            (
                r#"[{"tool_calls": [{"name": "a", "args": {}}]}]"#,
                "unknown field `args`",
            ),
            ("[", "EOF"),
        ];
        for (text, says) in wrong {
            let error = Script::from_json(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
