//! Pictures of hand-made evidence: who has a lane, from when to when, and what is marked in it.

use super::*;
use crate::check::picture::{Bar, LANES, Lane, LaneOf, MARKS, MarkKind, Picture, Stall};

fn ms(at: u64) -> u64 {
    at * MS
}

fn names(picture: &Picture) -> Vec<(LaneOf, &str, u32)> {
    let lanes = picture.lanes.iter();
    lanes
        .map(|lane| (lane.of, lane.name.as_str(), lane.depth))
        .collect()
}

fn lane<'p>(picture: &'p Picture, name: &str) -> &'p Lane {
    let found = picture.lanes.iter().find(|lane| lane.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:#?}", names(picture)))
}

/// Kinds and labels of a lane's marks with their milliseconds.
fn marks(lane: &Lane) -> Vec<(u64, MarkKind, &str)> {
    let marks = lane.marks.iter();
    marks
        .map(|mark| (mark.at_ns / MS, mark.kind, mark.label.as_str()))
        .collect()
}

/// A subject, its child `a`, the child's helper, and a shell that only the kernel saw.
fn made() -> Made {
    let mut shell = kernel_process(40);
    shell.argv = vec!["/usr/bin/bash".to_owned(), "-c".to_owned()];
    shell.ppid = 21;
    Made::of("[{call: {child: a}}]", "  - call.ok: true")
        .life(200)
        .sent(5, "call", "kit-call-1")
        .settled(60, "call", json!({"ok": true}))
        .event(19, What::ProcessSeen(Box::new(kernel_process(20))))
        .event(24, What::ProcessSeen(Box::new(kernel_process(21))))
        .event(31, What::ProcessSeen(Box::new(shell)))
        .event(
            50,
            What::ProcessGone {
                pid: 20,
                start_ticks: 1020,
            },
        )
        .event(
            70,
            What::ProcessGone {
                pid: 21,
                start_ticks: 1021,
            },
        )
        .event(
            71,
            What::ProcessGone {
                pid: 40,
                start_ticks: 1040,
            },
        )
        .journal(child(20, 20, "kit-call-1"))
        .journal(nested(21, 25))
}

/// `helper`, started by the child 20.
fn nested(pid: i32, at: u64) -> Vec<Entry> {
    let mut journal = helper(pid, at);
    if let Wrote::Start(start) = &mut journal[0].what {
        start.ppid = 20;
    }
    journal
}

#[test]
fn each_process_has_a_lane_below_the_one_that_started_it() {
    let picture = Picture::of(made().evidence());
    assert_eq!(
        names(&picture),
        [
            (LaneOf::Runner, "runner", 0),
            (LaneOf::Claims, "claims", 0),
            (LaneOf::Subject, "subject", 0),
            (LaneOf::Child, "a", 1),
            (LaneOf::Descendant, "helper", 2),
            (LaneOf::Other, "bash", 3),
        ]
    );
    assert_eq!(picture.end_ns, ms(209));
    assert_eq!(picture.left_out, 0);
}

#[test]
fn a_bar_lasts_from_first_seen_until_gone() {
    let picture = Picture::of(made().evidence());
    let bar = |name: &str| {
        let bar = lane(&picture, name).bar.as_ref().unwrap();
        (bar.from_ns / MS, bar.to_ns / MS, bar.survives)
    };
    assert_eq!(bar("subject"), (0, 205, false));
    assert_eq!(bar("a"), (19, 50, false));
    assert_eq!(bar("helper"), (24, 70, false));
    assert_eq!(bar("bash"), (31, 71, false));
    let ended = |name: &str| lane(&picture, name).bar.as_ref().unwrap().ended.clone();
    assert_eq!(ended("subject").as_deref(), Some("exit 0"));
    assert_eq!(ended("a").as_deref(), Some("exit 143"));
    assert_eq!(ended("helper"), None);
}

#[test]
fn what_survives_lasts_to_the_end() {
    let survivors = What::Survivors {
        processes: vec![kernel_process(21), kernel_process(33)],
    };
    let picture = Picture::of(
        Made::of("[{call: {child: a}}]", "  - call.ok: true")
            .event(
                0,
                What::SubjectStarted {
                    subject: "subject".to_owned(),
                    pid: 10,
                    argv: vec![],
                },
            )
            .event(24, What::ProcessSeen(Box::new(kernel_process(21))))
            .event(30, What::ProcessSeen(Box::new(kernel_process(33))))
            .event(90, survivors)
            .event(
                91,
                What::ProcessGone {
                    pid: 21,
                    start_ticks: 1021,
                },
            )
            .event(100, What::End)
            .journal(helper(21, 25))
            .evidence(),
    );
    let survives = Bar {
        from_ns: ms(24),
        to_ns: ms(100),
        survives: true,
        ended: None,
    };
    assert_eq!(lane(&picture, "helper").bar, Some(survives));
    let other = picture.lanes.last().unwrap();
    assert_eq!((other.of, other.pid), (LaneOf::Other, Some(33)));
    assert!(other.bar.as_ref().is_some_and(|bar| bar.survives));
    assert!(!lane(&picture, "subject").bar.as_ref().unwrap().survives);
}

#[test]
fn calls_are_stretches_of_the_claims() {
    let picture = Picture::of(made().sent(80, "late", "kit-call-2").evidence());
    let calls = &lane(&picture, "claims").calls;
    let told: Vec<_> = calls
        .iter()
        .map(|call| {
            (
                call.label.as_str(),
                call.from_ns / MS,
                call.to_ns.map(|to| to / MS),
            )
        })
        .collect();
    assert_eq!(told, [("call", 5, Some(60)), ("late", 80, None)]);
    assert!(
        calls[0].text.contains("settled: said code 7"),
        "{}",
        calls[0].text
    );
    assert!(calls[1].text.contains("never settled"));
}

