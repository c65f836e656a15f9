//! The trials. Each is run with both lines of Pi.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Body;
use crate::delegate::PATIENCE;
use crate::line::Line;
use crate::stage::{CLEANUP, Stage, until};

/// A deadline that no trial reaches.
const LONG: Duration = Duration::from_secs(600);
/// Time for Pi to start on a busy machine, run a command and ask its model again; then it is over.
const SHORT: Duration = Duration::from_secs(20);

macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        /// Every trial with its name.
        pub const ALL: &[(&str, Body)] = &[$((stringify!($name), |line| Box::pin($name(line)))),*];
    };
}

trials![
    a_plain_answer,
    blocks_of_an_answer,
    a_tool_call,
    an_answer_cut_by_length,
    a_provider_that_keeps_failing,
    a_provider_that_recovers,
    an_abort_while_bash_runs,
    background_processes_after_success,
    background_processes_after_the_deadline,
    background_processes_after_a_cancel,
    background_processes_after_shutdown,
    a_task_of_200_kib,
    two_at_once,
    the_bundled_profiles_at_work,
    from_the_shell,
];

fn hand(task: &str) -> Value {
    json!({"profile": "hand", "task": task})
}

fn bash(command: &str) -> Value {
    json!([{"name": "bash", "arguments": {"command": command}}])
}

async fn a_plain_answer(line: &Line) {
    let usage = json!({"in": 100, "out": 20, "cached": 80});
    let stage = Stage::set(
        line,
        LONG,
        json!([{"text": "two files found", "usage": usage}]),
    )
    .await;
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand("count the files")).await;
    let outcome = delegate.result(call).await;
    outcome.succeeded_with("two files found");
    assert_eq!(outcome.whole["content"][0]["text"], "two files found");
    assert_eq!(
        outcome.details["usage"]["output"], 20,
        "{}",
        outcome.details
    );
    assert_eq!(
        outcome.details["usage"]["cacheRead"], 80,
        "{}",
        outcome.details
    );
    stage.nothing_is_left(&delegate, None).await;
    let requests = stage.model.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].last_user, "count the files");
    assert_eq!(requests[0].tools, ["read", "bash"]);
    assert!(delegate.close().await.success());
    stage.all_is_gone();
}

async fn blocks_of_an_answer(line: &Line) {
    let steps = json!([{"text": "first part"}, {"thinking": "hm"}, {"text": "second part"}]);
    let stage = Stage::set(line, LONG, json!([{"steps": steps}])).await;
    let mut delegate = stage.delegate().await;
    let call = delegate
        .call(json!({"profile": "hand", "model": "stub-blocks/x", "task": "x"}))
        .await;
    let outcome = delegate.result(call).await;
    assert_eq!(outcome.details["outcome"], "success", "{:#}", outcome.whole);
    let answer = outcome.details["answer"].as_str().unwrap();
    assert!(
        answer.starts_with("first part") && answer.ends_with("second part"),
        "{answer:?}"
    );
    assert_eq!(stage.model.requests()[0].path, "/v1/messages");
}

async fn a_tool_call(line: &Line) {
    let stage = Stage::set(
        line,
        LONG,
        json!([
            {"tool_calls": [{"name": "read", "arguments": {"path": "notes.txt"}}]},
            {"last_role": "tool", "text": "it says heron"},
        ]),
    )
    .await;
    std::fs::write(stage.work().join("notes.txt"), "the word is heron\n").unwrap();
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand("read notes.txt")).await;
    delegate.result(call).await.succeeded_with("it says heron");
    let requests = stage.model.requests();
    assert!(
        requests[1].body.to_string().contains("the word is heron"),
        "{}",
        requests[1].body
    );
    stage.nothing_is_left(&delegate, None).await;
}

async fn an_answer_cut_by_length(line: &Line) {
    let stage = Stage::set(
        line,
        LONG,
        json!([{"text": "half an ans", "finish_reason": "length"}]),
    )
    .await;
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand("answer at length")).await;
    let outcome = delegate.result(call).await;
    outcome.ended_as("failed", "length");
    assert_eq!(
        outcome.details["stopReason"], "length",
        "{:#}",
        outcome.whole
    );
    stage.nothing_is_left(&delegate, None).await;
}

