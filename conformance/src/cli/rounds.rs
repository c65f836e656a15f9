//! Rounds: the one way in which scenarios run more than once.
//!
//! A round runs the whole selection; `--repeat` says how many there are, `--stress` for how long new ones begin. Within a round
//! some scenarios have further attempts, each by itself when the others are through: one when the machine had stalled, and up to
//! `--retries` when it failed. Every attempt of a scenario is judged, and all are told together with the last.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use sha2::{Digest as _, Sha256};

use crate::adapter::Adapter;
use crate::bundle;
use crate::check::handshake;
use crate::cli::session::{Past, Session, duration_ms};
use crate::evidence::{Evidence, What};
use crate::report::{Attempt, Event, Rounds, Tally};
use crate::runner::{self, INTERRUPTED, Keep, Progress, RunContext};
use crate::scenario::Planned;
use crate::verdict::{CheckVerdict, ScenarioVerdict, Verdict};

/// How often what runs.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// So many rounds, unless `stress` says for how long.
    pub repeat: u32,
    /// New scenarios begin until this is over; the first round always runs whole.
    pub stress: Option<Duration>,
    /// No further scenario begins when one was not as expected.
    pub until_fail: bool,
    /// Makes the order of each round; without one it is the written order.
    pub seed: Option<u64>,
    /// Further attempts of a scenario that failed.
    pub retries: u32,
}

impl Plan {
    /// Whether more than one round may run.
    pub fn is_several(&self) -> bool {
        self.repeat > 1 || self.stress.is_some()
    }

    /// Scenarios that are planned when the run begins; with `stress` each further round adds its own.
    pub fn selected(&self, scenarios: usize) -> usize {
        let rounds = if self.stress.is_some() {
            1
        } else {
            self.repeat
        };
        scenarios.saturating_mul(usize::try_from(rounds).unwrap_or(usize::MAX))
    }

    /// The scenarios of a round in its order.
    fn order(&self, chosen: &[Planned], round: u32) -> Vec<Planned> {
        let mut ordered = chosen.to_vec();
        if let Some(seed) = self.seed {
            // A digest of seed, round and name: the same order on every machine.
            ordered.sort_by_cached_key(|planned| {
                Sha256::digest(format!("{seed}/{round}/{}", planned.name)).to_vec()
            });
        }
        ordered
    }
}

/// Runs rounds and tells the session.
pub struct Runner<'a, 'c> {
    /// Who is told.
    pub session: &'a mut Session<'c>,
    /// Whom the scenarios run on.
    pub adapter: &'a Adapter,
    /// What all share; its folder of bundles gets one below for each round, when there are several.
    pub context: &'a RunContext,
    /// So many at once.
    pub jobs: usize,
    /// Keep the evidence of everything.
    pub keep: bool,
    /// How often what runs.
    pub plan: Plan,
    /// Scenarios that were not as expected.
    pub wrong: Vec<String>,
    /// Some evidence was kept.
    pub kept: bool,
    starts: Starts,
    tally: IndexMap<String, Tally>,
    began: Instant,
    round: u32,
}

/// Fewest scenarios in which a subject must not answer before the others are left out.
const FEW: usize = 3;

/// Whether the subject ever answers.
enum Starts {
    /// It did.
    Yes,
    /// In so many scenarios it did not.
    Unknown(usize),
}

/// A scenario that is to have a further attempt.
struct Pending {
    planned: Planned,
    evidence: Box<Evidence>,
    verdict: ScenarioVerdict,
    bundle: Option<String>,
    /// Attempts so far.
    attempts: Vec<Attempt>,
    /// Those among them that the machine spoilt.
    stalls: u32,
}

impl Pending {
    fn past(&self) -> Past {
        Past {
            bundle: self.bundle.clone(),
            reruns: self.stalls,
            attempts: if self.attempts.len() > 1 {
                self.attempts.clone()
            } else {
                Vec::new()
            },
        }
    }
}

impl<'a, 'c> Runner<'a, 'c> {
    /// Nothing has run yet.
    pub fn new(
        session: &'a mut Session<'c>,
        adapter: &'a Adapter,
        context: &'a RunContext,
        plan: Plan,
    ) -> Self {
        Self {
            session,
            adapter,
            context,
            jobs: 1,
            keep: false,
            plan,
            wrong: Vec::new(),
            kept: false,
            starts: Starts::Unknown(0),
            tally: IndexMap::new(),
            began: Instant::now(),
            round: 0,
        }
    }

