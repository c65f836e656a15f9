//! Whether observations find what they are meant to, and where they would find it.

use indexmap::IndexMap;
use serde_json::Value;

use super::{ANSWER, FAILURES, Fault, Outcome, SUCCESS, Seen};
use crate::adapter::{Observation, Rule};
use crate::check::extract;
use crate::check::words::{short, show};
use crate::yaml;

/// An observation, and the names under which delegators are wont to give it.
#[derive(Debug)]
pub struct Likely {
    /// The observation.
    pub observation: &'static str,
    /// Names of fields, the likeliest first; `a/b` lies one deeper.
    pub fields: &'static [&'static str],
}

/// Observations that are found by the name of a field. `ok` and `answer` are not: they are known by their values.
pub const LIKELY: &[Likely] = &[
    Likely {
        observation: "outcome",
        fields: &["outcome", "status", "state"],
    },
    Likely {
        observation: "reason",
        fields: &["reason", "failureReason", "cause"],
    },
    Likely {
        observation: "stop-reason",
        fields: &["stopReason", "stop_reason", "finishReason"],
    },
    Likely {
        observation: "error",
        fields: &["error", "errorMessage", "error_message"],
    },
    Likely {
        observation: "stderr",
        fields: &["stderr", "stderrTail", "stderr_tail"],
    },
    Likely {
        observation: "exit-code",
        fields: &["exitCode", "exit_code", "exit/code"],
    },
    Likely {
        observation: "exit-signal",
        fields: &["exitSignal", "exit_signal", "signal", "exit/signal"],
    },
    Likely {
        observation: "usage",
        fields: &["usage"],
    },
    Likely {
        observation: "truncated",
        fields: &["truncated", "truncation/truncated"],
    },
    Likely {
        observation: "model",
        fields: &["model"],
    },
    Likely {
        observation: "profile",
        fields: &["profile", "agent"],
    },
];

/// Where a delegator keeps what it says to programs: MCP's name for it, then Pi's.
const STRUCTURED: [&str; 2] = ["/structuredContent", "/details"];

/// The same for one result: the whole outcome of a command is meant for programs.
fn structured(result: &Value) -> &'static [&'static str] {
    if result.get("content").is_some() {
        &STRUCTURED
    } else {
        &[""]
    }
}

/// The observations that these results allow: of a success whose child said [`ANSWER`], and of failures.
pub fn likely(success: Option<&Value>, failures: &[&Value]) -> IndexMap<String, Observation> {
    let mut found = IndexMap::new();
    let Some(success) = success else {
        return found;
    };
    if let Some(ok) = telling(success, failures) {
        found.insert("ok".to_owned(), ok);
    }
    if let Some(answer) = saying(success) {
        found.insert("answer".to_owned(), answer);
    }
    let all = || std::iter::once(success).chain(failures.iter().copied());
    for Likely {
        observation,
        fields,
    } in LIKELY
    {
        let pointers = fields
            .iter()
            .flat_map(|field| STRUCTURED.map(|structured| format!("/{structured}/{field}")));
        let there = |pointer: &String| all().any(|result| result.pointer(pointer).is_some());
        if let Some(pointer) = pointers.into_iter().find(there) {
            found.insert((*observation).to_owned(), Observation::Pointer(pointer));
        }
    }
    found
}

/// Where the answer stands: a text that is it, else one that has it inside.
fn saying(success: &Value) -> Option<Observation> {
    let mut texts = Vec::new();
    for structured in structured(success) {
        if let Some(value) = success.pointer(structured) {
            walk(value, structured, &mut texts);
        }
    }
    let is = |(_, value): &&(String, &Value)| value.as_str() == Some(ANSWER);
    if let Some((pointer, _)) = texts.iter().find(is) {
        return Some(Observation::Pointer(pointer.clone()));
    }
    let text = extract::text(success);
    if text == ANSWER {
        return Some(Observation::Pointer("text".to_owned()));
    }
    let (pointer, text) = if text.contains(ANSWER) {
        ("text".to_owned(), text)
    } else {
        let has = |(_, value): &&(String, &Value)| {
            value.as_str().is_some_and(|text| text.contains(ANSWER))
        };
        let (pointer, value) = texts.iter().find(has)?;
        (pointer.clone(), value.as_str()?.to_owned())
    };
    let (before, after) = text.split_once(ANSWER)?;
    let pattern = format!("(?s)^{}(.*){}$", around(before), around(after));
    Some(Observation::Rule(Box::new(Rule {
        pointer: Some(pointer),
        pattern: Some(pattern),
        ..Rule::default()
    })))
}

