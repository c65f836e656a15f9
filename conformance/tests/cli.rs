//! The command line as a user meets it: exit codes, messages, formats. Nothing here starts a subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use assert_cmd::Command;
use conformance::bundle;
use conformance::check;
use conformance::evidence::{Event, Evidence, FORMAT, Header, What};
use conformance::verdict::Verdict;
use indexmap::IndexMap;
use predicates::prelude::*;
use serde_json::{Value, json};

fn pi_conform(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::new(env!("CARGO_BIN_EXE_pi-conform"))
        .args(args)
        .assert()
}

fn stdout(assert: assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// What is wrong with the arguments is one message that names the nearest right word, and exit code 2.
#[test]
fn wrong_usage_is_told_with_the_nearest_right_word() {
    for (args, said) in [
        (
            &["--adapter", "reference-delegtor"][..],
            "`reference-delegator`",
        ),
        (
            &["run", "clean-exti"],
            "no scenario is called `clean-exti`; nearest is `clean-exit`",
        ),
        (&["coverge"], "nearest is the command `coverage`"),
        (
            &["run", "--requirement", "drain.clean-exti"],
            "nearest is `drain.clean-exit`",
        ),
        (&["run", "--area", "framin"], "nearest is `framing`"),
        (&["run", "--format", "jsn"], "nearest is `json`"),
        (
            &["run", "--format", "json", "--format", "junit"],
            "only one report can go to standard output",
        ),
        (
            &["run", "clean-exit", "--failed"],
            "`--failed` needs `--out DIR`",
        ),
        (
            &["run", "clean-exit", "--baseline", "/nonexistent/b.yaml"],
            "/nonexistent/b.yaml",
        ),
        (
            &["run", "--scenarios", "/nonexistent/s.yaml"],
            "/nonexistent/s.yaml",
        ),
        (&["run", "--jobs", "0"], "--jobs"),
        (
            &["why", "drain.clean-exti"],
            "nearest is `drain.clean-exit`",
        ),
        (
            &["coverage", "--system", "delegatr"],
            "nearest is `delegator`",
        ),
        (&["judge", "/nonexistent"], "is no bundle"),
        (
            &["mutants", "no-such-mutant"],
            "no mutant is called `no-such-mutant`",
        ),
        (&["schema", "scenaro"], "scenario"),
    ] {
        let assert = pi_conform(args).code(2);
        assert!(
            assert.get_output().stdout.is_empty(),
            "{args:?} wrote to standard output"
        );
        assert.stderr(predicate::str::contains(said));
    }
}

#[test]
fn an_empty_selection_has_its_own_exit_code() {
    pi_conform(&["run", "--area", "cards"])
        .code(4)
        .stderr("pi-conform: nothing was selected\n");
    pi_conform(&["list", "--area", "cards"]).code(4);
}

#[test]
fn help_and_version_are_no_errors() {
    pi_conform(&["--help"])
        .code(0)
        .stdout(predicate::str::contains("mutants"));
    pi_conform(&["--version"])
        .code(0)
        .stdout(predicate::str::starts_with("pi-conform "));
    pi_conform(&["completions", "bash"])
        .code(0)
        .stdout(predicate::str::contains("pi-conform"));
}

#[test]
fn every_schema_is_a_json_schema() {
    for of in [
        "script",
        "journal",
        "scenario",
        "adapter",
        "bundle",
        "evidence",
        "event",
        "comparison",
    ] {
        let schema: Value =
            serde_json::from_str(&stdout(pi_conform(&["schema", of]).code(0))).unwrap();
        assert!(schema.get("$schema").is_some(), "{of}");
    }
}

#[test]
fn why_tells_the_requirement_and_what_shows_it() {
    let text = stdout(pi_conform(&["why", "drain.clean-exit"]).code(0));
    assert!(
        text.contains("settles at once, with no forced cleanup reported"),
        "{text}"
    );
    assert!(
        text.contains("scenario process-tree-and-drain/clean-exit"),
        "{text}"
    );
}

#[test]
fn coverage_is_one_object_over_the_whole_catalogue() {
    let object: Value = serde_json::from_str(&stdout(
        pi_conform(&["coverage", "--format", "json"]).code(0),
    ))
    .unwrap();
    let rows = object["requirements"].as_array().unwrap();
    assert_eq!(rows.len(), 1356);
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["id", "area", "systems", "tier", "level", "shown_by", "open"]
    );
    pi_conform(&["coverage", "--tier", "core"])
        .code(0)
        .stdout(predicate::str::contains("tier core"));
}

