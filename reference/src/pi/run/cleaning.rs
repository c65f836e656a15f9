//! What is left after a run's end: asked to go, then forced, each step within its bound.

use std::time::Duration;

use super::Effect;
use crate::pi::outcome::{Cleanup, Limits};

/// How often the tree is looked at while it is being ended.
const LOOK_EVERY: Duration = Duration::from_millis(15);

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// There is no cause yet.
    #[default]
    NotYet,
    /// The child, or what it left, may go by itself until then.
    Leaving(Duration),
    /// SIGTERM was sent; SIGKILL follows then.
    Asked(Duration),
    /// SIGKILL was sent; what is left then is reported.
    Forced(Duration),
    /// Nothing is alive; the pipes get until then to end.
    Draining(Duration),
    /// Settled.
    Over,
}

/// The cleaning of one run.
#[derive(Debug, Default)]
pub struct Cleaning {
    stage: Stage,
    /// When the child was reaped.
    gone_at: Option<Duration>,
    /// What the last look found beside the child; `None` before the first.
    alive: Option<usize>,
    next_look: Duration,
    /// A look was asked for and has not been answered.
    looking: bool,
    term: bool,
    kill: bool,
    strays: usize,
    incomplete: bool,
}

impl Cleaning {
    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// The facts so far.
    pub fn facts(&self) -> Cleanup {
        Cleanup {
            term: self.term,
            kill: self.kill,
            drained: false,
            strays: self.strays,
            incomplete: self.incomplete,
        }
    }

    /// The child was reaped.
    pub fn child_gone(&mut self, now: Duration) {
        self.gone_at.get_or_insert(now);
        // What was found before it went may have been on its way out with it.
        self.alive = None;
        self.looking = false;
        self.next_look = now;
    }

    /// What a look found.
    pub fn found(&mut self, alive: usize, child_gone: bool) {
        self.looking = false;
        self.alive = Some(alive);
        // Only what outlived its child counts, and only once it had the time to go by itself.
        if child_gone && matches!(self.stage, Stage::Asked(_) | Stage::Forced(_)) {
            self.strays = self.strays.max(alive);
        }
    }

    /// When there is something to do next.
    pub fn wakes(&self) -> Option<Duration> {
        match self.stage {
            Stage::NotYet | Stage::Over => None,
            Stage::Leaving(until) | Stage::Asked(until) | Stage::Forced(until) => {
                Some(until.min(self.next_look))
            }
            Stage::Draining(until) => Some(until),
        }
    }

    /// Goes on as far as it can.
    pub fn step(
        &mut self,
        now: Duration,
        limits: &Limits,
        settled: bool,
        child_gone: bool,
        pipes_ended: bool,
        out: &mut Vec<Effect>,
    ) {
        if self.stage == Stage::NotYet {
            out.push(Effect::CloseStdin);
            if settled {
                self.stage = Stage::Leaving(now + limits.post_answer_drain);
            } else if child_gone {
                self.stage = Stage::Leaving(now);
            } else {
                self.ask(now, limits, out);
            }
            self.next_look = now;
        }
        let linger_over =
            |gone_at: Option<Duration>| gone_at.is_some_and(|at| now >= at + limits.linger);
        match self.stage {
            Stage::Leaving(until) => {
                let nothing_left = child_gone && self.alive == Some(0);
                let left_behind = child_gone
                    && self.alive.is_some_and(|alive| alive > 0)
                    && linger_over(self.gone_at);
                if nothing_left {
                    self.drain(now, limits);
                } else if left_behind || (!child_gone && now >= until) {
                    self.strays = if child_gone {
                        self.alive.unwrap_or(0)
                    } else {
                        0
                    };
                    self.ask(now, limits, out);
                }
            }
            Stage::Asked(until) => {
                if child_gone && self.alive == Some(0) {
                    self.drain(now, limits);
                } else if now >= until {
                    self.kill = true;
                    out.push(Effect::Kill);
                    self.stage = Stage::Forced(now + limits.kill_grace);
                    self.alive = None;
                    self.next_look = now;
                }
            }
            Stage::Forced(until) => {
                if child_gone && self.alive == Some(0) {
                    self.drain(now, limits);
                } else if now >= until {
                    self.incomplete = true;
                    self.stage = Stage::Draining(now);
                } else if self.alive.is_some_and(|alive| alive > 0) && now >= self.next_look {
                    // What forked while it was being ended is ended too.
                    out.push(Effect::Kill);
                }
            }
            Stage::NotYet | Stage::Draining(_) | Stage::Over => {}
        }
        if let Stage::Draining(until) = self.stage {
            if pipes_ended || now >= until {
                // Somebody who cannot be found holds a pipe: that is told, not waited for.
                self.incomplete |= !pipes_ended;
                self.stage = Stage::Over;
                out.push(Effect::Settle);
            }
        } else if !self.looking && now >= self.next_look {
            self.looking = true;
            self.next_look = now + LOOK_EVERY;
            out.push(Effect::Look);
        }
    }

    fn ask(&mut self, now: Duration, limits: &Limits, out: &mut Vec<Effect>) {
        self.term = true;
        out.push(Effect::Term);
        self.stage = Stage::Asked(now + limits.term_grace);
        self.alive = None;
        self.next_look = now + LOOK_EVERY;
    }

    fn drain(&mut self, now: Duration, limits: &Limits) {
        self.stage = Stage::Draining(now + limits.post_exit_drain);
    }
}
