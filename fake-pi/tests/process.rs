//! fake-pi as a real process: what a parent, the kernel and the journal see of it.
#![expect(clippy::unwrap_used, reason = "a test may, in its helpers too")]

#[path = "process/place.rs"]
mod place;

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;

use fake_pi::journal::{Descriptor, Entry, What};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use place::{Place, types};

#[test]
fn an_answer_is_a_whole_run_and_the_exit_code_is_the_scripts() {
    let place = Place::acts("{accept: prompt}, {answer: {echo: task}}, {exit: 3}");
    let mut child = place.rpc();
    child.prompt("what is there");
    let output = child.output();
    assert_eq!(child.wait().code(), Some(3));
    let types = types(&output);
    assert_eq!(types.first().map(String::as_str), Some("response"));
    assert_eq!(types.last().map(String::as_str), Some("agent_settled"));
    assert!(output.contains("what is there"));
}

#[test]
fn json_mode_begins_with_the_session_and_ends_by_itself() {
    let place = Place::acts("{answer: fine}");
    let mut child = place.start(&["--mode", "json", "say it"]);
    drop(child.0.stdin.take());
    let output = child.output();
    assert_eq!(child.wait().code(), Some(0));
    assert_eq!(types(&output)[0], "session");
}

#[test]
fn a_one_shot_child_ends_once_its_acts_are_done_whatever_pi_itself_would_do() {
    for (acts, code, last) in [
        (
            "{written: {every: 3, do: [{answer: fine}]}}",
            0,
            "agent_settled",
        ),
        ("{answer: fine}, {exit: 3}", 3, "agent_settled"),
        ("{answer: fine}, {record: {type: late}}", 0, "late"),
    ] {
        let place = Place::acts(acts);
        let mut child = place.start(&["--mode", "json", "say it"]);
        drop(child.0.stdin.take());
        let output = child.output();
        assert_eq!(child.wait().code(), Some(code), "{acts}");
        assert_eq!(
            types(&output).last().map(String::as_str),
            Some(last),
            "{acts}"
        );
    }
}

#[test]
fn a_one_shot_child_that_hangs_behind_its_answer_stays() {
    let place = Place::acts("{answer: fine}, {reach: answered}, {hang: true}");
    let mut child = place.start(&["--mode", "json", "say it"]);
    drop(child.0.stdin.take());
    place.reached("answered");
    kill(child.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().code(), Some(143), "it was there to be ended");
}

#[test]
fn text_mode_prints_the_answer_alone() {
    let place = Place::acts("{answer: fine}");
    let mut child = place.start(&["-p"]);
    child.0.stdin.take().unwrap().write_all(b"say it").unwrap();
    assert_eq!(child.output(), "fine\n");
    assert_eq!(child.wait().code(), Some(0));
}

#[test]
fn the_version_stands_where_each_flavour_puts_it() {
    let place = Place::acts("{hang: true}");
    let mut child = place.start(&["--version"]);
    assert_eq!(
        (child.output().as_str(), child.errors().as_str()),
        ("1.6.0\n", "")
    );
    let place = Place::new("children:\n  a: {flavour: 0.73.1, acts: []}\n");
    let mut child = place.start(&["--version"]);
    assert_eq!(
        (child.output().as_str(), child.errors().as_str()),
        ("", "0.73.1\n")
    );
}

#[test]
fn an_unknown_option_is_refused_as_pi_does() {
    let place = Place::acts("{hang: true}");
    let mut child = place.start(&["--no-such-flag"]);
    assert_eq!(child.wait().code(), Some(1));
    assert_eq!(child.errors(), "Error: Unknown option: --no-such-flag\n");
}

#[test]
fn a_wrong_script_ends_with_70_and_tells_the_place_and_the_right_word() {
    let place = Place::new("children:\n  a:\n    - answr: x\n");
    let mut child = place.rpc();
    assert_eq!(child.wait().code(), Some(70));
    let errors = child.errors();
    assert!(errors.contains("script.yaml:3:7"), "{errors}");
    assert!(errors.contains("did you mean `answer`?"), "{errors}");
    let fault = |entry: &Entry| matches!(entry.what, What::Fault { .. }).then_some(());
    place.seen("the fault", fault);
}

#[test]
fn a_task_that_fits_no_child_ends_with_70() {
    let place = Place::new("children:\n  a: [{hang: true}]\n  b: [{hang: true}]\n");
    let mut child = place.rpc();
    child.prompt("nobody's task");
    assert_eq!(child.wait().code(), Some(70));
    assert!(
        child
            .errors()
            .contains("no child of the script fits this task")
    );
}

#[test]
fn the_journal_survives_sigkill() {
    let place = Place::acts("{accept: prompt}, {reach: there}, {hang: true}");
    let mut child = place.rpc();
    child.prompt("kit-call-1 go");
    place.reached("there");
    kill(child.pid(), Signal::SIGKILL).unwrap();
    assert_eq!(child.wait().signal(), Some(9));
    let journal = place.journal();
    assert!(matches!(journal[0].what, What::Start(_)));
    assert!(
        journal
            .iter()
            .any(|e| matches!(&e.what, What::Task { call: Some(c), .. } if c == "kit-call-1"))
    );
    assert!(
        !journal
            .iter()
            .any(|entry| matches!(entry.what, What::Exit { .. }))
    );
}