#[test]
fn list_tells_scenarios_in_lines() {
    let text = stdout(pi_conform(&["list", "clean-exit"]).code(0));
    assert_eq!(text, "process-tree-and-drain/clean-exit\n");
    let text = stdout(pi_conform(&["list", "--area", "framing", "--format", "json"]).code(0));
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["area"], "framing");
        assert!(!row["proves"].as_array().unwrap().is_empty(), "{line}");
    }
}

#[test]
fn the_scenarios_that_the_program_carries_have_no_mistakes() {
    pi_conform(&["lint"])
        .code(0)
        .stdout(predicate::str::contains(" 0 problems"));
}

#[test]
fn lint_names_file_check_and_the_nearest_right_word() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    let text = "scenario: wrong\nproves: [drain.clean-exti]\nwhy: w\nchildren: {a: [{answer: x}]}\nsteps: [{call: {child: a}}]\nchecks:\n  - call.anwser: x\n";
    std::fs::write(&file, text).unwrap();
    pi_conform(&["lint", file.to_str().unwrap()])
        .code(1)
        .stderr(predicate::str::contains("checks[0] `call.anwser`"))
        .stderr(predicate::str::contains("nearest is `answer`"))
        .stderr(predicate::str::contains("nearest is `drain.clean-exit`"));
}

/// A call of the bundled reference's adapter that settled with `ok`, as a bundle in `folder`.
fn evidence(name: &str, ok: bool) -> Evidence {
    let text = "scenario: made\nproves: [drain.clean-exit]\nwhy: It matters.\nsteps: [{call: {}}]\nchecks:\n  - call.ok: true\n  - call.settles: {after: call.sent, within: grace}\n";
    let loaded = conformance::scenario::parse("scenarios/hand/made.yaml", text).unwrap();
    let header = Header {
        format: FORMAT,
        name: name.to_owned(),
        area: "hand".to_owned(),
        scenario: loaded.scenario,
        adapter: conformance::adapter::load("reference-delegator").unwrap(),
        axes: IndexMap::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        folders: IndexMap::new(),
        reproduce: format!("pi-conform run '{name}'"),
    };
    let subject = || "subject".to_owned();
    let call = || "call".to_owned();
    let sent = What::CallSent {
        call: call(),
        subject: subject(),
        id: 1,
        child: None,
        word: "kit-call-1".to_owned(),
        tool: "delegate".to_owned(),
        arguments: json!({}),
        task_sha256: "abc".to_owned(),
        task_bytes: 3,
    };
    let result = json!({"content": [], "structuredContent": {"ok": ok}});
    let events = [
        What::SubjectStarted {
            subject: subject(),
            pid: 10,
            argv: vec![],
        },
        What::Initialized {
            subject: subject(),
            result: json!({}),
        },
        sent,
        What::Response {
            call: call(),
            result: Some(result),
            error: None,
        },
        What::InputClosed { subject: subject() },
        What::SubjectExited {
            subject: subject(),
            code: Some(0),
            signal: None,
        },
        What::Survivors { processes: vec![] },
        What::End,
    ];
    let at = |(index, what)| Event {
        t_ns: 1_000_000 * (index as u64 + 1),
        what,
    };
    Evidence {
        header,
        events: events.into_iter().enumerate().map(at).collect(),
        journals: vec![],
        stderr: IndexMap::from([(subject(), "a warning\n".to_owned())]),
    }
}

