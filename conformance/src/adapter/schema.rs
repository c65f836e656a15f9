//! An adapter as data: how a subject is started, and how operations and observations map to its tool calls.

use fake_pi::act::Span;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Figures;

/// One adapter file.
///
/// Strings in `command`, `env`, `files` and `operations` are templates (minijinja). Known names: `self` (the suite's own
/// executable), `child` (where the child binary lies), `run` (the scenario's folder), `home`, `agent`, `work`,
/// `project`, `settings.NAME`, `figures.NAME`; in operations also what the operation carries (`task`, `profile`, `cwd`, `model`, `call`: the call's name).
/// Of parts: `packages.NAME` and `checkout`. `here` is the folder of the adapter's own file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Adapter {
    /// Its name.
    pub adapter: String,
    /// One sentence about the subject.
    #[serde(default)]
    pub about: String,
    /// How it is talked to.
    pub transport: Transport,
    /// Program and arguments. With transport `pi-extension` the parent Pi's are known and nothing is given here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What the subject is made of that has to be brought first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parts: Parts,
    /// The parent Pi, with transport `pi-extension`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parent: ParentPi,
    /// How the command is used, with transport `command`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uses: CommandUse,
    /// Environment on top of the sandbox's (which has PATH, HOME, TMPDIR, LANG and little else).
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Where the child binary is put: paths (templates) that become fake-pi. Default: `{{ run }}/bin/pi`, which is first on PATH.
    #[serde(default)]
    pub child: Vec<String>,
    /// Which of Pi's modes its children run in.
    pub child_mode: ChildMode,
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
    #[serde(default)]
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

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Which of Pi's modes a subject's children run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChildMode {
    /// `--mode rpc`: commands on standard input, records on standard output.
    #[default]
    Rpc,
    /// `--mode json`: records on standard output.
    Json,
    /// Plain text on standard output.
    Text,
    /// Plain text; what counts is the session file.
    TextSession,
    /// No process at all: the child is a session inside the parent, and its model is all that can be played.
    InProcess,
}

impl ChildMode {
    /// Its word in adapter files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::Json => "json",
            Self::Text => "text",
            Self::TextSession => "text-session",
            Self::InProcess => "in-process",
        }
    }
}

/// How a subject is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// An MCP server on standard input and output.
    #[default]
    Mcp,
    /// An extension in a real parent Pi, whose user and model the runner plays.
    PiExtension,
    /// A command that takes JSON requests, one a line, and prints JSON outcomes.
    Command,
}

impl Transport {
    /// Its word in adapter files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::PiExtension => "pi-extension",
            Self::Command => "command",
        }
    }
}

/// How the parent Pi is set up (transport `pi-extension`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ParentPi {
    /// Extensions that it loads (`-e`); templates.
    pub extensions: Vec<String>,
    /// Further arguments; default `--no-session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// How a `pi` that the extension starts becomes fake-pi.
    pub interpose: Interpose,
    /// Tool calls that the model makes before that of an operation, once a session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prelude: Vec<Operation>,
    /// How long it may take to load its extensions, before anything is measured; default 90 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Span>,
}

/// How a child `pi` becomes fake-pi below a real parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interpose {
    /// The parent's entry is a shim: its first start is the real Pi, every later one becomes fake-pi. For extensions that start
    /// `process.argv[1]` again.
    #[default]
    Shim,
    /// The parent is the real Pi itself, and `pi` on PATH is fake-pi; also for an override variable in `env`.
    Path,
    /// A module that Node loads first (`NODE_OPTIONS`): a later start of Pi's own entry becomes fake-pi.
    Hook,
}

/// How a command is used (transport `command`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CommandUse {
    /// One process serves the whole scenario and takes a request a line. Otherwise each request starts the command anew: it gets the
    /// request on its input, which then ends, and prints the outcome.
    pub serves: bool,
}

/// Packages and checkouts that a subject is made of, which the suite never brings along.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Parts {
    /// npm packages by a name of your choice, each as `PACKAGE@VERSION`; `{{ packages.NAME }}` is the package's folder.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub npm: IndexMap<String, String>,
    /// Where its source is published; the working copy's folder, given by `--checkout`, is `{{ checkout }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// The version or commit that the adapter was written for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
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
    Rule(Box<Rule>),
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
    /// What was found is text that holds JSON: its value counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// JSON pointer into that value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// This value, if pointer and pattern matched.
    pub value: Option<Value>,
    /// Translates the found value: word to word.
    pub map: IndexMap<String, Value>,
    /// Negates a boolean.
    pub not: bool,
    /// Only where this other rule finds something that is not `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Box<Rule>>,
}
