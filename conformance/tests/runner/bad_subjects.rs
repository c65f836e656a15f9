//! Subjects with every fault: each is told for what it is, nothing hangs, and the harness is not to blame.

use conformance::adapter;
use conformance::runner::{self, RunContext};

use crate::support::{
    EXECUTABLE, adapter as adapter_for, exit, faults, given_up, impatient, planned, responses, run,
    server, strays, survivors,
};

const CALL: &str = "[{call: {as: call}}]";

#[test]
fn one_that_dies_in_the_handshake_never_starts_and_that_is_its_own_fault() {
    let evidence = run("read -r line; echo cannot >&2; exit 3", CALL);
    assert_eq!(given_up(&evidence), ["subject.starts"]);
    assert_eq!(exit(&evidence), Some((Some(3), None)));
    assert_eq!(faults(&evidence), Vec::<String>::new());
    assert_eq!(evidence.stderr["subject"], "cannot\n");
}

#[test]
fn one_that_never_answers_is_given_up_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let adapter = impatient(adapter_for(folder.path(), "exec sleep 3041"));
    let evidence = runner::run(&planned(CALL), &adapter, &RunContext::new(EXECUTABLE));
    assert_eq!(given_up(&evidence), ["subject.starts", "subject.exited"]);
    assert_eq!(survivors(&evidence), ["sleep 3041"]);
    assert_eq!(
        exit(&evidence),
        None,
        "ended by the harness, which is no evidence"
    );
    assert!(!crate::support::runs("3041"));
}

#[test]
fn junk_between_messages_is_kept_and_harms_nothing() {
    let junk = "say 'starting up'; say '[1]'; say '{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}'; answer $id done";
    let evidence = run(&server(junk), CALL);
    assert_eq!(responses(&evidence).len(), 1);
    let strays = strays(&evidence);
    assert_eq!(strays.len(), 3, "{strays:?}");
    assert!(
        strays[0].contains("not JSON") && strays[2].contains("answer to nothing"),
        "{strays:?}"
    );
}

#[test]
fn a_second_answer_is_seen_as_one() {
    let evidence = run(&server("answer $id one; answer $id two"), CALL);
    let texts: Vec<String> = responses(&evidence)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts, ["one", "two"]);
}

#[test]
fn a_result_that_is_none_is_told() {
    let wrong = "say \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":{\\\"content\\\":\\\"text\\\"}}\"";
    let evidence = run(&server(wrong), CALL);
    assert_eq!(responses(&evidence).len(), 1, "it settles all the same");
    let strays = strays(&evidence);
    assert!(
        strays
            .iter()
            .any(|problem| problem.contains("no valid result of a tool call")),
        "{strays:?}"
    );
}

#[test]
fn a_death_in_a_call_is_noticed_without_waiting_out_patience() {
    let started = std::time::Instant::now();
    let evidence = run(&server("kill -9 $$"), CALL);
    assert_eq!(exit(&evidence), Some((None, Some("KILL".to_owned()))));
    assert_eq!(given_up(&evidence), ["call.settled"]);
    assert!(started.elapsed() < std::time::Duration::from_secs(25));
}

#[test]
fn a_line_without_end_is_bounded() {
    let endless = "head -c 50000000 /dev/zero | tr '\\0' x; echo; answer $id done";
    let evidence = run(&server(endless), CALL);
    assert_eq!(responses(&evidence).len(), 1);
    let strays = strays(&evidence);
    assert_eq!(strays, ["a line of 50000000 bytes"]);
}

#[test]
fn a_flood_is_given_up() {
    let evidence = run(&server("exec yes flood"), CALL);
    assert_eq!(given_up(&evidence)[0], "call.settled");
    let strays = strays(&evidence);
    assert!(strays.len() <= 101, "{}", strays.len());
    assert_eq!(faults(&evidence), Vec::<String>::new());
}

#[test]
fn a_command_that_does_not_exist_is_told_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let context = RunContext::new(EXECUTABLE);
    let mut adapter = adapter_for(folder.path(), "");
    assert!(runner::check_command(&adapter, &context).is_ok());
    let script = folder.path().join("server.sh").display().to_string();
    for (command, wanted) in [
        ("/nowhere/at-all", "No such file"),
        (
            "no-such-program-anywhere",
            "there is no program `no-such-program-anywhere` on PATH",
        ),
        (script.as_str(), "not executable"),
        ("/etc", "is a folder"),
    ] {
        adapter.command[0] = command.to_owned();
        let error = runner::check_command(&adapter, &context)
            .unwrap_err()
            .to_string();
        assert!(error.contains(wanted), "{error}");
        let evidence = runner::run(&planned(CALL), &adapter, &context);
        assert!(faults(&evidence)[0].contains(wanted));
    }
}

#[test]
fn an_adapter_that_is_wrong_is_shown_with_its_place_and_the_right_word() {
    let text = "adapter: x\ntransport: mcp\ncomand: [x]\n";
    let error = adapter::parse("x.yaml", text).unwrap_err();
    let shown = format!("{:?}", miette::Report::new(error));
    assert!(shown.contains("x.yaml:3:1"), "{shown}");
    assert!(
        shown.contains("there is no key `comand`") && shown.contains("did you mean `command`?"),
        "{shown}"
    );

    let error = adapter::load("reference-delegater").unwrap_err();
    let shown = format!("{:?}", miette::Report::new(error));
    assert!(
        shown.contains("did you mean `reference-delegator`?"),
        "{shown}"
    );
}
