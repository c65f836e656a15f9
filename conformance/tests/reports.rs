//! `report`, `compare` and `merge`: what runs have told, told again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod real_runs;

use real_runs::Place;
use serde_json::{Value, json};

/// The first line of a run.
fn run_line(subject: &str, selected: usize) -> Value {
    json!({"type": "run", "format": 1, "suite": "0.1.0", "subject": subject, "about": "x", "selected": selected, "jobs": 1})
}

/// A judged scenario with one check.
fn finished(name: &str, verdict: &str) -> Value {
    json!({
        "type": "finished", "scenario": name, "area": "hand", "axes": {}, "why": "w", "verdict": verdict, "duration_ms": 5,
        "checks": [{"id": "checks[0] call.ok", "proves": ["drain.clean-exit"], "verdict": verdict, "expected": "call.ok is true", "seen": format!("claims: {verdict}")}],
        "reproduce": format!("pi-conform run '{name}'")
    })
}

/// A file of JSON lines, without a summary: as a run leaves it that was cut off.
fn cut_off(place: &Place, file: &str, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.file(file, &text);
}

/// A file of JSON lines of a run that came to its end; `scenarios` are names with their verdicts.
fn written(place: &Place, file: &str, subject: &str, scenarios: &[(&str, &str)]) {
    let mut lines = vec![run_line(subject, scenarios.len())];
    let mut summary = json!({
        "type": "summary", "selected": scenarios.len(), "pass": 0, "fail": 0, "differs": 0, "known_failure": 0, "stale": 0,
        "not_applicable": 0, "no_evidence": 0, "inconclusive": 0, "harness_error": 0
    });
    for (name, verdict) in scenarios {
        lines.push(json!({"type": "started", "scenario": name, "area": "hand"}));
        lines.push(finished(name, verdict));
        let field = verdict.replace('-', "_");
        summary[&field] = json!(summary[&field].as_u64().unwrap() + 1);
    }
    lines.push(summary);
    cut_off(place, file, &lines);
}

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// JSON lines hold all: from them each format comes out as the run itself wrote it.
#[test]
fn a_report_of_json_lines_is_that_of_the_run_byte_by_byte() {
    let place = Place::new();
    place.scenario("good", "done");
    place.scenario("bad", "something-else");
    let formats = [
        "junit", "tap", "markdown", "github", "badge", "html", "json",
    ];
    let mut args = vec![
        "run",
        "--scenarios",
        "good.yaml",
        "--scenarios",
        "bad.yaml",
        "--out",
        "out",
    ];
    let direct: Vec<String> = formats
        .iter()
        .map(|word| format!("{word}:direct.{word}"))
        .collect();
    for format in &direct {
        args.extend(["--format", format]);
    }
    assert_eq!(place.pi_conform(&args).code, Some(1));
    let again: Vec<String> = formats
        .iter()
        .map(|word| format!("{word}:again.{word}"))
        .collect();
    let mut args = vec!["report", "direct.json"];
    for format in &again {
        args.extend(["--format", format]);
    }
    let done = place.pi_conform(&args);
    assert_eq!(done.code, Some(1), "the exit code is the run's: {done:?}");
    assert!(
        done.out.contains("2 scenarios on reference-delegator"),
        "{}",
        done.out
    );
    for word in formats {
        let (direct, again) = (
            place.read(&format!("direct.{word}")),
            place.read(&format!("again.{word}")),
        );
        assert!(!direct.is_empty(), "{word}");
        assert_eq!(direct, again, "{word}");
    }
    let bad = json_lines(&place.read("direct.json"));
    let of = |name: &str| {
        bad.iter()
            .find(|line| line["type"] == "finished" && line["scenario"] == name)
            .unwrap()
    };
    let lanes = of("bad")["picture"]["lanes"].as_array().unwrap();
    let all: Vec<&str> = lanes
        .iter()
        .map(|lane| lane["of"].as_str().unwrap())
        .collect();
    assert!(
        ["runner", "claims", "subject", "child"]
            .iter()
            .all(|of| all.contains(of)),
        "{all:?}"
    );
    assert!(of("good").get("picture").is_none(), "a pass has no picture");
    // The bundle that the run has kept gives the same page too, but for how it was started.
    let done = place.pi_conform(&["report", "out/bad", "--format", "json"]);
    assert_eq!(done.code, Some(1));
    let judged = json_lines(&done.out);
    assert_eq!(judged[1]["picture"], of("bad")["picture"]);
    assert_eq!(judged[1]["checks"], of("bad")["checks"]);
}

