//! The MCP surface, through the real program with a shell script for a child.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use reference::profile::{BUNDLED, Registry};
use serde_json::{Value, json};

mod ending;
#[path = "../support/mod.rs"]
mod support;
use support::{Place, Server, call, cancel, definition, initialize, not_executable, runs};

/// What a result says in data: outcome and reason.
fn verdict(result: &Value) -> (&str, &str) {
    let details = &result["structuredContent"];
    let ok = details["outcome"] == "success";
    assert_eq!(
        (&details["ok"], &result["isError"]),
        (&json!(ok), &json!(!ok)),
        "{result}"
    );
    (
        details["outcome"].as_str().unwrap(),
        details["reason"].as_str().unwrap(),
    )
}

fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    blocks
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

fn document(name: &str) -> String {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs")
            .join(name),
    )
    .unwrap()
}

/// The words in backquotes at the start of each row of the table below `heading`.
fn documented<'a>(text: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let (_, table) = text.split_once(heading).expect(heading);
    let rows = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.strip_prefix("| ")?.split_once(" |"))
        .flat_map(|(first, _)| first.split('`').skip(1).step_by(2))
        .collect()
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

// shows: launch.one-parent-tool, hermetic.documentation-truthful, job.no-background-in-v1, config.no-dynamic-reload
// shows: launch.schema-no-thinking-or-deadline, deadline.profile-controlled
#[test]
fn there_is_one_tool_and_the_documents_describe_it() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    let tools = server.tools();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    let tool = &tools[0];
    assert_eq!(tool["name"], "delegate");
    let properties = &tool["inputSchema"]["properties"];
    let parameters = "| parameter | needed | meaning |";
    assert_eq!(
        keys(properties),
        BTreeSet::from(["task", "profile", "cwd", "model"])
    );
    assert_eq!(
        keys(properties),
        documented(&document("delegate.md"), parameters)
    );
    assert_eq!(tool["inputSchema"]["required"], json!(["task", "profile"]));
    assert_eq!(tool["inputSchema"]["additionalProperties"], false);
    assert_eq!(properties["profile"]["enum"], json!(BUNDLED));
    assert_eq!(properties["task"]["maxLength"], 100_000);
    let fields = "| field of `structuredContent` | meaning |";
    let document = document("mcp.md");
    let described: BTreeSet<_> = documented(&document, fields);
    assert_eq!(keys(&tool["outputSchema"]["properties"]), described);
}

// shows: config.schema-reflects-registry
#[test]
fn the_tool_shows_the_profiles_in_force() {
    let place = Place::new();
    let mut scout = definition("inherit");
    scout["description"] = "Another scout.".into();
    place.user_config(
        json!({"profiles": {"scout": scout, "scribe": definition("x"), "worker": null}})
            .to_string(),
    );
    let mut server = Server::start(place.command(&["mcp"]));
    let tools = server.tools();
    let profile = &tools[0]["inputSchema"]["properties"]["profile"];
    assert_eq!(
        profile["enum"],
        json!(["scout", "reviewer", "oracle", "tester", "scribe"])
    );
    assert_eq!(
        profile["oneOf"][0],
        json!({"const": "scout", "description": "Another scout."})
    );
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("- scribe: Does something.") && !description.contains("worker"));
    // The file changes; the session does not.
    place.user_config("{");
    assert_eq!(server.tools(), tools);
    assert_eq!(
        verdict(&server.call(1, json!({"task": "t", "profile": "scribe"}))),
        ("success", "")
    );
    let refused = server.call(2, json!({"task": "t", "profile": "worker"}));
    assert_eq!(verdict(&refused), ("refused", "invalid-arguments"));
}

