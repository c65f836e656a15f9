//! Who may use whose code, and what a pure module may not touch.

use crate::Rule;
use crate::tree::{Fault, Tree, product_code};

pub const RULES: &[Rule] = &[
    Rule {
        name: "manifests keep the directions",
        why: "a judge that shares code with the judged shares its faults",
        check: manifests,
        bad: &[
            &[(
                "reference/Cargo.toml",
                "[dependencies]\nfake-pi.workspace = true\n",
            )],
            &[(
                "fake-pi/Cargo.toml",
                "[dev-dependencies]\nconformance = { path = \"../conformance\" }\n",
            )],
            &[(
                "conformance/mutants/Cargo.toml",
                "[dependencies]\nfake-pi = { path = \"../../fake-pi\" }\n",
            )],
            &[(
                "benches/Cargo.toml",
                "[dependencies.conformance]\nworkspace = true\n",
            )],
        ],
        good: &[
            (
                "conformance/Cargo.toml",
                "[package]\nname = \"conformance\"\n[dependencies]\nreference.workspace = true\n",
            ),
            (
                "conformance/mutants/Cargo.toml",
                "[dependencies]\nreference.workspace = true\n",
            ),
            (
                "Cargo.toml",
                "[workspace.dependencies]\nfake-pi = { path = \"fake-pi\" }\n",
            ),
        ],
    },
    Rule {
        name: "only conformance/src/main.rs names the reference and the mutants",
        why: "they are bundled as subjects, never asked for an opinion",
        check: bundling,
        bad: &[
            &[(
                "conformance/src/check/answer.rs",
                "use reference::pi::Outcome;\n",
            )],
            &[("conformance/src/runner.rs", "fn f() { mutants::all(); }\n")],
            &[("conformance/tests/suite.rs", "use ::reference::main;\n")],
        ],
        good: &[
            ("conformance/src/main.rs", "use reference::main;\n"),
            (
                "conformance/src/check/answer.rs",
                "// like reference::main\nfn f() { let reference = 1; my_reference::x(); }\n",
            ),
        ],
    },
    Rule {
        name: "pure modules stay pure",
        why: "races and graces are tables under a pretend clock only while nothing reads the real one",
        check: purity,
        bad: &[
            &[(
                "reference/src/pi/run.rs",
                "fn f() { std::time::Instant::now(); }\n",
            )],
            &[("reference/src/pi/run/cleanup.rs", "use nix::unistd::Pid;\n")],
            &[("reference/src/pi/framing.rs", "use tokio::io::AsyncRead;\n")],
            &[("fake-pi/src/pi/session.rs", "use std::{env, fmt};\n")],
            &[(
                "conformance/src/check/tree.rs",
                "fn f() { std::fs::read(\"/proc\"); }\n",
            )],
            &[(
                "conformance/src/scenario/axes.rs",
                "use std::process::Command;\n",
            )],
        ],
        good: &[
            (
                "reference/src/pi/run.rs",
                "use std::time::Duration;\n#[cfg(test)]\nmod tests { use std::fs; }\n",
            ),
            ("reference/src/pi/pump.rs", "use tokio::io::AsyncRead;\n"),
            (
                "conformance/src/verdict.rs",
                "fn environment() { let process = \"std::env\"; }\n",
            ),
        ],
    },
    Rule {
        name: "only group.rs sends signals in the reference",
        why: "before each signal someone must ask whether the process is still ours: one place asks",
        check: signals,
        bad: &[
            &[(
                "reference/src/pi/pump.rs",
                "fn f() { nix::sys::signal::kill(pid, None); }\n",
            )],
            &[("reference/src/cli.rs", "fn f() { child.start_kill(); }\n")],
        ],
        good: &[
            (
                "reference/src/pi/group.rs",
                "fn f() { killpg(group, TERM); }\n",
            ),
            (
                "reference/src/pi/run.rs",
                "fn f() { effects.push(Effect::SendTerm); skill(1); }\n",
            ),
        ],
    },
    Rule {
        name: "only named places print",
        why: "output is a product: the subject's stdout is a wire, the suite's belongs to the reporters",
        check: printing,
        bad: &[
            &[(
                "reference/src/pi/pump.rs",
                "fn f() { eprintln!(\"here\"); }\n",
            )],
            &[("conformance/src/runner.rs", "fn f() { print!(\"x\"); }\n")],
            &[(
                "fake-pi/src/pi/session.rs",
                "fn f() { std::io::stdout(); }\n",
            )],
        ],
        good: &[
            (
                "conformance/src/report/human.rs",
                "fn f() { println!(\"pass\"); }\n",
            ),
            (
                "conformance/tests/real_pi.rs",
                "fn f() { eprintln!(\"x\"); }\n",
            ),
            (
                "reference/src/pi/run.rs",
                "fn f() { blueprint!(\"println!\"); }\n",
            ),
        ],
    },
];

/// Our crates, by manifest, and which of ours each may name.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("reference/Cargo.toml", &[]),
    ("fake-pi/Cargo.toml", &[]),
    ("conformance/mutants/Cargo.toml", &["reference"]),
    (
        "conformance/Cargo.toml",
        &["fake-pi", "reference", "mutants"],
    ),
    ("benches/Cargo.toml", &["reference", "fake-pi"]),
];
const OURS: &[&str] = &["reference", "fake-pi", "mutants", "conformance", "benches"];

