//! What is seen of a child: mostly its own journal, and the kernel on how it ended.

use fake_pi::journal::{Start, What as Wrote};
use serde_json::{Value, json};

use crate::check::sight::{Look, Sight, Witness, texts};
use crate::check::world::{Launch, World};

/// Looks at a child's launches: all of them, or the one that `#N` names.
pub fn observe(
    world: &World<'_>,
    name: &str,
    number: Option<usize>,
    each: bool,
    look: &str,
) -> Vec<Sight> {
    let starts = |its: &str| {
        if each {
            its.starts_with(name)
        } else {
            its == name
        }
    };
    let all: Vec<&Launch<'_>> = world
        .launches
        .iter()
        .filter(|launch| launch.name.is_some_and(starts))
        .collect();
    if look == "launches" {
        return vec![launch_count(world, name, all.len())];
    }
    let chosen: Vec<_> = match number {
        None => all.into_iter().enumerate().collect(),
        Some(n) => all.into_iter().enumerate().skip(n - 1).take(1).collect(),
    };
    if chosen.is_empty() {
        let label = number.map_or(name.to_owned(), |n| format!("{name}#{n}"));
        let why = format!("child `{label}` never started");
        return vec![Sight::nothing(
            format!("{label}.{look}"),
            Witness::Journal,
            why,
        )];
    }
    let many = chosen.len() > 1 || number.is_some();
    let mut sights = Vec::new();
    for (index, launch) in chosen {
        let name = launch.name.unwrap_or(name);
        let label = if many {
            format!("{name}#{}", index + 1)
        } else {
            name.to_owned()
        };
        sights.extend(one(world, launch, &label, look));
    }
    sights
}

/// That a child was not started can be said once a call has settled or the subject has ended.
fn launch_count(world: &World<'_>, name: &str, count: usize) -> Sight {
    let settled = world.calls.values().any(|call| call.settled().is_some());
    let label = format!("{name}.launches");
    if count > 0 || settled || world.subject_ended() {
        Sight::new(label, Witness::Journal, Look::is(count))
    } else {
        Sight::nothing(
            label,
            Witness::Journal,
            "no call settled and no subject ended, so a child might still start",
        )
    }
}

/// Looks at one launch.
pub fn one(world: &World<'_>, launch: &Launch<'_>, label: &str, look: &str) -> Vec<Sight> {
    if let Some(rest) = look.strip_prefix("descendant.") {
        return descendant(world, launch, label, rest);
    }
    let start = launch.start;
    let journal = |look_at| (Witness::Journal, look_at);
    let (witness, look_at) = match look {
        "argv" => journal(Look::Is(texts(start.argv.iter().map(String::as_str)))),
        "args" => journal(Look::Is(texts(
            start.argv.iter().skip(1).map(String::as_str),
        ))),
        "flags" => journal(Look::Is(flags(start))),
        "env" => journal(Look::Is(json!(start.env))),
        "cwd" => journal(Look::is(start.cwd.as_str())),
        "pid" => journal(Look::is(launch.pid)),
        "pid-leads-group" => journal(Look::is(start.pgid == launch.pid)),
        "pgid" => journal(Look::is(start.pgid)),
        "sid" => journal(Look::is(start.sid)),
        "task" | "task-bytes" | "task-sha256" | "via" => journal(task(launch, look)),
        "task-intact" => journal(task_intact(world, launch)),
        "prompts" => journal(Look::is(prompts(launch))),
        "stdin-eof" => journal(Look::is(
            launch
                .entries()
                .any(|(_, what)| matches!(what, Wrote::StdinEof)),
        )),
        "stdin-lines" => journal(Look::Is(texts(launch.entries().filter_map(
            |(_, what)| match what {
                Wrote::Stdin { line, .. } => Some(line.as_str()),
                _ => None,
            },
        )))),
        "signals" => journal(Look::Is(signals(launch))),
        "blocked" => journal(Look::Is(texts(start.blocked.iter().map(String::as_str)))),
        "ignored" => journal(Look::Is(texts(start.ignored.iter().map(String::as_str)))),
        "extra-fds" => {
            let extra = start.fds.iter().filter(|fd| fd.fd > 2);
            journal(Look::Is(texts(extra.map(|fd| fd.target.as_str()))))
        }
        "parent-argv" => journal(Look::Is(texts(
            start.parent_argv.iter().map(String::as_str),
        ))),
        "parent-is-shell" => journal(parent_is_shell(start)),
        "reached" => journal(Look::Is(texts(launch.entries().filter_map(
            |(_, what)| match what {
                Wrote::Reach { name } => Some(name.as_str()),
                _ => None,
            },
        )))),
        "write-failed" => journal(Look::Is(texts(launch.entries().filter_map(
            |(_, what)| match what {
                Wrote::WriteFailed { stream, .. } => Some(stream.as_str()),
                _ => None,
            },
        )))),
        "faults" => journal(Look::Is(texts(launch.entries().filter_map(
            |(_, what)| match what {
                Wrote::Fault { message } => Some(message.as_str()),
                _ => None,
            },
        )))),
        "started" => journal(Look::is(true)),
        "ended" => ended(world, launch),
        "exited" => (Witness::Kernel, gone(world, launch)),
        _ => journal(named(launch, look)),
    };
    vec![Sight::new(format!("{label}.{look}"), witness, look_at)]
}

