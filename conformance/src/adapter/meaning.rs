//! What an adapter file that is written well still cannot mean: words that name nothing, templates that cannot be filled.

use minijinja::Environment;
use serde_json::Value;

use super::{Adapter, Observation, Transport};
use crate::check::paths::CALL_DECLARED;
use crate::yaml;

/// What is wrong, and where: the keys down to the place, and the wrong word there.
#[derive(Debug)]
pub(super) struct Fault {
    /// The sentence.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Keys from the top of the file.
    pub path: Vec<String>,
    /// The wrong word itself, if there is one.
    pub word: Option<String>,
}

impl Fault {
    fn new(message: impl Into<String>, path: &[&str]) -> Self {
        Self {
            message: message.into(),
            help: None,
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            word: None,
        }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn word(mut self, word: &str) -> Self {
        self.word = Some(word.to_owned());
        self
    }
}

/// Names that a template may use anywhere: folders, programs, values of the adapter, what it is made of, functions.
const NAMES: [&str; 19] = [
    "self", "child", "run", "home", "agent", "work", "project", "tmp", "cwd", "programs", "bin",
    "settings", "figures", "facts", "packages", "checkout", "filler", "range", "dict",
];

/// Names that an operation carries besides; a `cwd` of its own among them.
const CARRIED: [&str; 5] = ["task", "profile", "cwd", "model", "call"];

/// Programs that the suite brings along: `{{ bin.NAME }}`.
const PROGRAMS: [&str; 1] = ["delegate"];

/// An observation this much like a known one (0 to 1), but not it, is a slip of the pen and no name of the adapter's own.
const SLIP: f64 = 0.92;

/// Looks an adapter over. The first thing that is wrong counts.
pub(super) fn look(adapter: &Adapter) -> Result<(), Fault> {
    start(adapter)?;
    operations(adapter)?;
    for (name, observation) in &adapter.observations {
        self::observation(name, observation)?;
        slip(adapter, name)?;
    }
    templates(adapter)
}

/// How the subject is started fits the transport.
fn start(adapter: &Adapter) -> Result<(), Fault> {
    let parent = adapter.transport == Transport::PiExtension;
    if !parent && adapter.command.is_empty() {
        let message = "`command` is empty; it needs at least a program";
        return Err(Fault::new(message, &["command"]));
    }
    if parent && !adapter.command.is_empty() {
        let message = "`command` has no place beside `transport: pi-extension`";
        return Err(Fault::new(message, &["command"])
            .help("the parent Pi is started by the suite, as `parent` says"));
    }
    if parent && adapter.parent.extensions.is_empty() {
        let message = "`parent.extensions` is empty; it names what the parent Pi loads";
        return Err(Fault::new(message, &["parent"]));
    }
    Ok(())
}

fn operations(adapter: &Adapter) -> Result<(), Fault> {
    let known = &adapter.operations;
    if known.contains_key("spawn") {
        return Ok(());
    }
    let fault = Fault::new(
        "`operations` has no `spawn`; it is the tool call that starts a child",
        &["operations"],
    );
    let near = yaml::nearest("spawn", known.keys().map(String::as_str));
    Err(match near {
        Some(near) => fault
            .help(format!("is `{near}` meant to be `spawn`?"))
            .word(near),
        None => fault,
    })
}

fn observation(name: &str, observation: &Observation) -> Result<(), Fault> {
    let place = ["observations", name];
    let pointer = |pointer: &str| {
        if pointer == "text" || pointer.is_empty() || pointer.starts_with('/') {
            return Ok(());
        }
        let message = format!("observation `{name}`: `{pointer}` is no JSON pointer");
        let parts = ["structuredContent/", "content/", "isError", "_meta/"];
        let below = if parts.iter().any(|part| pointer.starts_with(part)) {
            ""
        } else {
            "structuredContent/"
        };
        let help = format!(
            "it starts with `/`, such as `/{below}{pointer}`, or is `text`, for all text of the result"
        );
        Err(Fault::new(message, &place).help(help).word(pointer))
    };
    let rules = match observation {
        Observation::Pointer(at) => return pointer(at),
        Observation::Rule(rule) => std::slice::from_ref(&**rule),
        Observation::Rules(rules) => rules,
    };
    for rule in rules {
        if let Some(at) = &rule.pointer {
            pointer(at)?;
        }
        if let Some(pattern) = &rule.pattern
            && let Err(error) = regex::Regex::new(pattern)
        {
            // The last line says what; those before draw the pattern again.
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default();
            let why = why.trim_start_matches("error: ");
            return Err(Fault::new(
                format!("observation `{name}`: `{pattern}` is no regular expression: {why}"),
                &["observations", name, "pattern"],
            ));
        }
    }
    Ok(())
}

fn slip(adapter: &Adapter, name: &str) -> Result<(), Fault> {
    if CALL_DECLARED.contains(&name) {
        return Ok(());
    }
    let free = CALL_DECLARED
        .into_iter()
        .filter(|known| !adapter.observations.contains_key(*known));
    match yaml::nearest(name, free) {
        Some(right) if strsim::jaro_winkler(name, right) >= SLIP => {
            let message = format!("there is no observation `{name}`");
            let fault = Fault::new(message, &["observations"]);
            Err(fault.help(format!("did you mean `{right}`?")).word(name))
        }
        _ => Ok(()),
    }
}

fn templates(adapter: &Adapter) -> Result<(), Fault> {
    for (at, word) in adapter.command.iter().enumerate() {
        let place = format!("command[{at}]");
        template(adapter, word, &place, &["command"], &[])?;
    }
    for (at, path) in adapter.child.iter().enumerate() {
        template(adapter, path, &format!("child[{at}]"), &["child"], &[])?;
    }
    for (name, value) in &adapter.env {
        template(adapter, value, &format!("env.{name}"), &["env", name], &[])?;
    }
    for (path, content) in &adapter.files {
        template(adapter, path, "files", &["files"], &[])?;
        template(adapter, content, &format!("files.{path}"), &["files"], &[])?;
    }
    for (name, operation) in &adapter.operations {
        for (argument, value) in &operation.arguments {
            let place = format!("operations.{name}.arguments.{argument}");
            let path = ["operations", name, "arguments", argument];
            for text in texts(value) {
                template(adapter, text, &place, &path, &CARRIED)?;
            }
        }
    }
    Ok(())
}

/// All texts in a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn template(
    adapter: &Adapter,
    text: &str,
    place: &str,
    path: &[&str],
    carried: &[&str],
) -> Result<(), Fault> {
    if !text.contains("{{") && !text.contains("{%") {
        return Ok(());
    }
    let environment = Environment::new();
    let template = environment.template_from_str(text).map_err(|error| {
        let why = error.detail().unwrap_or("it cannot be read");
        Fault::new(format!("template of {place}: {why}"), path).word(text)
    })?;
    let mut names: Vec<String> = template.undeclared_variables(true).into_iter().collect();
    names.sort_unstable();
    for name in &names {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let known: Vec<&str> = NAMES.iter().chain(carried).copied().collect();
        if !known.contains(&first) {
            return Err(unknown(place, path, first, &known));
        }
        let Some(members) = members(adapter, first).filter(|_| !rest.is_empty()) else {
            continue;
        };
        let member = rest.split('.').next().unwrap_or(rest);
        let known: Vec<&str> = members.iter().map(String::as_str).collect();
        if !known.contains(&member) {
            let fault = unknown(place, path, name, &[]).word(name);
            return Err(match yaml::nearest(member, known.iter().copied()) {
                Some(right) => fault.help(format!("did you mean `{first}.{right}`?")),
                None if known.is_empty() => {
                    fault.help(format!("`{first}` of this adapter is empty"))
                }
                None => fault.help(format!("`{first}` has {}", known.join(", "))),
            });
        }
    }
    Ok(())
}