    /// Runs all rounds, and tells what several came to.
    pub fn run(&mut self, chosen: &[Planned]) {
        while !chosen.is_empty() && self.goes_on() {
            self.round += 1;
            if self.plan.stress.is_some() && self.round > 1 {
                self.session.summary.selected += chosen.len();
            }
            self.one_round(chosen);
        }
        if self.context.enough.raised() && !self.context.interrupt.raised() {
            // What did not begin was not to begin.
            self.session.summary.selected = self.session.summary.judged();
        }
        if self.plan.is_several() {
            let scenarios = std::mem::take(&mut self.tally).into_values().collect();
            let rounds = self.round;
            self.session
                .tell(&Event::Rounds(Box::new(Rounds { rounds, scenarios })));
        }
    }

    fn goes_on(&self) -> bool {
        if self.context.interrupt.raised() || self.context.enough.raised() {
            return false;
        }
        match self.plan.stress {
            Some(_) => self.round == 0 || !self.time_is_over(),
            None => self.round < self.plan.repeat,
        }
    }

    fn time_is_over(&self) -> bool {
        self.plan
            .stress
            .is_some_and(|time| self.began.elapsed() >= time)
    }

    fn one_round(&mut self, chosen: &[Planned]) {
        let mut todo = self.plan.order(chosen, self.round);
        let mut pending: HashMap<String, Pending> = HashMap::new();
        let mut again = 0;
        loop {
            let jobs = if again == 0 { self.jobs } else { 1 };
            todo = self.pass(&todo, again, jobs, &mut pending);
            again += 1;
            if todo.is_empty() || self.context.interrupt.raised() {
                break;
            }
        }
        // The run ended between two attempts: a failure that was seen is told all the same.
        for pending in pending.into_values() {
            if pending.verdict.verdict != Verdict::Inconclusive {
                self.told(&pending);
            }
        }
    }

    /// The folder for the evidence of a pass: none takes away what another left.
    fn folder(&self, again: u32) -> Option<PathBuf> {
        let mut folder = self.context.bundles.clone()?;
        if self.plan.is_several() {
            folder.push(format!("round-{}", self.round));
        }
        if again > 0 && self.plan.retries > 0 {
            folder.push(format!("again-{again}"));
        }
        Some(folder)
    }

    /// Runs scenarios once and tells what is settled; gives back those that are to run again.
    fn pass(
        &mut self,
        planned: &[Planned],
        again: u32,
        jobs: usize,
        pending: &mut HashMap<String, Pending>,
    ) -> Vec<Planned> {
        let mut context = self.context.clone();
        context.bundles = self.folder(again);
        let mut repeat = Vec::new();
        if again > 0 {
            // Attempts that are under way when the time is over are seen through.
            context.enough = Default::default();
        }
        let adapter = self.adapter;
        runner::run_all(planned, adapter, &context, jobs, &mut |progress| {
            let (planned, evidence) = match progress {
                Progress::Started(planned) => {
                    let (scenario, area) = (planned.name.clone(), planned.area.clone());
                    self.session.tell(&Event::Started { scenario, area });
                    return Keep::Nothing;
                }
                Progress::Finished(planned, evidence) => (planned, evidence),
            };
            if was_cut_short(&evidence) {
                // The run ended, not this scenario: nothing is said about it.
                return Keep::Nothing;
            }
            let verdict = self.session.judge(&evidence);
            self.note_start(&evidence, &verdict);
            let mut now = Pending {
                planned: planned.clone(),
                evidence,
                verdict,
                bundle: None,
                attempts: Vec::new(),
                stalls: 0,
            };
            if let Some(before) = pending.remove(&planned.name) {
                now.attempts = before.attempts;
                now.stalls = before.stalls;
            }
            let kept = self.keep || self.is_evidence(&now);
            now.bundle = context.bundles.as_ref().filter(|_| kept).map(|bundles| {
                let folder = bundles.join(bundle::folder_name(&planned.name));
                folder.display().to_string()
            });
            self.kept |= kept;
            now.attempts.push(attempt(&now));
            if self.is_again(&mut now) {
                repeat.push(planned.clone());
                pending.insert(planned.name.clone(), now);
            } else {
                self.told(&now);
            }
            if kept { Keep::Bundle } else { Keep::Nothing }
        });
        repeat
    }

    /// The evidence of an attempt is of use: it was not as expected, and not just spoilt by the machine.
    fn is_evidence(&self, now: &Pending) -> bool {
        let verdict = now.verdict.verdict;
        let spoilt = verdict == Verdict::Inconclusive && now.stalls == 0;
        verdict > Verdict::KnownFailure && !spoilt
    }