#[test]
fn sigterm_ends_with_143_unless_the_script_ignores_it() {
    let place = Place::acts("{reach: up}, {hang: true}");
    let mut child = place.rpc();
    place.reached("up");
    kill(child.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().code(), Some(143));

    let place = Place::acts("{ignore: [TERM]}, {reach: up}, {hang: true}");
    let mut child = place.rpc();
    place.reached("up");
    kill(child.pid(), Signal::SIGTERM).unwrap();
    let me = std::process::id() as i32;
    let from = place.seen("the signal", |entry| match &entry.what {
        What::Signal { name, from } if name == "TERM" => Some(*from),
        _ => None,
    });
    assert_eq!(from, Some(me));
    assert!(child.0.try_wait().unwrap().is_none());
}

#[test]
fn an_occasion_takes_the_place_of_what_pi_does() {
    let place = Place::new(
        "children:\n  a:\n    acts: [{reach: up}, {hang: true}]\n    on: {term: [{exit: 5}]}\n",
    );
    let mut child = place.rpc();
    place.reached("up");
    kill(child.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().code(), Some(5));
}

#[test]
fn the_end_of_input_ends_an_idle_child_with_0() {
    let place = Place::acts("{hang: true}");
    let mut child = place.rpc();
    drop(child.0.stdin.take());
    assert_eq!(child.wait().code(), Some(0));
}

#[test]
fn a_burst_is_there_at_once_as_soon_as_a_byte_of_it_is() {
    let place = Place::acts(
        "{written: {burst: true, do: [{raw: \"one\\n\"}, {raw: \"two\\n\"}]}}, {hang: true}",
    );
    let mut child = place.rpc();
    let mut bytes = [0; 64];
    let count = child.0.stdout.as_mut().unwrap().read(&mut bytes).unwrap();
    assert_eq!(&bytes[..count], b"one\ntwo\n");
}

#[test]
fn a_barrier_holds_the_acts() {
    let place = Place::acts("{reach: before}, {wait: {barrier: go}}, {exit: 4}");
    let mut child = place.rpc();
    place.reached("before");
    assert!(child.0.try_wait().unwrap().is_none());
    fs::create_dir_all(place.folder.path().join("barriers")).unwrap();
    fs::write(place.folder.path().join("barriers/go"), "").unwrap();
    assert_eq!(child.wait().code(), Some(4));
}

#[test]
fn a_big_flood_of_stderr_comes_whole() {
    let place = Place::acts("{flood: {stream: stderr, bytes: 20MiB}}, {exit: 0}");
    let mut child = place.rpc();
    assert!(child.errors().len() >= 20 << 20);
    assert_eq!(child.wait().code(), Some(0));
}

#[test]
fn a_child_dies_by_the_signal_that_it_was_told() {
    for (name, number) in [("SEGV", 11), ("KILL", 9), ("TERM", 15)] {
        let place = Place::acts(&format!("{{die: {name}}}"));
        assert_eq!(place.rpc().wait().signal(), Some(number), "{name}");
    }
}

#[test]
fn a_reader_that_has_gone_ends_the_child_with_1() {
    let place = Place::acts("{stream: {text: x}}");
    let mut child = place.rpc();
    drop(child.0.stdout.take());
    child.prompt("go");
    assert_eq!(child.wait().code(), Some(1));
    place.seen("EPIPE", |entry| {
        matches!(&entry.what, What::WriteFailed { error, .. } if error == "EPIPE").then_some(())
    });
}

#[test]
fn a_descendant_is_as_it_was_ordered() {
    let place = Place::acts(
        "{descendant: {name: d, ignores: [TERM], session: true, holds: [stdout]}}, {reach: up}, {exit: 0}",
    );
    let mut child = place.rpc();
    assert_eq!(child.wait().code(), Some(0));
    let (pid, start) = place.seen("the descendant", |entry| match &entry.what {
        What::Start(start) if start.role == "descendant" => Some((entry.pid, start.clone())),
        _ => None,
    });
    assert_eq!((start.sid, start.pgid), (pid, pid));
    // What this test process itself was given by whoever runs it is not the child's doing.
    let mine = |descriptor: &&Descriptor| {
        fs::read_link(format!("/proc/self/fd/{}", descriptor.fd))
            .is_ok_and(|target| target.to_string_lossy() == descriptor.target)
    };
    let above: Vec<_> = start
        .fds
        .iter()
        .filter(|descriptor| descriptor.fd > 2 && !mine(descriptor))
        .collect();
    assert!(above.is_empty(), "{above:?}");
    let target = |fd| {
        start
            .fds
            .iter()
            .find(|d| d.fd == fd)
            .map(|d| d.target.as_str())
    };
    assert_eq!(
        (target(0), target(2)),
        (Some("/dev/null"), Some("/dev/null"))
    );
    assert!(target(1).unwrap().starts_with("pipe:"));
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    place.seen("its signal", |entry| {
        (entry.pid == pid && matches!(&entry.what, What::Signal { name, .. } if name == "TERM"))
            .then_some(())
    });
    assert!(fs::exists(format!("/proc/{pid}")).unwrap());
}
