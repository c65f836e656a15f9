//! The lanes: who lived from when to when.

use crate::check::picture::{Bar, Lane, LaneOf, Picture};
use crate::check::words::short;
use crate::check::world::{Launch, World};
use crate::evidence::What;

/// Puts the lanes of all witnesses and processes.
pub fn put(picture: &mut Picture, world: &World<'_>, start: u64) {
    let end = start + picture.end_ns;
    picture.lanes.push(plain(LaneOf::Runner, "runner"));
    picture.lanes.push(plain(LaneOf::Claims, "claims"));
    let mut subjects = subjects(world, start, end);
    // A child stands below the subject that started it; below the first when that cannot be told.
    let owner = |launch: &Launch<'_>| {
        let by_pid = subjects
            .iter()
            .position(|lane| lane.pid == Some(launch.start.ppid));
        let by_call = || {
            let subject = world.call_of(launch)?.subject;
            subjects.iter().position(|lane| lane.name == subject)
        };
        by_pid.or_else(by_call).unwrap_or(0)
    };
    let owners: Vec<usize> = world.launches.iter().map(owner).collect();
    let mut placed = vec![false; world.descendants.len()];
    if subjects.is_empty() {
        subjects.push(plain(LaneOf::Subject, "subject"));
    }
    for (at, subject) in subjects.into_iter().enumerate() {
        if subject.bar.is_some() {
            picture.lanes.push(subject);
        }
        for (launch, _) in world
            .launches
            .iter()
            .zip(&owners)
            .filter(|(_, owner)| **owner == at)
        {
            let lane = process(world, launch, LaneOf::Child, 1, start, end);
            picture.lanes.push(lane);
            below(picture, world, launch.pid, 2, &mut placed, start, end);
        }
    }
    for (at, descendant) in world.descendants.iter().enumerate() {
        if !placed[at] {
            let lane = process(world, descendant, LaneOf::Descendant, 2, start, end);
            picture.lanes.push(lane);
        }
    }
    others(picture, world, start, end);
}

fn plain(of: LaneOf, name: &str) -> Lane {
    Lane {
        of,
        name: name.to_owned(),
        pid: None,
        depth: 0,
        bar: None,
        calls: Vec::new(),
        marks: Vec::new(),
    }
}

/// Each start of a subject, until it ended.
fn subjects(world: &World<'_>, start: u64, end: u64) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for event in &world.evidence.events {
        match &event.what {
            What::SubjectStarted { subject, pid, .. } => {
                let mut lane = plain(LaneOf::Subject, subject);
                lane.pid = Some(*pid);
                lane.bar = Some(Bar {
                    from_ns: event.t_ns - start,
                    to_ns: end - start,
                    survives: false,
                    ended: None,
                });
                lanes.push(lane);
            }
            What::SubjectExited {
                subject,
                code,
                signal,
            } => {
                let open = |lane: &&mut Lane| {
                    let bar = lane.bar.as_ref();
                    lane.name == *subject && bar.is_some_and(|bar| bar.ended.is_none())
                };
                if let Some(bar) = lanes
                    .iter_mut()
                    .find(open)
                    .and_then(|lane| lane.bar.as_mut())
                {
                    bar.to_ns = event.t_ns - start;
                    bar.ended = Some(ended(*code, signal.as_deref()));
                }
            }
            _ => {}
        }
    }
    lanes
}

/// How a process ended, in a word or two.
pub fn ended(code: Option<i32>, signal: Option<&str>) -> String {
    match (code, signal) {
        (_, Some(signal)) => signal.to_owned(),
        (Some(code), None) => format!("exit {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Descendants that `parent` started, and below each what that one started.
fn below(
    picture: &mut Picture,
    world: &World<'_>,
    parent: i32,
    depth: u32,
    placed: &mut [bool],
    start: u64,
    end: u64,
) {
    for (at, descendant) in world.descendants.iter().enumerate() {
        if !placed[at] && descendant.start.ppid == parent {
            placed[at] = true;
            let lane = process(world, descendant, LaneOf::Descendant, depth, start, end);
            picture.lanes.push(lane);
            below(
                picture,
                world,
                descendant.pid,
                depth + 1,
                placed,
                start,
                end,
            );
        }
    }
}

/// A fake process, by its own journal and by what the kernel saw of it.
fn process(
    world: &World<'_>,
    launch: &Launch<'_>,
    of: LaneOf,
    depth: u32,
    start: u64,
    end: u64,
) -> Lane {
    let seen = world.processes.get(&launch.key());
    let from = seen.map_or(launch.at, |seen| seen.seen.min(launch.at));
    let survives = world.survives(launch) == Some(true);
    let own = launch.own_end().map(|(code, signal)| ended(code, signal));
    // The kernel may notice the end a little before the last entry was written, or after.
    let gone = seen.and_then(|seen| seen.gone);
    let to = match gone {
        _ if survives => end,
        Some(gone) => gone.max(launch.last()),
        None if seen.is_some() && own.is_none() => end,
        None => launch.last(),
    };
    let fallback = if of == LaneOf::Child {
        "child"
    } else {
        "descendant"
    };
    Lane {
        name: short(launch.name.unwrap_or(fallback)),
        pid: Some(launch.pid),
        depth,
        bar: Some(Bar {
            from_ns: from - start,
            to_ns: to.max(from) - start,
            survives,
            ended: own.or_else(|| reaped(world, launch.pid)),
        }),
        ..plain(of, "")
    }
}

/// How an orphan ended, as the warden saw when it came home.
fn reaped(world: &World<'_>, of: i32) -> Option<String> {
    let found = world.first(|what| match what {
        What::OrphanReaped { pid, code, signal } if *pid == of => {
            Some(ended(*code, signal.as_deref()))
        }
        _ => None,
    });
    found.map(|(_, how)| how)
}

/// Processes that only the kernel saw.
fn others(picture: &mut Picture, world: &World<'_>, start: u64, end: u64) {
    let known = |(pid, ticks): (i32, u64)| {
        let mut fakes = world.launches.iter().chain(&world.descendants);
        let of_subject = |lane: &Lane| lane.of == LaneOf::Subject && lane.pid == Some(pid);
        fakes.any(|launch| launch.key() == (pid, ticks)) || picture.lanes.iter().any(of_subject)
    };
    let unknown: Vec<_> = world
        .processes
        .iter()
        .filter(|(key, _)| !known(**key))
        .collect();
    for ((pid, ticks), seen) in unknown {
        let survives = world.survivors.is_some_and(|alive| {
            alive
                .iter()
                .any(|process| (process.pid, process.start_ticks) == (*pid, *ticks))
        });
        let to = match seen.gone {
            Some(gone) if !survives => gone,
            _ => end,
        };
        let program = seen.process.argv.first().map_or("process", String::as_str);
        let program = program.rsplit('/').next().unwrap_or(program);
        let parent = picture
            .lanes
            .iter()
            .find(|lane| lane.pid == Some(seen.process.ppid));
        let depth = parent.map_or(1, |lane| lane.depth + 1);
        picture.lanes.push(Lane {
            name: short(program),
            pid: Some(*pid),
            depth,
            bar: Some(Bar {
                from_ns: seen.seen - start,
                to_ns: to.max(seen.seen) - start,
                survives,
                ended: reaped(world, *pid),
            }),
            ..plain(LaneOf::Other, "")
        });
    }
}
