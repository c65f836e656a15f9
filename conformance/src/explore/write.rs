//! A case as a scenario: its acts, its steps, and the checks that its prediction becomes.

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::case::{Abort, Call, Case, Descendant, Ending, Noise};
use super::predict::{Prediction, predict};
use crate::scenario::{Planned, Scenario};

/// Area of generated scenarios.
pub const AREA: &str = "explore";
/// Memory that a subject may need for all of a case, beyond what it had before.
const MEMORY: &str = "96MiB";
/// Deadline of cases that only it ends.
const DEADLINE: &str = "1500ms";

/// The scenario of a case, ready to run.
///
/// # Errors
/// When what was written is no scenario: a fault of this module.
pub fn planned(name: &str, why: &str, case: &Case) -> Result<Planned, serde_json::Error> {
    let scenario: Scenario = serde_json::from_value(document(name, why, case))?;
    Ok(Planned {
        name: name.to_owned(),
        area: AREA.to_owned(),
        file: format!("{name}.yaml"),
        axes: IndexMap::new(),
        scenario,
    })
}

/// The same as a file.
///
/// # Errors
/// When it cannot be written as YAML.
pub fn yaml(name: &str, why: &str, case: &Case) -> Result<String, String> {
    serde_saphyr::to_string(&document(name, why, case)).map_err(|error| error.to_string())
}

fn document(name: &str, why: &str, case: &Case) -> Value {
    let children: serde_json::Map<String, Value> = case
        .calls
        .iter()
        .enumerate()
        .map(|(at, call)| (child_name(at), child(call)))
        .collect();
    let mut document = json!({
        "scenario": name, "why": why, "children": children, "steps": steps(case), "checks": checks(case),
    });
    if case.deadline {
        document["setup"] = json!({"settings": {"deadline": DEADLINE}});
    }
    document
}

fn child_name(at: usize) -> String {
    format!("child-{}", at + 1)
}

fn call_name(at: usize) -> String {
    format!("call-{}", at + 1)
}

fn child(call: &Call) -> Value {
    let mut acts = Vec::new();
    if call.stubborn {
        acts.push(json!({"ignore": ["TERM"]}));
    }
    if call.ending == Ending::Rejected {
        acts.push(json!({"reject": "not now, said the model"}));
        return json!({"acts": acts});
    }
    acts.push(json!({"accept": "prompt"}));
    acts.extend(
        call.descendants
            .iter()
            .enumerate()
            .map(|(at, one)| descendant(at, one)),
    );
    acts.push(json!({"reach": "at-work"}));
    let mut said: Vec<Value> = call.noise.iter().map(noise).collect();
    let (end, after) = ending(&call.ending);
    said.extend(end);
    match call.chop {
        // What never ends cannot be collected first.
        Some(chop) if !call.ending.is_endless() && !call.noise.contains(&Noise::Dialog) => {
            let mut written = json!({"do": said, "crlf": chop.crlf});
            if chop.every == 0 {
                written["burst"] = true.into();
            } else {
                // A large record in small pieces takes longer than anybody waits.
                let large = call
                    .noise
                    .iter()
                    .any(|noise| matches!(noise, Noise::Big(bytes) if *bytes > 100_000));
                written["every"] = if large {
                    65_536.into()
                } else {
                    chop.every.into()
                };
            }
            acts.push(json!({"written": written}));
        }
        _ => acts.extend(said),
    }
    acts.push(json!({"reach": "over"}));
    acts.extend(after.iter().cloned());
    let stays =
        matches!(call.ending, Ending::AnswerStay(_)) || call.ending.is_endless() && call.stubborn;
    // A delegator that is done at once ends the input before the mark was made: then it is made there.
    let over = json!({"reach": "over"});
    if stays {
        return json!({"acts": acts, "on": {"eof": [over, {"hang": true}]}});
    }
    if matches!(call.ending, Ending::Answer(_)) {
        return json!({"acts": acts, "on": {"eof": [over, {"exit": 0}]}});
    }
    json!({"acts": acts})
}

