//! Calls under way in a parent's session: what the parent tells, and what of it settles a call.
//!
//! ```text
//!  queued ─► prompted ─► running ─► ended ─► told
//!               │            (tool_execution_end)   once the model has seen the result, or the run is over
//!               └─► told     (the prompt was refused, or the run settled without the tool)
//! ```
//!
//! One call runs at a time: a parent takes one prompt at a time. What comes meanwhile waits.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::model;
use crate::runner::host::Outgoing;

/// What is to be done about an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Say this to the parent.
    Send(Value),
    /// The model's next answer belongs to this call; to none, when only its tools are to be seen.
    Begin(Option<Outgoing>),
    /// A call has settled, at this time.
    Settled {
        /// Its name.
        call: String,
        /// When, nanoseconds.
        t_ns: u64,
        /// The tool's result, with `isError`.
        result: Option<Value>,
        /// Why there is none.
        error: Option<Value>,
    },
    /// Progress of a call.
    Update {
        /// Its name.
        call: String,
        /// What was told.
        params: Value,
    },
    /// Something else that the parent tells its user.
    Told {
        /// The event's type.
        method: String,
        /// The event.
        params: Value,
    },
    /// The parent answers.
    Ready(Value),
}

/// A run of the parent: for a call, or only to see what its model is offered.
#[derive(Debug, Clone, PartialEq)]
struct Running {
    id: u64,
    call: Option<Outgoing>,
    started: bool,
    ended: Option<(u64, Value)>,
    told: bool,
}

/// The session.
#[derive(Debug, Default)]
pub struct Session {
    queue: VecDeque<(u64, Option<Outgoing>)>,
    running: Option<Running>,
    /// The parent's line tells `agent_settled`.
    settles: bool,
}

/// Id of the request that greets.
pub const GREETING: &str = "kit-greeting";

impl Session {
    /// `settles`: the parent tells `agent_settled`; the older line does not.
    pub fn new(settles: bool) -> Self {
        Self {
            settles,
            ..Self::default()
        }
    }

    /// A call is to be made.
    pub fn call(&mut self, call: Outgoing) -> Vec<Effect> {
        self.queue.push_back((call.id, Some(call)));
        self.next()
    }

    /// The model is to be asked once, so that its tools can be seen.
    pub fn look(&mut self, id: u64) -> Vec<Effect> {
        self.queue.push_back((id, None));
        self.next()
    }

    fn next(&mut self) -> Vec<Effect> {
        if self.running.is_some() {
            return Vec::new();
        }
        let Some((id, call)) = self.queue.pop_front() else {
            return Vec::new();
        };
        self.running = Some(Running {
            id,
            call: call.clone(),
            started: false,
            ended: None,
            told: false,
        });
        let message = model::prompt(id);
        let prompt = json!({"id": prompt_id(id), "type": "prompt", "message": message});
        vec![Effect::Begin(call), Effect::Send(prompt)]
    }

    /// The model has seen these results of tool calls.
    pub fn seen(&mut self, results: &[(String, String)]) -> Vec<Effect> {
        let Some(running) = &mut self.running else {
            return Vec::new();
        };
        let id = model::tool_call(running.id);
        match results.iter().find(|(its, _)| *its == id) {
            Some((_, text)) => running.tell(Some(text)),
            None => Vec::new(),
        }
    }

    /// The parent says something, at this time. An error says what is wrong with it.
    pub fn heard(&mut self, t_ns: u64, event: &Map<String, Value>) -> Result<Vec<Effect>, String> {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .ok_or("an event without a type")?;
        let field = |name: &str| event.get(name).cloned().unwrap_or_default();
        Ok(match kind {
            "response" => self.response(t_ns, event),
            "tool_execution_start" => {
                if let Some(running) = self.running_of(event) {
                    running.started = true;
                }
                Vec::new()
            }
            "tool_execution_update" => match self.running_of(event) {
                Some(running) => vec![Effect::Update {
                    call: running.name(),
                    params: json!({"partialResult": field("partialResult")}),
                }],
                None => Vec::new(),
            },
            "tool_execution_end" => {
                let mut result = field("result");
                if !result.is_object() {
                    result = json!({"content": result});
                }
                result["isError"] = field("isError");
                match self.running_of(event) {
                    Some(running) if running.ended.is_none() => {
                        running.ended = Some((t_ns, result));
                        Vec::new()
                    }
                    // A second end of the same call is evidence against the subject.
                    Some(running) => vec![Effect::Settled {
                        call: running.name(),
                        t_ns,
                        result: Some(result),
                        error: None,
                    }],
                    None => Vec::new(),
                }
            }
            "agent_settled" => self.settled(t_ns),
            "agent_end" if !self.settles && event.get("willRetry") != Some(&Value::Bool(true)) => {
                self.settled(t_ns)
            }
            "extension_ui_request" => answer(event).map(Effect::Send).into_iter().collect(),
            "extension_error" => vec![Effect::Told {
                method: kind.to_owned(),
                params: Value::Object(event.clone()),
            }],
            _ => Vec::new(),
        })
    }

