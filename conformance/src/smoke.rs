//! Whether an adapter is right, apart from the delegator: a few tiny calls, and for each thing that the adapter says a look
//! at whether the evidence bears it out. Faults are told in the adapter's own terms.
//!
//! The calls are a scenario like any other, so every transport is looked at in the same way.

mod arguments;
mod observations;
mod probes;

use std::time::Duration;

use fake_pi::act::Span;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

use crate::adapter::{Adapter, Transport};
use crate::check::world::World;
use crate::evidence::{Evidence, What};
use crate::runner::{self, RunContext};
use crate::scenario::{Planned, Scenario, Step};
use crate::yaml::{self, YamlError};

pub use arguments::schema_of;
pub use observations::{LIKELY, Likely, by_mark, likely, written};

/// What the child that answers says.
pub const ANSWER: &str = "the smoke child has answered";
/// The call that must be a success.
const SUCCESS: &str = "success";
/// The calls that must be none: the child's provider fails, the child dies.
const FAILURES: [&str; 2] = ["failure", "death"];
/// How long each fact is waited for when nobody says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The probe's name, which stays.
    pub probe: &'static str,
    /// What it looks at.
    pub about: &'static str,
    /// What it found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How a probe ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", content = "says", rename_all = "kebab-case")]
pub enum Outcome {
    /// It is right; what was seen.
    Right(String),
    /// It is wrong; each fault by itself.
    Wrong(Vec<Fault>),
    /// It could not be looked at; why.
    Open(String),
}

/// One fault of an adapter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// What is wrong, in the adapter's terms.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<Vec<Fault>> for Outcome {
    fn from(faults: Vec<Fault>) -> Self {
        Self::Wrong(faults)
    }
}

/// One probe.
struct Probe {
    name: &'static str,
    about: &'static str,
    look: fn(&Seen<'_>) -> Outcome,
}

/// All probes, in the order in which one's fault explains the next one's.
const PROBES: &[Probe] = &[
    Probe {
        name: "starts",
        about: "the command starts, and answers the handshake",
        look: probes::starts,
    },
    Probe {
        name: "tools",
        about: "the tools of all operations exist",
        look: probes::tools,
    },
    Probe {
        name: "arguments",
        about: "the arguments fit the tools' input schemas",
        look: arguments::fit,
    },
    Probe {
        name: "child",
        about: "the subject starts fake-pi in place of Pi",
        look: probes::child,
    },
    Probe {
        name: "task",
        about: "the task arrives in the child, whole",
        look: probes::task,
    },
    Probe {
        name: "child-mode",
        about: "the child runs in the mode that the adapter names",
        look: probes::child_mode,
    },
    Probe {
        name: "answer",
        about: "the observation `answer` finds what the child said",
        look: observations::answer,
    },
    Probe {
        name: "ok",
        about: "the observation `ok` tells success from failure",
        look: observations::ok,
    },
    Probe {
        name: "observations",
        about: "every other observation finds something",
        look: observations::others,
    },
    Probe {
        name: "end",
        about: "the subject ends when its input does",
        look: probes::end,
    },
    Probe {
        name: "output",
        about: "nothing but messages comes on standard output",
        look: probes::output,
    },
];

/// What the probes look at.
struct Seen<'a> {
    adapter: &'a Adapter,
    evidence: &'a Evidence,
    world: World<'a>,
    /// The tools that were listed.
    tools: Option<&'a Vec<Value>>,
}

impl<'a> Seen<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let world = World::of(evidence);
        let tools = world.first(|what| match what {
            What::Tools { tools, .. } => tools.as_array(),
            _ => None,
        });
        Self {
            adapter: &evidence.header.adapter,
            evidence,
            tools: tools.map(|(_, tools)| tools),
            world,
        }
    }

    /// The result of a call, when it is one.
    fn result(&self, call: &str) -> Option<&'a Value> {
        let (_, result, _) = self.world.calls.get(call)?.responses.first()?;
        *result
    }

    /// Results of the calls that failed on purpose.
    fn failures(&self) -> impl Iterator<Item = &'a Value> {
        FAILURES.iter().filter_map(|call| self.result(call))
    }

    /// The adapter's word for its children's mode.
    fn child_mode(&self) -> String {
        self.adapter.child_mode.word().to_owned()
    }

    /// Its children are processes, and no sessions inside the parent.
    fn adapter_has_processes(&self) -> bool {
        self.child_mode() != "in-process"
    }

    /// In words, what a call came to.
    fn told(&self, call: &str) -> String {
        let Some(call) = self.world.calls.get(call) else {
            return "it was not made".to_owned();
        };
        match call.responses.first() {
            None => "it never settled".to_owned(),
            Some((_, Some(result), _)) => format!(
                "its result: {}",
                crate::check::words::short(&crate::check::extract::text(result))
            ),
            Some((_, None, Some(error))) => format!(
                "its error: {}",
                crate::check::words::short(&error.to_string())
            ),
            Some((_, None, None)) => "an answer with nothing in it".to_owned(),
        }
    }

    /// The last words on standard error, to be put behind a sentence.
    fn last_words(&self) -> String {
        let stderr = self.evidence.stderr.values().next();
        let last = stderr.and_then(|text| text.lines().rfind(|line| !line.trim().is_empty()));
        last.map_or(String::new(), |line| {
            format!(
                "; the last of its standard error: {}",
                crate::check::words::short(line.trim())
            )
        })
    }
}

/// Makes the calls on a subject; each fact is waited for no longer than `patience`.
///
/// # Errors
/// When the built-in scenario is wrong, which a test of ours would have found.
pub fn run(
    adapter: &Adapter,
    context: &RunContext,
    patience: Duration,
) -> Result<Evidence, Box<YamlError>> {
    let mut adapter = adapter.clone();
    adapter.figures.patience = Some(Span(patience));
    let mut scenario: Scenario = yaml::parse("smoke.yaml", include_str!("smoke/scenario.yaml"))?;
    if !lists_tools(&adapter) {
        let lists = |step: &Step| matches!(step, Step::ListTools(_));
        scenario.steps.retain(|step| !lists(step));
    }
    let planned = Planned {
        name: "smoke".to_owned(),
        area: "smoke".to_owned(),
        file: "smoke.yaml".to_owned(),
        axes: IndexMap::new(),
        scenario,
    };
    Ok(runner::run(&planned, &adapter, context))
}

/// A subject of this transport can say which tools it has.
fn lists_tools(adapter: &Adapter) -> bool {
    adapter.transport != Transport::Command
}

/// What the evidence of [`run`] says about the adapter, one finding a probe.
pub fn look(evidence: &Evidence) -> Vec<Finding> {
    let seen = Seen::of(evidence);
    let finding = |probe: &Probe| Finding {
        probe: probe.name,
        about: probe.about,
        outcome: (probe.look)(&seen),
    };
    PROBES.iter().map(finding).collect()
}

/// The tools that were listed, for whoever looks for the right one.
pub fn tools(evidence: &Evidence) -> Option<&Vec<Value>> {
    Seen::of(evidence).tools
}

/// Results of the success and of the failures.
pub fn results(evidence: &Evidence) -> (Option<&Value>, Vec<&Value>) {
    let seen = Seen::of(evidence);
    (seen.result(SUCCESS), seen.failures().collect())
}

/// Which of Pi's modes the first child was started in.
pub fn mode(evidence: &Evidence) -> Option<&'static str> {
    probes::mode_seen(&Seen::of(evidence))
}
