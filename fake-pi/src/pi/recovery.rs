//! What follows a run: a retry after a failure, a compaction when the context window fills up, or rest.

use serde_json::{Value, json};

use super::message::Message;
use super::provider::ModelPiece;
use super::session::{Output, Phase, Purpose, Session, TimerId};
use super::usage::{self, Tokens};

/// A compaction under way.
#[derive(Debug)]
pub(super) struct Compaction {
    reason: &'static str,
    /// The `id` field of the `compact` command; `None` when Pi compacts by itself.
    command: Option<Option<Value>>,
    first_kept: usize,
    first_kept_entry: Value,
    tokens_before: u64,
    /// Summaries still to be asked for, and those that came.
    wanted: Vec<Part>,
    parts: Vec<(Part, String)>,
    spent: Vec<Tokens>,
    reply: Message,
}

/// What a summary is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Whole turns.
    History,
    /// The beginning of a turn whose end is kept.
    Turn,
}

impl Session {
    /// The last turn of a run is over and the extensions have let it go.
    pub(super) fn run_ended(&mut self) {
        let failed = self.last_stop == "error";
        let retry = self.options.retry;
        let will_retry = failed
            && self.transient
            && !self.overflow
            && retry.enabled
            && self.attempt < retry.attempts;
        let run = self.run.take().unwrap_or_default();
        let mut end = json!({"type": "agent_end", "messages": run.messages});
        if self.newer() {
            end["willRetry"] = json!(will_retry);
        }
        self.record(end);
        let last = self.print.last.clone();
        let error = last
            .as_ref()
            .and_then(Message::error)
            .unwrap_or_default()
            .to_owned();
        let tokens = last.as_ref().map(Message::tokens).unwrap_or_default();
        match self.last_stop.as_str() {
            "aborted" => self.settle(true),
            "error" if will_retry => self.wait_to_retry(&error),
            "error" => {
                if self.overflow {
                    return self.overflowed();
                }
                if self.attempt > 0 {
                    self.retry_over(&error);
                }
                self.settle(false);
            }
            stop => {
                if stop == "length" && tokens.output < self.options.model.max_tokens {
                    self.drop_last_answer();
                }
                let full = self
                    .options
                    .model
                    .context_window
                    .saturating_sub(self.options.compaction.reserve);
                if self.options.compaction.enabled && tokens.total() > full {
                    return self.compact("threshold", None);
                }
                self.settle(false);
            }
        }
    }

    /// 1.6.0 notes that the last answer is left out of later context.
    fn drop_last_answer(&mut self) {
        if !self.newer() {
            return;
        }
        let target = self.entries.newest_message("assistant");
        let entry = self.add_entry(
            "context_edit",
            &json!({"targetId": target, "replacement": null}),
        );
        self.record(json!({"type": "entry_appended", "entry": entry}));
    }

    // ---- retry -----------------------------------------------------------------------------------------------

    fn wait_to_retry(&mut self, error: &str) {
        self.attempt += 1;
        let delay = self.options.retry.base_delay_ms << (self.attempt - 1);
        self.record(json!({
            "type": "auto_retry_start", "attempt": self.attempt, "maxAttempts": self.options.retry.attempts,
            "delayMs": delay, "errorMessage": error,
        }));
        self.drop_last_answer();
        // The failed answer is no part of the conversation that is sent again.
        self.transcript.pop();
        self.phase = Phase::RetryWait;
        self.out.push(Output::Arm(TimerId::Retry, delay));
    }

    /// The wait is over.
    pub(super) fn retry_now(&mut self) {
        if self.phase == Phase::RetryWait {
            self.start_run(None, false);
        }
    }

    fn retry_over(&mut self, error: &str) {
        self.record(json!({
            "type": "auto_retry_end", "success": false, "attempt": self.attempt, "finalError": error,
        }));
        self.attempt = 0;
    }

    /// The wait is given up.
    pub(super) fn give_up_retry(&mut self) {
        self.out.push(Output::Disarm(TimerId::Retry));
        self.retry_over("Retry cancelled");
    }