/// A reader skips what it does not know, and takes a run that was cut off for what it is: incomplete.
#[test]
fn a_report_skips_what_is_new_and_stands_a_cut_file() {
    let place = Place::new();
    let mut good = finished("good", "pass");
    good["of-tomorrow"] = json!([1]);
    cut_off(
        &place,
        "cut.jsonl",
        &[run_line("s", 3), json!({"type": "of-tomorrow"}), good],
    );
    let text = place.read("cut.jsonl") + "{\"type\":\"finished\",\"scen";
    place.file("cut.jsonl", &text);
    let done = place.pi_conform(&["report", "cut.jsonl"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(
        done.out.contains("1 pass, 0 fail") && done.out.contains("2 of 3 did not run"),
        "{}",
        done.out
    );
}

#[test]
fn what_is_no_run_is_refused_with_file_and_line() {
    let place = Place::new();
    place.file("empty.jsonl", "");
    place.file("report.xml", "<?xml version=\"1.0\"?>\n");
    place.file("other.jsonl", "{\"kind\": \"step\"}\n");
    cut_off(
        &place,
        "late.jsonl",
        &[json!({"type": "run", "format": 2, "of": "tomorrow"})],
    );
    cut_off(
        &place,
        "odd.jsonl",
        &[run_line("s", 1), json!({"type": "finished", "scenario": 7})],
    );
    cut_off(&place, "two.jsonl", &[run_line("s", 1), run_line("s", 1)]);
    written(&place, "good.jsonl", "s", &[("a", "pass")]);
    let more = place.read("good.jsonl") + &place.read("good.jsonl");
    place.file("twice.jsonl", &more);
    place.file("known.yaml", "known-failures: []\n");
    place.folder("folder");
    for (args, said) in [
        (
            &["report", "missing.jsonl"][..],
            "cannot read missing.jsonl",
        ),
        (&["report", "empty.jsonl"], "empty.jsonl holds no events"),
        (
            &["report", "report.xml"],
            "report.xml, line 1: no event of a run",
        ),
        (
            &["report", "other.jsonl"],
            "other.jsonl, line 1: the first event is no `run`",
        ),
        (
            &["report", "late.jsonl"],
            "late.jsonl, line 1: format 2, and this version reads 1",
        ),
        (
            &["report", "odd.jsonl"],
            "odd.jsonl, line 2: `finished` is not as it should be",
        ),
        (
            &["report", "two.jsonl"],
            "two.jsonl, line 2: a second run begins",
        ),
        (
            &["report", "twice.jsonl"],
            "twice.jsonl, line 5: there is more behind the summary",
        ),
        (
            &["report", "good.jsonl", "good.jsonl"],
            "`pi-conform merge` makes one run of several",
        ),
        (
            &["report", "good.jsonl", "folder"],
            "good.jsonl is a file and folder a folder",
        ),
        (&["report", "folder"], "is no bundle"),
        (
            &["report", "good.jsonl", "--baseline", "known.yaml"],
            "`--baseline` is for bundles",
        ),
        (
            &["report", "good.jsonl", "--format", "htm"],
            "nearest is `html`",
        ),
        (&["compare", "good.jsonl", "odd.jsonl"], "odd.jsonl, line 2"),
        (
            &["merge", "good.jsonl", "late.jsonl"],
            "late.jsonl, line 1: format 2",
        ),
    ] {
        let done = place.pi_conform(args);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.err.contains(said), "{args:?}: {}", done.err);
        assert_eq!(done.out, "", "{args:?}");
    }
}

/// A kill matrix has no form in some formats, can be told again in the others, and is neither compared nor merged.
#[test]
fn a_kill_matrix_can_be_told_again() {
    let place = Place::new();
    let mutant = json!({"type": "mutant", "mutant": "no-kill", "about": "x", "breaks": ["drain.term-then-kill"], "killed": false, "scenarios": 2, "killers": [], "others": 0});
    cut_off(&place, "matrix.jsonl", &[run_line("s", 4), mutant]);
    let done = place.pi_conform(&["report", "matrix.jsonl", "--format", "markdown"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.out.contains("| no-kill | survived |"), "{}", done.out);
    for (args, said) in [
        (
            &["report", "matrix.jsonl", "--format", "tap"][..],
            "tap has no form for a matrix; there are human, json, markdown and badge",
        ),
        (
            &["compare", "matrix.jsonl", "matrix.jsonl"],
            "matrix.jsonl is a kill matrix",
        ),
        (
            &["merge", "matrix.jsonl"],
            "matrix.jsonl, line 2: a kill matrix",
        ),
    ] {
        let done = place.pi_conform(args);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(done.err.contains(said), "{}", done.err);
    }
}

#[test]
fn compare_tells_newly_failing_first() {
    let place = Place::new();
    written(
        &place,
        "old.jsonl",
        "before",
        &[
            ("a", "pass"),
            ("b", "fail"),
            ("c", "pass"),
            ("d", "differs"),
            ("gone", "pass"),
            ("e", "fail"),
        ],
    );
    written(
        &place,
        "new.jsonl",
        "after",
        &[
            ("a", "fail"),
            ("b", "pass"),
            ("c", "pass"),
            ("d", "no-evidence"),
            ("e", "fail"),
            ("added", "stale"),
        ],
    );
    let done = place.pi_conform(&["compare", "old.jsonl", "new.jsonl"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let places = [
        "newly failing  2",
        "hand/a  fail, was pass",
        "checks[0] call.ok  fail, was pass",
        "expected  call.ok is true",
        "saw       claims: fail",
        "reproduce  pi-conform run 'a'",
        "hand/added  stale, was not run",
        "newly passing  1",
        "hand/b  pass, was fail",
        "other changes  2",
        "hand/d  no-evidence, was differs",
        "hand/gone  not run, was pass",
        "old  6 scenarios on before, suite 0.1.0",
        "2 newly failing, 1 newly passing, 2 other changes, 2 the same",
    ]
    .map(|part| {
        done.out
            .find(part)
            .unwrap_or_else(|| panic!("no `{part}` in\n{}", done.out))
    });
    assert!(places.is_sorted(), "{}", done.out);
    let done = place.pi_conform(&["compare", "old.jsonl", "new.jsonl", "--format", "json"]);
    assert_eq!(done.code, Some(1));
    let object: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(object["format"], 1);
    assert_eq!(object["newly_failing"][0]["scenario"], "a");
    assert_eq!(object["newly_failing"][0]["checks"][0]["old"], "pass");
    assert_eq!(object["newly_passing"][0]["new"], "pass");
    assert_eq!(object["changed"].as_array().unwrap().len(), 2);
    assert_eq!(object["same"], 2);
}

/// The exit code says whether something newly fails, and whether the run now is whole.
#[test]
fn compare_has_exit_codes() {
    let place = Place::new();
    written(&place, "pass.jsonl", "s", &[("a", "pass"), ("b", "pass")]);
    written(&place, "fail.jsonl", "s", &[("a", "fail"), ("b", "pass")]);
    written(
        &place,
        "known.jsonl",
        "s",
        &[("a", "known-failure"), ("b", "pass")],
    );
    written(
        &place,
        "harness.jsonl",
        "s",
        &[("a", "fail"), ("b", "harness-error")],
    );
    written(&place, "none.jsonl", "s", &[]);
    cut_off(
        &place,
        "cut.jsonl",
        &[run_line("s", 2), finished("a", "pass")],
    );
    let mut other = finished("a", "fail");
    other["checks"][0]["id"] = json!("checks[1] survivors");
    cut_off(&place, "other.jsonl", &[run_line("s", 1), other]);
    for (old, new, code) in [
        ("pass", "pass", 0),
        ("pass", "fail", 1),
        ("fail", "fail", 0),
        ("fail", "pass", 0),
        ("fail", "known", 0),
        ("known", "fail", 1),
        ("fail", "harness", 1),
        ("none", "fail", 1),
        ("pass", "none", 4),
        ("pass", "cut", 3),
        // The scenario failed before, but not in this check.
        ("fail", "other", 1),
    ] {
        let (old, new) = (format!("{old}.jsonl"), format!("{new}.jsonl"));
        let done = place.pi_conform(&["compare", &old, &new]);
        assert_eq!(done.code, Some(code), "{old} {new}: {done:?}");
    }
}

#[test]
fn merge_makes_one_run_of_several() {
    let place = Place::new();
    written(&place, "a.jsonl", "s", &[("a", "pass"), ("both", "fail")]);
    written(
        &place,
        "b.jsonl",
        "s",
        &[("both", "fail"), ("b", "differs")],
    );
    let done = place.pi_conform(&["merge", "a.jsonl", "b.jsonl"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let lines = json_lines(&done.out);
    let all = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!(
        (all("run"), all("started"), all("finished"), all("summary")),
        (1, 3, 3, 1)
    );
    assert_eq!(lines[0]["selected"], 3);
    let last = lines.last().unwrap();
    assert_eq!(
        (
            &last["selected"],
            &last["pass"],
            &last["fail"],
            &last["differs"]
        ),
        (&json!(3), &json!(1), &json!(1), &json!(1))
    );
    // What comes out goes in again.
    place.file("whole.jsonl", &done.out);
    let again = place.pi_conform(&["merge", "whole.jsonl", "--format", "json"]);
    assert_eq!(again.out, done.out);
    let done = place.pi_conform(&["merge", "a.jsonl", "b.jsonl", "--format", "tap"]);
    assert!(done.out.ends_with("1..3\n"), "{}", done.out);
}

/// Rounds of one file are kept; a part that was cut off leaves the whole incomplete.
#[test]
fn merge_keeps_rounds_and_what_is_missing() {
    let place = Place::new();
    written(&place, "rounds.jsonl", "s", &[("a", "pass"), ("a", "pass")]);
    let unmatched =
        json!({"type": "unmatched", "entry": "x / *", "problem": "there is no such scenario"});
    cut_off(
        &place,
        "cut.jsonl",
        &[run_line("s", 3), finished("b", "pass"), unmatched.clone()],
    );
    cut_off(
        &place,
        "same.jsonl",
        &[run_line("s", 1), finished("c", "pass"), unmatched],
    );
    let done = place.pi_conform(&["merge", "rounds.jsonl", "cut.jsonl"]);
    let lines = json_lines(&done.out);
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["selected"], &last["pass"]),
        (&json!(5), &json!(3)),
        "{}",
        done.out
    );
    assert_eq!(
        done.code,
        Some(1),
        "an entry of the baseline matched nothing"
    );
    let done = place.pi_conform(&["merge", "cut.jsonl", "same.jsonl"]);
    assert_eq!(done.out.matches("\"unmatched\"").count(), 1, "{}", done.out);
    written(&place, "fine.jsonl", "s", &[("d", "pass")]);
    cut_off(
        &place,
        "open.jsonl",
        &[run_line("s", 2), finished("e", "pass")],
    );
    assert_eq!(
        place
            .pi_conform(&["merge", "fine.jsonl", "open.jsonl"])
            .code,
        Some(3)
    );
}

#[test]
fn merge_refuses_what_is_not_of_one_run() {
    let place = Place::new();
    written(&place, "a.jsonl", "s", &[("a", "pass")]);
    written(&place, "b.jsonl", "s", &[("x", "pass"), ("a", "fail")]);
    written(&place, "c.jsonl", "other", &[("c", "pass")]);
    let mut newer = run_line("s", 1);
    newer["suite"] = json!("0.2.0");
    cut_off(&place, "d.jsonl", &[newer, finished("d", "pass")]);
    for (file, said) in [
        (
            "b.jsonl",
            "b.jsonl, line 5: hand/a is `fail`, and `pass` in a.jsonl, line 3",
        ),
        (
            "c.jsonl",
            "c.jsonl, line 1: the subject is `other`, and `s` in a.jsonl, line 1",
        ),
        (
            "d.jsonl",
            "d.jsonl, line 1: the suite is `0.2.0`, and `0.1.0` in a.jsonl, line 1",
        ),
    ] {
        let done = place.pi_conform(&["merge", "a.jsonl", file]);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{file}");
        assert!(done.err.contains(said), "{}", done.err);
    }
}
