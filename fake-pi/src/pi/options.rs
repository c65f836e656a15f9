//! What a session is started with: flavour, mode, model, settings.

use serde_json::{Map, Value, json};

use super::extension::Extension;
use super::js;
use crate::act::Flavour;

/// The three ways in which Pi is driven by a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// `--mode rpc`: commands on standard input, records on standard output.
    #[default]
    Rpc,
    /// `--mode json`: one or more messages, their events, the end.
    Json,
    /// `--mode text`: one or more messages, the last answer's text, the end.
    Text,
}

/// Which protocol the provider speaks; it decides how content blocks are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Api {
    /// Chat completions: at most one text and one thinking block, all closed together at the end.
    #[default]
    Completions,
    /// Messages: a block for each piece, closed before the next one opens.
    Messages,
}

impl Api {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completions => "openai-completions",
            Self::Messages => "anthropic-messages",
        }
    }
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Prompt tokens.
    pub input: f64,
    /// Completion tokens.
    pub output: f64,
    /// Tokens read from the cache.
    pub cache_read: f64,
    /// Tokens written to the cache.
    pub cache_write: f64,
}

/// The model that a session talks to.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its id, as in `--model provider/id`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The protocol.
    pub api: Api,
    /// Its provider.
    pub provider: String,
    /// Where the provider listens.
    pub base_url: String,
    /// Whether it can think.
    pub reasoning: bool,
    /// What it costs.
    pub cost: Cost,
    /// How many tokens it takes in.
    pub context_window: u64,
    /// How many tokens it gives out.
    pub max_tokens: u64,
    /// The `compat` object of `models.json`.
    pub compat: Option<Value>,
    /// The whole model object, when it is none of the above (a built-in model, or `unknown`).
    pub record: Option<Value>,
}

impl Model {
    /// The model that stands for one out of `models.json` of a loopback provider.
    pub fn stub(provider: &str, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: format!("Stub {}", id.to_uppercase()),
            api: Api::Completions,
            provider: provider.to_owned(),
            base_url: "http://127.0.0.1:8000/v1".to_owned(),
            reasoning: true,
            cost: Cost {
                input: 1.0,
                output: 2.0,
                cache_read: 0.1,
                cache_write: 1.25,
            },
            context_window: 128_000,
            max_tokens: 16_384,
            compat: Some(json!({"supportsDeveloperRole": false, "supportsReasoningEffort": false})),
            record: None,
        }
    }

    /// What Pi shows as its model when it has none at all.
    pub fn unknown() -> Self {
        Self {
            record: Some(json!({
                "id": "unknown", "name": "unknown", "api": "unknown", "provider": "unknown", "baseUrl": "",
                "reasoning": false, "input": [],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 0, "maxTokens": 0,
            })),
            ..Self::stub("unknown", "unknown")
        }
    }

    /// The model object of `get_state`, `set_model` and `get_available_models`.
    pub fn to_record(&self) -> Value {
        if let Some(record) = &self.record {
            return record.clone();
        }
        let mut model = json!({
            "id": self.id,
            "name": self.name,
            "api": self.api.name(),
            "provider": self.provider,
            "baseUrl": self.base_url,
            "reasoning": self.reasoning,
            "input": ["text"],
            "cost": {
                "input": js::number(self.cost.input),
                "output": js::number(self.cost.output),
                "cacheRead": js::number(self.cost.cache_read),
                "cacheWrite": js::number(self.cost.cache_write),
            },
            "contextWindow": self.context_window,
            "maxTokens": self.max_tokens,
        });
        if let Some(compat) = &self.compat {
            model["compat"] = compat.clone();
        }
        model
    }
}

/// When a failed answer is tried again (`retry` in Pi's settings).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Whether at all.
    pub enabled: bool,
    /// Attempts after the first one.
    pub attempts: u32,
    /// Milliseconds before the first of them; doubled for each further one.
    pub base_delay_ms: u64,
    /// How often the provider's client library repeats a failed request by itself, unseen. `None`: as the flavour does
    /// (twice in 0.73.1, never in 1.6.0).
    pub hidden: Option<u32>,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            attempts: 3,
            base_delay_ms: 2000,
            hidden: None,
        }
    }
}

