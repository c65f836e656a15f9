//! Acts that change what the model, the streams or the descendants do, each with a real process.
#![expect(clippy::unwrap_used, reason = "a test may, in its helpers too")]

#[path = "process/place.rs"]
#[allow(dead_code, reason = "process.rs uses the rest")]
mod place;

use std::fs;
use std::io::{Read as _, Write as _};

use fake_pi::journal::{Entry, Start, What};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use place::{Place, types, until};

fn records(output: &str) -> Vec<Value> {
    output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The first record of a type.
fn first<'a>(records: &'a [Value], kind: &str) -> &'a Value {
    let found = records.iter().find(|record| record["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {records:?}"))
}

/// The start of the only descendant.
fn descendant(place: &Place) -> (i32, Box<Start>) {
    place.seen("the descendant", |entry| match &entry.what {
        What::Start(start) if start.role == "descendant" => Some((entry.pid, start.clone())),
        _ => None,
    })
}

/// One field of `/proc/PID/status`, while there is such a process.
fn status(pid: i32, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim_start_matches(':').trim().to_owned())
}

#[test]
fn a_retry_is_announced_and_the_run_goes_on() {
    let place = Place::acts(
        "{accept: prompt}, {retry: {error: overloaded, attempt: 1}}, {answer: at last}, {exit: 0}",
    );
    let mut child = place.rpc();
    child.prompt("go");
    let output = child.output();
    let records = records(&output);
    assert_eq!(first(&records, "agent_end")["willRetry"], true);
    let start = first(&records, "auto_retry_start");
    assert_eq!(
        (&start["attempt"], &start["errorMessage"]),
        (&json!(1), &json!("overloaded"))
    );
    assert_eq!(first(&records, "auto_retry_end")["success"], true);
    let kinds = types(&output);
    let count = |kind: &str| kinds.iter().filter(|seen| *seen == kind).count();
    assert_eq!((count("agent_end"), count("agent_settled")), (2, 1));
    assert_eq!(kinds.last().map(String::as_str), Some("agent_settled"));
}

#[test]
fn the_last_retry_settles_the_run_as_failed() {
    let place =
        Place::acts("{accept: prompt}, {retry: {error: overloaded, last: true}}, {exit: 0}");
    let mut child = place.rpc();
    child.prompt("go");
    let records = records(&child.output());
    assert_eq!(first(&records, "auto_retry_end")["success"], false);
    let end = records.iter().rfind(|record| record["type"] == "agent_end");
    assert_eq!(end.unwrap()["willRetry"], false);
    assert_eq!(records.last().unwrap()["type"], "agent_settled");
}

#[test]
fn a_compaction_has_a_start_and_an_end() {
    let place = Place::acts(
        "{compaction: {reason: overflow, will-retry: true}}, {compaction: {start-only: true}}, {exit: 0}",
    );
    let records = records(&place.rpc().output());
    let kinds: Vec<_> = records.iter().map(|record| &record["type"]).collect();
    assert_eq!(
        kinds,
        ["compaction_start", "compaction_end", "compaction_start"]
    );
    assert_eq!(records[1]["reason"], "overflow");
    assert_eq!(records[1]["willRetry"], true);
    assert_eq!(records[2]["reason"], "threshold");
}

#[test]
fn a_question_holds_the_acts_until_its_own_answer() {
    let place = Place::acts(
        "{ask: {method: confirm, id: q1, fields: {title: Go on?}, wait: true}}, {reach: answered}, {exit: 0}",
    );
    let mut child = place.rpc();
    let mut answer = |id: &str| {
        let line = json!({"type": "extension_ui_response", "id": id, "confirmed": true});
        writeln!(child.0.stdin.as_mut().unwrap(), "{line}").unwrap();
    };
    answer("q0");
    place.seen("the wrong answer", |entry| {
        matches!(&entry.what, What::Stdin { line, .. } if line.contains("q0")).then_some(())
    });
    let reached = |entry: &Entry| matches!(&entry.what, What::Reach { name } if name == "answered");
    assert!(!place.journal().iter().any(reached));
    answer("q1");
    place.reached("answered");
    let records = records(&child.output());
    let request = first(&records, "extension_ui_request");
    assert_eq!(
        (&request["id"], &request["method"], &request["title"]),
        (&json!("q1"), &json!("confirm"), &json!("Go on?"))
    );
}

