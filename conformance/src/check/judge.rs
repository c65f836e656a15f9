//! From evidence to a scenario's verdict.

use serde_json::Value;

use crate::adapter::Adapter;
use crate::check::applies::{declares, inapplicable, out_of_sight};
use crate::check::expr::Scope;
use crate::check::matcher::{self, Context, Outcome};
use crate::check::paths::{Names, Path, Root, parse_other};
use crate::check::sight::{Look, Sight, Witness};
use crate::check::words::show;
use crate::check::world::World;
use crate::check::{calls, children, handshake, invariants, kind, timing, tools, whole};
use crate::evidence::{Evidence, What};
use crate::scenario::{Check, Expect, Scenario};
use crate::verdict::{CheckVerdict, ScenarioVerdict, Verdict};

/// Judges the evidence of one scenario: its own checks, then the invariants that hold in every scenario.
pub fn judge(evidence: &Evidence) -> ScenarioVerdict {
    let header = &evidence.header;
    let (scenario, adapter) = (&header.scenario, &header.adapter);
    let mut verdict = ScenarioVerdict {
        name: header.name.clone(),
        area: header.area.clone(),
        verdict: Verdict::Pass,
        checks: Vec::new(),
    };
    if let Some(why) = inapplicable(scenario, adapter) {
        let checks = scenario.checks.iter().enumerate();
        verdict.checks = checks
            .map(|(index, check)| CheckVerdict {
                id: id(index, check),
                proves: proves(check, scenario),
                verdict: Verdict::NotApplicable,
                expected: expected(check),
                seen: why.clone(),
                kind: None,
            })
            .collect();
        verdict.verdict = Verdict::NotApplicable;
        return verdict;
    }
    let world = World::of(evidence);
    let scope = Scope::of(adapter, scenario);
    let harness = evidence
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::HarnessError { message } => Some(CheckVerdict {
                id: "harness".to_owned(),
                proves: Vec::new(),
                verdict: Verdict::HarnessError,
                expected: "the harness can do what the scenario asks for".to_owned(),
                seen: format!("runner: {message}"),
                kind: None,
            }),
            _ => None,
        });
    verdict.checks.extend(harness);
    let started = |what: &What| matches!(what, What::SubjectStarted { .. });
    let nothing_ran = !evidence.events.iter().any(|event| started(&event.what));
    let silent = handshake::never_answered(evidence);
    if silent.is_some() || nothing_ran && !verdict.checks.is_empty() {
        // That no check saw anything follows from this, and is not worth a word.
        verdict.checks.extend(silent);
        verdict.verdict = overall(&verdict.checks, 0);
        name_kinds(&mut verdict, &world.names);
        return verdict;
    }
    let judged = scenario.checks.iter().enumerate();
    verdict
        .checks
        .extend(judged.map(|(index, check)| one(&world, &scope, index, check)));
    let own = verdict.checks.len();
    verdict.checks.extend(invariants::judge(&world));
    verdict.verdict = overall(&verdict.checks, own);
    name_kinds(&mut verdict, &world.names);
    verdict
}

fn name_kinds(verdict: &mut ScenarioVerdict, names: &Names) {
    for check in &mut verdict.checks {
        check.kind = (check.verdict == Verdict::Fail)
            .then(|| kind::of(&check.id, names))
            .flatten();
    }
}

/// The ids of a scenario's own checks, in their order.
pub fn ids(scenario: &Scenario) -> Vec<String> {
    let checks = scenario.checks.iter().enumerate();
    checks.map(|(index, check)| id(index, check)).collect()
}

/// The worst check decides; one that is not applicable decides only when no other of the scenario's own was judged.
pub fn overall(checks: &[CheckVerdict], own: usize) -> Verdict {
    let applicable = |check: &&CheckVerdict| check.verdict != Verdict::NotApplicable;
    let worst = checks
        .iter()
        .filter(applicable)
        .map(|check| check.verdict)
        .max();
    let none_of_its_own = own > 0 && !checks.iter().take(own).any(|check| applicable(&check));
    match worst {
        Some(verdict) if verdict > Verdict::NotApplicable => verdict,
        _ if none_of_its_own => Verdict::NotApplicable,
        Some(verdict) => verdict,
        None => Verdict::NoEvidence,
    }
}

/// `survivors` of `survivors`, `settles` of `each call.settles`.
pub fn look_of(path: &str) -> &str {
    path.split_once('.').map_or(path, |(_, look)| look)
}

