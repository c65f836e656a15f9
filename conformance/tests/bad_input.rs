//! What goes wrong before or instead of a verdict, with the real program: one clear message, the documented exit code,
//! nothing left running or lying about, and the evidence kept where there is any.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod real_runs;

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use real_runs::{Place, runs, until};

/// A wrong file, folder or program is told in one message that names it; nothing is started.
#[test]
fn what_is_missing_or_wrong_is_named_with_exit_code_2() {
    let place = Place::new();
    place.scenario("one", "done");
    place.subject("nowhere", "[/nonexistent/program]");
    place.subject("unknown", "[no-such-program-anywhere]");
    place.subject("typo", "[\"{{ bin.delgate }}\", mcp]");
    place.file("program", "#!/bin/sh\n");
    place.subject("plain", "[./program]");
    place.file("broken.yaml", "adapter: [");
    let silent = place.subject("key", "[sh]");
    place.file("key.yaml", &silent.replace("child-mode", "child-mod"));
    place.file("operation.yaml", &silent.replace("spawn", "spwan"));
    place.file(
        "act.yaml",
        &place.read("one.yaml").replace("answer:", "anwser:"),
    );
    place.folder("empty");
    for (args, said) in [
        (
            &["--adapter", "nowhere.yaml"][..],
            "cannot start the subject: `/nonexistent/program`: No such file",
        ),
        (
            &["--adapter", "unknown.yaml"],
            "there is no program `no-such-program-anywhere` on PATH",
        ),
        (
            &["--adapter", "typo.yaml"],
            "typo.yaml:3:15: template of command[0]: there is no name `bin.delgate`",
        ),
        (
            &["--adapter", "plain.yaml"],
            "`./program` is not executable; `chmod +x` makes it so",
        ),
        (&["--adapter", "broken.yaml"], "broken.yaml:1:10"),
        (&["--adapter", "key.yaml"], "did you mean `child-mode`?"),
        (
            &["--adapter", "operation.yaml"],
            "operation.yaml:8:14: `operations` has no `spawn`",
        ),
        (
            &["--adapter", "missing.yaml"],
            "cannot read adapter `missing.yaml`: No such file",
        ),
        (&["--scenarios", "act.yaml"], "did you mean `answer`?"),
        (&["--scenarios", "empty"], "`empty` holds no scenario"),
        (&["--out", "one.yaml"], "cannot make the folder one.yaml"),
        (
            &["--format", "json:missing/report.json"],
            "cannot write the report missing/report.json",
        ),
        (
            &["--baseline", "missing.yaml"],
            "baseline missing.yaml: No such file",
        ),
    ] {
        let mut all = vec!["run"];
        all.extend(args);
        if !args.contains(&"--scenarios") {
            all.extend(["--scenarios", "one.yaml"]);
        }
        let done = place.pi_conform(&all);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert_eq!(done.out, "", "{args:?}");
        assert!(
            done.err.contains(said),
            "{args:?}: `{said}` is not in\n{}",
            done.err
        );
        assert_eq!(done.err.matches("pi-conform: ").count(), 1, "{}", done.err);
        place.is_tidy();
    }
}

/// Arguments by which the processes of these subjects are known.
const MARKS: [&str; 3] = ["3141", "3142", "3143"];

/// A subject that does not get through the handshake fails with one check that says how, and its evidence is kept.
#[test]
fn a_subject_that_never_answers_floods_or_dies_is_one_clear_failure() {
    let subjects = [
        (
            "silent",
            "exec sleep 3141",
            "it ran until patience was at its end, before it answered `initialize`",
        ),
        (
            "flood",
            "exec yes 3142",
            "100 lines of its output were no messages of the protocol",
        ),
        (
            "noisy",
            "exec yes 3143 >&2",
            "the last of its standard error: ",
        ),
        (
            "dies",
            "read -r line; echo no licence >&2; exit 3",
            "it ended with code 3 before it answered `initialize`; the last of its standard error: no licence",
        ),
        ("gone", "kill -9 $$", "it was ended by"),
    ];
    // Each costs some patience, so they go side by side.
    std::thread::scope(|scope| {
        for (name, script, said) in subjects {
            scope.spawn(move || fails_in_the_handshake(name, script, said));
        }
    });
    assert!(!MARKS.iter().any(|mark| runs(mark)), "something is left");
}

