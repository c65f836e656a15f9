//! One record against another: exact, but for what no replay can know.
//!
//! Times are only times. Identifiers that Pi makes up (uuids, eight hex digits) must agree in where the same one comes
//! again. What the recorder left out, marked `RECORDER`, is not looked at.

use std::collections::HashMap;

use super::json::Json;

/// Which made-up identifier of the recording stands for which of the replay.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    there: HashMap<String, String>,
    back: HashMap<String, String>,
}

impl Ids {
    /// The replay's name of an identifier of the recording.
    pub fn ours(&self, theirs: &str) -> Option<&str> {
        self.there.get(theirs).map(String::as_str)
    }

    fn agree(&mut self, theirs: &str, ours: &str) -> bool {
        let there = self
            .there
            .entry(theirs.to_owned())
            .or_insert_with(|| ours.to_owned());
        let back = self
            .back
            .entry(ours.to_owned())
            .or_insert_with(|| theirs.to_owned());
        there == ours && back == theirs
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text
            .chars()
            .enumerate()
            .all(|(at, c)| matches!(at, 8 | 13 | 18 | 23) == (c == '-'))
}

fn is_made_up(text: &str) -> bool {
    is_uuid(text) || (text.len() == 8 && text.chars().all(|c| c.is_ascii_hexdigit()))
}

/// What differs first, as a path and both sides; `None` when nothing does.
pub fn difference(theirs: &Json, ours: &Json, ids: &mut Ids) -> Option<String> {
    compare("", "", theirs, ours, ids)
}

fn compare(path: &str, name: &str, theirs: &Json, ours: &Json, ids: &mut Ids) -> Option<String> {
    let differs = || {
        Some(format!(
            "{path}: {} in the recording, {} here",
            show(theirs),
            show(ours)
        ))
    };
    match (theirs, ours) {
        (Json::Fields(left_out), _) if left_out.len() == 1 && left_out[0].0 == "RECORDER" => None,
        (Json::Fields(theirs), Json::Fields(ours)) => {
            if name == "tool" && theirs.len() == 1 {
                // The recorder kept only the names of the tools here.
                return compare(
                    path,
                    "",
                    &theirs[0].1,
                    ours.first().map(|(_, name)| name)?,
                    ids,
                );
            }
            for (at, (field, value)) in theirs.iter().enumerate() {
                match ours.get(at) {
                    Some((name, other)) if name == field => {
                        if let Some(found) =
                            compare(&format!("{path}.{field}"), field, value, other, ids)
                        {
                            return Some(found);
                        }
                    }
                    other => {
                        let other = other.map_or("nothing", |(name, _)| name);
                        return Some(format!(
                            "{path}: field {field} in the recording, {other} here"
                        ));
                    }
                }
            }
            let more = ours.get(theirs.len())?;
            Some(format!(
                "{path}: {} = {} is not in the recording",
                more.0,
                show(&more.1)
            ))
        }
        (Json::List(theirs_items), Json::List(ours_items)) => {
            if theirs_items.len() != ours_items.len() {
                return Some(format!(
                    "{path}: {} items in the recording, {} here",
                    theirs_items.len(),
                    ours_items.len()
                ));
            }
            let inner = if name == "toolsAdded" { "tool" } else { "" };
            let mut pairs = theirs_items.iter().zip(ours_items).enumerate();
            pairs.find_map(|(at, (a, b))| compare(&format!("{path}[{at}]"), inner, a, b, ids))
        }
        (Json::Word(a), Json::Word(b)) if is_time(name) && a.parse::<f64>().is_ok() => {
            if b.parse::<f64>().is_ok() {
                None
            } else {
                differs()
            }
        }
        (Json::Word(a), Json::Word(b)) if a == b || rewritten(a, b) => None,
        (Json::Text(a), Json::Text(b)) => {
            let same = if name == "timestamp" {
                a.len() == b.len() && a.ends_with('Z') == b.ends_with('Z')
            } else if is_made_up(a) && is_made_up(b) {
                ids.agree(a, b)
            } else if name == "sessionFile" {
                masked(a) == masked(b)
            } else {
                texts_agree(a, b)
            };
            if same { None } else { differs() }
        }
        _ => differs(),
    }
}

/// Where the recorder shortened a line it wrote numbers its own way: `1.8e-05`, which JavaScript never does.
fn rewritten(theirs: &str, ours: &str) -> bool {
    theirs.contains("e-0") && theirs.parse::<f64>().ok() == ours.parse::<f64>().ok()
}

fn is_time(name: &str) -> bool {
    matches!(name, "timestamp" | "durationMs" | "wall_time_seconds")
}

/// A path of a session file that Pi named: only its shape.
fn masked(path: &str) -> String {
    let made_up = path
        .strip_suffix(".jsonl")
        .is_some_and(|stem| stem.len() > 36 && is_uuid(&stem[stem.len() - 36..]));
    let shape = |c: char| if c.is_ascii_hexdigit() { '0' } else { c };
    match path.rsplit_once('/') {
        Some((folder, file)) if made_up => {
            format!("{folder}/{}", file.chars().map(shape).collect::<String>())
        }
        _ => path.to_owned(),
    }
}

/// Texts agree when they are the same, or when the recording's is shortened and the rest is the same.
pub fn texts_agree(theirs: &str, ours: &str) -> bool {
    let Some((head, rest)) = theirs.split_once("[[RECORDER") else {
        return theirs == ours;
    };
    let Some((note, tail)) = rest.split_once("]]") else {
        return false;
    };
    if theirs == ours {
        return true;
    }
    let left_out = ours
        .strip_prefix(head)
        .and_then(|ours| ours.strip_suffix(tail));
    let count = note
        .trim_start_matches(": ")
        .split(' ')
        .next()
        .and_then(|count| count.parse::<usize>().ok());
    match (left_out, count) {
        (Some(text), Some(count)) => text.encode_utf16().count() == count,
        (found, None) => found.is_some(),
        (None, _) => false,
    }
}

fn show(value: &Json) -> String {
    let text = format!("{value:?}");
    text.chars().take(160).collect()
}
