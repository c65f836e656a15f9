//! The command line for people, through the real program with a shell script for a child.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Output, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use predicates::prelude::*;
use serde_json::{Value, json};

mod support;
use support::{Place, definition, runs, wait_for};

/// Runs to the end: exit code, standard output, standard error.
fn run(place: &Place, arguments: &[&str]) -> (i32, String, String) {
    read(
        &place
            .command(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    )
}

fn read(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().expect("an exit code"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn the_answer_and_nothing_else_is_on_standard_output() {
    let place = Place::new();
    let (code, out, err) = run(&place, &["run", "--profile", "scout", "use-tools"]);
    assert_eq!((code, out.as_str()), (0, "answer to use-tools\n"));
    // Plain lines where there is no terminal, without colours or cursor movements.
    assert!(
        err.lines()
            .any(|line| line.starts_with("scout: read one.txt")),
        "{err}"
    );
    assert!(!err.contains('\u{1b}') && !err.contains('\r'), "{err:?}");
    let (code, out, err) = run(&place, &["run", "-q", "-p", "scout", "use-tools"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "answer to use-tools\n", "")
    );
}

#[test]
fn on_a_terminal_one_line_shows_what_goes_on() {
    for (no_color, coloured) in [(None, true), (Some("1"), false)] {
        let place = Place::new();
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut command = place.command(&["run", "-p", "scout", "use-tools"]);
        command
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(terminal.slave);
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let child = command.spawn().unwrap();
        // The program's copy of the terminal is then the only one, and the terminal ends with it.
        drop(command);
        let screen = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = fs::File::from(terminal.master).read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let output = child.wait_with_output().unwrap();
        let screen = screen.join().unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(0), b"answer to use-tools\n".as_slice())
        );
        assert!(screen.contains("scout: "), "{screen:?}");
        assert_eq!(screen.contains("\u{1b}[36m"), coloured, "{screen:?}");
    }
}

#[test]
fn a_task_may_come_on_standard_input() {
    let place = Place::new();
    let mut command = place.command(&["run", "-q", "--profile", "reviewer", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all("the ünïcode diff".as_bytes())
        .unwrap();
    let (code, out, err) = read(&child.wait_with_output().unwrap());
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "answer to the ünïcode diff\n", "")
    );
    // An empty one is a blank task.
    let (code, _, err) = run(&place, &["run", "--profile", "scout", "-"]);
    assert!(code == 2 && err.contains("task is blank"), "{err}");
}

#[test]
fn options_reach_the_child() {
    let place = Place::new();
    let cwd = place.path("home").display().to_string();
    let arguments = [
        "run",
        "-q",
        "--json",
        "--profile",
        "worker",
        "--model",
        "stub/x",
        "--cwd",
        &cwd,
        "t",
    ];
    let (code, out, _) = run(&place, &arguments);
    let result: Value = serde_json::from_str(out.trim_end()).unwrap();
    assert_eq!((code, out.lines().count()), (0, 1));
    assert_eq!(
        (&result["ok"], &result["answer"], &result["model"]),
        (&json!(true), &json!("answer to t"), &json!("stub/x"))
    );
    let launches = place.launches();
    assert_eq!(
        (launches[0].flag("--model"), launches[0].cwd.as_str()),
        (Some("stub/x"), cwd.as_str())
    );
}

#[test]
fn exit_codes_follow_the_outcome() {
    let place = Place::new();
    let mut profile = definition("inherit");
    profile["deadlineMs"] = 1000.into();
    place.user_config(json!({"profiles": {"hasty": profile}}).to_string());
    for (arguments, expected, said) in [
        (&["run", "-p", "scout", "fail"][..], 1, "quota exceeded"),
        (&["run", "-p", "scout", "die"], 1, "fatal: no key"),
        (&["run", "-p", "hasty", "hang"], 4, "deadline"),
        (
            &["run", "-p", "nosuch", "t"],
            2,
            "there is no profile `nosuch`",
        ),
        (&["run", "-p", "scout", " "], 2, "task is blank"),
        (
            &["run", "-p", "scout", "--cwd", "/no/such", "t"],
            2,
            "`/no/such`",
        ),
        (&["run", "-p", "scout"], 2, "TASK"),
        (
            &["run", "-p", "scout", "--deadline", "5", "t"],
            2,
            "unexpected argument",
        ),
        (&["no-such-command"], 2, "unrecognized subcommand"),
        (&[], 2, "Usage"),
    ] {
        let (code, out, err) = run(&place, arguments);
        assert_eq!(code, expected, "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
        assert_eq!(out, "", "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["--version"], &["run", "--help"]] {
        assert_eq!(run(&place, arguments).0, 0);
    }
}

// shows: cancel.abort-during-tool
/// Whether whoever started this test ignores a signal, and so whatever it starts.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
    mask & (1 << (signal as i32 - 1)) != 0
}

#[test]
fn a_signal_ends_the_tree_and_then_the_program() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        if is_ignored(signal) {
            // Under `nohup`, or in the background of a script: then it stays without effect, as documented.
            continue;
        }
        let place = Place::new();
        let mut command = place.command(&["run", "--json", "-p", "worker", "hang"]);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (pi, its_child) = place.hanging();
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal as i32));
        assert!(!runs(pi) && !runs(its_child), "{signal}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["outcome"], "cancelled");
    }
}

#[test]
fn profiles_are_listed_with_their_origin() {
    let place = Place::new();
    place.user_config(
        json!({"profiles": {"scribe": definition("stub/x"), "oracle": null}}).to_string(),
    );
    let (code, out, err) = run(&place, &["profiles"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let shown = predicate::str::contains("scout (bundled)\n")
        .and(predicate::str::contains(
            "scribe (user)\n  Does something.\n  tools: read\n",
        ))
        .and(predicate::str::contains(
            "model: stub/x, thinking: minimal, deadline: 60 s",
        ))
        .and(predicate::str::contains("oracle").not());
    assert!(shown.eval(&out), "{out}");
    let (_, out, _) = run(&place, &["profiles", "--json"]);
    let names: Vec<_> = out
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(names, ["scout", "reviewer", "tester", "worker", "scribe"]);
}

// shows: config.diagnostics, config.bad-config-fails-before-delegation
#[test]
fn check_says_what_holds_or_what_is_wrong() {
    let place = Place::new();
    let (code, out, err) = run(&place, &["check"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.starts_with("the configuration is sound\n") && out.contains("profiles: scout, "),
        "{out}"
    );
    fs::write(place.path("project/.pi/delegator.json"), "{").unwrap();
    let (code, out, _) = run(&place, &["check"]);
    assert!(code == 0 && out.contains("not trusted, ignored: "), "{out}");
    for arguments in [
        &["check", "--trust-project"][..],
        &["profiles", "--trust-project"],
        &["run", "--trust-project", "-p", "scout", "t"],
    ] {
        let (code, out, err) = run(&place, arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(
            err.contains(".pi/delegator.json:1:1: this is not JSON: "),
            "{err}"
        );
    }
    assert!(place.launches().is_empty());
    let output = place
        .command(&["check"])
        .env("PI_DELEGATOR_PI_BINARY", "/no/such/pi")
        .output()
        .unwrap();
    let (code, _, err) = read(&output);
    assert!(code == 2 && err.contains("/no/such/pi"), "{err}");
}

#[test]
fn completions_know_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = run(&place, &["completions", shell]);
        assert!(code == 0 && out.contains("trust-project"), "{shell}");
    }
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    let place = Place::new();
    let mut command = place.command(&["completions", "bash"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = wait_for("the end of the program", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
