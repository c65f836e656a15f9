//! What a subject claims, taken out of a tool result as its adapter says.

use serde_json::Value;

use crate::adapter::{Adapter, Observation, Rule};

/// All text content of a result, joined with line feeds. A command's outcome has it as plain `text`.
pub fn text(result: &Value) -> String {
    let content = result.get("content").and_then(Value::as_array);
    if let (None, Some(text)) = (content, result.get("text").and_then(Value::as_str)) {
        return text.to_owned();
    }
    let blocks = content
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text")?.as_str());
    blocks.collect::<Vec<_>>().join("\n")
}

/// An adapter has a rule for this observation, by its own name or as part of a larger one.
pub fn declared(adapter: &Adapter, name: &str) -> bool {
    adapter.observations.contains_key(name) || parent(adapter, name).is_some()
}

/// The value of an observation, `None` when no rule finds one.
pub fn observation(adapter: &Adapter, name: &str, result: &Value) -> Option<Value> {
    match adapter.observations.get(name) {
        Some(Observation::Pointer(pointer)) => at(result, pointer),
        Some(Observation::Rule(rule)) => apply(rule, result),
        Some(Observation::Rules(rules)) => rules.iter().find_map(|rule| apply(rule, result)),
        None => {
            let (whole, rest) = parent(adapter, name)?;
            let mut value = observation(adapter, whole, result)?;
            for key in rest.split('.') {
                value = value.get_mut(key)?.take();
            }
            Some(value)
        }
    }
}

/// `usage.input` when only `usage` is declared.
fn parent<'n>(adapter: &Adapter, name: &'n str) -> Option<(&'n str, &'n str)> {
    let (whole, rest) = name.split_once('.')?;
    adapter
        .observations
        .contains_key(whole)
        .then_some((whole, rest))
}

fn at(result: &Value, pointer: &str) -> Option<Value> {
    let value = match pointer {
        "text" => Value::String(text(result)),
        pointer => result.pointer(pointer)?.clone(),
    };
    (!value.is_null()).then_some(value)
}

fn apply(rule: &Rule, result: &Value) -> Option<Value> {
    if let Some(when) = &rule.when
        && apply(when, result).is_none_or(|found| found == Value::Bool(false))
    {
        return None;
    }
    let mut value = at(result, rule.pointer.as_deref().unwrap_or("text"))?;
    if let Some(pattern) = &rule.pattern {
        let found = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        // A pattern that does not compile is refused when the adapter is loaded; here it finds nothing.
        let captures = regex::Regex::new(pattern).ok()?.captures(&found)?;
        let whole = captures.get(1).or_else(|| captures.get(0))?;
        value = Value::String(whole.as_str().to_owned());
    }
    if rule.json {
        value = serde_json::from_str(value.as_str()?).ok()?;
    }
    if let Some(pointer) = &rule.at {
        value = value.pointer(pointer)?.clone();
    }
    if let Some(fixed) = &rule.value {
        return Some(fixed.clone());
    }
    if !rule.map.is_empty() {
        let key = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        value = rule
            .map
            .get(&key)
            .cloned()
            .or_else(|| rule.map.get("*").cloned())
            .unwrap_or(value);
    }
    if rule.not {
        value = Value::Bool(!value.as_bool()?);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(rule: &str, result: Value) -> Option<Value> {
        apply(&serde_saphyr::from_str(rule).unwrap(), &result)
    }

    #[test]
    fn a_rule_may_read_json_inside_a_text_and_depend_on_another() {
        let result = |text: &str, error: bool| json!({"content": [{"type": "text", "text": text}], "isError": error});
        let inner = r#"note {"status": "done", "out": "a\"b"}"#;
        for (rule, error, expected) in [
            (
                "{pattern: '\\{.*\\}', json: true, at: /status}",
                false,
                Some(json!("done")),
            ),
            (
                r#"{pattern: '"out": ("(?:[^"\\]|\\.)*")', json: true}"#,
                false,
                Some(json!("a\"b")),
            ),
            ("{json: true}", false, None),
            (
                "{pointer: text, when: {pointer: /isError, not: true}, value: sure}",
                false,
                Some(json!("sure")),
            ),
            (
                "{pointer: text, when: {pointer: /isError, not: true}, value: sure}",
                true,
                None,
            ),
            (
                "{pointer: text, when: {pointer: /isError}, value: sure}",
                true,
                Some(json!("sure")),
            ),
        ] {
            assert_eq!(
                found(rule, result(inner, error)),
                expected,
                "{rule} {error}"
            );
        }
    }
}
