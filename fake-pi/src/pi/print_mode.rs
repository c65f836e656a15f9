//! `--mode json` and text: the messages of the command line, one run after the other, then the end.

use std::collections::VecDeque;

use super::message::Message;
use super::options::Mode;
use super::session::{Ending, Output, Session};
use crate::act::Flavour;

/// The messages to come, and the last answer.
#[derive(Debug)]
pub(super) struct Print {
    messages: VecDeque<String>,
    pub(super) last: Option<Message>,
}

impl Print {
    pub(super) fn new(messages: Vec<String>) -> Self {
        Self {
            messages: messages.into(),
            last: None,
        }
    }
}

impl Session {
    /// Nothing runs: in a one-shot mode that is the moment for the next message, or for the end.
    pub(super) fn next_message(&mut self) {
        match self.options.mode {
            Mode::Rpc => {}
            _ if self.options.no_key.is_some() => {
                let error = self.options.no_key.clone().unwrap_or_default();
                self.out.push(Output::Stderr(error));
                self.exit(Ending::Code(1));
            }
            mode => match self.print.messages.pop_front() {
                Some(message) => self.start_run(Some(message), false),
                None if mode == Mode::Text => self.print_answer(),
                None => self.exit(Ending::Code(0)),
            },
        }
    }

    /// Text mode shows the last answer, and says by its exit code whether there was one.
    fn print_answer(&mut self) {
        let Some(last) = self.print.last.take() else {
            return self.exit(Ending::Code(0));
        };
        let cut = last.stop() == "length" && self.options.flavour == Flavour::V1_6_0;
        let failed = matches!(last.stop(), "error" | "aborted");
        if failed {
            let error = last.error().unwrap_or("Request failed").to_owned();
            self.out.push(Output::Stderr(error));
        } else {
            if cut {
                let note = "Response was truncated: the model reached its output token limit.";
                self.out.push(Output::Stderr(note.to_owned()));
            }
            let text = last.text();
            if !text.is_empty() {
                self.out.push(Output::Text(text));
            }
        }
        self.exit(Ending::Code(i32::from(failed || cut)));
    }
}
