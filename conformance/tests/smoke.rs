//! `pi-conform smoke` with the real program: it is content with a right adapter, and names each fault of a wrong one in the
//! adapter's own terms.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod real_runs;

use real_runs::{Done, Place, runs};

const REFERENCE: &str = include_str!("../adapters/reference-delegator.yaml");

/// A server in shell that answers the handshake and lists one tool; `on_call` says what it does with a call, `at_end` what
/// when its input has ended.
fn server(before: &str, on_call: &str, at_end: &str) -> String {
    format!(
        r#"{before}
say() {{ printf '%s\n' "$1"; }}
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
{at_end}
"#
    )
}

/// A result whose text is not of a child.
const DONE: &str = r#"say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}""#;

fn smoke(place: &Place, adapter: &str) -> Done {
    // Patience is only spent on what never comes.
    let done = place.pi_conform(&["smoke", "--adapter", adapter, "--patience", "3s"]);
    place.is_tidy();
    done
}

#[test]
fn a_right_adapter_is_called_right() {
    let place = Place::new();
    let done = place.pi_conform(&["smoke"]);
    assert_eq!((done.code, &*done.err), (Some(0), ""), "{}", done.out);
    assert!(
        done.out.ends_with(": the adapter is right\n"),
        "{}",
        done.out
    );
    assert!(
        !done.out.contains('✗') && !done.out.contains('–'),
        "{}",
        done.out
    );
    let done = place.pi_conform(&["smoke", "--format", "json"]);
    let lines: Vec<serde_json::Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 11);
    assert!(
        lines.iter().all(|line| line["outcome"] == "right"),
        "{}",
        done.out
    );
    place.is_tidy();
}

/// One change to the reference's adapter, and what is said about it.
#[test]
fn each_fault_of_an_adapter_is_named_in_its_own_terms() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "tool: delegate\n",
            "tool: delegat\n",
            &[
                "✗ tools        operation `spawn`: the subject has no tool `delegat`",
                "→ did you mean `delegate`?",
            ],
        ),
        (
            "      task: \"{{ task }}\"",
            "      tsak: \"{{ task }}\"",
            &[
                "✗ arguments    operation `spawn`: the tool `delegate` has no argument `tsak`",
                "→ nearest is `task`",
                "✗ arguments    operation `spawn`: argument `task` (string) is required by the schema of `delegate`, but the template does not give it",
                "→ nearest in the template is `tsak`",
                "– answer       the child never started",
            ],
        ),
        (
            "      model: \"{{ model }}\"",
            "      model: 42",
            &[
                "✗ arguments    operation `spawn`: argument `model` is 42, but the schema wants string",
            ],
        ),
        (
            "      task: \"{{ task }}\"",
            "      task: look around",
            &[
                "✗ arguments    operation `spawn`: no argument has `{{ task }}`, so the child would not know what to do",
                "✗ task         the child was given a task without the words that the call carried",
            ],
        ),
        (
            "PI_BINARY: \"{{ child }}\"",
            "PI_BINARY: \"{{ run }}/nowhere/pi\"",
            &[
                "✗ child        the child never started: `pi` on PATH is fake-pi, and `env` of the adapter leads to no other; the subject started no program at all",
            ],
        ),
        (
            "child-mode: rpc",
            "child-mode: json",
            &[
                "✗ child-mode   `child-mode` is `json`, but the child was started in mode `rpc`",
                "→ write `child-mode: rpc`",
            ],
        ),
        (
            "answer: /structuredContent/answer",
            "answer: /structuredContent/anwser",
            &[
                "✗ answer       observation `answer`: `/structuredContent/anwser` is in no result",
                "→ write `answer: /structuredContent/answer`",
            ],
        ),
        (
            "answer: /structuredContent/answer",
            "answer: /structuredContent/outcome",
            &[
                "✗ answer       observation `answer`: `/structuredContent/outcome` has `success`, and the child said `the smoke child has answered`",
            ],
        ),
        (
            "  ok: /structuredContent/ok\n",
            "",
            &[
                "✗ ok           `observations` has no `ok`",
                "→ write `ok: /structuredContent/ok`",
            ],
        ),
        (
            "ok: /structuredContent/ok\n",
            "ok: /isError\n",
            &["✗ ok           observation `ok`: `/isError` is false for a success"],
        ),
        (
            "ok: /structuredContent/ok\n",
            "ok: /structuredContent/outcome\n",
            &[
                "✗ ok           observation `ok`: `/structuredContent/outcome` is `success`, and must be true or false",
            ],
        ),
        (
            "ok: /structuredContent/ok\n",
            "ok: {pointer: /content, value: true}\n",
            &[
                "✗ ok           observation `ok`: `{pointer: /content, value: true}` is true for failures too",
            ],
        ),
        (
            "ok: /structuredContent/ok\n",
            "ok: /structuredContent/okay\n",
            &[
                "✗ ok           observation `ok`: `/structuredContent/okay` is in no result of a success",
            ],
        ),
        (
            "stop-reason: /structuredContent/stopReason",
            "stop-reason: /structuredContent/stop_reason",
            &[
                "✗ observations observation `stop-reason`: `/structuredContent/stop_reason` is in no result",
                "→ nearest is `/structuredContent/stopReason`",
            ],
        ),
    ];
    let place = Place::new();
    for (from, to, said) in cases {
        let text = REFERENCE.replacen(from, to, 1);
        assert_ne!(text, REFERENCE, "{from}");
        place.file("wrong.yaml", &text);
        let done = smoke(&place, "wrong.yaml");
        assert_eq!(done.code, Some(1), "{to}: {done:?}");
        for said in *said {
            assert!(
                done.out.contains(said),
                "{to}: `{said}` is not in\n{}",
                done.out
            );
        }
    }
}