fn unknown(place: &str, path: &[&str], name: &str, known: &[&str]) -> Fault {
    let message = format!("template of {place}: there is no name `{name}`");
    Fault::new(message, path)
        .help(yaml::suggestion(name, known))
        .word(name)
}

/// What may stand behind the dot of a name; `None`: anything.
fn members(adapter: &Adapter, name: &str) -> Option<Vec<String>> {
    let snake = |key: &str| key.replace('-', "_");
    match name {
        "bin" => Some(PROGRAMS.map(str::to_owned).into()),
        "figures" => Some(
            adapter
                .figures
                .all()
                .map(|figure| snake(figure.name))
                .into(),
        ),
        "settings" => Some(adapter.settings.keys().map(|key| snake(key)).collect()),
        "facts" => Some(adapter.facts.keys().map(|key| snake(key)).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::adapter::parse;

    /// A whole adapter, in which each case changes one thing.
    const GOOD: &str = r#"adapter: mine
transport: mcp
command: [server, "{{ work }}/x"]
child-mode: json
env:
  PI_BIN: "{{ child }}"
figures: {grace: 1s, post-exit-drain: 1s, post-answer-drain: 1s, output-cap: 50KiB, extra-text: 4KiB, record-cap: 8MiB,
  stderr-cap: 64KiB, task-limit: 100000, model-limit: 256}
settings:
  tool-timeout: null
operations:
  spawn:
    tool: work
    arguments:
      prompt: "{{ task }}"
      limit: "{{ settings.tool_timeout | ms }}"
observations:
  answer: /structuredContent/answer
  ok: {pointer: /isError, not: true}
  state: {pattern: "state=(\\w+)"}
"#;

    fn told(from: &str, to: &str) -> String {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = parse("mine.yaml", &text).unwrap_err();
        let help = miette::Diagnostic::help(&error).map(|help| format!(" ({help})"));
        format!("{error}{}", help.unwrap_or_default())
    }

    #[test]
    fn a_whole_adapter_is_right() {
        parse("mine.yaml", GOOD).unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn what_means_nothing_is_told_with_its_place_and_the_nearest_right_word() {
        for (from, to, expected) in [
            (
                "  spawn:",
                "  spwan:",
                "12:3: `operations` has no `spawn`; it is the tool call that starts a child (is `spwan` meant to be `spawn`?)",
            ),
            (
                "{{ task }}",
                "{{ tsak }}",
                "15:19: template of operations.spawn.arguments.prompt: there is no name `tsak` (did you mean `task`?)",
            ),
            (
                "settings.tool_timeout",
                "settings.tool_timout",
                "16:18: template of operations.spawn.arguments.limit: there is no name `settings.tool_timout` (did you mean `settings.tool_timeout`?)",
            ),
            (
                "{{ child }}",
                "{{ chidl }}",
                "6:15: template of env.PI_BIN: there is no name `chidl` (did you mean `child`?)",
            ),
            (
                "{{ work }}",
                "{{ work }",
                "3:20: template of command[1]: unexpected `}`, expected end of variable block",
            ),
            (
                "/structuredContent/answer",
                "structuredContent/answer",
                "18:11: observation `answer`: `structuredContent/answer` is no JSON pointer (it starts with `/`, such as `/structuredContent/answer`, or is `text`, for all text of the result)",
            ),
            (
                "  answer: /",
                "  anwser: /",
                "18:3: there is no observation `anwser` (did you mean `answer`?)",
            ),
            (
                "(\\\\w+)",
                "(\\\\w+",
                "20:11: observation `state`: `state=(\\w+` is no regular expression: unclosed group",
            ),
        ] {
            assert_eq!(told(from, to), format!("mine.yaml:{expected}"), "{to}");
        }
    }
}
