//! Whether the judge is right about servers that speak plain MCP and nothing of ours: no private notifications, no capabilities
//! under `experimental`.

use serde_json::Value;

use super::place::{Place, text};

pub const SERVER: &str = include_str!("../subjects/mcp_delegator.py");

/// An adapter by hand: what this server promises, and no more.
fn adapter(flag: &str, capabilities: &str) -> String {
    format!(
        r#"adapter: foreign
transport: mcp
command: [python3, "{{{{ here }}}}/mcp_delegator.py"{flag}]
child-mode: json
capabilities: [{capabilities}]
figures: {{grace: 5s, patience: 10s}}
operations: {{spawn: {{tool: ask_agent, arguments: {{prompt: "{{{{ task }}}}", workdir: "{{{{ cwd }}}}"}}}}}}
observations:
  ok: [{{pointer: /isError, not: true}}, {{pointer: /content, value: true}}]
  answer: text
"#
    )
}

/// Scenarios that a delegator with nothing special must pass.
const SELECTION: [&str; 8] = [
    "clean-exit",
    "terminal-answer-captured",
    "no-terminal-answer-fails",
    "provider-error-captured",
    "descendant-holds-stdout",
    "descendants-gone-after-success[home=same-group]",
    "parallel-outputs",
    "term-then-kill",
];

/// Verdicts by scenario, with the exit code.
fn run(place: &Place, names: &[&str]) -> (Vec<(String, String)>, Option<i32>) {
    let mut args = vec!["run", "--adapter", "foreign.yaml", "--format", "json"];
    args.extend(names);
    let output = place.pi_conform(&args);
    let verdicts = text(&output.stdout)
        .lines()
        .filter_map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            let word = |key: &str| Some(event.get(key)?.as_str()?.to_owned());
            Some((word("scenario")?, word("verdict")?))
        })
        .collect();
    (verdicts, output.status.code())
}

pub fn sound_server_passes() {
    let place = Place::with("mcp_delegator.py", SERVER);
    place.file("foreign.yaml", &adapter("", "mcp, cancel"));
    let smoke = place.pi_conform(&["smoke", "--adapter", "foreign.yaml"]);
    assert_eq!(smoke.status.code(), Some(0), "{}", text(&smoke.stdout));
    let (verdicts, code) = run(&place, &SELECTION);
    assert!(verdicts.len() > SELECTION.len(), "{verdicts:?}");
    let wrong: Vec<_> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict != "pass")
        .collect();
    assert!(wrong.is_empty() && code == Some(0), "{code:?} {wrong:?}");
    place.is_tidy();
}

pub fn broken_server_fails() {
    let place = Place::with("mcp_delegator.py", SERVER);
    place.file(
        "foreign.yaml",
        &adapter(", --broken", "mcp, cancel").replace("patience: 10s", "patience: 5s"),
    );
    // The adapter is right; it is the delegator that is not.
    let smoke = place.pi_conform(&["smoke", "--adapter", "foreign.yaml"]);
    assert_eq!(smoke.status.code(), Some(0), "{}", text(&smoke.stdout));
    let names = [
        "clean-exit",
        "descendant-holds-stdout",
        "descendants-gone-after-success[home=same-group]",
        "term-then-kill",
    ];
    let (verdicts, code) = run(&place, &names);
    assert_eq!(code, Some(1));
    for (scenario, verdict) in &verdicts {
        let expected = if scenario == "clean-exit" {
            "pass"
        } else {
            "fail"
        };
        assert_eq!(verdict, expected, "{scenario}");
    }
    assert_eq!(verdicts.len(), names.len());
}

pub fn undeclared_is_not_applicable() {
    let place = Place::with("mcp_delegator.py", SERVER);
    place.file("foreign.yaml", &adapter("", "mcp"));
    let (verdicts, code) = run(
        &place,
        &[
            "term-then-kill",
            "abort-during-model-activity",
            "settles-exactly-once",
        ],
    );
    assert!(!verdicts.is_empty());
    assert!(
        verdicts
            .iter()
            .all(|(_, verdict)| verdict == "not-applicable"),
        "{verdicts:?}"
    );
    assert_eq!(
        code,
        Some(3),
        "a run of which nothing applied is no success"
    );
    place.is_tidy();
}
