//! Options of `run` on real runs of the bundled reference, and what real runs show about the suite itself.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod real_runs;

use std::process::Command;

use conformance::bundle;
use conformance::evidence::{Evidence, What};
use fake_pi::journal;
use real_runs::Place;
use serde_json::Value;

/// Verdict and checks by scenario, out of JSON lines.
fn verdicts(text: &str) -> Vec<(String, Value, Value)> {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut all: Vec<_> = lines
        .filter(|line| line["type"] == "finished" || line.get("verdict").is_some())
        .map(|line| {
            let name = line["scenario"].as_str().unwrap().to_owned();
            (name, line["verdict"].clone(), line["checks"].clone())
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn rounds_formats_and_kept_evidence() {
    let place = Place::new();
    let done = place.pi_conform(&[
        "run",
        "clean-exit",
        "known-profile-runs",
        "--repeat",
        "2",
        "--out",
        "out",
        "--keep",
        "--format",
        "json:report.json",
        "--format",
        "junit:report.xml",
    ]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out.contains("12 scenarios on reference-delegator"),
        "{}",
        done.out
    );
    assert!(
        place
            .read("report.json")
            .ends_with("\"harness_error\":0,\"flaky\":0}\n")
    );
    assert!(place.read("report.xml").contains("tests=\"12\""));
    for round in ["out/round-1", "out/round-2"] {
        assert!(place.path(round).join("clean-exit/bundle.json").is_file());
    }
    let kept = std::fs::read_dir(place.path("tmp")).unwrap().count();
    assert!(
        kept > 0,
        "`--keep` keeps the folders that the scenarios ran in"
    );
}

/// A bundle of a real run is judged as the run was, check by check.
#[test]
fn judging_the_bundles_of_a_run_gives_its_verdicts_again() {
    let place = Place::new();
    place.scenario("good", "done");
    place.scenario("bad", "something-else");
    let run = place.pi_conform(&[
        "run",
        "--scenarios",
        "good.yaml",
        "--scenarios",
        "bad.yaml",
        "--out",
        "out",
        "--keep",
        "--format",
        "json",
    ]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let again = place.pi_conform(&["judge", "out", "--format", "json"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    let told = verdicts(&run.out);
    assert_eq!(told.len(), 2, "{}", run.out);
    assert_eq!(verdicts(&again.out), told);
}

/// Only failures are kept; `--failed` repeats just those, and the line that reproduces one does.
#[test]
fn failures_are_kept_repeated_and_reproduced() {
    let place = Place::new();
    place.scenario("good", "done");
    place.scenario("bad", "something-else");
    let args = [
        "run",
        "--scenarios",
        "good.yaml",
        "--scenarios",
        "bad.yaml",
        "--out",
        "out",
    ];
    let done = place.pi_conform(&args);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(place.path("out/bad/bundle.json").is_file());
    assert!(!place.path("out/good").exists());
    place.is_tidy();
    let area = place
        .path("")
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert_eq!(
        done.err,
        format!("fail  {area}/bad\n"),
        "progress in a pipe"
    );
    let mut failed = args.to_vec();
    failed.push("--failed");
    let again = place.pi_conform(&failed);
    assert!(again.out.contains("1 scenario on"), "{}", again.out);
    let line = done
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("reproduce  "));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_pi-conform"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", line.unwrap()]).env("PATH", path);
    let reproduced = real_runs::finish(place.dressed(shell));
    assert_eq!(reproduced.code, Some(1), "{reproduced:?}");
    assert!(
        reproduced.out.contains("1 scenario on"),
        "{}",
        reproduced.out
    );
    assert!(
        reproduced
            .out
            .contains("call.text contains `something-else`"),
        "{}",
        reproduced.out
    );
}

/// A scenario with axis values is named in the line that reproduces it so that exactly it runs.
#[test]
fn a_name_with_axis_values_selects_exactly_one() {
    let place = Place::new();
    let done = place.pi_conform(&["run", "known-profile-runs[profile=oracle]"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("1 scenario on"), "{}", done.out);
    place.is_tidy();
}

/// In a pipe a long run says now and then how far it is; with `--verbose` every scenario has its line in the report.
#[test]
fn progress_in_a_pipe_is_plain_lines() {
    let place = Place::new();
    let rounds = ["run", "clean-exit", "--repeat", "26"];
    let done = place.pi_conform(&rounds);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.err, "25 of 26 scenarios, 0 not as expected\n");
    let mut verbose = rounds.to_vec();
    verbose.push("--verbose");
    let done = place.pi_conform(&verbose);
    assert_eq!(done.err, "");
    assert_eq!(
        done.out
            .matches("process-tree-and-drain/clean-exit")
            .count(),
        26
    );
}

/// The kernel saw, as real processes, exactly those that the fakes' journals tell of: nothing is a pretence.
// shows: hermetic.real-processes
#[test]
fn scenarios_of_the_process_tree_run_real_processes() {
    let place = Place::new();
    let done = place.pi_conform(&[
        "run",
        "descendants-gone-after-success",
        "own-process-group",
        "--out",
        "out",
        "--keep",
    ]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut compared = 0;
    for entry in std::fs::read_dir(place.path("out")).unwrap().flatten() {
        if !entry.path().is_dir() {
            continue;
        }
        let evidence: Evidence = bundle::read(&entry.path()).unwrap();
        let seen: Vec<i32> = evidence
            .events
            .iter()
            .filter_map(|event| match &event.what {
                What::ProcessSeen(process) => Some(process.pid),
                _ => None,
            })
            .collect();
        for entry in evidence.journals.iter().flatten() {
            let journal::What::Start(start) = &entry.what else {
                continue;
            };
            if start.role != "child" {
                continue;
            }
            let pid = entry.pid;
            assert!(
                seen.contains(&pid),
                "the kernel never showed {pid}: {seen:?}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 2, "{compared} processes compared");
}

/// The suite needs no Pi: where `pi` and `node` would leave a trace if anybody ran them, scenarios pass and there is none.
// shows: hermetic.real-pi-optional
#[test]
fn no_real_pi_is_needed_nor_run() {
    let place = Place::new();
    place.folder("tools");
    let trace = place.path("trace");
    for name in ["pi", "node"] {
        let script = format!("#!/bin/sh\necho {name} >> '{}'\nexit 1\n", trace.display());
        place.program(&format!("tools/{name}"), &script);
    }
    let mut command = place.command(&["run", "--area", "semantics"]);
    command.env(
        "PATH",
        format!("{}:/usr/bin:/bin", place.path("tools").display()),
    );
    let done = real_runs::finish(command);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!trace.exists(), "{}", place.read("trace"));
}

/// Every requirement of tier `core` and of the system `delegator` is shown, or open with a reason.
#[test]
fn every_requirement_that_binds_us_is_shown_or_open() {
    let place = Place::new();
    let done = place.pi_conform(&["coverage", "--format", "json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let table: Value = serde_json::from_str(&done.out).unwrap();
    let rows = table["requirements"].as_array().unwrap();
    let binds = |row: &&Value| {
        let systems = row["systems"].as_array().unwrap();
        row["tier"] == "core" || systems.iter().any(|system| system == "delegator")
    };
    let missing: Vec<&str> = rows
        .iter()
        .filter(binds)
        .filter(|row| row["shown_by"].as_array().unwrap().is_empty() && row["open"].is_null())
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        missing,
        Vec::<&str>::new(),
        "shown by nothing, and not in scenarios/open.yaml"
    );
    assert!(rows.iter().filter(binds).count() >= 166);
}
