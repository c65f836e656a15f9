//! What happened, told: one line a witness, and a short merged timeline. For the reader of a failure.

use fake_pi::journal::What as Wrote;
use serde_json::Value;

use crate::check::children;
use crate::check::extract;
use crate::check::words::{short, show};
use crate::check::world::{Call, World};
use crate::evidence::{Evidence, What};

/// Most lines of a timeline; the middle is left out when there are more.
const LINES: usize = 40;

/// Each witness with what it says, in order: claims, journal, kernel.
pub fn witnesses(evidence: &Evidence) -> Vec<(&'static str, Vec<String>)> {
    let world = World::of(evidence);
    let claims = world
        .calls
        .values()
        .take(6)
        .map(|call| claim(&world, call))
        .collect();
    let journal = world
        .launches
        .iter()
        .take(6)
        .map(|launch| {
            format!(
                "{}: {}",
                launch.name.unwrap_or("unchosen child"),
                children::summary(&world, launch)
            )
        })
        .collect();
    let mut kernel = Vec::new();
    for event in &evidence.events {
        if let What::SubjectExited {
            subject,
            code,
            signal,
        } = &event.what
        {
            let how = signal
                .clone()
                .unwrap_or_else(|| format!("exit {}", code.unwrap_or(-1)));
            kernel.push(format!("{subject} ended: {how}"));
        }
    }
    kernel.push(match world.survivors {
        None => "survivors were not looked for".to_owned(),
        Some([]) => "no survivors".to_owned(),
        Some(alive) => format!(
            "{} survivors: {}",
            alive.len(),
            alive
                .iter()
                .map(|p| short(&p.argv.join(" ")))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    });
    vec![("claims", claims), ("journal", journal), ("kernel", kernel)]
}

fn claim(world: &World<'_>, call: &Call<'_>) -> String {
    let Some((t, result, error)) = call.responses.first() else {
        return format!("{}: never settled", call.name);
    };
    let after = (t - call.sent) as f64 / 1e6;
    let adapter = &world.evidence.header.adapter;
    let said = match (result, error) {
        (_, Some(error)) => format!("protocol error {}", short(&error.to_string())),
        (Some(result), _) => {
            let claims = ["ok", "outcome", "reason", "answer", "error"]
                .into_iter()
                .filter_map(|name| {
                    let value = extract::observation(adapter, name, result)?;
                    (value != Value::String(String::new()))
                        .then(|| format!("{name} {}", show(&value)))
                });
            claims.collect::<Vec<_>>().join(", ")
        }
        (None, None) => "an empty response".to_owned(),
    };
    format!("{}: settled after {after:.0} ms, {said}", call.name)
}

/// What the witnesses saw in one order of time, each line with milliseconds since the first event.
pub fn timeline(evidence: &Evidence) -> Vec<String> {
    let world = World::of(evidence);
    let mut lines: Vec<(u64, &str, String)> = Vec::new();
    for event in &evidence.events {
        if let Some((who, text)) = event_line(&event.what) {
            lines.push((event.t_ns, who, text));
        }
    }
    for launch in world.launches.iter().chain(&world.descendants) {
        let name = launch.name.unwrap_or("child");
        for (t, what) in launch.entries() {
            if let Some(text) = journal_line(name, launch.pid, what) {
                lines.push((t, "journal", text));
            }
        }
    }
    lines.sort_by_key(|(t, ..)| *t);
    let start = lines.first().map_or(0, |(t, ..)| *t);
    let format = |(t, who, text): &(u64, &str, String)| {
        format!("{:>9.1} ms  {who:<7}  {text}", (t - start) as f64 / 1e6)
    };
    if lines.len() <= LINES {
        return lines.iter().map(format).collect();
    }
    let (head, tail) = (LINES / 3, LINES - LINES / 3);
    let mut told: Vec<String> = lines[..head].iter().map(format).collect();
    told.push(format!("            … {} more …", lines.len() - LINES));
    told.extend(lines[lines.len() - tail..].iter().map(format));
    told
}

fn event_line(what: &What) -> Option<(&'static str, String)> {
    Some(match what {
        What::Step { path, step } => ("runner", format!("{path} {step}")),
        What::GaveUp { fact, .. } => ("runner", format!("gave up waiting for {fact}")),
        What::SubjectStarted { subject, pid, .. } => {
            ("runner", format!("{subject} started, pid {pid}"))
        }
        What::SubjectExited {
            subject,
            code,
            signal,
        } => {
            let how = signal
                .clone()
                .unwrap_or_else(|| format!("exit {}", code.unwrap_or(-1)));
            ("kernel", format!("{subject} ended: {how}"))
        }
        What::SubjectSignalled { subject, signal } => {
            ("runner", format!("{signal} sent to {subject}"))
        }
        What::InputClosed { subject } => ("runner", format!("input of {subject} closed")),
        What::CallSent { call, tool, .. } => ("runner", format!("{call} sent to tool {tool}")),
        What::AbortSent { call } => ("runner", format!("abort of {call} sent")),
        What::Initialized { subject, .. } => ("claims", format!("{subject} answered initialize")),
        What::Response {
            call,
            result,
            error,
        } => {
            let answer = result
                .as_ref()
                .map(extract::text)
                .or_else(|| error.as_ref().map(Value::to_string));
            (
                "claims",
                format!("{call} settled: {}", short(&answer.unwrap_or_default())),
            )
        }
        What::Pushed { text, .. } => ("claims", format!("pushed: {}", short(text))),
        What::Stray { problem, line, .. } => ("claims", format!("{problem}: {}", short(line))),
        What::OrphanReaped { pid, code, signal } => {
            let how = signal
                .clone()
                .unwrap_or_else(|| format!("exit {}", code.unwrap_or(-1)));
            ("kernel", format!("orphan {pid} came home: {how}"))
        }
        What::ProcessGone { pid, .. } => ("kernel", format!("process {pid} gone")),
        What::Survivors { processes } if !processes.is_empty() => {
            let pids: Vec<String> = processes
                .iter()
                .map(|process| process.pid.to_string())
                .collect();
            ("kernel", format!("survivors: {}", pids.join(" ")))
        }
        What::Stall { ns } => (
            "runner",
            format!("the machine stalled for {} ms", ns / 1_000_000),
        ),
        What::HarnessError { message } => ("runner", format!("harness error: {message}")),
        _ => return None,
    })
}

fn journal_line(name: &str, pid: i32, what: &Wrote) -> Option<String> {
    let text = match what {
        Wrote::Start(start) => format!(
            "{} {pid} started: {}",
            start.role,
            short(&start.argv.join(" "))
        ),
        Wrote::Task { via, bytes, .. } => format!("task of {bytes} bytes read by {via}"),
        Wrote::Stdin {
            command: Some(command),
            ..
        } => format!("command {command}"),
        Wrote::StdinEof => "end of input".to_owned(),
        Wrote::Signal { name, from } => format!(
            "{name} from {}",
            from.map_or("somewhere".to_owned(), |pid| pid.to_string())
        ),
        Wrote::Act { path, act } => format!("{path} {act}"),
        Wrote::Reach { name } => format!("reached {name}"),
        Wrote::Descendant { name, child_pid } => {
            format!("started descendant {name}, pid {child_pid}")
        }
        Wrote::WriteFailed { stream, error } => format!("{error} on {stream}"),
        Wrote::Exit { code, signal } => match (code, signal) {
            (Some(code), _) => format!("exits {code}"),
            (None, signal) => format!("raises {}", signal.as_deref().unwrap_or("a signal")),
        },
        Wrote::Fault { message } => format!("fault: {message}"),
        _ => return None,
    };
    Some(format!("{name}  {text}"))
}