fn descendant(at: usize, one: &Descendant) -> Value {
    let held = [("stdout", one.stdout), ("stderr", one.stderr)];
    let holds: Vec<&str> = held
        .iter()
        .filter(|(_, held)| *held)
        .map(|(name, _)| *name)
        .collect();
    let mut told = json!({
        "name": format!("helper-{}", at + 1), "holds": holds, "lives": "120s",
        "session": one.session, "double-fork": one.double_fork,
    });
    if one.stubborn {
        told["ignores"] = json!(["TERM", "HUP"]);
    }
    if one.writes {
        told["writes"] = "junk of a helper\n".into();
        told["every"] = "20ms".into();
    }
    json!({"descendant": told})
}

fn noise(noise: &Noise) -> Value {
    match noise {
        Noise::Tool(output) => json!({"reply": {"tools": [{"name": "read", "output": output}]}}),
        Noise::Retry => {
            json!({"retry": {"error": "overloaded, try again", "attempt": 1, "delay": "5ms"}})
        }
        Noise::Compaction => json!({"compaction": {}}),
        Noise::Malformed => json!({"raw": "{\"type\":\"message_end\",\"mess\n"}),
        Noise::Unknown => json!({"record": {"type": "weather", "rain": true}}),
        Noise::Scalar => json!({"raw": "[1, 2]\n42\n\"text\"\n"}),
        Noise::Blank => json!({"raw": "\n\n"}),
        Noise::Big(bytes) => json!({"big": {"record": "tool_execution_end", "bytes": bytes}}),
        Noise::Stderr(bytes) => json!({"flood": {"stream": "stderr", "bytes": bytes}}),
        Noise::Dialog => {
            json!({"ask": {"method": "confirm", "fields": {"title": "Sure?", "message": "Go on?"}, "wait": true}})
        }
        Noise::Reply(text) => {
            json!({"reply": {"text": text, "tools": [{"name": "ls", "output": "a b"}]}})
        }
        Noise::Pause(ms) => json!({"wait": format!("{ms}ms")}),
    }
}

/// The acts of an ending, and those that come behind the mark that it is over.
fn ending(ending: &Ending) -> (Vec<Value>, Vec<Value>) {
    match ending {
        Ending::Answer(text) => (vec![json!({"answer": {"text": text}})], vec![]),
        Ending::AnswerExit(text) => (
            vec![json!({"answer": {"text": text}})],
            vec![json!({"exit": 0})],
        ),
        Ending::AnswerStay(text) => (
            vec![json!({"answer": {"text": text}})],
            vec![json!({"hang": true})],
        ),
        Ending::Length(text) => (
            vec![json!({"answer": {"text": text, "stop": "length"}})],
            vec![json!({"exit": 0})],
        ),
        Ending::Error(text) => (
            vec![json!({"answer": {"error": text}})],
            vec![json!({"exit": 0})],
        ),
        Ending::Exit(code) => (vec![], vec![json!({"exit": code})]),
        Ending::Killed => (vec![], vec![json!({"die": "KILL"})]),
        Ending::Cut => (
            vec![json!({"raw": {
                "record": {"type": "message_end", "message": {"role": "assistant", "content": [{"type": "text", "text": "half of it"}]}},
                "cut": 60,
            }})],
            vec![json!({"exit": 0})],
        ),
        Ending::Hang => (vec![], vec![json!({"hang": true})]),
        Ending::Stream => (
            vec![],
            vec![json!({"stream": {"text": "on and on ", "every": "15ms"}})],
        ),
        // Said in place of everything else.
        Ending::Rejected => (vec![], vec![]),
    }
}

fn steps(case: &Case) -> Vec<Value> {
    let mut steps = Vec::new();
    let spawn = |at: usize| json!({"spawn": {"child": child_name(at), "as": call_name(at)}});
    let ends = |at: usize, call: &Call| {
        let mut steps = Vec::new();
        match call.abort {
            Abort::No => {}
            Abort::AtWork => {
                // A child that was refused is never at work.
                if call.ending != Ending::Rejected {
                    steps.push(json!({"wait": format!("{}.reached.at-work", child_name(at))}));
                }
                steps.push(json!({"abort": call_name(at)}));
            }
            Abort::After(ms) => {
                steps.push(json!({"abort": {"call": call_name(at), "offset": format!("{ms}ms")}}));
            }
        }
        steps
    };
    let settled = |at: usize| json!({"wait": format!("{}.settled", call_name(at))});
    if case.together {
        steps.extend((0..case.calls.len()).map(spawn));
        for (at, call) in case.calls.iter().enumerate() {
            steps.extend(ends(at, call));
        }
        steps.extend((0..case.calls.len()).map(settled));
    } else {
        for (at, call) in case.calls.iter().enumerate() {
            steps.push(spawn(at));
            steps.extend(ends(at, call));
            steps.push(settled(at));
        }
    }
    steps
}

