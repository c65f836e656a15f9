//! What the documents promise: links that lead somewhere, commands that exist, and the two commands that CI runs.

use crate::Rule;
use crate::tree::{Fault, Tree};

pub const RULES: &[Rule] = &[
    Rule {
        name: "links lead somewhere",
        why: "a newcomer follows them",
        check: links,
        bad: &[&[
            (
                "docs/acts.md",
                "see [the scenarios](../scenarios/READMEE.md)\n",
            ),
            ("scenarios/README.md", ""),
        ]],
        good: &[
            (
                "docs/acts.md",
                "see [the scenarios](../scenarios/README.md#axes), [here](#below), [Pi](https://pi.example)\n",
            ),
            ("scenarios/README.md", ""),
        ],
    },
    Rule {
        name: "README and .ci/run agree on the two commands",
        why: "what a newcomer is told to run is what the gate runs",
        check: two_commands,
        bad: &[
            &[
                (
                    "README.md",
                    "```sh\ncargo test --workspace\ncargo run --release\n```\n",
                ),
                (".ci/run", CI),
            ],
            &[
                ("README.md", README),
                (".ci/run", "cargo test --workspace\n"),
            ],
        ],
        good: &[("README.md", README), (".ci/run", CI)],
    },
];

const README: &str =
    "# x\n\n```sh\ncargo run --release       # the suite\ncargo test --workspace\n```\n";
const CI: &str = "readme_command 1\n== \"cargo run --release\"\nreadme_command 2\n== \"cargo test --workspace\"\n";

fn links(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.with_extension("md") {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (index, line) in text.lines().enumerate() {
            for target in line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split_once(')'))
                .map(|(target, _)| target)
            {
                let file = target.split('#').next().unwrap_or_default();
                if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                    continue;
                }
                if !exists(tree, &normal(folder, file)) {
                    faults.push(Fault::new(
                        path,
                        index + 1,
                        format!("leads to {file}, which is not there"),
                    ));
                }
            }
        }
    }
    faults
}

/// `a/b` and `../c` make `a/c`.
fn normal(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The tree holds texts of some kinds only; in the repository the disk knows the rest.
fn exists(tree: &Tree, path: &str) -> bool {
    let on_disk = || {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(path)
            .exists()
    };
    tree.has(path) || (tree.is_whole() && on_disk())
}

fn two_commands(tree: &Tree) -> Vec<Fault> {
    let (Some(readme), Some(ci)) = (tree.get("README.md"), tree.get(".ci/run")) else {
        return if tree.is_whole() {
            vec![Fault::new("README.md", 0, "it or .ci/run is missing")]
        } else {
            Vec::new()
        };
    };
    let block = readme
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap_or_default();
    let lines = block
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let first: Vec<&str> = lines.take(2).collect();
    let mut faults = Vec::new();
    if first != ["cargo run --release", "cargo test --workspace"] {
        faults.push(Fault::new(
            "README.md",
            0,
            format!("the first shell block begins with {first:?}"),
        ));
    }
    for (number, command) in [(1, "cargo run --release"), (2, "cargo test --workspace")] {
        if !ci.contains(&format!("readme_command {number}")) || !ci.contains(command) {
            faults.push(Fault::new(
                ".ci/run",
                0,
                format!("does not take `{command}` from README"),
            ));
        }
    }
    faults
}
