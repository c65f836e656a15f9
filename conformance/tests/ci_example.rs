//! The workflow in docs/examples runs as it stands: its shell lines, in order, with a small selection.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod real_runs;

use std::path::Path;
use std::process::Command;

use real_runs::{Place, finish};
use serde_json::Value;

const WORKFLOW: &str = include_str!("../../docs/examples/github-actions.yml");

/// The `run:` lines of a job's steps.
fn lines(workflow: &Value, job: &str) -> Vec<String> {
    let steps = workflow["jobs"][job]["steps"].as_array().unwrap();
    let run = steps.iter().filter_map(|step| step["run"].as_str());
    run.map(str::to_owned).collect()
}

#[test]
fn the_workflow_runs_as_it_stands() {
    let place = Place::new();
    let workflow: Value = serde_saphyr::from_str(WORKFLOW).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_pi-conform"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let step = |line: &str, part: &Value| {
        let mut shell = Command::new("bash");
        // As the runner of workflows calls it.
        shell.args(["-e", "-o", "pipefail", "-c", line]);
        for (name, value) in workflow["env"].as_object().unwrap() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            shell.env(name, value);
        }
        shell
            .env("SELECTION", "clean-exit known-profile-runs")
            .env("PART", part.to_string())
            .env("GITHUB_STEP_SUMMARY", place.path("summary.md"))
            .env("PATH", &path);
        let done = finish(place.dressed(shell));
        assert_eq!(done.code, Some(0), "{line}\n{done:?}");
        done
    };
    let parts = workflow["jobs"]["run"]["strategy"]["matrix"]["part"]
        .as_array()
        .unwrap();
    assert_eq!(workflow["env"]["PARTS"], parts.len());
    for part in parts {
        for line in lines(&workflow, "run") {
            step(&line, part);
        }
    }
    for line in lines(&workflow, "report") {
        step(&line, &Value::Null);
    }
    let last = place.read("run.jsonl");
    let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!(last["selected"], 6, "all parts together are the selection");
    assert_eq!(last["pass"], 6);
    assert!(place.read("junit.xml").contains("tests=\"6\""));
    assert!(place.read("summary.md").contains("pi-conform"));
    assert!(place.read("report.html").starts_with("<!"));
}
