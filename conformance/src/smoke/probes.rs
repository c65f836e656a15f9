//! Probes of the subject's life: start, tools, child, end, output.

use super::{FAILURES, Fault, Outcome, SUCCESS, Seen};
use crate::check::words::short;
use crate::evidence::What;
use crate::runner::FIRST;
use crate::yaml;

/// Stray lines that are told.
const TOLD: usize = 3;
/// Programs of the subject that are told when the child never started.
const PROGRAMS: usize = 4;

/// When an event first happened.
fn when(seen: &Seen<'_>, pick: impl Fn(&What) -> bool) -> Option<u64> {
    let found = seen.world.first(|what| pick(what).then_some(()));
    found.map(|(at, ())| at)
}

fn initialized(seen: &Seen<'_>) -> Option<u64> {
    when(seen, |what| matches!(what, What::Initialized { .. }))
}

fn input_closed(seen: &Seen<'_>) -> Option<u64> {
    when(seen, |what| matches!(what, What::InputClosed { .. }))
}

fn exited(seen: &Seen<'_>) -> Option<(u64, String)> {
    seen.world.first(|what| match what {
        What::SubjectExited { code, signal, .. } => Some(match (code, signal) {
            (_, Some(signal)) => format!("was ended by {signal}"),
            (code, None) => format!("ended with code {}", code.unwrap_or(-1)),
        }),
        _ => None,
    })
}

/// The command starts, and answers the handshake.
pub fn starts(seen: &Seen<'_>) -> Outcome {
    let answered = initialized(seen);
    // A subject that buffers its output says everything when it exits, and it exits when its input ends.
    if let (Some(answered), Some(closed)) = (answered, input_closed(seen))
        && answered > closed
    {
        let message = "the handshake was answered only after the subject's input had ended: it does not flush its standard output";
        let help = "flush after each message (Python: `print(…, flush=True)` or `python3 -u`; C: `setvbuf`)";
        return vec![Fault::new(message).help(help)].into();
    }
    if answered.is_some() {
        let name = seen.world.first(|what| match what {
            What::Initialized { result, .. } => {
                let info = result.get("serverInfo")?;
                let word = |key: &str| Some(info.get(key)?.as_str()?.to_owned());
                Some(format!(
                    "{} {}",
                    word("name")?,
                    word("version").unwrap_or_default()
                ))
            }
            _ => None,
        });
        return Outcome::Right(name.map_or("it answers".to_owned(), |(_, name)| {
            format!("it answers as {}", name.trim())
        }));
    }
    let harness = seen.world.first(|what| match what {
        What::HarnessError { message } => Some(message.clone()),
        _ => None,
    });
    let started = when(seen, |what| matches!(what, What::SubjectStarted { .. })).is_some();
    let message = match (harness, started) {
        (Some((_, harness)), false) => format!("`command`: {harness}"),
        _ => {
            let end = match exited(seen) {
                Some((at, how)) if input_closed(seen).is_none_or(|closed| at < closed) => {
                    format!("it {how} before it answered the handshake")
                }
                _ => "it runs, but never answered the handshake".to_owned(),
            };
            format!("`command`: {end}{}", seen.last_words())
        }
    };
    let fault = Fault::new(message);
    let first = seen.world.first(|what| match what {
        What::Stray { line, .. } => Some(short(line)),
        _ => None,
    });
    vec![match first {
        Some((_, line)) => fault.help(format!("instead of a message it printed: {line}")),
        None => fault,
    }]
    .into()
}

/// Why nothing can be said after the start.
fn silent(seen: &Seen<'_>) -> Option<Outcome> {
    let lives = matches!(starts(seen), Outcome::Right(_));
    (!lives).then(|| Outcome::Open("the handshake was not answered".to_owned()))
}

