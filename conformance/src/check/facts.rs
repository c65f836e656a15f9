//! Facts with a time: what `after:`, `before:` and the left side of a time check name.
//!
//! A fact's time is known to lie between two bounds. What the kernel is asked about now and then (a process that is gone)
//! happened somewhere between two looks; a bound is held to be broken only when no time in between could keep it.

use fake_pi::journal::What as Wrote;

use crate::check::paths::{Names, Path, PathError, Root};
use crate::check::sight::Witness;
use crate::check::whole;
use crate::check::words::nearest;
use crate::check::world::{Launch, World};
use crate::evidence::What;

/// When something happened, in nanoseconds: not before `from`, not after `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Earliest.
    pub from: u64,
    /// Latest.
    pub to: u64,
}

impl Moment {
    fn at(t: u64) -> Self {
        Self { from: t, to: t }
    }
}

/// Whether and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// It happened.
    At(Moment),
    /// Whoever would have done it was seen, and did not.
    Never(String),
    /// Whoever would have done it was not seen.
    Unknown(String),
}

/// Whom a fact is about, so that `after: call.sent` beside `each call` means that same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A call by its place among the calls.
    Call(usize),
    /// A launch by its place among the launches.
    Launch(usize),
    /// Something of which there is one.
    One,
}

/// A fact with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// `call-3.settled`.
    pub label: String,
    /// Who saw it.
    pub witness: Witness,
    /// Whether and when.
    pub fact: Fact,
    /// Whom it is about.
    pub who: Who,
}

const OF_CALL: [&str; 6] = ["sent", "settled", "settles", "aborted", "update", "child."];
const OF_CHILD: [&str; 9] = [
    "started",
    "task",
    "exited",
    "exits",
    "reached.",
    "signal.",
    "stdin.",
    "stdin-eof",
    "descendant.",
];
const OF_SUBJECT: [&str; 6] = [
    "started",
    "starts",
    "input-closed",
    "signalled",
    "exited",
    "exits",
];

/// The path names a fact that exists.
pub fn check(path: &Path) -> Result<(), PathError> {
    let (known, of): (&[&str], _) = match &path.root {
        Root::Call(_) => (&OF_CALL, "a call"),
        Root::Child(..) => (&OF_CHILD, "a child"),
        Root::Subject(_) => (&OF_SUBJECT, "a subject"),
        _ => {
            return Err(PathError {
                what: "only calls, children and subjects have facts with a time".to_owned(),
                nearest: None,
            });
        }
    };
    let look = path.look.as_str();
    let fits = |entry: &&&str| {
        **entry == look
            || entry.ends_with('.') && look.len() > entry.len() && look.starts_with(**entry)
    };
    if known.iter().any(|entry| fits(&entry)) {
        if let (Root::Call(_), Some(rest)) = (&path.root, look.strip_prefix("child.")) {
            return check(&Path {
                each: false,
                root: Root::Child(String::new(), None),
                look: rest.to_owned(),
            });
        }
        if let Some(rest) = look.strip_prefix("descendant.")
            && !matches!(rest.rsplit_once('.'), Some((_, "started" | "gone")))
        {
            return Err(PathError {
                what: format!("`{look}` is no fact of a descendant; it has `started` and `gone`"),
                nearest: None,
            });
        }
        return Ok(());
    }
    Err(PathError {
        what: format!("`{look}` is no fact of {of}"),
        nearest: nearest(look, known.iter().copied())
            .map(|word| word.trim_end_matches('.').to_owned()),
    })
}

/// A fact's text names one that exists, in the words of this scenario.
pub fn check_text(text: &str, names: &Names) -> Result<(), PathError> {
    check(&Path::parse(text, names)?)
}

/// Looks facts up. `beside` is whom the other side of the check is about.
pub fn find(world: &World<'_>, path: &Path, beside: Who) -> Vec<Found> {
    match &path.root {
        Root::Call(name) => of_calls(world, name, path, beside),
        Root::Child(name, number) => {
            let all: Vec<usize> = (0..world.launches.len())
                .filter(|&index| {
                    let its = world.launches[index].name.unwrap_or_default();
                    if path.each {
                        its.starts_with(name.as_str())
                    } else {
                        its == name
                    }
                })
                .collect();
            let chosen: Vec<usize> = match (number, beside) {
                (Some(n), _) => all.get(n - 1).copied().into_iter().collect(),
                (None, Who::Launch(index)) if all.contains(&index) => vec![index],
                // Beside one call, a child's fact is that of the launch which served this call.
                (None, Who::Call(index)) if all.len() > 1 => {
                    let served = world.launches_for(&world.calls[index]);
                    let same = |&&at: &&usize| {
                        served
                            .iter()
                            .any(|launch| std::ptr::eq(*launch, &world.launches[at]))
                    };
                    let of_call: Vec<usize> = all.iter().filter(same).copied().collect();
                    if of_call.is_empty() { all } else { of_call }
                }
                _ => all,
            };
            if chosen.is_empty() {
                let label = number.map_or(name.clone(), |n| format!("{name}#{n}"));
                return vec![child_that_never_started(world, &label, &path.look)];
            }
            let many = chosen.len() > 1 || number.is_some();
            let label = |index: usize, nth: usize| {
                let name = world.launches[index].name.unwrap_or(name);
                if many {
                    format!("{name}#{}", number.unwrap_or(nth + 1))
                } else {
                    name.to_owned()
                }
            };
            let each = |(nth, &index): (usize, &usize)| {
                of_launch(
                    world,
                    &world.launches[index],
                    label(index, nth),
                    &path.look,
                    Who::Launch(index),
                )
            };
            chosen.iter().enumerate().flat_map(each).collect()
        }
        Root::Subject(name) => vec![of_subject(world, name, &path.look)],
        _ => Vec::new(),
    }
}

