//! Which requirement is shown by what: scenarios by their `proves`, unit and property tests by the marker `shows:` above them.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogue, Requirement};
use crate::scenario::Scenario;

/// Requirement and test, gathered by `build.rs` from the workspace's sources.
const SHOWS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shows.rs"));

/// Requirements that nothing shows yet, with the reason: `scenarios/open.yaml`.
const OPEN: &str = include_str!(concat!(env!("OUT_DIR"), "/open.yaml"));

/// The whole table; serialised it is the one object of `coverage --format json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// In order of the catalogue.
    pub requirements: Vec<Covered>,
}

/// One requirement's row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Covered {
    /// Its id.
    pub id: String,
    /// Its area.
    pub area: String,
    /// Systems that it binds.
    pub systems: Vec<String>,
    /// Its tier.
    pub tier: String,
    /// Its level.
    pub level: String,
    /// `scenario:AREA/NAME` and `test:FILE::NAME`.
    pub shown_by: Vec<String>,
    /// Why it is open, if it is named as open.
    pub open: Option<String>,
}

/// Tests that show requirements, as built in.
pub fn tests() -> &'static [(&'static str, &'static str)] {
    SHOWS
}

/// One entry of `scenarios/open.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    id: String,
    reason: String,
}

/// Open requirements as built in: id to reason.
///
/// # Errors
/// When `scenarios/open.yaml` is no list of ids with reasons.
pub fn open() -> Result<IndexMap<String, String>, String> {
    let entries: Vec<Open> =
        serde_saphyr::from_str(OPEN).map_err(|error| format!("scenarios/open.yaml: {error}"))?;
    Ok(entries
        .into_iter()
        .map(|entry| (entry.id, entry.reason))
        .collect())
}

impl Coverage {
    /// Puts the three together. Scenarios come with their areas.
    pub fn of<'s>(
        catalogue: &Catalogue,
        scenarios: impl IntoIterator<Item = (&'s str, &'s Scenario)>,
        tests: &[(&str, &str)],
        open: &IndexMap<String, String>,
    ) -> Self {
        let mut shown: IndexMap<&str, Vec<String>> = IndexMap::new();
        for (area, scenario) in scenarios {
            let mut ids = proves(scenario);
            ids.dedup();
            for id in ids {
                let by = format!("scenario:{area}/{}", scenario.scenario);
                let all = shown.entry(id).or_default();
                if !all.contains(&by) {
                    all.push(by);
                }
            }
        }
        for (id, test) in tests {
            shown.entry(id).or_default().push(format!("test:{test}"));
        }
        let row = |requirement: &Requirement| Covered {
            id: requirement.id.clone(),
            area: requirement.area.clone(),
            systems: requirement.systems.clone(),
            tier: requirement.tier.clone(),
            level: requirement.level.clone(),
            shown_by: shown
                .get(requirement.id.as_str())
                .cloned()
                .unwrap_or_default(),
            open: open.get(&requirement.id).cloned(),
        };
        Self {
            requirements: catalogue.requirements.values().map(row).collect(),
        }
    }

    /// Rows that a filter keeps.
    pub fn only(mut self, keep: impl Fn(&Covered) -> bool) -> Self {
        self.requirements.retain(keep);
        self
    }
}

/// All ids that a scenario shows, its checks' own included.
pub fn proves(scenario: &Scenario) -> Vec<&str> {
    let checks = scenario.checks.iter().flat_map(|check| &check.proves);
    scenario
        .proves
        .iter()
        .chain(checks)
        .map(String::as_str)
        .collect()
}

/// Counts of one group of requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// All.
    pub all: usize,
    /// Shown by a scenario.
    pub scenario: usize,
    /// Shown by tests only.
    pub test: usize,
    /// Shown by nothing, and named as open.
    pub open: usize,
    /// Shown by nothing, and not named.
    pub missing: usize,
}

impl Count {
    /// Counts rows.
    pub fn of<'c>(rows: impl IntoIterator<Item = &'c Covered>) -> Self {
        let mut count = Self::default();
        for row in rows {
            count.all += 1;
            if row.shown_by.iter().any(|by| by.starts_with("scenario:")) {
                count.scenario += 1;
            } else if !row.shown_by.is_empty() {
                count.test += 1;
            } else if row.open.is_some() {
                count.open += 1;
            } else {
                count.missing += 1;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn markers_in_the_sources_name_requirements_that_exist() {
        let catalogue = Catalogue::embedded().unwrap();
        let wrong: Vec<String> = tests()
            .iter()
            .filter_map(|(id, test)| {
                catalogue
                    .get(id)
                    .err()
                    .map(|error| format!("{test}: {error}"))
            })
            .collect();
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn open_requirements_exist_and_have_a_reason() {
        let catalogue = Catalogue::embedded().unwrap();
        for (id, reason) in open().unwrap() {
            catalogue.get(&id).unwrap();
            assert!(!reason.trim().is_empty(), "{id} is open without a reason");
        }
    }

    #[test]
    fn a_requirement_is_shown_by_scenarios_tests_or_named_as_open() {
        let catalogue = Catalogue::embedded().unwrap();
        let one = scenario(
            "scenario: one\nproves: [drain.clean-exit]\nwhy: w\nsteps: []\nchecks:\n  - {proves: [drain.no-zombies], survivors: none}\n",
        );
        let open = IndexMap::from([("drain.own-process-group".to_owned(), "later".to_owned())]);
        let tests = [("drain.finalisation-idempotent", "a.rs::b")];
        let coverage = Coverage::of(&catalogue, [("drain", &one)], &tests, &open);
        let row = |id: &str| {
            coverage
                .requirements
                .iter()
                .find(|row| row.id == id)
                .unwrap()
        };
        assert_eq!(row("drain.clean-exit").shown_by, ["scenario:drain/one"]);
        assert_eq!(row("drain.no-zombies").shown_by, ["scenario:drain/one"]);
        assert_eq!(
            row("drain.finalisation-idempotent").shown_by,
            ["test:a.rs::b"]
        );
        assert_eq!(
            row("drain.own-process-group").open.as_deref(),
            Some("later")
        );
        let ids = [
            "drain.clean-exit",
            "drain.finalisation-idempotent",
            "drain.own-process-group",
            "drain.term-then-kill",
        ];
        let count = Count::of(ids.map(row));
        assert_eq!(
            count,
            Count {
                all: 4,
                scenario: 1,
                test: 1,
                open: 1,
                missing: 1
            }
        );
    }

    #[test]
    fn the_json_object_has_the_documented_fields() {
        let catalogue = Catalogue::embedded().unwrap();
        let coverage = Coverage::of(&catalogue, [], &[], &IndexMap::new())
            .only(|row| row.id == "drain.clean-exit");
        let json = serde_json::to_value(&coverage).unwrap();
        let keys: Vec<&String> = json["requirements"][0]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(
            keys,
            ["id", "area", "systems", "tier", "level", "shown_by", "open"]
        );
        assert_eq!(json["requirements"][0]["open"], serde_json::Value::Null);
    }
}
