//! Sizes, unfinished work, lints, and words that tie the project to one machine.

use crate::Rule;
use crate::tree::{Fault, Tree};

pub const RULES: &[Rule] = &[
    Rule {
        name: "a file has one subject",
        why: "past a few hundred lines there are two",
        check: length,
        bad: &[&[("reference/src/lib.rs", TOO_LONG)]],
        good: &[
            ("reference/src/lib.rs", "fn f() {}\n"),
            ("scenarios/requirements/a.yaml", TOO_LONG),
        ],
    },
    Rule {
        name: "no unfinished work",
        why: "what is open stands in scenarios/open.yaml with its reason, or in an issue",
        check: unfinished,
        bad: &[
            &[("reference/src/lib.rs", concat!("// TO", "DO: later\n"))],
            &[("docs/acts.md", concat!("FIX", "ME\n"))],
            &[("fake-pi/src/lib.rs", concat!("fn f() { to", "do!() }\n"))],
            &[(
                "fake-pi/src/lib.rs",
                concat!("fn f() { unimpl", "emented!() }\n"),
            )],
            &[(
                "fake-pi/src/lib.rs",
                concat!("// good enough for", " now\n"),
            )],
        ],
        good: &[("reference/src/lib.rs", "// for nowhere; a list of todos\n")],
    },
    Rule {
        name: "every crate takes the workspace's lints",
        why: "lints are written once",
        check: lints,
        bad: &[&[("reference/Cargo.toml", "[package]\nname = \"reference\"\n")]],
        good: &[(
            "reference/Cargo.toml",
            "[package]\nname = \"reference\"\n\n[lints]\nworkspace = true\n",
        )],
    },
    Rule {
        name: "nothing names a machine or a package host",
        why: "the project must build anywhere, through whatever the ordinary clients are set to",
        check: machines,
        bad: &[
            &[("README.md", concat!("see /wo", "rk/shared\n"))],
            &[(".ci/run", concat!("cp /ro", "ot/x .\n"))],
            &[("docs/mcp.md", concat!("from ../sha", "red/design.md\n"))],
            &[(
                ".ci/run",
                concat!("npm --registry https://registry.npm", "js.org\n"),
            )],
        ],
        good: &[("docs/mcp.md", "a workspace at the root\n")],
    },
];

/// Most lines that a source file may have.
const MOST_LINES: usize = 700;
/// One line more, for the fixture: 7 × 100 + 1.
const TOO_LONG: &str = concat!(
    hundred!(),
    hundred!(),
    hundred!(),
    hundred!(),
    hundred!(),
    hundred!(),
    hundred!(),
    "\n"
);

macro_rules! ten {
    () => {
        "\n\n\n\n\n\n\n\n\n\n"
    };
}
macro_rules! hundred {
    () => {
        concat!(
            ten!(),
            ten!(),
            ten!(),
            ten!(),
            ten!(),
            ten!(),
            ten!(),
            ten!(),
            ten!(),
            ten!()
        )
    };
}
use {hundred, ten};

fn length(tree: &Tree) -> Vec<Fault> {
    let long = |(path, text): (&str, &str)| {
        let lines = text.lines().count();
        (lines > MOST_LINES)
            .then(|| Fault::new(path, 0, format!("{lines} lines; {MOST_LINES} is the most")))
    };
    tree.with_extension("rs").filter_map(long).collect()
}

/// In pieces, so that this file does not accuse itself.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("for", " now"),
];

fn unfinished(tree: &Tree) -> Vec<Fault> {
    // The catalogue quotes rules, in which such words may stand.
    words(tree, MARKS, |path| {
        !path.starts_with("scenarios/requirements/")
    })
}

fn lints(tree: &Tree) -> Vec<Fault> {
    tree.files()
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
        .filter(|(_, text)| !text.contains("[lints]\nworkspace = true"))
        .map(|(path, _)| Fault::new(path, 0, "has no `[lints] workspace = true`"))
        .collect()
}

const MACHINES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("../sha", "red"),
    concat!("registry.npm", "js"),
    concat!("py", "pi.org"),
    concat!("deb.de", "bian"),
    concat!("crates.io", "/"),
];

fn machines(tree: &Tree) -> Vec<Fault> {
    words(tree, MACHINES, |_| true)
}

fn words(tree: &Tree, words: &[&str], applies: impl Fn(&str) -> bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| applies(path)) {
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| stands_alone(line, word)) {
                faults.push(Fault::new(path, index + 1, format!("says {word:?}")));
            }
        }
    }
    faults
}

/// Whether the line has the word, not as a part of a longer one.
fn stands_alone(line: &str, word: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (first, last) = (word.chars().next(), word.chars().next_back());
        let before = letter(first) && letter(line[..at].chars().next_back());
        let after = letter(last) && letter(line[at + word.len()..].chars().next());
        !before && !after
    })
}
