//! Requirement ids: every id that a scenario or a test names is in the catalogue.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Rule;
use crate::tree::{Fault, Tree};

const CATALOGUE: (&str, &str) = (
    "scenarios/requirements/a.yaml",
    "requirements:\n  - id: drain.bounded\n    rule: one thing\n  - id: end.once\n    rule: another\n",
);

pub const RULES: &[Rule] = &[
    Rule {
        name: "scenarios name known requirements",
        why: "a scenario that proves nothing known proves nothing",
        check: proves,
        bad: &[
            &[
                CATALOGUE,
                (
                    "scenarios/drain/x.yaml",
                    "scenario: x\nproves: [drain.bounded, drain.bonded]\n",
                ),
            ],
            &[
                CATALOGUE,
                ("scenarios/drain/x.yaml", "scenario: x\nsteps: []\n"),
            ],
            &[
                CATALOGUE,
                ("scenarios/drain/x.yaml", "scenario: x\nproves: []\n"),
            ],
        ],
        good: &[
            CATALOGUE,
            (
                "scenarios/drain/x.yaml",
                "scenario: x\nproves: [drain.bounded]\n",
            ),
        ],
    },
    Rule {
        name: "tests show known requirements",
        why: "`pi-conform coverage` counts these markers",
        check: shows,
        bad: &[&[
            CATALOGUE,
            (
                "reference/src/pi/run.rs",
                "    // shows: end.once, end.twice\n    #[test]\n",
            ),
        ]],
        good: &[
            CATALOGUE,
            (
                "reference/src/pi/run.rs",
                "    // shows: end.once, drain.bounded\n    #[test]\n",
            ),
        ],
    },
];

fn known(tree: &Tree) -> BTreeSet<&str> {
    tree.with_extension("yaml")
        .filter(|(path, _)| path.starts_with("scenarios/requirements/"))
        .flat_map(|(_, text)| text.lines())
        .filter_map(|line| line.trim_start().strip_prefix("- id: "))
        .map(str::trim)
        .collect()
}

fn proves(tree: &Tree) -> Vec<Fault> {
    let known = known(tree);
    let mut faults = Vec::new();
    for (path, text) in tree.with_extension("yaml") {
        let in_an_area = path.starts_with("scenarios/") && path.matches('/').count() == 2;
        let other = ["scenarios/requirements/", "scenarios/contract/"];
        if !in_an_area || other.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let value: Value = match serde_saphyr::from_str(text) {
            Ok(value) => value,
            Err(error) => {
                faults.push(Fault::new(path, 0, error.to_string()));
                continue;
            }
        };
        let ids: Vec<&str> = value["proves"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if ids.is_empty() {
            faults.push(Fault::new(path, 0, "proves nothing"));
        }
        for id in ids.into_iter().filter(|id| !known.contains(id)) {
            faults.push(Fault::new(
                path,
                0,
                format!("proves {id}, which the catalogue does not have"),
            ));
        }
    }
    faults
}

/// In two pieces, so that the fixtures above are the only such lines here and are not taken for markers of this file.
const MARKER: &str = "// shows: ";

fn shows(tree: &Tree) -> Vec<Fault> {
    let known = known(tree);
    let mut faults = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        for (index, line) in text.lines().enumerate() {
            let Some(ids) = line.trim_start().strip_prefix(MARKER) else {
                continue;
            };
            for id in ids
                .split(',')
                .map(str::trim)
                .filter(|id| !known.contains(id))
            {
                faults.push(Fault::new(
                    path,
                    index + 1,
                    format!("shows {id}, which the catalogue does not have"),
                ));
            }
        }
    }
    faults
}
