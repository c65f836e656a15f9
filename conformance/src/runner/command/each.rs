//! A command that serves one request: it gets the request on its input, which then ends, and prints the outcome.
//!
//! This stands between the runner and such commands, as a process of its own: it starts one for each request, tells what it printed, and
//! passes an abort on as SIGTERM, which is how a person at a shell would end it. When the session is over it ends those that still run.

use std::collections::HashMap;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};

use super::{Hello, PROTOCOL, Reply};

/// Bytes of output that one command may print.
const MOST: u64 = 64 << 20;

/// What one request needs: commands that run, by the request's number.
type Running = Arc<Mutex<HashMap<u64, i32>>>;

/// The whole program: `pi-conform each-call PROGRAM ARGUMENT…`.
pub fn main(command: &[String]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else {
        return ExitCode::from(2);
    };
    let running = Running::default();
    let mut waiting: Vec<JoinHandle<()>> = Vec::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else {
            break;
        };
        let Ok(Value::Object(mut request)) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if request.contains_key("hello") {
            say(&Reply::Hello {
                hello: Hello {
                    protocol: PROTOCOL,
                    name: program.clone(),
                    version: String::new(),
                },
            });
            continue;
        }
        let Some(id) = request.remove("id").and_then(|id| id.as_u64()) else {
            continue;
        };
        if request.contains_key("abort") {
            terminate(&running, Some(id));
            continue;
        }
        let mut starting = Command::new(program);
        starting
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        match starting.spawn() {
            Err(error) => answer(id, json!({"started": false, "error": error.to_string()})),
            Ok(child) => {
                note(&running, id, &child);
                let running = Arc::clone(&running);
                waiting.push(std::thread::spawn(move || {
                    serve(id, child, &Value::Object(request), &running);
                }));
            }
        }
    }
    terminate(&running, None);
    for one in waiting {
        // A thread that panicked has nothing more to tell.
        let _ = one.join();
    }
    ExitCode::SUCCESS
}

fn note(running: &Running, id: u64, child: &Child) {
    let pid = i32::try_from(child.id()).unwrap_or(0);
    running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(id, pid);
}

/// SIGTERM to one command that runs, or to all.
fn terminate(running: &Running, only: Option<u64>) {
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    for (id, pid) in &*running {
        if only.is_none_or(|only| only == *id)
            && let Some(pid) = Pid::from_raw(*pid)
        {
            // It is not reaped before it leaves the table, so the number is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

fn serve(id: u64, mut child: Child, request: &Value, running: &Running) {
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its request answers all the same.
        let _ = stdin.write_all(format!("{request}\n").as_bytes());
    }
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // What was read before an error counts.
        let _ = stdout.take(MOST).read_to_end(&mut printed);
    }
    wait_unreaped(&child);
    running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&id);
    let status = child.wait();
    let text = String::from_utf8_lossy(&printed).into_owned();
    let mut outcome = match serde_json::from_str::<Value>(text.trim()) {
        Ok(Value::Object(outcome)) => outcome,
        _ => Map::from_iter([("text".to_owned(), Value::String(text))]),
    };
    let status = status.ok();
    use std::os::unix::process::ExitStatusExt as _;
    outcome.insert(
        "exit".to_owned(),
        json!({
            "code": status.and_then(|status| status.code()),
            "signal": status.and_then(|status| status.signal()),
        }),
    );
    answer(id, Value::Object(outcome));
}

/// Waits for the end without reaping, so that the process's number stays its own until nobody can signal it any more.
fn wait_unreaped(child: &Child) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    while let Err(error) = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    ) {
        if error != rustix::io::Errno::INTR {
            return;
        }
    }
}

fn answer(id: u64, outcome: Value) {
    if let Value::Object(outcome) = outcome {
        say(&Reply::Outcome { id, outcome });
    }
}

fn say(reply: &Reply) {
    if let Ok(mut line) = serde_json::to_vec(reply) {
        line.push(b'\n');
        let mut out = io::stdout().lock();
        // A runner that has gone needs no answer.
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
