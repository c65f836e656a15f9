//! What the kernel and the runner saw of the whole, and of the subject.

use serde_json::json;

use super::{Made, kernel_process, ordinary, process, table};
use crate::evidence::What;
use crate::verdict::Verdict::{Fail, NoEvidence, Pass};

#[test]
fn the_whole() {
    table(
        ordinary,
        &[
            ("launches: 1", Pass),
            ("launches: 0", Fail),
            ("pids-differ: true", NoEvidence),
            ("traps: none", Pass),
            ("survivors: none", Pass),
            ("survivors: {count: 1}", Fail),
            ("leftovers: none", Pass),
            ("leftovers: {count: 1}", Fail),
            ("leftovers.modes: none", Pass),
            ("work-files: {contains: work/x}", Pass),
            ("work-files: {lacks: work/x}", Fail),
        ],
    );
}

#[test]
fn what_is_left_is_named() {
    let made = |checks: &str| {
        let files = indexmap::IndexMap::from([("delegate-1.txt".to_owned(), "644".to_owned())]);
        let trap = process("child", Some("trap:curl"), 40, 50, vec![]);
        Made::of("[{call: {child: a}}]", checks)
            .sent(10, "call", "kit-call-1")
            .settled(20, "call", json!({}))
            .journal(trap)
            .event(
                900,
                What::Survivors {
                    processes: vec![kernel_process(20)],
                },
            )
            .event(901, What::Leftovers { files })
    };
    table(
        made,
        &[
            ("survivors: none", Fail),
            ("survivors: {contains: sleep 300}", Pass),
            ("leftovers: none", Fail),
            ("leftovers: [delegate-1.txt]", Pass),
            ("leftovers.modes: {every: '600'}", Fail),
            ("traps: [curl]", Pass),
            ("traps: none", Fail),
            ("launches: 0", Pass),
        ],
    );
}

#[test]
fn a_subject() {
    table(
        ordinary,
        &[
            ("subject.starts: true", Pass),
            ("subject.starts: false", Fail),
            ("subject.exit-code: 0", Pass),
            ("subject.exit-code: 1", Fail),
            ("subject.exit-signal: none", Pass),
            ("subject.exit-signal: TERM", Fail),
            ("subject.alive: true", Pass),
            ("subject.alive: false", Fail),
            ("subject.exits: true", Pass),
            ("subject.exits: false", Fail),
            ("subject.stderr: {contains: warning}", Pass),
            ("subject.stderr: none", Fail),
            ("subject.strays: none", Pass),
            ("subject.strays: {count: 1}", Fail),
            ("subject.memory-growth: {at-most: 5000}", Pass),
            ("subject.memory-growth: {below: 4KiB}", Fail),
            ("subject.sample.late.fds: 9", Pass),
            (
                "subject.sample.late.fds: {same-as: subject.sample.auto.fds}",
                Pass,
            ),
            (
                "subject.sample.late.rss: {at-most: subject.sample.auto.rss}",
                Fail,
            ),
            (
                "subject.sample.auto.rss: {at-most: subject.sample.late.rss}",
                Pass,
            ),
            ("subject.pid: 10", Pass),
            ("subject.pgid: 10", Fail),
            ("subject.sample.late.children: 0", Fail),
            ("subject.sample.late.zombies: 0", Pass),
            ("subject.sample.late.threads: 2", Pass),
            (
                "subject.sample.late.rss: {differs-from: subject.sample.auto.rss}",
                Pass,
            ),
            ("subject.sample.late.peak-rss: 1", Fail),
            ("subject.zombies-at-end: 0", Pass),
            ("subject.zombies-at-end: {above: 0}", Fail),
        ],
    );
}

#[test]
fn a_subject_that_still_runs_has_no_exit_code() {
    let made = |checks: &str| {
        let started = What::SubjectStarted {
            subject: "subject".to_owned(),
            pid: 10,
            argv: vec![],
        };
        Made::of("[]", checks).event(0, started)
    };
    table(
        made,
        &[
            ("subject.exit-code: none", NoEvidence),
            ("subject.exit-signal: none", NoEvidence),
            ("subject.alive: true", Pass),
            ("subject.exits: false", Pass),
            ("subject.starts: false", Pass),
            ("subject.strays: none", NoEvidence),
            ("subject.stderr: none", NoEvidence),
            ("subject.memory-growth: {below: 1GiB}", NoEvidence),
            ("survivors: none", NoEvidence),
            ("leftovers: none", NoEvidence),
            ("work-files: {lacks: x}", NoEvidence),
            ("traps: none", NoEvidence),
            ("launches: 0", NoEvidence),
        ],
    );
}