    /// The parent says nothing more: what has ended is told.
    pub fn gone(&mut self) -> Vec<Effect> {
        self.running
            .as_mut()
            .map_or_else(Vec::new, |running| running.tell(None))
    }

    fn response(&mut self, t_ns: u64, event: &Map<String, Value>) -> Vec<Effect> {
        let id = event.get("id").and_then(Value::as_str).unwrap_or_default();
        let ok = event.get("success") == Some(&Value::Bool(true));
        if id == GREETING {
            let data = event.get("data").cloned().unwrap_or_default();
            return vec![Effect::Ready(data)];
        }
        let Some(running) = &self.running else {
            return Vec::new();
        };
        if ok || id != prompt_id(running.id) || running.told {
            return Vec::new();
        }
        let error = event.get("error").cloned().unwrap_or_default();
        let mut effects = running.failed(t_ns, "the parent refused its prompt", error);
        self.running = None;
        effects.extend(self.next());
        effects
    }

    /// The parent's run is over.
    fn settled(&mut self, t_ns: u64) -> Vec<Effect> {
        let Some(mut running) = self.running.take() else {
            return Vec::new();
        };
        let mut effects = running.tell(None);
        if !running.told && !running.started {
            let why = "the parent's run was over before the tool was called";
            effects.extend(running.failed(t_ns, why, Value::Null));
        }
        effects.extend(self.next());
        effects
    }

    fn running_of(&mut self, event: &Map<String, Value>) -> Option<&mut Running> {
        let id = event.get("toolCallId").and_then(Value::as_str)?;
        // Some model APIs append to an id what the parent splits off again; the number is enough.
        let id = model::call_of(id.split('|').next()?)?;
        self.running.as_mut().filter(|running| running.id == id)
    }
}

impl Running {
    fn name(&self) -> String {
        self.call
            .as_ref()
            .map_or_else(String::new, |call| call.call.clone())
    }

    /// A call that has no result, and why.
    fn failed(&self, t_ns: u64, why: &str, data: Value) -> Vec<Effect> {
        let settled = self.call.as_ref().map(|call| Effect::Settled {
            call: call.call.clone(),
            t_ns,
            result: None,
            error: Some(json!({"message": why, "data": data})),
        });
        settled.into_iter().collect()
    }

    /// Tells the result, once. `seen` is what the model saw in its place, where that differs from what the tool returned.
    fn tell(&mut self, seen: Option<&str>) -> Vec<Effect> {
        let Some((t_ns, result)) = self.ended.clone().filter(|_| !self.told) else {
            return Vec::new();
        };
        self.told = true;
        let mut result = result;
        if let Some(seen) = seen
            && seen != crate::check::extract::text(&result)
        {
            result["seen"] = seen.into();
        }
        vec![Effect::Settled {
            call: self.name(),
            t_ns,
            result: Some(result),
            error: None,
        }]
    }
}

fn prompt_id(id: u64) -> String {
    format!("kit-prompt-{id}")
}

