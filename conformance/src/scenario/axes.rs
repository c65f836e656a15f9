//! Axes: one scenario file, many scenarios (pure).
//!
//! Expansion works on the document as a value, before it gets its types: a template may stand where the schema wants a
//! number or a list. `{{cut}}` alone takes the value with its type; inside a longer text it takes its words.

use indexmap::IndexMap;
use serde_json::Value;

use crate::adapter::Adapter;
use crate::check::words::nearest;

/// One point of the product of all axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// `[cut=7,end=lf]`, or nothing when there are no axes.
    pub suffix: String,
    /// Axis to value, as they stand in the header of a bundle.
    pub axes: IndexMap<String, Value>,
    /// What `{{name}}` stands for: axes, their labels and fields, and the adapter's figures.
    names: IndexMap<String, Value>,
}

/// A template that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AxesError {
    /// The name in it is neither axis nor figure.
    #[error("`{{{{{name}}}}}` is neither an axis of this scenario nor a figure of the adapter{}", hint(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// A name that exists and looks like it.
        nearest: Option<String>,
    },
    /// `axes` is of another shape.
    #[error("`axes.{axis}` is neither a list of values nor a map of named values")]
    Shape {
        /// Which.
        axis: String,
    },
    /// An axis without values makes the scenario vanish.
    #[error("`axes.{axis}` has no values, so nothing would run")]
    Empty {
        /// Which.
        axis: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

/// Names that the runner fills in later, round by round.
const LATER: [&str; 1] = ["n"];

/// All points of a document's axes, in the order in which they are written, the last axis fastest.
///
/// # Errors
/// When `axes` is not of the right shape, or an axis has no value.
pub fn points(document: &Value, adapter: &Adapter) -> Result<Vec<Point>, AxesError> {
    let plain = Point {
        suffix: String::new(),
        axes: IndexMap::new(),
        names: figures(adapter),
    };
    let mut points = vec![plain.clone()];
    let axes = document.get("axes").and_then(Value::as_object);
    for (axis, values) in axes.into_iter().flatten() {
        let values = labelled(axis, values, adapter, &plain)?;
        points = points
            .iter()
            .flat_map(|point| {
                values
                    .iter()
                    .map(|(label, value)| point.with(axis, label, value))
            })
            .collect();
    }
    for point in &mut points {
        if !point.suffix.is_empty() {
            point.suffix = format!("[{}]", point.suffix);
        }
    }
    Ok(points)
}

impl Point {
    fn with(&self, axis: &str, label: &str, value: &Value) -> Self {
        let mut point = self.clone();
        if !point.suffix.is_empty() {
            point.suffix.push(',');
        }
        point.suffix.push_str(&format!("{axis}={label}"));
        point.axes.insert(axis.to_owned(), value.clone());
        point.names.insert(axis.to_owned(), value.clone());
        point.names.insert(format!("{axis}.name"), label.into());
        for (field, value) in value.as_object().into_iter().flatten() {
            point.names.insert(format!("{axis}.{field}"), value.clone());
        }
        point
    }

    /// The document with every template filled in.
    ///
    /// # Errors
    /// When a template names nothing that exists.
    pub fn fill(&self, document: &Value) -> Result<Value, AxesError> {
        Ok(match document {
            Value::String(text) => fill_text(text, &self.names)?,
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.fill(item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(map) => {
                let mut filled = serde_json::Map::new();
                for (key, value) in map {
                    let value = if key == "axes" {
                        value.clone()
                    } else {
                        self.fill(value)?
                    };
                    filled.insert(words(&fill_text(key, &self.names)?), value);
                }
                Value::Object(filled)
            }
            other => other.clone(),
        })
    }
}

/// The values of one axis with their labels, the adapter's figures filled in.
fn labelled(
    axis: &str,
    values: &Value,
    adapter: &Adapter,
    plain: &Point,
) -> Result<Vec<(String, Value)>, AxesError> {
    let mut found = Vec::new();
    match values {
        Value::Array(values) => {
            for value in values {
                if value.as_str() == Some("$profiles") {
                    let profiles = adapter.profiles.iter();
                    found.extend(profiles.map(|name| (name.clone(), Value::from(name.as_str()))));
                    if adapter.profiles.is_empty() {
                        // A delegator without profiles has its one plain call.
                        found.push(("none".to_owned(), Value::Null));
                    }
                } else {
                    found.push((label(value), plain.fill(value)?));
                }
            }
        }
        Value::Object(named) => {
            for (name, value) in named {
                found.push((name.clone(), plain.fill(value)?));
            }
        }
        _ => {
            return Err(AxesError::Shape {
                axis: axis.to_owned(),
            });
        }
    }
    if found.is_empty() {
        return Err(AxesError::Empty {
            axis: axis.to_owned(),
        });
    }
    Ok(found)
}

/// A value as it stands in a name: short, one word, no control characters.
fn label(value: &Value) -> String {
    let text = words(value).replace("{{", "").replace("}}", "");
    let mut label: String = text
        .chars()
        .take(40)
        .flat_map(|c| c.escape_debug().collect::<Vec<_>>())
        .map(|c| {
            if c.is_whitespace() || "[],=".contains(c) {
                '_'
            } else {
                c
            }
        })
        .collect();
    if label.is_empty() {
        label.push_str("empty");
    }
    label
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn fill_text(text: &str, names: &IndexMap<String, Value>) -> Result<Value, AxesError> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = template(rest) {
        if LATER.contains(&name) {
            filled.push_str(&rest[..rest.len() - after.len()]);
            rest = after;
            continue;
        }
        let value = names.get(name).ok_or_else(|| AxesError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, names.keys().map(String::as_str)).map(str::to_owned),
        })?;
        if before.is_empty() && after.is_empty() && filled.is_empty() {
            return Ok(value.clone());
        }
        filled.push_str(before);
        filled.push_str(&words(value));
        rest = after;
    }
    filled.push_str(rest);
    Ok(Value::String(filled))
}

