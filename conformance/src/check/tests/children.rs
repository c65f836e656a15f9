//! What a child saw.

use serde_json::json;

use super::{Made, child, ordinary, process, table};
use crate::evidence::What;
use crate::verdict::Verdict::{Fail, NoEvidence, Pass};

#[test]
fn a_child() {
    table(
        ordinary,
        &[
            ("a.launches: 1", Pass),
            ("a.launches: 2", Fail),
            ("a.argv: {contains: [--mode, rpc]}", Pass),
            ("a.argv: {contains: --no-session}", Fail),
            ("a.flag.model: stub/m", Pass),
            ("a.flag.mode: rpc", Pass),
            ("a.flag.mode: json", Fail),
            ("a.flag.no-skills: true", Pass),
            ("a.flag.tools: {absent: true}", Pass),
            ("a.flags: {contains: --model}", Pass),
            ("a.flags: {lacks: --no-skills}", Fail),
            ("a.flags: {contains: --no}", Fail),
            ("a.env.HOME: /home", Pass),
            ("a.env.HOME: /root", Fail),
            ("a.env.SECRET: none", Pass),
            ("a.env: {lacks: SECRET}", Pass),
            ("a.env: {lacks: HOME}", Fail),
            ("a.cwd: /work", Pass),
            ("a.cwd: /tmp", Fail),
            ("a.pid-leads-group: true", Pass),
            ("a.pid-leads-group: false", Fail),
            ("a.pgid: {same-as: a.pid}", Pass),
            ("a.sid: {same-as: a.pid}", Fail),
            ("a.sid: {differs-from: a.pid}", Pass),
            ("a.task: {contains: find it}", Pass),
            ("a.task: {lacks: find it}", Fail),
            ("a.task-bytes: 3", Pass),
            ("a.task-bytes: 4", Fail),
            ("a.task-sha256: abc", Pass),
            ("a.task-intact: true", Pass),
            ("a.task-intact: false", Fail),
            ("a.via: rpc", Pass),
            ("a.via: argument", Fail),
            ("a.prompts: 1", Pass),
            ("a.prompts: 2", Fail),
            ("a.stdin.abort: 1", Pass),
            ("a.stdin.steer: 0", Pass),
            ("a.stdin.abort: 0", Fail),
            ("a.stdin-eof: true", Pass),
            ("a.stdin-eof: false", Fail),
            ("a.stdin-lines: {contains: abort}", Pass),
            ("a.stdin-lines: {count: 3}", Fail),
            ("a.signals: [TERM]", Pass),
            ("a.signals: none", Fail),
            ("a.blocked: [USR1]", Pass),
            ("a.blocked: none", Fail),
            ("a.ignored: none", Pass),
            ("a.ignored: {contains: TERM}", Fail),
            ("a.extra-fds: {count: 1}", Pass),
            ("a.extra-fds: none", Fail),
            ("a.parent-argv: {contains: mcp}", Pass),
            ("a.parent-is-shell: false", Pass),
            ("a.parent-is-shell: true", Fail),
            ("a.ended: exit 143", Pass),
            ("a.ended: killed", Fail),
            ("a.reached: [working]", Pass),
            ("a.reached: {lacks: working}", Fail),
            ("a.write-failed: none", Pass),
            ("a.faults: none", Pass),
            ("a.started: true", Pass),
            ("a.exited: true", Pass),
            ("a.descendant.helper.signals: [TERM]", Pass),
            ("a.descendant.helper.signals: none", Fail),
            ("a.descendant.helper.gone: true", Pass),
            ("a.descendant.helper.gone: false", Fail),
            ("a.descendant.helper.sid: {same-as: a.sid}", Pass),
            ("a.descendant.other.gone: true", NoEvidence),
            ("a#1.ended: exit 143", Pass),
            ("a#2.ended: exit 143", NoEvidence),
            ("each a.cwd: /work", Pass),
            ("a.argv: {same-as: facts.isolation-flags}", Fail),
        ],
    );
}

#[test]
fn a_process_that_vanished_was_killed_and_one_that_stays_is_alive() {
    let made = |checks: &str| {
        let chosen = fake_pi::journal::What::Chosen {
            child: "a".to_owned(),
        };
        Made::of("[{call: {child: a}}]", checks)
            .sent(100, "call", "kit-call-1")
            .settled(400, "call", json!({}))
            .journal(process("child", None, 20, 110, vec![(111, chosen)]))
    };
    let gone = |checks: &str| {
        made(checks)
            .event(120, What::ProcessSeen(Box::new(super::kernel_process(20))))
            .event(
                300,
                What::ProcessGone {
                    pid: 20,
                    start_ticks: 1020,
                },
            )
    };
    table(
        gone,
        &[("a.ended: killed", Pass), ("a.ended: exit 0", Fail)],
    );
    let alive = |checks: &str| {
        made(checks).event(
            900,
            What::Survivors {
                processes: vec![super::kernel_process(20)],
            },
        )
    };
    table(
        alive,
        &[
            ("a.ended: alive", Pass),
            ("a.exited: false", Pass),
            ("survivors: none", Fail),
        ],
    );
    table(made, &[("a.ended: killed", NoEvidence)]);
}

#[test]
fn several_launches_must_all_be_as_expected_and_can_be_told_apart() {
    let made = |checks: &str| {
        let mut second = child(30, 210, "kit-call-2");
        if let fake_pi::journal::What::Start(start) = &mut second[0].what {
            start.cwd = "/other".to_owned();
        }
        Made::of(
            "[{call: {child: a, as: one}}, {call: {child: a, as: two}}]",
            checks,
        )
        .life(900)
        .sent(100, "one", "kit-call-1")
        .settled(200, "one", json!({"ok": true, "answer": "kit-call-1"}))
        .sent(201, "two", "kit-call-2")
        .settled(300, "two", json!({"ok": true, "answer": "kit-call-2"}))
        .journal(second)
        .journal(child(20, 110, "kit-call-1"))
    };
    table(
        made,
        &[
            ("a.launches: 2", Pass),
            ("launches: 2", Pass),
            ("pids-differ: true", Pass),
            ("a.cwd: /work", Fail),
            ("a#1.cwd: /work", Pass),
            ("a#2.cwd: /other", Pass),
            ("one.child.cwd: /work", Pass),
            ("two.child.cwd: /other", Pass),
            ("one.answer: {same-as: one.word}", Pass),
            ("two.answer: {same-as: one.word}", Fail),
            ("each a.cwd: {same-as: a.cwd}", Fail),
            ("each a.via: {same-as: a.via}", Pass),
            ("one.child.pid: {differs-from: two.child.pid}", Pass),
        ],
    );
}
