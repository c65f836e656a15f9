//! Templates of adapters, and operations as tool calls.

use fake_pi::act::{Size, Span};
use indexmap::IndexMap;
use minijinja::{Environment, Error, ErrorKind};
use serde_json::{Map, Value, json};

use super::{Adapter, Operation};

/// Names that templates may use, with their values.
///
/// A hyphen would be a minus in an expression, so `settings.tool-timeout` is written `settings.tool_timeout`; figures too.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope(Map<String, Value>);

/// Why a template has no value.
#[derive(Debug, thiserror::Error)]
#[error("template of {place}: {reason}")]
pub struct TemplateError {
    /// Where it stands, such as `env.HOME`.
    pub place: String,
    /// Why.
    pub reason: String,
}

impl Scope {
    /// The names of an adapter under a scenario's settings: folders by name, `self`, `child`, `bin`, `settings`, `figures`, `facts`.
    pub fn new(
        adapter: &Adapter,
        settings: &IndexMap<String, Value>,
        folders: &IndexMap<String, String>,
        programs: &IndexMap<String, String>,
    ) -> Self {
        let mut names = Map::new();
        for (name, path) in folders {
            names.insert(name.clone(), path.clone().into());
        }
        names.insert("bin".into(), json!(programs));
        let mut all = adapter.settings.clone();
        all.extend(settings.clone());
        names.insert("settings".into(), snake(json!(all)));
        names.insert("figures".into(), snake(json!(adapter.figures)));
        names.insert("facts".into(), snake(json!(adapter.facts)));
        Self(names)
    }

    /// The same with one more name. `Value::Null` counts as not there.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// Renders a template to text.
    ///
    /// # Errors
    /// When it is no template, or uses what it cannot.
    pub fn render(&self, place: &str, template: &str) -> Result<String, TemplateError> {
        let mut environment = Environment::new();
        environment.add_filter("ms", ms);
        environment.add_filter("bytes", bytes);
        environment.add_filter("json", |value: minijinja::Value| {
            serde_json::to_string(&value).map_err(|error| refused(error.to_string()))
        });
        environment.add_function("filler", |length: usize| {
            "You help with what you are asked. "
                .chars()
                .cycle()
                .take(length)
                .collect::<String>()
        });
        environment
            .render_str(template, minijinja::value::Serde(&self.0))
            .map_err(|error| TemplateError {
                place: place.to_owned(),
                reason: format!("{error}"),
            })
    }

    /// A JSON value in which every text is a template. A text that is only `{{ name }}` takes the value with its type;
    /// what comes out empty, or names what is not there, is `None`.
    ///
    /// # Errors
    /// As [`Scope::render`].
    pub fn value(&self, place: &str, template: &Value) -> Result<Option<Value>, TemplateError> {
        match template {
            Value::String(text) => {
                if let Some(path) = only_name(text) {
                    return Ok(self.look_up(path).filter(|value| !value.is_null()).cloned());
                }
                let rendered = self.render(place, text)?;
                Ok((!rendered.is_empty()).then_some(Value::String(rendered)))
            }
            Value::Array(items) => {
                let mut filled = Vec::new();
                for item in items {
                    filled.extend(self.value(place, item)?);
                }
                Ok(Some(Value::Array(filled)))
            }
            Value::Object(map) => {
                let mut filled = Map::new();
                for (key, value) in map {
                    if let Some(value) = self.value(&format!("{place}.{key}"), value)? {
                        filled.insert(key.clone(), value);
                    }
                }
                Ok(Some(Value::Object(filled)))
            }
            other => Ok(Some(other.clone())),
        }
    }

    /// Arguments of an operation's tool call.
    ///
    /// # Errors
    /// As [`Scope::render`].
    pub fn arguments(&self, operation: &Operation) -> Result<Map<String, Value>, TemplateError> {
        let mut arguments = Map::new();
        for (name, template) in &operation.arguments {
            let place = format!("{}.{name}", operation.tool);
            if let Some(value) = self.value(&place, template)? {
                arguments.insert(name.clone(), value);
            }
        }
        Ok(arguments)
    }