fn write(folder: &Path, evidence: &Evidence) {
    let path = folder.join(bundle::folder_name(&evidence.header.name));
    std::fs::create_dir_all(&path).unwrap();
    bundle::write(&path, evidence).unwrap();
}

/// A bundle on disk is judged as the evidence in memory was, check by check.
#[test]
fn judging_a_bundle_gives_the_verdict_of_the_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let made = [evidence("good", true), evidence("bad[cut=7]", false)];
    for evidence in &made {
        write(folder.path(), evidence);
    }
    let path = folder.path().to_str().unwrap();
    let text = stdout(pi_conform(&["judge", path, "--format", "json"]).code(1));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for evidence in &made {
        let verdict = check::judge(evidence);
        let line = lines
            .iter()
            .find(|line| line["scenario"] == evidence.header.name.as_str())
            .unwrap();
        assert_eq!(
            line["checks"],
            serde_json::to_value(&verdict.checks).unwrap()
        );
        assert_eq!(line["verdict"], verdict.verdict.word());
    }
    assert_eq!(check::judge(&made[0]).verdict, Verdict::Pass);
    assert_eq!(
        text.lines().last().unwrap(),
        r#"{"type":"summary","selected":2,"pass":1,"fail":1,"differs":0,"known_failure":0,"stale":0,"not_applicable":0,"no_evidence":0,"inconclusive":0,"harness_error":0,"flaky":0}"#
    );
}

#[test]
fn a_failure_is_told_in_full_and_reports_go_to_files() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &evidence("bad[cut=7]", false));
    let path = folder.path().join("bad[cut=7]");
    let xml = format!("junit:{}", folder.path().join("report.xml").display());
    let text = stdout(pi_conform(&["judge", path.to_str().unwrap(), "--format", &xml]).code(1));
    for part in [
        "fail  hand/bad[cut=7]",
        "requirement  drain.clean-exit: A child that answers",
        "expected     call.ok is true",
        "saw          claims: call.ok is false",
        "reproduce  pi-conform run 'bad[cut=7]'",
        "not all is as it must be",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colours in a pipe");
    let xml = std::fs::read_to_string(folder.path().join("report.xml")).unwrap();
    assert!(xml.contains("<testcase name=\"bad[cut=7]\""), "{xml}");
}

#[test]
fn a_baseline_makes_a_known_failure_calm_and_cannot_rot() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &evidence("bad[cut=7]", false));
    write(folder.path(), &evidence("good", true));
    let path = folder.path().to_str().unwrap();
    let baseline = folder.path().join("known.yaml");
    let with = |entries: &str| {
        std::fs::write(&baseline, format!("known-failures:\n{entries}")).unwrap();
        pi_conform(&["judge", path, "--baseline", baseline.to_str().unwrap()])
    };
    let known = "  - {scenario: 'bad[cut=7]', check: 'checks[0] call.ok', reason: issue 41}\n";
    with(known)
        .code(0)
        .stdout(predicate::str::contains("(known: issue 41)"));
    let stale = "  - {scenario: good, check: 'checks[0] call.ok', reason: issue 40}\n";
    with(&format!("{known}{stale}"))
        .code(1)
        .stdout(predicate::str::contains("stale"));
    let unmatched = "  - {scenario: godo, reason: issue 39}\n";
    with(&format!("{known}{unmatched}"))
        .code(1)
        .stdout(predicate::str::contains("nearest is `good`"));
    with("  - {scenario: good}\n")
        .code(2)
        .stderr(predicate::str::contains("reason"));
}

#[test]
fn a_bundle_of_a_later_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bundle.json"), r#"{"format": 99}"#).unwrap();
    pi_conform(&["judge", folder.path().to_str().unwrap()])
        .code(2)
        .stderr(predicate::str::contains("format 99"));
}
