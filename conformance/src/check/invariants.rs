//! What must hold in every scenario, whatever it is about, unless one of its own checks looks at the same thing.

use fake_pi::journal::What as Wrote;

use crate::check::children::ending;
use crate::check::extract;
use crate::check::judge::look_of;
use crate::check::sight::Witness;
use crate::check::whole;
use crate::check::words::short;
use crate::check::world::{Call, Launch, World};
use crate::evidence::What;
use crate::verdict::{CheckVerdict, Verdict};

/// One invariant.
pub struct Invariant {
    /// Its stable id in verdicts and baselines.
    pub id: &'static str,
    /// Requirements that it stands for.
    pub proves: &'static [&'static str],
    /// What it says.
    pub expected: &'static str,
    /// Looks of a scenario's own checks that take its place.
    looks: &'static [&'static str],
    judge: fn(&World<'_>) -> (Verdict, String),
}

/// All of them.
pub const INVARIANTS: [Invariant; 7] = [
    Invariant {
        id: "invariant steps",
        proves: &[],
        expected: "every step ran and every fact that it waits for came",
        looks: &[],
        judge: steps,
    },
    Invariant {
        id: "invariant survivors",
        proves: &[
            "cancel.child-gone-after-parent-death",
            "drain.descendants-gone-after-success",
        ],
        expected: "no process that the subject started is left at the end",
        looks: &["survivors"],
        judge: survivors,
    },
    Invariant {
        id: "invariant settlements",
        proves: &[
            "semantics.settles-exactly-once",
            "cancel.no-duplicate-completion",
        ],
        expected: "each call has at most one response, and has it when it was waited for",
        looks: &["settled", "settlements", "settles"],
        judge: settlements,
    },
    Invariant {
        id: "invariant late-updates",
        proves: &["drain.no-callbacks-after-settlement"],
        expected: "no call has an update after its response",
        looks: &["updates.late"],
        judge: late_updates,
    },
    Invariant {
        id: "invariant strays",
        proves: &["semantics.basic-failure-and-success-shape"],
        expected: "standard output carries only messages of the protocol that answer something",
        looks: &["strays"],
        judge: strays,
    },
    Invariant {
        id: "invariant subject-alive",
        proves: &["isolate.crash-spares-sibling"],
        expected: "the subject lives until it is told to end, and does not crash",
        looks: &["alive", "exits", "exit-code", "exit-signal", "starts"],
        judge: subject_alive,
    },
    Invariant {
        id: "invariant witnesses",
        proves: &["drain.cleanup-metadata-accurate"],
        expected: "what a result claims about the cleanup agrees with the journal and the kernel",
        looks: &["cleanup.term", "cleanup.kill"],
        judge: witnesses,
    },
];

/// Judges those that the scenario's own checks leave to us.
pub fn judge(world: &World<'_>) -> Vec<CheckVerdict> {
    let checks = &world.evidence.header.scenario.checks;
    let own: Vec<&str> = checks
        .iter()
        .flat_map(|check| check.expect.keys())
        .map(|path| look_of(path))
        .collect();
    let left = INVARIANTS
        .iter()
        .filter(|invariant| !invariant.looks.iter().any(|look| own.contains(look)));
    left.map(|invariant| {
        let (verdict, seen) = (invariant.judge)(world);
        CheckVerdict {
            id: invariant.id.to_owned(),
            proves: invariant.proves.iter().map(|id| (*id).to_owned()).collect(),
            verdict,
            expected: invariant.expected.to_owned(),
            seen,
            kind: None,
        }
    })
    .collect()
}

fn told(witness: Witness, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", witness.name())
}

fn steps(world: &World<'_>) -> (Verdict, String) {
    let events = &world.evidence.events;
    let gave_up: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::GaveUp { path, fact } => Some(format!("{path} waited for `{fact}` in vain")),
            _ => None,
        })
        .collect();
    if !gave_up.is_empty() {
        return (
            Verdict::NoEvidence,
            told(Witness::Runner, gave_up.join("; ")),
        );
    }
    if !events.iter().any(|event| matches!(event.what, What::End)) {
        return (
            Verdict::NoEvidence,
            told(
                Witness::Runner,
                "the evidence stops before the scenario's end",
            ),
        );
    }
    let faults: Vec<String> = world
        .launches
        .iter()
        .chain(&world.descendants)
        .flat_map(Launch::entries)
        .filter_map(|(_, what)| match what {
            Wrote::Fault { message } => Some(message.clone()),
            _ => None,
        })
        .collect();
    // A scenario without children expects no start; one that comes all the same has nothing to play, and is the subject's doing.
    let expected = !world.evidence.header.scenario.children.is_empty();
    if faults.is_empty() || !expected {
        (Verdict::Pass, told(Witness::Runner, "all steps ran"))
    } else {
        (
            Verdict::HarnessError,
            told(Witness::Journal, faults.join("; ")),
        )
    }
}

