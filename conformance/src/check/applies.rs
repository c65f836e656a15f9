//! Which scenarios apply to which subject: by what the adapter declares, and by what a way of talking to a subject can carry.

use std::collections::HashSet;

use fake_pi::act::{Act, Child, Wait, WaitFor};
use serde_json::Value;

use crate::adapter::{Adapter, ChildMode, Interpose, Transport};
use crate::check::extract;
use crate::check::paths::{Path, Root};
use crate::scenario::{ChildBinary, Scenario, Spawn, Step, WaitStep};
use crate::stub_provider;

/// Why a scenario does not apply to an adapter, if it does not.
pub fn inapplicable(scenario: &Scenario, adapter: &Adapter) -> Option<String> {
    let name = &adapter.adapter;
    if let Some(need) = scenario.needs.iter().find(|need| !declares(adapter, need)) {
        return Some(format!("the adapter `{name}` does not declare `{need}`"));
    }
    let systems = &scenario.systems;
    if !systems.is_empty()
        && !systems
            .iter()
            .any(|system| adapter.systems.contains(system))
    {
        return Some(format!(
            "it belongs to the contract of {}, which `{name}` does not speak",
            systems.join(", ")
        ));
    }
    let setting = scenario
        .setup
        .settings
        .keys()
        .find(|setting| !adapter.settings.contains_key(*setting));
    if let Some(setting) = setting {
        return Some(format!("the adapter `{name}` cannot set `{setting}`"));
    }
    let asked = asked(scenario);
    let missing = asked.iter().find(|(demand, _)| !carries(adapter, *demand));
    missing.map(|(_, what)| {
        format!(
            "{what}, which the transport `{}` of `{name}` cannot carry",
            adapter.transport.word()
        )
    })
}

/// Why a check does not apply to the way in which a subject is talked to, if it does not: it looks at what is not there, or is not the
/// subject's.
pub fn out_of_sight(
    path: &Path,
    expect: &Value,
    adapter: &Adapter,
    scenario: &Scenario,
) -> Option<String> {
    let parents = ["exit-code", "exit-signal", "stderr"];
    if adapter.transport == Transport::PiExtension
        && matches!(path.root, Root::Subject(_))
        && parents.contains(&path.look.as_str())
    {
        return Some(format!(
            "`{}` is the parent Pi's own, not its extension's",
            path.look
        ));
    }
    let no_own_process = adapter.transport == Transport::Command && !adapter.uses.serves;
    if no_own_process && matches!(path.root, Root::Subject(_)) {
        return Some(
            "each call is a process of its own; there is no subject beside them".to_owned(),
        );
    }
    if adapter.child_mode != ChildMode::InProcess {
        return None;
    }
    let of_child = |text: &str| {
        let owner = text.split(['.', '#']).next().unwrap_or_default();
        scenario.children.contains_key(owner)
    };
    let named = ["after", "before", "same-as", "differs-from"]
        .iter()
        .filter_map(|key| expect.get(key)?.as_str())
        .any(of_child);
    let looks = matches!(path.root, Root::Child(..))
        || matches!(&path.root, Root::Whole(word) if word == "launches" || word == "pids-differ")
        || path.look == "launches"
        || path.look.starts_with("child.");
    (looks || named).then(|| "the child is a session inside the parent, and no process".to_owned())
}

/// What a scenario asks of the way in which a subject is talked to and in which its children run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// A raw request of the protocol.
    RawRequest,
    /// A call that is aborted as it is made.
    AbortedCall,
    /// A call while another one runs.
    ParallelCalls,
    /// A list of tools.
    Tools,
    /// More than one subject in one folder.
    SecondSubject,
    /// Arguments, signals or limits of the subject's own process.
    OwnStart,
    /// Something else than a program where the child's should be.
    NoChild,
    /// Children that are processes.
    Processes,
    /// A child that takes commands.
    Commands,
    /// Records on the child's standard output.
    Records,
    /// Facts of the parent's run.
    ParentFacts,
    /// One process that is the subject for the whole scenario.
    OwnProcess,
}

/// What a way of talking can carry.
fn carries(adapter: &Adapter, demand: Demand) -> bool {
    let transport = adapter.transport;
    match demand {
        Demand::RawRequest => transport == Transport::Mcp,
        Demand::Tools => transport != Transport::Command,
        // A parent's model makes one call at a time.
        Demand::ParallelCalls => transport != Transport::PiExtension,
        Demand::AbortedCall | Demand::SecondSubject | Demand::OwnStart => {
            transport == Transport::Mcp
        }
        Demand::ParentFacts => transport != Transport::Command,
        Demand::OwnProcess => transport != Transport::Command || adapter.uses.serves,
        Demand::NoChild => {
            transport != Transport::PiExtension || adapter.parent.interpose == Interpose::Path
        }
        Demand::Processes => adapter.child_mode != ChildMode::InProcess,
        Demand::Commands => adapter.child_mode == ChildMode::Rpc,
        Demand::Records => matches!(adapter.child_mode, ChildMode::Rpc | ChildMode::Json),
    }
}

