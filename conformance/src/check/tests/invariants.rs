//! What holds in every scenario.

use serde_json::json;

use super::{Made, child, kernel_process, ordinary};
use crate::check::{INVARIANTS, judge};
use crate::evidence::What;
use crate::verdict::Verdict;

const CHECK: &str = "  - call.ok: true";

/// The verdict of one invariant after `twist` has been done to an ordinary scenario.
fn after(invariant: &str, twist: impl Fn(Made) -> Made) -> Verdict {
    twist(ordinary(CHECK))
        .check(&format!("invariant {invariant}"))
        .verdict
}

#[test]
fn all_hold_in_an_ordinary_scenario() {
    let made = ordinary(CHECK);
    for invariant in &INVARIANTS {
        let check = made.check(invariant.id);
        assert_eq!(check.verdict, Verdict::Pass, "{check:#?}");
    }
    assert_eq!(judge(made.evidence()).verdict, Verdict::Pass);
}

#[test]
fn each_can_fail() {
    let subject = || "subject".to_owned();
    let call = || "call".to_owned();
    let gave_up = |fact: &str| What::GaveUp {
        path: "steps[0]".to_owned(),
        fact: fact.to_owned(),
    };
    assert_eq!(
        after("steps", |made| made.event(90, gave_up("a.reached.x"))),
        Verdict::NoEvidence
    );
    let mut journal = child(50, 600, "w");
    journal[5].what = fake_pi::journal::What::Fault {
        message: "no such act".to_owned(),
    };
    assert_eq!(
        after("steps", |made| made.journal(journal.clone())),
        Verdict::HarnessError
    );

    let survivor = What::Survivors {
        processes: vec![kernel_process(21)],
    };
    assert_eq!(
        after("survivors", |made| made.event(2100, survivor.clone())),
        Verdict::Fail
    );

    assert_eq!(
        after("settlements", |made| made.settled(450, "call", json!({}))),
        Verdict::Fail
    );
    let late = What::Update {
        call: call(),
        params: json!({}),
    };
    assert_eq!(
        after("late-updates", |made| made.event(401, late.clone())),
        Verdict::Fail
    );

    let stray = What::Stray {
        subject: subject(),
        problem: "no JSON".to_owned(),
        line: "debug".to_owned(),
    };
    assert_eq!(
        after("strays", |made| made.event(50, stray.clone())),
        Verdict::Fail
    );

    let exit = |code, signal: Option<&str>| What::SubjectExited {
        subject: subject(),
        code,
        signal: signal.map(str::to_owned),
    };
    assert_eq!(
        after("subject-alive", |made| made
            .event(1500, exit(Some(0), None))),
        Verdict::Fail
    );
    assert_eq!(
        after("subject-alive", |made| made
            .event(2001, exit(None, Some("SIGSEGV")))),
        Verdict::Fail
    );
    assert_eq!(
        after("subject-alive", |made| made
            .event(2001, exit(Some(101), None))),
        Verdict::Fail
    );
    assert_eq!(
        after("subject-alive", |made| made
            .event(2001, exit(None, Some("KILL")))),
        Verdict::Pass
    );
}

#[test]
fn a_call_that_was_waited_for_must_have_settled() {
    let gave_up = What::GaveUp {
        path: "steps[0]".to_owned(),
        fact: "call.settled".to_owned(),
    };
    let made = Made::of("[{call: {child: a}}]", "  - call.ok: true")
        .life(40_000)
        .sent(10, "call", "w")
        .event(30_000, gave_up);
    assert_eq!(made.check("invariant settlements").verdict, Verdict::Fail);
    assert_eq!(judge(made.evidence()).verdict, Verdict::Fail);
}

#[test]
fn a_claim_that_the_journal_contradicts_is_told() {
    let claim = |term: bool| {
        Made::of("[{call: {child: a}}]", CHECK)
            .life(900)
            .sent(100, "call", "kit-call-1")
            .settled(
                400,
                "call",
                json!({"ok": true, "cleanup": {"term": term, "kill": false}}),
            )
            .journal(child(20, 110, "kit-call-1"))
    };
    assert_eq!(
        claim(true).check("invariant witnesses").verdict,
        Verdict::Pass
    );
    let told = claim(false).check("invariant witnesses");
    assert_eq!(told.verdict, Verdict::Fail);
    assert!(
        told.seen
            .contains("claims that no TERM was sent, but the child's journal has one"),
        "{}",
        told.seen
    );
    assert_eq!(told.proves, ["drain.cleanup-metadata-accurate"]);
}

#[test]
fn a_check_on_the_same_thing_takes_the_place_of_an_invariant() {
    for (check, invariant) in [
        ("  - survivors: {count: 1}", "survivors"),
        ("  - each call.settlements: 1", "settlements"),
        ("  - call.updates.late: 0", "late-updates"),
        ("  - subject.strays: none", "strays"),
        ("  - subject.exit-code: 3", "subject-alive"),
        ("  - call.cleanup.term: true", "witnesses"),
    ] {
        let ids: Vec<String> = ordinary(check)
            .checks()
            .into_iter()
            .map(|check| check.id)
            .collect();
        assert!(!ids.contains(&format!("invariant {invariant}")), "{ids:?}");
    }
}

#[test]
fn none_passes_over_no_evidence() {
    for check in Made::of("[{call: {child: a}}]", CHECK).checks() {
        assert!(
            !matches!(check.verdict, Verdict::Pass | Verdict::Fail),
            "{check:#?}"
        );
    }
}

#[test]
fn what_the_harness_could_not_do_is_no_verdict_on_the_subject() {
    let made = ordinary("  - call.ok: false").event(
        5,
        What::HarnessError {
            message: "no folder".to_owned(),
        },
    );
    assert_eq!(judge(made.evidence()).verdict, Verdict::HarnessError);
}
