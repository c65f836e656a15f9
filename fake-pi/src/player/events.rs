//! What comes from outside: standard input, signals, timers, and the end of the reader.

use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde_json::Value;

use super::stage::{Stage, State, occasion};
use super::talk;
use crate::act::{Occasion, Signal, StreamName};
use crate::journal::{What, bounded};
use crate::pi::{Ending, Input};

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;

/// Starts the threads. Standard input is read as lines of RPC mode when `rpc`, else it belongs to the task.
pub fn watch(stage: &Stage, rpc: bool) {
    let writer = stage.clone();
    thread::spawn(move || {
        let error = writer.out.run(|| writer.wake());
        reader_gone(&writer, error);
    });
    let signals = stage.clone();
    thread::spawn(move || watch_signals(&signals));
    let clock = stage.clone();
    thread::spawn(move || run_timers(&clock));
    if rpc {
        let input = stage.clone();
        thread::spawn(move || read_lines(&input));
    }
}

/// As Node does when it writes to a pipe that nobody reads.
fn reader_gone(stage: &Stage, error: Errno) {
    stage.journal.write(What::WriteFailed {
        stream: "stdout".to_owned(),
        error: format!("{error:?}"),
    });
    if error == Errno::EPIPE {
        stage.stderr(b"Error: write EPIPE\n    at WriteWrap.onWriteComplete\n");
        let _state = stage.lock();
        stage.leave(Ending::Code(1), Duration::ZERO);
    }
}

fn watch_signals(stage: &Stage) {
    let Ok(signals) = SignalFd::with_flags(&super::caught(), SfdFlags::SFD_CLOEXEC) else {
        return;
    };
    while let Ok(info) = signals.read_signal() {
        let Some(info) = info else { continue };
        let number = info.ssi_signo as i32;
        let name = crate::start::signal_name(number);
        let from = i32::try_from(info.ssi_pid).ok();
        stage.journal.write(What::Signal {
            name: name.clone(),
            from,
        });
        let known = [
            Signal::Term,
            Signal::Hup,
            Signal::Int,
            Signal::Quit,
            Signal::Usr1,
            Signal::Usr2,
        ];
        let Some(signal) = known.into_iter().find(|signal| signal.number() == number) else {
            continue;
        };
        let mut state = stage.lock();
        let caught = state.catches_signal(&name) || state.ignored.contains(&name);
        if !state.taken_by_acts(occasion(signal), &name, caught) {
            if state.session.is_some() {
                stage.tell_locked(&mut state, Input::Signal(signal));
            } else {
                // Before Pi listens, a signal does what it does to any process.
                stage.leave(Ending::Signal(signal), Duration::ZERO);
            }
        }
        drop(state);
        stage.wake();
    }
}

fn run_timers(stage: &Stage) {
    loop {
        thread::sleep(Duration::from_millis(2));
        let mut state = stage.lock();
        let now = Instant::now();
        let due: Vec<_> = state
            .timers
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(timer, _)| *timer)
            .collect();
        for timer in due {
            state.timers.remove(&timer);
            stage.tell_locked(&mut state, Input::Timer(timer));
        }
    }
}

fn read_lines(stage: &Stage) {
    let mut pending = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        if !stage.lock().reading {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        match nix::unistd::read(std::io::stdin(), &mut chunk) {
            Ok(0) | Err(Errno::EBADF | Errno::EIO) => break,
            Ok(count) => pending.extend_from_slice(&chunk[..count]),
            Err(Errno::EAGAIN) => thread::sleep(Duration::from_millis(1)),
            Err(_) => {}
        }
        let Some(end) = memrchr(&pending) else {
            continue;
        };
        let rest = pending.split_off(end + 1);
        let whole = std::mem::replace(&mut pending, rest);
        take_lines(
            stage,
            whole.split(|byte| *byte == b'\n').take(count_lines(&whole)),
        );
    }
    if !pending.is_empty() {
        // A last line without LF is handled at the end of input.
        let last = std::mem::take(&mut pending);
        take_lines(stage, std::iter::once(last.as_slice()));
    }
    end_of_input(stage);
}

