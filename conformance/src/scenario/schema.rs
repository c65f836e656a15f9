//! A scenario as data: what the children do, what the caller does, what must hold.
//!
//! Read top to bottom: name, requirement, children, steps, checks. A scenario is written in *operations* and never
//! names a subject's tool; the adapter maps them.

use fake_pi::act::{Child, Signal, Size, Span};
use fake_pi::by_shape;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Its name: a slug, unique over all files. Axis values are appended: `name[cut=7]`.
    pub scenario: String,
    /// Requirements that it shows (ids of the catalogue). A check may narrow them to its own.
    #[serde(default)]
    pub proves: Vec<String>,
    /// Why it matters, in one or two sentences.
    pub why: String,
    /// Capabilities without which it is *not applicable*.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Systems whose contract it belongs to. Empty: any delegator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<String>,
    /// Runs alone, not beside other scenarios (heavy, or its bounds are tight).
    #[serde(default, skip_serializing_if = "is_false")]
    pub alone: bool,
    /// Values that expand this file into many: `{{cut}}` in any string below is replaced. A string that is only
    /// `{{cut}}` takes the value with its type. Named values (a map) show their name: `{{cut.name}}`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub axes: IndexMap<String, Axis>,
    /// What is laid out before the subject starts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub setup: Setup,
    /// The fake children.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub children: IndexMap<String, Child>,
    /// What the caller does, in order. A step waits for facts, never for a time (but see `pause`).
    pub steps: Vec<Step>,
    /// What must hold, judged over the evidence after everything has ended.
    pub checks: Vec<Check>,
}

/// The values of one axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Axis {
    /// Values that name themselves: `name[cut=7]`. The string `$profiles` stands for all profiles of the adapter.
    Values(Vec<Value>),
    /// Values by name, for those that are too long to stand in a name: `name[fault=no-model]`.
    Named(IndexMap<String, Value>),
}

by_shape!(Axis, "a list of values, or a map of named values", Value::Array(_) => Values, Value::Object(_) => Named);

fn is_false(b: &bool) -> bool {
    !*b
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What is laid out before the subject starts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Setup {
    /// Abstract settings that the adapter translates into its own configuration: `deadline`, `tool-timeout`,
    /// `start-watchdog`, `output-cap`, `model`, `thinking`, `profile` …
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub settings: IndexMap<String, Value>,
    /// Files to write: path (relative to the scenario's folder, or starting with `{agent}`, `{work}`, `{home}`, `{project}`) to
    /// content. `null` makes a folder.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub files: IndexMap<String, FileContent>,
    /// Environment of the subject, on top of the adapter's. `null` removes a name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, Option<String>>,
    /// Extra arguments of the subject, only with adapters that say so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Signals that the subject inherits blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Signal>,
    /// Signals that the subject inherits ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<Signal>,
    /// Limit of open descriptors of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u64>,
    /// What stands where the child binary should be.
    #[serde(skip_serializing_if = "is_default")]
    pub child: ChildBinary,
    /// Names of trap programs put first on PATH; running one is journalled as launch of `trap:NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traps: Vec<String>,
}

/// What stands where the child binary should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChildBinary {
    /// fake-pi.
    #[default]
    FakePi,
    /// Nothing: the path does not exist.
    Missing,
    /// Nothing, and the path is 4 KiB long (in legal components).
    MissingLong,
    /// A file without execute permission.
    NotExecutable,
    /// A folder.
    Folder,
    /// An executable that is no program (bad format).
    Garbage,
}

/// Content of a file in `setup.files`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FileContent {
    /// Text as it is.
    Text(String),
    /// With details.
    Full(FullFile),
    /// A folder.
    Folder(()),
}

by_shape!(
    FileContent,
    "a text, a map, or nothing for a folder",
    Value::String(_) => Text,
    Value::Object(_) => Full,
    Value::Null => Folder
);

/// A file with details.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FullFile {
    /// Text.
    pub text: Option<String>,
    /// A JSON value, written pretty.
    pub json: Option<Value>,
    /// So many bytes of blanks (for size limits).
    pub blanks: Option<Size>,
    /// A symbolic link to this path.
    pub link: Option<String>,
    /// Executable.
    pub executable: bool,
}

/// One step. Each is a map with one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Start a call and go on without waiting for its result.
    Spawn(Spawn),
    /// Start a call and wait until it has settled.
    Call(Spawn),
    /// Fire one call's own abort.
    Abort(Abort),
    /// Wait for a fact.
    Wait(WaitStep),
    /// Open a barrier that an act waits at.
    Open(String),
    /// List the tools; kept as an observation.
    ListTools(Named),
    /// Session shutdown: close the subject's input.
    Shutdown(OnSubject),
    /// Send a signal to the subject itself.
    Signal(SignalStep),
    /// A further subject beside the first, in the same folder.
    Subject(Named),
    /// A snapshot of the subject's descriptors, memory, children and zombies, kept under a name.
    Sample(Named),
    /// A parent-run event, for subjects that declare it.
    Parent(ParentStep),
    /// Write a file while the subject runs.
    Write(WriteStep),
    /// Repeat steps. `{{n}}` is the round, from 1; names given by `as:` get `-N` appended.
    Repeat(Repeat),
    /// Offset for a race, counted from the step before. Not a way to wait for something.
    Pause(Span),
    /// Watch for this long that nothing more comes (updates after the result).
    Watch(Span),
    /// Send a raw MCP request (method and params), for operations that have no word yet.
    Request(RawRequest),
}

