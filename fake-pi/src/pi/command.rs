//! The commands of RPC mode, and input that is none.

use serde_json::{Value, json};

use super::broken_json;
use super::extension;
use super::options::Mode;
use super::queue::Take;
use super::session::{Ending, Output, Phase, Session, Together};

/// Data of a good response, or the error text of a bad one.
type Outcome = Result<Option<Value>, String>;

/// Thinking levels that a thinking model of `models.json` knows.
const LEVELS: [&str; 5] = ["off", "minimal", "low", "medium", "high"];

impl Session {
    /// A line of standard input.
    pub(super) fn line(&mut self, line: &[u8]) {
        if self.options.mode != Mode::Rpc {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        let command = match parse(text) {
            Ok(command) => command,
            Err(error) => {
                let error = broken_json::error(text, self.newer()).unwrap_or(error);
                return self.respond(
                    None,
                    &json!("parse"),
                    Err(format!("Failed to parse command: {error}")),
                );
            }
        };
        if command.is_null() {
            self.out.push(Output::Stderr(
                "TypeError: Cannot read properties of null (reading 'id')".to_owned(),
            ));
            return self.exit(Ending::Code(1));
        }
        self.command(&command);
        // 0.73.1 looks only here whether an extension has asked for the end.
        if self.quitting && !self.newer() && self.phase == Phase::Idle {
            self.exit(Ending::Code(0));
        }
    }

    /// Lines that were read at once: all are taken up before the first is answered.
    pub(super) fn lines(&mut self, lines: &[&[u8]]) {
        self.together = Some(Together::default());
        for line in lines {
            self.line(line);
        }
        let Some(together) = self.together.take() else {
            return;
        };
        for response in together.responses {
            self.record(response);
        }
        let several = together.prompts.len() > 1;
        // Only the first prompt runs; Pi has answered the others with success all the same.
        if let Some(first) = together.prompts.into_iter().next() {
            self.start_run(Some(first), several);
        }
    }

    /// Writes a response.
    pub(super) fn respond(&mut self, id: Option<&Value>, command: &Value, outcome: Outcome) {
        let mut response = json!({});
        if let Some(id) = id {
            response["id"] = id.clone();
        }
        response["type"] = json!("response");
        if !command.is_null() {
            response["command"] = command.clone();
        }
        response["success"] = json!(outcome.is_ok());
        match outcome {
            Ok(Some(data)) => response["data"] = data,
            Ok(None) => {}
            Err(error) => response["error"] = json!(error),
        }
        match &mut self.together {
            Some(together) => together.responses.push(response),
            None => self.record(response),
        }
    }

    fn command(&mut self, command: &Value) {
        let id = command.get("id").cloned();
        let kind = command.get("type").cloned().unwrap_or(Value::Null);
        let name = kind.as_str().unwrap_or_default();
        let outcome = match name {
            "extension_ui_response" => return self.ui_response(command),
            "prompt" => return self.prompt(command, id),
            "abort" => return self.abort(id),
            "compact" => return self.compact_by_command(id),
            "bash" => return self.bash(command, id),
            "abort_retry" => return self.abort_retry(id.as_ref()),
            "steer" => self.enqueue(command, false),
            "follow_up" => self.enqueue(command, true),
            "abort_bash" => {
                if self.bash.is_some() {
                    self.out.push(Output::KillBash);
                }
                Ok(None)
            }
            "clear_queue" if self.newer() => Ok(Some(self.clear_queue())),
            "get_state" => Ok(Some(self.state())),
            "get_messages" => Ok(Some(json!({"messages": self.transcript}))),
            "get_last_assistant_text" => Ok(Some(self.last_text())),
            "get_session_stats" => Ok(Some(self.stats())),
            "get_commands" => Ok(Some(
                json!({"commands": extension::command_records(&self.options.extensions)}),
            )),
            "get_available_models" => {
                let models: Vec<Value> = self
                    .options
                    .models
                    .iter()
                    .map(super::Model::to_record)
                    .collect();
                Ok(Some(json!({"models": models})))
            }
            "get_available_thinking_levels" if self.newer() => Ok(Some(json!({"levels": LEVELS}))),
            "get_entries" if self.newer() => Ok(Some(
                json!({"entries": self.entries.all(), "leafId": self.entries.leaf()}),
            )),
            "get_tree" if self.newer() => Ok(Some(
                json!({"tree": self.entries.tree(), "leafId": self.entries.leaf()}),
            )),
            "get_fork_messages" => Ok(Some(json!({"messages": self.entries.fork_messages()}))),
            "set_model" => self.set_model(command),
            "cycle_model" => Ok(Some(self.cycle_model())),
            "set_thinking_level" => {
                self.think(text(command, "level"));
                Ok(None)
            }
            "cycle_thinking_level" => {
                let at = LEVELS
                    .iter()
                    .position(|level| *level == self.options.thinking)
                    .unwrap_or(0);
                let next = LEVELS[(at + 1) % LEVELS.len()];
                self.think(next);
                Ok(Some(json!({"level": next})))
            }
            "set_session_name" => self.set_name(text(command, "name")),
            "set_steering_mode" => {
                self.queue.steering_mode = Take::from_name(text(command, "mode"));
                Ok(None)
            }
            "set_follow_up_mode" => {
                self.queue.follow_up_mode = Take::from_name(text(command, "mode"));
                Ok(None)
            }
            "set_auto_retry" => {
                self.options.retry.enabled = command["enabled"] == json!(true);
                Ok(None)
            }
            "set_auto_compaction" => {
                self.options.compaction.enabled = command["enabled"] == json!(true);
                Ok(None)
            }
            "new_session" => {
                self.new_session();
                Ok(Some(json!({"cancelled": false})))
            }
            "switch_session" | "clone" => Ok(Some(json!({"cancelled": false}))),
            _ => return self.unknown(id.as_ref(), &kind),
        };
        self.respond(id.as_ref(), &kind, outcome);
    }

    fn unknown(&mut self, id: Option<&Value>, kind: &Value) {
        let shown = match kind {
            Value::Null => "undefined".to_owned(),
            Value::String(text) => text.clone(),
            other => super::js::line(other),
        };
        // 0.73.1 forgets the id here.
        let id = if self.newer() { id } else { None };
        self.respond(id, kind, Err(format!("Unknown command: {shown}")));
    }

    // ---- prompts and queues ----------------------------------------------------------------------------------

    fn prompt(&mut self, command: &Value, id: Option<Value>) {
        let name = json!("prompt");
        let text = match command.get("message") {
            Some(Value::String(text)) => text.clone(),
            None => {
                let error = "Cannot read properties of undefined (reading 'startsWith')".to_owned();
                return self.respond(id.as_ref(), &name, Err(error));
            }
            Some(Value::Null) => {
                let error = "Cannot read properties of null (reading 'startsWith')".to_owned();
                return self.respond(id.as_ref(), &name, Err(error));
            }
            Some(_) => {
                return self.respond(
                    id.as_ref(),
                    &name,
                    Err("text.startsWith is not a function".to_owned()),
                );
            }
        };
        if let Some((path, deeds)) = self.slash_command(&text) {
            return self.extension_command(&path, deeds, id);
        }
        let waiting = self.phase == Phase::RetryWait && !self.newer();
        if self.phase != Phase::Idle && !waiting {
            let outcome = match command.get("streamingBehavior") {
                None | Some(Value::Null) => Err(
                    "Agent is already processing. Specify streamingBehavior ('steer' or \
                                                 'followUp') to queue the message."
                        .to_owned(),
                ),
                Some(behavior) => Ok(self.wait_in_line(text, behavior == "followUp")),
            };
            return self.respond(id.as_ref(), &name, outcome);
        }
        if let Some(error) = self.options.no_key.clone() {
            return self.respond(id.as_ref(), &name, Err(error));
        }
        if waiting {
            self.out.push(Output::Disarm(super::TimerId::Retry));
        }
        let data = self.newer().then(|| json!({"disposition": "started"}));
        self.respond(id.as_ref(), &name, Ok(data));
        match &mut self.together {
            Some(together) => together.prompts.push(text),
            None => self.start_run(Some(text), false),
        }
    }

    fn slash_command(&self, prompt: &str) -> Option<(String, Vec<extension::Deed>)> {
        let (name, args) = prompt
            .strip_prefix('/')?
            .split_once(' ')
            .unwrap_or((&prompt[1..], ""));
        self.options.extensions.iter().find_map(|extension| {
            let command = extension
                .commands
                .iter()
                .find(|command| command.name == name)?;
            Some((
                extension.path.clone(),
                extension::with_arguments(&command.deeds, args),
            ))
        })
    }

    fn enqueue(&mut self, command: &Value, follow_up: bool) -> Outcome {
        match command.get("message") {
            Some(Value::String(text)) => Ok(self.wait_in_line(text.clone(), follow_up)),
            None => Err("Cannot read properties of undefined (reading 'startsWith')".to_owned()),
            Some(_) => Err("text.startsWith is not a function".to_owned()),
        }
    }

    fn wait_in_line(&mut self, text: String, follow_up: bool) -> Option<Value> {
        match follow_up {
            true => self.queue.follow_up.push(text),
            false => self.queue.steering.push(text),
        }
        let update = self.queue.record();
        self.record(update);
        self.newer().then(|| json!({"disposition": "queued"}))
    }

    fn clear_queue(&mut self) -> Value {
        let steering = std::mem::take(&mut self.queue.steering);
        let follow_up = std::mem::take(&mut self.queue.follow_up);
        let update = self.queue.record();
        self.record(update);
        json!({"steering": steering, "followUp": follow_up})
    }

    fn abort_retry(&mut self, id: Option<&Value>) {
        let waiting = self.phase == Phase::RetryWait;
        if waiting {
            self.give_up_retry();
        }
        self.respond(id, &json!("abort_retry"), Ok(None));
        if waiting {
            self.settle(false);
        }
    }

    // ---- state -----------------------------------------------------------------------------------------------

    fn state(&self) -> Value {
        let busy = self.phase != Phase::Idle && self.phase != Phase::Compacting;
        // 0.73.1 counts only the agent's own work, not the wait for a retry or for a handler of agent_end.
        let streaming =
            busy && (self.newer() || (self.phase != Phase::RetryWait && !self.agent_end_is_held()));
        let mut state = json!({
            "model": self.options.model.to_record(),
            "thinkingLevel": self.options.thinking,
            "isStreaming": streaming,
            "isCompacting": self.phase == Phase::Compacting,
            "steeringMode": self.queue.steering_mode.name(),
            "followUpMode": self.queue.follow_up_mode.name(),
        });
        if let Some(file) = &self.options.session_file {
            state["sessionFile"] = json!(file);
        }
        state["sessionId"] = json!(self.session_id);
        if let Some(name) = &self.session_name {
            state["sessionName"] = json!(name);
        }
        state["autoCompactionEnabled"] = json!(self.options.compaction.enabled);
        state["messageCount"] = json!(self.transcript.len());
        state["pendingMessageCount"] = json!(self.queue.waiting());
        state
    }

    fn agent_end_is_held(&self) -> bool {
        self.handler.is_some()
            && self.message.is_none()
            && !self.batch.running()
            && self.phase != Phase::Tools
    }

    fn last_text(&self) -> Value {
        let last = self
            .transcript
            .iter()
            .rev()
            .find(|message| message["role"] == "assistant");
        let Some(blocks) = last.and_then(|message| message["content"].as_array()) else {
            return json!({});
        };
        let text: String = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        if text.is_empty() {
            json!({})
        } else {
            json!({"text": text.trim()})
        }
    }

    fn stats(&self) -> Value {
        let count = |role: &str| {
            self.transcript
                .iter()
                .filter(|message| message["role"] == role)
                .count()
        };
        let answers = || {
            self.transcript
                .iter()
                .filter(|message| message["role"] == "assistant")
        };
        let sum = |field: &str| {
            answers()
                .filter_map(|message| message["usage"][field].as_u64())
                .sum::<u64>()
        };
        let calls: usize = answers()
            .filter_map(|message| message["content"].as_array())
            .map(|blocks| {
                blocks
                    .iter()
                    .filter(|block| block["type"] == "toolCall")
                    .count()
            })
            .sum();
        let cost = answers()
            .filter_map(|message| message["usage"]["cost"]["total"].as_f64())
            .fold(0.0, |a, b| a + b);
        let total = sum("input") + sum("output") + sum("cacheRead") + sum("cacheWrite");
        let mut context = answers()
            .next_back()
            .and_then(|message| message["usage"]["totalTokens"].as_u64())
            .unwrap_or(0);
        if context == 0 && self.newer() && !self.transcript.is_empty() {
            // A provider that counts nothing leaves Pi to guess.
            let guess = self
                .transcript
                .iter()
                .map(super::recovery::estimate)
                .sum::<u64>();
            context = self.options.overhead + guess;
        }
        let window = self.options.model.context_window;
        #[expect(
            clippy::cast_precision_loss,
            reason = "JavaScript counts in doubles too"
        )]
        let percent = if window == 0 {
            0.0
        } else {
            context as f64 / window as f64 * 100.0
        };
        let mut stats = json!({});
        if let Some(file) = &self.options.session_file {
            stats["sessionFile"] = json!(file);
        }
        for (name, value) in [
            ("sessionId", json!(self.session_id)),
            ("userMessages", json!(count("user"))),
            ("assistantMessages", json!(count("assistant"))),
            ("toolCalls", json!(calls)),
            ("toolResults", json!(count("toolResult"))),
            ("totalMessages", json!(self.transcript.len())),
            (
                "tokens",
                json!({
                    "input": sum("input"), "output": sum("output"), "cacheRead": sum("cacheRead"),
                    "cacheWrite": sum("cacheWrite"), "total": total,
                }),
            ),
            ("cost", super::js::number(cost)),
            (
                "contextUsage",
                json!({"tokens": context, "contextWindow": window, "percent": super::js::number(percent)}),
            ),
        ] {
            stats[name] = value;
        }
        stats
    }

    // ---- settings --------------------------------------------------------------------------------------------

    fn set_model(&mut self, command: &Value) -> Outcome {
        let (provider, id) = (text(command, "provider"), text(command, "modelId"));
        let model = self
            .options
            .models
            .iter()
            .find(|model| model.provider == provider && model.id == id);
        let Some(model) = model.cloned() else {
            return Err(format!("Model not found: {provider}/{id}"));
        };
        let record = model.to_record();
        self.options.model = model;
        Ok(Some(record))
    }

    fn cycle_model(&mut self) -> Value {
        if self.options.models.len() < 2 {
            return Value::Null;
        }
        let at = self
            .options
            .models
            .iter()
            .position(|model| *model == self.options.model)
            .unwrap_or(0);
        self.options.model = self.options.models[(at + 1) % self.options.models.len()].clone();
        json!({
            "model": self.options.model.to_record(), "thinkingLevel": self.options.thinking, "isScoped": false,
        })
    }

    fn think(&mut self, level: &str) {
        if self.options.thinking != level {
            self.options.thinking = level.to_owned();
            self.add_entry("thinking_level_change", &json!({"thinkingLevel": level}));
            self.record(json!({"type": "thinking_level_changed", "level": level}));
        }
    }

    fn set_name(&mut self, name: &str) -> Outcome {
        let name = name.trim();
        if name.is_empty() {
            return Err("Session name cannot be empty".to_owned());
        }
        self.session_name = Some(name.to_owned());
        self.record(json!({"type": "session_info_changed", "name": name}));
        Ok(None)
    }

    fn new_session(&mut self) {
        self.session_id = self.ids.uuid();
        self.session_name = None;
        self.transcript.clear();
        self.entries = super::entries::Entries::default();
        self.queue.steering.clear();
        self.queue.follow_up.clear();
        if let Some(file) = &mut self.options.session_file {
            file.truncate(file.rfind('/').map_or(0, |slash| slash + 1));
        }
        self.name_session_file();
    }

    /// Gives the session file a name when only its folder is known.
    pub(super) fn name_session_file(&mut self) {
        let name = format!(
            "{}_{}.jsonl",
            super::entries::iso(self.now).replace([':', '.'], "-"),
            self.session_id
        );
        if let Some(file) = self
            .options
            .session_file
            .as_mut()
            .filter(|file| file.ends_with('/'))
        {
            file.push_str(&name);
        }
    }

    // ---- the bash command ------------------------------------------------------------------------------------

    fn bash(&mut self, command: &Value, id: Option<Value>) {
        self.bash = Some((id, String::new()));
        self.out
            .push(Output::RunBash(text(command, "command").to_owned()));
    }

    /// The command printed something.
    pub(super) fn bash_output(&mut self, delta: &str) {
        let Some((id, output)) = &mut self.bash else {
            return;
        };
        output.push_str(delta);
        let mut update = json!({"type": "bash_execution_update"});
        if let Some(id) = id {
            update["id"] = id.clone();
        }
        update["delta"] = json!(delta);
        if self.newer() {
            self.record(update);
        }
    }

    /// The command ended; without an exit code it was aborted.
    pub(super) fn bash_end(&mut self, exit: Option<i32>) {
        let Some((id, output)) = self.bash.take() else {
            return;
        };
        let mut data = json!({"output": output});
        if let Some(exit) = exit {
            data["exitCode"] = json!(exit);
        }
        data["cancelled"] = json!(exit.is_none());
        data["truncated"] = json!(false);
        self.respond(id.as_ref(), &json!("bash"), Ok(Some(data)));
    }
}

fn text<'a>(command: &'a Value, field: &str) -> &'a str {
    command
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Reads a command. Lone surrogates in escapes, which JavaScript takes and `serde_json` refuses, become what
/// [`super::js::lone`] stands for.
fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|error| match super::js::carry_surrogates(text) {
        Some(carried) => serde_json::from_str(&carried).map_err(|error| error.to_string()),
        None => Err(error.to_string()),
    })
}