fn memrchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|byte| *byte == b'\n')
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The end of standard input.
fn end_of_input(stage: &Stage) {
    stage.journal.write(What::StdinEof);
    let mut state = stage.lock();
    state.eof = true;
    let caught = state.catches_eof();
    if !state.taken_by_acts(Some(Occasion::Eof), "eof", caught) {
        stage.tell_locked(&mut state, Input::Eof);
    }
    drop(state);
    stage.wake();
}

/// Lines that came with one read. Those that no act takes go to Pi together, as it would take them up.
fn take_lines<'a>(stage: &Stage, lines: impl Iterator<Item = &'a [u8]>) {
    let mut state = stage.lock();
    let mut for_pi = Vec::new();
    for line in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let value: Option<Value> = serde_json::from_slice(line).ok();
        let kind = value
            .as_ref()
            .and_then(|value| value["type"].as_str())
            .map(str::to_owned);
        stage.journal.write(What::Stdin {
            line: bounded(&String::from_utf8_lossy(line)),
            bytes: line.len() as u64,
            command: kind.clone(),
        });
        if !taken(stage, &mut state, line, kind.as_deref(), value.as_ref()) {
            for_pi.push(line);
        }
    }
    talk::ensure_session(stage, &mut state, !for_pi.is_empty());
    match for_pi.as_slice() {
        [] => {}
        [line] => stage.tell_locked(&mut state, Input::Line(line)),
        lines => stage.tell_locked(&mut state, Input::Lines(lines)),
    }
    drop(state);
    stage.wake();
}

/// Whether acts take a line.
fn taken(
    stage: &Stage,
    state: &mut State,
    line: &[u8],
    kind: Option<&str>,
    value: Option<&Value>,
) -> bool {
    match kind {
        Some("prompt") => {
            let task = value
                .and_then(|value| value["message"].as_str())
                .unwrap_or_default();
            talk::task_known(stage, state, "rpc", task);
            let caught = state.catches_command("prompt");
            if state.taken > 0 && state.taken_by_acts(Some(Occasion::Prompt), "prompt", caught) {
                return true;
            }
            // Prompts that acts take wait for them, unless Pi is busy and has its own answer to another one.
            let busy = state
                .session
                .as_ref()
                .is_some_and(|session| !session.is_idle());
            let waiting = u32::try_from(state.prompts.len()).unwrap_or(u32::MAX);
            let for_acts = state.wants_prompt
                || (!state.idle && !busy && state.awaits_prompt(state.taken + waiting));
            if for_acts {
                state
                    .prompts
                    .push_back(String::from_utf8_lossy(line).into_owned());
            }
            for_acts
        }
        Some(kind) => {
            if kind == "extension_ui_response" {
                let id = value
                    .and_then(|value| value["id"].as_str())
                    .unwrap_or_default();
                state.answered.insert(id.to_owned());
            }
            let occasion = match kind {
                "abort" => Some(Occasion::Abort),
                "steer" => Some(Occasion::Steer),
                _ => None,
            };
            let caught = state.catches_command(kind);
            state.taken_by_acts(occasion, kind, caught)
        }
        None => false,
    }
}

/// Reads what belongs to the task in the one-shot modes: all of standard input, unless it is a terminal.
pub fn piped_text(stage: &Stage) -> String {
    use std::io::{IsTerminal as _, Read as _};
    if std::io::stdin().is_terminal() {
        return String::new();
    }
    let mut bytes = Vec::new();
    // Input that breaks off is what there was.
    let _ = std::io::stdin().lock().read_to_end(&mut bytes);
    stage.journal.write(What::StdinEof);
    stage.lock().eof = true;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes to a stream in blocks, as long as acts may go on.
pub fn blocks(
    stage: &Stage,
    stream: StreamName,
    blocks: impl Iterator<Item = Vec<u8>>,
) -> Result<(), super::stage::Interrupted> {
    for block in blocks {
        if stream == StreamName::Stderr {
            stage.stderr(&block);
            continue;
        }
        stage.out.emit(block);
        let out = stage.out.clone();
        stage.wait(None, |_| out.has_room().then_some(()))?;
    }
    Ok(())
}
