//! One turn: the answer while it streams, and the tools that it calls.

use serde_json::{Value, json};

use super::extension::Moment;
use super::handlers::Then;
use super::message::{Change, Message, ToolCall};
use super::provider::{Failure, ModelPiece};
use super::session::{Output, Phase, Purpose, Session, TimerId};
use super::tools::{self, ToolResult};
use crate::act::Flavour;

/// The tool calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    answer: Value,
    cut: bool,
    calls: Vec<ToolCall>,
    results: Vec<Option<(ToolResult, u64)>>,
    /// How many calls have been looked at, and which of them are to run.
    prepared: usize,
    runnable: Vec<usize>,
    started: u64,
}

impl Batch {
    /// Whether a tool runs.
    pub(super) fn running(&self) -> bool {
        self.started > 0 && self.results.iter().any(Option::is_none)
    }

    fn open(&self, id: &str) -> Option<usize> {
        self.calls
            .iter()
            .zip(&self.results)
            .position(|(call, result)| call.id == id && result.is_none())
    }
}

impl Session {
    // ---- the answer ------------------------------------------------------------------------------------------

    /// A new answer is due: ask the model, unless the run is being aborted.
    pub(super) fn new_answer(&mut self) {
        let (flavour, now) = (self.options.flavour, self.now);
        self.phase = Phase::Requested;
        self.repeated = 0;
        self.changes.clear();
        if self.aborting {
            let message =
                Message::never_started(flavour, &self.options.model, &self.options.thinking, now);
            self.message = Some(message);
            self.changes.extend([Change::Start, Change::Done]);
            while self.emit(&[]) {}
            return;
        }
        self.message = Some(Message::new(
            flavour,
            &self.options.model,
            &self.options.thinking,
            now,
        ));
        self.out.push(Output::WantModel(Purpose::Answer));
    }

    /// The client library repeats a failed request.
    pub(super) fn request_again(&mut self) {
        if self.phase == Phase::Requested {
            self.out.push(Output::WantModel(Purpose::Answer));
        }
    }

    /// Takes a piece of a reply in, without writing about it.
    pub(super) fn read(&mut self, piece: ModelPiece) {
        match self.phase {
            Phase::Requested | Phase::Streaming => self.read_answer(piece),
            Phase::Compacting => self.read_summary(&piece),
            _ => {}
        }
    }

    fn read_answer(&mut self, piece: ModelPiece) {
        match (self.phase, &piece) {
            // A response begins once, and before anything of it comes.
            (Phase::Streaming, ModelPiece::Begin) => return,
            (Phase::Requested, ModelPiece::Begin | ModelPiece::Fail(_)) => {}
            (Phase::Requested, _) => self.read_answer(ModelPiece::Begin),
            _ => {}
        }
        let Some(message) = &mut self.message else {
            return;
        };
        match piece {
            ModelPiece::Fail(failure) => self.reply_failed(&failure),
            ModelPiece::End if !message.finished() && self.options.flavour == Flavour::V1_6_0 => {
                self.close_blocks();
                self.transient = true;
                self.overflow = false;
                self.fail_answer("error", "Stream ended without finish_reason");
            }
            piece => {
                let mut changes = Vec::new();
                if piece == ModelPiece::Begin {
                    self.phase = Phase::Streaming;
                }
                message.take(&piece, &self.options.model, &mut changes);
                if piece == ModelPiece::End {
                    message.complete(self.now);
                    self.transient = false;
                    self.overflow = false;
                }
                self.changes.extend(changes);
            }
        }
    }

    fn reply_failed(&mut self, failure: &Failure) {
        let hidden = self
            .options
            .retry
            .hidden
            .unwrap_or(if self.newer() { 0 } else { 2 });
        if self.phase == Phase::Requested && failure.hidden_by_client() && self.repeated < hidden {
            self.repeated += 1;
            self.out.push(Output::Arm(
                TimerId::HiddenRetry,
                500 << (self.repeated - 1),
            ));
            return;
        }
        self.transient = failure.transient();
        self.overflow = failure.is_overflow();
        let message = failure.message(self.options.flavour);
        self.fail_answer("error", &message);
    }

    /// Closes the open blocks of the answer.
    pub(super) fn close_blocks(&mut self) {
        if let Some(message) = &mut self.message {
            let mut changes = Vec::new();
            message.close_all(&mut changes);
            self.changes.extend(changes);
        }
    }

    /// The answer ends badly; its records are still to be written.
    fn fail_answer(&mut self, stop: &str, error: &str) {
        if self.phase == Phase::Requested {
            self.changes.push_back(Change::Start);
        }
        if let Some(message) = &mut self.message {
            message.fail(stop, error, self.now);
        }
        self.changes.push_back(Change::Done);
    }

    /// The answer ends badly, and that is written at once.
    pub(super) fn answer_failed(&mut self, stop: &str, error: &str) {
        self.transient = false;
        self.overflow = false;
        self.fail_answer(stop, error);
        while self.emit(&[]) {}
    }

    /// Writes the next record about the answer; `between` is read after Pi took the event up. Whether there was one.
    pub(super) fn emit(&mut self, between: &[ModelPiece]) -> bool {
        let Some(change) = self.changes.pop_front() else {
            return false;
        };
        let Some(scalars) = self.message.as_ref().map(Message::scalars) else {
            return false;
        };
        for piece in between {
            self.read(piece.clone());
        }
        let Some(message) = &self.message else {
            return false;
        };
        match &change {
            Change::Start => {
                let failed = self.phase == Phase::Requested;
                let shown = if failed {
                    message.whole()
                } else {
                    message.growing(&scalars)
                };
                self.record(json!({"type": "message_start", "message": shown}));
            }
            Change::Done => self.answered(),
            change => {
                let update = message.update(change, &scalars);
                self.record(update);
            }
        }
        true
    }

