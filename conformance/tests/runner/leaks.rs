//! What a subject leaves behind is found, wherever it fled to, and ended.

use crate::support::{pick, run, runs, server, survivors};
use conformance::evidence::What;

#[test]
fn a_daemon_with_a_session_of_its_own_and_a_scrubbed_environment_is_found_and_ended() {
    // Forked twice, with a session of its own, without any of our marks.
    let leak = "setsid sh -c 'env -i sleep 3042 </dev/null >/dev/null 2>&1 &'; answer $id done";
    let evidence = run(&server(leak), "[{call: {as: call}}]");
    assert_eq!(survivors(&evidence), ["sleep 3042"]);
    assert!(!runs("3042"));
    let seen = pick(&evidence, |what| match what {
        What::ProcessSeen(process) => Some((process.pid, process.sid)),
        _ => None,
    });
    assert!(seen.iter().any(|(pid, sid)| pid != sid && *sid != 0));
}

#[test]
fn a_holder_of_the_subjects_streams_hangs_nobody() {
    let leak = "sleep 3043 & answer $id done";
    let evidence = run(&server(leak), "[{call: {as: call}}]");
    assert_eq!(survivors(&evidence), ["sleep 3043"]);
    assert!(!runs("3043"));
}

#[test]
fn an_orphan_that_ends_by_itself_is_reaped_and_no_survivor() {
    let orphan = "sh -c 'sh -c \"exit 7\" & exit 0'; answer $id done";
    let evidence = run(&server(orphan), "[{call: {as: call}}, {sample: {as: end}}]");
    assert_eq!(survivors(&evidence), Vec::<String>::new());
    let reaped = pick(&evidence, |what| match what {
        What::OrphanReaped { code, .. } => Some(*code),
        _ => None,
    });
    assert_eq!(reaped, [Some(7)]);
}
