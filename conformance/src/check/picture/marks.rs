//! The marks and calls: what happened in the lanes.

use fake_pi::journal::What as Wrote;
use serde_json::Value;

use crate::check::extract;
use crate::check::picture::lanes::ended;
use crate::check::picture::{Lane, LaneOf, Mark, MarkKind, Picture, Stretch};
use crate::check::words::short;
use crate::check::world::{Call, World};
use crate::evidence::What;

/// The runner's lane.
const RUNNER: usize = 0;
/// The claims' lane.
const CLAIMS: usize = 1;

/// Puts what happened into the lanes.
pub fn put(picture: &mut Picture, world: &World<'_>, start: u64) {
    for event in &world.evidence.events {
        let at_ns = event.t_ns - start;
        if let Some((lane, mark)) = of_event(picture, at_ns, &event.what) {
            picture.lanes[lane].marks.push(mark);
        }
    }
    for call in world.calls.values() {
        picture.lanes[CLAIMS].calls.push(stretch(call, start));
        // The first response is the end of the stretch.
        for (t, ..) in call.responses.iter().skip(1) {
            let text = format!("{} was answered again", call.name);
            let mark = mark(t - start, MarkKind::Wrong, "answered again", text);
            picture.lanes[CLAIMS].marks.push(mark);
        }
    }
    for launch in world.launches.iter().chain(&world.descendants) {
        let of_it = |lane: &Lane| {
            matches!(lane.of, LaneOf::Child | LaneOf::Descendant)
                && lane.pid == Some(launch.pid)
                && lane
                    .bar
                    .as_ref()
                    .is_some_and(|bar| bar.from_ns + start <= launch.at)
        };
        // A process id may come again: the last that began before is meant.
        let Some(lane) = picture.lanes.iter().rposition(of_it) else {
            continue;
        };
        for (t, what) in launch.entries() {
            if let Some(mark) = of_entry(picture, t - start, what) {
                picture.lanes[lane].marks.push(mark);
            }
        }
    }
}

fn stretch(call: &Call<'_>, start: u64) -> Stretch {
    let said = match call.responses.first() {
        None => "never settled".to_owned(),
        Some((_, result, error)) => {
            let answer = result
                .map(extract::text)
                .or_else(|| error.map(Value::to_string))
                .unwrap_or_default();
            format!("settled: {}", short(&answer))
        }
    };
    Stretch {
        from_ns: call.sent - start,
        to_ns: call.settled().map(|t| t - start),
        label: short(call.name),
        text: format!("{} {said}", short(call.name)),
    }
}

fn mark(at_ns: u64, kind: MarkKind, label: impl Into<String>, text: impl Into<String>) -> Mark {
    Mark {
        at_ns,
        kind,
        label: label.into(),
        text: text.into(),
        from: None,
    }
}