/// Words around the answer as a pattern: numbers in them are of this one run.
fn around(words: &str) -> String {
    let mut pattern = String::new();
    let mut number = false;
    for c in words.chars() {
        if c.is_ascii_digit() {
            if !number {
                pattern.push_str("[0-9]+");
            }
        } else {
            pattern.push_str(&regex::escape(&c.to_string()));
        }
        number = c.is_ascii_digit();
    }
    pattern
}

/// What tells a success from failures: a boolean that turns, MCP's own mark, a word that changes.
fn telling(success: &Value, failures: &[&Value]) -> Option<Observation> {
    if failures.is_empty() {
        return None;
    }
    let mut fields = Vec::new();
    for structured in structured(success) {
        if let Some(value) = success.pointer(structured) {
            walk(value, structured, &mut fields);
        }
    }
    let turns = |pointer: &str, from: bool| {
        success.pointer(pointer) == Some(&Value::Bool(from))
            && failures
                .iter()
                .all(|failure| failure.pointer(pointer) == Some(&Value::Bool(!from)))
    };
    for (pointer, _) in &fields {
        if turns(pointer, true) {
            return Some(Observation::Pointer(pointer.clone()));
        }
        if turns(pointer, false) {
            return Some(Observation::Rule(Box::new(inverted(pointer))));
        }
    }
    let marked = |result: &Value| result.get("isError") == Some(&Value::Bool(true));
    if !marked(success) && failures.iter().any(|failure| marked(failure)) {
        return Some(by_mark());
    }
    fields.iter().find_map(|(pointer, value)| {
        let word = value.as_str().filter(|word| *word != ANSWER)?;
        let differs = |failure: &&Value| {
            let other = failure.pointer(pointer).and_then(Value::as_str);
            other.is_some_and(|other| other != word)
        };
        // A word, not a sentence, and not an id.
        let plain = word.len() < 30
            && word
                .chars()
                .all(|c| c.is_ascii_alphabetic() || c == '-' || c == '_');
        (plain && failures.iter().all(differs)).then(|| {
            let map = IndexMap::from([
                (word.to_owned(), Value::Bool(true)),
                ("*".to_owned(), Value::Bool(false)),
            ]);
            Observation::Rule(Box::new(Rule {
                pointer: Some(pointer.clone()),
                map,
                ..Rule::default()
            }))
        })
    })
}

/// `ok` by MCP's own mark. It may be left out where it is false; then there is a result all the same.
pub fn by_mark() -> Observation {
    let else_ok = Rule {
        pointer: Some("/content".to_owned()),
        value: Some(Value::Bool(true)),
        ..Rule::default()
    };
    Observation::Rules(vec![inverted("/isError"), else_ok])
}

fn inverted(pointer: &str) -> Rule {
    Rule {
        pointer: Some(pointer.to_owned()),
        not: true,
        ..Rule::default()
    }
}

/// Every value below, with its JSON pointer.
fn walk<'v>(value: &'v Value, at: &str, found: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                walk(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(value, &format!("{at}/{index}"), found);
            }
        }
        leaf => found.push((at.to_owned(), leaf)),
    }
}

/// An observation as one writes it in an adapter file, without its name.
pub fn written(observation: &Observation) -> String {
    match observation {
        Observation::Pointer(pointer) => pointer.clone(),
        Observation::Rule(rule) => written_rule(rule),
        Observation::Rules(rules) => {
            let rules: Vec<String> = rules.iter().map(written_rule).collect();
            format!("[{}]", rules.join(", "))
        }
    }
}

