//! The runner's own death, and an interrupted run: nothing is left, neither process nor folder.

use std::process::{Command, Stdio};

use conformance::runner::{self, RunContext};

use crate::support::{EXECUTABLE, adapter, planned, runs, server, until};

/// Set where this test runs itself as a runner that is to die.
const VICTIM: &str = "RUNNER_TEST_VICTIM";

#[test]
fn a_killed_runner_leaves_nothing() {
    if let Some(folder) = std::env::var_os(VICTIM) {
        let hang = "setsid sleep 3044 & sleep 3044";
        let adapter = adapter(folder.as_ref(), &server(hang));
        runner::run(
            &planned("[{call: {as: call}}]"),
            &adapter,
            &RunContext::new(EXECUTABLE),
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tmp = folder.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "death::a_killed_runner_leaves_nothing",
            "--nocapture",
        ])
        .env(VICTIM, folder.path())
        .env("TMPDIR", &tmp)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the subject works", || runs("3044"));
    assert!(std::fs::read_dir(&tmp).unwrap().count() > 0);
    victim.kill().unwrap();
    victim.wait().unwrap();
    until("the warden has ended everything", || !runs("3044"));
    until("the folders are gone", || {
        std::fs::read_dir(&tmp).unwrap().count() == 0
    });
}

#[test]
fn an_interrupted_run_ends_soon_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let adapter = adapter(folder.path(), &server("setsid sleep 3045 & sleep 3045"));
    let context = RunContext::new(EXECUTABLE);
    let evidence = std::thread::scope(|scope| {
        let run = scope.spawn(|| runner::run(&planned("[{call: {as: call}}]"), &adapter, &context));
        until("the subject works", || runs("3045"));
        context.interrupt.raise();
        run.join().unwrap()
    });
    assert!(!runs("3045"));
    assert!(crate::support::faults(&evidence).contains(&"the run was interrupted".to_owned()));
    assert!(!std::path::Path::new(&evidence.header.folders["run"]).exists());
}
