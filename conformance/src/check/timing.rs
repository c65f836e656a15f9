//! When something must happen: `{after: FACT, within: TIME, not-before: TIME}`, `{before: FACT}`.
//!
//! Order first: `after` or `before` alone compare two facts and need no clock. An upper bound that is missed while the machine
//! stalled for at least as long as it was missed by says nothing about the subject: *inconclusive*.

use serde_json::Value;

use crate::check::expr::{Scope, Unit};
use crate::check::facts::{self, Fact, Found, Moment};
use crate::check::paths::{Names, Path, Root, parse_other};
use crate::check::sight::Witness;
use crate::check::words::show;
use crate::check::world::World;
use crate::verdict::Verdict;

/// Two clocks' worth of rounding that no lower bound is held to, in nanoseconds.
const ROUNDING: f64 = 1e6;

/// A verdict with what was seen.
pub type Judged = (Verdict, Witness, String);

/// Judges every fact that the left side names.
pub fn judge(world: &World<'_>, scope: &Scope, path: &Path, expect: &Value) -> Vec<Judged> {
    facts::find(world, path, facts::Who::One)
        .into_iter()
        .map(|found| {
            let (verdict, seen) = one(world, scope, &found, expect);
            (verdict, found.witness, seen)
        })
        .collect()
}

fn one(world: &World<'_>, scope: &Scope, left: &Found, expect: &Value) -> (Verdict, String) {
    let when = match &left.fact {
        Fact::Unknown(why) => return (Verdict::NoEvidence, why.clone()),
        Fact::At(moment) => Ok(*moment),
        Fact::Never(why) => Err(why.clone()),
    };
    let mut seen = Vec::new();
    let mut worst = Verdict::Pass;
    let mut note = |verdict: Verdict, what: String| {
        worst = worst.max(verdict);
        if !seen.contains(&what) {
            seen.push(what);
        }
    };
    let reference = expect
        .get("after")
        .and_then(Value::as_str)
        .map(|text| reference(world, left, text));
    if let Some(after) = &reference {
        match (after, &when) {
            (Err(why), _) => note(Verdict::NoEvidence, why.clone()),
            (Ok(_), Err(never)) => note(Verdict::Fail, never.clone()),
            (Ok(after), Ok(when)) => {
                let (verdict, what) = bounds(world, scope, left, *when, after, expect);
                note(verdict, what);
            }
        }
    }
    if let Some(text) = expect.get("before").and_then(Value::as_str) {
        match (self::reference(world, left, text), &when) {
            (Err(why), _) => note(Verdict::NoEvidence, why),
            (Ok(_), Err(never)) => note(Verdict::Fail, never.clone()),
            (Ok((label, before)), Ok(when)) => {
                let held = when.from <= before.to;
                let what = format!("{} {} {label}", left.label, apart(*when, before));
                note(if held { Verdict::Pass } else { Verdict::Fail }, what);
            }
        }
    }
    (worst, seen.join("; "))
}

/// The other fact: its label and time, or why there is none.
fn reference(world: &World<'_>, left: &Found, text: &str) -> Result<(String, Moment), String> {
    let path = parse_other(text, &world.names, left.who != facts::Who::One)
        .map_err(|error| error.to_string())?;
    let found = facts::find(world, &path, left.who).into_iter().next();
    match found {
        Some(Found {
            label,
            fact: Fact::At(moment),
            ..
        }) => Ok((label, moment)),
        Some(Found {
            fact: Fact::Never(why) | Fact::Unknown(why),
            ..
        }) => Err(why),
        None => Err(format!("`{text}` is no fact with a time")),
    }
}