// shows: launch.known-profile-runs, launch.argv-profile-contract, launch.argv-isolation, launch.cwd-default
// shows: launch.test-binary-override, profile.five-bundled, launch.fresh-child-per-call
#[test]
fn every_profile_runs_with_its_own_command_line() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    let registry = Registry::bundled();
    for (number, name) in (1..).zip(BUNDLED) {
        let result = server.call(number, json!({"task": "look", "profile": name}));
        assert_eq!(
            (verdict(&result), text(&result).as_str()),
            (("success", ""), "answer to look")
        );
        assert_eq!(result["structuredContent"]["profile"], name);
        let launches = place.launches();
        assert_eq!(launches.len(), number as usize);
        let launch = launches.last().unwrap();
        let expected: Vec<_> = registry.get(name).unwrap().arguments(None);
        assert_eq!(
            launch
                .argv
                .iter()
                .map(Into::into)
                .collect::<Vec<std::ffi::OsString>>(),
            expected
        );
        assert_eq!(Path::new(&launch.cwd), place.path("project"));
    }
}

// shows: launch.cwd-honoured
#[test]
fn a_call_may_choose_its_folder() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    fs::create_dir_all(place.path("project/sub dir")).unwrap();
    for (number, cwd) in [
        (1, "sub dir".to_owned()),
        (2, place.path("home").display().to_string()),
    ] {
        let result = server.call(number, json!({"task": "t", "profile": "scout", "cwd": cwd}));
        assert_eq!(verdict(&result), ("success", ""));
    }
    let cwds: Vec<_> = place
        .launches()
        .into_iter()
        .map(|launch| launch.cwd)
        .collect();
    assert_eq!(
        cwds,
        [place.path("project/sub dir"), place.path("home")].map(|path| path.display().to_string())
    );
}

// shows: launch.task-missing-rejected, launch.task-blank-rejected, launch.task-oversized-rejected
// shows: launch.profile-unknown-rejected, launch.cwd-nonexistent-rejected, launch.cwd-not-directory-rejected
// shows: launch.model-override-invalid-rejected, deadline.profile-controlled
#[test]
fn what_is_refused_starts_nothing() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    let long = "x".repeat(100_001);
    for (number, (arguments, part)) in (1..).zip([
        (json!({"profile": "scout"}), "task is missing"),
        (
            json!({"task": " \n\t ", "profile": "scout"}),
            "task is blank",
        ),
        (json!({"task": long, "profile": "scout"}), "at most 100000"),
        (json!({"task": "t", "profile": "nosuch"}), "`nosuch`"),
        (json!({"task": "t"}), "profile is missing"),
        (
            json!({"task": "t", "profile": "scout", "cwd": "/no/such"}),
            "`/no/such`",
        ),
        (
            json!({"task": "t", "profile": "scout", "cwd": "/dev/null"}),
            "not a directory",
        ),
        (
            json!({"task": "t", "profile": "scout", "model": "  "}),
            "model is empty",
        ),
        (
            json!({"task": "t", "profile": "scout", "model": "a\u{1b}b"}),
            "no model id",
        ),
        (
            json!({"task": "t", "profile": "scout", "model": "m".repeat(257)}),
            "at most 256",
        ),
        (
            json!({"task": "t", "profile": "scout", "deadlineMs": 1}),
            "`deadlineMs`",
        ),
        (
            json!({"task": "t", "profile": "scout", "thinking": "high"}),
            "`thinking`",
        ),
        (
            json!({"task": "t", "profile": "scout", "background": true}),
            "`background`",
        ),
    ]) {
        let result = server.call(number, arguments);
        assert_eq!(verdict(&result), ("refused", "invalid-arguments"));
        assert!(text(&result).contains(part), "{result}");
        assert_eq!(result["structuredContent"]["message"], text(&result));
    }
    assert!(place.launches().is_empty());
    // A task of exactly the limit goes through.
    let result = server.call(99, json!({"task": "y".repeat(100_000), "profile": "scout"}));
    assert_eq!(verdict(&result), ("success", ""));
}

// shows: semantics.provider-error-captured, semantics.basic-failure-and-success-shape, semantics.failure-includes-stderr
// shows: semantics.abnormal-exit-fails
#[test]
fn failures_say_why_in_data_and_in_words() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    let failed = server.call(1, json!({"task": "fail", "profile": "scout"}));
    assert_eq!(verdict(&failed), ("failed", "provider-error"));
    assert!(text(&failed).starts_with("quota exceeded"), "{failed}");
    assert_eq!(failed["structuredContent"]["stopReason"], "error");
    let died = server.call(2, json!({"task": "die", "profile": "scout"}));
    assert_eq!(verdict(&died), ("failed", "exit"));
    assert_eq!(died["structuredContent"]["exit"]["code"], 9);
    assert!(
        text(&died).contains("fatal: no key") && text(&died).contains('9'),
        "{died}"
    );
    let good = server.call(3, json!({"task": "t", "profile": "scout"}));
    let usage = json!({"input": 10, "output": 2, "cacheRead": 3, "cacheWrite": 4, "total": 19, "cost": 0.25});
    assert_eq!(
        (verdict(&good), &good["structuredContent"]["usage"]),
        (("success", ""), &usage)
    );
}

