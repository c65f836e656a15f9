//! What the model says, and what Pi does about it: replies, deltas, tools, retries, compactions, dialogs.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::acts::{Done, Player};
use super::stage::Interrupted;
use super::talk;
use crate::act::{Ask, Compaction, FullReply, Phase, Retry, Stream, Tool};
use crate::content;
use crate::descendant;
use crate::pi::extension::{Deed, UiRequest};
use crate::pi::{Failure, Input, ModelPiece, ToolResult};
use crate::reply::{self, Call, Changes};

impl Player {
    pub(super) fn reply(&mut self, reply: &FullReply) -> Done {
        let changes = Changes::of(reply);
        self.run()?;
        self.replies += 1;
        let pieces = {
            let mut state = self.stage.lock();
            state.changes = changes;
            reply::pieces(reply, &state.known, self.replies)
        };
        for piece in pieces {
            self.stage.tell(Input::Model(piece));
            self.room()?;
        }
        self.run_tools(&reply.tools)?;
        // The end of the run belongs to this reply, also where it was changed; the next one starts afresh.
        self.stage.lock().changes = Changes::default();
        self.opened = false;
        self.flush()
    }

    /// Runs the tools that Pi wants run by now.
    pub(super) fn run_tools(&mut self, tools: &[Tool]) -> Done {
        self.stage.lock().kill_tools = false;
        let mut place = 0;
        while let Some(call) = { self.stage.lock().to_run.pop_front() } {
            let tool = tools.get(place).cloned().unwrap_or_default();
            place += 1;
            let result = match &tool.exec {
                Some(command) => self.execute(&call.id, command)?,
                None => given_result(&tool, &call.name),
            };
            self.stage.tell(Input::ToolEnd {
                id: &call.id,
                result,
            });
            self.room()?;
        }
        Ok(())
    }

    /// A real command, as Pi's bash tool runs one: in a session of its own, its output on a pipe of its own.
    pub(super) fn execute(&self, id: &str, command: &str) -> Result<ToolResult, Interrupted> {
        let flavour = self
            .stage
            .lock()
            .chosen
            .as_ref()
            .map_or_else(Default::default, |chosen| chosen.flavour);
        let began = Instant::now();
        let mut running = match descendant::shell(command) {
            Ok(running) => running,
            Err(fault) => self.fault(&fault),
        };
        self.stage.tell(Input::ToolUpdate {
            id,
            text: "",
            details: None,
        });
        let exit = self.stage.wait(None, |state| {
            if std::mem::take(&mut state.kill_tools) {
                running.kill();
                return Some(None);
            }
            running.ended().map(Some)
        })?;
        let output = running.output();
        Ok(match exit.flatten() {
            Some(code) => ToolResult::bash(flavour, &output, code, began.elapsed().as_secs_f64()),
            None => ToolResult::bash_ended(&output, "Command aborted"),
        })
    }

    pub(super) fn stream(&mut self, stream: &Stream) -> Done {
        self.run()?;
        let begun = {
            self.stage
                .lock()
                .session
                .as_ref()
                .is_some_and(crate::pi::Session::is_streaming)
        };
        if !begun {
            self.replies += 1;
            self.stage.tell(Input::Model(ModelPiece::Begin));
            self.stage.tell(Input::Model(ModelPiece::Id(format!(
                "chatcmpl-fake-{}",
                self.replies
            ))));
        }
        let mut sent = 0;
        while stream.times.is_none_or(|times| sent < times) {
            self.stage
                .tell(Input::Model(ModelPiece::Text(stream.text.clone())));
            sent += 1;
            self.room()?;
            if let Some(every) = stream.every {
                self.pause(every.0)?;
            }
        }
        self.flush()
    }

