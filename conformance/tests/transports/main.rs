//! Is the judge right, whichever way a subject is talked to? For each transport a sound subject must pass and a broken one must fail;
//! and published delegators get the verdicts that they are known to earn.
//!
//! What is not installed (Python, Node 22, Pi, a package) makes its trials show as ignored, with the command that brings it; with
//! `PI_CONFORM_REAL_PI=required` they fail instead.

#![expect(clippy::unwrap_used, reason = "a test that panics has said so")]

mod run;

use libtest_mimic::{Arguments, Trial};

use run::{Expected, Subject, trial};

/// Scenarios that tell sound delegators from broken ones.
const LIFECYCLE: &[&str] = &[
    "clean-exit",
    "output-before-exit-not-lost",
    "utf8-split-across-chunks[every=3]",
    "abnormal-exit-fails[end=code-9]",
    "descendant-holds-stdout",
    "descendants-gone-after-abort",
    "term-then-kill",
    "abort-during-model-activity",
];

/// A broken command: it waits for the end of the child's output, and an abort ends nothing but itself.
const CARELESS: &str = r#"
import json, subprocess, sys
request = json.load(sys.stdin)
done = subprocess.run([sys.argv[1], "--mode", "json", "-p", request["task"]], stdin=subprocess.DEVNULL, capture_output=True)
answer = ""
for line in done.stdout.splitlines():
    record = json.loads(line)
    if record["type"] == "message_end" and record["message"]["role"] == "assistant":
        answer = "".join(part.get("text", "") for part in record["message"]["content"])
print(json.dumps({"ok": True, "answer": answer, "text": answer}))
"#;

const CARELESS_ADAPTER: &str = r#"
adapter: careless
transport: command
command: [python3, "{{ here }}/careless.py", "{{ child }}"]
child-mode: json
capabilities: [cancel]
figures: {patience: 4s}
operations: {spawn: {tool: run, arguments: {task: "{{ task }}"}}}
observations: {ok: /ok, answer: /answer}
"#;

/// What a published delegator earns, on scenarios of the lifecycle.
const PUBLISHED: &[(&str, &[(&str, &str)])] = &[
    (
        "pi-example-subagent",
        &[
            ("clean-exit", "pass"),
            (
                "length-is-not-success[text=The_first_half_of_the]",
                "differs",
            ),
            ("non-object-json-ignored[value=null]", "fail"),
            ("descendant-holds-stdout", "fail"),
            ("abort-during-tool", "fail"),
        ],
    ),
    (
        "pi-subagents-0.49",
        &[
            ("clean-exit", "pass"),
            (
                "length-is-not-success[text=The_first_half_of_the]",
                "differs",
            ),
            ("utf8-split-across-chunks[every=3]", "pass"),
            ("descendant-holds-stdout", "fail"),
            ("term-then-kill", "fail"),
        ],
    ),
    (
        "pi-subagents-0.67",
        &[
            ("clean-exit", "pass"),
            (
                "length-is-not-success[text=The_first_half_of_the]",
                "differs",
            ),
            ("descendant-holds-stdout", "not-applicable"),
        ],
    ),
    (
        "tintinweb-pi-subagents",
        &[
            ("clean-exit", "pass"),
            (
                "length-is-not-success[text=The_first_half_of_the]",
                "differs",
            ),
            ("descendant-holds-stdout", "not-applicable"),
        ],
    ),
];

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    // A trial mostly waits, and the program inside runs several scenarios at once.
    arguments.test_threads.get_or_insert(2);
    let lifecycle = |verdict| Expected::All(LIFECYCLE, verdict);
    let mut trials = vec![
        trial(
            "command: a sound subject passes",
            Subject::Example("delegate-run"),
            lifecycle("pass"),
        ),
        trial(
            "command: a broken subject fails",
            Subject::Written {
                adapter: CARELESS_ADAPTER,
                files: &[("careless.py", CARELESS)],
            },
            Expected::Each(&[
                ("clean-exit", "pass"),
                ("abnormal-exit-fails[end=code-9]", "fail"),
                ("descendant-holds-stdout", "fail"),
                ("abort-during-model-activity", "fail"),
            ]),
        ),
        trial(
            "pi-extension: a sound subject passes",
            Subject::Example("delegate-extension"),
            lifecycle("pass"),
        ),
        trial(
            "pi-extension: a sound subject passes with the older parent",
            Subject::Older("delegate-extension"),
            lifecycle("pass"),
        ),
    ];
    let published = PUBLISHED.iter().map(|(name, expected)| {
        trial(
            &format!("published: {name}"),
            Subject::Published(name),
            Expected::Each(expected),
        )
    });
    trials.extend(published);
    let trials: Vec<Trial> = trials;
    libtest_mimic::run(&arguments, trials).exit_code()
}
