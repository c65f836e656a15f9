//! Standard output: one writer thread, chunks in order, each with its own `write`.
//!
//! Whoever emits records (acts, the answer to a command, a timer) only queues them; a full pipe then blocks the acts,
//! which wait for the queue, but not the handling of commands and signals.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;

/// Bytes that may wait before acts are held back.
const QUEUE_LIMIT: usize = 1 << 20;

/// Bytes for one `write` call, after a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Pause before them.
    pub pause: Duration,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Chunk>,
    waiting: usize,
    writing: bool,
    capture: Option<Vec<u8>>,
    records: u64,
    bytes: u64,
    failed: Option<Errno>,
}

/// The queue in front of standard output.
#[derive(Debug, Clone, Default)]
pub struct Out(Arc<(Mutex<State>, Condvar)>);

impl Out {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues bytes; inside a capture they are kept back.
    pub fn emit(&self, bytes: Vec<u8>) {
        let mut state = self.lock();
        match &mut state.capture {
            Some(capture) => capture.extend_from_slice(&bytes),
            None => self.push(
                state,
                Chunk {
                    bytes,
                    pause: Duration::ZERO,
                },
            ),
        }
    }

    /// Queues chunks as they are.
    pub fn emit_chunks(&self, chunks: Vec<Chunk>) {
        for chunk in chunks {
            self.push(self.lock(), chunk);
        }
    }

    fn push(&self, mut state: MutexGuard<'_, State>, chunk: Chunk) {
        state.waiting += chunk.bytes.len();
        state.queue.push_back(chunk);
        drop(state);
        self.0.1.notify_all();
    }

    /// From here on bytes are collected. Captures do not nest: the outer one takes all.
    pub fn start_capture(&self) -> bool {
        let mut state = self.lock();
        let first = state.capture.is_none();
        state.capture.get_or_insert_default();
        first
    }

    /// Ends a capture and gives what it collected.
    pub fn end_capture(&self) -> Vec<u8> {
        self.lock().capture.take().unwrap_or_default()
    }

    /// Whether there is room for more, and whether all has been written.
    pub fn has_room(&self) -> bool {
        let state = self.lock();
        state.waiting < QUEUE_LIMIT || state.failed.is_some()
    }

    /// Whether everything that was queued has been written (or can never be).
    pub fn is_empty(&self) -> bool {
        let state = self.lock();
        (state.queue.is_empty() && !state.writing) || state.failed.is_some()
    }

    /// Waits until all is written, at most this long.
    pub fn flush(&self, limit: Duration) {
        let done = |state: &mut State| {
            !((state.queue.is_empty() && !state.writing) || state.failed.is_some())
        };
        let _ = self.0.1.wait_timeout_while(self.lock(), limit, done);
    }

    /// Lines and bytes written so far.
    pub fn written(&self) -> (u64, u64) {
        let state = self.lock();
        (state.records, state.bytes)
    }

    /// The writer: takes chunks and writes them until a write fails; then says with which error. `progress` is called
    /// after each chunk.
    pub fn run(&self, mut progress: impl FnMut()) -> Errno {
        loop {
            let wait = |state: &mut State| state.queue.is_empty();
            let mut state = self
                .0
                .1
                .wait_while(self.lock(), wait)
                .unwrap_or_else(PoisonError::into_inner);
            let Some(chunk) = state.queue.pop_front() else {
                continue;
            };
            state.writing = true;
            drop(state);
            if !chunk.pause.is_zero() {
                std::thread::sleep(chunk.pause);
            }
            let result = write_all(&chunk.bytes);
            let mut state = self.lock();
            state.writing = false;
            state.waiting -= chunk.bytes.len();
            state.bytes += chunk.bytes.len() as u64;
            state.records += chunk.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            state.failed = result.err();
            drop(state);
            self.0.1.notify_all();
            progress();
            if let Err(error) = result {
                return error;
            }
        }
    }
}

fn write_all(mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match nix::unistd::write(std::io::stdout(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            // A parent that shares its non-blocking end must not make a fake lose bytes.
            Err(Errno::EAGAIN) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