fn id(index: usize, check: &Check) -> String {
    let observation = check.expect.keys().next().map_or("", String::as_str);
    format!("checks[{index}] {observation}")
}

fn proves(check: &Check, scenario: &Scenario) -> Vec<String> {
    if check.proves.is_empty() {
        scenario.proves.clone()
    } else {
        check.proves.clone()
    }
}

fn expected(check: &Check) -> String {
    let parts = check
        .expect
        .iter()
        .map(|(name, expect)| in_words(name, &expect.0));
    parts.collect::<Vec<_>>().join(" and ")
}

fn in_words(observation: &str, expect: &Value) -> String {
    if !matcher::is_time(expect) {
        return format!("{observation} {}", matcher::describe(expect));
    }
    let word = |key: &str| {
        expect.get(key).map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        })
    };
    let mut text = observation.to_owned();
    match (word("within"), word("not-before"), word("after")) {
        (Some(within), Some(not_before), Some(after)) => {
            text += &format!(" comes not before {not_before} and within {within} after {after}");
        }
        (Some(within), None, Some(after)) => {
            text += &format!(" comes within {within} after {after}")
        }
        (None, Some(not_before), Some(after)) => {
            text += &format!(" comes not before {not_before} after {after}")
        }
        (None, None, Some(after)) => text += &format!(" comes after {after}"),
        _ => {}
    }
    if let Some(before) = word("before") {
        text += &format!(" comes before {before}");
    }
    text
}

/// Judges one check, with its needs and its policies.
fn one(world: &World<'_>, scope: &Scope, index: usize, check: &Check) -> CheckVerdict {
    let scenario = &world.evidence.header.scenario;
    let adapter = &world.evidence.header.adapter;
    let mut verdict = CheckVerdict {
        id: id(index, check),
        proves: proves(check, scenario),
        verdict: Verdict::NoEvidence,
        expected: expected(check),
        seen: String::new(),
        kind: None,
    };
    if let Some(need) = check
        .needs
        .as_deref()
        .filter(|need| !declares(adapter, need))
    {
        verdict.verdict = Verdict::NotApplicable;
        verdict.seen = format!(
            "the adapter `{}` does not declare `{need}`",
            adapter.adapter
        );
        return verdict;
    }
    let mut entries = check.expect.iter();
    let (Some((observation, expect)), None) = (entries.next(), entries.next()) else {
        verdict.seen = "a check has exactly one observation".to_owned();
        return verdict;
    };
    let path = match Path::parse(observation, &world.names) {
        Ok(path) => path,
        Err(error) => {
            verdict.seen = error.to_string();
            return verdict;
        }
    };
    if let Some(why) = out_of_sight(&path, &expect.0, adapter, scenario) {
        verdict.verdict = Verdict::NotApplicable;
        verdict.seen = why;
        return verdict;
    }
    (verdict.verdict, verdict.seen) = hold(world, scope, &path, expect);
    if verdict.verdict == Verdict::Fail
        && let Some((name, choice, accepted)) = accepted(check, adapter)
        && let (Verdict::Pass, seen) = hold(world, scope, &path, accepted)
    {
        verdict.verdict = Verdict::Differs;
        verdict.expected += &format!(
            "; by the declared policy `{name}: {choice}`, {}",
            in_words(observation, &accepted.0)
        );
        verdict.seen = seen;
    }
    verdict
}

/// What must hold instead under the policy that the adapter declares.
fn accepted<'a>(check: &'a Check, adapter: &'a Adapter) -> Option<(&'a str, &'a str, &'a Expect)> {
    check.policy.iter().find_map(|(name, choices)| {
        let choice = adapter.policy.get(name)?;
        Some((name.as_str(), choice.as_str(), choices.get(choice)?))
    })
}

/// Most sights that are told one by one when they differ.
const TOLD: usize = 4;

/// Holds an expectation against all that a path shows; the worst decides.
fn hold(world: &World<'_>, scope: &Scope, path: &Path, expect: &Expect) -> (Verdict, String) {
    let judged: Vec<timing::Judged> = if matcher::is_time(&expect.0) {
        timing::judge(world, scope, path, &expect.0)
    } else {
        let sights = observe(world, path);
        sights
            .iter()
            .map(|sight| held(world, scope, sight, &expect.0, path.each))
            .collect()
    };
    let worst = judged
        .iter()
        .map(|(verdict, ..)| *verdict)
        .max()
        .unwrap_or(Verdict::NoEvidence);
    let told: Vec<&timing::Judged> = judged
        .iter()
        .filter(|(verdict, ..)| *verdict == worst)
        .collect();
    let mut seen: Vec<String> = told
        .iter()
        .take(TOLD)
        .map(|(_, witness, seen)| format!("{}: {seen}", witness.name()))
        .collect();
    if told.len() > TOLD {
        seen.push(format!("and {} more like it", told.len() - TOLD));
    }
    if told.is_empty() {
        seen.push("nothing was seen".to_owned());
    }
    (worst, seen.join("; "))
}

