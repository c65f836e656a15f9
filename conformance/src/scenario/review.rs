//! What is wrong with a scenario as a whole although each word of it means something: parts that nothing uses, waits
//! that nothing ends, promises that no check can show.

use std::collections::BTreeSet;

use fake_pi::act::Child;
use serde_json::Value;

use super::load::Loaded;
use super::{Check, Scenario, Step};
use crate::check::INVARIANTS;
use crate::check::words::nearest;
use crate::yaml::YamlError;

/// Everything that is wrong with the parts of a scenario taken together, each with its place in the file.
pub fn review(loaded: &Loaded) -> Vec<YamlError> {
    let scenario = &loaded.scenario;
    let mut problems = children(loaded, scenario);
    problems.extend(barriers(loaded, scenario));
    problems.extend(claims(loaded, scenario));
    problems
}

/// Children that no step can start.
fn children(loaded: &Loaded, scenario: &Scenario) -> Vec<YamlError> {
    let steps = flat(&scenario.steps);
    let calls: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Spawn(spawn) | Step::Call(spawn) => Some(spawn),
            _ => None,
        })
        .collect();
    let raw = steps.iter().any(|step| matches!(step, Step::Request(_)));
    // With one child every start plays it, whatever its call names.
    let lonely = scenario.children.len() == 1 && (raw || calls.iter().any(|c| c.child.is_none()));
    let texts = serde_json::to_string(&scenario.steps).unwrap_or_default();
    let idle = scenario.children.iter().filter(|(name, child)| {
        let called = calls.iter().any(|call| call.child.as_ref() == Some(name));
        // Its own mark, or the usual one in a text, picks it without a call that names it.
        let marked = matches!(child, Child::Full(full) if full.when.is_some())
            || texts.contains(&format!("kit-child-{name}"));
        !called && !marked && !lonely
    });
    idle.map(|(name, _)| {
        let near = calls
            .iter()
            .filter_map(|call| call.child.as_deref())
            .filter(|child| !scenario.children.contains_key(*child));
        let near = nearest(name, near).map(|near| format!("a step starts `{near}`"));
        let help = near
            .unwrap_or_else(|| format!("start it with `call: {{child: {name}}}`, or take it out"));
        let message = format!("no step starts the child `{name}`");
        loaded.wrong(&["children"], Some(name), message, Some(help))
    })
    .collect()
}