async fn a_provider_that_keeps_failing(line: &Line) {
    let failure = json!({"status": 503, "times": 0, "body": {"error": {"message": "the model has gone fishing"}}});
    let stage = Stage::set(line, LONG, json!([failure])).await;
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand("x")).await;
    let outcome = delegate.result(call).await;
    outcome.ended_as("failed", "provider-error");
    let error = outcome.details["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("the model has gone fishing"),
        "{:#}",
        outcome.whole
    );
    let text = outcome.whole["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("the model has gone fishing"), "{text}");
    let attempts = stage.model.requests().len();
    assert_eq!(attempts, 3, "the first attempt and two more");
    stage.nothing_is_left(&delegate, None).await;
}

async fn a_provider_that_recovers(line: &Line) {
    let failure = json!({"status": 503, "times": 2, "body": {"error": {"message": "overloaded"}}});
    let stage = Stage::set(line, LONG, json!([failure, {"text": "back again"}])).await;
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand("x")).await;
    delegate.result(call).await.succeeded_with("back again");
    stage.nothing_is_left(&delegate, None).await;
}

async fn an_abort_while_bash_runs(line: &Line) {
    let command = "echo $$ > started; trap '' TERM; sleep 300; echo over";
    let stage = Stage::set(
        line,
        LONG,
        json!([{"match": "abort me", "tool_calls": bash(command)}, {"text": "still here"}]),
    )
    .await;
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand("abort me")).await;
    let started = stage.work().join("started");
    until(PATIENCE, || started.exists()).await;
    assert!(started.exists(), "bash never ran the command");
    delegate.cancel(call).await;
    stage.nothing_is_left_soon(&delegate).await;
    let next = delegate.call(hand("and now")).await;
    delegate.result(next).await.succeeded_with("still here");
    stage.nothing_is_left(&delegate, None).await;
}

/// Leaves three sleepers behind: one in the command's own session, one in a session of its own, and one that also
/// let go of the pipes and of its parent. The tool itself ends at once.
const SLEEPERS: &str =
    "sleep 300 & setsid sleep 300 & (setsid sleep 300 </dev/null >/dev/null 2>&1 &) ; echo ready";

/// A stage on which the child has left its sleepers behind and its model is about to answer.
async fn with_sleepers(line: &Line, deadline: Duration) -> (Stage, crate::delegate::Delegate, u64) {
    let stage = Stage::set(
        line,
        deadline,
        json!([
            {"tool_calls": bash(SLEEPERS)},
            {"last_role": "tool", "steps": [{"wait": "answer"}, {"text": "ready indeed"}]},
        ]),
    )
    .await;
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand("leave something behind")).await;
    stage
        .asked("for an answer behind the command", |requests| {
            requests.len() == 2
        })
        .await;
    let sleepers = || {
        stage
            .others(&delegate)
            .iter()
            .filter(|process| process.command == "sleep 300")
            .count()
    };
    until(PATIENCE, || sleepers() == 3).await;
    assert_eq!(sleepers(), 3, "sleepers, of {:#?}", stage.others(&delegate));
    (stage, delegate, call)
}

// shows: field.background-tool-of-real-pi, drain.real-pi-bash-probe
async fn background_processes_after_success(line: &Line) {
    let (stage, mut delegate, call) = with_sleepers(line, LONG).await;
    let asked = Instant::now();
    stage.model.release("answer");
    delegate.result(call).await.succeeded_with("ready indeed");
    assert!(
        asked.elapsed() < CLEANUP,
        "the drain took {:?}",
        asked.elapsed()
    );
    stage.nothing_is_left(&delegate, None).await;
}

// shows: field.background-tool-of-real-pi
async fn background_processes_after_the_deadline(line: &Line) {
    let (stage, mut delegate, call) = with_sleepers(line, SHORT).await;
    delegate.result(call).await.ended_as("timeout", "deadline");
    stage.nothing_is_left(&delegate, None).await;
}

// shows: field.background-tool-of-real-pi
async fn background_processes_after_a_cancel(line: &Line) {
    let (stage, mut delegate, call) = with_sleepers(line, LONG).await;
    delegate.cancel(call).await;
    stage.nothing_is_left_soon(&delegate).await;
    assert!(delegate.close().await.success());
}

async fn background_processes_after_shutdown(line: &Line) {
    let (stage, delegate, _) = with_sleepers(line, LONG).await;
    delegate.close().await;
    stage.all_is_gone();
}

async fn a_task_of_200_kib(line: &Line) {
    let stage = Stage::set(
        line,
        LONG,
        json!([{"match": ["begins here", "ends here"], "text": "read it all"}]),
    )
    .await;
    let mut task = "begins here\n".to_owned();
    for number in 0.. {
        if task.len() >= 200 * 1024 {
            break;
        }
        task += &format!("line {number}: “quoted”, a \\ and a 🦆\n");
    }
    task += "ends here";
    let mut delegate = stage.delegate().await;
    let call = delegate.call(hand(&task)).await;
    delegate.result(call).await.succeeded_with("read it all");
    assert!(
        stage.model.requests()[0].last_user == task,
        "the task arrived changed"
    );
}