    /// Whether a further attempt is due; counts it.
    fn is_again(&self, now: &mut Pending) -> bool {
        let failures = (now.attempts.len() as u32).saturating_sub(1) - now.stalls;
        match now.verdict.verdict {
            Verdict::Inconclusive if now.stalls == 0 => {
                now.stalls = 1;
                true
            }
            Verdict::Fail | Verdict::NoEvidence | Verdict::Inconclusive => {
                failures < self.plan.retries
            }
            _ => false,
        }
    }

    /// Tells the session of a settled scenario, and counts.
    fn told(&mut self, now: &Pending) {
        let verdict = now.verdict.verdict;
        let flaky_before = self.session.summary.flaky;
        self.session.finish(&now.evidence, &now.verdict, now.past());
        let flaky = self.session.summary.flaky > flaky_before;
        let tally = self
            .tally
            .entry(now.planned.name.clone())
            .or_insert_with(|| Tally {
                scenario: now.planned.name.clone(),
                area: now.planned.area.clone(),
                verdicts: IndexMap::new(),
                flaky: 0,
            });
        *tally.verdicts.entry(verdict).or_default() += 1;
        tally.flaky += u32::from(flaky);
        let wrong = verdict > Verdict::KnownFailure || flaky && !self.session.flaky_passes;
        if wrong && !self.wrong.contains(&now.planned.name) {
            self.wrong.push(now.planned.name.clone());
        }
        if wrong && self.plan.until_fail || self.round > 1 && self.time_is_over() {
            self.context.enough.raise();
        }
    }

    /// A subject that never answers would cost its patience in every scenario: after a few the run ends.
    fn note_start(&mut self, evidence: &Evidence, verdict: &ScenarioVerdict) {
        let answered =
            |event: &crate::evidence::Event| matches!(event.what, What::Initialized { .. });
        let silent = |check: &CheckVerdict| check.id == handshake::ID;
        match &mut self.starts {
            Starts::Yes => {}
            Starts::Unknown(times) if verdict.checks.iter().any(silent) => {
                *times += 1;
                // What is not told may be due to others that run at the same time.
                if *times == self.jobs.max(FEW) && !self.context.interrupt.raised() {
                    anstream::eprintln!(
                        "pi-conform: the subject answered in none of {times} scenarios, so the others are left out"
                    );
                    self.context.interrupt.raise();
                }
            }
            Starts::Unknown(_) if evidence.events.iter().any(answered) => {
                self.starts = Starts::Yes;
            }
            Starts::Unknown(_) => {}
        }
    }
}

fn attempt(now: &Pending) -> Attempt {
    let wrong = |check: &&CheckVerdict| check.verdict > Verdict::KnownFailure;
    Attempt {
        verdict: now.verdict.verdict,
        duration_ms: duration_ms(&now.evidence),
        checks: now.verdict.checks.iter().filter(wrong).cloned().collect(),
        bundle: now.bundle.clone(),
    }
}

fn was_cut_short(evidence: &Evidence) -> bool {
    evidence.events.iter().any(
        |event| matches!(&event.what, What::HarnessError { message } if message == INTERRUPTED),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(name: &str) -> Planned {
        let text = format!("scenario: {name}\nwhy: w\nsteps: []\nchecks: []\n");
        Planned {
            name: name.to_owned(),
            area: String::new(),
            file: String::new(),
            axes: IndexMap::new(),
            scenario: serde_saphyr::from_str(&text).unwrap(),
        }
    }

    #[test]
    fn a_seed_makes_another_order_each_round_and_the_same_each_time() {
        let all: Vec<Planned> = ["xa", "xb", "xc", "xd", "xe", "xf"].map(planned).into();
        let names = |seed, round| {
            let plan = Plan {
                seed,
                ..Plan::default()
            };
            let ordered = plan.order(&all, round);
            ordered
                .into_iter()
                .map(|planned| planned.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(None, 1), ["xa", "xb", "xc", "xd", "xe", "xf"]);
        assert_eq!(names(Some(7), 1), names(Some(7), 1));
        assert_ne!(names(Some(7), 1), names(Some(7), 2));
        assert_ne!(names(Some(7), 1), names(Some(8), 1));
        let mut sorted = names(Some(7), 3);
        sorted.sort();
        assert_eq!(sorted, names(None, 1));
    }

    #[test]
    fn stress_plans_one_round_at_first() {
        let plan = |repeat, stress| Plan {
            repeat,
            stress,
            ..Plan::default()
        };
        assert_eq!(plan(3, None).selected(5), 15);
        assert_eq!(plan(1, Some(Duration::from_secs(9))).selected(5), 5);
        assert!(!plan(1, None).is_several());
    }
}
