//! Text of a configuration file to definitions, or to diagnostics. Pure: no file is opened here.

use std::path::Path;
use std::time::Duration;

use super::json::{self, Kind, Place, Value};
use super::layer::{Entry, Layer, LimitChanges};
use super::{Diagnostic, Limits, clip, listed, nearest};
use crate::profile::{
    BUILTIN_TOOLS, BUNDLED, DEADLINE_MAX, DEADLINE_MIN, DESCRIPTION_LIMIT, Model, Origin,
    PROMPT_LIMIT, Profile, Thinking, check_model,
};

/// Keys of a file.
pub const TOP_KEYS: [&str; 2] = ["profiles", "limits"];
/// Keys of a definition; all of them have to be there.
pub const DEFINITION_KEYS: [&str; 8] = [
    "description",
    "model",
    "thinking",
    "prompt",
    "tools",
    "extensions",
    "skills",
    "deadlineMs",
];
/// Keys of `limits`; each may be left out.
pub const LIMIT_KEYS: [&str; 6] = [
    "startWatchdogMs",
    "toolTimeoutMs",
    "outputCapBytes",
    "stderrCapBytes",
    "recordCapBytes",
    "taskChars",
];
/// Most extensions, skills or tools of one profile.
pub const LIST_LIMIT: usize = 32;

/// Top-level keys of configurations older than `profiles`.
const LEGACY_KEYS: [&str; 6] = [
    "agents",
    "models",
    "overrides",
    "profile",
    "timeouts",
    "version",
];
/// Names that fields of a definition had before, or have elsewhere, and theirs here.
const FORMER_KEYS: [(&str, &str); 9] = [
    ("deadline", "deadlineMs"),
    ("deadlineSeconds", "deadlineMs"),
    ("timeout", "deadlineMs"),
    ("timeoutMs", "deadlineMs"),
    ("timeoutSeconds", "deadlineMs"),
    ("systemPrompt", "prompt"),
    ("thinkingLevel", "thinking"),
    ("allowedTools", "tools"),
    ("skillPaths", "skills"),
];
/// Greatest time in milliseconds that JSON carries everywhere without loss.
const MOST_MS: u64 = 1 << 53;

/// A string of the file and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The string.
    pub text: String,
    /// Its place.
    pub place: Place,
}

/// A complete definition, its paths still as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Everything but the paths.
    pub profile: Profile,
    /// Extensions.
    pub extensions: Vec<Written>,
    /// Skills.
    pub skills: Vec<Written>,
}

/// Reads one file's text.
///
/// # Errors
/// Every fault in it, in the order of the text.
pub fn document(
    origin: Origin,
    file: &Path,
    text: &[u8],
) -> Result<Layer<Definition>, Vec<Diagnostic>> {
    let mut reader = Reader {
        origin,
        file,
        profile: None,
        faults: Vec::new(),
    };
    let layer = reader.document(text);
    match layer {
        Some(layer) if reader.faults.is_empty() => Ok(layer),
        _ => Err(reader.faults),
    }
}