fn bounds(
    world: &World<'_>,
    scope: &Scope,
    left: &Found,
    when: Moment,
    after: &(String, Moment),
    expect: &Value,
) -> (Verdict, String) {
    let (label, after) = after;
    let what = format!("{} {} {label}", left.label, apart(when, *after));
    let (within, not_before) = (expect.get("within"), expect.get("not-before"));
    if within.is_none() && not_before.is_none() {
        let held = when.to >= after.from;
        return (if held { Verdict::Pass } else { Verdict::Fail }, what);
    }
    if let Some(bound) = not_before {
        match nanos(scope, bound) {
            Err(why) => return (Verdict::NotApplicable, why),
            Ok(bound) => {
                if (when.to as f64) + ROUNDING < after.from as f64 + bound {
                    return (Verdict::Fail, format!("{what}, which is too early"));
                }
            }
        }
    }
    if let Some(bound) = within {
        match nanos(scope, bound) {
            Err(why) => return (Verdict::NotApplicable, why),
            Ok(bound) => {
                let late = when.from as f64 - after.to as f64 - bound;
                if late > 0.0 {
                    let stalled = world.stalled(after.from, when.to);
                    if stalled as f64 >= late {
                        let stalled = stalled as f64 / 1e6;
                        return (
                            Verdict::Inconclusive,
                            format!("{what}; the machine stalled for {stalled:.0} ms meanwhile"),
                        );
                    }
                    return (
                        Verdict::Fail,
                        format!("{what}, {:.0} ms too late", late / 1e6),
                    );
                }
            }
        }
    }
    (Verdict::Pass, what)
}

/// How far apart two moments are, in words that go between them.
fn apart(when: Moment, other: Moment) -> String {
    let millis = |from: u64, to: u64| (to - from) as f64 / 1e6;
    if when.from >= other.to {
        format!("came {:.1} ms after", millis(other.to, when.from))
    } else if when.to <= other.from {
        format!("came {:.1} ms before", millis(when.to, other.from))
    } else {
        "came at the same time as".to_owned()
    }
}

/// A time of a check in nanoseconds.
fn nanos(scope: &Scope, bound: &Value) -> Result<f64, String> {
    match bound {
        Value::Number(number) => Ok(number.as_f64().unwrap_or(0.0) * 1e6),
        Value::String(text) => match scope.value(text) {
            Ok(quantity) if quantity.unit == Unit::Bytes => {
                Err(format!("`{text}` is a size, no time"))
            }
            Ok(quantity) => Ok(quantity.amount * 1e6),
            Err(error) => Err(error.to_string()),
        },
        other => Err(format!("{} is no time", show(other))),
    }
}

/// A time check is written so that it can be judged.
pub fn check(expect: &Value, path: &Path, names: &Names, scope: &Scope) -> Result<(), String> {
    let Some(map) = expect.as_object() else {
        return Ok(());
    };
    facts::check(path).map_err(|error| error.to_string())?;
    for (name, argument) in map {
        match (name.as_str(), argument) {
            ("after" | "before", Value::String(text)) => {
                let other =
                    parse_other(text, names, path.each).map_err(|error| error.to_string())?;
                facts::check(&other).map_err(|error| error.to_string())?;
            }
            ("within" | "not-before", Value::Number(_)) => {}
            ("within" | "not-before", Value::String(text)) => {
                scope.check(text).map_err(|error| error.to_string())?
            }
            ("after" | "before" | "within" | "not-before", other) => {
                return Err(format!("`{name}` cannot take {}", show(other)));
            }
            (other, _) => {
                return Err(format!(
                    "`{other}` does not go with times; they take `after`, `before`, `within` and `not-before`"
                ));
            }
        }
    }
    if !map.contains_key("after") && (map.contains_key("within") || map.contains_key("not-before"))
    {
        return Err(
            "`within` and `not-before` need an `after`: a time counts from a fact".to_owned(),
        );
    }
    if matches!(
        path.root,
        Root::Tool | Root::Tools(_) | Root::Whole(_) | Root::Facts
    ) {
        return Err("only calls, children and subjects have times".to_owned());
    }
    Ok(())
}
