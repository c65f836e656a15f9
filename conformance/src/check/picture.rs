//! A scenario as a picture: lanes with bars, stretches and marks in time. Only what is drawn, not how.
//!
//! The runner and the claims have a lane each, then comes one for each process: a subject, below it its children in the
//! order in which they started, each with its descendants. Times are nanoseconds since the first thing that anyone saw.

mod lanes;
mod marks;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::world::World;
use crate::evidence::{Evidence, What};

/// Most lanes of a picture.
pub const LANES: usize = 32;
/// Most marks, and most stretches, of a lane; the middle is left out when there are more.
pub const MARKS: usize = 60;

/// The picture of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// Its length: from the first thing seen to the last, nanoseconds.
    pub end_ns: u64,
    /// From top to bottom.
    pub lanes: Vec<Lane>,
    /// When the machine stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    /// How many lanes, marks and calls there were beyond those that are drawn.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

/// A line of the picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// Whose it is.
    pub of: LaneOf,
    /// Its name: a subject's, a child's script, a descendant's, or a program's.
    pub name: String,
    /// Process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// How far below the subject: 0 for a subject, 1 for its child, and so on.
    #[serde(default)]
    pub depth: u32,
    /// The process's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar: Option<Bar>,
    /// Calls, each from sent to settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Stretch>,
    /// What happened at one time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

/// Whose lane it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LaneOf {
    /// What the runner did.
    Runner,
    /// What the subject said.
    Claims,
    /// A subject's process.
    Subject,
    /// A child that the subject started.
    Child,
    /// A process below a child.
    Descendant,
    /// A process that only the kernel saw.
    Other,
}

/// A process from when it was first seen until it was gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bar {
    /// First seen.
    pub from_ns: u64,
    /// Gone, or last seen.
    pub to_ns: u64,
    /// It was alive at the end, when nothing may be.
    #[serde(default)]
    pub survives: bool,
    /// How it ended, such as `exit 0` or `KILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// Something that lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Its begin.
    pub from_ns: u64,
    /// Its end; absent if it never came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
    /// Its name.
    pub label: String,
    /// In full.
    pub text: String,
}

/// A stall of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// Its begin.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

/// Something that happens at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// When.
    pub at_ns: u64,
    /// Of which sort.
    pub kind: MarkKind,
    /// In a word or two.
    pub label: String,
    /// In full.
    pub text: String,
    /// Index of the lane that it came from, such as a signal's sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
}

/// Sorts of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// A step of the scenario, or an act of a script.
    Step,
    /// A record, a message or a task.
    Record,
    /// A signal, or the abort of a call.
    Signal,
    /// A pipe or a stream was closed.
    Pipe,
    /// A process ended.
    End,
    /// Something that should not be: a wait that was given up, a stray line, a write that failed.
    Wrong,
}

impl Picture {
    /// Draws evidence.
    pub fn of(evidence: &Evidence) -> Self {
        let world = World::of(evidence);
        let journals = evidence.journals.iter().flatten().map(|entry| entry.t_ns);
        let times = || evidence.events.iter().map(|event| event.t_ns);
        let start = times().chain(journals.clone()).min().unwrap_or(0);
        let end = times().chain(journals).max().unwrap_or(0);
        let mut picture = Self {
            end_ns: end - start,
            ..Self::default()
        };
        lanes::put(&mut picture, &world, start);
        marks::put(&mut picture, &world, start);
        for event in &evidence.events {
            if let What::Stall { ns } = event.what {
                let to_ns = event.t_ns - start;
                picture.stalls.push(Stall {
                    from_ns: to_ns.saturating_sub(ns),
                    to_ns,
                });
            }
        }
        picture.bound();
        picture
    }

    /// Keeps what is drawn within bounds.
    fn bound(&mut self) {
        self.left_out += self.lanes.len().saturating_sub(LANES);
        self.lanes.truncate(LANES);
        let lanes = self.lanes.len();
        for lane in &mut self.lanes {
            lane.marks.sort_by_key(|mark| mark.at_ns);
            self.left_out += cut(&mut lane.marks) + cut(&mut lane.calls);
            for mark in &mut lane.marks {
                mark.from = mark.from.filter(|from| *from < lanes);
            }
        }
        self.left_out += cut(&mut self.stalls);
    }
}

/// Takes the middle out of what is too long, and gives how much that was.
fn cut<T>(items: &mut Vec<T>) -> usize {
    let more = items.len().saturating_sub(MARKS);
    if more > 0 {
        items.drain(MARKS / 2..MARKS / 2 + more);
    }
    more
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