fn checks(case: &Case) -> Vec<Value> {
    let mut checks = Vec::new();
    let mut add = |path: String, expect: Value| checks.push(json!({path: expect}));
    for (at, call) in case.calls.iter().enumerate() {
        let name = call_name(at);
        let child = child_name(at);
        match predict(case, call) {
            Prediction::Success(text) => {
                add(format!("{name}.ok"), true.into());
                add(format!("{name}.answer"), json!({"is": text}));
            }
            Prediction::Failure => add(format!("{name}.ok"), false.into()),
            Prediction::Either => {}
        }
        add(format!("{name}.settlements"), 1.into());
        add(format!("{name}.updates.late"), 0.into());
        let bound = |after: String, within: &str| json!({"after": after, "within": within});
        match (&call.ending, call.abort) {
            (_, Abort::AtWork | Abort::After(_)) => {
                add(
                    format!("{name}.settles"),
                    bound(format!("{name}.aborted"), "post-answer-drain + grace"),
                );
            }
            (Ending::Hang | Ending::Stream, Abort::No) => {
                let mut expect = bound(format!("{name}.sent"), "deadline + grace + 1s");
                expect["not-before"] = "deadline - 50ms".into();
                add(format!("{name}.settles"), expect);
            }
            (Ending::Answer(_) | Ending::AnswerStay(_), Abort::No) => {
                add(
                    format!("{name}.settles"),
                    bound(format!("{child}.reached.over"), "post-answer-drain + grace"),
                );
            }
            (Ending::Rejected, Abort::No) => {
                add(
                    format!("{name}.settles"),
                    bound(format!("{child}.task"), "post-answer-drain + grace"),
                );
            }
            (_, Abort::No) => {
                add(
                    format!("{name}.settles"),
                    bound(format!("{child}.exited"), "post-exit-drain + grace"),
                );
            }
        }
        // An abort may come before the child does.
        let surely_started = match call.abort {
            Abort::No => true,
            Abort::AtWork => call.ending != Ending::Rejected,
            Abort::After(_) => false,
        };
        if surely_started {
            add(format!("{child}.launches"), 1.into());
            add(format!("{child}.task-intact"), true.into());
            add(format!("{child}.prompts"), 1.into());
            add(format!("{child}.extra-fds"), "none".into());
            add(format!("{child}.blocked"), "none".into());
            add(format!("{child}.ignored"), "none".into());
        }
    }
    add("survivors".to_owned(), "none".into());
    add("leftovers".to_owned(), "none".into());
    add("subject.zombies-at-end".to_owned(), 0.into());
    add("subject.memory-growth".to_owned(), json!({"below": MEMORY}));
    checks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::explore::strategy;

    fn cases() -> BoxedStrategy<Case> {
        strategy(&crate::adapter::load("reference-delegator").unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_case_is_a_scenario_whose_checks_mean_something(case in cases()) {
            let planned = planned("explore-1-1", "A test.", &case).unwrap();
            for check in &planned.scenario.checks {
                let declared = ["ok", "answer"];
                prop_assert!(crate::check::validate(check, &planned.scenario, &declared).is_ok(), "{check:?}");
            }
        }

        #[test]
        fn the_file_says_what_ran(case in cases()) {
            let text = yaml("explore-1-1", "A test.", &case).unwrap();
            let read: Scenario = crate::yaml::parse("explore-1-1.yaml", &text).unwrap();
            prop_assert_eq!(read, planned("explore-1-1", "A test.", &case).unwrap().scenario);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_case_and_another_one_another() {
        let adapter = crate::adapter::load("reference-delegator").unwrap();
        let case = |seed, number| crate::explore::case_of(&adapter, seed, number).unwrap();
        assert_eq!(case(1, 7), case(1, 7));
        assert_ne!(case(1, 7), case(1, 8));
        assert_ne!(case(1, 7), case(2, 7));
    }
}
