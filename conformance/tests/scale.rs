//! Running at scale, on real runs of the bundled reference: parts, rounds, retries, load, expectations, Rust's own harness.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod real_runs;

use std::collections::BTreeSet;

use real_runs::{Done, Place, finish};
use serde_json::Value;

fn events(text: &str, kind: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["type"] == kind)
        .collect()
}

fn finished(text: &str) -> BTreeSet<String> {
    let events = events(text, "finished");
    let names = events.iter().map(|event| event["scenario"].as_str());
    names.map(|name| name.unwrap().to_owned()).collect()
}

/// A subject that serves MCP by itself and answers as its `lines` say: `$n` is the number of its start.
fn flaky_subject(place: &Place, good_from: u32) {
    let script = format!(
        r#"#!/bin/sh
echo start >> "$STARTS"
n=$(wc -l < "$STARTS")
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$1" "$2"; }}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) answer "$id" '{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"f","version":"1"}}}}' ;;
    *'"tools/list"'*) answer "$id" '{{"tools":[{{"name":"work","inputSchema":{{"type":"object"}}}}]}}' ;;
    *'"tools/call"'*) if [ "$n" -ge {good_from} ]; then said=done; else said=nothing; fi
      answer "$id" "{{\"content\":[{{\"type\":\"text\",\"text\":\"$said\"}}]}}" ;;
  esac
done
"#
    );
    place.program("flaky.sh", &script);
    let adapter = place.subject("flaky", "[./flaky.sh]");
    let starts = place.path("starts");
    let env = format!("env: {{STARTS: {}}}\n", starts.display());
    let here = place.path("flaky.sh");
    let adapter = adapter.replace("./flaky.sh", &here.display().to_string());
    place.file("flaky.yaml", &(adapter + &env));
    let scenario = "scenario: now-and-then\nproves: [drain.clean-exit]\nwhy: A test.\nchildren: {a: [{answer: done}]}\n\
        steps: [{call: {child: a}}]\nchecks:\n  - call.text: {contains: done}\n";
    place.file("now-and-then.yaml", scenario);
}

/// Arguments of a run of the flaky subject.
const FLAKY: [&str; 5] = [
    "run",
    "--adapter",
    "flaky.yaml",
    "--scenarios",
    "now-and-then.yaml",
];

fn run(place: &Place, more: &[&str]) -> Done {
    let _ = std::fs::remove_file(place.path("starts"));
    place.pi_conform(&[&FLAKY[..], more].concat())
}