// shows: launch.spawn-error-diagnostic, bounds.spawn-diagnostic
#[test]
fn a_child_that_cannot_be_started_is_a_failure_that_names_the_cause() {
    let place = Place::new();
    not_executable(&place.path("home/no-program"));
    let long = format!("/nowhere/{}", "p".repeat(3000));
    for program in [
        place.path("home/missing").display().to_string(),
        place.path("home/no-program").display().to_string(),
        long,
    ] {
        let mut command = place.command(&["mcp"]);
        command.env("PI_DELEGATOR_PI_BINARY", &program);
        let mut server = Server::start(command);
        let result = server.call(1, json!({"task": "t", "profile": "scout"}));
        assert_eq!(verdict(&result), ("failed", "spawn-error"), "{program}");
        assert!(text(&result).len() < 51_200);
    }
    let mut command = place.command(&["mcp"]);
    command.env("PATH", "/nowhere");
    let mut server = Server::start(command);
    let result = server.call(1, json!({"task": "t", "profile": "scout"}));
    assert_eq!(verdict(&result), ("failed", "spawn-error"));
    assert!(text(&result).contains("PI_DELEGATOR_PI_BINARY"), "{result}");
}

// shows: cancel.abort-during-model-activity, cancel.no-duplicate-completion, isolate.abort-spares-sibling
#[test]
fn a_cancelled_call_ends_its_tree_and_has_one_result() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    server.send(&[call(1, json!({"task": "hang", "profile": "worker"}))]);
    let (child, its_child) = place.hanging();
    assert_eq!(
        verdict(&server.call(2, json!({"task": "t", "profile": "scout"}))),
        ("success", "")
    );
    server.send(&[cancel(1), cancel(1)]);
    let response = server.response(1);
    assert_eq!(verdict(&response["result"]), ("cancelled", "aborted"));
    assert!(!runs(child) && !runs(its_child));
    server.close_input();
    let (status, rest, _) = server.ended();
    assert_eq!((status.code(), rest), (Some(0), vec![]));
}

// shows: cancel.already-aborted-no-launch
#[test]
fn a_cancellation_before_or_with_its_call_starts_nothing() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    let hang = |id| call(id, json!({"task": "hang", "profile": "scout"}));
    for (id, messages) in [(1, [hang(1), cancel(1)]), (2, [cancel(2), hang(2)])] {
        server.send(&messages);
        let response = server.response(id);
        assert_eq!(verdict(&response["result"]), ("cancelled", "aborted"));
    }
    assert!(place.launches().is_empty());
}