fn manifests(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree
        .with_extension("toml")
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
    {
        let Some((_, may)) = DIRECTIONS.iter().find(|(known, _)| *known == path) else {
            faults.push(Fault::new(
                path,
                0,
                "a crate that DIRECTIONS does not know: say there whom it may use",
            ));
            continue;
        };
        for (line, name) in dependencies(text) {
            if OURS.contains(&name) && !may.contains(&name) {
                faults.push(Fault::new(path, line, format!("may not depend on {name}")));
            }
        }
    }
    faults
}

/// Line and name of each dependency, from `[dependencies]`-like tables and `[dependencies.NAME]` headings.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(heading) = line.strip_prefix('[') {
            let heading = heading.trim_end_matches(']');
            inside = heading.ends_with("dependencies");
            if let Some((table, name)) = heading.rsplit_once('.')
                && table.ends_with("dependencies")
            {
                found.push((index + 1, name));
            }
        } else if inside && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if !name.is_empty() {
                found.push((index + 1, name.trim_matches('"')));
            }
        }
    }
    found
}

fn bundling(tree: &Tree) -> Vec<Fault> {
    // `pi-conform mutants` has a module of that name, which is not the crate.
    let own = |path: &str| {
        tree.get(path).is_some_and(|text| {
            text.lines()
                .any(|line| line.trim_end().ends_with("mod mutants;"))
        })
    };
    in_code(tree, &["reference::", "mutants::"], |path| {
        path.starts_with("conformance/")
            && !path.starts_with("conformance/mutants/")
            && path != "conformance/src/main.rs"
            && !own(path)
    })
}

/// Modules without a clock, an environment, files, processes or a runtime. Each must exist.
const PURE: &[&str] = &[
    "reference/src/pi/framing",
    "reference/src/pi/wire",
    "reference/src/pi/run",
    "reference/src/pi/answer",
    "fake-pi/src/pi/",
    "conformance/src/check/",
    "conformance/src/verdict",
    "conformance/src/scenario/axes",
];

const IMPURE: &[&str] = &[
    "tokio::",
    "nix::",
    "Instant::now",
    "SystemTime::now",
    "Zoned::now",
    "Timestamp::now",
    "std::env",
    "std::process",
    "std::fs",
    "std::net",
    "std::thread",
    "std::os",
];

fn purity(tree: &Tree) -> Vec<Fault> {
    let is_pure = |path: &str| {
        PURE.iter().any(|pure| match path.strip_prefix(pure) {
            Some(rest) => pure.ends_with('/') || rest.starts_with(['.', '/']),
            None => false,
        })
    };
    let mut faults = in_code(tree, IMPURE, is_pure);
    // `use std::{env, fs}` names them too.
    for (path, text) in tree.with_extension("rs").filter(|(path, _)| is_pure(path)) {
        for (index, line) in product_code(text).lines().enumerate() {
            if let Some((_, group)) = line.split_once("use std::{") {
                let first_words = group.split(|c: char| !c.is_alphanumeric() && c != '_');
                for name in first_words
                    .filter(|name| ["env", "fs", "process", "net", "thread"].contains(name))
                {
                    faults.push(Fault::new(path, index + 1, format!("uses std::{name}")));
                }
            }
        }
    }
    if tree.is_whole() {
        for pure in PURE {
            let exists = tree.has(pure) || tree.has(&format!("{pure}.rs"));
            if !exists {
                faults.push(Fault::new(
                    pure,
                    0,
                    "named in PURE but there is no such module",
                ));
            }
        }
    }
    faults
}

fn signals(tree: &Tree) -> Vec<Fault> {
    let sends = [
        "kill(",
        "killpg(",
        "raise(",
        "start_kill(",
        "send_signal(",
        "pidfd_send_signal",
        "tgkill(",
    ];
    in_code(tree, &sends, |path| {
        path.starts_with("reference/src/") && !path.ends_with("/group.rs")
    })
}

/// Who prints, and what.
const PRINTS: &[&str] = &[
    "fake-pi/src/main.rs",
    "fake-pi/src/player", // its output is the product
    "fake-pi/src/out.rs",
    "fake-pi/src/descendant.rs",
    "fake-pi/src/load.rs",            // says what is wrong with a script
    "conformance/src/warden/main.rs", // a program of its own: its channel
    "reference/src/cli",
    "reference/src/mcp", // the MCP wire
    "conformance/src/report",
    "conformance/src/cli",
    "conformance/src/runner/command/each.rs", // a wire: it speaks to the runner
    "conformance/build.rs",                   // speaks to cargo
];

fn printing(tree: &Tree) -> Vec<Fault> {
    let prints = [
        "println!",
        "print!",
        "eprintln!",
        "eprint!",
        "dbg!",
        "stdout()",
        "stderr()",
    ];
    in_code(tree, &prints, |path| {
        let product = path.contains("/src/") || path.ends_with("build.rs");
        product && !PRINTS.iter().any(|may| path.starts_with(may))
    })
}

/// Every place in product code that says one of `words` as a word of its own.
fn in_code(tree: &Tree, words: &[&str], applies: impl Fn(&str) -> bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.with_extension("rs").filter(|(path, _)| applies(path)) {
        for (index, line) in product_code(text).lines().enumerate() {
            if let Some(word) = words.iter().find(|word| says(line, word)) {
                faults.push(Fault::new(path, index + 1, format!("says {word}")));
            }
        }
    }
    faults
}

fn says(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        // A method of ours called `.kill(` is a call of something that kills; a longer name is something else.
        !line[..at]
            .chars()
            .next_back()
            .is_some_and(|before| before.is_alphanumeric() || before == '_')
    })
}