/// Collects the faults of one file.
struct Reader<'a> {
    origin: Origin,
    file: &'a Path,
    profile: Option<String>,
    faults: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn fault(
        &mut self,
        place: Option<Place>,
        key: Option<&str>,
        problem: impl Into<String>,
        correction: impl Into<String>,
    ) {
        self.faults.push(Diagnostic {
            file: self.file.to_owned(),
            place,
            profile: self.profile.clone(),
            key: key.map(str::to_owned),
            problem: problem.into(),
            correction: correction.into(),
        });
    }

    fn wrong_kind(&mut self, value: &Value<'_>, key: Option<&str>, wanted: &str) {
        let problem = format!("this is {}, not {wanted}", value.kind());
        self.fault(Some(value.place()), key, problem, format!("write {wanted}"));
    }

    fn document(&mut self, text: &[u8]) -> Option<Layer<Definition>> {
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                let before = &text[..error.valid_up_to()];
                let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
                let column = before
                    .iter()
                    .rev()
                    .take_while(|&&byte| byte != b'\n')
                    .count()
                    + 1;
                self.fault(
                    Some(Place { line, column }),
                    None,
                    "this byte is not UTF-8",
                    "save the file as UTF-8",
                );
                return None;
            }
        };
        if text.starts_with('\u{feff}') {
            let place = Place { line: 1, column: 1 };
            self.fault(
                Some(place),
                None,
                "the file starts with a byte order mark",
                "save it as UTF-8 without one",
            );
            return None;
        }
        let root = match json::parse(text) {
            Ok(root) => root,
            Err((place, words)) => {
                self.fault(
                    Some(place),
                    None,
                    format!("this is not JSON: {words}"),
                    "correct the syntax",
                );
                return None;
            }
        };
        let mut layer = Layer {
            origin: self.origin,
            file: self.file.to_owned(),
            entries: Vec::new(),
            limits: LimitChanges::default(),
        };
        let Some(entries) = root.object() else {
            self.wrong_kind(&root, None, "an object with the keys profiles and limits");
            return None;
        };
        self.doubles(&entries);
        for (key, value) in &entries {
            match key.as_str() {
                "profiles" => self.profiles(value, &mut layer),
                "limits" => layer.limits = self.limits(value),
                _ => self.unknown_top(key, value),
            }
        }
        Some(layer)
    }

    fn unknown_top(&mut self, key: &str, value: &Value<'_>) {
        let place = Some(value.place());
        if LEGACY_KEYS.contains(&key) {
            let correction = "define complete profiles under `profiles`";
            self.fault(
                place,
                Some(key),
                "this is an older format, which is no longer read",
                correction,
            );
        } else if BUNDLED.contains(&key) {
            let correction =
                format!("move the entry into `profiles`: {{\"profiles\": {{\"{key}\": …}}}}");
            self.fault(
                place,
                Some(key),
                "this is an older format, with profiles at the top",
                correction,
            );
        } else {
            self.unknown(key, value, &TOP_KEYS);
        }
    }

    fn unknown(&mut self, key: &str, value: &Value<'_>, known: &[&str]) {
        let correction = match nearest(key, known.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("the keys are {}", listed(known.iter().copied())),
        };
        self.fault(
            Some(value.place()),
            Some(key),
            "there is no such key",
            correction,
        );
    }

    /// Says which keys come twice: the text then means two things, and readers differ in which they take.
    fn doubles(&mut self, entries: &[(String, Value<'_>)]) {
        for (index, (key, value)) in entries.iter().enumerate() {
            if entries[..index].iter().any(|(earlier, _)| earlier == key) {
                self.fault(
                    Some(value.place()),
                    Some(key),
                    "this key comes twice",
                    "keep one of the two",
                );
            }
        }
    }

    fn profiles(&mut self, value: &Value<'_>, layer: &mut Layer<Definition>) {
        let Some(entries) = value.object() else {
            self.wrong_kind(value, Some("profiles"), "an object of definitions");
            return;
        };
        self.doubles(&entries);
        for (name, value) in entries {
            self.profile = Some(name.clone());
            let place = value.place();
            if !is_name(&name) {
                let correction =
                    "begin with a lower-case letter, then up to 63 of a-z, 0-9, - and _";
                self.fault(
                    Some(place),
                    None,
                    "this is no name for a profile",
                    correction,
                );
            }
            let definition = match value.kind() {
                Kind::Null => Some(None),
                Kind::Object => self.definition(&name, &value).map(Some),
                _ => {
                    self.wrong_kind(
                        &value,
                        None,
                        "a complete definition, or null to disable the name",
                    );
                    None
                }
            };
            self.profile = None;
            if let Some(definition) = definition {
                layer.entries.push(Entry {
                    name,
                    place,
                    definition,
                });
            }
        }
    }

    fn definition(&mut self, name: &str, value: &Value<'_>) -> Option<Definition> {
        let entries = value.object()?;
        let faults_before = self.faults.len();
        self.doubles(&entries);
        for (key, value) in &entries {
            let former = FORMER_KEYS.iter().find(|(former, _)| *former == key);
            if let Some((_, now)) = former {
                let problem = "this is the word of an older format";
                self.fault(
                    Some(value.place()),
                    Some(key),
                    problem,
                    format!("write `{now}`"),
                );
            } else if !DEFINITION_KEYS.contains(&key.as_str()) {
                self.unknown(key, value, &DEFINITION_KEYS);
            }
        }
        let get = |key: &str| {
            entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value)
        };
        for key in DEFINITION_KEYS {
            if get(key).is_none() {
                let correction = format!(
                    "add it: a definition replaces the whole profile, so write {}",
                    example(key)
                );
                self.fault(
                    Some(value.place()),
                    Some(key),
                    "this part is missing",
                    correction,
                );
            }
        }
        let description =
            get("description").and_then(|value| self.text(value, "description", DESCRIPTION_LIMIT));
        let model = get("model").and_then(|value| self.model(value));
        let thinking = get("thinking").and_then(|value| self.thinking(value));
        let prompt = get("prompt").and_then(|value| self.text(value, "prompt", PROMPT_LIMIT));
        let extensions = get("extensions").and_then(|value| self.strings(value, "extensions"));
        let skills = get("skills").and_then(|value| self.strings(value, "skills"));
        let extended = extensions.as_ref().is_some_and(|list| !list.is_empty());
        let tools = get("tools").and_then(|value| self.tools(value, extended));
        let deadline = get("deadlineMs").and_then(|value| self.deadline(value));
        if self.faults.len() > faults_before {
            return None;
        }
        Some(Definition {
            profile: Profile {
                name: name.to_owned(),
                description: description?,
                model: model?,
                thinking: thinking?,
                prompt: prompt?,
                tools: tools?,
                extensions: Vec::new(),
                skills: Vec::new(),
                deadline: deadline?,
                origin: self.origin,
            },
            extensions: extensions?,
            skills: skills?,
        })
    }

    fn text(&mut self, value: &Value<'_>, key: &str, limit: usize) -> Option<String> {
        let place = Some(value.place());
        let Some(text) = value.string() else {
            self.wrong_kind(value, Some(key), "a string");
            return None;
        };
        if text.trim().is_empty() {
            self.fault(place, Some(key), "this is empty", "write some text");
        } else if text.len() > limit {
            let problem = format!(
                "this is {} bytes long, at most {limit} are allowed",
                text.len()
            );
            self.fault(place, Some(key), problem, "shorten it");
        } else if text.contains('\0') {
            let problem = "this contains the character U+0000, which no argument can carry";
            self.fault(place, Some(key), problem, "remove it");
        } else {
            return Some(text);
        }
        None
    }

    fn model(&mut self, value: &Value<'_>) -> Option<Model> {
        let Some(text) = value.string() else {
            self.wrong_kind(
                value,
                Some("model"),
                "a model id, or \"inherit\" for the parent's model",
            );
            return None;
        };
        if text == "inherit" {
            return Some(Model::Inherit);
        }
        match check_model(&text) {
            Ok(()) => Some(Model::Id(text)),
            Err(error) => {
                let correction = "write a model id such as \"provider/model\", or \"inherit\" for the parent's model";
                self.fault(
                    Some(value.place()),
                    Some("model"),
                    error.to_string(),
                    correction,
                );
                None
            }
        }
    }

    fn thinking(&mut self, value: &Value<'_>) -> Option<Thinking> {
        let levels = Thinking::ALL.map(Thinking::as_str);
        let Some(text) = value.string() else {
            self.wrong_kind(
                value,
                Some("thinking"),
                &format!("one of {}", listed(levels)),
            );
            return None;
        };
        let level = text.parse().ok();
        if level.is_none() {
            let problem = format!("there is no thinking level `{}`", clip(&text));
            let mut correction = format!("write one of {}", listed(levels));
            if let Some(word) = nearest(&text, levels) {
                correction = format!("did you mean `{word}`? {correction}");
            }
            self.fault(Some(value.place()), Some("thinking"), problem, correction);
        }
        level
    }

    fn strings(&mut self, value: &Value<'_>, key: &str) -> Option<Vec<Written>> {
        let Some(items) = value.array() else {
            self.wrong_kind(value, Some(key), "a list of strings, which may be empty");
            return None;
        };
        if items.len() > LIST_LIMIT {
            let problem = format!(
                "this list has {} entries, at most {LIST_LIMIT} are allowed",
                items.len()
            );
            self.fault(Some(value.place()), Some(key), problem, "remove some");
            return None;
        }
        let mut found: Vec<Written> = Vec::new();
        for item in &items {
            let place = item.place();
            let Some(text) = item.string() else {
                self.wrong_kind(item, Some(key), "a string");
                return None;
            };
            if text.is_empty() || text.contains('\0') {
                self.fault(
                    Some(place),
                    Some(key),
                    "an entry cannot be empty or contain U+0000",
                    "remove the entry",
                );
                return None;
            }
            if found.iter().any(|earlier| earlier.text == text) {
                let problem = format!("`{}` stands here twice", clip(&text));
                self.fault(Some(place), Some(key), problem, "keep one of the two");
                return None;
            }
            found.push(Written { text, place });
        }
        Some(found)
    }

    /// Tools have to be Pi's own, which are known; where extensions are loaded, theirs can be named as well.
    fn tools(&mut self, value: &Value<'_>, extended: bool) -> Option<Vec<String>> {
        let written = self.strings(value, "tools")?;
        let mut tools = Vec::new();
        for Written { text, place } in written {
            let plain = text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte));
            if BUILTIN_TOOLS.contains(&text.as_str())
                || (extended && plain && !text.starts_with('-'))
            {
                tools.push(text);
                continue;
            }
            let mut correction = format!("the built-in tools are {}", listed(BUILTIN_TOOLS));
            if let Some(word) = nearest(&text, BUILTIN_TOOLS) {
                correction = format!("did you mean `{word}`? {correction}");
            }
            self.fault(
                Some(place),
                Some("tools"),
                format!("there is no tool `{}`", clip(&text)),
                correction,
            );
            return None;
        }
        Some(tools)
    }

    fn deadline(&mut self, value: &Value<'_>) -> Option<Duration> {
        let (least, most) = (millis(DEADLINE_MIN), millis(DEADLINE_MAX));
        let number = self.number(value, "deadlineMs", least, most)?;
        Some(Duration::from_millis(number))
    }

    fn number(&mut self, value: &Value<'_>, key: &str, least: u64, most: u64) -> Option<u64> {
        let wanted = format!("a whole number from {least} to {most}");
        match value.whole() {
            Some(number) if (least..=most).contains(&number) => return Some(number),
            _ if value.kind() == Kind::Number => {
                let problem = format!("{} is not {wanted}", clip(value.source()));
                self.fault(
                    Some(value.place()),
                    Some(key),
                    problem,
                    format!("write {wanted}"),
                );
            }
            _ => self.wrong_kind(value, Some(key), &wanted),
        }
        None
    }

    fn limits(&mut self, value: &Value<'_>) -> LimitChanges {
        let mut changes = LimitChanges::default();
        let Some(entries) = value.object() else {
            self.wrong_kind(value, Some("limits"), "an object of limits");
            return changes;
        };
        self.doubles(&entries);
        let shipped = Limits::default();
        let bytes = |number: u64| usize::try_from(number).ok();
        // 0 switches a time limit off; the deadline of the profile holds all the same.
        let time = |number: u64| (number > 0).then(|| Duration::from_millis(number));
        for (key, value) in &entries {
            let name = key.as_str();
            match name {
                "startWatchdogMs" => {
                    changes.start_watchdog = self.number(value, name, 0, MOST_MS).map(time)
                }
                "toolTimeoutMs" => {
                    changes.tool_timeout = self.number(value, name, 0, MOST_MS).map(time)
                }
                "outputCapBytes" => {
                    changes.output_cap = self
                        .number(value, name, 1, shipped.output_cap as u64)
                        .and_then(bytes);
                }
                "stderrCapBytes" => {
                    changes.stderr_cap = self
                        .number(value, name, 1, shipped.stderr_cap as u64)
                        .and_then(bytes);
                }
                "recordCapBytes" => {
                    changes.record_cap = self
                        .number(value, name, 4096, shipped.record_cap as u64)
                        .and_then(bytes);
                }
                "taskChars" => changes.task_chars = self.number(value, name, 1, 1_000_000),
                _ => self.unknown(key, value, &LIMIT_KEYS),
            }
        }
        changes
    }
}

/// Whether a profile may be called so.
pub fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        })
        && name.len() <= 64
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What a missing part could look like.
fn example(key: &str) -> &'static str {
    match key {
        "description" => "\"description\": \"what it is for\"",
        "model" => "\"model\": \"inherit\" or a model id",
        "thinking" => "\"thinking\": \"low\"",
        "prompt" => "\"prompt\": \"its role\"",
        "tools" => "\"tools\": [\"read\"]",
        "extensions" => "\"extensions\": []",
        "skills" => "\"skills\": []",
        _ => "\"deadlineMs\": 300000",
    }
}