    /// The answer is whole.
    fn answered(&mut self) {
        let Some(message) = self.message.take() else {
            return;
        };
        self.changes.clear();
        let whole = message.whole();
        let stop = message.stop().to_owned();
        self.record(json!({"type": "message_end", "message": whole}));
        self.keep(whole.clone());
        self.print.last = Some(message.clone());
        self.last_stop.clone_from(&stop);
        if self.attempt > 0 && stop != "error" {
            self.record(
                json!({"type": "auto_retry_end", "success": true, "attempt": self.attempt}),
            );
            self.attempt = 0;
        }
        let calls = message.calls();
        if matches!(stop.as_str(), "error" | "aborted") || calls.is_empty() {
            self.turn_end(&whole, &[]);
            match stop.as_str() {
                "error" | "aborted" => self.end_run(),
                _ => self.next_turn(false),
            }
            return;
        }
        self.phase = Phase::Tools;
        self.batch = Batch {
            answer: whole,
            cut: stop == "length",
            results: vec![None; calls.len()],
            calls,
            ..Batch::default()
        };
        self.prepare_tools();
    }

    // ---- tools -----------------------------------------------------------------------------------------------

    /// Announces the calls one after the other, asks the extensions about each, and then runs those that may.
    pub(super) fn prepare_tools(&mut self) {
        while let Some(call) = self.batch.calls.get(self.batch.prepared).cloned() {
            let at = self.batch.prepared;
            self.record(json!({
                "type": "tool_execution_start", "toolCallId": call.id, "toolName": call.name, "args": call.arguments,
            }));
            let refusal = tools::refusal(
                self.options.flavour,
                &call,
                &self.options.tools,
                self.batch.cut,
            );
            if let Some(refusal) = refusal {
                self.tool_ended(at, refusal);
                self.batch.prepared += 1;
                continue;
            }
            if !self.moment(Moment::ToolCall, Then::Tool) {
                return;
            }
            self.tool_allowed(None);
        }
        self.run_tools();
    }

    /// The name of the tool that is being prepared, if any.
    pub(super) fn prepared_tool(&self) -> String {
        self.batch
            .calls
            .get(self.batch.prepared)
            .map(|call| call.name.clone())
            .unwrap_or_default()
    }

    /// The extensions have spoken about the call that is being prepared; a text refuses it.
    pub(super) fn tool_allowed(&mut self, refused: Option<String>) {
        let at = self.batch.prepared;
        match refused {
            Some(text) => self.tool_ended(at, ToolResult::refused(&text)),
            None => self.batch.runnable.push(at),
        }
        self.batch.prepared += 1;
    }

    fn run_tools(&mut self) {
        self.batch.started = self.now.max(1);
        for at in std::mem::take(&mut self.batch.runnable) {
            let call = self.batch.calls[at].clone();
            if self.aborting {
                self.tool_ended(at, ToolResult::refused("Operation aborted"));
                continue;
            }
            if call.name == "bash" {
                // Pi's bash says at once that it has begun.
                self.partial_result(&call, json!({"content": []}));
            }
            self.out.push(Output::RunTool(call));
        }
        self.tools_ended();
    }

    fn partial_result(&mut self, call: &ToolCall, result: Value) {
        self.record(json!({
            "type": "tool_execution_update", "toolCallId": call.id, "toolName": call.name, "args": call.arguments,
            "partialResult": result,
        }));
    }

    /// A running tool shows its output so far.
    pub(super) fn tool_update(&mut self, id: &str, text: &str, details: Option<Value>) {
        let Some(at) = self.batch.open(id) else {
            return;
        };
        let call = self.batch.calls[at].clone();
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        if let Some(details) = details {
            result["details"] = details;
        }
        self.partial_result(&call, result);
    }

    /// A tool has ended.
    pub(super) fn tool_end(&mut self, id: &str, result: ToolResult) {
        if let Some(at) = self.batch.open(id) {
            self.tool_ended(at, result);
            self.tools_ended();
        }
    }

    fn tool_ended(&mut self, at: usize, result: ToolResult) {
        let call = self.batch.calls[at].clone();
        let duration = self.now.saturating_sub(self.batch.started);
        let mut record = json!({
            "type": "tool_execution_end", "toolCallId": call.id, "toolName": call.name,
            "result": result.record(self.options.flavour), "isError": result.failed,
        });
        if self.newer() && result.ran {
            record["durationMs"] = json!(duration);
        }
        self.record(record);
        self.batch.results[at] = Some((result, duration));
    }

    /// When all tools have ended: their messages in call order, and the end of the turn.
    fn tools_ended(&mut self) {
        if self.phase != Phase::Tools
            || self.batch.prepared < self.batch.calls.len()
            || self.batch.results.iter().any(Option::is_none)
        {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let mut messages = Vec::new();
        for (call, result) in batch.calls.iter().zip(batch.results.iter().flatten()) {
            let message = result
                .0
                .message(self.options.flavour, call, result.1, self.now);
            self.say(message.clone());
            messages.push(message);
        }
        self.turn_end(&batch.answer, &messages);
        self.next_turn(true);
    }
}
