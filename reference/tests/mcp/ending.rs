//! How a session ends: by its input, by a signal, by a client that reads no more.

use std::os::unix::process::ExitStatusExt as _;

use nix::sys::signal::Signal;
use serde_json::json;

use super::support::{Place, Server, call, initialize, runs, wait_for};
use super::verdict;

// shows: deadline.no-lingering-timers
#[test]
fn an_idle_session_ends_with_its_input() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    assert_eq!(
        verdict(&server.call(1, json!({"task": "t", "profile": "worker"}))),
        ("success", "")
    );
    server.close_input();
    let (status, rest, stderr) = server.ended();
    assert_eq!(
        (status.code(), rest, stderr.as_str()),
        (Some(0), vec![], "")
    );
    // And so does one that was never opened.
    let mut server = Server::bare(place.command(&["mcp"]));
    server.close_input();
    assert_eq!(server.ended().0.code(), Some(0));
}

// shows: cancel.child-gone-after-parent-death
#[test]
fn closing_the_input_ends_what_runs_and_says_so() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    server.send(&[call(1, json!({"task": "hang", "profile": "worker"}))]);
    let (child, its_child) = place.hanging();
    server.close_input();
    let (status, rest, _) = server.ended();
    assert_eq!(status.code(), Some(0));
    assert_eq!(verdict(&rest[0]["result"]), ("cancelled", "shutdown"));
    assert_eq!(rest.len(), 1);
    assert!(!runs(child) && !runs(its_child));
}

// shows: field.delegator-signalled
#[test]
fn a_signal_ends_what_runs_and_then_the_server() {
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGQUIT,
    ] {
        let place = Place::new();
        let mut server = Server::start(place.command(&["mcp"]));
        server.send(&[call(1, json!({"task": "hang", "profile": "worker"}))]);
        let (child, its_child) = place.hanging();
        server.signal(signal);
        let (status, rest, _) = server.ended();
        assert_eq!(status.signal(), Some(signal as i32));
        assert!(!runs(child) && !runs(its_child), "{signal}");
        assert_eq!(verdict(&rest[0]["result"]), ("cancelled", "shutdown"));
    }
}

#[test]
fn results_are_written_also_when_the_end_takes_its_time() {
    for signal in [None, Some(Signal::SIGTERM)] {
        let place = Place::new();
        let mut server = Server::start(place.command(&["mcp"]));
        server.send(&[call(
            1,
            json!({"task": "stubborn hang", "profile": "worker"}),
        )]);
        let (child, its_child) = place.hanging();
        match signal {
            None => server.close_input(),
            Some(signal) => server.signal(signal),
        }
        let (status, rest, _) = server.ended();
        assert_eq!(
            (status.signal(), rest.len()),
            (signal.map(|signal| signal as i32), 1)
        );
        assert_eq!(verdict(&rest[0]["result"]), ("cancelled", "shutdown"));
        assert_eq!(
            rest[0]["result"]["structuredContent"]["cleanup"]["kill"],
            true
        );
        assert!(!runs(child) && !runs(its_child));
    }
}

/// The guardian of this place's server: the process that has its name and its environment.
fn guardian(place: &Place) -> Option<i32> {
    let home = format!("HOME={}", place.path("home").display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: i32, file: &str, word: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes
            .split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
    };
    pids.into_iter()
        .find(|pid| has(*pid, "cmdline", "guardian") && has(*pid, "environ", &home))
}

// shows: field.delegator-killed
#[test]
fn nothing_outlives_a_server_that_was_killed() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    server.send(&[call(
        1,
        json!({"task": "stubborn hang", "profile": "worker"}),
    )]);
    let (child, its_child) = place.hanging();
    let guardian = wait_for("the guardian", || guardian(&place));
    server.signal(Signal::SIGKILL);
    let (status, rest, _) = server.ended();
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    assert_eq!(rest.len(), 0);
    for pid in [child, its_child, guardian] {
        wait_for("the end of it", || (!runs(pid)).then_some(()));
    }
}

#[test]
fn a_guardian_that_was_killed_has_a_successor_and_goes_with_the_server() {
    let place = Place::new();
    let mut server = Server::start(place.command(&["mcp"]));
    server.call(1, json!({"task": "t", "profile": "worker"}));
    let first = wait_for("the guardian", || guardian(&place));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), Signal::SIGKILL).unwrap();
    wait_for("its end", || (!runs(first)).then_some(()));
    server.call(2, json!({"task": "t", "profile": "worker"}));
    let second = wait_for("its successor", || guardian(&place));
    assert_ne!(first, second);
    server.close_input();
    assert_eq!(server.ended().0.code(), Some(0));
    assert!(!runs(second));
}

#[test]
fn a_reader_that_went_away_does_not_keep_the_server() {
    let place = Place::new();
    let mut command = place.command(&["mcp"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    {
        use std::io::Write as _;
        let mut input = child.stdin.take().unwrap();
        let hang = call(1, json!({"task": "hang", "profile": "scout"}));
        // It may be gone already, which is as good.
        let _ = writeln!(input, "{}\n{hang}", initialize());
    }
    wait_for("the end of the server", || child.try_wait().unwrap());
    for launch in place.launches() {
        assert!(!runs(launch.pid));
    }
}