/// That a child never started is known once a call has settled or the subject has ended.
fn child_that_never_started(world: &World<'_>, label: &str, look: &str) -> Found {
    let why = format!("child `{label}` never started");
    let over = world.subject_ended() || world.anything_happened();
    let fact = if look == "started" && over {
        Fact::Never(why)
    } else {
        Fact::Unknown(why)
    };
    Found {
        label: format!("{label}.{look}"),
        witness: Witness::Journal,
        fact,
        who: Who::One,
    }
}

fn of_calls(world: &World<'_>, name: &str, path: &Path, beside: Who) -> Vec<Found> {
    let fits = |its: &str| {
        if path.each {
            its.starts_with(name)
        } else {
            its == name
        }
    };
    let mut chosen: Vec<usize> = (0..world.calls.len())
        .filter(|&index| fits(world.calls[index].name))
        .collect();
    if let Who::Call(index) = beside
        && world.calls[index].name.starts_with(name)
        && (chosen.is_empty() || chosen.contains(&index))
    {
        chosen = vec![index];
    }
    if chosen.is_empty() {
        let fact = Fact::Unknown(format!("call `{name}` was never sent"));
        let label = format!("{name}.{}", path.look);
        return vec![Found {
            label,
            witness: Witness::Runner,
            fact,
            who: Who::One,
        }];
    }
    let mut found = Vec::new();
    for index in chosen {
        let call = &world.calls[index];
        if let Some(look) = path.look.strip_prefix("child.") {
            let launches = world.launches_for(call);
            if launches.is_empty() {
                let fact = Fact::Unknown(format!("no child served call `{}`", call.name));
                let label = format!("{}.{}", call.name, path.look);
                found.push(Found {
                    label,
                    witness: Witness::Journal,
                    fact,
                    who: Who::Call(index),
                });
            }
            for launch in launches {
                found.extend(of_launch(
                    world,
                    launch,
                    format!("{}.child", call.name),
                    look,
                    Who::Call(index),
                ));
            }
            continue;
        }
        let never = |what: &str| Fact::Never(format!("call `{}` {what}", call.name));
        let at =
            |t: Option<u64>, what: &str| t.map_or_else(|| never(what), |t| Fact::At(Moment::at(t)));
        let (look, witness, fact) = match path.look.as_str() {
            "sent" => ("sent", Witness::Runner, at(Some(call.sent), "")),
            "settled" | "settles" => (
                "settled",
                Witness::Claims,
                at(call.settled(), "never settled"),
            ),
            "aborted" => (
                "aborted",
                Witness::Runner,
                at(call.aborted, "was never aborted"),
            ),
            "update" => (
                "update",
                Witness::Claims,
                at(call.updates.first().map(|(t, _)| *t), "had no update"),
            ),
            other => (
                other,
                Witness::Runner,
                Fact::Unknown(format!("`{other}` is no fact of a call")),
            ),
        };
        found.push(Found {
            label: format!("{}.{look}", call.name),
            witness,
            fact,
            who: Who::Call(index),
        });
    }
    found
}

fn of_launch(
    world: &World<'_>,
    launch: &Launch<'_>,
    label: String,
    look: &str,
    who: Who,
) -> Vec<Found> {
    let first = |pick: &dyn Fn(&Wrote) -> bool| {
        launch
            .entries()
            .find(|(_, what)| pick(what))
            .map(|(t, _)| t)
    };
    let at = |t: Option<u64>, what: String| match t {
        Some(t) => Fact::At(Moment::at(t)),
        None => Fact::Never(what),
    };
    let found = |witness, fact| {
        vec![Found {
            label: format!("{label}.{look}"),
            witness,
            fact,
            who,
        }]
    };
    let journal = |fact| found(Witness::Journal, fact);
    match look {
        "started" => journal(Fact::At(Moment::at(launch.at))),
        "task" => journal(at(
            first(&|what| matches!(what, Wrote::Task { .. })),
            format!("`{label}` read no task"),
        )),
        "stdin-eof" => {
            let t = first(&|what| matches!(what, Wrote::StdinEof));
            journal(at(t, format!("`{label}` saw no end of its input")))
        }
        "exited" | "exits" => found(Witness::Kernel, exited(world, launch, &label)),
        _ => named(world, launch, &label, look, who),
    }
}

