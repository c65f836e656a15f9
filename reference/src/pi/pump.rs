//! The one loop of a child: feeds what happens into the machine, and does what the machine wants.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::child::{self, Started};
use super::framing::{Frame, Framer, Rest};
use super::guardian;
use super::outcome::{Cause, Cleanup, Exit, Launch, Outcome, Update, Why};
use super::run::{Effect, Input, Run};
use super::seam::{Reach, RunTwist, Twist};
use super::wire::{self, Line};

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;
/// Most bytes that wait to be written to a child, beside its prompt. A child that asks and asks and does not read gets no
/// further answers.
const QUEUE: usize = 64 * 1024;

thread_local! {
    /// What one read brought. One for each thread of the runtime and not one for each child: nothing is awaited between
    /// a read and the use of what it brought, so no other child can come between.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

/// Who can tell a run to stop.
pub trait Stop: Send {
    /// Ends when the run is to stop, and says why.
    fn stopped(&mut self) -> impl Future<Output = Why> + Send;
}

/// Runs one child to its outcome. When this returns, nothing of its tree is left, or [`Cleanup::incomplete`] says so.
pub async fn run(
    mut launch: Launch,
    mut stop: impl Stop,
    updates: mpsc::Sender<Update>,
    twist: &dyn Twist,
) -> Outcome {
    let mut twist = twist.run();
    twist.launch(&mut launch);
    let mut limits = launch.limits.clone();
    twist.limits(&mut limits);
    let began = Instant::now();
    if twist.guarded() {
        guardian::begin(&launch.mark);
    }
    let started = match child::start(&launch) {
        Ok(started) => started,
        Err(error) => {
            guardian::over(&launch.mark);
            return not_started(&launch, &error);
        }
    };
    let stderr_cap = twist.stderr_cap(limits.stderr_cap);
    let framer = Framer::new(limits.record_cap, wire::weigh);
    let (machine, first) = Run::begin(limits, &launch.task);
    let mut pump = Pump {
        machine,
        framer,
        sound: twist.is_sound(),
        twist,
        updates,
        began,
        queue: VecDeque::new(),
        written: 0,
        close_stdin: false,
        settled: false,
        heard: Duration::ZERO,
        started,
        tail: Tail {
            bytes: VecDeque::new(),
            cap: stderr_cap,
        },
    };
    pump.carry_out(first);
    pump.turn(&mut stop).await;
    let Pump {
        machine,
        mut twist,
        tail,
        ..
    } = pump;
    let mut outcome = Outcome {
        stderr_tail: tail.text(),
        ..machine.outcome()
    };
    if !outcome.cleanup.incomplete {
        guardian::over(&launch.mark);
    }
    twist.outcome(&mut outcome);
    outcome
}

fn not_started(launch: &Launch, error: &std::io::Error) -> Outcome {
    let why = match error.kind() {
        std::io::ErrorKind::ArgumentListTooLong => {
            "its arguments are longer than the 128 KiB that the system takes for one".to_owned()
        }
        _ => error.to_string(),
    };
    Outcome {
        cause: Cause::Spawn(format!("cannot start {}: {why}", launch.program.display())),
        answered: false,
        text: String::new(),
        original_bytes: 0,
        stop_reason: String::new(),
        error: String::new(),
        exit: Exit::default(),
        tokens: [0; 5],
        cost: 0.0,
        stderr_tail: String::new(),
        cleanup: Cleanup {
            drained: true,
            ..Cleanup::default()
        },
        health: Vec::new(),
    }
}

struct Pump {
    machine: Run,
    framer: Framer,
    twist: Box<dyn RunTwist>,
    /// Whether the twist changes nothing; then it is not asked about every record.
    sound: bool,
    updates: mpsc::Sender<Update>,
    began: Instant,
    /// Lines that are still to be written: few and short but for the prompt.
    queue: VecDeque<Vec<u8>>,
    /// How much of the first of them has been written.
    written: usize,
    close_stdin: bool,
    settled: bool,
    heard: Duration,
    started: Started,
    tail: Tail,
}

/// The end of a stream.
struct Tail {
    bytes: VecDeque<u8>,
    cap: usize,
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.cap)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(self.cap);
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(bytes);
    }

    /// What is kept as text; half a character at the cut is left out.
    fn text(mut self) -> String {
        let bytes = self.bytes.make_contiguous();
        let from = bytes
            .iter()
            .take(3)
            .take_while(|byte| (0x80..0xc0).contains(*byte))
            .count();
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }
}