/// Looks that take a name: `flag.NAME`, `env.NAME`, `stdin.TYPE`.
fn named(launch: &Launch<'_>, look: &str) -> Look {
    if let Some(name) = look.strip_prefix("flag.") {
        Look::of(flag(launch.start, name))
    } else if let Some(name) = look.strip_prefix("env.") {
        Look::of(
            launch
                .start
                .env
                .get(name)
                .map(|value| Value::from(value.as_str())),
        )
    } else if let Some(kind) = look.strip_prefix("stdin.") {
        Look::is(commands(launch, kind))
    } else {
        Look::Nothing(format!("`{look}` is nothing that can be seen of a child"))
    }
}

/// The value after `--NAME` or in `--NAME=VALUE`; `true` for one that stands alone.
fn flag(start: &Start, name: &str) -> Option<Value> {
    let mut args = start.argv.iter().skip(1);
    while let Some(arg) = args.next() {
        let Some(rest) = arg.strip_prefix("--") else {
            continue;
        };
        if let Some(value) = rest
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='))
        {
            return Some(value.into());
        }
        if rest == name {
            return match args.next() {
                Some(value) if !value.starts_with("--") => Some(value.as_str().into()),
                _ => Some(true.into()),
            };
        }
    }
    None
}

fn flags(start: &Start) -> Value {
    let long = start
        .argv
        .iter()
        .skip(1)
        .filter(|arg| arg.starts_with("--"));
    texts(long.map(|arg| arg.split('=').next().unwrap_or(arg)))
}

fn task(launch: &Launch<'_>, look: &str) -> Look {
    let found = launch.entries().find_map(|(_, what)| match what {
        Wrote::Task {
            via,
            text,
            bytes,
            sha256,
            ..
        } => Some(match look {
            "task" => Value::from(text.as_str()),
            "task-bytes" => Value::from(*bytes),
            "task-sha256" => Value::from(sha256.as_str()),
            _ => Value::from(via.as_str()),
        }),
        _ => None,
    });
    Look::of(found)
}

/// What the child read against what the runner sent: the same bytes by length and digest.
fn task_intact(world: &World<'_>, launch: &Launch<'_>) -> Look {
    let read = launch.entries().find_map(|(_, what)| match what {
        Wrote::Task {
            bytes,
            sha256,
            marked,
            ..
        } => {
            let marked = marked.as_ref().map(|its| (its.sha256.as_str(), its.bytes));
            Some([Some((sha256.as_str(), *bytes)), marked])
        }
        _ => None,
    });
    match (read, world.call_of(launch)) {
        (None, _) => Look::Nothing("the child read no task".to_owned()),
        (_, None) => Look::Nothing("no call is known whose task it should be".to_owned()),
        (Some(read), Some(call)) => Look::is(read.contains(&Some(call.task))),
    }
}

/// How often a task was given: by commands, or once for all where the mode takes none.
fn prompts(launch: &Launch<'_>) -> usize {
    let one_shot = |what: &Wrote| matches!(what, Wrote::Task { via, .. } if via != "rpc");
    let given = launch.entries().filter(|(_, what)| one_shot(what)).count();
    given + commands(launch, "prompt")
}

