//! What is seen of the whole scenario and of a subject: the kernel's evidence, and the runner's own.

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::check::sight::{Look, Sight, Witness, texts};
use crate::check::world::World;
use crate::evidence::{Snapshot, What};

/// Looks at the whole scenario.
pub fn observe(world: &World<'_>, look: &str) -> Sight {
    let (witness, look_at) = match look {
        "launches" => (Witness::Journal, launches(world)),
        "pids-differ" => (Witness::Journal, pids_differ(world)),
        "traps" => (
            Witness::Journal,
            if_happened(world, texts(world.traps.iter().map(String::as_str))),
        ),
        "survivors" => (Witness::Kernel, survivors(world)),
        "leftovers" => (
            Witness::Kernel,
            leftovers(world, |files| texts(files.keys().map(String::as_str))),
        ),
        "leftovers.modes" => (Witness::Kernel, leftovers(world, |files| json!(files))),
        "work-files" => (Witness::Kernel, work_files(world)),
        _ => (
            Witness::Runner,
            Look::Nothing(format!("`{look}` is nothing that can be seen")),
        ),
    };
    Sight::new(look, witness, look_at)
}

fn launches(world: &World<'_>) -> Look {
    let settled = world.calls.values().any(|call| call.settled().is_some());
    if !world.launches.is_empty() || settled || world.subject_ended() {
        Look::is(world.launches.len())
    } else {
        Look::Nothing(
            "no call settled and no subject ended, so a child might still start".to_owned(),
        )
    }
}

fn pids_differ(world: &World<'_>) -> Look {
    let mut pids: Vec<_> = world
        .launches
        .iter()
        .map(super::world::Launch::key)
        .collect();
    if pids.len() < 2 {
        return Look::Nothing("fewer than two children started".to_owned());
    }
    let all = pids.len();
    pids.sort_unstable();
    pids.dedup();
    Look::is(pids.len() == all)
}

/// A finding of "nothing" counts only when a call settled or a child started.
fn if_happened(world: &World<'_>, value: Value) -> Look {
    if world.anything_happened() {
        Look::Is(value)
    } else {
        Look::Nothing("no call settled and no child started".to_owned())
    }
}

/// Command lines of what was alive at the end.
fn survivors(world: &World<'_>) -> Look {
    match world.survivors {
        None => Look::Nothing("the warden took no list of survivors".to_owned()),
        Some(alive) => {
            let lines = texts(alive.iter().map(|process| process.argv.join(" ")));
            if alive.is_empty() {
                if_happened(world, lines)
            } else {
                Look::Is(lines)
            }
        }
    }
}

fn leftovers(world: &World<'_>, show: impl Fn(&IndexMap<String, String>) -> Value) -> Look {
    let found = world.first(|what| match what {
        What::Leftovers { files } => Some(files),
        _ => None,
    });
    match found {
        None => Look::Nothing("the temporary folder was not looked at".to_owned()),
        Some((_, files)) if files.is_empty() => if_happened(world, show(files)),
        Some((_, files)) => Look::Is(show(files)),
    }
}

fn work_files(world: &World<'_>) -> Look {
    let found = world.first(|what| match what {
        What::WorkFiles { files } => Some(files),
        _ => None,
    });
    match found {
        None => Look::Nothing("the work folders were not looked at".to_owned()),
        Some((_, files)) => if_happened(world, texts(files.iter().map(String::as_str))),
    }
}

/// Looks at a subject.
pub fn subject(world: &World<'_>, name: &str, look: &str) -> Sight {
    let label = format!("{name}.{look}");
    let started = world.first(|what| match what {
        What::SubjectStarted { subject, .. } if subject == name => Some(()),
        _ => None,
    });
    if started.is_none() {
        return Sight::nothing(
            label,
            Witness::Runner,
            format!("`{name}` was never started"),
        );
    }
    let exit = world.first(|what| match what {
        What::SubjectExited {
            subject,
            code,
            signal,
        } if subject == name => Some((*code, signal.clone())),
        _ => None,
    });
    let ended = |value: Option<Value>| {
        if exit.is_some() {
            Look::of(value)
        } else {
            still_runs(name)
        }
    };
    let code = exit.as_ref().and_then(|(_, (code, _))| *code);
    let signal = exit.as_ref().and_then(|(_, (_, signal))| signal.clone());
    let (witness, look_at) = match look {
        "starts" => (
            Witness::Claims,
            Look::is(initialized(world, name).is_some()),
        ),
        "exit-code" => (Witness::Kernel, ended(code.map(Value::from))),
        "exit-signal" => (Witness::Kernel, ended(signal.map(Value::from))),
        "alive" => (
            Witness::Kernel,
            alive(world, name, exit.as_ref().map(|(t, _)| *t)),
        ),
        "exits" => (Witness::Kernel, Look::is(exit.is_some())),
        "stderr" => (Witness::Claims, stderr(world, name)),
        "strays" => (Witness::Claims, strays(world, name)),
        "memory-growth" => (Witness::Kernel, memory_growth(world, name)),
        "pid" | "pgid" | "sid" => (Witness::Kernel, process(world, name, look)),
        "zombies-at-end" => (
            Witness::Kernel,
            last_sample(world, name, |sample| sample.zombies),
        ),
        _ => (Witness::Kernel, sample(world, name, look)),
    };
    Sight::new(label, witness, look_at)
}

