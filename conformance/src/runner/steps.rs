//! The steps of a scenario.

use std::time::Duration;

use serde_json::Value;

use super::journals::{Answer, ChildFact};
use super::story::{FIRST, Story};
use crate::clock::{as_ns, now_ns};
use crate::evidence::What;
use crate::proc;
use crate::scenario::{
    Abort, FullAbort, OnSubject, ParentStep, RawRequest, Repeat, SignalStep, Spawn, Step, WaitStep,
};
use crate::warden::Order;

/// One round of a repetition.
#[derive(Debug, Clone)]
struct Round {
    /// Put after the names that are given in it.
    suffix: String,
    /// Calls that its steps name.
    calls: Vec<String>,
    /// Children that its steps start: facts about those count from the start of the round.
    children: Vec<String>,
    since: u64,
}

/// Rounds that a step stands in, outermost first.
type Rounds = [Round];

impl Story<'_> {
    /// Carries out steps; `path` is where they stand.
    pub(super) fn steps(&mut self, steps: &[Step], path: &str) {
        self.steps_in(steps, path, "", &[]);
    }

    fn steps_in(&mut self, steps: &[Step], path: &str, round: &str, rounds: &Rounds) {
        for (at, step) in steps.iter().enumerate() {
            if self.interrupted() {
                return;
            }
            let path = format!("{path}[{at}]{round}");
            self.recorder.note(What::Step {
                path: path.clone(),
                step: key_of(step),
            });
            self.step(step, &path, rounds);
        }
    }

    fn step(&mut self, step: &Step, path: &str, rounds: &Rounds) {
        match step {
            Step::Spawn(spawn) => {
                self.send(spawn, call_name(spawn, rounds));
            }
            Step::Call(spawn) => self.call(spawn, path, rounds),
            Step::Abort(Abort::Call(call)) => self.abort(&resolve(call, rounds), None),
            Step::Abort(Abort::Full(FullAbort { call, offset })) => {
                self.abort(&resolve(call, rounds), offset.map(|span| span.0));
            }
            Step::Wait(WaitStep::Fact(fact)) => self.wait(fact, path, rounds),
            Step::Wait(WaitStep::All(facts)) => {
                for fact in facts {
                    self.wait(fact, path, rounds);
                }
            }
            Step::Open(barrier) => {
                if let Err(error) = self.stage.open(barrier) {
                    self.recorder
                        .fault(format!("cannot open the barrier `{barrier}`: {error}"));
                }
                for subject in self.subjects.values_mut() {
                    subject.host.open(barrier);
                }
            }
            Step::ListTools(named) => self.list_tools(&named.name, named.on.as_deref(), path),
            Step::Shutdown(OnSubject { on }) => {
                let name = on.as_deref().unwrap_or(FIRST);
                match self.subjects.get_mut(name) {
                    Some(subject) => subject.close(),
                    None => self.no_subject(name),
                }
            }
            Step::Signal(SignalStep { send, on }) => {
                let signal = serde_json::to_value(send).unwrap_or_default();
                self.signal(
                    signal.as_str().unwrap_or_default(),
                    on.as_deref().unwrap_or(FIRST),
                );
            }
            Step::Subject(named) => {
                self.start_subject(&named.name, path);
            }
            Step::Sample(named) => {
                let name = named_in(&named.name, rounds);
                self.take_sample(named.on.as_deref().unwrap_or(FIRST), &name, false);
            }
            Step::Parent(parent) => self.parent(parent),
            Step::Write(write) => {
                if let Err(error) = self.stage.write(&write.path, &write.content) {
                    self.recorder.fault(error.to_string());
                }
            }
            Step::Repeat(repeat) => self.repeat(repeat, path, rounds),
            Step::Pause(span) | Step::Watch(span) => self.pause(span.0),
            Step::Request(request) => self.request(request, path, rounds),
        }
    }

    fn no_subject(&self, name: &str) {
        self.recorder.fault(format!("there is no subject `{name}`"));
    }

    fn call(&mut self, spawn: &Spawn, path: &str, rounds: &Rounds) {
        let name = call_name(spawn, rounds);
        if self.send(spawn, name.clone()) {
            self.wait_settled(&name, path);
        }
    }

    fn wait_settled(&mut self, call: &str, path: &str) {
        let fact = format!("{call}.settled");
        let subject = self.calls.get(call).map(|sent| sent.subject.clone());
        self.wait_for(
            path,
            &fact,
            |story| story.recorder.fact(&fact).is_some(),
            subject.as_deref(),
        );
    }

    fn abort(&mut self, call: &str, offset: Option<Duration>) {
        let Some(sent) = self.calls.get(call).cloned() else {
            self.recorder
                .fault(format!("there is no call `{call}` to abort"));
            return;
        };
        if let Some(offset) = offset {
            let due = sent.t_ns + as_ns(offset);
            self.pause(Duration::from_nanos(due.saturating_sub(now_ns())));
        }
        if let Some(subject) = self.subjects.get_mut(&sent.subject) {
            self.recorder.note(What::AbortSent {
                call: call.to_owned(),
            });
            subject.host.abort(sent.id);
        }
    }

    /// An offset for a race, as exact as the machine lets it be.
    fn pause(&self, length: Duration) {
        let until = now_ns() + as_ns(length);
        loop {
            let left = Duration::from_nanos(until.saturating_sub(now_ns()));
            if left.is_zero() || self.interrupted() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }

    fn list_tools(&mut self, name: &str, on: Option<&str>, path: &str) {
        let subject = on.unwrap_or(FIRST).to_owned();
        let name = if name.is_empty() { "tools" } else { name };
        let id = self.next_id();
        match self.subjects.get_mut(&subject) {
            Some(link) => link.host.list_tools(name, id),
            None => return self.no_subject(&subject),
        }
        let fact = format!("{name}.listed");
        self.wait_for(
            path,
            &fact,
            |story| story.recorder.fact(&fact).is_some(),
            Some(&subject),
        );
    }

    fn signal(&mut self, signal: &str, on: &str) {
        match self.subjects.get_mut(on) {
            Some(subject) => {
                self.recorder.note(What::SubjectSignalled {
                    subject: on.to_owned(),
                    signal: signal.to_owned(),
                });
                subject.order(&Order::Signal {
                    signal: format!("SIG{signal}"),
                });
            }
            None => self.no_subject(on),
        }
    }

    fn parent(&mut self, parent: &ParentStep) {
        let (event, on, params) = match parent {
            ParentStep::Started(facts) => ("started", None, serde_json::json!(facts)),
            ParentStep::Interrupted(on) => ("interrupted", on.on.as_deref(), serde_json::json!({})),
            ParentStep::Settled(on) => ("settled", on.on.as_deref(), serde_json::json!({})),
        };
        let name = on.unwrap_or(FIRST);
        match self.subjects.get_mut(name) {
            Some(subject) => subject.host.parent(event, params),
            None => self.no_subject(name),
        }
    }

    fn request(&mut self, request: &RawRequest, path: &str, rounds: &Rounds) {
        let name = named_in(&request.name, rounds);
        let id = self.next_id();
        let word = format!("kit-call-{id}");
        let sent = What::CallSent {
            call: name.clone(),
            subject: FIRST.to_owned(),
            id,
            child: None,
            word: word.clone(),
            tool: request.method.clone(),
            arguments: request.params.clone(),
            task_sha256: String::new(),
            task_bytes: 0,
        };
        self.note_sent(name.clone(), FIRST.to_owned(), id, word, sent);
        let Some(subject) = self.subjects.get_mut(FIRST) else {
            return self.no_subject(FIRST);
        };
        subject
            .host
            .request(&name, id, &request.method, request.params.clone());
        self.wait_settled(&name, path);
    }

    fn repeat(&mut self, repeat: &Repeat, path: &str, rounds: &Rounds) {
        let outer = rounds
            .last()
            .map_or("", |round| round.suffix.as_str())
            .to_owned();
        let barriers: Vec<&String> = repeat
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Open(barrier) => Some(barrier),
                _ => None,
            })
            .collect();
        for n in 1..=repeat.times {
            if self.interrupted() {
                return;
            }
            // What a round opens was shut when it began, or it would hold nobody back from the second round on.
            barriers.iter().for_each(|barrier| self.stage.shut(barrier));
            let mut inner = rounds.to_vec();
            inner.push(Round {
                suffix: format!("{outer}-{n}"),
                calls: repeat.steps.iter().filter_map(given_name).collect(),
                children: repeat.steps.iter().filter_map(started_child).collect(),
                since: now_ns(),
            });
            let steps: Vec<Step> = repeat.steps.iter().map(|step| numbered(step, n)).collect();
            self.steps_in(&steps, &format!("{path}.do"), &format!("#{n}"), &inner);
            if self.in_vain > 0 {
                // Each further round would wait as long again, and say the same.
                return;
            }
        }
    }

    /// Waits for one fact.
    fn wait(&mut self, fact: &str, path: &str, rounds: &Rounds) {
        let Some((who, what)) = fact.split_once('.') else {
            self.recorder
                .fault(format!("`{fact}` is no fact: it has no `.`"));
            return;
        };
        if matches!(what, "sent" | "settled" | "aborted" | "update") {
            let fact = format!("{}.{what}", resolve(who, rounds));
            let subject = self
                .calls
                .get(&resolve(who, rounds))
                .map(|sent| sent.subject.clone());
            self.wait_for(
                path,
                &fact,
                |story| story.recorder.fact(&fact).is_some(),
                subject.as_deref(),
            );
            return;
        }
        if self.subjects.contains_key(who) {
            let needs = (what != "exited").then_some(who);
            self.wait_for(
                path,
                fact,
                |story| story.recorder.fact(fact).is_some(),
                needs,
            );
            return;
        }
        let call = resolve(who, rounds);
        let of_call = what
            .strip_prefix("child.")
            .filter(|_| self.calls.contains_key(&call));
        let word = of_call
            .and_then(|_| self.calls.get(&call))
            .map(|sent| sent.word.clone());
        let (child, nth) = match who.split_once('#') {
            Some((child, nth)) => (child, nth.parse().unwrap_or(1)),
            None => (who, 1),
        };
        let Some(wanted) = ChildFact::parse(of_call.unwrap_or(what)) else {
            self.recorder
                .fault(format!("`{fact}` is no fact that can be waited for"));
            return;
        };
        let since = rounds
            .iter()
            .rev()
            .find(|round| round.children.iter().any(|its| its == child))
            .map_or(0, |round| round.since);
        // A child that was not started by now will not be once its subject is gone; one that runs can still do things.
        let needs = (wanted == ChildFact::Started).then_some(FIRST);
        self.wait_for(
            path,
            fact,
            |story| {
                if story.recorder.fact(fact).is_some() {
                    // A child that the host itself plays has no journal.
                    return true;
                }
                story.journals.poll();
                let answer = match &word {
                    Some(word) => story.journals.holds_for(word, &wanted),
                    None => story.journals.holds(child, nth, since, &wanted),
                };
                match answer {
                    Answer::Holds => true,
                    Answer::NotYet => false,
                    Answer::WhenGone(processes) => processes.iter().any(|(pid, ticks)| {
                        story
                            .recorder
                            .fact(&format!("gone {pid} {ticks}"))
                            .is_some()
                            || has_gone(*pid, *ticks)
                    }),
                }
            },
            needs,
        );
    }
}

