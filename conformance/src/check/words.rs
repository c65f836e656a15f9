//! Putting values and choices in words.

use serde_json::Value;

/// Longest text that is shown whole, in characters.
const SHOWN: usize = 200;

/// A value as a reader wants to see it: texts in back-quotes, long ones cut in the middle with their length said.
pub fn show(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("`{}`", short(text)),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(items) => {
            let mut shown: Vec<_> = items.iter().take(12).map(show).collect();
            if items.len() > 12 {
                shown.push(format!("… {} in all", items.len()));
            }
            format!("[{}]", shown.join(", "))
        }
        other => short(&other.to_string()),
    }
}

/// A text on one line, cut in the middle when it is long.
pub fn short(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| match c {
            '\n' => '⏎',
            c if c.is_control() => '·',
            c => c,
        })
        .collect();
    let length = line.chars().count();
    if length <= SHOWN {
        return line;
    }
    let head: String = line.chars().take(SHOWN * 2 / 3).collect();
    let tail: String = line.chars().skip(length - SHOWN / 4).collect();
    format!("{head} … {tail} ({} bytes)", text.len())
}

/// The word of a list that is nearest to a mistyped one, if any is near enough to help.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