/// The tools of all operations exist.
pub fn tools(seen: &Seen<'_>) -> Outcome {
    if let Some(open) = silent(seen) {
        return open;
    }
    if !super::lists_tools(seen.adapter) {
        return Outcome::Open("a command has no list of tools".to_owned());
    }
    let Some(tools) = seen.tools else {
        return vec![Fault::new("the subject did not list its tools")].into();
    };
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool.get("name")?.as_str())
        .collect();
    let mut faults = Vec::new();
    for (operation, mapped) in &seen.adapter.operations {
        if names.contains(&mapped.tool.as_str()) {
            continue;
        }
        let message = format!(
            "operation `{operation}`: the subject has no tool `{}`",
            mapped.tool
        );
        let fault = Fault::new(message);
        faults.push(match names[..] {
            [] => fault.help("it lists no tools at all"),
            _ => fault.help(yaml::suggestion(&mapped.tool, &names)),
        });
    }
    if faults.is_empty() {
        Outcome::Right(names.join(", "))
    } else {
        faults.into()
    }
}

/// The subject starts fake-pi in place of Pi.
pub fn child(seen: &Seen<'_>) -> Outcome {
    if let Some(open) = silent(seen) {
        return open;
    }
    if !seen.adapter_has_processes() {
        return Outcome::Open("its children are no processes".to_owned());
    }
    if let Some(launch) = seen.world.launches.first() {
        // The program is a link in a folder of this run; what it was asked for is what tells something.
        let mut words = vec!["pi".to_owned()];
        words.extend(launch.start.argv.iter().skip(1).cloned());
        return Outcome::Right(short(&words.join(" ")));
    }
    if seen.world.calls.is_empty() {
        return Outcome::Open("no call was made".to_owned());
    }
    let subject = seen.world.first(|what| match what {
        What::SubjectStarted { pid, argv, .. } => Some((*pid, argv.first())),
        _ => None,
    });
    let subject = subject.map(|(_, subject)| subject);
    let own = |pid: i32, program: Option<&String>| {
        // What it starts of itself, such as a helper or a worker, is no try at a child.
        subject.is_some_and(|(its, own)| pid == its || program == own)
    };
    let called = seen.world.calls.values().map(|call| call.sent).min();
    let mut tried: Vec<String> = Vec::new();
    for ((pid, _), process) in &seen.world.processes {
        // What ran before the first call brought the subject itself up.
        if called.is_some_and(|called| process.seen < called) {
            continue;
        }
        let argv = &process.process.argv;
        let told = short(&argv.join(" "));
        if !argv.is_empty() && !own(*pid, argv.first()) && !tried.contains(&told) {
            tried.push(told);
        }
    }
    tried.truncate(PROGRAMS);
    let named = seen
        .adapter
        .env
        .iter()
        .filter(|(_, value)| value.contains("child"))
        .map(|(name, _)| format!("`{name}`"));
    let named: Vec<String> = named.collect();
    let mut message = "the child never started: ".to_owned();
    message += &match named[..] {
        [] => "`pi` on PATH is fake-pi, and `env` of the adapter leads to no other".to_owned(),
        _ => format!("neither PATH nor {} led to fake-pi", named.join(", ")),
    };
    message += &match tried[..] {
        [] => "; the subject started no program at all".to_owned(),
        _ => format!("; the subject started: {}", tried.join(" · ")),
    };
    message += &format!("; {}", seen.told(SUCCESS));
    let help = "does it start Pi by a path of its own? Put fake-pi there (`child: [PATH]`), or name it in the variable that the delegator reads (`env: {NAME: \"{{ child }}\"}`)";
    vec![Fault::new(message).help(help)].into()
}

/// The task arrives in the child, whole.
pub fn task(seen: &Seen<'_>) -> Outcome {
    if seen.world.launches.is_empty() {
        return Outcome::Open("the child never started".to_owned());
    }
    let Some(call) = seen.world.calls.get(SUCCESS) else {
        return Outcome::Open("no call was made".to_owned());
    };
    let sent = seen.world.first(|what| match what {
        What::CallSent {
            call, task_sha256, ..
        } if call == SUCCESS => Some(task_sha256),
        _ => None,
    });
    let mut read = Vec::new();
    for launch in &seen.world.launches {
        for (_, what) in launch.entries() {
            if let fake_pi::journal::What::Task {
                via, text, sha256, ..
            } = what
            {
                if launch.call == Some(call.word) {
                    let whole = sent.is_some_and(|(_, sent)| sent == sha256);
                    let more = if whole {
                        ""
                    } else {
                        ", with words of the subject's around it"
                    };
                    return Outcome::Right(format!("read by {via}{more}"));
                }
                read.push(short(text));
            }
        }
    }
    let message = match read.first() {
        Some(text) => {
            format!("the child was given a task without the words that the call carried: {text}")
        }
        None => "the child started, and read no task".to_owned(),
    };
    let help = "the argument that becomes the child's prompt must be `\"{{ task }}\"`";
    vec![Fault::new(message).help(help)].into()
}

