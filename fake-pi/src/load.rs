//! The script: where it lies, and what is wrong with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};
use schemars::schema_for;

use crate::EXIT_BAD_SCRIPT;
use crate::act::Script;

/// Names under which a script is looked for, in this order, in the folder of the executable.
pub const SCRIPT_NAMES: [&str; 3] = [
    "fake-pi.script.json",
    "fake-pi.script.yaml",
    "fake-pi.script.yml",
];

/// The folder that the executable lies in: script, barriers and journal are there, whatever the environment says.
///
/// # Errors
/// When the kernel does not tell.
pub fn folder() -> std::io::Result<PathBuf> {
    let mut path = std::env::current_exe()?;
    path.pop();
    Ok(path)
}

/// Reads the script of a folder.
///
/// # Errors
/// When there is none, or it is wrong: then with file, line, column and the nearest right word.
pub fn find(folder: &Path) -> Result<Script, Report> {
    let names = SCRIPT_NAMES.iter().map(|name| folder.join(name));
    match names.into_iter().find(|path| path.exists()) {
        Some(path) => read(&path),
        None => Err(miette::miette!(
            help = "put one there, or see the act language: docs/acts.md",
            "no script beside this executable: `{}` has no `{}`",
            folder.display(),
            SCRIPT_NAMES[0]
        )),
    }
}

/// Reads a script file.
///
/// # Errors
/// As [`find`].
pub fn read(path: &Path) -> Result<Script, Report> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| miette::miette!("cannot read `{}`: {error}", path.display()))?;
    // JSON may hold characters that YAML may not. What is wrong is told in one voice all the same.
    if path.extension().is_some_and(|end| end == "json")
        && let Ok(script) = serde_json::from_str(&text)
    {
        return Ok(script);
    }
    parse(&path.display().to_string(), &text)
}

/// Reads a script; `file` is its name for people.
///
/// # Errors
/// As [`find`].
pub fn parse(file: &str, text: &str) -> Result<Script, Report> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let location = error.location();
        let (line, column) = location.map_or((1, 1), |at| (at.line(), at.column()));
        let (message, help, word) = explain(error);
        // Inside an act the parser only knows where the child begins; the wrong word itself stands further down.
        let from = byte_of(text, line, column);
        let offset = word
            .and_then(|word| word_at(text, from, &word))
            .unwrap_or(from);
        let (line, column) = line_of(text, offset);
        let mut diagnostic = MietteDiagnostic::new(format!("{file}:{line}:{column}: {message}"))
            .with_label(LabeledSpan::at_offset(offset, "here"));
        diagnostic.help = help;
        Report::new(diagnostic).with_source_code(NamedSource::new(file, text.to_owned()))
    })
}

/// serde's words in ours: the message, what to write instead, and the wrong word itself.
fn explain(error: &serde_saphyr::Error) -> (String, Option<String>, Option<String>) {
    use serde_saphyr::Error;
    match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown("key ", field, expected),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("", variant, expected),
        other => {
            // What an act says about itself comes as text (see `by_shape!`).
            let rendered = other.render();
            let message = rendered.split(" at line ").next().unwrap_or(&rendered);
            let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
            match quoted.split_first() {
                Some((word, known)) if message.contains("unknown field") => {
                    unknown("key ", word, known)
                }
                Some((word, known)) if message.contains("unknown variant") => {
                    unknown("", word, known)
                }
                _ => (message.trim_end_matches('.').to_owned(), None, None),
            }
        }
    }
}

fn unknown(what: &str, word: &str, known: &[&str]) -> (String, Option<String>, Option<String>) {
    let near = known
        .iter()
        .map(|right| (strsim::jaro_winkler(word, right), right))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(score, _)| *score >= 0.75);
    let help = match near {
        Some((_, right)) => format!("did you mean `{right}`?"),
        None => format!("write one of {}", known.join(", ")),
    };
    (
        format!("there is no {what}`{word}`"),
        Some(help),
        Some(word.to_owned()),
    )
}

fn byte_of(text: &str, line: u64, column: u64) -> usize {
    let lines = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1) as usize);
    let start: usize = lines.map(str::len).sum();
    let within = text[start..]
        .chars()
        .take(column.saturating_sub(1) as usize);
    start + within.map(char::len_utf8).sum::<usize>()
}

fn word_at(text: &str, from: usize, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text[from..]
        .match_indices(word)
        .map(|(at, _)| from + at)
        .find(|&at| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

fn line_of(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    (
        line,
        before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1,
    )
}

/// `--check-script FILE…`: whether scripts are right.
#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for people"
)]
pub fn check(files: &[OsString]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for file in files {
        match read(Path::new(file)) {
            Ok(script) => println!(
                "{}: {} children, all right",
                file.display(),
                script.children.len()
            ),
            Err(report) => {
                eprintln!("{report:?}");
                code = ExitCode::from(EXIT_BAD_SCRIPT);
            }
        }
    }
    code
}

/// `--schema script|journal`: the published JSON schemas.
#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for people"
)]
pub fn print_schema(name: Option<&str>) -> ExitCode {
    let schema = match name {
        Some("script") => schema_for!(Script),
        Some("journal") => schema_for!(crate::journal::Entry),
        other => {
            eprintln!(
                "there is no schema `{}`; write `script` or `journal`",
                other.unwrap_or_default()
            );
            return ExitCode::from(2);
        }
    };
    println!(
        "{}",
        serde_json::to_string_pretty(&schema).unwrap_or_default()
    );
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let report = parse("s.yaml", text).unwrap_err();
        let help = report.help().map(|help| format!(" ({help})"));
        format!("{report}{}", help.unwrap_or_default())
    }

    #[test]
    fn a_wrong_script_is_told_with_its_place_and_the_nearest_right_word() {
        let cases = [
            (
                "children:\n  a:\n    - accept: prompt\n    - answr: x\n",
                "s.yaml:4:7: there is no `answr` (did you mean `answer`?)",
            ),
            (
                "children:\n  a:\n    - answer: {txt: x}\n",
                "s.yaml:3:16: there is no key `txt` (did you mean `text`?)",
            ),
            (
                "childern:\n  a: []\n",
                "s.yaml:1:1: there is no key `childern` (did you mean `children`?)",
            ),
            (
                "children:\n  a:\n    acts: []\n    flavor: 1.6.0\n",
                "s.yaml:4:5: there is no key `flavor` (did you mean `flavour`?)",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(wrong(text), expected);
        }
    }

    #[test]
    fn a_json_script_may_hold_every_character_that_json_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fake-pi.script.json");
        let text = "{\"children\": {\"a\": [{\"answer\": \"x\u{7f}\u{85}\\u0000\"}]}}";
        std::fs::write(&path, text).unwrap();
        let script = read(&path).unwrap();
        let said = serde_json::to_value(&script.children["a"]).unwrap();
        assert_eq!(said[0]["answer"], "x\u{7f}\u{85}\0");
    }

    #[test]
    fn a_size_that_is_none_is_told() {
        let told = wrong("children:\n  a:\n    - endless: {bytes: 8 MiX}\n");
        assert!(told.contains("is not a size"), "{told}");
    }
}
