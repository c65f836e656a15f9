//! Every recording of the real Pi, replayed through the simulation: the same model replies and the same input must give
//! the same records in the same order, field by field, and the same end.
//!
//! The recordings lie in `scenarios/traces`, what the model said in them in `replies.yaml`, and those that are not
//! reproduced, each with its reason, in `not-reproduced.yaml`. A recording is in exactly one of the two states.

#![expect(clippy::unwrap_used, reason = "a test may, in its helpers too")]

#[path = "fidelity/compare.rs"]
mod compare;
#[path = "fidelity/json.rs"]
mod json;
#[path = "fidelity/replay.rs"]
mod replay;
#[path = "fidelity/table.rs"]
mod table;
#[path = "fidelity/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fake_pi::act::Flavour;
use table::Tables;
use trace::Trace;

const FLAVOURS: [(Flavour, &str); 2] = [(Flavour::V1_6_0, "1.6.0"), (Flavour::V0_73_1, "0.73.1")];

/// The groups of the recordings, as their README names them.
fn group(case: &str) -> &'static str {
    let starts = |words: &[&str]| words.iter().any(|word| case.starts_with(word));
    match case {
        "plain" | "two-prompts" => "plain and blocks",
        "finish-other" | "stop-empty" => "length and stop",
        "provider-refused" | "context-overflow" => "provider",
        "models-json-broken" | "ext-load-error" | "ext-missing" => "start",
        "split-input" | "crlf-input" | "u2028-text" | "surrogate-split" => "input",
        "state" | "settings-commands" | "rpc-bash" => "state",
        "tool-env" => "descendants",
        _ if starts(&["multi-text", "thinking-"]) => "plain and blocks",
        _ if starts(&["tool-", "big-"]) => "tools",
        _ if starts(&["length-"]) => "length and stop",
        _ if starts(&["http-", "stream-"]) => "provider",
        _ if starts(&["abort-"]) => "abort",
        _ if starts(&["steer-", "follow-up", "clear-queue", "prompt-"]) => "queue",
        _ if starts(&["model-", "flag-"]) => "start",
        _ if starts(&["bad-input", "long-"]) => "input",
        _ if starts(&["session-"]) => "state",
        _ if starts(&["eof-", "sig", "parent-"]) => "end",
        _ if starts(&["ext-"]) => "extensions",
        _ if starts(&["compact-", "usage-"]) => "compaction and usage",
        _ if starts(&["json-", "text-"]) => "one-shot",
        _ if starts(&["bg-"]) => "descendants",
        other => panic!("no group for the recording {other}"),
    }
}

#[test]
fn every_recording_is_reproduced_or_listed() {
    let tables = Tables::load();
    let mut counts: BTreeMap<&str, [[usize; 2]; 2]> = BTreeMap::new();
    let mut wrong = String::new();
    for (at, (flavour, name)) in FLAVOURS.into_iter().enumerate() {
        for trace in Trace::all(name) {
            let outcome = replay::replay(&trace, flavour, &tables.case(&trace.case, name));
            let listed = tables.listed(&trace.case, name);
            let count = counts.entry(group(&trace.case)).or_default();
            match (outcome, listed) {
                (Ok(_), None) => count[at][0] += 1,
                (Err(_), Some(_)) => count[at][1] += 1,
                (Ok(_), Some(_)) => {
                    let _ = writeln!(
                        wrong,
                        "{name} {}: is reproduced, so take it off the list",
                        trace.case
                    );
                }
                (Err(difference), None) => {
                    let _ = writeln!(wrong, "{name} {}: {difference}", trace.case);
                }
            }
        }
    }
    eprintln!(
        "{:24} {:>14} {:>14}",
        "reproduced (listed)", "1.6.0", "0.73.1"
    );
    let mut total = [[0; 2]; 2];
    for (group, count) in &counts {
        eprintln!(
            "{group:24} {:>7} ({:>3}) {:>7} ({:>3})",
            count[0][0], count[0][1], count[1][0], count[1][1]
        );
        for (sum, part) in total.iter_mut().flatten().zip(count.iter().flatten()) {
            *sum += part;
        }
        assert!(
            wrong.contains(':') || count.iter().all(|flavour| flavour[0] > 0),
            "nothing of {group} is reproduced"
        );
    }
    eprintln!(
        "{:24} {:>7} ({:>3}) {:>7} ({:>3})",
        "all", total[0][0], total[0][1], total[1][0], total[1][1]
    );
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(
        total.iter().all(|flavour| flavour[0] >= 60),
        "at least 60 recordings of each flavour are to be reproduced"
    );
}