fn of_event(picture: &Picture, at: u64, what: &What) -> Option<(usize, Mark)> {
    let of_subject = |subject: &str| {
        let alive = |lane: &Lane| {
            let bar = lane.bar.as_ref();
            lane.of == LaneOf::Subject
                && lane.name == subject
                && bar.is_some_and(|bar| bar.from_ns <= at)
        };
        picture.lanes.iter().rposition(alive).unwrap_or(RUNNER)
    };
    let by_runner = |mark: Mark| Mark {
        from: Some(RUNNER),
        ..mark
    };
    Some(match what {
        What::Step { path, step } => (
            RUNNER,
            mark(at, MarkKind::Step, step, format!("{path} {step}")),
        ),
        What::GaveUp { path, fact } => (
            RUNNER,
            mark(
                at,
                MarkKind::Wrong,
                "gave up",
                format!("{path} gave up waiting for {}", short(fact)),
            ),
        ),
        What::HarnessError { message } => (
            RUNNER,
            mark(at, MarkKind::Wrong, "harness error", short(message)),
        ),
        What::AbortSent { call } => (
            RUNNER,
            mark(
                at,
                MarkKind::Signal,
                "abort",
                format!("abort of {call} sent"),
            ),
        ),
        What::InputClosed { subject } => (
            of_subject(subject),
            by_runner(mark(
                at,
                MarkKind::Pipe,
                "input closed",
                format!("the runner closed the input of {subject}"),
            )),
        ),
        What::SubjectSignalled { subject, signal } => (
            of_subject(subject),
            by_runner(mark(
                at,
                MarkKind::Signal,
                signal,
                format!("the runner sent {signal} to {subject}"),
            )),
        ),
        What::SubjectExited {
            subject,
            code,
            signal,
        } => {
            let how = ended(*code, signal.as_deref());
            let text = format!("{subject} ended: {how}");
            (of_subject(subject), mark(at, MarkKind::End, how, text))
        }
        What::Initialized { subject, .. } => (
            CLAIMS,
            mark(
                at,
                MarkKind::Record,
                "initialized",
                format!("{subject} answered initialize"),
            ),
        ),
        What::Update { call, .. } => (
            CLAIMS,
            mark(
                at,
                MarkKind::Record,
                "progress",
                format!("progress of {call}"),
            ),
        ),
        What::Notification { method, .. } => {
            let word = method.rsplit('/').next().unwrap_or(method);
            (
                CLAIMS,
                mark(at, MarkKind::Record, short(word), short(method)),
            )
        }
        What::Stray { problem, line, .. } => (
            CLAIMS,
            mark(
                at,
                MarkKind::Wrong,
                "stray line",
                format!("{problem}: {}", short(line)),
            ),
        ),
        What::OrphanReaped { pid, code, signal } => {
            let how = ended(*code, signal.as_deref());
            let is = |lane: &Lane| lane.pid == Some(*pid) && lane.of != LaneOf::Subject;
            let lane = picture.lanes.iter().rposition(is)?;
            let text = format!("orphan {pid} came home: {how}");
            (
                lane,
                mark(at, MarkKind::End, format!("orphan, {how}"), text),
            )
        }
        _ => return None,
    })
}

fn of_entry(picture: &Picture, at: u64, what: &Wrote) -> Option<Mark> {
    Some(match what {
        Wrote::Task { via, bytes, .. } => mark(
            at,
            MarkKind::Record,
            "task",
            format!("task of {bytes} bytes read by {via}"),
        ),
        Wrote::Stdin {
            command: Some(command),
            ..
        } => mark(
            at,
            MarkKind::Record,
            short(command),
            format!("command {} read", short(command)),
        ),
        Wrote::StdinEof => mark(at, MarkKind::Pipe, "end of input", "end of input"),
        Wrote::Signal { name, from } => {
            let sender = from.and_then(|pid| sender(picture, pid, at));
            let by = match (from, sender) {
                (None, _) => String::new(),
                (Some(pid), None) => format!(" from process {pid}"),
                (Some(_), Some(lane)) => format!(" from {}", picture.lanes[lane].name),
            };
            Mark {
                from: sender,
                ..mark(at, MarkKind::Signal, name, format!("{name}{by}"))
            }
        }
        Wrote::Act { path, act } => {
            let kind = if act == "close" {
                MarkKind::Pipe
            } else {
                MarkKind::Step
            };
            mark(at, kind, act, format!("{path} {act}"))
        }
        Wrote::Reach { name } => mark(
            at,
            MarkKind::Step,
            short(name),
            format!("reached {}", short(name)),
        ),
        Wrote::Wrote { records, bytes } => mark(
            at,
            MarkKind::Record,
            format!("{records} records"),
            format!("{records} records, {bytes} bytes written so far"),
        ),
        Wrote::WriteFailed { stream, error } => mark(
            at,
            MarkKind::Wrong,
            format!("{error} on {stream}"),
            format!("a write on {stream} failed: {error}"),
        ),
        Wrote::Exit { code, signal } => {
            let how = ended(*code, signal.as_deref());
            mark(at, MarkKind::End, &how, format!("ends by itself: {how}"))
        }
        Wrote::Fault { message } => mark(at, MarkKind::Wrong, "fault", short(message)),
        _ => return None,
    })
}

/// The lane of a process that lived at a time.
fn sender(picture: &Picture, pid: i32, at: u64) -> Option<usize> {
    let lived = |lane: &Lane| {
        let bar = lane.bar.as_ref();
        lane.pid == Some(pid) && bar.is_some_and(|bar| bar.from_ns <= at && at <= bar.to_ns)
    };
    picture.lanes.iter().rposition(lived)
}