    pub(super) fn tool(&mut self, tool: &Tool) -> Done {
        self.run()?;
        self.replies += 1;
        let call = Call::of(tool, self.replies, 0);
        let phase = |wanted| tool.phase == Phase::Whole || tool.phase == wanted;
        let result = given_result(tool, &call.name);
        if phase(Phase::Start) {
            self.record(&json!({"type": "tool_execution_start", "toolCallId": call.id, "toolName": call.name,
                "args": call.args}))?;
        }
        if phase(Phase::Update) {
            self.record(&json!({"type": "tool_execution_update", "toolCallId": call.id, "toolName": call.name,
                "args": call.args, "partialResult": {"content": result.content(), "details": {}}}))?;
        }
        if phase(Phase::End) {
            let flavour = self
                .stage
                .lock()
                .chosen
                .as_ref()
                .map_or_else(Default::default, |chosen| chosen.flavour);
            self.record(
                &json!({"type": "tool_execution_end", "toolCallId": call.id, "toolName": call.name,
                "result": result.record(flavour), "isError": result.failed}),
            )?;
        }
        self.flush()
    }

    pub(super) fn retry(&mut self, retry: &Retry) -> Done {
        self.run()?;
        self.stage.lock().own_retry = true;
        loop {
            self.replies += 1;
            if let Some(text) = &retry.text {
                self.stage.tell(Input::Model(ModelPiece::Begin));
                self.stage
                    .tell(Input::Model(ModelPiece::Text(text.clone())));
            }
            let failure = Failure::Text(retry.error.clone(), true);
            self.stage.tell(Input::Model(ModelPiece::Fail(failure)));
            self.flush()?;
            let waits = {
                self.stage
                    .lock()
                    .session
                    .as_ref()
                    .is_some_and(crate::pi::Session::waits_for_retry)
            };
            if !waits {
                break;
            }
            self.pause(retry.delay.map_or(Duration::ZERO, |delay| delay.0))?;
            self.stage.tell(Input::Timer(crate::pi::TimerId::Retry));
            if !retry.last {
                break;
            }
        }
        self.stage.lock().own_retry = false;
        self.flush()
    }

    pub(super) fn compaction(&mut self, compaction: &Compaction) -> Done {
        let reason = compaction.reason.as_deref().unwrap_or("threshold");
        self.record(&json!({"type": "compaction_start", "reason": reason}))?;
        if compaction.start_only {
            return Ok(());
        }
        let mut end = json!({"type": "compaction_end", "reason": reason});
        if compaction.error.is_none() {
            end["result"] = json!({"summary": "What was said so far.", "firstKeptEntryId": "00000000",
                "tokensBefore": 1000, "details": {"readFiles": [], "modifiedFiles": []}});
        }
        end["aborted"] = json!(false);
        end["willRetry"] = json!(compaction.will_retry);
        if let Some(error) = &compaction.error {
            end["errorMessage"] = json!(error);
        }
        self.record(&end)
    }

    pub(super) fn ask(&mut self, ask: &Ask) -> Done {
        let id = ask
            .id
            .clone()
            .unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let fields: Map<String, Value> = ask
            .fields
            .as_ref()
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let request = UiRequest {
            method: ask.method.clone(),
            fields,
        };
        let waits = matches!(
            ask.method.as_str(),
            "confirm" | "select" | "input" | "editor"
        );
        let deed = if waits {
            Deed::Ask(request)
        } else {
            Deed::Tell(request)
        };
        {
            let mut state = self.stage.lock();
            *state.next_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
            talk::ensure_session(&self.stage, &mut state, true);
            self.stage.tell_locked(&mut state, Input::Deeds(vec![deed]));
        }
        self.flush()?;
        if ask.wait {
            self.stage
                .wait(None, |state| state.answered.contains(&id).then_some(()))?;
        }
        Ok(())
    }
}

/// The result that a script gives for a tool.
fn given_result(tool: &Tool, name: &str) -> ToolResult {
    let repeated = tool.output_repeat.as_ref().map(content::repeat);
    let text = tool.output.clone().or(repeated).unwrap_or_default();
    match (tool.error, name) {
        (true, _) => ToolResult::failure(&text),
        (false, "read") => ToolResult::read(&text),
        (false, _) => ToolResult::text(&text),
    }
}
