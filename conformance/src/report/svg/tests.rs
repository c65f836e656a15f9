//! Drawings: nothing over a label, nothing outside, and every text harmless.

use super::*;
use crate::check::picture::Stall;

const MS: u64 = 1_000_000;

fn mark(at: u64, kind: MarkKind, label: &str) -> Mark {
    Mark {
        at_ns: at * MS,
        kind,
        label: label.to_owned(),
        text: format!("{label} in full"),
        from: None,
    }
}

fn lane(of: LaneOf, name: &str, life: Option<(u64, u64)>) -> Lane {
    Lane {
        of,
        name: name.to_owned(),
        pid: life.map(|_| 7),
        depth: 0,
        bar: life.map(|(from, to)| Bar {
            from_ns: from * MS,
            to_ns: to * MS,
            survives: false,
            ended: None,
        }),
        calls: vec![],
        marks: vec![],
    }
}

/// A crowd at the begin, eight seconds of nothing, a crowd at the end, and a survivor.
fn crowded() -> Picture {
    let mut child = lane(LaneOf::Child, "a", Some((30, 8100)));
    for at in 0..12 {
        child.marks.push(mark(
            31 + at * 2,
            MarkKind::Record,
            "a record of some length",
        ));
        child
            .marks
            .push(mark(8050 + at * 3, MarkKind::Signal, "TERM"));
    }
    let mut helper = lane(LaneOf::Descendant, "helper", Some((60, 8200)));
    if let Some(bar) = &mut helper.bar {
        bar.survives = true;
    }
    let mut claims = lane(LaneOf::Claims, "claims", None);
    for (from, to) in [(5, Some(40)), (6, Some(8090)), (50, None)] {
        claims.calls.push(Stretch {
            from_ns: from * MS,
            to_ns: to.map(|to| to * MS),
            label: "call".to_owned(),
            text: "call settled".to_owned(),
        });
    }
    Picture {
        end_ns: 8200 * MS,
        lanes: vec![claims, child, helper],
        stalls: vec![Stall {
            from_ns: 70 * MS,
            to_ns: 80 * MS,
        }],
        left_out: 0,
    }
}

/// Boxes of all labels that are drawn: from, to, baseline.
fn labels(svg: &str) -> Vec<(f64, f64, f64)> {
    let texts = regex::Regex::new(
        r#"class="(?:label|calltext)" x="([\d.]+)" y="([\d.]+)"(?: text-anchor="(\w+)")?>([^<]*)<"#,
    )
    .unwrap();
    texts
        .captures_iter(svg)
        .map(|found| {
            let number = |at: usize| found[at].parse::<f64>().unwrap();
            let (x, wide) = (number(1), rows::width(&found[4]));
            match found.get(3).map(|anchor| anchor.as_str()) {
                Some("end") => (x - wide, x, number(2)),
                _ => (x, x + wide, number(2)),
            }
        })
        .collect()
}

#[test]
fn no_label_lies_over_another_or_outside() {
    let svg = draw(&crowded(), "t");
    let labels = labels(&svg);
    assert!(labels.len() > 15, "{} labels", labels.len());
    for (at, one) in labels.iter().enumerate() {
        assert!(one.0 >= 0.0 && one.1 <= WIDTH, "{one:?} is outside");
        for other in &labels[at + 1..] {
            let apart = (one.2 - other.2).abs() >= 10.0 || one.1 <= other.0 || other.1 <= one.0;
            assert!(apart, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn a_long_time_without_events_is_cut_short_and_says_so() {
    let svg = draw(&crowded(), "t");
    assert_eq!(svg.matches(r#"class="break""#).count(), 2);
    assert!(svg.contains("nothing happened for 7\u{202f}990 ms"));
    let axis = Axis::of(&crowded(), LEFT, RIGHT);
    assert!(
        axis.x(53 * MS) - axis.x(31 * MS) > 60.0,
        "what is crowded has room"
    );
    assert_eq!(axis.x(0), LEFT);
    assert!((axis.x(8200 * MS) - RIGHT).abs() < 0.01);
    assert!((axis.x(u64::MAX) - RIGHT).abs() < 0.01);
    let mut last = 0.0;
    for t in (0..8200).map(|ms| axis.x(ms * MS)) {
        assert!(t >= last, "time goes to the right");
        last = t;
    }
}

#[test]
fn ticks_are_round_and_apart() {
    for end in [1, 7, 40, 999, 8200, 123_456] {
        let picture = Picture {
            end_ns: end * MS,
            ..Picture::default()
        };
        let ticks = Axis::of(&picture, LEFT, RIGHT).ticks();
        assert!((2..=14).contains(&ticks.len()), "{end} ms: {ticks:?}");
        for pair in ticks.windows(2) {
            assert!(pair[1].0 - pair[0].0 > 60.0, "{ticks:?}");
        }
    }
}

#[test]
fn times_are_told_with_no_more_places_than_are_needed() {
    for (ns, told) in [
        (0, "0 ms"),
        (250_000, "0.25 ms"),
        (2_500_000, "2.5 ms"),
        (40 * MS, "40 ms"),
        (12_345 * MS, "12\u{202f}345 ms"),
    ] {
        assert_eq!(ms(ns), told);
    }
}

#[test]
fn a_survivor_runs_out_of_the_picture_in_the_colour_of_failures() {
    let svg = draw(&crowded(), "t");
    let bar = svg.split("bar survives").nth(1).unwrap();
    let number = |name: &str| {
        let rest = bar.split(&format!("{name}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!((number("x") + number("width") - WIDTH).abs() < 0.2);
    assert!(svg.contains("alive at the end: helper"));
}

#[test]
fn texts_are_harmless() {
    let mut picture = crowded();
    let bad = "</title><script>x</script>\u{1b}\"'&\0\u{202e}";
    for lane in &mut picture.lanes {
        lane.name = bad.to_owned();
        for mark in &mut lane.marks {
            mark.label = bad.to_owned();
            mark.text = bad.to_owned();
        }
        for call in &mut lane.calls {
            call.label = bad.to_owned();
            call.text = bad.to_owned();
        }
    }
    let svg = draw(&picture, "t");
    assert!(!svg.contains("<script") && !svg.contains("</script"));
    assert!(!svg.chars().any(|c| c.is_control() || c == '\u{202e}'));
    assert_eq!(
        svg.matches("<title").count(),
        svg.matches("</title>").count()
    );
}

#[test]
fn an_empty_picture_and_one_without_length_can_be_drawn() {
    for picture in [
        Picture::default(),
        Picture {
            lanes: vec![lane(LaneOf::Subject, "subject", Some((0, 0)))],
            ..Picture::default()
        },
    ] {
        let svg = draw(&picture, "t");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
