//! The language of checks: what is refused before anything runs, policies and needs, and every expression.

use super::{Made, adapter, ordinary};
use crate::check::expr::{Scope, Unit};
use crate::check::{judge, validate};
use crate::evidence::What;
use crate::scenario::Scenario;
use crate::verdict::Verdict;

fn scenario(check: &str) -> Scenario {
    Made::of("[{call: {child: a}}, {list-tools: {as: tools}}, {sample: {as: late}}, {repeat: {times: 3, do: [{call: {as: again}}]}}]", &format!("  - {check}"))
        .evidence()
        .header
        .scenario
        .clone()
}

fn refusal(check: &str) -> String {
    let scenario = scenario(check);
    match validate(&scenario.checks[0], &scenario, &["failed"]) {
        Ok(()) => panic!("`{check}` was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_means_something_is_accepted() {
    for check in [
        "call.ok: true",
        "call.failed: false",
        "again-3.answer: x",
        "subject.sample.late.fds: {at-most: subject.sample.auto.fds}",
        "a.pgid: {differs-from: subject.pgid}",
        "each again.answer: {same-as: again.word}",
        "call.settles: {after: a.exited, within: post-exit-drain + grace}",
        "a#2.descendant.any.gone: true",
        "subject.sample.late.fds: {same-as: subject.sample.auto.fds}",
        "call.text: {present: true, at-most: output-cap + extra-text}",
        "tool.enum.profile: {every: {matches: '^[a-z]+$'}}",
    ] {
        let scenario = scenario(check);
        validate(&scenario.checks[0], &scenario, &["failed"])
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn what_means_nothing_is_refused_with_the_nearest_word() {
    for (check, said) in [
        ("cal.ok: true", "nearest is `call`"),
        ("call.anwser: x", "nearest is `answer`"),
        ("a.signls: x", "nearest is `signals`"),
        (
            "again-4.answer: x",
            "is no call, child or subject of this scenario",
        ),
        ("survivor: none", "nearest is `survivors`"),
        ("subject.exitcode: 0", "nearest is `exit-code`"),
        ("subject.sample.lat.fds: 0", "nearest is `late`"),
        ("tool.propertys: x", "nearest is `properties`"),
        ("a#0.argv: x", "the first is `#1`"),
        ("a.flag: x", "`flag` is nothing that can be seen of a child"),
        ("call.answer: {contain: x}", "nearest is `contains`"),
        (
            "call.answer: {every: {contain: x}}",
            "nearest is `contains`",
        ),
        ("call.answer: {matches: '('}", "bad pattern"),
        ("call.text: {at-most: ouput-cap}", "nearest is `output-cap`"),
        ("call.text: {at-most: [1]}", "needs a number"),
        (
            "call.text: {at-most: subject.sample.late.fdss}",
            "nearest is `fds`",
        ),
        ("call.answer: {same-as: cal.answer}", "nearest is `call`"),
        ("call.settles: {within: grace}", "need an `after`"),
        (
            "call.settles: {after: a.exitd, within: grace}",
            "nearest is `exited`",
        ),
        (
            "call.settles: {after: a.exited, within: gracee}",
            "nearest is `grace`",
        ),
        (
            "call.answer: {after: a.exited, within: grace}",
            "`answer` is no fact of a call",
        ),
        (
            "call.settles: {after: a.exited, below: 3}",
            "does not go with times",
        ),
        (
            "survivors: {after: a.exited, within: grace}",
            "only calls, children and subjects",
        ),
        ("call.answer: {}", "expects nothing"),
        ("call.answer: {present: perhaps}", "needs `true` or `false`"),
    ] {
        let refusal = refusal(check);
        assert!(refusal.contains(said), "{check}: {refusal}");
    }
}

#[test]
fn a_declared_policy_differs_and_an_undeclared_one_fails() {
    let check = |choice: &str, value: &str| {
        format!("  - call.ok: false\n    policy: {{length: {{{choice}: {value}}}}}")
    };
    let verdict = |check: &str| ordinary(check).check("checks[0]");
    let differs = verdict(&check("partial", "true"));
    assert_eq!(differs.verdict, Verdict::Differs);
    assert_eq!(
        differs.expected,
        "call.ok is false; by the declared policy `length: partial`, call.ok is true"
    );
    assert_eq!(verdict(&check("other", "true")).verdict, Verdict::Fail);
    assert_eq!(verdict(&check("partial", "none")).verdict, Verdict::Fail);
    let kept =
        ordinary("  - call.ok: true\n    policy: {length: {partial: false}}").check("checks[0]");
    assert_eq!(
        kept.verdict,
        Verdict::Pass,
        "who keeps the default contract needs no policy"
    );
}

#[test]
fn what_the_adapter_does_not_declare_is_not_applicable() {
    let verdict = |needs: &str| {
        ordinary(&format!("  - call.ok: true\n    needs: {needs}"))
            .check("checks[0]")
            .verdict
    };
    for needs in [
        "cancel",
        "grace",
        "deadline",
        "spawn",
        "answer",
        "setting.deadline",
        "observation.usage",
        "capability.cancel",
    ] {
        assert_eq!(verdict(needs), Verdict::Pass, "{needs}");
    }
    for needs in [
        "progress",
        "tool-timeout",
        "observation.stderr",
        "setting.model",
    ] {
        assert_eq!(verdict(needs), Verdict::NotApplicable, "{needs}");
    }
}

#[test]
fn a_scenario_is_not_applicable_only_when_none_of_its_checks_is() {
    let both = ordinary("  - call.ok: true\n  - call.stop-reason: stop");
    assert_eq!(judge(both.evidence()).verdict, Verdict::Pass);
    let none = ordinary("  - call.stop-reason: stop");
    assert_eq!(judge(none.evidence()).verdict, Verdict::NotApplicable);
    let broken = ordinary("  - call.stop-reason: stop").settled(500, "call", serde_json::json!({}));
    assert_eq!(
        judge(broken.evidence()).verdict,
        Verdict::Fail,
        "an invariant still speaks"
    );
}

#[test]
fn a_scenario_for_another_contract_or_without_its_needs_does_not_apply() {
    for key in [
        "needs: [progress]",
        "systems: [tidy]",
        "setup: {settings: {tool-timeout: 1s}}",
    ] {
        let mut evidence = ordinary("  - call.ok: true").evidence().clone();
        let text = format!("scenario: s\nwhy: w\n{key}\nsteps: []\nchecks: [{{call.ok: true}}]\n");
        evidence.header.scenario = serde_saphyr::from_str(&text).unwrap();
        let verdict = judge(&evidence);
        assert_eq!(verdict.verdict, Verdict::NotApplicable, "{key}");
        assert!(
            verdict
                .checks
                .iter()
                .all(|check| check.verdict == Verdict::NotApplicable)
        );
    }
}

#[test]
fn every_check_says_what_was_expected_and_who_saw_what() {
    let check = ordinary("  - a.signals: none").check("checks[0]");
    assert_eq!(check.id, "checks[0] a.signals");
    assert_eq!(check.expected, "a.signals is none");
    assert_eq!(check.seen, "journal: a.signals is [`TERM`]");
    let late = ordinary("  - call.settles: {after: a.exited, within: 1ms}").check("checks[0]");
    assert_eq!(
        late.expected,
        "call.settles comes within 1ms after a.exited"
    );
    assert_eq!(
        late.seen,
        "claims: call.settled came 250.0 ms after a.exited, 249 ms too late"
    );
}

#[test]
fn expressions() {
    let made = Made::of("[]", "  - survivors: none");
    let mut scenario = made.evidence().header.scenario.clone();
    scenario
        .setup
        .settings
        .insert("deadline".to_owned(), serde_json::json!("1500ms"));
    let scope = Scope::of(&adapter(), &scenario);
    for (text, amount, unit) in [
        ("7", 7.0, Unit::Plain),
        ("1.5s", 1500.0, Unit::Time),
        ("64MiB", 67_108_864.0, Unit::Bytes),
        ("8MiB+1", 8_388_609.0, Unit::Bytes),
        ("deadline + grace", 3500.0, Unit::Time),
        ("grace + 500ms", 2500.0, Unit::Time),
        ("record-cap - 1", 8_388_607.0, Unit::Bytes),
        ("output-cap + extra-text", 1100.0, Unit::Bytes),
        ("2 * grace - 1s", 3000.0, Unit::Time),
        ("task-limit+1", 501.0, Unit::Plain),
    ] {
        let value = scope.value(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((value.amount, value.unit), (amount, unit), "{text}");
    }
    for text in [
        "",
        "grace +",
        "+ grace",
        "grace grace",
        "two files",
        "Grace",
        "1s + 1MiB",
        "nothing",
    ] {
        assert!(scope.value(text).is_err(), "{text}");
    }
}

#[test]
fn a_harness_event_is_told_in_the_story() {
    let made = ordinary("  - call.ok: false").event(
        5,
        What::HarnessError {
            message: "no folder".to_owned(),
        },
    );
    let lines = crate::check::story::timeline(made.evidence());
    assert!(
        lines
            .iter()
            .any(|line| line.contains("harness error: no folder")),
        "{lines:#?}"
    );
    let witnesses = crate::check::story::witnesses(made.evidence());
    assert_eq!(
        witnesses[0].1,
        ["call: settled after 300 ms, ok true, answer `two files`"]
    );
    assert_eq!(witnesses[1].1, ["a: pid 20, prompts 1, TERM, exit 143"]);
}