fn survivors(world: &World<'_>) -> (Verdict, String) {
    match world.survivors {
        None => (
            Verdict::NoEvidence,
            told(Witness::Kernel, "the warden took no list of survivors"),
        ),
        Some([]) => (Verdict::Pass, told(Witness::Kernel, "nothing is left")),
        Some(alive) => {
            let lines: Vec<String> = alive
                .iter()
                .map(|process| format!("{} `{}`", process.pid, short(&process.argv.join(" "))))
                .collect();
            (
                Verdict::Fail,
                told(
                    Witness::Kernel,
                    format!("still there: {}", lines.join(", ")),
                ),
            )
        }
    }
}

/// Every call that was sent, or the reason why none can be judged.
fn calls<'w, 'a>(
    world: &'w World<'a>,
) -> Result<impl Iterator<Item = &'w Call<'a>>, (Verdict, String)> {
    if world.calls.is_empty() {
        // A scenario whose steps send no call has none to settle.
        let planned = !world.names.calls.is_empty();
        let verdict = if planned || world.evidence.events.is_empty() {
            Verdict::NoEvidence
        } else {
            Verdict::Pass
        };
        return Err((verdict, told(Witness::Runner, "no call was sent")));
    }
    Ok(world.calls.values())
}

fn settlements(world: &World<'_>) -> (Verdict, String) {
    let waited = |name: &str| {
        let fact = format!("{name}.settled");
        world
            .first(|what| {
                matches!(what, What::GaveUp { fact: its, .. } if *its == fact).then_some(())
            })
            .is_some()
    };
    let mut wrong = Vec::new();
    let mut settled = 0;
    match calls(world) {
        Err(none) => return none,
        Ok(calls) => {
            for call in calls {
                match call.responses.len() {
                    0 if waited(call.name) => {
                        wrong.push(format!("call `{}` never settled", call.name))
                    }
                    0 | 1 => settled += call.responses.len(),
                    n => wrong.push(format!("call `{}` has {n} responses", call.name)),
                }
            }
        }
    }
    if wrong.is_empty() {
        (
            Verdict::Pass,
            told(Witness::Claims, format!("{settled} settled once")),
        )
    } else {
        (Verdict::Fail, told(Witness::Claims, wrong.join("; ")))
    }
}

fn late_updates(world: &World<'_>) -> (Verdict, String) {
    let late = |call: &Call<'_>| {
        let settled = call.settled()?;
        let count = call.updates.iter().filter(|(t, _)| *t > settled).count();
        (count > 0).then(|| format!("call `{}` had {count} after its response", call.name))
    };
    let wrong: Vec<String> = match calls(world) {
        Err(none) => return none,
        Ok(calls) => calls.filter_map(late).collect(),
    };
    if wrong.is_empty() {
        (Verdict::Pass, told(Witness::Claims, "none came late"))
    } else {
        (Verdict::Fail, told(Witness::Claims, wrong.join("; ")))
    }
}

fn subjects<'w>(world: &'w World<'_>) -> Vec<&'w str> {
    let started = world
        .evidence
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::SubjectStarted { subject, .. } => Some(subject.as_str()),
            _ => None,
        });
    started.collect()
}

fn strays(world: &World<'_>) -> (Verdict, String) {
    let found: Vec<String> = world
        .evidence
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Stray {
                subject,
                problem,
                line,
            } => Some(format!("`{subject}` wrote `{}` ({problem})", short(line))),
            _ => None,
        })
        .collect();
    if !found.is_empty() {
        return (Verdict::Fail, told(Witness::Claims, found.join("; ")));
    }
    match subjects(world)
        .iter()
        .any(|name| whole::initialized(world, name).is_some())
    {
        true => (
            Verdict::Pass,
            told(Witness::Claims, "nothing else was written"),
        ),
        false => (
            Verdict::NoEvidence,
            told(Witness::Claims, "no subject ever answered"),
        ),
    }
}