/// What woke the loop.
enum Woken {
    Stdout(usize),
    Stderr(usize),
    Written(usize),
    StdinBroken,
    Exited(Exit),
    Stop(Why),
    Tick,
}

impl Pump {
    async fn turn(&mut self, stop: &mut impl Stop) {
        let mut stdin = self.started.child.stdin.take();
        let mut stdout = self.started.child.stdout.take();
        let mut stderr = self.started.child.stderr.take();
        let (mut reaped, mut stopped) = (false, false);
        while !self.settled {
            if self.close_stdin && self.queue.is_empty() {
                stdin = None;
            }
            let lag = self.twist.lag(self.heard);
            let deadline = self.machine.deadline().map(|deadline| deadline + lag);
            let next = self.queue.front().map(|line| &line[self.written..]);
            let woken = tokio::select! {
                count = read(stdout.as_mut()) => Woken::Stdout(count),
                count = read(stderr.as_mut()) => Woken::Stderr(count),
                written = write(stdin.as_mut(), next) => written.map_or(Woken::StdinBroken, Woken::Written),
                status = self.started.child.wait(), if !reaped => Woken::Exited(exit(status)),
                why = stop.stopped(), if !stopped => Woken::Stop(why),
                () = at(self.began, deadline) => Woken::Tick,
            };
            match woken {
                Woken::Stdout(0) => {
                    stdout = None;
                    self.stdout_end();
                }
                Woken::Stdout(count) => SCRATCH.with_borrow(|read| self.bytes(&read[..count])),
                Woken::Stderr(0) => {
                    stderr = None;
                    self.tell(Input::StderrEnd);
                }
                Woken::Stderr(count) => SCRATCH.with_borrow(|read| self.tail.add(&read[..count])),
                Woken::Written(count) => self.written(count),
                Woken::StdinBroken => {
                    stdin = None;
                    self.queue.clear();
                    self.tell(Input::StdinBroken);
                }
                Woken::Exited(exit) => {
                    reaped = true;
                    self.started.tree.child_reaped();
                    self.tell(Input::Exited(exit));
                }
                Woken::Stop(why) => {
                    stopped = true;
                    self.tell(Input::Stop(why));
                }
                Woken::Tick => self.tell(Input::Tick),
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let mut inputs = Vec::new();
        let mut take = |frame: Frame<'_>| {
            inputs.push(match frame {
                Frame::Record(line) => record(line),
                Frame::Skipped { head, .. } => Input::Skipped(wire::read_head(head)),
                Frame::Oversized { .. } => Input::Oversized,
            });
        };
        if self.twist.rewrites() {
            let mut changed = bytes.to_vec();
            self.twist.bytes(&mut changed);
            self.framer.push(&changed, &mut take);
        } else {
            self.framer.push(bytes, &mut take);
        }
        for input in inputs {
            self.tell(input);
        }
    }

    fn stdout_end(&mut self) {
        let (last, cut) = match self.framer.finish() {
            Rest::Nothing => (None, false),
            Rest::Bytes(bytes) if wire::is_whole(bytes) => (Some(record(bytes)), false),
            Rest::Skipped { head, closed: true } => {
                (Some(Input::Skipped(wire::read_head(head))), false)
            }
            Rest::Bytes(_) | Rest::Skipped { .. } => (None, true),
        };
        if let Some(last) = last {
            self.tell(last);
        }
        self.tell(Input::StdoutEnd(cut));
    }

    fn written(&mut self, count: usize) {
        self.written += count;
        if self
            .queue
            .front()
            .is_some_and(|line| self.written >= line.len())
        {
            self.queue.pop_front();
            self.written = 0;
        }
    }

    fn tell(&mut self, input: Input) {
        let now = self.began.elapsed();
        if self.sound {
            return self.handle(input, now);
        }
        if matches!(input, Input::Record(..)) {
            self.heard = now;
        }
        for input in self.twist.input(input) {
            self.handle(input, now.saturating_sub(self.twist.lag(self.heard)));
        }
    }

    fn handle(&mut self, input: Input, now: Duration) {
        let effects = self.machine.handle(input, now);
        if !effects.is_empty() {
            self.carry_out(effects);
        }
    }

    fn enqueue(&mut self, line: String) {
        let waiting: usize = self.queue.iter().skip(1).map(Vec::len).sum();
        // Nobody will read what comes after the end of input.
        if !self.close_stdin && waiting <= QUEUE {
            let mut line = line.into_bytes();
            line.push(b'\n');
            self.queue.push_back(line);
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let twisted: Vec<Effect> = effects
            .into_iter()
            .flat_map(|effect| self.twist.effect(effect))
            .collect();
        for effect in twisted {
            match effect {
                Effect::Write(line) => self.enqueue(line),
                Effect::CloseStdin => self.close_stdin = true,
                Effect::Term => self.signal(Signal::SIGTERM),
                Effect::Kill => self.signal(Signal::SIGKILL),
                Effect::Look => {
                    let alive = match self.twist.reach() {
                        Reach::Tree => self.started.tree.look(),
                        Reach::Group => self.started.tree.look_group(),
                        Reach::Child => 0,
                    };
                    self.tell(Input::Found(alive));
                }
                // A watcher that does not keep up misses updates, never the outcome.
                Effect::Tell(update) => drop(self.updates.try_send(update)),
                Effect::Settle => self.settled = true,
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.started.tree.signal(signal, self.twist.reach());
    }
}

fn record(line: &[u8]) -> Input {
    match wire::read(line) {
        Line::Record(record, replaced) => Input::Record(record, replaced),
        Line::Unusable => Input::Unusable,
    }
}

/// Reads once, into [`SCRATCH`]; a stream that has ended, or is broken, gives 0. Without a stream there is nothing to wait
/// for.
async fn read(stream: Option<&mut (impl AsyncRead + Unpin)>) -> usize {
    let Some(stream) = stream else {
        return std::future::pending().await;
    };
    std::future::poll_fn(|context| {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            let polled = Pin::new(&mut *stream).poll_read(context, &mut buffer);
            match polled {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(())) => Poll::Ready(buffer.filled().len()),
                Poll::Ready(Err(_)) => Poll::Ready(0),
            }
        })
    })
    .await
}

/// Writes once, if there is something to write; `None` when nobody reads any more.
async fn write(stdin: Option<&mut ChildStdin>, bytes: Option<&[u8]>) -> Option<usize> {
    match (stdin, bytes) {
        (Some(stdin), Some(bytes)) => stdin.write(bytes).await.ok().filter(|count| *count > 0),
        _ => std::future::pending().await,
    }
}

fn exit(status: std::io::Result<std::process::ExitStatus>) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    status.map_or_else(
        |_| Exit::default(),
        |status| Exit {
            code: status.code(),
            signal: status.signal(),
        },
    )
}

async fn at(began: Instant, deadline: Option<Duration>) {
    match deadline.and_then(|deadline| began.checked_add(deadline)) {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // shows: bounds.stderr-tail-64kib, bounds.stderr-bounded
    #[test]
    fn only_the_end_of_a_stream_is_kept_and_no_half_character() {
        let mut tail = Tail {
            bytes: VecDeque::new(),
            cap: 5,
        };
        for _ in 0..1000 {
            tail.add(b"0123456789");
        }
        tail.add("é✓a".as_bytes());
        assert_eq!(tail.bytes.len(), 5);
        assert_eq!(tail.text(), "✓a");
    }
}