// shows: config.precedence-model, launch.model-override-one-call
#[test]
fn the_parents_model_is_inherited_in_the_order_of_the_wire() {
    let place = Place::new();
    place.user_config(json!({"profiles": {"fixed": definition("stub/own")}}).to_string());
    let mut server = Server::bare(place.command(&["mcp"]));
    let started = |model: Value| json!({"jsonrpc": "2.0", "method": "notifications/pi/parent/started", "params": {"model": model, "thinking": "high"}});
    // Even before the session is opened.
    server.send(&[started("stub/early".into()), initialize()]);
    let answer = server.response(0);
    assert_eq!(
        answer["result"]["capabilities"]["experimental"]["pi/parent"]["version"],
        1
    );
    let mut id = 0;
    let mut model_of =
        |server: &mut Server, before: Vec<Value>, profile: &str, model: Option<&str>| {
            id += 1;
            let mut arguments = json!({"task": "t", "profile": profile});
            if let Some(model) = model {
                arguments["model"] = model.into();
            }
            server.send(&[before, vec![call(id, arguments)]].concat());
            let response = server.response(id);
            let said = response["result"]["structuredContent"]["model"]
                .as_str()
                .unwrap()
                .to_owned();
            let launches = place.launches();
            let launch = launches.last().unwrap();
            assert_eq!(launch.flag("--model").unwrap_or_default(), said);
            (said, launch.flag("--thinking").unwrap().to_owned())
        };
    let thinking = "low".to_owned();
    for (before, profile, model, expected) in [
        (vec![], "scout", None, "stub/early"),
        (
            vec![started("stub/late".into())],
            "scout",
            None,
            "stub/late",
        ),
        (vec![], "scout", Some("stub/call"), "stub/call"),
        (vec![], "scout", None, "stub/late"),
        (vec![started("no model".into())], "scout", None, "stub/late"),
        (vec![started(Value::Null)], "scout", None, ""),
    ] {
        assert_eq!(
            model_of(&mut server, before, profile, model),
            (expected.to_owned(), thinking.clone())
        );
    }
    let minimal = "minimal".to_owned();
    assert_eq!(
        model_of(&mut server, vec![], "fixed", None),
        ("stub/own".to_owned(), minimal.clone())
    );
    assert_eq!(
        model_of(&mut server, vec![], "fixed", Some("x")),
        ("x".to_owned(), minimal)
    );
}

#[test]
fn an_interrupted_parent_ends_its_calls() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    server.send(&[call(1, json!({"task": "hang", "profile": "scout"}))]);
    let (child, _) = place.hanging();
    server.send(&[json!({"jsonrpc": "2.0", "method": "notifications/pi/parent/interrupted"})]);
    assert_eq!(
        verdict(&server.response(1)["result"]),
        ("cancelled", "aborted")
    );
    assert!(!runs(child));
    // Later calls are not touched by it.
    assert_eq!(
        verdict(&server.call(2, json!({"task": "t", "profile": "scout"}))),
        ("success", "")
    );
}

// shows: semantics.progress-compact
#[test]
fn progress_mentions_tools_and_ends_with_the_call() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    let mut request = call(1, json!({"task": "use-tools", "profile": "scout"}));
    request["params"]["_meta"] = json!({"progressToken": "p1"});
    server.send(&[request]);
    let mut seen = server.until(1);
    assert_eq!(verdict(&seen.pop().unwrap()["result"]), ("success", ""));
    let lines: Vec<_> = seen
        .iter()
        .map(|note| note["params"]["message"].as_str().unwrap())
        .collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("scout: read one.txt")),
        "{lines:?}"
    );
    let numbers: Vec<_> = seen
        .iter()
        .map(|note| note["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] < pair[1])
            && lines.iter().all(|line| line.len() <= 200)
    );
    server.send(&[json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})]);
    assert_eq!(server.next()["id"], 2, "something came after the result");
    // Without a token there is none.
    server.send(&[call(3, json!({"task": "use-tools", "profile": "scout"}))]);
    assert_eq!(server.until(3).len(), 1);
}

// shows: isolate.parallel-outputs
#[test]
fn parallel_calls_have_their_own_answers() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    let calls: Vec<_> = (1..=8)
        .map(|id| {
            call(
                id,
                json!({"task": format!("number {id}"), "profile": "scout"}),
            )
        })
        .collect();
    server.send(&calls);
    let mut answers: Vec<_> = (0..8)
        .map(|_| {
            let message = server.next();
            (message["id"].as_i64().unwrap(), text(&message["result"]))
        })
        .collect();
    answers.sort();
    let expected: Vec<_> = (1..=8)
        .map(|id| (id, format!("answer to number {id}")))
        .collect();
    assert_eq!(answers, expected);
}