/// Signals that a program dies of by a fault of its own.
const CRASHES: [&str; 8] = ["SEGV", "ABRT", "BUS", "ILL", "FPE", "TRAP", "SYS", "PIPE"];

/// Exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

fn subject_alive(world: &World<'_>) -> (Verdict, String) {
    let names = subjects(world);
    if names.is_empty() {
        return (
            Verdict::NoEvidence,
            told(Witness::Runner, "no subject was started"),
        );
    }
    let mut wrong = Vec::new();
    for name in names {
        let exit = world.first(|what| match what {
            What::SubjectExited {
                subject,
                code,
                signal,
            } if subject == name => Some((*code, signal.as_deref())),
            _ => None,
        });
        let Some((at, (code, signal))) = exit else {
            continue;
        };
        let how = signal.map_or_else(
            || format!("with code {}", code.unwrap_or(-1)),
            |signal| format!("by {signal}"),
        );
        let told_to = whole::told_to_end(world, name);
        let short_name = signal.map(|signal| signal.trim_start_matches("SIG"));
        let sent = |signal: &str| {
            world.first(|what| match what {
                What::SubjectSignalled {
                    subject,
                    signal: its,
                } if subject == name => (its.trim_start_matches("SIG") == signal).then_some(()),
                _ => None,
            })
        };
        let crashed =
            short_name.is_some_and(|signal| CRASHES.contains(&signal) && sent(signal).is_none());
        if told_to.is_none_or(|told| at < told) {
            wrong.push(format!("`{name}` ended {how} before it was told to"));
        } else if crashed || code == Some(PANICKED) {
            wrong.push(format!("`{name}` crashed {how}"));
        }
    }
    if wrong.is_empty() {
        (
            Verdict::Pass,
            told(Witness::Kernel, "it lived until it was told to end"),
        )
    } else {
        (Verdict::Fail, told(Witness::Kernel, wrong.join("; ")))
    }
}

/// Claims of "no TERM" and "no KILL" against the child's journal and its end. Only what happened before the result counts.
fn witnesses(world: &World<'_>) -> (Verdict, String) {
    let adapter = &world.evidence.header.adapter;
    let mut wrong = Vec::new();
    let mut compared = 0;
    for call in world.calls.values() {
        let Some((settled, Some(result), _)) = call.responses.first() else {
            continue;
        };
        let claim = |name: &str| {
            extract::observation(adapter, name, result).and_then(|value| value.as_bool())
        };
        let (term, kill) = (claim("cleanup.term"), claim("cleanup.kill"));
        for launch in world.launches_for(call) {
            compared += usize::from(term.is_some() || kill.is_some());
            let termed = launch.entries().any(|(t, what)| {
                t < *settled && matches!(what, Wrote::Signal { name, from } if name == "TERM" && from_subject(world, call, *from))
            });
            if termed && term == Some(false) {
                wrong.push(format!("the result of `{}` claims that no TERM was sent, but the child's journal has one", call.name));
            }
            let ended = ending(world, launch);
            let killed = ended.is_some_and(|(_, word)| word == "killed")
                && world.gone(launch).is_some_and(|gone| gone < *settled);
            if killed && kill == Some(false) && term == Some(false) {
                wrong.push(format!(
                    "the result of `{}` claims that no signal was sent, but the child went without ending by itself",
                    call.name
                ));
            }
        }
    }
    if !wrong.is_empty() {
        wrong.dedup();
        return (Verdict::Fail, told(Witness::Journal, wrong.join("; ")));
    }
    match compared {
        0 => (
            Verdict::NotApplicable,
            told(
                Witness::Claims,
                "no result claims anything about the cleanup of a child",
            ),
        ),
        n => (
            Verdict::Pass,
            told(Witness::Journal, format!("{n} compared, and they agree")),
        ),
    }
}

/// Whether a signal came from the subject; unknown senders are taken for it only when nobody else sends signals.
fn from_subject(world: &World<'_>, call: &Call<'_>, from: Option<i32>) -> bool {
    let pid = world.first(|what| match what {
        What::SubjectStarted { subject, pid, .. } if subject == call.subject => Some(*pid),
        _ => None,
    });
    match (from, pid) {
        (Some(from), Some((_, pid))) => from == pid,
        _ => false,
    }
}