    // ---- compaction ------------------------------------------------------------------------------------------

    fn overflowed(&mut self) {
        if self.newer() && self.cut().is_none() {
            self.drop_last_answer();
            return self.settle(false);
        }
        self.compact("overflow", None);
    }

    /// Where the conversation is cut: the index of the first message that is kept and, when that lies inside a turn, the
    /// index of the turn's first message. `None`: there is nothing before it.
    fn cut(&self) -> Option<(usize, usize)> {
        let mut kept = 0;
        let mut at = None;
        for (index, message) in self.transcript.iter().enumerate().rev() {
            kept += estimate(message);
            if message["role"] != "toolResult" && message["role"] != "system" {
                at = Some(index);
            }
            if kept >= self.options.compaction.keep_recent {
                break;
            }
        }
        let at = at?;
        let turn = self.transcript[..=at]
            .iter()
            .rposition(|message| message["role"] == "user")?;
        let first = self
            .transcript
            .iter()
            .position(|message| message["role"] != "system")?;
        (at > first && kept >= self.options.compaction.keep_recent).then_some((at, turn))
    }

    /// Starts a compaction, by command or by itself.
    pub(super) fn compact(&mut self, reason: &'static str, command: Option<Option<Value>>) {
        self.record(json!({"type": "compaction_start", "reason": reason}));
        let cut = self.cut();
        if cut.is_none() && self.newer() {
            let error = "Nothing to compact (session too small)";
            return self.compaction_failed(reason, command, error);
        }
        let (kept, turn) = cut.unwrap_or((0, 0));
        let first = self
            .transcript
            .iter()
            .position(|message| message["role"] != "system")
            .unwrap_or(0);
        let mut wanted = Vec::new();
        if turn > first || cut.is_none() {
            wanted.push(Part::History);
        }
        if kept > turn {
            wanted.push(Part::Turn);
        }
        let last = self
            .transcript
            .iter()
            .rev()
            .find(|message| message["role"] == "assistant");
        let tokens_before = last
            .and_then(|message| message["usage"]["totalTokens"].as_u64())
            .unwrap_or(0);
        let first_kept_entry = match cut {
            Some((kept, _)) => self.entries.of_message(kept),
            // With nothing to cut off, 0.73.1 keeps from where it kept before.
            None => self
                .kept_from
                .clone()
                .unwrap_or_else(|| self.entries.of_message(0)),
        };
        self.kept_from = Some(first_kept_entry.clone());
        self.phase = Phase::Compacting;
        self.compaction = Some(Compaction {
            reason,
            command,
            first_kept: kept,
            first_kept_entry,
            tokens_before,
            wanted,
            parts: Vec::new(),
            spent: Vec::new(),
            reply: self.blank(),
        });
        self.out.push(Output::WantModel(Purpose::Summary));
    }

    fn blank(&self) -> Message {
        Message::new(
            self.options.flavour,
            &self.options.model,
            &self.options.thinking,
            self.now,
        )
    }

    /// A piece of a summary.
    pub(super) fn read_summary(&mut self, piece: &ModelPiece) {
        let Some(compaction) = &mut self.compaction else {
            return;
        };
        match piece {
            ModelPiece::Fail(failure) => {
                let error = format!(
                    "Summarization failed: {}",
                    failure.message(self.options.flavour)
                );
                let (reason, command) = (compaction.reason, compaction.command.take());
                self.compaction_failed(reason, command, &error);
            }
            ModelPiece::End => self.summary_came(),
            piece => compaction
                .reply
                .take(piece, &self.options.model, &mut Vec::new()),
        }
    }

    fn summary_came(&mut self) {
        let blank = self.blank();
        let Some(compaction) = &mut self.compaction else {
            return;
        };
        let reply = std::mem::replace(&mut compaction.reply, blank);
        compaction.spent.push(reply.tokens());
        if !compaction.wanted.is_empty() {
            let part = compaction.wanted.remove(0);
            compaction.parts.push((part, reply.text()));
        }
        if compaction.wanted.is_empty() {
            self.compacted();
        } else {
            self.out.push(Output::WantModel(Purpose::Summary));
        }
    }

