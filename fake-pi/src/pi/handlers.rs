//! Extensions at work: their handlers run to the end, or stop at a dialog until it is answered.

use serde_json::{Value, json};

use super::extension::{Deed, Moment, UiRequest};
use super::session::{Ending, Output, Phase, Session, TimerId};

/// What goes on when a handler has returned.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Then {
    /// Nothing waits for it.
    Nothing,
    /// The session is ready.
    Ready,
    /// The tool call that is being prepared.
    Tool,
    /// The end of the run.
    EndRun,
    /// The response of a slash command: its `id` field.
    Command(Option<Value>),
}

/// A handler that waits.
#[derive(Debug)]
pub(super) struct Handler {
    path: String,
    moment: &'static str,
    deeds: Vec<Deed>,
    answers: Vec<Value>,
    waits_for: Option<(String, Deed)>,
    then: Then,
}

impl Handler {
    /// Whether it will never return.
    pub(super) fn hangs(&self) -> bool {
        self.waits_for.is_none()
    }
}

impl Session {
    /// Runs all handlers of a moment. `false`: one of them waits, and `then` follows later.
    pub(super) fn moment(&mut self, moment: Moment, then: Then) -> bool {
        let extension = self
            .options
            .extensions
            .iter()
            .find(|extension| !extension.deeds(moment).is_empty());
        let Some(extension) = extension else {
            return true;
        };
        let handler = Handler {
            path: extension.path.clone(),
            moment: moment.name(),
            deeds: extension.deeds(moment),
            answers: Vec::new(),
            waits_for: None,
            then,
        };
        !self.work(handler, false)
    }

    /// A slash command of an extension.
    pub(super) fn extension_command(&mut self, path: &str, deeds: Vec<Deed>, id: Option<Value>) {
        self.work(
            Handler {
                path: path.to_owned(),
                moment: "command",
                deeds,
                answers: Vec::new(),
                waits_for: None,
                then: Then::Command(id),
            },
            true,
        );
    }

    /// Deeds out of nowhere: a script's `ask` act. They wait until what runs has returned.
    pub(super) fn deeds(&mut self, deeds: Vec<Deed>) {
        if let Some(handler) = &mut self.handler {
            handler.deeds.extend(deeds);
            return;
        }
        let path = self
            .options
            .extensions
            .first()
            .map(|extension| extension.path.clone())
            .unwrap_or_default();
        let handler = Handler {
            path,
            moment: "command",
            deeds,
            answers: Vec::new(),
            waits_for: None,
            then: Then::Nothing,
        };
        self.work(handler, true);
    }

    /// Goes on with a handler. `true`: it waits. `resume`: what follows it is started from here.
    fn work(&mut self, mut handler: Handler, resume: bool) -> bool {
        let tool = self.prepared_tool();
        let mut refused = None;
        while refused.is_none() && !handler.deeds.is_empty() {
            match handler.deeds.remove(0) {
                Deed::Tell(request) => {
                    let id = self.ids.uuid();
                    self.record(request.to_record(&id, &handler.answers, &tool));
                }
                deed @ (Deed::Ask(_) | Deed::Gate(..)) => {
                    if let Some(answer) = self.answered_already(&deed, &mut handler) {
                        refused = answer;
                        continue;
                    }
                    let id = self.ids.uuid();
                    if let Deed::Ask(request) | Deed::Gate(request, _) = &deed {
                        self.record(request.to_record(&id, &handler.answers, &tool));
                        if let Some(timeout) = request.timeout() {
                            self.out.push(Output::Arm(TimerId::Dialog, timeout));
                        }
                    }
                    handler.waits_for = Some((id, deed));
                    self.handler = Some(handler);
                    return true;
                }
                Deed::Throw(text) if handler.then == Then::Tool => refused = Some(text),
                Deed::Throw(text) => self.record(json!({
                    "type": "extension_error", "extensionPath": handler.path, "event": handler.moment, "error": text,
                })),
                Deed::Hang => {
                    self.handler = Some(handler);
                    return true;
                }
                Deed::Shutdown => self.quitting = true,
            }
        }
        if resume {
            self.returned(handler.then, refused);
            return false;
        }
        match refused {
            // The caller goes on with this tool as if nothing had been asked; so refuse it here.
            Some(text) => {
                self.tool_allowed(Some(text));
                self.prepare_tools();
                true
            }
            None => false,
        }
    }

    /// The json and text modes have nobody to ask: a dialog is answered at once, with no.
    fn answered_already(&mut self, deed: &Deed, handler: &mut Handler) -> Option<Option<String>> {
        if self.options.mode == super::options::Mode::Rpc {
            return None;
        }
        match deed {
            Deed::Gate(_, refusal) => Some(Some(refusal.clone())),
            Deed::Ask(request) => {
                handler.answers.push(request.answer(None));
                Some(None)
            }
            _ => None,
        }
    }

    fn returned(&mut self, then: Then, refused: Option<String>) {
        match then {
            Then::Nothing => {}
            Then::Ready => self.next_message(),
            Then::Tool => {
                // In 1.6.0 an abort that came meanwhile goes before whatever the handler says.
                let refused = if self.aborting && self.newer() {
                    Some("Operation aborted".to_owned())
                } else {
                    refused
                };
                self.tool_allowed(refused);
                self.prepare_tools();
            }
            Then::EndRun => self.run_ended(),
            Then::Command(id) => {
                let data = self.newer().then(|| json!({"disposition": "handled"}));
                self.respond(id.as_ref(), &json!("prompt"), Ok(data));
                for id in std::mem::take(&mut self.aborts) {
                    self.respond(id.as_ref(), &json!("abort"), Ok(None));
                }
            }
        }
        if self.quitting && self.phase == Phase::Idle && self.newer() {
            self.exit(Ending::Code(0));
        }
    }

    /// An `extension_ui_response` came; one that nobody waits for is ignored.
    pub(super) fn ui_response(&mut self, response: &Value) {
        let waits = self
            .handler
            .as_ref()
            .and_then(|handler| handler.waits_for.as_ref());
        if waits.is_some_and(|(id, _)| response["id"] == json!(id)) {
            self.dialog_answered(Some(response));
        }
    }

    /// The open dialog is answered, or (`None`) its time is over.
    pub(super) fn dialog_answered(&mut self, response: Option<&Value>) {
        let Some(mut handler) = self.handler.take() else {
            return;
        };
        let Some((_, deed)) = handler.waits_for.take() else {
            self.handler = Some(handler);
            return;
        };
        if deed_timeout(&deed).is_some() && response.is_some() {
            self.out.push(Output::Disarm(TimerId::Dialog));
        }
        match deed {
            Deed::Gate(request, refusal) if request.answer(response) != Value::Bool(true) => {
                return self.returned(handler.then, Some(refusal));
            }
            Deed::Ask(request) => handler.answers.push(request.answer(response)),
            _ => {}
        }
        self.work(handler, true);
    }
}

fn deed_timeout(deed: &Deed) -> Option<u64> {
    match deed {
        Deed::Ask(request) | Deed::Gate(request, _) => UiRequest::timeout(request),
        _ => None,
    }
}
