//! The right side of a check: what an observation must be.
//!
//! A bare value means *equal* (`none`: empty or absent). A map holds matchers, all of which must hold. In a list, a text counts as
//! contained when an element equals it, or, where the element is more than one word, has it somewhere in it.

use serde_json::Value;

use crate::check::expr::Scope;
use crate::check::sight::{Look, Sight};
use crate::check::words::{nearest, show};

/// Every matcher with what it says.
pub const MATCHERS: [(&str, &str); 20] = [
    ("is", "equals"),
    ("not", "is not"),
    ("contains", "contains"),
    ("lacks", "lacks"),
    ("matches", "matches"),
    ("one-of", "is one of"),
    ("at-most", "is at most"),
    ("at-least", "is at least"),
    ("below", "is below"),
    ("above", "is above"),
    ("count", "has a count that"),
    ("bytes", "has a length in bytes that"),
    ("same-as", "is the same as"),
    ("differs-from", "differs from"),
    ("every", "has only elements each of which"),
    ("any", "has an element that"),
    ("present", "is present"),
    ("absent", "is absent"),
    ("starts-with", "starts with"),
    ("ends-with", "ends with"),
];

/// Matchers of time checks; see [`super::timing`].
pub const TIMES: [&str; 4] = ["after", "before", "within", "not-before"];

/// Whether an expectation is about when something happens.
pub fn is_time(expect: &Value) -> bool {
    expect
        .as_object()
        .is_some_and(|map| TIMES.iter().any(|key| map.contains_key(*key)))
}

/// What holding an expectation against a look gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// As expected.
    Holds,
    /// Not as expected.
    Fails,
    /// There was nothing to judge; why.
    NoEvidence(String),
    /// The adapter does not give what the expectation needs.
    Undeclared(String),
}

/// What matchers need beside the two sides.
pub struct Context<'a> {
    /// Values of names in expressions.
    pub scope: &'a Scope,
    /// Looks up the other observation of `same-as` and `differs-from`.
    pub other: &'a dyn Fn(&str) -> Vec<Sight>,
}

/// Holds an expectation against a look.
pub fn holds(expect: &Value, look: &Look, context: &Context<'_>) -> Outcome {
    let value = match look {
        Look::Nothing(why) => return Outcome::NoEvidence(why.clone()),
        Look::Undeclared(what) => return Outcome::Undeclared(what.clone()),
        Look::Absent => None,
        Look::Is(value) => Some(value),
    };
    against(expect, value, context)
}

fn against(expect: &Value, value: Option<&Value>, context: &Context<'_>) -> Outcome {
    let Value::Object(matchers) = expect else {
        return equal(expect, value, context);
    };
    let mut outcome = Outcome::Holds;
    for (name, argument) in matchers {
        match matcher(name, argument, value, context) {
            Outcome::Holds => {}
            Outcome::Fails => return Outcome::Fails,
            other => outcome = other,
        }
    }
    outcome
}

fn truth(holds: bool) -> Outcome {
    if holds {
        Outcome::Holds
    } else {
        Outcome::Fails
    }
}

fn matcher(name: &str, argument: &Value, value: Option<&Value>, context: &Context<'_>) -> Outcome {
    match name {
        "is" => equal(argument, value, context),
        "not" => match against(argument, value, context) {
            Outcome::Holds => Outcome::Fails,
            Outcome::Fails => Outcome::Holds,
            other => other,
        },
        "present" => truth(value.is_some() == (argument != &Value::Bool(false))),
        "absent" => truth(value.is_none() == (argument != &Value::Bool(false))),
        "contains" => {
            truth(value.is_some_and(|value| all_of(argument, |wanted| contains(value, wanted))))
        }
        "lacks" => {
            truth(value.is_none_or(|value| all_of(argument, |wanted| !contains(value, wanted))))
        }
        "one-of" => {
            let choices = argument
                .as_array()
                .map_or(std::slice::from_ref(argument), Vec::as_slice);
            let mut outcome = Outcome::Fails;
            for choice in choices {
                match equal(choice, value, context) {
                    Outcome::Holds => return Outcome::Holds,
                    Outcome::Fails => {}
                    other => outcome = other,
                }
            }
            outcome
        }
        "matches" => match regex::Regex::new(argument.as_str().unwrap_or_default()) {
            Ok(pattern) => {
                truth(value.is_some_and(|value| some_text(value, |text| pattern.is_match(text))))
            }
            Err(error) => Outcome::NoEvidence(format!("the pattern does not compile: {error}")),
        },
        "starts-with" | "ends-with" => {
            let wanted = argument.as_str().unwrap_or_default();
            let fits = |text: &str| {
                if name == "starts-with" {
                    text.starts_with(wanted)
                } else {
                    text.ends_with(wanted)
                }
            };
            truth(value.and_then(Value::as_str).is_some_and(fits))
        }
        "at-most" | "at-least" | "below" | "above" => compare(name, argument, value, context),
        "count" => {
            let count = match value {
                None => 0,
                Some(Value::Array(items)) => items.len(),
                Some(Value::Object(map)) => map.len(),
                Some(_) => return Outcome::Fails,
            };
            against(argument, Some(&count.into()), context)
        }
        "bytes" => match value.and_then(Value::as_str) {
            Some(text) => against(argument, Some(&text.len().into()), context),
            None => Outcome::Fails,
        },
        "every" | "any" => elements(name, argument, value, context),
        "same-as" | "differs-from" => other(name, argument, value, context),
        _ => Outcome::NoEvidence(format!("there is no matcher `{name}`")),
    }
}