/// Everything that a scenario asks for, each with what asks for it.
fn asked(scenario: &Scenario) -> Vec<(Demand, &'static str)> {
    let mut asked = Asked::default();
    let setup = &scenario.setup;
    if !(setup.args.is_empty() && setup.blocked.is_empty() && setup.ignored.is_empty())
        || setup.descriptors.is_some()
    {
        asked.add(
            Demand::OwnStart,
            "it starts the subject in a way of its own",
        );
    }
    if setup.child != ChildBinary::FakePi {
        asked.add(
            Demand::NoChild,
            "it has no child program where one should be",
        );
    }
    asked.steps(&scenario.steps);
    for child in scenario.children.values() {
        match child {
            Child::Acts(acts) => asked.acts(acts),
            Child::Full(full) => {
                asked.acts(&full.acts);
                full.on.values().for_each(|acts| asked.acts(acts));
            }
        }
        if stub_provider::child::replies("", child).is_none() {
            asked.add(
                Demand::Processes,
                "its child is more than what a model says",
            );
        }
    }
    let paths = scenario.checks.iter().flat_map(|check| check.expect.keys());
    if paths
        .into_iter()
        .any(|path| path.starts_with("tools.") || path == "tools")
    {
        asked.add(Demand::Tools, "it looks at the list of tools");
    }
    asked.demands
}

/// Demands while they are gathered.
#[derive(Default)]
struct Asked {
    demands: Vec<(Demand, &'static str)>,
    /// Calls that run at this point, by name.
    open: HashSet<String>,
}

impl Asked {
    fn add(&mut self, demand: Demand, what: &'static str) {
        self.demands.push((demand, what));
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Spawn(spawn) => {
                    self.call(spawn);
                    self.open.insert(name_of(spawn));
                }
                Step::Call(spawn) => self.call(spawn),
                Step::Wait(wait) => {
                    let facts: &[String] = match wait {
                        WaitStep::Fact(fact) => std::slice::from_ref(fact),
                        WaitStep::All(facts) => facts,
                    };
                    for fact in facts {
                        if let Some(call) = fact.strip_suffix(".settled") {
                            self.open.remove(call);
                        }
                    }
                }
                Step::ListTools(_) => self.add(Demand::Tools, "it lists the tools"),
                Step::Subject(_) => self.add(Demand::SecondSubject, "it has a second subject"),
                Step::Request(_) => self.add(Demand::RawRequest, "it makes a raw request"),
                Step::Parent(_) => self.add(Demand::ParentFacts, "it tells of the parent's run"),
                Step::Repeat(repeat) => {
                    self.steps(&repeat.steps);
                    // What a round leaves open is open when the next one begins.
                    if repeat.times > 1 && !self.open.is_empty() {
                        self.add(Demand::ParallelCalls, PARALLEL);
                    }
                }
                Step::Signal(_) => self.add(Demand::OwnProcess, "it signals the subject"),
                Step::Sample(_) => self.add(Demand::OwnProcess, "it measures the subject"),
                Step::Abort(_)
                | Step::Open(_)
                | Step::Shutdown(_)
                | Step::Write(_)
                | Step::Pause(_)
                | Step::Watch(_) => {}
            }
        }
    }

    fn call(&mut self, spawn: &Spawn) {
        if spawn.aborted {
            self.add(Demand::AbortedCall, "it aborts a call as it is made");
        }
        if spawn.on.is_some() {
            self.add(Demand::SecondSubject, "it has a second subject");
        }
        if !self.open.is_empty() {
            self.add(Demand::ParallelCalls, PARALLEL);
        }
    }

    fn acts(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Acknowledge(_)
                | Act::Ask(_)
                | Act::StopReading(_)
                | Act::ResumeReading(_)
                | Act::Wait(Wait::Until(WaitFor::Command(_))) => {
                    self.add(Demand::Commands, "its child talks with whoever started it");
                }
                Act::Record(_)
                | Act::Raw(_)
                | Act::Big(_)
                | Act::Endless(_)
                | Act::Flood(_)
                | Act::Firehose(_) => self.add(Demand::Records, "its child writes records"),
                Act::Written(written) => {
                    self.add(Demand::Records, "its child writes records");
                    self.acts(&written.acts);
                }
                Act::Loop(repeated) => self.acts(&repeated.acts),
                _ => {}
            }
        }
    }
}

const PARALLEL: &str = "it makes a call while another runs";

fn name_of(spawn: &Spawn) -> String {
    spawn.name.clone().unwrap_or_else(|| "call".to_owned())
}

/// Capability, figure, setting, operation, observation or further fact; a word such as `observation.` before it says which.
pub fn declares(adapter: &Adapter, need: &str) -> bool {
    let figure = |name| adapter.figures.claims(name);
    match need.split_once('.') {
        Some(("capability", name)) => return adapter.capabilities.iter().any(|its| its == name),
        Some(("figure", name)) => return figure(name) == Some(true),
        Some(("setting", name)) => return adapter.settings.contains_key(name),
        Some(("operation", name)) => return adapter.operations.contains_key(name),
        Some(("observation", name)) => return extract::declared(adapter, name),
        Some(("policy", name)) => return adapter.policy.contains_key(name),
        _ => {}
    }
    adapter.capabilities.iter().any(|its| its == need)
        || figure(need) == Some(true)
        || adapter.settings.contains_key(need)
        || adapter.operations.contains_key(need)
        || extract::declared(adapter, need)
        || adapter
            .facts
            .contains_key(need.strip_prefix("facts.").unwrap_or(need))
}
