//! What the subject says: calls and tools.

use serde_json::json;

use super::{Made, ordinary, table};
use crate::evidence::What;
use crate::verdict::Verdict::{Fail, NoEvidence, NotApplicable, Pass};

#[test]
fn calls() {
    table(
        ordinary,
        &[
            ("call.ok: true", Pass),
            ("call.ok: false", Fail),
            ("call.failed: false", Pass),
            ("call.answer: two files", Pass),
            ("call.answer: three files", Fail),
            ("call.answer: {contains: files, lacks: three}", Pass),
            ("call.answer: {contains: three}", Fail),
            ("call.answer: {lacks: files}", Fail),
            ("call.word: kit-call-1", Pass),
            ("call.reason: none", Pass),
            ("call.reason: {absent: true}", Pass),
            ("call.reason: deadline", Fail),
            ("call.usage.input: 12", Pass),
            ("call.usage.input: {at-least: 13}", Fail),
            ("call.stop-reason: stop", NotApplicable),
            ("call.text: {contains: code 7}", Pass),
            ("call.text: {at-most: output-cap + extra-text}", Pass),
            ("call.text: {above: output-cap}", Fail),
            ("call.is-error: false", Pass),
            ("call.is-error: true", Fail),
            ("call.details: {contains: answer}", Pass),
            ("call.details: {contains: error}", Fail),
            ("call.settled: true", Pass),
            ("call.settled: false", Fail),
            ("call.settlements: 1", Pass),
            ("call.settlements: 2", Fail),
            ("call.duration: {at-most: 300}", Pass),
            ("call.duration: {below: 300ms}", Fail),
            ("call.protocol-error: none", Pass),
            ("call.protocol-error: {present: true}", Fail),
            ("call.updates: 1", Pass),
            ("call.updates: 0", Fail),
            ("call.updates.text: {any: reading}", Pass),
            ("call.updates.text: {any: writing}", Fail),
            ("call.updates.bytes: {below: 1KiB}", Pass),
            ("call.updates.bytes: {below: 2}", Fail),
            ("call.updates.late: 0", Pass),
            ("call.updates.late: 1", Fail),
            ("call.launches: 1", Pass),
            ("call.launches: 0", Fail),
            ("call.aborted: false", Pass),
            ("call.child.task-intact: true", Pass),
            ("call.child.cwd: /tmp", Fail),
            ("each call.ok: true", Pass),
            ("each call.ok: false", Fail),
            ("call.result: {contains: content}", Pass),
            ("call.task: {contains: bytes}", Pass),
        ],
    );
}

#[test]
fn tools() {
    table(
        ordinary,
        &[
            ("tools.names: [delegate]", Pass),
            ("tools.names: [other]", Fail),
            ("tools.count: 1", Pass),
            ("tools.count: 2", Fail),
            ("tool.name: delegate", Pass),
            ("tool.properties: {every: {one-of: [task, profile]}}", Pass),
            ("tool.properties: {lacks: task}", Fail),
            ("tool.required: [task]", Pass),
            ("tool.required: none", Fail),
            ("tool.description: {contains: task}", Pass),
            ("tool.description: none", Fail),
            ("tool.title: Delegate", Pass),
            ("tool.title: x", Fail),
            ("tool.text: {contains: scout}", Pass),
            ("tool.text: {lacks: scout}", Fail),
            ("tool.enum.profile: [scout, worker]", Pass),
            ("tool.enum.profile: {contains: oracle}", Fail),
            ("tool.enum.task: {absent: true}", Pass),
            ("tool.output: {absent: true}", Pass),
        ],
    );
}

#[test]
fn an_answer_on_the_level_of_the_protocol_is_no_success() {
    let made = |checks: &str| {
        let error = json!({"code": -32602, "message": "no such profile"});
        Made::of("[{call: {}}]", checks)
            .life(500)
            .sent(10, "call", "kit-call-1")
            .event(
                20,
                What::Response {
                    call: "call".to_owned(),
                    result: None,
                    error: Some(error),
                },
            )
    };
    table(
        made,
        &[
            ("call.ok: false", Pass),
            ("call.ok: true", Fail),
            ("call.is-error: true", Pass),
            ("call.protocol-error: {contains: profile}", Pass),
            ("call.text: {contains: profile}", Pass),
            ("call.answer: {absent: true}", Pass),
            ("call.launches: 0", Pass),
            ("launches: 0", Pass),
            ("a.launches: 0", Pass),
            ("a.argv: {lacks: x}", NoEvidence),
        ],
    );
}

#[test]
fn a_call_that_never_settles_gives_no_evidence_of_its_result() {
    let made = |checks: &str| Made::of("[{call: {}}]", checks).sent(10, "call", "kit-call-1");
    table(
        made,
        &[
            ("call.ok: false", NoEvidence),
            ("call.answer: {lacks: x}", NoEvidence),
            ("call.error: none", NoEvidence),
            ("call.updates.late: 0", NoEvidence),
            ("call.launches: 0", NoEvidence),
            ("launches: 0", NoEvidence),
            ("call.settled: false", Pass),
            ("call.settlements: {at-most: 1}", Pass),
        ],
    );
}
