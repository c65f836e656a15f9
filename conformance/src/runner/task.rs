//! What goes into a call: its task with the marks, its model, and what of it the evidence shows.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::scenario::{Spawn, TaskText};

/// Default text of a task.
const TEXT: &str = "say what you find";
/// Bytes of a text argument that the evidence shows.
const SHOWN: usize = 4 << 10;

/// The task: marks for the child and the call, then the text. `None`: no task at all.
pub fn text(spawn: &Spawn, word: &str) -> Option<String> {
    let marks = match &spawn.child {
        _ if spawn.unmarked => String::new(),
        Some(child) => format!("kit-child-{child} {word} "),
        None => format!("{word} "),
    };
    match &spawn.task {
        None => Some(marks + TEXT),
        Some(TaskText::Text(text)) => Some(marks + text),
        Some(TaskText::Missing(())) => None,
        Some(TaskText::Sized(size)) => {
            let bytes = usize::try_from(size.bytes.0).unwrap_or(usize::MAX);
            let mut text = marks;
            text.truncate(bytes);
            text.extend(std::iter::repeat_n('x', bytes - text.len()));
            Some(text)
        }
    }
}

/// The model override; `{bytes: N}` makes an id of that length.
///
/// # Errors
/// When `bytes` is no size.
pub fn model(spawn: &Spawn) -> Result<Value, String> {
    let Some(model) = &spawn.model else {
        return Ok(Value::Null);
    };
    let Some(bytes) = model.get("bytes") else {
        return Ok(model.clone());
    };
    let size: fake_pi::act::Size =
        serde_json::from_value(bytes.clone()).map_err(|error| format!("`model`: {error}"))?;
    let id = "stub/".chars().chain(std::iter::repeat('m'));
    Ok(id
        .take(usize::try_from(size.0).unwrap_or(0))
        .collect::<String>()
        .into())
}

/// SHA-256 in hex, and length in bytes.
pub fn digest(task: &str) -> (String, u64) {
    let digest = Sha256::digest(task.as_bytes());
    let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    (hex, task.len() as u64)
}

/// Arguments as evidence shows them: long texts cut, with a word about it.
pub fn shortened(arguments: &Map<String, Value>) -> Value {
    let mut shown = arguments.clone();
    for value in shown.values_mut() {
        if let Value::String(text) = value
            && text.len() > SHOWN
        {
            let cut = text.floor_char_boundary(SHOWN);
            let whole = text.len();
            text.truncate(cut);
            text.push_str(&format!("… (cut; {whole} bytes in all)"));
        }
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn(yaml: &str) -> Spawn {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn marks_stand_before_the_text_unless_it_must_be_exact() {
        let text = |yaml| text(&spawn(yaml), "kit-call-3");
        assert_eq!(
            text("{child: a}").unwrap(),
            "kit-child-a kit-call-3 say what you find"
        );
        assert_eq!(text("{task: look}").unwrap(), "kit-call-3 look");
        assert_eq!(
            text("{child: a, task: '  ', unmarked: true}").unwrap(),
            "  "
        );
        assert_eq!(text("{task: null}"), None);
    }

    #[test]
    fn a_sized_task_has_its_size_with_the_marks_in_it() {
        let text = text(&spawn("{child: a, task: {bytes: 1KiB+1}}"), "kit-call-3").unwrap();
        assert_eq!(text.len(), 1025);
        assert!(text.starts_with("kit-child-a kit-call-3 x") && text.ends_with("xx"));
        assert_eq!(
            super::text(&spawn("{child: a, task: {bytes: 4}}"), "w").unwrap(),
            "kit-"
        );
    }

    #[test]
    fn a_model_of_so_many_bytes() {
        let id = model(&spawn("{model: {bytes: 256+1}}")).unwrap();
        assert_eq!(id.as_str().unwrap().len(), 257);
        assert_eq!(model(&spawn("{model: 42}")).unwrap(), 42);
        assert_eq!(model(&spawn("{model: ''}")).unwrap(), "");
    }
}
