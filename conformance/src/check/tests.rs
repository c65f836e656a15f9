//! Tables over hand-made evidence: each observation can pass, can fail, and says `no-evidence` when nothing was seen.

mod children;
mod claims;
mod embedded;
mod invariants;
mod kernel;
mod language;
mod picture;
mod times;

use fake_pi::journal::{Descriptor, Entry, Start, What as Wrote};
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::adapter::Adapter;
use crate::check::judge;
use crate::evidence::{Event, Evidence, FORMAT, Header, Process, Snapshot, What};
use crate::verdict::{CheckVerdict, Verdict};

/// One millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

/// Evidence that is put together by hand. Times are in milliseconds.
pub struct Made {
    evidence: Evidence,
}

pub fn adapter() -> Adapter {
    serde_saphyr::from_str(
        "
adapter: hand-made
transport: mcp
command: [x]
child-mode: rpc
capabilities: [cancel]
systems: [delegator]
figures:
  {grace: 2s, post-exit-drain: 1s, post-answer-drain: 3s, output-cap: 1000, extra-text: 100, record-cap: 8MiB, stderr-cap: 64KiB, task-limit: 500, model-limit: 200}
policy: {length: partial}
settings: {deadline: 5s}
profiles: [scout, worker]
operations: {spawn: {tool: delegate}}
observations:
  ok: /structuredContent/ok
  answer: /structuredContent/answer
  reason: /structuredContent/reason
  usage: /structuredContent/usage
  cleanup.term: /structuredContent/cleanup/term
  cleanup.kill: /structuredContent/cleanup/kill
  failed: {pointer: /structuredContent/ok, not: true}
  word: {pointer: text, pattern: 'code (\\d+)', map: {'7': seven}}
facts: {isolation-flags: [--no-skills]}
",
    )
    .unwrap()
}

