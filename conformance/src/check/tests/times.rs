//! When something must happen.

use serde_json::json;

use super::{Made, ordinary, table};
use crate::evidence::What;
use crate::verdict::Verdict::{Fail, Inconclusive, NoEvidence, Pass};

#[test]
fn order_and_bounds() {
    // Sent 100, child started 110, task 113, TERM 118, last word 119, gone by 150, update 300, helper gone 350, settled 400.
    table(
        ordinary,
        &[
            ("call.settles: {after: call.sent, within: 300ms}", Pass),
            ("call.settles: {after: call.sent, within: 299}", Fail),
            ("call.settles: {after: call.sent, within: grace}", Pass),
            (
                "call.settles: {after: call.sent, within: deadline + grace, not-before: 300ms}",
                Pass,
            ),
            (
                "call.settles: {after: call.sent, within: deadline + grace, not-before: 310ms}",
                Fail,
            ),
            ("call.settles: {after: call.sent, not-before: grace}", Fail),
            ("call.settles: {after: a.exited, within: 250ms}", Pass),
            ("call.settles: {after: a.exited, within: 249ms}", Fail),
            // It went somewhere between its last word and the look that missed it; only 281 ms are certainly too early.
            (
                "call.settles: {after: a.exited, within: 1s, not-before: 281ms}",
                Pass,
            ),
            (
                "call.settles: {after: a.exited, within: 1s, not-before: 290ms}",
                Fail,
            ),
            ("call.settles: {after: a.exited}", Pass),
            ("call.settles: {before: a.exited}", Fail),
            ("a.exited: {before: call.settled}", Pass),
            ("a.exited: {after: call.settled}", Fail),
            ("a.signal.TERM: {after: a.task, within: 5ms}", Pass),
            ("a.signal.TERM: {after: a.task, within: 4ms}", Fail),
            ("a.signal.KILL: {after: a.task, within: 1s}", Fail),
            (
                "a.stdin.abort: {after: a.reached.working, within: 1s}",
                Pass,
            ),
            ("a.stdin-eof: {after: a.stdin.abort}", Pass),
            ("a.stdin-eof: {before: a.stdin.abort}", Fail),
            ("a.started: {after: call.sent}", Pass),
            ("a.reached.nowhere: {after: call.sent}", Fail),
            (
                "a.descendant.helper.gone: {after: a.exited, within: 200ms}",
                Pass,
            ),
            // Both went between two looks, and their times overlap: nobody is accused.
            ("a.descendant.helper.gone: {before: a.exited}", Pass),
            ("a.descendant.helper.gone: {before: a.started}", Fail),
            ("a.descendant.helper.started: {after: a.started}", Pass),
            ("call.update: {before: call.settled}", Pass),
            (
                "subject.exits: {after: subject.input-closed, within: 5ms}",
                Pass,
            ),
            (
                "subject.exits: {after: subject.input-closed, within: 4ms}",
                Fail,
            ),
            (
                "subject.exits: {after: subject.signalled, within: 1s}",
                NoEvidence,
            ),
            (
                "call.settles: {after: call.aborted, within: grace}",
                NoEvidence,
            ),
            (
                "call.settles: {after: a#2.exited, within: grace}",
                NoEvidence,
            ),
            (
                "call.settles: {after: call.child.exited, within: 250ms}",
                Pass,
            ),
        ],
    );
}

#[test]
fn a_call_that_never_settles_is_late_for_ever() {
    let made = |checks: &str| {
        Made::of("[{call: {child: a}}]", checks)
            .sent(100, "call", "w")
            .event(90_000, What::End)
    };
    table(
        made,
        &[("call.settles: {after: call.sent, within: 5s}", Fail)],
    );
}

#[test]
fn a_stall_that_explains_the_delay_makes_it_inconclusive() {
    let made = |stalls: Vec<(u64, u64)>| {
        move |checks: &str| {
            let mut made = Made::of("[{call: {child: a}}]", checks)
                .sent(1000, "call", "w")
                .settled(4000, "call", json!({"ok": true}));
            for (at, ms) in &stalls {
                made = made.event(*at, What::Stall { ns: ms * super::MS });
            }
            made
        }
    };
    // Allowed are 2 s, it took 3.
    let late = "call.settles: {after: call.sent, within: grace}";
    let long = "call.duration: {at-most: grace}";
    for check in [late, long] {
        table(made(vec![(2000, 1000)]), &[(check, Inconclusive)]);
        table(
            made(vec![(2000, 600), (3000, 400)]),
            &[(check, Inconclusive)],
        );
        table(made(vec![(2000, 900)]), &[(check, Fail)]);
        table(made(vec![(900, 800), (6000, 1500)]), &[(check, Fail)]);
        table(made(vec![]), &[(check, Fail)]);
    }
    // A lower bound is not excused by anything.
    table(
        made(vec![(2000, 5000)]),
        &[("call.settles: {after: call.sent, not-before: 5s}", Fail)],
    );
}

#[test]
fn each_call_is_measured_from_its_own_facts() {
    let made = |checks: &str| {
        Made::of("[{repeat: {times: 2, do: [{call: {child: a}}]}}]", checks)
            .sent(100, "call-1", "w1")
            .settled(200, "call-1", json!({"ok": true}))
            .sent(5000, "call-2", "w2")
            .settled(5100, "call-2", json!({"ok": true}))
    };
    table(
        made,
        &[
            ("each call.settles: {after: call.sent, within: 100ms}", Pass),
            ("each call.settles: {after: call.sent, within: 99ms}", Fail),
            (
                "each call.settles: {after: call-1.sent, within: 100ms}",
                Fail,
            ),
        ],
    );
}