#[test]
fn a_tools_command_really_runs() {
    let place = Place::acts(
        "{accept: prompt}, {reply: {tools: [{name: bash, exec: \"echo $((6 * 7)); exit 3\"}]}}, {answer: ok}, {exit: 0}",
    );
    let mut child = place.rpc();
    child.prompt("go");
    let records = records(&child.output());
    let end = first(&records, "tool_execution_end");
    assert_eq!(end["isError"], true);
    let text = end["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("42\n"), "{text}");
    assert!(text.contains("exited with code 3"), "{text}");
}

#[test]
fn an_abort_kills_a_tools_command() {
    let place = Place::acts(
        "{accept: prompt}, {reply: {tools: [{name: bash, exec: \"echo $$ > tool.pid; exec sleep 600\"}]}}, {hang: true}",
    );
    let mut child = place.rpc();
    child.prompt("go");
    let file = place.folder.path().join("tool.pid");
    let pid: i32 = until("the tool", || {
        fs::read_to_string(&file).ok()?.trim().parse().ok()
    });
    writeln!(child.0.stdin.as_mut().unwrap(), r#"{{"type":"abort"}}"#).unwrap();
    until("the tool's end", || {
        let gone = status(pid, "State").is_none_or(|state| state.starts_with('Z'));
        gone.then_some(())
    });
}

#[test]
fn a_child_that_does_not_read_leaves_the_pipe_full() {
    let place = Place::acts(
        "{stop-reading: true}, {reach: deaf}, {wait: {barrier: go}}, {resume-reading: true}, {hang: true}",
    );
    let mut child = place.rpc();
    place.reached("deaf");
    let stdin = child.0.stdin.as_mut().unwrap();
    fcntl(&*stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let line = b"{\"type\":\"get_state\"}\n";
    let mut written = 0;
    let full = loop {
        match stdin.write(line) {
            Ok(count) => written += count,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
    let read = |entry: &Entry| matches!(entry.what, What::Stdin { .. });
    assert!(!place.journal().iter().any(read));
    fs::create_dir_all(place.folder.path().join("barriers")).unwrap();
    fs::write(place.folder.path().join("barriers/go"), "").unwrap();
    // Nobody reads the answers: a thread does, so that the child is not held up by them.
    let mut stdout = child.0.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    until("all of it read", || {
        let journal = place.journal();
        let bytes = journal.iter().map(|entry| match &entry.what {
            What::Stdin { bytes, .. } => *bytes as usize + 1,
            _ => 0,
        });
        // A last piece of a line waits in the child for its LF.
        (bytes.sum::<usize>() >= written - line.len()).then_some(())
    });
    drop(child);
    reader.join().unwrap().unwrap();
}

#[test]
fn a_closed_stdout_ends_the_stream_but_not_the_child() {
    let place = Place::acts("{raw: \"last\\n\"}, {close: stdout}, {reach: closed}, {hang: true}");
    let mut child = place.rpc();
    assert_eq!(child.output(), "last\n");
    place.reached("closed");
    assert!(child.0.try_wait().unwrap().is_none());
}

#[test]
fn a_reader_of_stderr_that_has_gone_is_journalled_once() {
    let place = Place::acts(
        "{wait: {barrier: go}}, {stderr: \"a\\n\"}, {stderr: \"b\\n\"}, {reach: wrote}, {exit: 0}",
    );
    let mut child = place.rpc();
    drop(child.0.stderr.take());
    fs::create_dir_all(place.folder.path().join("barriers")).unwrap();
    fs::write(place.folder.path().join("barriers/go"), "").unwrap();
    place.reached("wrote");
    assert_eq!(child.wait().code(), Some(0));
    let failed: Vec<What> = place
        .journal()
        .into_iter()
        .map(|entry| entry.what)
        .filter(|what| matches!(what, What::WriteFailed { .. }))
        .collect();
    let told = What::WriteFailed {
        stream: "stderr".to_owned(),
        error: "EPIPE".to_owned(),
    };
    assert_eq!(failed, [told]);
}

#[test]
fn a_descendant_tells_which_stream_failed() {
    for stream in ["stdout", "stderr"] {
        let place = Place::acts(&format!(
            "{{descendant: {{holds: [{stream}], writes: x, every: 1ms}}}}, {{hang: true}}"
        ));
        let mut child = place.rpc();
        let (pid, _) = descendant(&place);
        drop((child.0.stdout.take(), child.0.stderr.take()));
        let failed = place.seen("the failed write", |entry| match &entry.what {
            What::WriteFailed { stream, error } if entry.pid == pid => {
                Some((stream.clone(), error.clone()))
            }
            _ => None,
        });
        assert_eq!(failed, (stream.to_owned(), "EPIPE".to_owned()));
    }
}

#[test]
fn the_session_file_lies_where_pi_says() {
    let place = Place::acts(
        "{session-file: {text: kept, stop: length}}, {accept: prompt}, {answer: too}, {hang: true}",
    );
    let mut child = place.start(&["--mode", "rpc", "--session-dir", "sessions"]);
    child.prompt("go");
    writeln!(child.0.stdin.as_mut().unwrap(), r#"{{"type":"get_state"}}"#).unwrap();
    let folder = place.folder.path().join("sessions");
    let whole = until("the whole session", || {
        let file = fs::read_dir(&folder).ok()?.next()?.ok()?.path();
        let text = fs::read_to_string(&file).ok()?;
        (text.ends_with('\n') && text.contains("too")).then_some((file, text))
    });
    drop(child.0.stdin.take());
    let answers = records(&child.output());
    let state = answers
        .iter()
        .find(|record| record["command"] == "get_state")
        .unwrap();
    let (file, text) = whole;
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let told = state["data"]["sessionFile"].as_str().unwrap();
    assert_eq!(
        fs::canonicalize(told).unwrap(),
        fs::canonicalize(&file).unwrap()
    );
    let id = state["data"]["sessionId"].as_str().unwrap();
    assert!(told.ends_with(&format!("_{id}.jsonl")), "{told}");
    let lines = records(&text);
    assert_eq!(
        (&lines[0]["type"], &lines[0]["id"]),
        (&json!("session"), &json!(id))
    );
    assert_eq!(lines[1]["message"]["content"][0]["text"], "kept");
    assert_eq!(lines[1]["message"]["stopReason"], "length");
}

#[test]
fn a_zombie_stays_until_the_child_ends() {
    let place = Place::acts("{descendant: {zombie: true}}, {reach: up}, {hang: true}");
    let child = place.rpc();
    place.reached("up");
    let (pid, _) = descendant(&place);
    until("the zombie", || {
        status(pid, "State")?.starts_with('Z').then_some(())
    });
    assert_eq!(status(pid, "PPid"), Some(child.pid().to_string()));
}

#[test]
fn a_descendant_forked_twice_has_lost_its_parent() {
    let place = Place::acts(
        "{descendant: {double-fork: true, group: true, scrubbed: true}}, {reach: up}, {hang: true}",
    );
    let mut command = place.command(&["--mode", "rpc"]);
    command.env("KIT_MARK", "here");
    let child = place::Running(command.spawn().unwrap());
    place.reached("up");
    let (pid, start) = descendant(&place);
    let parent: i32 = status(pid, "PPid").unwrap().parse().unwrap();
    assert_ne!(parent, child.pid().as_raw());
    assert_eq!(start.pgid, pid);
    assert!(start.env.is_empty(), "{:?}", start.env);
    let starts = place.journal();
    let mine = starts.iter().find_map(|entry| match &entry.what {
        What::Start(start) if start.role == "child" => Some(start.env.get("KIT_MARK").cloned()),
        _ => None,
    });
    assert_eq!(mine.flatten().as_deref(), Some("here"));
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    until("its end", || {
        let gone = status(pid, "State").is_none_or(|state| state.starts_with('Z'));
        gone.then_some(())
    });
}

#[test]
fn group_and_session_together_make_a_session() {
    let place = Place::acts("{descendant: {group: true, session: true}}, {hang: true}");
    let _child = place.rpc();
    let (pid, start) = descendant(&place);
    assert_eq!((start.sid, start.pgid), (pid, pid));
}

#[test]
fn the_ends_of_lines_are_as_they_were_ordered() {
    let place = Place::acts(
        "{written: {crlf: true, do: [{raw: \"a\\nb\\n\"}]}}, {written: {last-lf: false, do: [{raw: \"c\\nd\\n\"}]}}, {exit: 0}",
    );
    let mut bytes = Vec::new();
    let mut child = place.rpc();
    let mut stdout = child.0.stdout.take().unwrap();
    stdout.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"a\r\nb\r\nc\nd");
}
