//! Recordings of the real Pi against the real executable: its pipes, its exit codes, its signals, its command line.
//!
//! `fidelity.rs` replays all recordings through the pure simulation; here a fake child with a script plays some of them as
//! a process. A script's model is read in step with what is written about it, so what the recordings show of Pi's reading
//! ahead (usage and message inside `message_update`) is not compared, nor how often a running tool shows its output.
#![expect(clippy::unwrap_used, reason = "a test may, in its helpers too")]

#[path = "fidelity/compare.rs"]
#[allow(dead_code, reason = "fidelity.rs uses the rest")]
mod compare;
#[path = "fidelity/json.rs"]
#[allow(dead_code, reason = "fidelity.rs uses the rest")]
mod json;
#[path = "fidelity/trace.rs"]
#[allow(dead_code, reason = "fidelity.rs uses the rest")]
mod trace;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use json::Json;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use trace::{Event, Trace};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const BOTH: [&str; 2] = ["1.6.0", "0.73.1"];

/// A fake Pi, ended when the test is.
struct Pi {
    child: Child,
    folder: tempfile::TempDir,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Drop for Pi {
    fn drop(&mut self) {
        // Nothing to do about a child that cannot be ended; it has most likely ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n') {
            let Ok(line) = line else { break };
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                break;
            }
        }
    });
    receiver
}