impl Made {
    /// Evidence of a scenario with one child `a`, these steps and these checks.
    pub fn of(steps: &str, checks: &str) -> Self {
        let text = format!(
            "scenario: made\nproves: [semantics.settles-exactly-once]\nwhy: w\nchildren: {{a: []}}\nsteps: {steps}\nchecks:\n{checks}\n"
        );
        let scenario =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let header = Header {
            format: FORMAT,
            name: "made".to_owned(),
            area: "hand".to_owned(),
            scenario,
            adapter: adapter(),
            axes: IndexMap::new(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            folders: IndexMap::new(),
            reproduce: "pi-conform run made".to_owned(),
        };
        let evidence = Evidence {
            header,
            events: Vec::new(),
            journals: Vec::new(),
            stderr: IndexMap::new(),
        };
        Self { evidence }
    }

    pub fn event(mut self, at: u64, what: What) -> Self {
        self.evidence.events.push(Event {
            t_ns: at * MS,
            what,
        });
        self.evidence.events.sort_by_key(|event| event.t_ns);
        self
    }

    pub fn sent(self, at: u64, call: &str, word: &str) -> Self {
        let what = What::CallSent {
            call: call.to_owned(),
            subject: "subject".to_owned(),
            id: 1,
            child: Some("a".to_owned()),
            word: word.to_owned(),
            tool: "delegate".to_owned(),
            arguments: json!({}),
            task_sha256: "abc".to_owned(),
            task_bytes: 3,
        };
        self.event(at, what)
    }

    pub fn settled(self, at: u64, call: &str, details: Value) -> Self {
        let result = json!({"content": [{"type": "text", "text": "said code 7"}], "structuredContent": details});
        self.event(
            at,
            What::Response {
                call: call.to_owned(),
                result: Some(result),
                error: None,
            },
        )
    }

    pub fn journal(mut self, journal: Vec<Entry>) -> Self {
        self.evidence.journals.push(journal);
        self
    }

    /// The subject's usual life around whatever else happens: started, initialised, told to end at `end`, gone.
    pub fn life(self, end: u64) -> Self {
        let subject = || "subject".to_owned();
        self.event(
            0,
            What::SubjectStarted {
                subject: subject(),
                pid: 10,
                argv: vec![],
            },
        )
        .event(
            1,
            What::Initialized {
                subject: subject(),
                result: json!({}),
            },
        )
        .event(end, What::InputClosed { subject: subject() })
        .event(
            end + 5,
            What::SubjectExited {
                subject: subject(),
                code: Some(0),
                signal: None,
            },
        )
        .event(end + 6, What::Survivors { processes: vec![] })
        .event(
            end + 7,
            What::Leftovers {
                files: IndexMap::new(),
            },
        )
        .event(
            end + 8,
            What::WorkFiles {
                files: vec!["work/x".to_owned()],
            },
        )
        .event(end + 9, What::End)
    }

    pub fn stderr(mut self, text: &str) -> Self {
        self.evidence
            .stderr
            .insert("subject".to_owned(), text.to_owned());
        self
    }

    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    pub fn checks(&self) -> Vec<CheckVerdict> {
        judge(&self.evidence).checks
    }

    /// The verdict of one check by the start of its id.
    pub fn check(&self, id: &str) -> CheckVerdict {
        let checks = self.checks();
        checks
            .iter()
            .find(|check| check.id.starts_with(id))
            .cloned()
            .unwrap_or_else(|| panic!("no {id} in {checks:#?}"))
    }
}

/// Entries of a fake process: start at `at`, then what follows, all in milliseconds.
pub fn process(
    role: &str,
    name: Option<&str>,
    pid: i32,
    at: u64,
    then: Vec<(u64, Wrote)>,
) -> Vec<Entry> {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let start = Start {
        role: role.to_owned(),
        name: name.map(str::to_owned),
        argv: words(&[
            "/run/bin/pi",
            "--mode",
            "rpc",
            "--model=stub/m",
            "--no-skills",
        ]),
        env: IndexMap::from([("HOME".to_owned(), "/home".to_owned())]),
        cwd: "/work".to_owned(),
        ppid: 10,
        parent_argv: words(&["/run/delegate", "mcp"]),
        pgid: pid,
        sid: 1,
        start_ticks: u64::from(pid.unsigned_abs()) + 1000,
        fds: vec![
            Descriptor {
                fd: 0,
                target: "pipe:[1]".to_owned(),
            },
            Descriptor {
                fd: 5,
                target: "pipe:[9]".to_owned(),
            },
        ],
        blocked: words(&["USR1"]),
        ignored: vec![],
    };
    let first = Entry {
        t_ns: at * MS,
        pid,
        what: Wrote::Start(Box::new(start)),
    };
    let rest = then.into_iter().map(|(at, what)| Entry {
        t_ns: at * MS,
        pid,
        what,
    });
    std::iter::once(first).chain(rest).collect()
}

/// A child `a` that serves the call with `word`, gets TERM and exits.
pub fn child(pid: i32, at: u64, word: &str) -> Vec<Entry> {
    let command = |text: &str| Some(text.to_owned());
    let task = Wrote::Task {
        via: "rpc".to_owned(),
        text: format!("kit-child-a {word} find it"),
        bytes: 3,
        sha256: "abc".to_owned(),
        call: Some(word.to_owned()),
        marked: None,
    };
    let line = |kind: &str| Wrote::Stdin {
        line: format!("{{\"type\":\"{kind}\"}}"),
        bytes: 10,
        command: command(kind),
    };
    let then = vec![
        (
            at + 1,
            Wrote::Chosen {
                child: "a".to_owned(),
            },
        ),
        (at + 2, line("prompt")),
        (at + 3, task),
        (
            at + 4,
            Wrote::Reach {
                name: "working".to_owned(),
            },
        ),
        (
            at + 5,
            Wrote::Descendant {
                name: "helper".to_owned(),
                child_pid: pid + 1,
            },
        ),
        (at + 6, line("abort")),
        (at + 7, Wrote::StdinEof),
        (
            at + 8,
            Wrote::Signal {
                name: "TERM".to_owned(),
                from: Some(10),
            },
        ),
        (
            at + 9,
            Wrote::Exit {
                code: Some(143),
                signal: None,
            },
        ),
    ];
    process("child", None, pid, at, then)
}

/// The descendant `helper` of a child.
pub fn helper(pid: i32, at: u64) -> Vec<Entry> {
    process(
        "descendant",
        Some("helper"),
        pid,
        at,
        vec![(
            at + 1,
            Wrote::Signal {
                name: "TERM".to_owned(),
                from: Some(10),
            },
        )],
    )
}

pub fn kernel_process(pid: i32) -> Process {
    Process {
        pid,
        start_ticks: u64::from(pid.unsigned_abs()) + 1000,
        ppid: 10,
        pgid: pid,
        sid: 1,
        state: "S".to_owned(),
        argv: vec!["sleep".to_owned(), "300".to_owned()],
    }
}

pub fn sample(name: &str, rss: u64, peak_rss: u64) -> What {
    let sample = Snapshot {
        rss,
        peak_rss,
        fds: 9,
        threads: 2,
        children: 1,
        zombies: 0,
    };
    What::Sample {
        name: name.to_owned(),
        subject: "subject".to_owned(),
        sample,
    }
}

/// One call that a child served, from beginning to end.
pub fn ordinary(checks: &str) -> Made {
    let details = json!({"ok": true, "answer": "two files", "usage": {"input": 12}, "cleanup": {"term": true, "kill": false}});
    Made::of(
        "[{call: {child: a}}, {list-tools: {as: tools}}, {sample: {as: late}}]",
        checks,
    )
    .life(2000)
    .sent(100, "call", "kit-call-1")
    .settled(400, "call", details)
    .event(
        300,
        What::Update {
            call: "call".to_owned(),
            params: json!({"message": "reading"}),
        },
    )
    .event(
        1,
        What::ProcessSeen(Box::new(Process {
            pgid: 9,
            ..kernel_process(10)
        })),
    )
    .event(120, What::ProcessSeen(Box::new(kernel_process(20))))
    .event(121, What::ProcessSeen(Box::new(kernel_process(21))))
    .event(
        150,
        What::ProcessGone {
            pid: 20,
            start_ticks: 1020,
        },
    )
    .event(
        350,
        What::ProcessGone {
            pid: 21,
            start_ticks: 1021,
        },
    )
    .event(2, sample("auto", 1000, 1000))
    .event(500, sample("late", 4000, 6000))
    .event(
        3,
        What::Tools {
            name: "tools".to_owned(),
            tools: tools(),
        },
    )
    .journal(child(20, 110, "kit-call-1"))
    .journal(helper(21, 116))
    .stderr("warning: x\n")
}

pub fn tools() -> Value {
    json!([{
        "name": "delegate", "description": "Hands over a task.", "title": "Delegate",
        "inputSchema": {
            "type": "object", "required": ["task"],
            "properties": {"task": {"type": "string"}, "profile": {"$ref": "#/$defs/P"}},
            "$defs": {"P": {"oneOf": [{"const": "scout"}, {"const": "worker"}]}}
        }
    }])
}

/// Judges rows of `observation: expectation` twice: over evidence in which each must have the verdict of its row, and over none, in which
/// none may pass or fail.
pub fn table(made: impl Fn(&str) -> Made, rows: &[(&str, Verdict)]) {
    for (check, expected) in rows {
        let checks = format!("  - {check}");
        let one = made(&checks).check("checks[0]");
        assert_eq!(one.verdict, *expected, "{check}: {one:#?}");
        assert!(
            !one.seen.is_empty() && !one.expected.is_empty(),
            "{check}: {one:#?}"
        );
        let mut empty = made(&checks);
        empty.evidence.events.clear();
        empty.evidence.journals.clear();
        empty.evidence.stderr.clear();
        let verdict = empty.check("checks[0]").verdict;
        let judged = matches!(verdict, Verdict::Pass | Verdict::Fail | Verdict::Differs);
        assert!(
            !judged || check.contains("facts."),
            "{check} is {verdict:?} over no evidence"
        );
    }
}