    fn compacted(&mut self) {
        let Some(compaction) = self.compaction.take() else {
            return;
        };
        let part = |kind: Part| {
            compaction
                .parts
                .iter()
                .find(|(part, _)| *part == kind)
                .map(|(_, text)| text.as_str())
        };
        let mut summary = part(Part::History)
            .unwrap_or("No prior history.")
            .to_owned();
        if let Some(turn) = part(Part::Turn) {
            summary = format!("{summary}\n\n---\n\n**Turn Context (split turn):**\n\n{turn}");
        }
        let first_kept = compaction.first_kept_entry.clone();
        let mut result = json!({
            "summary": summary, "firstKeptEntryId": first_kept, "tokensBefore": compaction.tokens_before,
        });
        let kept: Vec<Value> = self
            .transcript
            .split_off(compaction.first_kept.min(self.transcript.len()));
        if self.newer() {
            // The summary's message has seven characters around it.
            let messages =
                kept.iter().map(estimate).sum::<u64>() + (characters(&summary) + 7).div_ceil(4);
            let after = self.options.overhead + messages;
            result["estimatedTokensAfter"] = json!(after);
            result["usage"] =
                usage::sum(&compaction.spent, self.options.flavour, &self.options.model);
        }
        result["details"] = json!({"readFiles": [], "modifiedFiles": []});
        self.transcript
            .retain(|message| message["role"] == "system");
        self.transcript.extend(kept);
        self.add_entry(
            "compaction",
            &json!({"summary": result["summary"], "firstKeptEntryId": first_kept}),
        );
        self.record(json!({
            "type": "compaction_end", "reason": compaction.reason, "result": result, "aborted": false,
            "willRetry": false,
        }));
        self.compaction_over(compaction.command, Ok(Some(result)));
    }

    fn compaction_failed(&mut self, reason: &str, command: Option<Option<Value>>, error: &str) {
        let prefix = match reason {
            "manual" => "Compaction failed",
            "overflow" => "Context overflow recovery failed",
            _ => "Auto-compaction failed",
        };
        self.compaction = None;
        self.record(json!({
            "type": "compaction_end", "reason": reason, "aborted": false, "willRetry": false,
            "errorMessage": format!("{prefix}: {error}"),
        }));
        self.compaction_over(command, Err(error.to_owned()));
    }

    fn compaction_over(
        &mut self,
        command: Option<Option<Value>>,
        outcome: Result<Option<Value>, String>,
    ) {
        match command {
            Some(id) => {
                self.phase = Phase::Idle;
                self.respond(id.as_ref(), &json!("compact"), outcome);
                for id in std::mem::take(&mut self.aborts) {
                    self.respond(id.as_ref(), &json!("abort"), Ok(None));
                }
            }
            None => self.settle(false),
        }
    }

    /// An `abort` command during a compaction.
    pub(super) fn abort_compaction(&mut self) {
        self.out.push(Output::DropModel);
        let Some(compaction) = self.compaction.take() else {
            return;
        };
        self.record(json!({
            "type": "compaction_end", "reason": compaction.reason, "aborted": true, "willRetry": false,
        }));
        self.compaction_over(compaction.command, Err("Compaction cancelled".to_owned()));
    }
}

fn characters(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// Pi's guess at a message's tokens: a quarter of its characters.
pub(super) fn estimate(message: &Value) -> u64 {
    let blocks = message["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let size = |block: &Value| match block["type"].as_str() {
        Some("text") => characters(block["text"].as_str().unwrap_or_default()),
        Some("thinking") => characters(block["thinking"].as_str().unwrap_or_default()),
        Some("toolCall") => {
            characters(block["name"].as_str().unwrap_or_default())
                + characters(&super::js::line(&block["arguments"]))
        }
        _ => 0,
    };
    blocks.iter().map(size).sum::<u64>().div_ceil(4)
}