/// When a conversation is summarized (`compaction` in Pi's settings).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether by itself.
    pub enabled: bool,
    /// Tokens of the context window that are kept free.
    pub reserve: u64,
    /// Tokens at the end of the conversation that are not summarized.
    pub keep_recent: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve: 16_384,
            keep_recent: 20_000,
        }
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
    /// What it is for.
    pub description: String,
}

impl ToolSpec {
    /// One of Pi's own tools by name, or `None` for a name that Pi doesn't know (which it drops silently).
    pub fn builtin(name: &str) -> Option<Self> {
        let text = |about: &str| json!({"type": "string", "description": about});
        let number = |about: &str| json!({"type": "number", "description": about});
        let (required, properties, description) = match name {
            "read" => (
                json!(["path"]),
                json!({"path": text("file"), "offset": number("first line"), "limit": number("lines")}),
                "Reads a file.",
            ),
            "bash" => (
                json!(["command"]),
                json!({"command": text("command line"), "timeout": number("seconds")}),
                "Runs a shell command.",
            ),
            "write" => (
                json!(["path", "content"]),
                json!({"path": text("file"), "content": text("content")}),
                "Writes a file.",
            ),
            "edit" => (
                json!(["path", "edits"]),
                json!({"path": text("file"), "edits": {"type": "array"}}),
                "Replaces text in a file.",
            ),
            "grep" => (
                json!(["pattern"]),
                json!({"pattern": text("pattern")}),
                "Searches files for a pattern.",
            ),
            "find" => (
                json!(["pattern"]),
                json!({"pattern": text("pattern")}),
                "Finds files by name.",
            ),
            "ls" => (
                json!([]),
                json!({"path": text("folder")}),
                "Lists a folder.",
            ),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            parameters: json!({"type": "object", "required": required, "properties": properties}),
            description: description.to_owned(),
        })
    }

    /// Names of required arguments that `arguments` lacks.
    pub fn missing<'a>(&'a self, arguments: &Map<String, Value>) -> Vec<&'a str> {
        let required = self.parameters["required"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        required
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| !arguments.contains_key(*name))
            .collect()
    }

    /// Its entry in the first system message.
    pub fn to_record(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "constrainedSampling": {"type": "json_schema", "strict": "prefer"},
        })
    }
}

/// What a session is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which Pi line it speaks like.
    pub flavour: Flavour,
    /// How it is driven.
    pub mode: Mode,
    /// Its model.
    pub model: Model,
    /// All models that it could be switched to.
    pub models: Vec<Model>,
    /// `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`.
    pub thinking: String,
    /// The session file; `None` with `--no-session`. A path that ends with a slash is a folder (`--session-dir`): the file
    /// in it is then named as Pi names it.
    pub session_file: Option<String>,
    /// The working directory.
    pub cwd: String,
    /// `--system-prompt`, or Pi's own.
    pub system_prompt: String,
    /// The tools that are switched on.
    pub tools: Vec<ToolSpec>,
    /// Retry settings.
    pub retry: RetrySettings,
    /// Compaction settings.
    pub compaction: CompactionSettings,
    /// How many tokens Pi guesses its system prompt and its descriptions of tools at. Their wording is not ours, so the
    /// number is given: that of a short prompt with `read` and `bash`.
    pub overhead: u64,
    /// Extensions, in the order of their flags.
    pub extensions: Vec<Extension>,
    /// Why every prompt is refused (a missing key, no model).
    pub no_key: Option<String>,
    /// Warnings on standard error at the start.
    pub warnings: Vec<String>,
    /// The messages of `json` and `text` mode, in order; each is a run.
    pub messages: Vec<String>,
    /// The conversation so far, when a session file is opened again.
    pub history: Vec<Value>,
}

impl Options {
    /// A session with the defaults of a delegator's command line.
    pub fn new(flavour: Flavour, mode: Mode) -> Self {
        let model = Model::stub("stub", "x");
        Self {
            flavour,
            mode,
            models: vec![model.clone()],
            model,
            thinking: "off".to_owned(),
            session_file: None,
            cwd: "/".to_owned(),
            system_prompt: String::new(),
            tools: ["read", "bash", "edit", "write"]
                .into_iter()
                .filter_map(ToolSpec::builtin)
                .collect(),
            retry: RetrySettings::default(),
            compaction: CompactionSettings::default(),
            overhead: 340,
            extensions: Vec::new(),
            no_key: None,
            warnings: Vec::new(),
            messages: Vec::new(),
            history: Vec::new(),
        }
    }
}
