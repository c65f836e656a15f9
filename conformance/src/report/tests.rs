//! The same run in every format, as snapshots.

mod formats;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use indexmap::IndexMap;

use super::events::{FORMAT, Killer, MutantJudged, MutantSummary, Totals};
use super::{Event, Finished, Format, Human, Json, Junit, Output, Reporter, Summary};
use crate::verdict::{CheckVerdict, FailureKind, Verdict};

/// Keeps what a reporter writes.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        let plain = anstream::adapter::strip_bytes(&self.0.lock().unwrap()).into_vec();
        let text = String::from_utf8(plain).unwrap();
        regex::Regex::new(r"in \d+\.\d s")
            .unwrap()
            .replace_all(&text, "in 1.0 s")
            .into_owned()
    }
}

fn check(id: &str, verdict: Verdict, expected: &str, seen: &str) -> CheckVerdict {
    CheckVerdict {
        id: id.to_owned(),
        proves: vec!["drain.descendant-holds-stdout".to_owned()],
        verdict,
        expected: expected.to_owned(),
        seen: seen.to_owned(),
        kind: (verdict == Verdict::Fail).then_some(FailureKind::Hang),
    }
}

fn finished(name: &str, verdict: Verdict, checks: Vec<CheckVerdict>) -> Event {
    let full = verdict > Verdict::KnownFailure;
    let lines = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    Event::Finished(Box::new(Finished {
        scenario: name.to_owned(),
        area: "process-tree-and-drain".to_owned(),
        axes: IndexMap::new(),
        why: "A background helper that keeps the pipe open must not hang the call.".to_owned(),
        verdict,
        duration_ms: 1234,
        reruns: 0,
        attempts: Vec::new(),
        flaky: false,
        rules: IndexMap::from([(
            "drain.descendant-holds-stdout".to_owned(),
            "A descendant that keeps the stdout pipe open cannot hang the call.".to_owned(),
        )]),
        checks,
        witnesses: if full {
            IndexMap::from([
                (
                    "claims".to_owned(),
                    lines(&["call: settled after 8012 ms, ok true"]),
                ),
                (
                    "journal".to_owned(),
                    lines(&["a: pid 20, prompts 1, no signal, exit 0"]),
                ),
                (
                    "kernel".to_owned(),
                    lines(&["subject ended: exit 0", "no survivors"]),
                ),
            ])
        } else {
            IndexMap::new()
        },
        timeline: if full {
            lines(&[
                "      0.0 ms  runner   subject started, pid 10",
                "   8012.0 ms  claims   call settled: two files",
            ])
        } else {
            Vec::new()
        },
        picture: None,
        bundle: full.then(|| format!("/evidence/{name}")),
        reproduce: format!("pi-conform run '{name}'"),
    }))
}

/// One of each verdict.
fn events() -> Vec<Event> {
    use Verdict::*;
    let late = "claims: call.settled came 8000.0 ms after a.exited, 4000 ms too late";
    let pass = || {
        check(
            "checks[0] call.ok",
            Pass,
            "call.ok is true",
            "claims: call.ok is true",
        )
    };
    let with = |verdict: Verdict, seen: &str| {
        vec![
            pass(),
            check(
                "checks[1] call.settles",
                verdict,
                "call.settles comes within grace after a.exited",
                seen,
            ),
        ]
    };
    let scenarios = [
        ("clean-exit", Pass, vec![pass()]),
        ("holds-stdout[size=1]", Fail, with(Fail, late)),
        (
            "length-stop",
            Differs,
            with(Differs, "claims: call.ok is true"),
        ),
        (
            "old-fault",
            KnownFailure,
            with(KnownFailure, "claims: call.ok is false (known: issue 41)"),
        ),
        (
            "mended",
            Stale,
            with(
                Stale,
                "claims: call.ok is true (the baseline says that it fails: issue 40)",
            ),
        ),
        (
            "needs-more",
            NotApplicable,
            with(NotApplicable, "the adapter `x` does not declare `progress`"),
        ),
        (
            "nothing-seen",
            NoEvidence,
            with(NoEvidence, "journal: child `a` never started"),
        ),
        (
            "stalled",
            Inconclusive,
            with(
                Inconclusive,
                "claims: late; the machine stalled for 900 ms meanwhile",
            ),
        ),
        (
            "no-folder",
            HarnessError,
            vec![check(
                "harness",
                HarnessError,
                "the harness can do it",
                "runner: no folder",
            )],
        ),
    ];
    let mut summary = Summary {
        selected: scenarios.len(),
        ..Summary::default()
    };
    let mut events = vec![Event::Run {
        format: FORMAT,
        suite: "0.1.0".to_owned(),
        subject: "reference-delegator".to_owned(),
        about: "The bundled reference".to_owned(),
        selected: scenarios.len(),
        jobs: 2,
        seed: None,
        narrowed: Vec::new(),
    }];
    for (name, verdict, checks) in scenarios {
        summary.count(verdict);
        events.push(Event::Started {
            scenario: name.to_owned(),
            area: "process-tree-and-drain".to_owned(),
        });
        events.push(finished(name, verdict, checks));
    }
    events.push(Event::Unmatched {
        entry: "holds-stdot / *".to_owned(),
        problem: "there is no such scenario; nearest is `holds-stdout`".to_owned(),
    });
    events.push(Event::Summary(Totals::Run(summary)));
    events
}

