//! An adapter as data: how a subject is started, and how operations and observations map to its tool calls.

use fake_pi::act::{Size, Span};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One adapter file.
///
/// Strings in `command`, `env`, `files` and `operations` are templates (minijinja). Known names: `self` (the suite's own
/// executable), `child` (where the child binary lies), `run` (the scenario's folder), `home`, `agent`, `work`,
/// `project`, `settings.NAME`, `figures.NAME`; in operations also what the operation carries (`task`, `profile`, `cwd`, `model`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Adapter {
    /// Its name.
    pub adapter: String,
    /// One sentence about the subject.
    #[serde(default)]
    pub about: String,
    /// How it is talked to.
    pub transport: Transport,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment on top of the sandbox's (which has PATH, HOME, TMPDIR, LANG and little else).
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Where the child binary is put: paths (templates) that become fake-pi. Default: `{{ run }}/bin/pi`, which is first on PATH.
    #[serde(default)]
    pub child: Vec<String>,
    /// `rpc`, `json` or `text`: which of Pi's modes it uses.
    pub child_mode: String,
    /// Files written before each start; the content is a template.
    #[serde(default)]
    pub files: IndexMap<String, String>,
    /// Capabilities that it declares.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Systems of the catalogue whose dialect it speaks.
    #[serde(default)]
    pub systems: Vec<String>,
    /// Its declared figures.
    pub figures: Figures,
    /// Its declared choices where contracts differ honestly, such as `length: failure`.
    #[serde(default)]
    pub policy: IndexMap<String, String>,
    /// Settings of scenarios (`setup.settings`) that it can translate, with their default values.
    #[serde(default)]
    pub settings: IndexMap<String, Value>,
    /// Agents or profiles that exist without configuration; the first is the default.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Operations to tool calls.
    pub operations: IndexMap<String, Operation>,
    /// Observations out of results.
    pub observations: IndexMap<String, Observation>,
    /// Values of further names that scenarios may use, such as the isolation flags (`facts.isolation-flags`).
    #[serde(default)]
    pub facts: IndexMap<String, Value>,
}

/// How a subject is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// An MCP server on standard input and output.
    Mcp,
}

/// Declared figures. Times are upper bounds that the subject promises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figures {
    /// From a terminal cause to settlement, at most 5 s.
    pub grace: Span,
    /// From the child's exit to settlement while a descendant holds a pipe.
    pub post_exit_drain: Span,
    /// From the answer to the forced end of a child that stays.
    pub post_answer_drain: Span,
    /// Bytes of answer text that a result carries at most.
    pub output_cap: Size,
    /// Bytes that a result may have beside the answer text.
    pub extra_text: Size,
    /// Longest record without LF.
    pub record_cap: Size,
    /// Bytes of stderr that are kept.
    pub stderr_cap: Size,
    /// Longest task, in characters.
    pub task_limit: u64,
    /// Longest model id, in bytes.
    pub model_limit: u64,
    /// How long the runner waits for a fact before it goes on without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Span>,
}

/// One operation: a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Operation {
    /// Tool's name.
    pub tool: String,
    /// Its arguments: any JSON; strings are templates; an argument whose template comes out empty is left out.
    #[serde(default)]
    pub arguments: IndexMap<String, Value>,
}

/// One observation: where in a `tools/call` result it is found. Rules are tried in order; the first that yields a value counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Observation {
    /// A JSON pointer into the result (`/structuredContent/answer`).
    Pointer(String),
    /// With details.
    Rule(Rule),
    /// Several.
    Rules(Vec<Rule>),
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Rule {
    /// JSON pointer into the result. `text` is short for all text content joined.
    pub pointer: Option<String>,
    /// Regular expression on the found text; its first group (or the whole match) is the value.
    pub pattern: Option<String>,
    /// This value, if pointer and pattern matched.
    pub value: Option<Value>,
    /// Translates the found value: word to word.
    pub map: IndexMap<String, Value>,
    /// Negates a boolean.
    pub not: bool,
}