/// Servers that are broken, each in one way.
#[test]
fn each_fault_of_a_server_that_is_no_delegators_is_named() {
    let cases: &[(&str, String, &[&str])] = &[
        (
            "silent",
            "exec sleep 3151".to_owned(),
            &[
                "✗ starts       `command`: it runs, but never answered the handshake",
                "– tools        the handshake was not answered",
            ],
        ),
        (
            "dies",
            "echo no licence >&2; exit 3".to_owned(),
            &[
                "✗ starts       `command`: it ended with code 3 before it answered the handshake; the last of its standard error: no licence",
            ],
        ),
        (
            "talks",
            "echo Hello; exec sleep 3152".to_owned(),
            &[
                "✗ starts       `command`: it runs",
                "→ instead of a message it printed: Hello",
            ],
        ),
        (
            "buffers",
            format!("{{\n{}\n}} > kept; cat kept", server("", DONE, "")),
            &[
                "✗ starts       the handshake was answered only after the subject's input had ended: it does not flush its standard output",
            ],
        ),
        (
            "stays",
            server("", DONE, "exec sleep 3153"),
            &[
                "✗ end          the subject went on after its standard input had ended, and had to be killed",
            ],
        ),
        (
            "leaves",
            server("", "exit 4", ""),
            &[
                "✗ end          the subject ended with code 4 while the session was still open",
                "✗ output       3 of 3 calls were never answered",
            ],
        ),
        (
            "chats",
            server("echo booting", DONE, ""),
            &[
                "✗ output       not JSON",
                ": booting",
                "→ standard output is for messages alone: print to standard error",
            ],
        ),
        (
            "childless",
            server("", &format!("sleep 3154 >/dev/null & {DONE}"), ""),
            &[
                "✗ child        the child never started: `pi` on PATH is fake-pi, and `env` of the adapter leads to no other; the subject started: sleep 3154; its result: done",
                "→ does it start Pi by a path of its own?",
            ],
        ),
    ];
    let place = Place::new();
    std::thread::scope(|scope| {
        for (name, script, said) in cases {
            let place = &place;
            scope.spawn(move || {
                place.file(&format!("{name}.sh"), script);
                place.subject(
                    name,
                    &format!("[sh, {}]", place.path(&format!("{name}.sh")).display()),
                );
                let adapter = format!("{name}.yaml");
                let done = place.pi_conform(&["smoke", "--adapter", &adapter, "--patience", "3s"]);
                assert_eq!(done.code, Some(1), "{name}: {done:?}");
                for said in *said {
                    assert!(
                        done.out.contains(said),
                        "{name}: `{said}` is not in\n{}",
                        done.out
                    );
                }
            });
        }
    });
    place.is_tidy();
    for mark in ["3151", "3152", "3153", "3154"] {
        assert!(!runs(mark), "a subject was left running: {mark}");
    }
}

#[test]
fn a_command_that_cannot_be_started_is_wrong_usage() {
    let place = Place::new();
    place.subject("nowhere", "[no-such-program-anywhere]");
    let done = smoke(&place, "nowhere.yaml");
    assert_eq!(done.code, Some(2));
    assert!(
        done.err
            .contains("there is no program `no-such-program-anywhere`"),
        "{}",
        done.err
    );
}