/// Which of Pi's modes the child of the success was started in.
pub fn mode_seen(seen: &Seen<'_>) -> Option<&'static str> {
    let argv = &seen.world.launches.first()?.start.argv;
    let given = argv.iter().enumerate().find_map(|(at, word)| {
        word.strip_prefix("--mode=")
            .or_else(|| (word == "--mode").then(|| argv.get(at + 1).map_or("", String::as_str)))
    });
    Some(match given {
        Some("rpc") => "rpc",
        Some("json") => "json",
        _ => "text",
    })
}

/// The child runs in the mode that the adapter names.
pub fn child_mode(seen: &Seen<'_>) -> Outcome {
    let word = seen.child_mode();
    let Some(mode) = mode_seen(seen) else {
        return Outcome::Open("the child never started".to_owned());
    };
    // `text-session` is plain text on standard output too.
    if word == mode || word.starts_with(&format!("{mode}-")) {
        return Outcome::Right(mode.to_owned());
    }
    let message = format!("`child-mode` is `{word}`, but the child was started in mode `{mode}`");
    vec![Fault::new(message).help(format!("write `child-mode: {mode}`"))].into()
}

/// The subject ends when its input does.
pub fn end(seen: &Seen<'_>) -> Outcome {
    if let Some(open) = silent(seen) {
        return open;
    }
    let waited = |what: &What| matches!(what, What::GaveUp { fact, .. } if *fact == format!("{FIRST}.exited"));
    let closed = input_closed(seen);
    match exited(seen) {
        Some((at, how)) if closed.is_none_or(|closed| at < closed) => {
            let message = format!(
                "the subject {how} while the session was still open{}",
                seen.last_words()
            );
            vec![Fault::new(message)].into()
        }
        Some((_, how)) if when(seen, waited).is_none() => Outcome::Right(format!("it {how}")),
        _ => {
            let message =
                "the subject went on after its standard input had ended, and had to be killed";
            let help = "a server on stdio ends with its input: leave the loop that reads it at end of file, and stop what would keep the process alive";
            vec![Fault::new(message).help(help)].into()
        }
    }
}

/// Nothing but messages comes on standard output.
pub fn output(seen: &Seen<'_>) -> Outcome {
    let strays: Vec<(&str, &str)> = seen
        .evidence
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Stray { problem, line, .. } => Some((problem.as_str(), line.as_str())),
            _ => None,
        })
        .collect();
    if !strays.is_empty() {
        let mut faults: Vec<Fault> = strays
            .iter()
            .take(TOLD)
            .map(|(problem, line)| Fault::new(format!("{problem}: {}", short(line))))
            .collect();
        if strays.len() > TOLD {
            faults.push(Fault::new(format!("and {} more", strays.len() - TOLD)));
        }
        if let Some(first) = faults.first_mut() {
            first.help =
                Some("standard output is for messages alone: print to standard error".to_owned());
        }
        return faults.into();
    }
    if initialized(seen).is_none() {
        return Outcome::Open("nothing came".to_owned());
    }
    let unsettled = std::iter::once(SUCCESS)
        .chain(FAILURES)
        .filter(|call| {
            let call = seen.world.calls.get(call);
            call.is_some_and(|call| call.responses.is_empty())
        })
        .count();
    match unsettled {
        0 => Outcome::Right("nothing else came".to_owned()),
        n => vec![Fault::new(format!("{n} of 3 calls were never answered"))].into(),
    }
}
