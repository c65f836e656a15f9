//! Properties over the scenarios that the executable carries.

use indexmap::IndexMap;

use super::adapter;
use crate::check::judge;
use crate::evidence::{Evidence, FORMAT, Header};
use crate::scenario;
use crate::verdict::Verdict;

/// A green run over nothing is how a suite lies: no check of ours may pass when nothing was seen.
#[test]
fn no_check_of_any_scenario_passes_over_no_evidence() {
    let loaded = scenario::embedded().unwrap();
    let mut adapter = adapter();
    adapter.systems = ["delegator", "delegate", "tidy"]
        .map(str::to_owned)
        .to_vec();
    let mut judged = 0;
    for loaded in &loaded {
        adapter.capabilities.clone_from(&loaded.scenario.needs);
        adapter
            .settings
            .extend(loaded.scenario.setup.settings.clone());
        for planned in scenario::expand(loaded, &adapter).unwrap() {
            let header = Header {
                format: FORMAT,
                name: planned.name,
                area: planned.area,
                scenario: planned.scenario,
                adapter: adapter.clone(),
                axes: planned.axes,
                started: String::new(),
                folders: IndexMap::new(),
                reproduce: String::new(),
            };
            let evidence = Evidence {
                header,
                events: vec![],
                journals: vec![],
                stderr: IndexMap::new(),
            };
            let verdict = judge(&evidence);
            assert!(
                verdict.verdict == Verdict::NoEvidence,
                "{} is {:?}",
                verdict.name,
                verdict.verdict
            );
            for check in &verdict.checks {
                let decided = matches!(
                    check.verdict,
                    Verdict::Pass | Verdict::Differs | Verdict::Fail
                );
                assert!(!decided, "{}: {check:#?}", verdict.name);
                judged += 1;
            }
        }
    }
    assert!(judged > 300, "only {judged} checks");
}

/// Every word of every check means something.
#[test]
fn every_check_of_every_scenario_is_valid() {
    let declared = ["resume"];
    let mut wrong = Vec::new();
    for loaded in scenario::embedded().unwrap() {
        for (index, check) in loaded.scenario.checks.iter().enumerate() {
            if let Err(error) = crate::check::validate(check, &loaded.scenario, &declared) {
                wrong.push(format!("{} checks[{index}] {error}", loaded.file));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
