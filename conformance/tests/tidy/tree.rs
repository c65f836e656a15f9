//! The texts that the rules look at, and Rust source without what is not code.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a rule is broken.
pub struct Fault {
    path: String,
    line: usize,
    what: String,
}

impl Fault {
    /// `line` counts from 1; 0 means the whole file.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Fault {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Text files by their path from the root, with `/` between.
pub struct Tree {
    files: BTreeMap<String, String>,
    whole: bool,
}

/// Kinds of files that people write here.
const TEXT: &[&str] = &[
    "rs", "toml", "md", "yaml", "yml", "json", "sh", "html", "js", "css",
];

impl Tree {
    /// All that is written by hand: no build output, nothing hidden but `.ci`, no recordings.
    pub fn of_the_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = BTreeMap::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in root.join(&folder).read_dir().unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let path = folder.join(&name);
                if entry.file_type().unwrap().is_dir() {
                    let skipped = (name.starts_with('.') && name != ".ci")
                        || name == "target"
                        || name == "snapshots";
                    if !skipped && path != Path::new("scenarios/traces") {
                        folders.push(path);
                    }
                } else if folder == Path::new(".ci")
                    || TEXT
                        .iter()
                        .any(|e| path.extension().is_some_and(|x| x == *e))
                {
                    let text = std::fs::read_to_string(root.join(&path)).unwrap();
                    files.insert(path.to_str().unwrap().to_owned(), text);
                }
            }
        }
        for program in ["pi-conform", "delegate"] {
            add_help(program, &mut files);
        }
        Tree { files, whole: true }
    }

    pub fn in_memory(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| (path.to_string(), text.to_string()))
            .collect();
        Tree {
            files,
            whole: false,
        }
    }

    /// Whether this is the repository, in which what a rule is about must exist.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub fn with_extension<'a>(
        &'a self,
        extension: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files()
            .filter(move |(path, _)| path.rsplit_once('.').is_some_and(|(_, e)| e == extension))
    }

    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file or a folder of that name exists.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = format!("{path}/");
        self.files
            .keys()
            .any(|file| file == path || file.starts_with(&below))
    }
}

/// Adds what a program says of itself, as `help/PROGRAM` and `help/PROGRAM/SUBCOMMAND`. One executable is all of them, by
/// the name that it is started under.
fn add_help(program: &str, files: &mut BTreeMap<String, String>) {
    let help = |subcommand: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi-conform"));
        let output = command
            .arg0(program)
            .args(subcommand)
            .arg("--help")
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = help(None);
    for subcommand in subcommands(&whole) {
        files.insert(
            format!("help/{program}/{subcommand}"),
            help(Some(subcommand)),
        );
    }
    files.insert(format!("help/{program}"), whole);
}

/// Names in the list under `Commands:`.
fn subcommands(help: &str) -> Vec<&str> {
    let list = help
        .lines()
        .skip_while(|line| line.trim_end() != "Commands:")
        .skip(1);
    let entries = list.take_while(|line| line.is_empty() || line.starts_with("  "));
    let names = entries.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// The code of a Rust file: comments and the insides of literals are blanked, and so are items under `#[cfg(test)]`.
/// Lines stay where they are.
pub fn product_code(source: &str) -> String {
    let mut code: Vec<char> = code_only(source).chars().collect();
    const TEST: &str = "#[cfg(test)]";
    let mut from = 0;
    while let Some(start) = find(&code, TEST, from) {
        let end = item_end(&code, start + TEST.len());
        code[start..end]
            .iter_mut()
            .filter(|c| **c != '\n')
            .for_each(|c| *c = ' ');
        from = end;
    }
    code.into_iter().collect()
}

fn find(code: &[char], what: &str, from: usize) -> Option<usize> {
    let what: Vec<char> = what.chars().collect();
    code[from..]
        .windows(what.len())
        .position(|window| window == what)
        .map(|at| at + from)
}

/// Where the item that begins after `from` ends: behind its block, or behind its semicolon.
fn item_end(code: &[char], from: usize) -> usize {
    let mut depth = 0usize;
    for (at, c) in code.iter().enumerate().skip(from) {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Comments and the insides of string and character literals become blanks.
fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => until(&chars, at, |c, _| c == '\n'),
            '/' if chars.get(at + 1) == Some(&'*') => block_comment_end(&chars, at),
            '"' => string_end(&chars, at),
            'r' if !is_word_before(&chars, at) => raw_string_end(&chars, at),
            '\'' => character_end(&chars, at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

fn until(chars: &[char], from: usize, stop: impl Fn(char, usize) -> bool) -> usize {
    (from..chars.len())
        .find(|at| stop(chars[*at], *at))
        .unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn is_word_before(chars: &[char], at: usize) -> bool {
    // `br"…"` is a raw string too; any other word that ends in r is a name.
    at.checked_sub(1).is_some_and(|before| {
        let c = chars[before];
        let byte_prefix = c == 'b'
            && !before
                .checked_sub(1)
                .is_some_and(|b| chars[b].is_alphanumeric());
        (c.is_alphanumeric() || c == '_') && !byte_prefix
    })
}

/// `at` itself when no raw string begins there.
fn raw_string_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let closes = |c: char, quote: usize| {
        c == '"'
            && chars[quote + 1..]
                .iter()
                .take(hashes)
                .filter(|c| **c == '#')
                .count()
                == hashes
    };
    (until(chars, open + 1, closes) + 1 + hashes).min(chars.len())
}

/// `at` itself for a lifetime.
fn character_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => until(chars, at + 3, |c, _| c == '\'') + 1,
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

#[test]
fn only_code_is_left() {
    let source = "let a = \"print!\\\"\"; // kill(\nlet b = r#\"x\"kill(\"#; /* a /* b */ c */ fn f<'a>(c: char) { c == '\"'; kill( }\n\
                  #[cfg(test)]\nmod tests { fn g() { tokio::x(); } }\nfn h() {}";
    let code = product_code(source);
    assert_eq!(code.matches("kill(").count(), 1, "{code}");
    assert!(
        !code.contains("print!") && !code.contains("tokio") && code.contains("fn h()"),
        "{code}"
    );
    assert_eq!(code.lines().count(), source.lines().count());
}

#[test]
fn subcommands_are_read_from_help() {
    let help = "Usage: x\n\nCommands:\n  run   Runs\n        scenarios\n  list  Lists\n\nOptions:\n  -h, --help\n";
    assert_eq!(subcommands(help), ["run", "list"]);
}