#[test]
fn a_second_answer_is_marked_as_wrong() {
    let picture = Picture::of(made().settled(66, "call", json!({})).evidence());
    let wrong = (66, MarkKind::Wrong, "answered again");
    assert!(marks(lane(&picture, "claims")).contains(&wrong));
}

#[test]
fn a_child_is_marked_with_records_signals_and_its_pipes() {
    let picture = Picture::of(made().evidence());
    assert_eq!(
        marks(lane(&picture, "a")),
        [
            (22, MarkKind::Record, "prompt"),
            (23, MarkKind::Record, "task"),
            (24, MarkKind::Step, "working"),
            (26, MarkKind::Record, "abort"),
            (27, MarkKind::Pipe, "end of input"),
            (28, MarkKind::Signal, "TERM"),
            (29, MarkKind::End, "exit 143"),
        ]
    );
}

#[test]
fn a_signal_comes_from_the_lane_of_its_sender() {
    let stranger = process(
        "child",
        Some("b"),
        50,
        100,
        vec![(
            101,
            Wrote::Signal {
                name: "INT".to_owned(),
                from: Some(999),
            },
        )],
    );
    let made = made()
        .event(
            150,
            What::SubjectSignalled {
                subject: "subject".to_owned(),
                signal: "HUP".to_owned(),
            },
        )
        .journal(stranger);
    let picture = Picture::of(made.evidence());
    let of = |name: &str, label: &str| {
        let marks = &lane(&picture, name).marks;
        let mark = marks.iter().find(|mark| mark.label == label).unwrap();
        (
            mark.from.map(|from| picture.lanes[from].name.as_str()),
            mark.text.as_str(),
        )
    };
    assert_eq!(of("a", "TERM"), (Some("subject"), "TERM from subject"));
    assert_eq!(of("b", "INT"), (None, "INT from process 999"));
    assert_eq!(of("subject", "HUP").0, Some("runner"));
    assert_eq!(of("subject", "input closed").0, Some("runner"));
}

#[test]
fn steps_waits_and_stalls_are_the_runners() {
    let step = What::Step {
        path: "steps[0]".to_owned(),
        step: "call".to_owned(),
    };
    let gave_up = What::GaveUp {
        path: "steps[0]".to_owned(),
        fact: "call.settled".to_owned(),
    };
    let made = made()
        .event(4, step)
        .event(190, gave_up)
        .event(120, What::Stall { ns: ms(30) });
    let picture = Picture::of(made.evidence());
    assert_eq!(
        marks(lane(&picture, "runner")),
        [
            (4, MarkKind::Step, "call"),
            (190, MarkKind::Wrong, "gave up")
        ]
    );
    assert_eq!(
        picture.stalls,
        [Stall {
            from_ns: ms(90),
            to_ns: ms(120)
        }]
    );
}

/// A subject that was started again, and children of both.
#[test]
fn a_subject_that_starts_again_has_a_lane_for_each_life() {
    let started = |pid| What::SubjectStarted {
        subject: "subject".to_owned(),
        pid,
        argv: vec![],
    };
    let exited = || What::SubjectExited {
        subject: "subject".to_owned(),
        code: Some(0),
        signal: None,
    };
    let mut second = process("child", Some("b"), 31, 60, vec![]);
    if let Wrote::Start(start) = &mut second[0].what {
        start.ppid = 11;
    }
    let made = Made::of("[{call: {child: a}}]", "  - call.ok: true")
        .event(0, started(10))
        .event(40, exited())
        .event(50, started(11))
        .event(80, exited())
        .journal(process("child", Some("a"), 30, 20, vec![]))
        .journal(second);
    let picture = Picture::of(made.evidence());
    let lanes: Vec<_> = picture.lanes[2..]
        .iter()
        .map(|lane| (lane.name.as_str(), lane.pid.unwrap()))
        .collect();
    assert_eq!(
        lanes,
        [("subject", 10), ("a", 30), ("subject", 11), ("b", 31)]
    );
    let ends: Vec<_> = picture
        .lanes
        .iter()
        .filter_map(|lane| lane.bar.as_ref())
        .map(|bar| bar.to_ns / MS)
        .collect();
    assert_eq!(ends, [40, 20, 80, 60]);
}

#[test]
fn a_picture_has_bounds_and_says_what_is_left_out() {
    let mut made = made();
    for number in 0..200 {
        let update = What::Update {
            call: "call".to_owned(),
            params: json!({"n": number}),
        };
        made = made.event(10 + number % 40, update);
    }
    for pid in 100..150 {
        made = made.event(90, What::ProcessSeen(Box::new(kernel_process(pid))));
    }
    let picture = Picture::of(made.evidence());
    assert_eq!(picture.lanes.len(), LANES);
    assert!(picture.lanes.iter().all(|lane| lane.marks.len() <= MARKS));
    // 201 marks of the claims, and 56 lanes.
    assert_eq!(picture.left_out, 201 - MARKS + 56 - LANES);
}

#[test]
fn evidence_of_nothing_is_an_empty_picture() {
    let picture = Picture::of(Made::of("[{call: {child: a}}]", "  - call.ok: true").evidence());
    assert_eq!(picture.end_ns, 0);
    assert!(
        picture
            .lanes
            .iter()
            .all(|lane| lane.bar.is_none() && lane.marks.is_empty())
    );
}

#[test]
fn a_picture_is_the_same_after_json() {
    let picture = Picture::of(made().event(120, What::Stall { ns: 5 }).evidence());
    let text = serde_json::to_string(&picture).unwrap();
    assert_eq!(serde_json::from_str::<Picture>(&text).unwrap(), picture);
}
