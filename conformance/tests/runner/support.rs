//! A stage for the tests: a server's text, an adapter for it, a scenario, and its evidence.

use std::path::Path;
use std::time::{Duration, Instant};

use conformance::adapter::{self, Adapter};
use conformance::evidence::{Evidence, What};
use conformance::runner::{self, RunContext};
use conformance::scenario::{Planned, Scenario};
use indexmap::IndexMap;

/// The suite's own executable.
pub const EXECUTABLE: &str = env!("CARGO_BIN_EXE_pi-conform");

/// Answers the handshake; `tools/call` runs `on_call`, with `$id`; anything else is left to `other`.
pub fn server(on_call: &str) -> String {
    format!(
        r#"
say() {{ printf '%s\n' "$1"; }}
answer() {{ say "{{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"$2\"}}]}}}}"; }}
while IFS= read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%,*}}
  case $line in
    *'"method":"initialize"'*)
      say "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{{\"tools\":{{}}}},\"serverInfo\":{{\"name\":\"small\",\"version\":\"1\"}}}}}}" ;;
    *'"method":"tools/list"'*)
      say "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"tools\":[{{\"name\":\"work\",\"inputSchema\":{{\"type\":\"object\"}}}}]}}}}" ;;
    *'"method":"tools/call"'*)
      {on_call} ;;
  esac
done
"#
    )
}

/// An adapter for a script that lies in `folder`.
pub fn adapter(folder: &Path, script: &str) -> Adapter {
    let path = folder.join("server.sh");
    std::fs::write(&path, script).unwrap();
    let yaml = format!(
        r#"
adapter: small
transport: mcp
command: [sh, {}]
child-mode: rpc
figures: {{grace: 1s, post-exit-drain: 1s, post-answer-drain: 1s, output-cap: 50KiB, extra-text: 4KiB,
  record-cap: 8MiB, stderr-cap: 64KiB, task-limit: 100000, model-limit: 256, patience: 30s}}
profiles: [only]
operations: {{spawn: {{tool: work, arguments: {{task: "{{{{ task }}}}", cwd: "{{{{ cwd }}}}", model: "{{{{ model }}}}"}}}}}}
observations: {{answer: text}}
"#,
        path.display()
    );
    adapter::parse("small.yaml", &yaml).unwrap_or_else(|error| panic!("{error}"))
}

/// The same, that soon loses patience.
pub fn impatient(mut adapter: Adapter) -> Adapter {
    adapter.figures.patience = Some(fake_pi::act::Span(Duration::from_millis(800)));
    adapter
}

/// A scenario ready to run, out of its `steps:`.
pub fn planned(steps: &str) -> Planned {
    planned_with(&format!("steps: {steps}"))
}

/// A scenario out of any of its keys.
pub fn planned_with(keys: &str) -> Planned {
    let yaml = format!("scenario: trial\nwhy: A test.\nchecks: []\n{keys}\n");
    let scenario: Scenario = conformance::yaml::parse("trial.yaml", &yaml)
        .unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    Planned {
        name: "trial".into(),
        area: "tests".into(),
        file: "trial.yaml".into(),
        axes: IndexMap::new(),
        scenario,
    }
}

/// Runs a script under steps.
pub fn run(script: &str, steps: &str) -> Evidence {
    let folder = tempfile::tempdir().unwrap();
    let adapter = adapter(folder.path(), script);
    runner::run(&planned(steps), &adapter, &RunContext::new(EXECUTABLE))
}

/// All events of one sort.
pub fn pick<T>(evidence: &Evidence, pick: impl Fn(&What) -> Option<T>) -> Vec<T> {
    evidence
        .events
        .iter()
        .filter_map(|event| pick(&event.what))
        .collect()
}

/// Texts of the responses, with the calls' names.
pub fn responses(evidence: &Evidence) -> Vec<(String, String)> {
    pick(evidence, |what| match what {
        What::Response {
            call,
            result,
            error,
        } => {
            let text = result
                .as_ref()
                .and_then(|result| result.pointer("/content/0/text")?.as_str());
            let text = text
                .map(str::to_owned)
                .or(error.as_ref().map(ToString::to_string));
            Some((call.clone(), text.unwrap_or_default()))
        }
        _ => None,
    })
}

/// What is wrong with stray lines.
pub fn strays(evidence: &Evidence) -> Vec<String> {
    pick(evidence, |what| match what {
        What::Stray { problem, .. } => Some(problem.clone()),
        _ => None,
    })
}

/// Faults of the harness; a test that expects none says so.
pub fn faults(evidence: &Evidence) -> Vec<String> {
    pick(evidence, |what| match what {
        What::HarnessError { message } => Some(message.clone()),
        _ => None,
    })
}

/// Facts that were given up.
pub fn given_up(evidence: &Evidence) -> Vec<String> {
    pick(evidence, |what| match what {
        What::GaveUp { fact, .. } => Some(fact.clone()),
        _ => None,
    })
}

/// Command lines of what survived the subject.
pub fn survivors(evidence: &Evidence) -> Vec<String> {
    let found = pick(evidence, |what| match what {
        What::Survivors { processes } => Some(processes.clone()),
        _ => None,
    });
    assert_eq!(found.len(), 1, "survivors are told once");
    found
        .concat()
        .iter()
        .map(|process| process.argv.join(" "))
        .collect()
}

/// How the first subject ended: code and signal.
pub fn exit(evidence: &Evidence) -> Option<(Option<i32>, Option<String>)> {
    let found = pick(evidence, |what| match what {
        What::SubjectExited { code, signal, .. } => Some((*code, signal.clone())),
        _ => None,
    });
    found.into_iter().next()
}

/// Waits for a fact.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process with this word in its command line runs.
pub fn runs(word: &str) -> bool {
    conformance::proc::all().into_iter().any(|pid| {
        conformance::proc::argv(pid)
            .iter()
            .any(|arg| arg.contains(word))
            && conformance::proc::stat(pid).is_some_and(|stat| !stat.is_dead())
    })
}