#[test]
fn parts_of_a_run_are_disjoint_and_together_everything() {
    let place = Place::new();
    let all = place.pi_conform(&["list", "--area", "semantics"]);
    let mut together = Vec::new();
    for part in ["hash:1/3", "hash:2/3", "hash:3/3"] {
        let listed = place.pi_conform(&["list", "--area", "semantics", "--partition", part]);
        together.extend(listed.out.lines().map(str::to_owned));
    }
    let mut whole: Vec<String> = all.out.lines().map(str::to_owned).collect();
    together.sort();
    whole.sort();
    assert_eq!(together, whole);
    let wrong = place.pi_conform(&["list", "--partition", "hash:4/3"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.err.contains("parts count from 1 to 3"),
        "{}",
        wrong.err
    );
}

/// Bazel says in the environment which part it wants, and where the report goes; an own `--partition` goes before that.
#[test]
fn bazel_is_understood() {
    let place = Place::new();
    place.scenario("one", "done");
    place.scenario("two", "done");
    let shard = |index: &str, more: &[&str]| {
        let args = [
            "run",
            "--scenarios",
            "one.yaml",
            "--scenarios",
            "two.yaml",
            "--format",
            "json",
        ];
        let mut command = place.command(&[&args[..], more].concat());
        command
            .env("TEST_TOTAL_SHARDS", "3")
            .env("TEST_SHARD_INDEX", index)
            .env("TEST_SHARD_STATUS_FILE", place.path("status"))
            .env("XML_OUTPUT_FILE", place.path("test.xml"));
        finish(command)
    };
    let mut together = BTreeSet::new();
    for index in ["0", "1", "2"] {
        let done = shard(index, &[]);
        assert_eq!(done.code, Some(0), "an empty part is no failure: {done:?}");
        together.extend(finished(&done.out));
    }
    assert_eq!(
        together,
        BTreeSet::from(["one".to_owned(), "two".to_owned()])
    );
    assert!(place.path("status").is_file());
    assert!(place.read("test.xml").contains("<testsuites"));
    assert_eq!(
        finished(&shard("0", &["--partition", "hash:1/1"]).out).len(),
        2
    );
    let wrong = shard("7", &[]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.err.contains("TEST_SHARD_INDEX is 7 of 3 shards"),
        "{}",
        wrong.err
    );
}

/// What passes only when it is run again is told as flaky everywhere, and fails the run unless that is allowed.
#[test]
fn a_flaky_scenario_is_never_hidden() {
    let place = Place::new();
    flaky_subject(&place, 2);
    let plain = run(&place, &[]);
    assert_eq!(plain.code, Some(1), "{plain:?}");
    let reports = [
        "--retries",
        "2",
        "--format",
        "json:run.jsonl",
        "--format",
        "junit:run.xml",
    ];
    let again = run(&place, &reports);
    assert_eq!(again.code, Some(1), "{again:?}");
    for part in [
        "flaky",
        "attempts   fail, pass",
        "1 pass, 0 fail, 1 flaky",
        "not steady",
    ] {
        assert!(
            again.out.contains(part),
            "`{part}` is not in\n{}",
            again.out
        );
    }
    assert!(again.err.starts_with("flaky  "), "{}", again.err);
    let told = &events(&place.read("run.jsonl"), "finished")[0];
    assert_eq!(told["verdict"], "pass");
    assert_eq!(told["flaky"], true);
    let attempts = told["attempts"].as_array().unwrap();
    let verdicts: Vec<&Value> = attempts.iter().map(|attempt| &attempt["verdict"]).collect();
    assert_eq!(verdicts, ["fail", "pass"]);
    assert_eq!(attempts[0]["checks"][0]["kind"], "lost");
    let bundle = attempts[0]["bundle"].as_str().unwrap();
    assert!(std::path::Path::new(bundle).join("bundle.json").is_file());
    assert_eq!(events(&place.read("run.jsonl"), "summary")[0]["flaky"], 1);
    assert!(place.read("run.xml").contains("<flakyFailure"));
    let allowed = run(&place, &["--retries", "2", "--flaky", "pass"]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    assert!(allowed.out.contains("1 flaky"), "{}", allowed.out);
}

#[test]
fn a_scenario_that_fails_each_time_is_a_failure_with_all_its_attempts() {
    let place = Place::new();
    flaky_subject(&place, 99);
    let done = run(
        &place,
        &[
            "--retries",
            "2",
            "--format",
            "json",
            "--format",
            "junit:run.xml",
        ],
    );
    assert_eq!(done.code, Some(1), "{done:?}");
    let told = &events(&done.out, "finished")[0];
    assert_eq!(told["verdict"], "fail");
    assert_eq!(told["attempts"].as_array().unwrap().len(), 3);
    assert_eq!(told.get("flaky"), None);
    assert_eq!(place.read("run.xml").matches("<rerunFailure").count(), 2);
}

#[test]
fn rounds_go_on_until_the_first_failure_and_are_counted() {
    let place = Place::new();
    flaky_subject(&place, 1);
    // From its third start on it says something else.
    let script = place.read("flaky.sh").replace("-ge 1", "-lt 3");
    place.program("flaky.sh", &script);
    let done = run(
        &place,
        &["--repeat", "9", "--until-fail", "--format", "json"],
    );
    assert_eq!(done.code, Some(1), "{done:?}");
    let rounds = &events(&done.out, "rounds")[0];
    assert_eq!(rounds["rounds"], 3);
    assert_eq!(rounds["scenarios"][0]["verdicts"]["pass"], 2);
    assert_eq!(rounds["scenarios"][0]["verdicts"]["fail"], 1);
    assert_eq!(events(&done.out, "summary")[0]["selected"], 3);
}

/// A stress run goes on for its time, at least once through everything, with its order told.
#[test]
fn stress_runs_rounds_under_load_until_its_time_is_over() {
    let place = Place::new();
    place.scenario("one", "done");
    place.scenario("two", "done");
    let args = ["run", "--scenarios", "one.yaml", "--scenarios", "two.yaml"];
    let stress = ["--stress", "4", "--seed", "11", "--under-load"];
    let done = place.pi_conform(&[&args[..], &stress].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out
            .contains("2 of 2 scenarios had one verdict each time"),
        "{}",
        done.out
    );
    assert!(done.out.contains("--seed 11"), "{}", done.out);
    let tally = regex::Regex::new(r"(\d+) rounds?: ").unwrap();
    assert!(tally.is_match(&done.out), "{}", done.out);
    place.is_tidy();
}

/// The helper that makes the load ends when the pipe to it does.
#[test]
fn the_load_ends_with_the_one_that_made_it() {
    let place = Place::new();
    let mut command = place.command(&[conformance::spin::WORD]);
    command.stdin(std::process::Stdio::piped());
    let mut helper = command.spawn().unwrap();
    assert!(helper.try_wait().unwrap().is_none());
    drop(helper.stdin.take());
    assert!(helper.wait().unwrap().success());
}

/// A baseline is written from a run, makes the next one calm, and is left alone when nothing changed.
#[test]
fn a_baseline_is_brought_up_to_date_and_keeps_what_people_wrote() {
    let place = Place::new();
    place.scenario("good", "done");
    place.scenario("bad", "something-else");
    let run = |more: &[&str]| {
        let args = ["run", "--scenarios", "good.yaml", "--scenarios", "bad.yaml"];
        place.pi_conform(&[&args[..], more].concat())
    };
    let ours = "# ours, do not sort\nknown-failures:\n  # was odd\n  - {scenario: good, reason: r}\n  - {scenario: gone, reason: r}\n";
    place.file("known.yaml", ours);
    let first = run(&["--baseline", "known.yaml", "--format", "json:run.jsonl"]);
    assert_eq!(first.code, Some(1), "{first:?}");
    let update = [
        "baseline",
        "update",
        "known.yaml",
        "--from",
        "run.jsonl",
        "--scenarios",
        "good.yaml",
        "--scenarios",
        "bad.yaml",
    ];
    let updated = place.pi_conform(&update);
    assert_eq!(updated.code, Some(0), "{updated:?}");
    assert!(
        updated.err.contains("1 added, 2 removed"),
        "{}",
        updated.err
    );
    let text = place.read("known.yaml");
    assert!(
        text.starts_with("# ours, do not sort\nknown-failures:\n  # was odd\n  - scenario: \"bad\"\n    check: \"checks[0] call.text\"\n    kind: lost\n    reason: \"to be explained: "),
        "{text}"
    );
    let calm = run(&["--baseline", "known.yaml", "--update"]);
    assert_eq!(calm.code, Some(0), "{calm:?}");
    assert_eq!(place.read("known.yaml"), text, "nothing changed");
    let fresh = run(&["--baseline", "fresh.yaml", "--update"]);
    assert_eq!(
        fresh.code,
        Some(1),
        "judged by the baseline as it was: {fresh:?}"
    );
    assert_eq!(run(&["--baseline", "fresh.yaml"]).code, Some(0));
    place.file(
        "over.yaml",
        &text.replace("    kind", "    until: 2020-01-01\n    kind"),
    );
    let over = run(&["--baseline", "over.yaml"]);
    assert_eq!(over.code, Some(1), "{over:?}");
    assert!(
        over.out.contains("it expired on 2020-01-01"),
        "{}",
        over.out
    );
}

#[test]
fn capabilities_narrow_by_file_and_that_is_told() {
    let place = Place::new();
    place.file(
        "less.yaml",
        "lacks:\n  - {capability: cancel, reason: no host has it}\n",
    );
    let args = ["run", "abort-during-tool", "clean-exit", "--capabilities"];
    let done = place.pi_conform(&[&args[..], &["less.yaml", "--format", "json"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let narrowed = &events(&done.out, "run")[0]["narrowed"];
    assert_eq!(narrowed[0]["capability"], "cancel");
    assert_eq!(narrowed[0]["reason"], "no host has it");
    assert!(
        events(&done.out, "summary")[0]["not_applicable"]
            .as_u64()
            .unwrap()
            > 0
    );
    let human = place.pi_conform(&[&args[..], &["less.yaml"]].concat());
    assert!(
        human
            .out
            .contains("narrowed: without `cancel` (no host has it)"),
        "{}",
        human.out
    );
    place.file(
        "wrong.yaml",
        "lacks:\n  - {capability: cancle, reason: r}\n",
    );
    let wrong = place.pi_conform(&[&args[..], &["wrong.yaml"]].concat());
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.err.contains("did you mean `cancel`?"),
        "{}",
        wrong.err
    );
}

#[test]
fn a_frozen_contract_selects_and_the_next_one_can_be_written() {
    let place = Place::new();
    place.scenario("new", "done");
    let frozen = place.pi_conform(&["list", "--contract", "1"]);
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    assert!(frozen.out.contains("process-tree-and-drain/clean-exit\n"));
    let new = place.pi_conform(&["list", "--contract", "1", "--scenarios", "new.yaml"]);
    assert_eq!(new.code, Some(4), "{new:?}");
    let none = place.pi_conform(&["list", "--contract", "99"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(
        none.err.contains("there is no contract 99; there is 1"),
        "{}",
        none.err
    );
    let next = place.pi_conform(&["list", "--what", "contract"]);
    assert!(next.out.contains("\ncontract: 2\n"), "{}", next.out);
    assert!(
        next.out
            .contains("\"process-tree-and-drain/clean-exit\":\n"),
        "{}",
        next.out
    );
}

/// What nextest asks for: a terse list, the ignored ones apart, exactly one by name, others skipped, and a non-zero end.
#[test]
fn the_harness_lists_filters_and_runs_as_cargo_nextest_expects() {
    let place = Place::new();
    place.scenario("good", "done");
    place.scenario("bad", "something-else");
    let text = place.read("good.yaml");
    let text = text.replace(
        "scenario: good",
        "scenario: elsewhere\nneeds: [no-such-thing]",
    );
    place.file("elsewhere.yaml", &text);
    let harness = |args: &[&str]| {
        let files = ["good", "bad", "elsewhere"].map(|name| format!("{name}.yaml"));
        let mut all = vec!["harness"];
        for file in &files {
            all.extend(["--scenarios", file]);
        }
        all.push("--");
        all.extend(args);
        place.pi_conform(&all)
    };
    let folder = place.path("");
    let area = folder.file_name().unwrap().to_string_lossy();
    let lines = |names: &[&str]| {
        let lines: BTreeSet<String> = names
            .iter()
            .map(|name| format!("{area}/{name}: test"))
            .collect();
        lines
    };
    let listed = |args: &[&str]| {
        let done = harness(args);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let terse = ["--list", "--format", "terse"];
    assert_eq!(listed(&terse), lines(&["good", "bad", "elsewhere"]));
    assert_eq!(
        listed(&[&terse[..], &["--ignored"]].concat()),
        lines(&["elsewhere"])
    );
    let good = format!("{area}/good");
    let one = harness(&["--exact", &good, "--nocapture"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    assert!(
        one.out.contains("1 passed; 0 failed; 0 ignored"),
        "{}",
        one.out
    );
    let rest = harness(&["--skip", "bad"]);
    assert_eq!(rest.code, Some(0), "{rest:?}");
    let bad = harness(&["--exact", &format!("{area}/bad")]);
    assert_eq!(bad.code, Some(1), "{bad:?}");
    for part in [
        "call.text contains `something-else`",
        "reproduce  pi-conform run 'bad'",
        "bundle  ",
    ] {
        assert!(bad.out.contains(part), "`{part}` is not in\n{}", bad.out);
    }
}