fn told(events: &[Event], make: impl Fn(Page) -> Box<dyn Reporter>) -> String {
    let page = Page::default();
    let mut reporter = make(page.clone());
    for event in events {
        reporter.event(event).unwrap();
    }
    page.text()
}

#[test]
fn human() {
    insta::assert_snapshot!(told(&events(), |page| Box::new(Human::new(page, false))));
}

#[test]
fn human_verbose_tells_every_scenario() {
    let text = told(&events(), |page| Box::new(Human::new(page, true)));
    let head: Vec<&str> = text.lines().take(12).collect();
    insta::assert_snapshot!(head.join("\n"));
}

#[test]
fn human_is_calm_when_all_is_as_it_must_be() {
    let mut summary = Summary {
        selected: 1,
        ..Summary::default()
    };
    summary.count(Verdict::Pass);
    let mut few: Vec<Event> = events().into_iter().take(3).collect();
    few.push(Event::Summary(Totals::Run(summary)));
    insta::assert_snapshot!(told(&few, |page| Box::new(Human::new(page, false))));
}

#[test]
fn json_lines() {
    let text = told(&events(), |page| Box::new(Json::new(page)));
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        r#"{"type":"summary","selected":9,"pass":1,"fail":1,"differs":1,"known_failure":1,"stale":1,"not_applicable":1,"no_evidence":1,"inconclusive":1,"harness_error":1,"flaky":0}"#
    );
    let again: Vec<Event> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(again, events(), "what was written is what happened");
    insta::assert_snapshot!(text.lines().take(3).collect::<Vec<_>>().join("\n"));
}

#[test]
fn junit() {
    insta::assert_snapshot!(told(&events(), |page| Box::new(Junit::new(page))));
}

#[test]
fn a_kill_matrix() {
    let mutant = |name: &str, killed: bool| {
        let killer = |check: &str| Killer {
            scenario: "term-then-kill".to_owned(),
            check: check.to_owned(),
            proves: vec!["drain.term-then-kill".to_owned()],
        };
        let killers = if killed {
            vec![killer("checks[2] survivors"), killer("checks[3] a.ended")]
        } else {
            vec![]
        };
        Event::Mutant(Box::new(MutantJudged {
            mutant: name.to_owned(),
            about: "never sends KILL".to_owned(),
            breaks: vec!["drain.term-then-kill".to_owned()],
            killed,
            scenarios: 4,
            killers,
            others: 1,
        }))
    };
    let summary = MutantSummary {
        mutants: 2,
        killed: 1,
        survived: vec!["slot-leaked".to_owned()],
        sound_accused: vec!["clean-exit".to_owned()],
    };
    let events = [
        mutant("no-kill", true),
        mutant("slot-leaked", false),
        Event::Summary(Totals::Mutants(summary)),
    ];
    let json = told(&events, |page| Box::new(Json::new(page)));
    assert_eq!(
        json.lines().last().unwrap(),
        r#"{"type":"summary","mutants":2,"killed":1,"survived":["slot-leaked"],"sound_accused":["clean-exit"]}"#
    );
    insta::assert_snapshot!(told(&events, |page| Box::new(Human::new(page, false))));
}

#[test]
fn outputs_are_a_format_and_perhaps_a_file() {
    let output = |text: &str| text.parse::<Output>();
    assert_eq!(
        output("json").unwrap(),
        Output {
            format: Format::Json,
            file: None
        }
    );
    assert_eq!(
        output("junit:a/b.xml").unwrap(),
        Output {
            format: Format::Junit,
            file: Some("a/b.xml".into())
        }
    );
    assert_eq!(
        output("jsn").unwrap_err(),
        "`jsn` is no format; there are human, json, junit, tap, github, markdown, badge and html; nearest is `json`"
    );
    assert_eq!(
        output("json:").unwrap_err(),
        "`json:` names no file after the colon"
    );
}
