//! Two runs beside each other: what newly fails, what newly passes, what else has changed.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::events::Totals;
use crate::report::{Event, Finished};
use crate::verdict::{CheckVerdict, Verdict};

/// Number of the format of a comparison.
pub const FORMAT: u32 = 1;

/// Two runs beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// [`FORMAT`]. Within one number fields are only added.
    pub format: u32,
    /// The run before.
    pub old: Side,
    /// The run now.
    pub new: Side,
    /// Scenarios of which something fails that did not before: a violation, a stale entry or a failure of the harness.
    pub newly_failing: Vec<Change>,
    /// Scenarios that pass and did not before.
    pub newly_passing: Vec<Change>,
    /// Scenarios with another verdict, or that only one of the runs has judged.
    pub changed: Vec<Change>,
    /// How many scenarios have the same verdict, and the same in each check.
    pub same: usize,
}

/// One of the runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The subject.
    pub subject: String,
    /// Version of the suite.
    pub suite: String,
    /// How many scenarios were selected.
    pub selected: usize,
    /// How many of them have a verdict.
    pub judged: usize,
}

/// A scenario that is not as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its full name.
    pub scenario: String,
    /// Its area.
    pub area: String,
    /// Its verdict before; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Verdict>,
    /// Its verdict now; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Verdict>,
    /// Checks that are not as they were; of a scenario that only the run now has judged, those that are not a pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckChange>,
    /// One line that runs it again, if the run now has judged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

/// A check that is not as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckChange {
    /// Its id.
    pub id: String,
    /// Its verdict before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Verdict>,
    /// Its verdict now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Verdict>,
    /// What is expected.
    pub expected: String,
    /// What was seen: now, or before if the run now has no such check.
    pub seen: String,
}

/// A verdict that must not come newly.
fn bad(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Fail | Verdict::Stale | Verdict::HarnessError
    )
}

impl Comparison {
    /// Compares the events of two runs. A scenario that a run has judged more than once counts with its worst verdict.
    pub fn of(old: &[Event], new: &[Event]) -> Self {
        let (old, new) = (Run::of(old), Run::of(new));
        let mut comparison = Self {
            format: FORMAT,
            newly_failing: Vec::new(),
            newly_passing: Vec::new(),
            changed: Vec::new(),
            same: 0,
            old: old.side,
            new: new.side,
        };
        let mut names: Vec<_> = old.scenarios.keys().chain(new.scenarios.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            comparison.take(
                old.scenarios.get(name).copied(),
                new.scenarios.get(name).copied(),
            );
        }
        // The worst first, those of one verdict by name.
        comparison
            .newly_failing
            .sort_by_key(|change| std::cmp::Reverse(change.new));
        comparison
    }

    fn take(&mut self, old: Option<&Finished>, new: Option<&Finished>) {
        let Some(any) = new.or(old) else {
            return;
        };
        let (was, is) = (old.map(|f| f.verdict), new.map(|f| f.verdict));
        let checks = checks(old, new);
        let newly_bad = |was: Option<Verdict>, is: Option<Verdict>| {
            is.is_some_and(bad) && !was.is_some_and(bad)
        };
        let list = if newly_bad(was, is)
            || (is.is_some_and(bad) && checks.iter().any(|check| newly_bad(check.old, check.new)))
        {
            &mut self.newly_failing
        } else if is == Some(Verdict::Pass) && was.is_some_and(|was| was != Verdict::Pass) {
            &mut self.newly_passing
        } else if was != is || !checks.is_empty() {
            &mut self.changed
        } else {
            self.same += 1;
            return;
        };
        list.push(Change {
            scenario: any.scenario.clone(),
            area: any.area.clone(),
            old: was,
            new: is,
            checks,
            reproduce: new.map(|finished| finished.reproduce.clone()),
        });
    }
}

/// A run, by scenario.
struct Run<'e> {
    side: Side,
    scenarios: IndexMap<(&'e str, &'e str), &'e Finished>,
}

impl<'e> Run<'e> {
    fn of(events: &'e [Event]) -> Self {
        let mut side = Side::default();
        let mut scenarios: IndexMap<(&str, &str), &Finished> = IndexMap::new();
        for event in events {
            match event {
                Event::Run { suite, subject, .. } => {
                    side.subject.clone_from(subject);
                    side.suite.clone_from(suite);
                }
                Event::Finished(finished) => {
                    let worst = scenarios
                        .entry((&finished.area, &finished.scenario))
                        .or_insert(finished);
                    if finished.verdict > worst.verdict {
                        *worst = finished;
                    }
                }
                Event::Summary(Totals::Run(summary)) => {
                    side.selected = summary.selected;
                    side.judged = summary.judged();
                }
                Event::Started { .. }
                | Event::Unmatched { .. }
                | Event::Rounds(_)
                | Event::Mutant(_)
                | Event::Summary(Totals::Mutants(_)) => {}
            }
        }
        Self { side, scenarios }
    }
}

/// Checks that are not as they were, in the order of the run now.
fn checks(old: Option<&Finished>, new: Option<&Finished>) -> Vec<CheckChange> {
    let Some(new) = new else {
        return Vec::new();
    };
    let change = |id: &str, was: Option<&CheckVerdict>, is: Option<&CheckVerdict>| {
        let told = is.or(was)?;
        Some(CheckChange {
            id: id.to_owned(),
            old: was.map(|check| check.verdict),
            new: is.map(|check| check.verdict),
            expected: told.expected.clone(),
            seen: told.seen.clone(),
        })
    };
    let before = |id: &str| old.and_then(|old| old.checks.iter().find(|check| check.id == id));
    let mut changes: Vec<CheckChange> = new
        .checks
        .iter()
        .filter(|check| match old {
            None => check.verdict != Verdict::Pass,
            Some(_) => before(&check.id).map(|check| check.verdict) != Some(check.verdict),
        })
        .filter_map(|check| change(&check.id, before(&check.id), Some(check)))
        .collect();
    // What the run before had judged and this one has not.
    let gone = old.into_iter().flat_map(|old| &old.checks);
    changes.extend(
        gone.filter(|check| new.checks.iter().all(|other| other.id != check.id))
            .filter_map(|check| change(&check.id, Some(check), None)),
    );
    changes
}