fn fails_in_the_handshake(name: &str, script: &str, said: &str) {
    let place = Place::new();
    place.scenario("one", "done");
    place.subject(name, &format!("[sh, -c, {script:?}]"));
    let adapter = format!("{name}.yaml");
    let done = place.pi_conform(&[
        "run",
        "--adapter",
        &adapter,
        "--scenarios",
        "one.yaml",
        "--out",
        "out",
    ]);
    assert_eq!(done.code, Some(1), "{name}: {done:?}");
    assert!(
        done.out.contains(said),
        "{name}: `{said}` is not in\n{}",
        done.out
    );
    assert!(!done.out.contains("no-evidence"), "{}", done.out);
    assert!(place.path("out/one/bundle.json").is_file());
    place.is_tidy();
    let again = place.pi_conform(&["judge", "out"]);
    assert_eq!(again.code, Some(1));
    assert!(again.out.contains(said), "{}", again.out);
}

/// Patience is not paid for every scenario of a subject that never answers.
#[test]
fn a_subject_that_never_answers_ends_the_run_after_a_few_scenarios() {
    let place = Place::new();
    place.subject("dies", "[sh, -c, \"exit 1\"]");
    let done = place.pi_conform(&["run", "--adapter", "dies.yaml", "-j", "4", "--out", "out"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err
            .contains("the subject answered in none of 4 scenarios, so the others are left out"),
        "{}",
        done.err
    );
    assert!(done.out.contains(" did not run"), "{}", done.out);
    place.is_tidy();
}

/// A file that the system will not run although it may be: nothing is said about the subject, hence 70.
#[test]
fn a_program_of_no_known_format_is_a_harness_error() {
    let place = Place::new();
    place.scenario("one", "done");
    place.program("garbage", "\u{7f}NO PROGRAM");
    place.subject("garbage", "[./garbage]");
    let done = place.pi_conform(&[
        "run",
        "--adapter",
        "garbage.yaml",
        "--scenarios",
        "one.yaml",
    ]);
    assert_eq!(done.code, Some(70), "{done:?}");
    assert!(done.out.contains("Exec format error"), "{}", done.out);
}

/// Nowhere to put folders: the message says what to set.
#[test]
fn a_missing_temporary_folder_is_told() {
    let place = Place::new();
    let mut command = place.command(&["run", "clean-exit"]);
    command.env("TMPDIR", place.path("missing"));
    let done = real_runs::finish(command);
    assert_eq!(done.code, Some(70), "{done:?}");
    assert!(done.err.contains("set TMPDIR"), "{}", done.err);
}

/// A working directory that was removed is no reason to fail.
#[test]
fn a_working_directory_that_has_gone_does_no_harm() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_pi-conform");
    let script =
        format!("mkdir gone && cd gone && rmdir ../gone && exec '{program}' run clean-exit");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]);
    let done = real_runs::finish(place.dressed(command));
    assert_eq!(done.code, Some(0), "{done:?}");
    place.is_tidy();
}

/// Ctrl-C ends subjects, removes folders, and is no verdict.
#[test]
fn an_interrupt_leaves_nothing() {
    let place = Place::new();
    place.scenario("one", "done");
    let patient = place
        .subject(
            "silent",
            "[sh, -c, \"setsid sleep 3151 & exec sleep 3151\"]",
        )
        .replace("patience: 2s", "patience: 60s");
    place.file("silent.yaml", &patient);
    let mut command =
        place.command(&["run", "--adapter", "silent.yaml", "--scenarios", "one.yaml"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let runner = command.spawn().unwrap();
    until("the subject runs", || runs("3151"));
    let began = Instant::now();
    kill(Pid::from_raw(runner.id().cast_signed()), Signal::SIGINT).unwrap();
    let done = real_runs::done(runner.wait_with_output().unwrap());
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(
        began.elapsed() < Duration::from_secs(45),
        "it waited patience out"
    );
    assert!(done.out.contains("1 of 1 did not run"), "{}", done.out);
    assert!(!runs("3151"));
    place.is_tidy();
}