/// The first `{{name}}` of a text: what stands before it, the name, what stands after it. Braces around anything that is
/// no name (JSON in a raw record, say) are text.
fn template(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find("{{").map(|at| from + at) {
        let inside = &text[open + 2..];
        if let Some(close) = inside.find("}}") {
            let name = inside[..close].trim();
            let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
            if is_name {
                return Some((&text[..open], name, &inside[close + 2..]));
            }
        }
        from = open + 1;
    }
    None
}

/// The figures under the names that scenarios use: bytes and counts as numbers, times as `5000ms`.
fn figures(adapter: &Adapter) -> IndexMap<String, Value> {
    let all = adapter.figures.all().into_iter();
    all.map(|figure| (figure.name.to_owned(), figure.filling))
        .collect()
}

/// Figures that a document's templates use and the adapter does not claim: what is made of them means nothing.
pub fn unclaimed(document: &Value, adapter: &Adapter) -> Vec<&'static str> {
    let text = document.to_string();
    let missing = adapter
        .figures
        .all()
        .into_iter()
        .filter(|figure| figure.claimed.is_none() && figure.ceiling.is_none());
    missing
        .map(|figure| figure.name)
        .filter(|name| uses(&text, name))
        .collect()
}

fn uses(text: &str, name: &str) -> bool {
    let mut rest = text;
    while let Some((_, found, after)) = template(rest) {
        if found == name {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn adapter() -> Adapter {
        serde_json::from_value(json!({
            "adapter": "a", "transport": "mcp", "command": ["x"], "child-mode": "rpc", "profiles": ["scout", "worker"],
            "figures": {"grace": "5s", "post-exit-drain": "1s", "post-answer-drain": "3s", "output-cap": 51200,
                "extra-text": 1024, "record-cap": "8MiB", "stderr-cap": "64KiB", "task-limit": 10, "model-limit": 20},
            "operations": {}, "observations": {}
        }))
        .unwrap()
    }

    fn expand(document: Value) -> Vec<(String, Value)> {
        let points = points(&document, &adapter()).unwrap();
        let fill = |point: &Point| {
            (
                point.suffix.clone(),
                point.fill(&document).unwrap()["x"].clone(),
            )
        };
        points.iter().map(fill).collect()
    }

    #[test]
    fn a_template_alone_keeps_the_type_and_one_in_a_text_does_not() {
        let document = json!({"axes": {"cut": [1, "two"]}, "x": ["{{cut}}", "at {{ cut }}", {"k{{cut}}": null}]});
        let expected = vec![
            ("[cut=1]".to_owned(), json!([1, "at 1", {"k1": null}])),
            (
                "[cut=two]".to_owned(),
                json!(["two", "at two", {"ktwo": null}]),
            ),
        ];
        assert_eq!(expand(document), expected);
    }

    #[test]
    fn axes_multiply_and_named_values_show_their_names() {
        let document = json!({
            "axes": {"a": [true, false], "end": {"lf": {"text": "\n", "ok": 1}}},
            "x": ["{{a}}", "{{end.name}}", "{{end.text}}", "{{end.ok}}"]
        });
        let expanded = expand(document);
        assert_eq!(
            expanded[0],
            ("[a=true,end=lf]".into(), json!([true, "lf", "\n", 1]))
        );
        assert_eq!(
            expanded[1],
            ("[a=false,end=lf]".into(), json!([false, "lf", "\n", 1]))
        );
    }

    #[test]
    fn figures_and_profiles_come_from_the_adapter() {
        let document = json!({"axes": {"n-bytes": ["{{record-cap}}-1"], "profile": ["$profiles"]}, "x": "{{n-bytes}} {{profile}}"});
        let expanded = expand(document);
        assert_eq!(
            expanded[0],
            (
                "[n-bytes=record-cap-1,profile=scout]".into(),
                json!("8388608-1 scout")
            )
        );
        assert_eq!(expanded[1].1, json!("8388608-1 worker"));
    }

    #[test]
    fn a_delegator_without_profiles_has_its_one_plain_call() {
        let document = json!({"axes": {"profile": ["$profiles"]}, "x": "{{profile}}"});
        let adapter = Adapter {
            profiles: Vec::new(),
            ..adapter()
        };
        let points = points(&document, &adapter).unwrap();
        let [point] = &points[..] else {
            panic!("{} points", points.len())
        };
        assert_eq!(point.suffix, "[profile=none]");
        assert_eq!(point.fill(&document).unwrap()["x"], Value::Null);
    }

    #[test]
    fn figures_are_filled_in_wherever_they_stand_in_an_axis() {
        let document = json!({
            "axes": {
                "size": {"over": {"limit": "{{record-cap}}+1", "at": ["{{task-limit}}"]}, "plain": "{{output-cap}}"},
                "raw": [{"n": "{{model-limit}}"}]
            },
            "x": ["{{size}}", "{{raw.n}}"]
        });
        let expanded = expand(document);
        assert_eq!(
            expanded[0].1,
            json!([{"limit": "8388608+1", "at": [10]}, 20])
        );
        assert_eq!(expanded[1].1, json!([51200, 20]));
        let fields = json!({"axes": {"size": {"over": {"limit": "{{record-cap}}+1"}}}, "x": "{{size.limit}}"});
        assert_eq!(expand(fields)[0].1, json!("8388608+1"));
        let unknown = json!({"axes": {"size": {"over": {"limit": "{{recrd-cap}}"}}}});
        let error = points(&unknown, &adapter()).unwrap_err().to_string();
        assert!(error.ends_with("did you mean `record-cap`?"), "{error}");
    }

    #[test]
    fn without_axes_there_is_one_point_without_a_suffix() {
        assert_eq!(
            expand(json!({"x": "plain"})),
            vec![(String::new(), json!("plain"))]
        );
    }

    #[test]
    fn the_round_of_a_repeat_and_braces_that_are_no_template_stay() {
        let document = json!({"x": ["call-{{n}}.settled", "{\"a\":{\"b\":{}}}", "{{\"a\"}}"]});
        assert_eq!(expand(document.clone())[0].1, document["x"]);
    }

    #[test]
    fn an_unknown_name_is_told_with_the_nearest_one() {
        let document = json!({"axes": {"size": [1]}, "x": "{{sise}}"});
        let error = points(&document, &adapter()).unwrap()[0]
            .fill(&document)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`{{sise}}` is neither an axis of this scenario nor a figure of the adapter; did you mean `size`?"
        );
    }

    #[test]
    fn an_axis_without_values_is_refused() {
        let error = points(&json!({"axes": {"size": []}}), &adapter()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`axes.size` has no values, so nothing would run"
        );
    }
}