impl Pi {
    fn start(trace: &Trace, version: &str, acts: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for name in ["work-dir", "session-dir", "bin"] {
            std::fs::create_dir(place(name)).unwrap();
        }
        let program = place("bin").join("pi");
        let built = Path::new(env!("CARGO_BIN_EXE_fake-pi"));
        if std::fs::hard_link(built, &program).is_err() {
            std::fs::copy(built, &program).unwrap();
        }
        let script = json!({"children": {"a": {"flavour": version, "acts": acts}}});
        std::fs::write(place("bin").join("fake-pi.script.json"), script.to_string()).unwrap();
        let real =
            |word: &String| word.replace("/session-dir", &place("session-dir").to_string_lossy());
        // A one-shot mode waits for the end of a pipe; where the recorder closed none it gave none.
        let closes = trace.events.iter().any(|(_, event)| *event == Event::Close);
        let speaks = trace
            .events
            .iter()
            .any(|(_, event)| matches!(event, Event::Stdin(_)));
        let rpc = trace.argv.iter().any(|word| word == "rpc");
        let mut child = Command::new(&program)
            .args(trace.argv.iter().skip(1).map(real))
            .current_dir(place("work-dir"))
            .env("HOME", folder.path())
            .stdin(if closes || speaks || rpc {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self {
            child,
            folder,
            stdout,
            stderr,
        }
    }

    /// A line as the recorder would have noted it.
    fn noted(&self, line: &str) -> String {
        let root = std::fs::canonicalize(self.folder.path())
            .unwrap_or_else(|_| PathBuf::from(self.folder.path()));
        line.replace(&*root.to_string_lossy(), "")
            .replace(&*self.folder.path().to_string_lossy(), "")
    }

    fn ended(&mut self) -> std::process::ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the process goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What is compared of a line: a record without what depends on reading ahead, or a text. `None`: not compared at all.
fn essence(line: &str) -> Option<Json> {
    let Some(mut record) = json::parse(line).filter(|record| matches!(record, Json::Fields(_)))
    else {
        return Some(Json::Text(line.to_owned()));
    };
    if record.text_of("type") == "tool_execution_update" {
        return None;
    }
    let update = record.text_of("type") == "message_update";
    strip(&mut record, update);
    Some(record)
}

fn strip(value: &mut Json, update: bool) {
    match value {
        Json::Fields(fields) => {
            // The recorder's model put blanks into the JSON of its arguments.
            let arguments = fields
                .iter()
                .any(|(_, field)| field.text() == Some("toolcall_delta"));
            fields.retain(|(name, _)| {
                let ahead = update && matches!(name.as_str(), "usage" | "message" | "partial");
                !ahead && name != "responseId" && !(arguments && name == "delta")
            });
            for (_, field) in fields {
                strip(field, update);
            }
        }
        Json::List(items) => items.iter_mut().for_each(|item| strip(item, update)),
        Json::Word(_) | Json::Text(_) => {}
    }
}

fn play(case: &str, version: &str, acts: &Value) {
    let trace = Trace::load(version, case);
    let mut pi = Pi::start(&trace, version, acts);
    let mut ids = compare::Ids::default();
    let mut expected_errors = Vec::new();
    let at = |what: &str| format!("{version} {case}: {what}");
    for (_, event) in &trace.events {
        match event {
            Event::Stdin(lines) => {
                // The process may be gone already: it refuses a wrong command line without reading anything.
                let _ = pi
                    .child
                    .stdin
                    .as_mut()
                    .unwrap()
                    .write_all(format!("{}\n", lines.join("\n")).as_bytes());
            }
            Event::Close => drop(pi.child.stdin.take()),
            Event::Signal(name) => {
                let signal: Signal = name.parse().unwrap();
                kill(Pid::from_raw(i32::try_from(pi.child.id()).unwrap()), signal).unwrap();
            }
            Event::Stderr(line) => expected_errors.push(line.clone()),
            Event::Stdout(line) => {
                let Some(theirs) = essence(line) else {
                    continue;
                };
                let ours = loop {
                    let ours = pi.stdout.recv_timeout(PATIENCE);
                    let ours = ours.unwrap_or_else(|why| {
                        panic!("{}", at(&format!("{why} instead of {line}")))
                    });
                    if let Some(ours) = essence(&pi.noted(&ours)) {
                        break ours;
                    }
                };
                let found = compare::difference(&theirs, &ours, &mut ids);
                assert_eq!(found, None, "{}", at(line));
            }
            Event::Exit { code, signal } => {
                let status = pi.ended();
                let by = status
                    .signal()
                    .map(|signal| Signal::try_from(signal).unwrap().as_str().to_owned());
                assert_eq!(
                    (status.code().map(i64::from), by),
                    (*code, signal.clone()),
                    "{}",
                    at("the end")
                );
            }
        }
    }
    drop(pi.child.stdin.take());
    pi.ended();
    match pi.stdout.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Disconnected) => {}
        more => panic!(
            "{}",
            at(&format!("after the last record there is {more:?}"))
        ),
    }
    let errors: Vec<String> = pi.stderr.iter().collect();
    assert_eq!(errors, expected_errors, "{}", at("standard error"));
}

fn play_both(case: &str, acts: &Value) {
    for version in BOTH {
        play(case, version, acts);
    }
}

/// An answer with the usage that the recorder's model told.
fn answer(text: &str) -> Value {
    json!({"answer": {"text": text, "usage": {"input": 120, "output": 9}}})
}

/// Text that streams word by word, and no end.
fn streaming(words: &[&str]) -> Value {
    let word = |word: &&str| json!({"stream": {"text": word, "times": 1}});
    let mut acts: Vec<Value> = words.iter().map(word).collect();
    acts.push(json!({"hang": true}));
    json!(acts)
}

#[test]
fn a_plain_answer() {
    play_both(
        "plain",
        &json!([answer("Hello there, this is the answer.")]),
    );
}

#[test]
fn two_prompts_one_after_the_other() {
    let usage = json!({"input": 20, "output": 9, "cache-read": 120});
    play_both(
        "two-prompts",
        &json!([
            answer("First answer."),
            {"accept": "prompt"},
            {"answer": {"text": "Second answer.", "usage": usage}},
        ]),
    );
}

#[test]
fn a_tool_call() {
    let command = "echo first; sleep 0.4; echo second";
    let tool =
        json!({"id": "call_1_1", "name": "bash", "args": {"command": command}, "exec": command});
    let call = json!({"reply": {"text": "Running it.", "tools": [tool], "usage": {"input": 120, "output": 9}}});
    play_both("tool-bash", &json!([call, answer("It printed two lines.")]));
}

#[test]
fn an_abort_while_the_answer_streams() {
    play_both("abort-twice", &streaming(&["one ", "two ", "three"]));
}

#[test]
fn a_prompt_after_an_abort() {
    let word = |text: &str| json!({"stream": {"text": text, "times": 1}});
    play_both(
        "abort-streaming",
        &json!([
            word("one "),
            word("two "),
            word("three"),
            {"accept": "prompt"},
            answer("Second answer."),
        ]),
    );
}

#[test]
fn messages_that_wait_and_questions_of_the_parent() {
    play_both("steer-idle-first", &json!([{"hang": true}]));
    play_both("bad-input", &json!([{"hang": true}]));
    play_both("settings-commands", &json!([{"hang": true}]));
    play_both(
        "thinking-text",
        &json!([{"answer": {
            "thinking": "Let me think about it.",
            "text": "The answer is four.",
            "usage": {"input": 120, "output": 30, "reasoning": 20},
        }}]),
    );
}

#[test]
fn the_end_of_input() {
    play_both("eof-at-once", &json!([{"hang": true}]));
    play_both("eof-idle", &json!([{"hang": true}]));
    play_both("eof-settled", &json!([answer("Answer.")]));
    play_both("eof-streaming", &streaming(&["one ", "two "]));
}

#[test]
fn signals() {
    play_both("sigterm-idle", &json!([{"hang": true}]));
    play_both("sighup-idle", &json!([{"hang": true}]));
    play_both("sigint-idle", &json!([{"hang": true}]));
    for case in ["sigterm-streaming", "sigint-streaming", "sigkill-streaming"] {
        play_both(case, &streaming(&["one ", "two "]));
    }
}

#[test]
fn wrong_starts() {
    for case in [
        "flag-unknown-long",
        "flag-unknown-long-value",
        "flag-unknown-short",
        "flag-missing-value",
        "flag-file-argument",
        "flag-session-unknown-id",
        "flag-version",
    ] {
        play_both(case, &json!([answer("Never.")]));
    }
    play("flag-bad-mode", "1.6.0", &json!([answer("Never.")]));
}

#[test]
fn one_shot_modes() {
    play_both("json-plain", &json!([answer("Hello there.")]));
    play_both("json-no-p", &json!([answer("One.")]));
    play_both("json-stdin-piped", &json!([answer("One.")]));
    play_both("json-sigterm", &streaming(&["one ", "two "]));
    play_both("json-sigint", &streaming(&["one ", "two "]));
    play_both("text-plain", &json!([answer("Hello there.")]));
    play_both(
        "text-length",
        &json!([{"answer": {"text": "Cut off in the", "stop": "length"}}]),
    );
    play(
        "text-error",
        "1.6.0",
        &json!([{"answer": {"error": "400: {\"message\":\"Invalid value\"}"}}]),
    );
    play(
        "text-error",
        "0.73.1",
        &json!([{"answer": {"error": "400 Invalid value"}}]),
    );
}