/// The kernel, asked once more: a process that came and went between two looks of the warden.
fn has_gone(pid: i32, start_ticks: u64) -> bool {
    proc::stat(pid).is_none_or(|stat| stat.start_ticks != start_ticks || stat.is_dead())
}

/// The step's key in the file.
fn key_of(step: &Step) -> String {
    match serde_json::to_value(step) {
        Ok(Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

fn call_name(spawn: &Spawn, rounds: &Rounds) -> String {
    named_in(spawn.name.as_deref().unwrap_or("call"), rounds)
}

/// A name that is given inside a repetition carries the round.
fn named_in(name: &str, rounds: &Rounds) -> String {
    let suffix = rounds.last().map_or("", |round| round.suffix.as_str());
    format!("{name}{suffix}")
}

/// The call that a name means: one of this round, or of one around it, or of none.
fn resolve(name: &str, rounds: &Rounds) -> String {
    let round = rounds
        .iter()
        .rev()
        .find(|round| round.calls.iter().any(|its| its == name));
    format!("{name}{}", round.map_or("", |round| round.suffix.as_str()))
}

fn given_name(step: &Step) -> Option<String> {
    match step {
        Step::Spawn(spawn) | Step::Call(spawn) => {
            Some(spawn.name.clone().unwrap_or_else(|| "call".to_owned()))
        }
        Step::Request(request) => Some(request.name.clone()),
        _ => None,
    }
}

fn started_child(step: &Step) -> Option<String> {
    match step {
        Step::Spawn(spawn) | Step::Call(spawn) => spawn.child.clone(),
        _ => None,
    }
}

/// A step with the round's number in place of `{{n}}`. A repetition inside has numbers of its own.
fn numbered(step: &Step, n: u64) -> Step {
    if matches!(step, Step::Repeat(_)) {
        return step.clone();
    }
    let mut value = match serde_json::to_value(step) {
        Ok(value) => value,
        Err(_) => return step.clone(),
    };
    number(&mut value, n);
    serde_json::from_value(value).unwrap_or_else(|_| step.clone())
}

fn number(value: &mut Value, n: u64) {
    match value {
        Value::String(text) if text.contains("{{") => {
            *text = text
                .replace("{{n}}", &n.to_string())
                .replace("{{ n }}", &n.to_string());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| number(item, n)),
        Value::Object(map) => map.values_mut().for_each(|value| number(value, n)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(n: u64, calls: &[&str]) -> Round {
        Round {
            suffix: format!("-{n}"),
            calls: calls.iter().map(|call| (*call).to_owned()).collect(),
            children: Vec::new(),
            since: 0,
        }
    }

    #[test]
    fn names_carry_the_round_that_gives_them() {
        let rounds = [round(3, &["call"])];
        assert_eq!(resolve("call", &rounds), "call-3");
        assert_eq!(resolve("other", &rounds), "other");
        assert_eq!(named_in("call", &[]), "call");
    }

    #[test]
    fn the_rounds_number_is_filled_in_except_in_an_inner_repetition() {
        let step: Step = serde_saphyr::from_str("wait: 'call-{{n}}.settled'").unwrap();
        let filled = numbered(&step, 7);
        assert_eq!(filled, Step::Wait(WaitStep::Fact("call-7.settled".into())));
        let inner: Step =
            serde_saphyr::from_str("repeat: {times: 2, do: [{open: 'b{{n}}'}]}").unwrap();
        assert_eq!(numbered(&inner, 7), inner);
    }
}