fn commands(launch: &Launch<'_>, kind: &str) -> usize {
    let of_kind =
        |what: &Wrote| matches!(what, Wrote::Stdin { command: Some(its), .. } if its == kind);
    launch.entries().filter(|(_, what)| of_kind(what)).count()
}

/// Names of the signals that arrived, in order.
pub fn signals(launch: &Launch<'_>) -> Value {
    texts(launch.entries().filter_map(|(_, what)| match what {
        Wrote::Signal { name, .. } => Some(name.as_str()),
        _ => None,
    }))
}

/// Programs that interpret a command line.
const SHELLS: [&str; 10] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox", "env",
];

fn parent_is_shell(start: &Start) -> Look {
    match start.parent_argv.first() {
        None => Look::Nothing("the child's parent had no command line".to_owned()),
        Some(program) => {
            let base = program
                .rsplit('/')
                .next()
                .unwrap_or(program)
                .trim_start_matches('-');
            Look::is(SHELLS.contains(&base))
        }
    }
}

/// How a process ended, in one word or two.
pub fn ending(world: &World<'_>, launch: &Launch<'_>) -> Option<(Witness, String)> {
    match launch.own_end() {
        Some((Some(code), _)) => return Some((Witness::Journal, format!("exit {code}"))),
        Some((None, Some(signal))) => return Some((Witness::Journal, format!("signal {signal}"))),
        _ => {}
    }
    if world.gone(launch).is_some() || world.survives(launch) == Some(false) {
        return Some((Witness::Kernel, "killed".to_owned()));
    }
    let looked = world.survives(launch).is_some() || world.processes.contains_key(&launch.key());
    looked.then(|| (Witness::Kernel, "alive".to_owned()))
}

fn ended(world: &World<'_>, launch: &Launch<'_>) -> (Witness, Look) {
    match ending(world, launch) {
        Some((witness, word)) => (witness, Look::is(word)),
        None => (
            Witness::Kernel,
            Look::Nothing("nobody looked whether the process was still there".to_owned()),
        ),
    }
}

/// Whether a process is no longer there at the end.
fn gone(world: &World<'_>, launch: &Launch<'_>) -> Look {
    if world.gone(launch).is_some() {
        return Look::is(true);
    }
    match world.survives(launch) {
        Some(alive) => Look::is(!alive),
        None => Look::Nothing("the warden took no list of survivors".to_owned()),
    }
}

fn descendant(world: &World<'_>, launch: &Launch<'_>, label: &str, rest: &str) -> Vec<Sight> {
    let (name, look) = rest.split_once('.').unwrap_or((rest, ""));
    let found = world.descendants_of(launch, name);
    let label = format!("{label}.descendant.{name}.{look}");
    if found.is_empty() {
        let why = format!("descendant `{name}` never started");
        return vec![Sight::nothing(label, Witness::Journal, why)];
    }
    let each = |launch: &Launch<'_>| {
        let (witness, look_at) = match look {
            "signals" => (Witness::Journal, Look::Is(signals(launch))),
            "gone" => (Witness::Kernel, gone(world, launch)),
            "sid" => (Witness::Journal, Look::is(launch.start.sid)),
            "pgid" => (Witness::Journal, Look::is(launch.start.pgid)),
            "started" => (Witness::Journal, Look::is(true)),
            "argv" => (
                Witness::Journal,
                Look::Is(texts(launch.start.argv.iter().map(String::as_str))),
            ),
            _ => (
                Witness::Journal,
                Look::Nothing(format!(
                    "`{look}` is nothing that can be seen of a descendant"
                )),
            ),
        };
        Sight::new(label.as_str(), witness, look_at)
    };
    found.into_iter().map(each).collect()
}

/// A launch in a few words, for reports.
pub fn summary(world: &World<'_>, launch: &Launch<'_>) -> String {
    let prompts = commands(launch, "prompt");
    let signals: Vec<_> = launch
        .entries()
        .filter_map(|(_, what)| match what {
            Wrote::Signal { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let end = ending(world, launch).map_or("end unknown".to_owned(), |(_, word)| word);
    let heard = if signals.is_empty() {
        "no signal".to_owned()
    } else {
        signals.join(" ")
    };
    format!("pid {}, prompts {prompts}, {heard}, {end}", launch.pid)
}
