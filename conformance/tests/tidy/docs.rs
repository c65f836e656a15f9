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
        name: "commands in documents exist",
        why: "what is written between sh fences is typed as it stands",
        check: commands,
        bad: &[
            &[
                HELP,
                ("README.md", "```sh\ntarget/release/pi-conform rnu\n```\n"),
            ],
            &[
                HELP,
                ("docs/a.md", "```sh\npi-conform run --adapted x\n```\n"),
            ],
            &[
                HELP,
                (
                    "docs/a.md",
                    "```sh\n$ cargo run --release -- jugde x\n```\n",
                ),
            ],
            &[HELP, ("docs/a.md", "```sh\ncargo tset\n```\n")],
        ],
        good: &[
            HELP,
            (
                "README.md",
                "```sh\npi-conform run --adapter=x 'a*'  # --not-a-flag\nMY=1 pi-conform run | grep --count pass\n\
                 cargo run --release -- run --adapter x\ncargo test -p conformance\n```\n```text\npi-conform rnu\n```\n",
            ),
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

const HELP: (&str, &str) = (
    "help/pi-conform/run",
    "Usage: pi-conform run [NAMES]...\n      --adapter <NAME>  Whom\n",
);

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

/// What cargo is asked for in documents.
const CARGO: &[&str] = &[
    "bench", "build", "clippy", "fmt", "install", "nextest", "run", "test",
];

fn commands(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (line, command) in shell_lines(text) {
            if let Err(wrong) = command_exists(tree, command) {
                faults.push(Fault::new(path, line, wrong));
            }
        }
    }
    faults
}

/// Lines between shell fences, with their numbers.
fn shell_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        match line.trim().strip_prefix("```") {
            Some(language) => inside = ["sh", "bash", "shell", "console"].contains(&language),
            None if inside => lines.push((index + 1, line)),
            None => {}
        }
    }
    lines
}

/// Whether a line's program has the subcommand and the options that the line gives it. Programs of others pass.
fn command_exists(tree: &Tree, line: &str) -> Result<(), String> {
    let line = line
        .split(" #")
        .next()
        .unwrap_or_default()
        .split(['|', '>', ';', '&'])
        .next()
        .unwrap_or_default();
    let words = line
        .split_whitespace()
        .skip_while(|word| *word == "$" || word.contains('='));
    let mut words: Vec<&str> = words.collect();
    let program = match words.first() {
        None => return Ok(()),
        Some(&"cargo") => {
            let task = *words.get(1).unwrap_or(&"");
            if !CARGO.contains(&task) {
                return Err(format!("`cargo {task}` is none of {CARGO:?}"));
            }
            let Some(end) = words
                .iter()
                .position(|word| *word == "--")
                .filter(|_| task == "run")
            else {
                return Ok(());
            };
            words.drain(..=end);
            "pi-conform"
        }
        Some(_) => {
            let program = words.remove(0);
            program.rsplit('/').next().unwrap_or(program)
        }
    };
    if program != "pi-conform" && program != "delegate" {
        return Ok(());
    }
    let top = tree.get(&format!("help/{program}")).unwrap_or_default();
    let subcommand = words.iter().find(|word| !word.starts_with('-'));
    let help = match subcommand {
        None => top,
        Some(name) => {
            let help = tree.get(&format!("help/{program}/{name}"));
            help.ok_or_else(|| format!("`{program}` has no subcommand `{name}`"))?
        }
    };
    for option in words.iter().filter(|word| word.starts_with("--")) {
        let name = option.split('=').next().unwrap_or(option);
        let known = |help: &str| {
            help.split(|c: char| !c.is_alphanumeric() && c != '-')
                .any(|word| word == name)
        };
        if !known(help) && !known(top) {
            return Err(format!("`{program}` has no option `{name}` there"));
        }
    }
    Ok(())
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
