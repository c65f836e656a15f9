//! A page of a run that never was: a failure with all that a picture can show, a pass, and a differing policy.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

pub struct Page(tempfile::TempDir);

impl Page {
    /// Makes the page with `pi-conform report`.
    pub fn make() -> Self {
        let page = Self(tempfile::tempdir().unwrap());
        let lines: String = events().iter().map(|event| format!("{event}\n")).collect();
        std::fs::write(page.path("run.jsonl"), lines).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_pi-conform"))
            .args(["report", "run.jsonl", "--format", "html:report.html"])
            .current_dir(page.0.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        page
    }

    /// Changes the page's script, so that it is another than the page's policy names.
    pub fn spoil_its_script(&self) {
        let file = self.path("report.html");
        let text = std::fs::read_to_string(&file).unwrap();
        let spoilt = text.replace("<script>", "<script>0;");
        assert_ne!(text, spoilt);
        std::fs::write(file, spoilt).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Milliseconds.
fn ms(at: u64) -> u64 {
    at * 1_000_000
}

fn mark(at: u64, kind: &str, label: &str) -> Value {
    json!({"at_ns": ms(at), "kind": kind, "label": label, "text": label})
}

fn picture() -> Value {
    let mut term = mark(8100, "signal", "TERM");
    term["from"] = json!(2);
    let mut closed = mark(8160, "pipe", "input closed");
    closed["from"] = json!(0);
    json!({
        "end_ns": ms(8300),
        "lanes": [
            {"of": "runner", "name": "runner", "depth": 0, "marks": [mark(60, "step", "spawn"), mark(100, "step", "wait"), mark(8090, "wrong", "gave up")]},
            {"of": "claims", "name": "claims", "depth": 0, "marks": [mark(58, "record", "initialized"), mark(240, "record", "progress")],
             "calls": [{"from_ns": ms(62), "to_ns": ms(8150), "label": "call", "text": "call settled: two files"}]},
            {"of": "subject", "name": "subject", "pid": 10, "depth": 0, "bar": {"from_ns": 0, "to_ns": ms(8180), "survives": false, "ended": "exit 0"},
             "marks": [closed, mark(8180, "end", "exit 0")]},
            {"of": "child", "name": "a", "pid": 20, "depth": 1, "bar": {"from_ns": ms(110), "to_ns": ms(8110), "survives": false, "ended": "exit 143"},
             "marks": [mark(150, "record", "prompt"), mark(152, "record", "task"), mark(160, "step", "accept"), mark(200, "step", "descendant"), mark(230, "step", "answer"), mark(235, "record", "9 records"), term, mark(8108, "end", "exit 143")]},
            {"of": "descendant", "name": "helper", "pid": 21, "depth": 2, "bar": {"from_ns": ms(205), "to_ns": ms(8300), "survives": true}},
        ],
        "stalls": [{"from_ns": ms(170), "to_ns": ms(190)}],
    })
}

fn events() -> Vec<Value> {
    let check = |id: &str, verdict: &str, seen: &str| json!({"id": id, "proves": ["drain.descendant-holds-stdout"], "verdict": verdict, "expected": "call.settles comes within grace after a.exited", "seen": seen});
    let finished = |name: &str, verdict: &str, checks: Value| {
        json!({
            "type": "finished", "scenario": name, "area": "process-tree-and-drain", "axes": {}, "verdict": verdict, "duration_ms": 8300, "checks": checks,
            "why": "A background helper that keeps the pipe open must not hang the call.", "reproduce": format!("pi-conform run '{name}'"),
            "rules": {"drain.descendant-holds-stdout": "A descendant that keeps the stdout pipe open cannot hang the call."},
        })
    };
    let hostile = "claims: </script><i data-broken>\u{1b}[31m\u{0}<script>document.body.dataset.broken = 1</script>";
    let wrong = json!([
        check("checks[1] call.settles", "fail", hostile),
        check("checks[0] call.ok", "pass", "claims: call.ok is true")
    ]);
    let mut fail = finished("holds-stdout", "fail", wrong);
    fail["picture"] = picture();
    fail["witnesses"] = json!({"claims": ["call: settled after 8088 ms, ok true"], "journal": ["a: pid 20, TERM, exit 143"], "kernel": ["subject ended: exit 0", "1 survivors: helper"]});
    fail["timeline"] = json!([
        "      0.0 ms  runner   subject started, pid 10",
        "   8150.0 ms  claims   call settled: two files"
    ]);
    vec![
        json!({"type": "run", "format": 1, "suite": "0.1.0", "subject": "some-delegator", "about": "A delegator that was never written.", "selected": 3, "jobs": 2}),
        fail,
        finished(
            "length-stop",
            "differs",
            json!([check(
                "checks[0] call.ok",
                "differs",
                "claims: call.ok is true"
            )]),
        ),
        finished(
            "clean-exit",
            "pass",
            json!([check(
                "checks[0] call.ok",
                "pass",
                "claims: call.ok is true"
            )]),
        ),
    ]
}