#[test]
fn the_lists_name_only_recordings() {
    let tables = Tables::load();
    let cases: Vec<String> = Trace::all("1.6.0")
        .into_iter()
        .map(|trace| trace.case)
        .collect();
    for name in tables.names() {
        assert!(cases.contains(&name), "there is no recording {name}");
    }
}

/// A comparison that cannot fail proves nothing: every field of every record is changed in turn, and each change must be
/// seen when that record is compared with what was written here.
#[test]
fn any_changed_field_is_noticed() {
    let tables = Tables::load();
    for (flavour, name) in FLAVOURS {
        for case in ["tool-bash", "state", "abort-streaming", "http-500-final"] {
            let trace = Trace::load(name, case);
            let ours = replay::replay(&trace, flavour, &tables.case(case, name)).unwrap();
            let mut changed = 0;
            for ((_, line), ours) in trace.stdout().zip(&ours) {
                let ours = json::parse(ours).unwrap();
                for other in json::mutations(line) {
                    let theirs = json::parse(&other).unwrap();
                    let found = compare::difference(&theirs, &ours, &mut compare::Ids::default());
                    assert!(
                        found.is_some(),
                        "{name} {case}: not noticed: {line}\n  against {other}"
                    );
                    changed += 1;
                }
            }
            assert!(changed > 300, "{changed} changes tried");
        }
    }
}

/// The whole way too: one altered record, one record too few, another exit code.
#[test]
fn an_altered_recording_is_not_reproduced() {
    let tables = Tables::load();
    for (flavour, name) in FLAVOURS {
        let trace = Trace::load(name, "sigterm-streaming");
        let given = tables.case("sigterm-streaming", name);
        assert!(replay::replay(&trace, flavour, &given).is_ok());
        let (at, line) = trace.stdout().last().unwrap();
        let altered = trace.with_line(at, &line.replace("delta\":\"", "delta\":\"~"));
        assert!(replay::replay(&altered, flavour, &given).is_err());
        let mut fewer = trace.clone();
        fewer.events.remove(trace.stdout().nth(1).unwrap().0);
        assert!(replay::replay(&fewer, flavour, &given).is_err());
        let mut other = trace.clone();
        other.events.last_mut().unwrap().1 = trace::Event::Exit {
            code: Some(0),
            signal: None,
        };
        assert!(replay::replay(&other, flavour, &given).is_err());
    }
}

/// What the simulation writes goes through `js::line`; the recordings show that this is how JavaScript writes it.
#[test]
fn the_writer_prints_like_javascript() {
    let mut lines = 0;
    for (_, name) in FLAVOURS {
        for trace in Trace::all(name) {
            for (_, line) in trace.stdout() {
                // The recorder wrote the lines that it shortened; their numbers and escapes are not Pi's.
                if !line.starts_with('{')
                    || line.contains("RECORDER")
                    || line.contains("e-0")
                    || line.contains("\"toolsAdded\"")
                {
                    continue;
                }
                let Some(record) = json::parse(line) else {
                    continue;
                };
                assert_eq!(
                    fake_pi::pi::js::line(&json::to_value(&record)),
                    line,
                    "{name} {}",
                    trace.case
                );
                lines += 1;
            }
        }
    }
    assert!(lines > 3000, "{lines} lines written");
}
