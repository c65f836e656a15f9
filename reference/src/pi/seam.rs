//! Where a mutant differs from the sound program: between the shell and the pure machine.
//!
//! A mutant is a delegate that is broken on purpose in one way (`conformance/mutants`). It changes what the machine is told
//! or what the shell does of what the machine wants; each change is a few lines. The sound program changes nothing.

use std::time::Duration;

use super::outcome::{Launch, Limits, Outcome};
use super::run::{Effect, Input};

/// A way to differ.
pub trait Twist: Send + Sync {
    /// What one run is given; state of its own if it needs some.
    fn run(&self) -> Box<dyn RunTwist> {
        Box::new(Sound)
    }

    /// How often a call is answered on the wire.
    fn answers(&self) -> usize {
        1
    }
}

/// The twist of one run. Every method leaves things as they are unless it is overridden.
pub trait RunTwist: Send {
    /// Whether nothing at all is changed, so that nothing needs to be asked for each record.
    fn is_sound(&self) -> bool {
        false
    }

    /// What is about to be started.
    fn launch(&mut self, _launch: &mut Launch) {}

    /// Bytes of standard output, before they are cut into records.
    fn bytes(&mut self, _bytes: &mut Vec<u8>) {}

    /// Whether [`RunTwist::bytes`] does anything; the sound program does not copy what it reads.
    fn rewrites(&self) -> bool {
        false
    }

    /// What the machine is told: this input becomes these.
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![input]
    }

    /// What the shell does: this effect becomes these.
    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        vec![effect]
    }

    /// Limits of the machine.
    fn limits(&mut self, _limits: &mut Limits) {}

    /// How stderr is kept: at most so many bytes.
    fn stderr_cap(&self, cap: usize) -> usize {
        cap
    }

    /// Whom a signal reaches.
    fn reach(&self) -> Reach {
        Reach::Tree
    }

    /// How far the machine's clock lags behind; `heard` is when the child was last heard of.
    fn lag(&self, _heard: Duration) -> Duration {
        Duration::ZERO
    }

    /// Whether the guardian is told of the run.
    fn guarded(&self) -> bool {
        true
    }

    /// What comes out.
    fn outcome(&mut self, _outcome: &mut Outcome) {}
}

/// Whom a signal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The group and everything that descends from the child.
    Tree,
    /// The group.
    Group,
    /// The child alone.
    Child,
}

/// No difference.
#[derive(Debug, Clone, Copy)]
pub struct Sound;

impl Twist for Sound {}
impl RunTwist for Sound {
    fn is_sound(&self) -> bool {
        true
    }
}
