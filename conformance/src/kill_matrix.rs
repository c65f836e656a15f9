//! The kill matrix: broken delegators against checks, both ways. Each mutant is to be caught by a check that shows a requirement which it
//! breaks; the sound reference is to be accused by none.

use std::collections::BTreeSet;

use crate::baseline::plain;
use crate::coverage::proves;
use crate::report::events::{Killer, MutantJudged};
use crate::scenario::Planned;
use crate::verdict::{ScenarioVerdict, Verdict};

/// Scenarios that every mutant is run on besides those that show what it breaks: they show whether it still works at all.
pub const ALWAYS: [&str; 2] = ["known-profile-runs", "clean-exit"];

/// Indices of the scenarios to run on a mutant that breaks these requirements.
pub fn scenarios_for(breaks: &[String], planned: &[Planned], full: bool) -> Vec<usize> {
    let concerns = |planned: &Planned| {
        full || ALWAYS.contains(&plain(&planned.name))
            || proves(&planned.scenario)
                .into_iter()
                .any(|id| breaks.iter().any(|its| its == id))
    };
    (0..planned.len())
        .filter(|&index| concerns(&planned[index]))
        .collect()
}

/// Checks that fail on the sound reference, by scenario and check: they say nothing about a mutant.
pub fn failing<'v>(
    verdicts: impl IntoIterator<Item = &'v ScenarioVerdict>,
) -> BTreeSet<(String, String)> {
    let mut failing = BTreeSet::new();
    for verdict in verdicts {
        for check in verdict
            .checks
            .iter()
            .filter(|check| check.verdict == Verdict::Fail)
        {
            failing.insert((verdict.name.clone(), check.id.clone()));
        }
    }
    failing
}

/// What a mutant's verdicts say about it.
pub fn judge(
    mutant: &str,
    about: &str,
    breaks: &[String],
    verdicts: &[ScenarioVerdict],
    sound: &BTreeSet<(String, String)>,
) -> MutantJudged {
    let mut killers = Vec::new();
    let mut others = 0;
    for verdict in verdicts {
        for check in verdict
            .checks
            .iter()
            .filter(|check| check.verdict == Verdict::Fail)
        {
            if sound.contains(&(verdict.name.clone(), check.id.clone())) {
                continue;
            }
            let proves: Vec<String> = check
                .proves
                .iter()
                .filter(|id| breaks.contains(id))
                .cloned()
                .collect();
            if proves.is_empty() {
                others += 1;
            } else {
                killers.push(Killer {
                    scenario: verdict.name.clone(),
                    check: check.id.clone(),
                    proves,
                });
            }
        }
    }
    MutantJudged {
        mutant: mutant.to_owned(),
        about: about.to_owned(),
        breaks: breaks.to_vec(),
        killed: !killers.is_empty(),
        scenarios: verdicts.len(),
        killers,
        others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::CheckVerdict;

    fn verdict(name: &str, checks: &[(&str, &[&str], Verdict)]) -> ScenarioVerdict {
        let checks = checks.iter().map(|(id, proves, verdict)| CheckVerdict {
            id: (*id).to_owned(),
            proves: proves.iter().map(|id| (*id).to_owned()).collect(),
            verdict: *verdict,
            expected: String::new(),
            seen: String::new(),
            kind: None,
        });
        ScenarioVerdict {
            name: name.to_owned(),
            area: "a".to_owned(),
            verdict: Verdict::Fail,
            checks: checks.collect(),
        }
    }

    fn judged(verdicts: &[ScenarioVerdict], sound: &[ScenarioVerdict]) -> MutantJudged {
        judge(
            "no-kill",
            "",
            &["drain.term-then-kill".to_owned()],
            verdicts,
            &failing(sound),
        )
    }

    #[test]
    fn only_a_failing_check_that_names_the_right_requirement_kills() {
        let right = verdict("s", &[("c", &["drain.term-then-kill"], Verdict::Fail)]);
        let wrong = verdict("s", &[("c", &["drain.no-zombies"], Verdict::Fail)]);
        let unsure = verdict(
            "s",
            &[("c", &["drain.term-then-kill"], Verdict::NoEvidence)],
        );
        assert!(judged(std::slice::from_ref(&right), &[]).killed);
        let other = judged(&[wrong], &[]);
        assert!(!other.killed);
        assert_eq!(other.others, 1);
        assert!(!judged(&[unsure], &[]).killed);
        assert!(!judged(&[], &[]).killed);
        assert!(
            !judged(std::slice::from_ref(&right), std::slice::from_ref(&right)).killed,
            "a check that fails on the sound one too tells nothing"
        );
    }

    #[test]
    fn a_mutant_is_run_on_what_it_breaks_and_on_the_plainest_scenarios() {
        let planned = |name: &str, id: &str| Planned {
            name: name.to_owned(),
            area: "a".to_owned(),
            file: String::new(),
            axes: indexmap::IndexMap::new(),
            scenario: serde_saphyr::from_str(&format!(
                "scenario: s\nproves: [{id}]\nwhy: w\nsteps: []\nchecks: []\n"
            ))
            .unwrap(),
        };
        let all = [
            planned("kill[n=1]", "drain.term-then-kill"),
            planned("other", "x.y"),
            planned("clean-exit", "x.z"),
        ];
        let breaks = ["drain.term-then-kill".to_owned()];
        assert_eq!(scenarios_for(&breaks, &all, false), [0, 2]);
        assert_eq!(scenarios_for(&breaks, &all, true), [0, 1, 2]);
    }
}