fn written_rule(rule: &Rule) -> String {
    let mut keys = Vec::new();
    if let Some(pointer) = &rule.pointer {
        keys.push(format!("pointer: {pointer}"));
    }
    if let Some(pattern) = &rule.pattern {
        keys.push(format!("pattern: {}", Value::from(pattern.as_str())));
    }
    if let Some(value) = &rule.value {
        keys.push(format!("value: {value}"));
    }
    if !rule.map.is_empty() {
        let map = rule.map.iter();
        let map: Vec<String> = map
            .map(|(word, value)| format!("{}: {value}", Value::from(word.as_str())))
            .collect();
        keys.push(format!("map: {{{}}}", map.join(", ")));
    }
    if rule.not {
        keys.push("not: true".to_owned());
    }
    format!("{{{}}}", keys.join(", "))
}

/// Nothing can be said about observations without a result.
fn no_result(seen: &Seen<'_>) -> Option<Outcome> {
    let reached = seen
        .world
        .launches
        .iter()
        .any(|launch| launch.name.is_some());
    if seen.result(SUCCESS).is_none() {
        return Some(Outcome::Open(format!(
            "the call that should be a success has no result: {}",
            seen.told(SUCCESS)
        )));
    }
    (!reached && seen.adapter_has_processes())
        .then(|| Outcome::Open("the child never started".to_owned()))
}

/// The observation `answer` finds what the child said.
pub fn answer(seen: &Seen<'_>) -> Outcome {
    if let Some(open) = no_result(seen) {
        return open;
    }
    let Some(result) = seen.result(SUCCESS) else {
        return Outcome::Open("there is no result".to_owned());
    };
    let declared = seen.adapter.observations.contains_key("answer");
    let found = extract::observation(seen.adapter, "answer", result);
    if found.as_ref().and_then(Value::as_str) == Some(ANSWER) {
        return Outcome::Right(format!("`{ANSWER}`"));
    }
    let there = saying(result);
    let message = match (&found, declared) {
        (None, false) => "`observations` has no `answer`".to_owned(),
        (None, true) => format!(
            "observation `answer`: {} is in no result",
            place(seen, "answer")
        ),
        (Some(found), _) => format!(
            "observation `answer`: {} has {}, and the child said `{ANSWER}`",
            place(seen, "answer"),
            show(found)
        ),
    };
    match there {
        Some(there) => {
            vec![Fault::new(message).help(format!("write `answer: {}`", written(&there)))].into()
        }
        // Nothing that an adapter could name: then it is the delegator that lost it, unless the adapter looks at nothing at all.
        None if declared && found.is_some() => Outcome::Open(format!(
            "the answer is nowhere in the delegator's result, which `pi-conform run` will tell: {}",
            short(&result.to_string())
        )),
        None => {
            vec![Fault::new(message).help(format!("the result is {}", short(&result.to_string())))]
                .into()
        }
    }
}

/// How an observation says where it looks.
fn place(seen: &Seen<'_>, name: &str) -> String {
    match seen.adapter.observations.get(name) {
        Some(observation) => format!("`{}`", short(&written(observation))),
        None => "nothing".to_owned(),
    }
}