/// Barriers that are opened for nobody, or waited at for ever.
fn barriers(loaded: &Loaded, scenario: &Scenario) -> Vec<YamlError> {
    let opened: BTreeSet<String> = flat(&scenario.steps)
        .into_iter()
        .filter_map(|step| match step {
            Step::Open(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    let mut waited = BTreeSet::new();
    let acts = serde_json::to_value(&scenario.children).unwrap_or_default();
    barriers_of(&acts, &mut waited);
    let fits = |name: &String, others: &BTreeSet<String>| {
        // A name with a round in it is told by what stands around that.
        let around = |text: &str| text.split("{{").next().unwrap_or_default().to_owned();
        others.contains(name)
            || others
                .iter()
                .any(|other| other.contains("{{") && name.starts_with(&around(other)))
            || name.contains("{{") && others.iter().any(|o| o.starts_with(&around(name)))
    };
    let help = |name: &str, others: &BTreeSet<String>| {
        nearest(name, others.iter().map(String::as_str)).map(|n| format!("did you mean `{n}`?"))
    };
    let idle = opened
        .iter()
        .filter(|name| !fits(name, &waited))
        .map(|name| {
            let message = format!("no act waits at the barrier `{name}`");
            loaded.wrong(&["steps", "open"], Some(name), message, help(name, &waited))
        });
    let endless = waited
        .iter()
        .filter(|name| !fits(name, &opened))
        .map(|name| {
            let message = format!("no step opens the barrier `{name}`");
            loaded.wrong(&["barrier"], Some(name), message, help(name, &opened))
        });
    idle.chain(endless).collect()
}

fn barriers_of(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map.get("barrier").and_then(Value::as_str) {
                found.insert(name.to_owned());
            }
            map.values().for_each(|value| barriers_of(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| barriers_of(item, found)),
        _ => {}
    }
}

/// Requirements that the scenario claims, but of which no check can say that they are broken.
fn claims(loaded: &Loaded, scenario: &Scenario) -> Vec<YamlError> {
    let mut problems = Vec::new();
    for (index, check) in scenario.checks.iter().enumerate() {
        if let Some(why) = cannot_fail(check) {
            let message = format!("checks[{index}] can never fail: {why}");
            let item = format!("[{index}]");
            problems.push(loaded.wrong(&["checks", &item], None, message, None));
        }
    }
    let able = || scenario.checks.iter().filter(|c| cannot_fail(c).is_none());
    let invariants = INVARIANTS.iter().flat_map(|it| it.proves.iter().copied());
    let own = able().flat_map(|check| check.proves.iter().map(String::as_str));
    let shown: BTreeSet<&str> = invariants.chain(own).collect();
    // A check without ids of its own stands for all of the scenario's.
    let inherits = able().any(|check| check.proves.is_empty());
    let idle = scenario
        .proves
        .iter()
        .filter(|id| !inherits && !shown.contains(id.as_str()));
    problems.extend(idle.map(|id| {
        let message = format!("no check that can fail shows `{id}`");
        let help = "each check names other requirements; add it to one of them, or take it out";
        loaded.wrong(&["proves"], Some(id), message, Some(help.to_owned()))
    }));
    problems
}

/// Why a check holds whatever is seen, if it does.
fn cannot_fail(check: &Check) -> Option<&'static str> {
    let (_, expect) = check.expect.iter().next()?;
    let matchers = expect.0.as_object()?;
    let mut why = None;
    for (matcher, value) in matchers {
        let this = match (matcher.as_str(), value) {
            ("at-least", value) if value.as_f64() == Some(0.0) => "nothing is less than zero",
            ("contains" | "matches", Value::String(text)) if text.is_empty() => {
                "every text contains the empty one"
            }
            ("one-of", _) | ("any", _) => return None,
            _ => return None,
        };
        why = Some(this);
    }
    why
}

/// All steps, those of a `repeat` among them.
fn flat(steps: &[Step]) -> Vec<&Step> {
    steps
        .iter()
        .flat_map(|step| match step {
            Step::Repeat(repeat) => flat(&repeat.steps),
            step => vec![step],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    const GOOD: &str = "scenario: s
proves: [drain.clean-exit]
why: w
children:
  a:
    - wait: {barrier: go}
    - answer: x
  b: [{answer: z}]
steps:
  - spawn: {child: a}
  - open: go
  - call: {child: b, as: second}
checks:
  - call.ok: true
";

    fn told(text: &str) -> Vec<String> {
        let loaded = parse("scenarios/area/s.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        review(&loaded).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn parts_that_nothing_uses_are_told_with_their_place() {
        assert_eq!(told(GOOD), Vec::<String>::new());
        for (from, to, expected) in [
            (
                "child: b",
                "child: a",
                "scenarios/area/s.yaml:8:3: no step starts the child `b`",
            ),
            (
                "  - open: go\n",
                "",
                "scenarios/area/s.yaml:6:23: no step opens the barrier `go`",
            ),
            (
                "    - wait: {barrier: go}\n",
                "",
                "scenarios/area/s.yaml:10:11: no act waits at the barrier `go`",
            ),
            (
                "- call.ok: true",
                "- {proves: [drain.no-zombies], call.ok: true}",
                "scenarios/area/s.yaml:2:10: no check that can fail shows `drain.clean-exit`",
            ),
            (
                "- call.ok: true",
                "- call.ok: true\n  - a.launches: {at-least: 0}",
                "scenarios/area/s.yaml:15:3: checks[1] can never fail: nothing is less than zero",
            ),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            assert_eq!(told(&text), [expected], "{to}");
        }
    }

    #[test]
    fn a_child_may_be_picked_by_a_mark() {
        let marked = GOOD.replace(
            "  b: [{answer: z}]",
            "  b: {when: {argv: --fast}, acts: [{answer: z}]}",
        );
        assert_eq!(
            told(&marked.replace("child: b", "child: a")),
            Vec::<String>::new()
        );
        let text = GOOD.replace("child: b,", "child: a, task: kit-child-b,");
        assert_eq!(told(&text), Vec::<String>::new());
    }

    #[test]
    fn the_bundled_scenarios_have_no_idle_part() {
        let loaded = crate::scenario::embedded().unwrap_or_else(|error| panic!("{error}"));
        let problems: Vec<String> = loaded
            .iter()
            .flat_map(review)
            .map(|problem| problem.to_string())
            .collect();
        assert_eq!(problems, Vec::<String>::new());
    }
}