fn is_none_word(expect: &Value) -> bool {
    expect.is_null() || expect == "none"
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty() || text == "none",
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}

fn equal(expect: &Value, value: Option<&Value>, context: &Context<'_>) -> Outcome {
    if is_none_word(expect) {
        return truth(is_empty(value));
    }
    let Some(value) = value else {
        return Outcome::Fails;
    };
    if let (Value::String(text), Value::Number(_)) = (expect, value) {
        return compare("equal", &Value::String(text.clone()), Some(value), context);
    }
    truth(same(expect, value))
}

/// Deep equality, in which `1` and `1.0` are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn all_of(argument: &Value, mut holds: impl FnMut(&Value) -> bool) -> bool {
    match argument {
        Value::Array(all) => all.iter().all(holds),
        one => holds(one),
    }
}

/// One word: what is compared whole when it stands in a list.
fn is_word(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+".contains(c);
    text.chars().all(inside)
}

fn contains(value: &Value, wanted: &Value) -> bool {
    match value {
        Value::String(text) => match wanted {
            Value::String(wanted) => text.contains(wanted.as_str()),
            other => text.contains(&other.to_string()),
        },
        Value::Array(items) => items.iter().any(|item| match (item, wanted) {
            (Value::String(item), Value::String(wanted)) if !is_word(item) => {
                item.contains(wanted.as_str())
            }
            _ => same(item, wanted),
        }),
        Value::Object(map) => match wanted {
            Value::String(key) => map.contains_key(key),
            Value::Object(part) => part
                .iter()
                .all(|(key, part)| map.get(key).is_some_and(|its| same(its, part))),
            _ => false,
        },
        other => same(other, wanted),
    }
}

fn some_text(value: &Value, mut fits: impl FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => fits(text),
        Value::Array(items) => items
            .iter()
            .any(|item| item.as_str().is_some_and(&mut fits)),
        other => fits(&other.to_string()),
    }
}

/// Numbers as they are; of a text its bytes count, of a list its elements.
fn amount(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => Some(text.len() as f64),
        Value::Array(items) => Some(items.len() as f64),
        _ => None,
    }
}

fn compare(name: &str, argument: &Value, value: Option<&Value>, context: &Context<'_>) -> Outcome {
    let bound = match argument {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::String(text) => match context.scope.value(text) {
            Ok(quantity) => quantity.amount,
            Err(error) => match observed(text, context) {
                Some(Ok(bound)) => bound,
                Some(Err(why)) => return Outcome::NoEvidence(why),
                None => return Outcome::Undeclared(error.to_string()),
            },
        },
        _ => return Outcome::NoEvidence(format!("{} is no number", show(argument))),
    };
    let Some(amount) = value.and_then(amount) else {
        return Outcome::Fails;
    };
    truth(match name {
        "at-most" => amount <= bound,
        "at-least" => amount >= bound,
        "below" => amount < bound,
        "above" => amount > bound,
        _ => amount == bound,
    })
}

/// The number of another observation, if the text is one.
fn observed(text: &str, context: &Context<'_>) -> Option<Result<f64, String>> {
    if !text.contains('.') || text.contains(char::is_whitespace) {
        return None;
    }
    let sight = (context.other)(text).into_iter().next()?;
    Some(match &sight.look {
        Look::Is(value) => amount(value).ok_or_else(|| format!("`{text}` is no number")),
        Look::Absent => Err(format!("`{text}` is absent")),
        Look::Nothing(why) | Look::Undeclared(why) => Err(why.clone()),
    })
}

/// `every` says nothing over an empty list, so it does not hold there.
fn elements(name: &str, argument: &Value, value: Option<&Value>, context: &Context<'_>) -> Outcome {
    let items: Vec<&Value> = match value {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(Value::Object(map)) => map.values().collect(),
        Some(_) => return Outcome::Fails,
        None => Vec::new(),
    };
    if items.is_empty() && name == "every" {
        return Outcome::NoEvidence("the list is empty".to_owned());
    }
    let outcomes = items
        .into_iter()
        .map(|item| against(argument, Some(item), context));
    let (mut held, mut failed) = (false, false);
    for outcome in outcomes {
        match outcome {
            Outcome::Holds => held = true,
            Outcome::Fails => failed = true,
            other => return other,
        }
    }
    truth(if name == "every" { !failed } else { held })
}