#[test]
fn junk_on_the_input_does_not_end_the_session() {
    let place = Place::new();
    let mut server = Server::bare(place.command(&["mcp"]));
    for junk in ["junk\n", "\n", "{\"jsonrpc\"\n", "\u{1}\n", "[1,2\n"] {
        server.write(junk.as_bytes());
    }
    server.write(b"\xff\xfe\n");
    server.send(&[
        cancel(5),
        json!({"jsonrpc": "2.0", "method": "notifications/nosuch"}),
        initialize(),
    ]);
    assert_eq!(server.next()["id"], 0);
    server.write(b"more junk\n{\"jsonrpc\":\"2.0\",\"id\":7}\n");
    server.send(&[json!({"jsonrpc": "2.0", "id": 8, "method": "nosuch/method"})]);
    assert_eq!(server.response(8)["error"]["code"], -32601);
    server.send(&[json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "delegat", "arguments": {}}})]);
    let error = server.response(9);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("did you mean `delegate`?"),
        "{error}"
    );
    server.send(&[json!({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": {"name": "delegate", "arguments": [1]}})]);
    assert_eq!(server.response(10)["error"]["code"], -32602);
    assert_eq!(
        verdict(&server.call(11, json!({"task": "t", "profile": "scout"}))),
        ("success", "")
    );
}

// shows: config.bad-config-fails-before-delegation
#[test]
fn a_faulty_configuration_refuses_every_call_and_says_so_everywhere() {
    let place = Place::new();
    place.user_config("{\"profiles\": {\"scout\": {}}}");
    let mut server = Server::start(place.command(&["mcp"]));
    let fault = "profile `scout`: `description`: this part is missing";
    assert!(
        server.tools()[0]["description"]
            .as_str()
            .unwrap()
            .contains(fault)
    );
    for (id, profile) in [(1, "scout"), (2, "worker"), (3, "nosuch")] {
        let result = server.call(id, json!({"task": "t", "profile": profile}));
        assert_eq!(verdict(&result), ("refused", "configuration"));
        assert!(text(&result).contains(fault), "{result}");
    }
    server.close_input();
    let (status, _, stderr) = server.ended();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains(fault), "{stderr}");
    assert!(place.launches().is_empty());
}

// shows: config.project-precedence, config.untrusted-project-ignored
#[test]
fn trust_comes_from_the_flag_or_the_environment() {
    let place = Place::new();
    fs::write(
        place.path("project/.pi/delegator.json"),
        "{\"profiles\": {\"scout\": null}}",
    )
    .unwrap();
    let mut by_environment = place.command(&["mcp"]);
    by_environment.env("PI_DELEGATOR_TRUST_PROJECT", "1");
    for (command, trusted) in [
        (place.command(&["mcp"]), false),
        (place.command(&["mcp", "--trust-project"]), true),
        (by_environment, true),
    ] {
        let mut server = Server::start(command);
        let names = server.tools()[0]["inputSchema"]["properties"]["profile"]["enum"].clone();
        assert_eq!(names[0] == "scout", !trusted, "{names}");
    }
}

#[test]
fn inside_a_child_there_is_no_tool_and_no_delegation() {
    let place = Place::new();
    let mut command = place.command(&["mcp"]);
    command.env("PI_DELEGATE_RUN_ID", "some-run");
    let mut server = Server::start(command);
    assert_eq!(server.tools(), json!([]));
    let result = server.call(1, json!({"task": "t", "profile": "scout"}));
    assert_eq!(verdict(&result), ("refused", "nested"));
    assert!(place.launches().is_empty());
}

// shows: launch.no-shell
#[test]
fn no_shell_reads_task_folder_or_model() {
    let place = Place::new();
    let odd = "$(touch PWNED); a b 'c' `touch PWNED`";
    fs::create_dir(place.path("project").join(odd)).unwrap();
    let mut server = Server::start(place.command(&["mcp"]));
    let model = "x$(touch${IFS}PWNED);y";
    let result = server.call(
        1,
        json!({"task": odd, "profile": "scout", "cwd": odd, "model": model}),
    );
    assert_eq!(
        (verdict(&result), text(&result)),
        (("success", ""), format!("answer to {odd}"))
    );
    let launches = place.launches();
    assert_eq!(launches[0].flag("--model"), Some(model));
    assert!(
        !launches[0]
            .argv
            .iter()
            .any(|argument| argument.contains("a b")),
        "the task is in argv"
    );
    for folder in ["project".to_owned(), format!("project/{odd}")] {
        assert!(!place.path(&folder).join("PWNED").exists());
    }
}