/// The observation `ok` tells success from failure.
pub fn ok(seen: &Seen<'_>) -> Outcome {
    if let Some(open) = no_result(seen) {
        return open;
    }
    let Some(success) = seen.result(SUCCESS) else {
        return Outcome::Open("there is no result".to_owned());
    };
    let results: Vec<&Value> = seen.failures().collect();
    let there = telling(success, &results).or_else(|| {
        // One of the failures may count as a success for the delegator; that is its fault, not the adapter's.
        results
            .iter()
            .find_map(|failure| telling(success, &[failure]))
    });
    let wrong = |message: String| {
        let fault = Fault::new(message);
        Outcome::Wrong(vec![match &there {
            Some(there) => fault.help(format!("write `ok: {}`", written(there))),
            None => fault,
        }])
    };
    if !seen.adapter.observations.contains_key("ok") {
        return wrong("`observations` has no `ok`".to_owned());
    }
    let ok = |result: &Value| extract::observation(seen.adapter, "ok", result);
    let place = place(seen, "ok");
    match ok(success) {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => {
            return wrong(format!("observation `ok`: {place} is false for a success"));
        }
        Some(other) => {
            return wrong(format!(
                "observation `ok`: {place} is {}, and must be true or false",
                show(&other)
            ));
        }
        None => {
            return wrong(format!(
                "observation `ok`: {place} is in no result of a success"
            ));
        }
    }
    let settled = FAILURES.iter().filter(|call| {
        let call = seen.world.calls.get(**call);
        call.is_some_and(|call| !call.responses.is_empty())
    });
    let mut taken: Vec<&str> = Vec::new();
    let mut told = 0;
    for call in settled {
        match seen.result(call).map(ok) {
            // A protocol error is no success either.
            None | Some(Some(Value::Bool(false))) => told += 1,
            Some(None) => {
                return wrong(format!(
                    "observation `ok`: {place} is in no result of a failure"
                ));
            }
            Some(Some(_)) => taken.push(call),
        }
    }
    match (told, &taken[..]) {
        (0, []) => Outcome::Open("no call failed".to_owned()),
        (0, _) if there.is_some() => {
            wrong(format!("observation `ok`: {place} is true for failures too"))
        }
        (0, _) => Outcome::Open(
            "the delegator's result of a child that died looks like that of a success, which `pi-conform run` will tell"
                .to_owned(),
        ),
        (_, []) => Outcome::Right("true for the success, false for the failures".to_owned()),
        (_, _) => Outcome::Right(
            "true for the success, false for a failure; the delegator takes another failure for a success, which `pi-conform run` will tell"
                .to_owned(),
        ),
    }
}

/// Every other observation finds something, in one result or another.
pub fn others(seen: &Seen<'_>) -> Outcome {
    if let Some(open) = no_result(seen) {
        return open;
    }
    let results: Vec<&Value> = seen
        .result(SUCCESS)
        .into_iter()
        .chain(seen.failures())
        .collect();
    let declared = &seen.adapter.observations;
    let mapped: Vec<&str> = declared
        .values()
        .filter_map(|observation| match observation {
            Observation::Pointer(pointer) => Some(pointer.as_str()),
            _ => None,
        })
        .collect();
    let mut faults = Vec::new();
    let mut unseen = Vec::new();
    let mut found = 0;
    for (name, observation) in declared {
        if name == "ok" || name == "answer" {
            continue;
        }
        let any = |result: &&Value| extract::observation(seen.adapter, name, result).is_some();
        let pointer = match observation {
            Observation::Pointer(pointer) => Some(pointer.as_str()),
            Observation::Rule(rule) => rule.pointer.as_deref(),
            Observation::Rules(_) => None,
        };
        let null =
            |result: &&Value| pointer.is_some_and(|pointer| result.pointer(pointer).is_some());
        if results.iter().any(any) || results.iter().any(null) {
            found += 1;
            continue;
        }
        match pointer.and_then(|pointer| neighbour(pointer, &results, &mapped)) {
            Some(right) => {
                let message = format!(
                    "observation `{name}`: {} is in no result",
                    place(seen, name)
                );
                faults.push(Fault::new(message).help(format!("nearest is `{right}`")));
            }
            None => unseen.push(name.as_str()),
        }
    }
    let seen_words = match unseen[..] {
        [] => format!("{found} found"),
        _ => format!("{found} found; not in these calls: {}", unseen.join(", ")),
    };
    match (faults.is_empty(), found + unseen.len()) {
        (false, _) => faults.into(),
        (true, 0) => Outcome::Open("no others are mapped".to_owned()),
        (true, _) => Outcome::Right(seen_words),
    }
}

/// The pointer that was probably meant: a field beside it that nothing else is mapped to, and that looks like it.
fn neighbour(pointer: &str, results: &[&Value], mapped: &[&str]) -> Option<String> {
    let (parent, field) = pointer.rsplit_once('/')?;
    let beside = results
        .iter()
        .filter_map(|result| result.pointer(parent)?.as_object())
        .flat_map(|map| map.keys())
        .map(String::as_str)
        .filter(|key| !mapped.contains(&format!("{parent}/{key}").as_str()));
    yaml::nearest(field, beside).map(|right| format!("{parent}/{right}"))
}