fn other(name: &str, argument: &Value, value: Option<&Value>, context: &Context<'_>) -> Outcome {
    let path = argument.as_str().unwrap_or_default();
    let Some(sight) = (context.other)(path).into_iter().next() else {
        return Outcome::NoEvidence(format!("`{path}` was not seen"));
    };
    let there = match &sight.look {
        Look::Nothing(why) => return Outcome::NoEvidence(why.clone()),
        Look::Undeclared(what) => return Outcome::Undeclared(what.clone()),
        Look::Absent => None,
        Look::Is(value) => Some(value),
    };
    match (value, there, name) {
        (None, None, _) => {
            Outcome::NoEvidence(format!("neither side has it; `{path}` is absent too"))
        }
        (Some(a), Some(b), "same-as") => truth(same(a, b)),
        (Some(a), Some(b), _) => truth(!same(a, b)),
        (_, _, "same-as") => Outcome::Fails,
        _ => Outcome::Holds,
    }
}

/// An expectation in words, to stand after the observation's name.
pub fn describe(expect: &Value) -> String {
    match expect {
        expect if is_none_word(expect) => "is none".to_owned(),
        Value::Object(map) => map
            .iter()
            .map(|(name, argument)| clause(name, argument))
            .collect::<Vec<_>>()
            .join(" and "),
        value => format!("is {}", show(value)),
    }
}

fn clause(name: &str, argument: &Value) -> String {
    let says = MATCHERS
        .iter()
        .find(|(its, _)| *its == name)
        .map_or(name, |(_, says)| says);
    match name {
        "count" | "bytes" | "every" | "any" => format!("{says} {}", describe(argument)),
        "not" if argument.is_object() => format!("is not such that it {}", describe(argument)),
        "present" | "absent" if argument == &Value::Bool(true) => says.to_owned(),
        "present" | "absent" => format!("is not {name}"),
        "after" | "before" | "same-as" | "differs-from" | "within" | "not-before" => {
            format!(
                "{says} {}",
                argument
                    .as_str()
                    .map_or_else(|| argument.to_string(), str::to_owned)
            )
        }
        "at-most" | "at-least" | "below" | "above" => {
            format!(
                "{says} {}",
                argument
                    .as_str()
                    .map_or_else(|| argument.to_string(), str::to_owned)
            )
        }
        _ => format!("{says} {}", show(argument)),
    }
}

/// An expectation is written with matchers that exist and arguments that they can take.
///
/// `expression` looks over a number, size or time; `observation` an observation path.
pub fn check(
    expect: &Value,
    expression: &dyn Fn(&str) -> Result<(), String>,
    observation: &dyn Fn(&str) -> Result<(), String>,
) -> Result<(), String> {
    let Value::Object(map) = expect else {
        return Ok(());
    };
    if map.is_empty() {
        return Err("an empty map expects nothing".to_owned());
    }
    for (name, argument) in map {
        check_one(name, argument, expression, observation)?;
    }
    Ok(())
}

fn check_one(
    name: &str,
    argument: &Value,
    expression: &dyn Fn(&str) -> Result<(), String>,
    observation: &dyn Fn(&str) -> Result<(), String>,
) -> Result<(), String> {
    let known = || MATCHERS.iter().map(|(name, _)| *name);
    match (name, argument) {
        ("not" | "every" | "any" | "count" | "bytes", nested) => {
            check(nested, expression, observation)
        }
        ("at-most" | "at-least" | "below" | "above", Value::String(text)) => {
            let is_path = text.contains('.') && !text.contains(char::is_whitespace);
            expression(text).or_else(|error| {
                if is_path {
                    observation(text)
                } else {
                    Err(error)
                }
            })
        }
        ("at-most" | "at-least" | "below" | "above", Value::Number(_)) => Ok(()),
        ("at-most" | "at-least" | "below" | "above", other) => Err(format!(
            "`{name}` needs a number, size or time, not {}",
            show(other)
        )),
        ("same-as" | "differs-from", Value::String(path)) => observation(path),
        ("same-as" | "differs-from", other) => Err(format!(
            "`{name}` needs an observation, not {}",
            show(other)
        )),
        ("matches", Value::String(pattern)) => regex::Regex::new(pattern)
            .map(drop)
            .map_err(|error| format!("`matches` has a bad pattern: {error}")),
        ("matches", other) => Err(format!("`matches` needs a pattern, not {}", show(other))),
        ("present" | "absent", Value::Bool(_)) => Ok(()),
        ("present" | "absent", other) => Err(format!(
            "`{name}` needs `true` or `false`, not {}",
            show(other)
        )),
        (name, _) if known().any(|its| its == name) => Ok(()),
        (name, _) if TIMES.contains(&name) => Err(format!(
            "`{name}` is a matcher of time and does not stand inside another"
        )),
        (name, _) => {
            let near = nearest(name, known().chain(TIMES))
                .map_or(String::new(), |word| format!("; nearest is `{word}`"));
            Err(format!("there is no matcher `{name}`{near}"))
        }
    }
}