/// The subject's own process, as the kernel first showed it.
fn process(world: &World<'_>, name: &str, look: &str) -> Look {
    let pid = world.first(|what| match what {
        What::SubjectStarted { subject, pid, .. } if subject == name => Some(*pid),
        _ => None,
    });
    let seen = pid.and_then(|(_, pid)| {
        world
            .processes
            .values()
            .find(|seen| seen.process.pid == pid)
    });
    match (look, pid, seen) {
        ("pid", Some((_, pid)), _) => Look::is(pid),
        ("pgid", _, Some(seen)) => Look::is(seen.process.pgid),
        ("sid", _, Some(seen)) => Look::is(seen.process.sid),
        _ => Look::Nothing(format!("the warden never saw the process of `{name}`")),
    }
}

fn still_runs(name: &str) -> Look {
    Look::Nothing(format!("`{name}` was not seen to end"))
}

/// When a subject answered `initialize`.
pub fn initialized(world: &World<'_>, name: &str) -> Option<u64> {
    let answered = world.first(|what| match what {
        What::Initialized { subject, .. } if subject == name => Some(()),
        _ => None,
    });
    answered.map(|(t, ())| t)
}

/// When the runner first did something that ends a subject: closed its input or sent it a signal.
pub fn told_to_end(world: &World<'_>, name: &str) -> Option<u64> {
    let told = world.first(|what| match what {
        What::InputClosed { subject } | What::SubjectSignalled { subject, .. }
            if subject == name =>
        {
            Some(())
        }
        _ => None,
    });
    told.map(|(t, ())| t)
}

/// Whether the subject lived until the runner ended it.
fn alive(world: &World<'_>, name: &str, exit: Option<u64>) -> Look {
    match (exit, told_to_end(world, name)) {
        (None, _) => Look::is(true),
        (Some(exit), Some(told)) => Look::is(exit >= told),
        (Some(_), None) => Look::is(false),
    }
}

fn stderr(world: &World<'_>, name: &str) -> Look {
    match world.evidence.stderr.get(name) {
        None => Look::Nothing(format!("standard error of `{name}` was not kept")),
        Some(text) => Look::is(text.as_str()),
    }
}

/// Junk on standard output. Its absence counts only when the subject said anything at all.
fn strays(world: &World<'_>, name: &str) -> Look {
    let events = world.evidence.events.iter();
    let found: Vec<String> = events
        .filter_map(|event| match &event.what {
            What::Stray {
                subject,
                problem,
                line,
            } if subject == name => Some(format!("{problem}: {line}")),
            _ => None,
        })
        .collect();
    if found.is_empty() && initialized(world, name).is_none() {
        return Look::Nothing(format!(
            "`{name}` never answered, so nothing could stand between its messages"
        ));
    }
    Look::Is(texts(found))
}

fn samples<'w>(
    world: &'w World<'_>,
    name: &'w str,
) -> impl DoubleEndedIterator<Item = (u64, &'w str, &'w Snapshot)> {
    world
        .evidence
        .events
        .iter()
        .filter_map(move |event| match &event.what {
            What::Sample {
                name: its,
                subject,
                sample,
            } if subject == name => Some((event.t_ns, its.as_str(), sample)),
            _ => None,
        })
}

/// Highest resident memory against that right after the handshake, in bytes.
fn memory_growth(world: &World<'_>, name: &str) -> Look {
    let Some(from) = initialized(world, name) else {
        return Look::Nothing(format!("`{name}` never answered `initialize`"));
    };
    let after: Vec<_> = samples(world, name)
        .filter(|(t, ..)| *t >= from)
        .map(|(_, _, s)| s)
        .collect();
    match (
        after.first(),
        after.iter().map(|s| s.peak_rss.max(s.rss)).max(),
    ) {
        (Some(base), Some(peak)) if after.len() > 1 => Look::is(peak.saturating_sub(base.rss)),
        _ => Look::Nothing("fewer than two samples of its memory were taken".to_owned()),
    }
}

fn last_sample(world: &World<'_>, name: &str, field: impl Fn(&Snapshot) -> u64) -> Look {
    match samples(world, name).next_back() {
        Some((_, _, sample)) => Look::is(field(sample)),
        None => Look::Nothing(format!("no sample of `{name}` was taken")),
    }
}

fn sample(world: &World<'_>, name: &str, look: &str) -> Look {
    let rest = look.strip_prefix("sample.").unwrap_or(look);
    let (wanted, field) = rest.rsplit_once('.').unwrap_or((rest, ""));
    let Some((_, _, sample)) = samples(world, name).find(|(_, its, _)| *its == wanted) else {
        return Look::Nothing(format!("sample `{wanted}` of `{name}` was not taken"));
    };
    match field {
        "fds" => Look::is(sample.fds),
        "children" => Look::is(sample.children),
        "zombies" => Look::is(sample.zombies),
        "threads" => Look::is(sample.threads),
        "rss" => Look::is(sample.rss),
        "peak-rss" => Look::is(sample.peak_rss),
        _ => Look::Nothing(format!("`{field}` is nothing that a sample holds")),
    }
}
