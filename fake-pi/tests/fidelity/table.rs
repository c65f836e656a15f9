//! What stood behind the recordings (`replies.yaml`), and which are not reproduced (`not-reproduced.yaml`).

use std::collections::BTreeMap;

use fake_pi::pi::{Failure, ModelPiece, Tokens, ToolResult};
use serde::Deserialize;
use serde_json::Value;

use super::trace::folder;

pub struct Tables {
    cases: BTreeMap<String, Entry>,
    listed: BTreeMap<String, Listed>,
}

#[derive(Deserialize)]
struct Replies {
    cases: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct NotReproduced {
    cases: BTreeMap<String, Listed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    flavours: Vec<String>,
    why: String,
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    settings: Settings,
    #[serde(rename = "settings-1.6.0")]
    settings_new: Option<Settings>,
    #[serde(rename = "settings-0.73.1")]
    settings_old: Option<Settings>,
    replies: Vec<Reply>,
    #[serde(rename = "replies-1.6.0")]
    replies_new: Option<Vec<Reply>>,
    #[serde(rename = "replies-0.73.1")]
    replies_old: Option<Vec<Reply>>,
    tools: BTreeMap<String, Tool>,
    #[serde(rename = "tools-1.6.0")]
    tools_new: Option<BTreeMap<String, Tool>>,
    #[serde(rename = "tools-0.73.1")]
    tools_old: Option<BTreeMap<String, Tool>>,
    bash: Vec<Bash>,
}

/// What one recording needs.
#[derive(Clone, Default)]
pub struct Case {
    pub settings: Settings,
    pub replies: Vec<Vec<Piece>>,
    pub tools: BTreeMap<String, Tool>,
    pub bash: Vec<Bash>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    pub retry: Option<bool>,
    pub retry_delay: Option<u64>,
    pub api: Option<String>,
    pub context_window: Option<u64>,
    pub reserve: Option<u64>,
    pub keep_recent: Option<u64>,
    pub no_key: Option<String>,
    pub warnings: Vec<String>,
    /// The whole model object, when it isn't the stub's.
    pub model: Option<Value>,
    pub extension: Option<Extension>,
    /// The conversation that an opened session file holds: user and assistant messages.
    pub history: Vec<Value>,
    /// Standard error holds a trace of Node's, of which only the message matters.
    pub node_trace: bool,
    /// Text that stands before the message, from standard input.
    pub stdin: Option<String>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Extension {
    #[serde(default)]
    pub prints: Vec<String>,
    #[serde(default)]
    pub hooks: Vec<Hook>,
    pub command: Option<Command>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    pub at: String,
    #[serde(rename = "do")]
    pub deeds: Vec<Deed>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub name: String,
    pub description: String,
    #[serde(rename = "do")]
    pub deeds: Vec<Deed>,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    Tell(Value),
    Ask(Value),
    Gate { request: Value, refusal: String },
    Throw(String),
    Hang(#[allow(dead_code)] bool),
    Shutdown(#[allow(dead_code)] bool),
}

/// A command of RPC `bash`: what it prints, and its exit code (none when it is aborted).
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Bash {
    pub prints: Vec<String>,
    pub exit: Option<i32>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Reply {
    id: Option<String>,
    #[serde(default)]
    pieces: Vec<PieceEntry>,
    #[serde(default)]
    hang: bool,
    fail: Option<FailEntry>,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "kebab-case")]
enum PieceEntry {
    Words(String),
    Text(String),
    /// This many characters of a repeated text, in one piece.
    Repeat {
        unit: String,
        characters: usize,
    },
    Thinks(String),
    Thinking(String),
    Call([String; 2]),
    Arguments(String),
    Block(String),
    Signature(String),
    Finish(Option<String>),
    Tokens([u64; 5]),
    StartTokens([u64; 5]),
    Fail(FailEntry),
    Hang(#[allow(dead_code)] bool),
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FailEntry {
    http: Option<u16>,
    body: Option<String>,
    refused: Option<String>,
    reset: Option<bool>,
    in_stream: Option<String>,
}

/// A piece of a reply, or nothing any more.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Comes(ModelPiece),
    Hang,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub updates: Vec<ToolUpdate>,
    end: Option<ToolEnd>,
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub enum ToolUpdate {
    Text(String),
    Full { text: String, details: Value },
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum ToolEnd {
    Bash {
        bash: BashEnd,
    },
    Read {
        read: String,
    },
    Ended {
        ended: Ended,
    },
    Failed {
        failed: String,
    },
    Text {
        text: String,
        details: Option<Value>,
        structured: Option<Value>,
    },
}

#[derive(Deserialize, Clone)]
struct BashEnd {
    output: String,
    exit: i32,
}

#[derive(Deserialize, Clone)]
struct Ended {
    output: String,
    what: String,
}

impl Tool {
    /// How it ends, if it does.
    pub fn end(&self, flavour: fake_pi::act::Flavour) -> Option<ToolResult> {
        Some(match self.end.as_ref()? {
            ToolEnd::Bash { bash } => ToolResult::bash(flavour, &bash.output, bash.exit, 0.0),
            ToolEnd::Read { read } => ToolResult::read(read),
            ToolEnd::Ended { ended } => ToolResult::bash_ended(&ended.output, &ended.what),
            ToolEnd::Failed { failed } => ToolResult::failure(failed),
            ToolEnd::Text {
                text,
                details,
                structured,
            } => ToolResult {
                details: details.clone(),
                structured: structured.clone(),
                ..ToolResult::text(text)
            },
        })
    }
}

impl FailEntry {
    fn failure(&self) -> Failure {
        match self {
            Self {
                http: Some(status),
                body,
                ..
            } => Failure::Http(*status, body.clone().unwrap_or_default()),
            Self {
                refused: Some(address),
                ..
            } => Failure::Refused(address.clone()),
            Self {
                in_stream: Some(text),
                ..
            } => Failure::InStream(text.clone()),
            Self { reset, .. } => {
                assert!(reset.is_some(), "a fail without a kind");
                Failure::Reset
            }
        }
    }
}

fn tokens([input, output, cache_read, cache_write, reasoning]: [u64; 5]) -> Tokens {
    Tokens {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    }
}

impl Reply {
    fn pieces(&self) -> Vec<Piece> {
        if self.hang {
            return vec![Piece::Hang];
        }
        if let Some(fail) = &self.fail {
            return vec![Piece::Comes(ModelPiece::Fail(fail.failure()))];
        }
        let mut pieces = vec![ModelPiece::Begin];
        pieces.extend(self.id.clone().map(ModelPiece::Id));
        let words = |text: &str| {
            text.split_inclusive(' ')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for piece in &self.pieces {
            match piece {
                PieceEntry::Words(text) => {
                    pieces.extend(words(text).into_iter().map(ModelPiece::Text))
                }
                PieceEntry::Text(text) => pieces.push(ModelPiece::Text(text.clone())),
                PieceEntry::Repeat { unit, characters } => {
                    pieces.push(ModelPiece::Text(
                        unit.chars().cycle().take(*characters).collect(),
                    ));
                }
                PieceEntry::Thinks(text) => {
                    pieces.extend(words(text).into_iter().map(ModelPiece::Thinking))
                }
                PieceEntry::Thinking(text) => pieces.push(ModelPiece::Thinking(text.clone())),
                PieceEntry::Call([id, name]) => {
                    pieces.push(ModelPiece::ToolStart {
                        id: id.clone(),
                        name: name.clone(),
                    });
                }
                PieceEntry::Arguments(text) => pieces.push(ModelPiece::ToolArguments(text.clone())),
                PieceEntry::Block(kind) => pieces.push(match kind.as_str() {
                    "text" => ModelPiece::TextBlock,
                    "thinking" => ModelPiece::ThinkingBlock,
                    _ => ModelPiece::BlockEnd,
                }),
                PieceEntry::Signature(text) => pieces.push(ModelPiece::Signature(text.clone())),
                PieceEntry::Finish(reason) => pieces.extend(reason.clone().map(ModelPiece::Finish)),
                PieceEntry::Tokens(counts) => pieces.push(ModelPiece::Tokens(tokens(*counts))),
                PieceEntry::StartTokens(counts) => {
                    pieces.push(ModelPiece::StartTokens(tokens(*counts)))
                }
                PieceEntry::Fail(fail) => {
                    pieces.push(ModelPiece::Fail(fail.failure()));
                    return pieces.into_iter().map(Piece::Comes).collect();
                }
                PieceEntry::Hang(_) => {
                    return pieces
                        .into_iter()
                        .map(Piece::Comes)
                        .chain([Piece::Hang])
                        .collect();
                }
            }
        }
        pieces.push(ModelPiece::End);
        pieces.into_iter().map(Piece::Comes).collect()
    }
}

impl Tables {
    pub fn load() -> Self {
        let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
        let replies: Replies =
            serde_saphyr::from_str(&read("replies.yaml")).unwrap_or_else(|e| panic!("{e}"));
        let listed: NotReproduced =
            serde_saphyr::from_str(&read("not-reproduced.yaml")).unwrap_or_else(|e| panic!("{e}"));
        for (name, listed) in &listed.cases {
            assert!(listed.why.len() > 20, "{name}: a reason is a sentence");
        }
        Self {
            cases: replies.cases,
            listed: listed.cases,
        }
    }

    /// All names in both tables.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.cases.keys().chain(self.listed.keys()).cloned()
    }

    /// Why a recording is not reproduced.
    pub fn listed(&self, case: &str, flavour: &str) -> Option<&str> {
        let listed = self.listed.get(case)?;
        let both = listed.flavours.is_empty();
        (both || listed.flavours.iter().any(|name| name == flavour)).then_some(listed.why.as_str())
    }

    pub fn case(&self, case: &str, flavour: &str) -> Case {
        let entry = self.cases.get(case).cloned().unwrap_or_default();
        let newer = flavour == "1.6.0";
        let settings = if newer {
            entry.settings_new
        } else {
            entry.settings_old
        };
        let replies = if newer {
            entry.replies_new
        } else {
            entry.replies_old
        };
        let tools = if newer {
            entry.tools_new
        } else {
            entry.tools_old
        };
        let replies = replies.unwrap_or(entry.replies);
        Case {
            settings: settings.unwrap_or(entry.settings),
            replies: replies
                .iter()
                .flat_map(|reply| std::iter::repeat_n(reply.pieces(), reply.times))
                .collect(),
            tools: tools.unwrap_or(entry.tools),
            bash: entry.bash,
        }
    }
}