/// A call that starts a child.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Spawn {
    /// Which child script it is for; its mark is put in the task. May be absent when no child is expected.
    pub child: Option<String>,
    /// The call's name in steps and checks; default `call`.
    #[serde(rename = "as")]
    pub name: Option<String>,
    /// Agent or profile; default: the adapter's `default-profile`. `all` is not a name: see `{{profile}}` axes.
    pub profile: Option<String>,
    /// Task text; the marks are put before it. Default: a short sentence. `null`: the call has no task at all.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskText>,
    /// Working directory.
    pub cwd: Option<String>,
    /// Model override; `{bytes: N}` makes an id of exactly that length.
    pub model: Option<Value>,
    /// Further raw arguments of the tool call; `null` removes one that the template made.
    pub args: IndexMap<String, Value>,
    /// Do not put marks in the task (for tasks that must be exact: blank, missing, exact size).
    pub unmarked: bool,
    /// Fire the call's abort before or together with the request.
    pub aborted: bool,
    /// Which subject; default the first.
    pub on: Option<String>,
}

/// A key that is there counts, also with the value `null`.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// The task of a call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TaskText {
    /// Text.
    Text(String),
    /// Text of an exact size, marks included.
    Sized(SizedTask),
    /// No task at all.
    Missing(()),
}

by_shape!(
    TaskText,
    "a text, a map with `bytes`, or nothing",
    Value::String(_) => Text,
    Value::Object(_) => Sized,
    Value::Null => Missing
);

/// A task of an exact size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SizedTask {
    /// Bytes (ASCII), marks included.
    pub bytes: Size,
}

/// Abort one call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Abort {
    /// The call's name.
    Call(String),
    /// With details.
    Full(FullAbort),
}

by_shape!(Abort, "the name of a call, or a map", Value::String(_) => Call, Value::Object(_) => Full);

/// Abort with details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FullAbort {
    /// The call's name.
    pub call: String,
    /// This long after the call was sent (an offset for a race).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
}

/// A fact to wait for. Every wait has the adapter's `patience` (default 30 s); running out of it is noted and the scenario goes on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WaitStep {
    /// `CALL.settled`, `CHILD.started`, `CHILD.task`, `CHILD.reached.NAME`, `CHILD.exited`, `CHILD.signal.TERM`, `CHILD.stdin.abort`,
    /// `CHILD.descendant.NAME.gone`, `subject.exited`, `CALL.update` (first progress).
    Fact(String),
    /// All of them.
    All(Vec<String>),
}

by_shape!(WaitStep, "a fact, or a list of facts", Value::String(_) => Fact, Value::Array(_) => All);

/// Something with a name, on a subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Named {
    /// Its name.
    #[serde(rename = "as")]
    pub name: String,
    /// Which subject.
    pub on: Option<String>,
}

/// Which subject a step is for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct OnSubject {
    /// Default: the first, `subject`.
    pub on: Option<String>,
}

/// A signal to the subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SignalStep {
    /// Which signal.
    pub send: Signal,
    /// Which subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

/// A parent-run event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParentStep {
    /// The parent's run started, with the parent's facts (model …).
    Started(IndexMap<String, Value>),
    /// The parent's run was interrupted.
    Interrupted(OnSubject),
    /// The parent's run settled.
    Settled(OnSubject),
}

/// Writes a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WriteStep {
    /// As in `setup.files`.
    pub path: String,
    /// Its content.
    pub content: FileContent,
}

/// Repeats steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Repeat {
    /// How often.
    pub times: u64,
    /// The steps.
    #[serde(rename = "do")]
    pub steps: Vec<Step>,
}

/// A raw request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RawRequest {
    /// JSON-RPC method.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// Name of the call in checks.
    #[serde(rename = "as")]
    pub name: String,
}

/// One check: an observation and what it must be, `OBSERVATION: EXPECTATION`, with optional keys beside it.
///
/// Observations are paths such as `call.ok`, `call.answer`, `call.reason`, `a.argv`, `a.signals`, `survivors`
/// (the list: `docs/scenarios.md`). `each call` in place of a name holds for every call whose name starts so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Requirements that this check shows, where it is not all of the scenario's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proves: Vec<String>,
    /// Where honest contracts differ: the policy's name to its accepted values, each with what then must hold instead.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub policy: IndexMap<String, IndexMap<String, Expect>>,
    /// Only with adapters that declare this capability, figure or observation; else this check is not applicable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// The observation and what it must be: exactly one entry.
    #[serde(flatten)]
    pub expect: IndexMap<String, Expect>,
}

/// What an observation must be: a value (equal), or a map of one or more matchers (all must hold).
///
/// Matchers: `is`, `not`, `contains`, `lacks`, `matches`, `one-of`, `at-most`, `at-least`, `below`, `above`, `count`,
/// `same-as` (another observation), `differs-from`, `every`, `any`, `within` with `after` (a time: see `settles`), `present`, `absent`.
/// Numbers may be names of the adapter's figures (`output-cap`, `grace + 500ms`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expect(pub Value);