/// What a willing user answers to a dialog; nothing where none is wanted.
fn answer(event: &Map<String, Value>) -> Option<Value> {
    let method = event.get("method")?.as_str()?;
    let id = event.get("id")?;
    let mut answer = json!({"type": "extension_ui_response", "id": id});
    match method {
        "confirm" => answer["confirmed"] = true.into(),
        "select" => answer["value"] = event.get("options")?.get(0)?.clone(),
        "input" | "editor" => answer["cancelled"] = true.into(),
        _ => return None,
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(id: u64) -> Outgoing {
        Outgoing {
            call: format!("call-{id}"),
            id,
            tool: "subagent".into(),
            arguments: Map::new(),
            aborted: false,
        }
    }

    fn hear(session: &mut Session, t_ns: u64, event: Value) -> Vec<Effect> {
        session.heard(t_ns, event.as_object().unwrap()).unwrap()
    }

    fn end(id: &str, text: &str) -> Value {
        json!({"type": "tool_execution_end", "toolCallId": id, "isError": false,
            "result": {"content": [{"type": "text", "text": text}]}})
    }

    fn settled(effects: &[Effect]) -> Vec<(&str, u64)> {
        let of = |effect| match effect {
            &Effect::Settled { ref call, t_ns, .. } => Some((call.as_str(), t_ns)),
            _ => None,
        };
        effects.iter().filter_map(of).collect()
    }

    #[test]
    fn a_result_settles_with_the_time_of_its_end_once_the_model_has_seen_it() {
        let mut session = Session::new(true);
        assert!(matches!(
            &session.call(outgoing(1))[..],
            [Effect::Begin(_), Effect::Send(_)]
        ));
        hear(
            &mut session,
            1,
            json!({"type": "tool_execution_start", "toolCallId": "kit_1"}),
        );
        assert_eq!(hear(&mut session, 5, end("kit_1", "fine")), []);
        let seen = [("kit_1".to_owned(), "fine, and a word of a hook".to_owned())];
        let effects = session.seen(&seen);
        assert_eq!(settled(&effects), [("call-1", 5)]);
        let Effect::Settled {
            result: Some(result),
            ..
        } = &effects[0]
        else {
            panic!()
        };
        assert_eq!(result["seen"], "fine, and a word of a hook");
        assert_eq!(
            hear(&mut session, 9, json!({"type": "agent_settled"})),
            [],
            "it was told"
        );
    }

    #[test]
    fn a_call_waits_until_the_run_before_it_is_over() {
        let mut session = Session::new(true);
        session.call(outgoing(1));
        assert_eq!(session.call(outgoing(2)), []);
        hear(&mut session, 2, end("kit_1", "x"));
        let effects = hear(&mut session, 3, json!({"type": "agent_settled"}));
        assert_eq!(settled(&effects), [("call-1", 2)]);
        assert!(matches!(&effects[1], Effect::Begin(Some(call)) if call.id == 2));
    }

    #[test]
    fn a_look_at_the_tools_is_a_run_of_its_own() {
        let mut session = Session::new(true);
        assert!(matches!(
            &session.look(1)[..],
            [Effect::Begin(None), Effect::Send(_)]
        ));
        assert_eq!(session.call(outgoing(2)), []);
        let effects = hear(&mut session, 3, json!({"type": "agent_settled"}));
        assert!(matches!(
            &effects[..],
            [Effect::Begin(Some(_)), Effect::Send(_)]
        ));
    }

    #[test]
    fn a_run_that_settles_without_the_tool_is_an_error_and_one_in_the_middle_of_it_is_none() {
        let mut session = Session::new(true);
        session.call(outgoing(1));
        let effects = hear(&mut session, 3, json!({"type": "agent_settled"}));
        assert!(matches!(
            &effects[..],
            [Effect::Settled {
                result: None,
                error: Some(_),
                ..
            }]
        ));
        session.call(outgoing(2));
        hear(
            &mut session,
            4,
            json!({"type": "tool_execution_start", "toolCallId": "kit_2"}),
        );
        assert_eq!(hear(&mut session, 5, json!({"type": "agent_settled"})), []);
    }

    #[test]
    fn a_second_end_is_told_as_a_second_settlement() {
        let mut session = Session::new(true);
        session.call(outgoing(1));
        hear(&mut session, 2, end("kit_1", "x"));
        session.seen(&[("kit_1".to_owned(), "x".to_owned())]);
        assert_eq!(
            settled(&hear(&mut session, 7, end("kit_1", "y"))),
            [("call-1", 7)]
        );
    }

    #[test]
    fn the_older_line_ends_with_agent_end_unless_it_will_retry() {
        let mut session = Session::new(false);
        session.call(outgoing(1));
        hear(&mut session, 2, end("kit_1", "x"));
        assert_eq!(
            hear(
                &mut session,
                3,
                json!({"type": "agent_end", "willRetry": true})
            ),
            []
        );
        assert_eq!(
            settled(&hear(&mut session, 4, json!({"type": "agent_end"}))),
            [("call-1", 2)]
        );
    }

    #[test]
    fn dialogs_are_answered_as_a_willing_user_would() {
        let mut session = Session::new(true);
        let ask = |method: &str| json!({"type": "extension_ui_request", "id": "7", "method": method, "options": ["a", "b"]});
        for (method, key, value) in [
            ("confirm", "confirmed", json!(true)),
            ("select", "value", json!("a")),
            ("input", "cancelled", json!(true)),
        ] {
            let effects = hear(&mut session, 1, ask(method));
            let [Effect::Send(answer)] = &effects[..] else {
                panic!("{method}")
            };
            assert_eq!(answer[key], value);
        }
        assert_eq!(hear(&mut session, 1, ask("notify")), []);
    }

    #[test]
    fn a_refused_prompt_settles_its_call() {
        let mut session = Session::new(true);
        session.call(outgoing(1));
        let refused =
            json!({"type": "response", "id": "kit-prompt-1", "success": false, "error": "busy"});
        assert_eq!(settled(&hear(&mut session, 2, refused)), [("call-1", 2)]);
        assert!(session.heard(1, &Map::new()).is_err(), "no type");
    }
}