fn held(
    world: &World<'_>,
    scope: &Scope,
    sight: &Sight,
    expect: &Value,
    each: bool,
) -> timing::Judged {
    let other = |text: &str| match parse_other(text, &world.names, each) {
        Ok(path) => observe(world, &beside(path, &sight.label, each, world)),
        Err(error) => vec![Sight::nothing(text, Witness::Runner, error.to_string())],
    };
    let outcome = matcher::holds(
        expect,
        &sight.look,
        &Context {
            scope,
            other: &other,
        },
    );
    let saw = match &sight.look {
        Look::Is(value) => format!("{} is {}", sight.label, show(value)),
        Look::Absent => format!("{} is absent", sight.label),
        Look::Nothing(why) | Look::Undeclared(why) => why.clone(),
    };
    let (verdict, seen) = match outcome {
        Outcome::Holds => (Verdict::Pass, saw),
        Outcome::Fails => stall_excuse(world, scope, sight, expect)
            .map_or((Verdict::Fail, saw.clone()), |why| {
                (Verdict::Inconclusive, format!("{saw}; {why}"))
            }),
        Outcome::NoEvidence(why) => (Verdict::NoEvidence, why),
        Outcome::Undeclared(what) => (Verdict::NotApplicable, what),
    };
    (verdict, sight.witness, seen)
}

/// A duration that is too long, by no more than the machine stalled during the call.
fn stall_excuse(world: &World<'_>, scope: &Scope, sight: &Sight, expect: &Value) -> Option<String> {
    let call = world.calls.get(sight.label.strip_suffix(".duration")?)?;
    let Look::Is(took) = &sight.look else {
        return None;
    };
    let bound = expect.get("at-most").or_else(|| expect.get("below"))?;
    let bound = bound.as_f64().or_else(|| {
        scope
            .value(bound.as_str()?)
            .ok()
            .map(|quantity| quantity.amount)
    })?;
    let stalled = world.stalled(call.sent, call.settled()?) as f64 / 1e6;
    let late = took.as_f64()? - bound;
    (late > 0.0 && stalled >= late)
        .then(|| format!("the machine stalled for {stalled:.0} ms meanwhile"))
}

/// The other side of `same-as` beside one of several calls or launches: a name that several share means the same one.
///
/// The very same look at another name is left alone: it is the first one that all others are compared with.
fn beside(mut path: Path, label: &str, each: bool, world: &World<'_>) -> Path {
    let (owner, look) = label.split_once('.').unwrap_or((label, ""));
    if path.look == look {
        return path;
    }
    if each && path.each {
        // It was written without `each` and means one of them: that of this sight.
        path.each = false;
    }
    match &mut path.root {
        Root::Call(name)
            if each && owner.starts_with(name.as_str()) && world.calls.contains_key(owner) =>
        {
            *name = owner.to_owned();
        }
        Root::Child(name, number @ None) => {
            if let Some((its, nth)) = owner.split_once('#')
                && its == name
            {
                *number = nth.parse().ok();
            }
        }
        _ => {}
    }
    path
}

/// Looks at whatever a path names.
pub fn observe(world: &World<'_>, path: &Path) -> Vec<Sight> {
    let look = path.look.as_str();
    match &path.root {
        Root::Call(name) => calls::observe(world, name, path.each, look),
        Root::Child(name, number) => children::observe(world, name, *number, path.each, look),
        Root::Subject(name) => vec![whole::subject(world, name, look)],
        Root::Tools(name) => vec![tools::observe(world, name, look)],
        Root::Tool => vec![tools::tool(world, look)],
        Root::Whole(name) => vec![whole::observe(world, name)],
        Root::Facts => {
            let fact = world.evidence.header.adapter.facts.get(look).cloned();
            let missing = || Look::Undeclared(format!("the adapter declares no fact `{look}`"));
            vec![Sight::new(
                format!("facts.{look}"),
                Witness::Runner,
                fact.map_or_else(missing, Look::Is),
            )]
        }
    }
}