async fn two_at_once(line: &Line) {
    let reply = |bird: &str| json!({"match_first": bird, "steps": [{"wait": "both"}, {"text": format!("{bird} it is")}]});
    let stage = Stage::set(line, LONG, json!([reply("heron"), reply("plover")])).await;
    let mut delegate = stage.delegate().await;
    let heron = delegate.call(hand("say heron")).await;
    let plover = delegate.call(hand("say plover")).await;
    stage.asked("by both", |requests| requests.len() == 2).await;
    stage.model.release("both");
    delegate.result(plover).await.succeeded_with("plover it is");
    delegate.result(heron).await.succeeded_with("heron it is");
    stage.nothing_is_left(&delegate, None).await;
}

/// The manual checks of a real Pi, with a model that follows a script: what the profiles may do, they do with Pi's own
/// tools; the other three of the seven (siblings, cancel, background process) are the trials above.
// shows: hermetic.manual-smoke-list
async fn the_bundled_profiles_at_work(line: &Line) {
    let call = |name: &str, arguments: Value| json!([{"name": name, "arguments": arguments}]);
    let edits = json!([{"oldText": "1 + 1", "newText": "1 + 2"}]);
    let edit = json!({"path": "sum.sh", "edits": edits});
    let then = |word: &str| json!({"match_first": word, "last_role": "tool", "text": format!("{word} is done")});
    let stage = Stage::set(
        line,
        LONG,
        json!([
            {"match_first": "scouting", "last_role": "user", "tool_calls": call("ls", json!({"path": "."}))},
            {"match_first": "reviewing", "last_role": "user", "tool_calls": call("read", json!({"path": "sum.sh"}))},
            {"match_first": "testing", "last_role": "user", "tool_calls": bash("sh sum.sh")},
            {"match_first": "working", "last_role": "user", "tool_calls": call("edit", edit)},
            {"match_first": "working", "last_role": "tool", "tool_calls": bash("sh sum.sh > validated")},
            then("scouting"), then("reviewing"), then("testing"), then("working"),
        ]),
    )
    .await;
    let source = stage.work().join("sum.sh");
    std::fs::write(&source, "echo $((1 + 1))\n").unwrap();
    std::fs::write(stage.work().join("notes.txt"), "").unwrap();
    let mut delegate = stage.delegate().await;
    for (profile, word, finds) in [
        ("scout", "scouting", "notes.txt\\nsum.sh"),
        ("reviewer", "reviewing", "echo $((1 + 1))"),
        ("tester", "testing", "2\\n"),
        ("worker", "working", "(no output)"),
    ] {
        let arguments = json!({"profile": profile, "model": "stub/x", "task": word});
        let id = delegate.call(arguments).await;
        delegate
            .result(id)
            .await
            .succeeded_with(&format!("{word} is done"));
        let last = stage.model.requests().pop().unwrap();
        let found =
            last.body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(found.contains(finds), "{profile}: {found}");
        let may_edit = last
            .tools
            .iter()
            .any(|tool| tool == "edit" || tool == "write");
        assert_eq!(
            may_edit,
            profile == "worker",
            "{profile} has {:?}",
            last.tools
        );
        let expected = if profile == "worker" {
            "echo $((1 + 2))\n"
        } else {
            "echo $((1 + 1))\n"
        };
        assert_eq!(
            std::fs::read_to_string(&source).unwrap(),
            expected,
            "behind {profile}"
        );
        stage.nothing_is_left(&delegate, None).await;
    }
    assert_eq!(
        std::fs::read_to_string(stage.work().join("validated")).unwrap(),
        "3\n"
    );
}

async fn from_the_shell(line: &Line) {
    let stage = Stage::set(
        line,
        LONG,
        json!([{"text": "two files found"}, {"text": "cut", "finish_reason": "length"}]),
    )
    .await;
    let mut command = stage.command();
    let output = command
        .args(["run", "--profile", "hand", "count the files"])
        .output()
        .await
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        "two files found",
        "{stderr}"
    );
    assert!(output.status.success(), "{stderr}");
    let output = stage
        .command()
        .args(["run", "--profile", "hand", "x"])
        .output()
        .await
        .unwrap();
    assert!(!output.status.success(), "a cut answer is none");
    stage.all_is_gone();
}
