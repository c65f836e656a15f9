//! `docs/tutorial.md`, run from top to bottom: files are written, commands typed, outputs compared. `…` on a line of its own stands for
//! any lines, within a line for anything.

use snapbox::{Assert, Data, IntoData as _};

use super::place::Place;

const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const SERVER: &str = include_str!("../../../docs/examples/tiny-delegator.py");

/// One thing that the reader does.
enum Deed<'a> {
    /// Writes a file.
    File(&'a str, String),
    /// Types a command, and sees this.
    Command(&'a str, String, usize),
}

pub fn is_as_written() {
    let deeds = deeds(TUTORIAL);
    let commands = deeds
        .iter()
        .filter(|deed| matches!(deed, Deed::Command(..)))
        .count();
    assert!(
        commands >= 10,
        "only {commands} commands were found in the tutorial"
    );
    let place = Place::with("tiny-delegator.py", SERVER);
    for deed in &deeds {
        match deed {
            Deed::File(name, text) => place.file(name, text),
            Deed::Command(command, expected, line) => {
                let (actual, _) = place.shell(command);
                let expected = Data::text(wildcards(expected));
                let name = format!("docs/tutorial.md:{line}: $ {command}");
                let compared =
                    Assert::new().try_eq(Some(&name), actual.clone().into_data(), expected);
                if let Err(error) = compared {
                    panic!("{name}\n{error}\nwhole output:\n{actual}");
                }
            }
        }
    }
}

/// The wildcards of the tutorial, in the words of the comparison.
fn wildcards(text: &str) -> String {
    let lines = text.lines().map(|line| match line {
        "…" => "...\n".to_owned(),
        line => line.replace('…', "[..]") + "\n",
    });
    lines.collect()
}

fn deeds(document: &str) -> Vec<Deed<'_>> {
    let mut deeds = Vec::new();
    let mut block: Option<&str> = None;
    for (index, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), block) {
            (Some(""), Some(_)) => block = None,
            (Some(info), None) => {
                block = Some(info);
                if let Some(name) = info.strip_prefix("yaml ") {
                    deeds.push(Deed::File(name, String::new()));
                }
            }
            (_, Some("console")) => match (line.strip_prefix("$ "), deeds.last_mut()) {
                (Some(command), _) => deeds.push(Deed::Command(command, String::new(), index + 1)),
                (None, Some(Deed::Command(_, output, _))) => *output += &format!("{line}\n"),
                (None, _) => panic!(
                    "docs/tutorial.md:{}: an output without a command",
                    index + 1
                ),
            },
            (_, Some(info)) if info.starts_with("yaml ") => {
                if let Some(Deed::File(_, text)) = deeds.last_mut() {
                    *text += &format!("{line}\n");
                }
            }
            _ => {}
        }
    }
    deeds
}
