//! Lines to and from a subject: one thread writes, since a subject may not read, and one reads. Both end with its streams.

use std::io::Write as _;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::lines::{Line, Lines};
use super::recorder::Recorder;
use crate::clock::now_ns;
use crate::evidence::What;

/// Bytes of a junk line that are kept.
const STRAY_KEPT: usize = 4 << 10;
/// Junk lines that are kept of one subject.
const MOST_STRAYS: usize = 100;

/// Takes what a subject says.
pub trait Listener: Send + Sync {
    /// One line. The error says what is wrong with it; the line is then kept as a stray.
    fn line(&self, line: &[u8]) -> Result<(), String>;
    /// A line that is too long to be taken; by default that is wrong.
    fn too_long(&self, bytes: usize) -> Result<(), String> {
        Err(format!("a line of {bytes} bytes"))
    }
    /// Nothing more comes.
    fn ended(&self) {}
}

/// The lines that go to a subject.
#[derive(Debug)]
pub struct Wire {
    subject: String,
    recorder: Arc<Recorder>,
    out: Mutex<Option<Sender<Vec<u8>>>>,
}

/// Name under which the end of a subject's output is noted.
pub fn output_of(subject: &str) -> String {
    format!("{subject} output")
}

impl Wire {
    /// A wire that nobody reads yet: what is sent waits until [`Wire::connect`].
    pub fn new(subject: &str, recorder: Arc<Recorder>) -> (Arc<Self>, Receiver<Vec<u8>>) {
        let (out, lines) = channel();
        let wire = Self {
            subject: subject.to_owned(),
            recorder,
            out: Mutex::new(Some(out)),
        };
        (Arc::new(wire), lines)
    }

    /// Starts both threads.
    pub fn connect(
        self: &Arc<Self>,
        lines: Receiver<Vec<u8>>,
        stdin: ChildStdin,
        stdout: ChildStdout,
        listener: Arc<dyn Listener>,
    ) {
        let wire = Arc::clone(self);
        std::thread::spawn(move || wire.write(stdin, &lines));
        let wire = Arc::clone(self);
        std::thread::spawn(move || wire.read(stdout, &*listener));
    }

    /// Sends messages with one write, each as a line.
    pub fn send(&self, messages: &[Value]) {
        let mut bytes = Vec::new();
        for message in messages {
            bytes.extend_from_slice(message.to_string().as_bytes());
            bytes.push(b'\n');
        }
        if let Some(out) = &*self.out() {
            // The writer has ended when the subject closed its input: its silence is seen elsewhere.
            let _ = out.send(bytes);
        }
    }

    /// Ends the subject's input, behind all that was sent.
    pub fn close(&self) {
        self.out().take();
    }

    fn out(&self) -> MutexGuard<'_, Option<Sender<Vec<u8>>>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>) {
        for bytes in lines {
            if stdin.write_all(&bytes).is_err() {
                return;
            }
        }
        // The subject may end at once, before this thread runs again: what it was told counts from before the close.
        let closing = now_ns();
        drop(stdin);
        let subject = self.subject.clone();
        self.recorder
            .note_at(closing, What::InputClosed { subject });
    }

    fn read(&self, stdout: ChildStdout, listener: &dyn Listener) {
        let mut strays = 0;
        for line in Lines::new(stdout) {
            let (problem, bytes) = match line {
                Line::Whole(bytes) => (listener.line(&bytes), bytes),
                Line::TooLong { head, bytes } => (listener.too_long(bytes), head),
                Line::Unfinished(bytes) => (Err("a last line without its end".to_owned()), bytes),
                Line::TooMuch => {
                    self.recorder.lose(&self.subject);
                    (
                        Err("more output than anyone can want".to_owned()),
                        Vec::new(),
                    )
                }
            };
            if let Err(problem) = problem {
                strays += 1;
                if strays <= MOST_STRAYS {
                    self.stray(problem, &bytes);
                }
            }
        }
        listener.ended();
        self.recorder.finish(&output_of(&self.subject));
    }

    fn stray(&self, problem: String, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(STRAY_KEPT)];
        self.recorder.note(What::Stray {
            subject: self.subject.clone(),
            problem,
            line: String::from_utf8_lossy(kept).into_owned(),
        });
    }
}