    /// A folder or file by its name; empty when there is none.
    pub fn path(&self, name: &str) -> std::path::PathBuf {
        let text = self.look_up(name).and_then(Value::as_str);
        text.unwrap_or_default().into()
    }

    fn look_up(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }
}

/// The name in `{{ name }}`, when there is nothing else.
fn only_name(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// Hyphens of keys become underscores, at the first level.
fn snake(value: Value) -> Value {
    let Value::Object(map) = value else {
        return value;
    };
    map.into_iter()
        .map(|(key, value)| (key.replace('-', "_"), value))
        .collect::<Map<_, _>>()
        .into()
}

/// Whole milliseconds of a time such as `1500ms` or `2s`.
fn ms(time: minijinja::Value) -> Result<u64, Error> {
    let span: Span = time.to_string().parse().map_err(refused)?;
    Ok(span.0.as_millis().try_into().unwrap_or(u64::MAX))
}

/// Bytes of a size such as `50KiB`.
fn bytes(size: minijinja::Value) -> Result<u64, Error> {
    let size: Size = size.to_string().parse().map_err(refused)?;
    Ok(size.0)
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(settings: Value) -> Scope {
        let adapter = crate::adapter::load("reference-delegator").unwrap();
        let settings: IndexMap<String, Value> = serde_json::from_value(settings).unwrap();
        let folders = IndexMap::from([("agent".to_owned(), "/agent".to_owned())]);
        Scope::new(&adapter, &settings, &folders, &IndexMap::new())
    }

    #[test]
    fn a_bare_name_keeps_its_type_and_what_is_missing_is_left_out() {
        let scope = scope(json!({}))
            .with("model", json!(42))
            .with("cwd", Value::Null);
        let operation: Operation = serde_json::from_value(json!({
            "tool": "t",
            "arguments": {
                "model": "{{ model }}", "cwd": "{{ cwd }}", "task": "{{ task }}",
                "both": "{{ model }}{{ cwd }}", "none": "{{ cwd or '' }}", "fixed": [1, "{{model}}"],
            },
        }))
        .unwrap();
        let arguments = Value::Object(scope.arguments(&operation).unwrap());
        // `null` in a longer template renders as nothing that anybody wants; adapters guard it with `or`.
        assert_eq!(arguments["model"], json!(42));
        assert_eq!(arguments["fixed"], json!([1, 42]));
        assert!(arguments.get("cwd").is_none() && arguments.get("task").is_none());
        assert!(arguments.get("none").is_none());
    }

    #[test]
    fn an_empty_text_that_was_given_is_sent() {
        let scope = scope(json!({})).with("model", json!(""));
        assert_eq!(
            scope.value("x", &json!("{{ model }}")).unwrap(),
            Some(json!(""))
        );
    }

    #[test]
    fn settings_become_the_references_configuration() {
        let adapter = crate::adapter::load("reference-delegator").unwrap();
        let template = &adapter.files["{{ agent }}/delegator.json"];
        let render = |settings| scope(settings).render("files", template).unwrap();
        assert_eq!(render(json!({})).trim(), "");
        for settings in [
            json!({"deadline": "1500ms"}),
            json!({"tool-timeout": "400ms", "deadline": "30s"}),
            json!({"start-watchdog": "1s"}),
            json!({"prompt-bytes": 204_800, "thinking": "medium", "model": "stub/x"}),
        ] {
            let text = render(settings.clone());
            let config: Value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{settings}: {e}\n{text}"));
            if settings["deadline"] == "1500ms" {
                assert_eq!(config["profiles"]["scout"]["deadlineMs"], 1500);
                assert_eq!(config["profiles"]["worker"]["deadlineMs"], 1500);
                assert!(config.get("limits").is_none());
            }
            if settings["start-watchdog"] == "1s" {
                assert_eq!(config["limits"]["startWatchdogMs"], 1000);
                assert!(config.get("profiles").is_none());
            }
        }
    }

    #[test]
    fn a_wrong_template_names_its_place() {
        let error = scope(json!({"deadline": "soon"}))
            .render("env.X", "{{ settings.deadline | ms }}")
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("env.X") && text.contains("`soon` is not a time"),
            "{text}"
        );
    }
}
