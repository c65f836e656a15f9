//! A whole run, gathered: for reports that are written at its end.

use indexmap::IndexMap;

use crate::report::events::{MutantJudged, MutantSummary, Totals};
use crate::report::{Event, Finished, Summary};
use crate::verdict::Verdict;

/// What a run told.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// Version of the suite.
    pub suite: String,
    /// The adapter's name.
    pub subject: String,
    /// What the subject is.
    pub about: String,
    /// Every judged scenario, in the order in which they ended.
    pub finished: Vec<Finished>,
    /// Entries of the baseline that matched nothing, each with what is wrong with it.
    pub unmatched: Vec<(String, String)>,
    /// Mutants that are through.
    pub mutants: Vec<MutantJudged>,
}

/// The end of a run.
pub enum End<'a> {
    /// Of scenarios.
    Run(&'a Summary),
    /// Of a kill matrix.
    Matrix(&'a MutantSummary),
}

impl Gathered {
    /// Takes an event; gives the end when it is the last.
    pub fn take<'e>(&mut self, event: &'e Event) -> Option<End<'e>> {
        match event {
            Event::Run {
                suite,
                subject,
                about,
                ..
            } => {
                self.suite.clone_from(suite);
                self.subject.clone_from(subject);
                self.about.clone_from(about);
            }
            Event::Started { .. } | Event::Rounds(_) => {}
            Event::Finished(finished) => self.finished.push((**finished).clone()),
            Event::Unmatched { entry, problem } => {
                self.unmatched.push((entry.clone(), problem.clone()));
            }
            Event::Mutant(mutant) => self.mutants.push((**mutant).clone()),
            Event::Summary(Totals::Run(summary)) => return Some(End::Run(summary)),
            Event::Summary(Totals::Mutants(summary)) => return Some(End::Matrix(summary)),
        }
        None
    }

    /// How many of each verdict, by area in alphabetical order.
    pub fn areas(&self) -> IndexMap<&str, Summary> {
        let mut areas: IndexMap<&str, Summary> = IndexMap::new();
        for finished in &self.finished {
            let summary = areas.entry(finished.area.as_str()).or_default();
            summary.selected += 1;
            summary.count(finished.verdict);
            summary.flaky += usize::from(finished.flaky);
        }
        areas.sort_unstable_keys();
        areas
    }

    /// Scenarios that passed only when they were run again, by name.
    pub fn flaky(&self) -> Vec<&Finished> {
        let mut found: Vec<&Finished> = self.finished.iter().filter(|it| it.flaky).collect();
        found.sort_by(|a, b| (&a.area, &a.scenario).cmp(&(&b.area, &b.scenario)));
        found
    }

    /// Scenarios that are `wanted`, the worst first, those of one verdict in the order of their names. An order that does
    /// not hang on which scenario ended first.
    pub fn worst_first(&self, wanted: impl Fn(Verdict) -> bool) -> Vec<&Finished> {
        let mut found: Vec<&Finished> = self
            .finished
            .iter()
            .filter(|finished| wanted(finished.verdict))
            .collect();
        found.sort_by(|a, b| {
            let key = |f: &Finished| (std::cmp::Reverse(f.verdict), f.area.clone());
            key(a)
                .cmp(&key(b))
                .then_with(|| a.scenario.cmp(&b.scenario))
        });
        found
    }
}