fn named(world: &World<'_>, launch: &Launch<'_>, label: &str, look: &str, who: Who) -> Vec<Found> {
    let first = |pick: &dyn Fn(&Wrote) -> bool| {
        launch
            .entries()
            .find(|(_, what)| pick(what))
            .map(|(t, _)| t)
    };
    let journal = |t: Option<u64>, what: String| {
        let fact = t.map_or(Fact::Never(what), |t| Fact::At(Moment::at(t)));
        vec![Found {
            label: format!("{label}.{look}"),
            witness: Witness::Journal,
            fact,
            who,
        }]
    };
    if let Some(name) = look.strip_prefix("reached.") {
        let t = first(&|what| matches!(what, Wrote::Reach { name: its } if its == name));
        return journal(t, format!("`{label}` never reached `{name}`"));
    }
    if let Some(name) = look.strip_prefix("signal.") {
        let t = first(&|what| matches!(what, Wrote::Signal { name: its, .. } if its == name));
        return journal(t, format!("`{label}` got no {name}"));
    }
    if let Some(kind) = look.strip_prefix("stdin.") {
        let t =
            first(&|what| matches!(what, Wrote::Stdin { command: Some(its), .. } if its == kind));
        return journal(t, format!("`{label}` read no `{kind}`"));
    }
    let Some((name, look)) = look
        .strip_prefix("descendant.")
        .and_then(|rest| rest.rsplit_once('.'))
    else {
        return journal(None, format!("`{look}` is no fact of a child"));
    };
    let label = format!("{label}.descendant.{name}");
    let descendants = world.descendants_of(launch, name);
    if descendants.is_empty() {
        let fact = Fact::Unknown(format!("descendant `{name}` never started"));
        return vec![Found {
            label: format!("{label}.{look}"),
            witness: Witness::Journal,
            fact,
            who,
        }];
    }
    let each = |descendant: &Launch<'_>| match look {
        "gone" => Found {
            label: format!("{label}.gone"),
            witness: Witness::Kernel,
            fact: exited(world, descendant, &label),
            who,
        },
        _ => {
            let fact = Fact::At(Moment::at(descendant.at));
            Found {
                label: format!("{label}.started"),
                witness: Witness::Journal,
                fact,
                who,
            }
        }
    };
    descendants.into_iter().map(each).collect()
}

/// When a process ended: after the last thing that it wrote, before the kernel was found to have it no more.
fn exited(world: &World<'_>, launch: &Launch<'_>, label: &str) -> Fact {
    let from = launch.last();
    if let Some(gone) = world.gone(launch) {
        return Fact::At(Moment {
            from: from.min(gone),
            to: gone,
        });
    }
    match (world.survives(launch), launch.own_end()) {
        (Some(true), _) => Fact::Never(format!("`{label}` was still there at the end")),
        // Too short-lived for the warden's eyes, but it said that it was about to end, and it did.
        (Some(false), Some(_)) => Fact::At(Moment::at(from)),
        (Some(false), None) => {
            let end = world
                .evidence
                .events
                .last()
                .map_or(from, |event| event.t_ns);
            Fact::At(Moment {
                from,
                to: end.max(from),
            })
        }
        (None, _) => Fact::Unknown(format!("nobody looked whether `{label}` was gone")),
    }
}

fn of_subject(world: &World<'_>, name: &str, look: &str) -> Found {
    let event = |pick: &dyn Fn(&What) -> bool| {
        world
            .first(|what| pick(what).then_some(()))
            .map(|(t, ())| t)
    };
    let started =
        event(&|what| matches!(what, What::SubjectStarted { subject, .. } if subject == name));
    let (witness, t, never) = match look {
        "started" | "starts" => (
            Witness::Claims,
            whole::initialized(world, name),
            "never answered `initialize`",
        ),
        "input-closed" => {
            let t = event(&|what| matches!(what, What::InputClosed { subject } if subject == name));
            (Witness::Runner, t, "kept its input open")
        }
        "signalled" => {
            let t = event(
                &|what| matches!(what, What::SubjectSignalled { subject, .. } if subject == name),
            );
            (Witness::Runner, t, "was never sent a signal")
        }
        _ => {
            let t = event(
                &|what| matches!(what, What::SubjectExited { subject, .. } if subject == name),
            );
            (Witness::Kernel, t, "never ended")
        }
    };
    let fact = match (started, t) {
        (None, _) => Fact::Unknown(format!("`{name}` was never started")),
        (_, Some(t)) => Fact::At(Moment::at(t)),
        (_, None) => Fact::Never(format!("`{name}` {never}")),
    };
    Found {
        label: format!("{name}.{look}"),
        witness,
        fact,
        who: Who::One,
    }
}
