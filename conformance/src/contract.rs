//! Versions of the contract: frozen lists of scenarios and checks, `scenarios/contract/N.yaml`.
//!
//! What a version holds stays as it is, so that "passes contract 1" says the same next year. A new scenario or check belongs to
//! the next version.

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::check;
use crate::scenario::Loaded;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../scenarios/contract");

/// One version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Its number.
    pub contract: u32,
    /// `AREA/NAME`, without axis values, to the ids of the scenario's own checks.
    pub scenarios: IndexMap<String, Vec<String>>,
}

impl Contract {
    /// Whether a scenario is in it.
    pub fn holds(&self, area: &str, plain: &str) -> bool {
        self.scenarios.contains_key(&format!("{area}/{plain}"))
    }

    /// What of it is gone from a set of scenarios.
    pub fn missing(&self, loaded: &[Loaded]) -> Vec<String> {
        let there = list(loaded);
        let mut gone = Vec::new();
        for (name, checks) in &self.scenarios {
            match there.get(name) {
                None => gone.push(name.clone()),
                Some(its) => {
                    let lost = checks.iter().filter(|id| !its.contains(id));
                    gone.extend(lost.map(|id| format!("{name} / {id}")));
                }
            }
        }
        gone
    }
}

/// All versions that the program carries, by number.
///
/// # Errors
/// When a file of it is broken, which a test keeps from happening.
pub fn versions() -> Result<BTreeMap<u32, Contract>, String> {
    let mut versions = BTreeMap::new();
    for file in FILES.files() {
        let text = file.contents_utf8().unwrap_or_default();
        let contract: Contract = serde_saphyr::from_str(text)
            .map_err(|error| format!("{}: {error}", file.path().display()))?;
        versions.insert(contract.contract, contract);
    }
    Ok(versions)
}

/// One version.
///
/// # Errors
/// When there is none, with those that there are.
pub fn version(number: u32) -> Result<Contract, String> {
    let mut versions = versions()?;
    versions.remove(&number).ok_or_else(|| {
        let there: Vec<String> = versions.keys().map(u32::to_string).collect();
        format!(
            "there is no contract {number}; there is {}",
            there.join(", ")
        )
    })
}

/// Names and checks of scenarios, as a version lists them.
pub fn list(loaded: &[Loaded]) -> IndexMap<String, Vec<String>> {
    let entry = |loaded: &Loaded| {
        let name = format!("{}/{}", loaded.area, loaded.scenario.scenario);
        (name, check::ids(&loaded.scenario))
    };
    loaded.iter().map(entry).collect()
}

/// A version as the text of its file.
pub fn write(contract: &Contract) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!(
        "# Frozen: what is in here is never taken out or renamed. What is new belongs to version {}.\n",
        contract.contract + 1
    );
    text += &format!("contract: {}\nscenarios:\n", contract.contract);
    for (name, checks) in &contract.scenarios {
        text += &format!("  {}:\n", quoted(name));
        for id in checks {
            text += &format!("    - {}\n", quoted(id));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_frozen_version_is_gone() {
        let loaded = crate::scenario::embedded().unwrap_or_else(|error| panic!("{error}"));
        let versions = versions().unwrap();
        assert!(versions.contains_key(&1));
        for (number, contract) in versions {
            assert_eq!(
                contract.missing(&loaded),
                Vec::<String>::new(),
                "contract {number} is frozen: bring these back as they were called, and put what is new beside them"
            );
        }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_gone_is_named() {
        let text = "scenario: s\nwhy: w\nsteps: [{call: {}}]\nchecks: [{call.ok: true}]\n";
        let loaded = crate::scenario::parse("area/s.yaml", text).unwrap();
        let contract = Contract {
            contract: 1,
            scenarios: list(std::slice::from_ref(&loaded)),
        };
        let again: Contract = serde_saphyr::from_str(&write(&contract)).unwrap();
        assert_eq!(again, contract);
        assert!(contract.holds("area", "s"));
        assert_eq!(
            contract.missing(std::slice::from_ref(&loaded)),
            Vec::<String>::new()
        );
        let other = text.replace("call.ok", "call.answer");
        let other = crate::scenario::parse("area/s.yaml", &other).unwrap();
        assert_eq!(contract.missing(&[other]), ["area/s / checks[0] call.ok"]);
        assert_eq!(contract.missing(&[]), ["area/s"]);
    }
}
