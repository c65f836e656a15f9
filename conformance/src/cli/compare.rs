//! `compare`: two runs, newly failing first.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::cli::args::Style as Form;
use crate::cli::report_args::Compare;
use crate::cli::{Exit, Failure, session, told};
use crate::compare::{Change, Comparison, Side};
use crate::report::Event;
use crate::report::events::Totals;
use crate::verdict::Verdict;

/// Runs the command.
pub fn main(args: &Compare) -> Result<Exit, Failure> {
    let comparison = Comparison::of(&run(&args.old)?, &run(&args.new)?);
    let text = match args.format {
        Form::Human => human(&comparison),
        Form::Json => {
            let mut text = serde_json::to_string(&comparison).map_err(Failure::harness)?;
            text.push('\n');
            text
        }
    };
    session::print(text.as_bytes())?;
    Ok(exit(&comparison))
}

/// The events of a run.
fn run(path: &Path) -> Result<Vec<Event>, Failure> {
    let events = told::events(&[path.to_owned()], None)?;
    if let Some(Event::Summary(Totals::Mutants(_))) = events.last() {
        return Err(Failure::usage(format!(
            "{} is a kill matrix; `compare` takes two runs",
            path.display()
        )));
    }
    Ok(events)
}

fn exit(comparison: &Comparison) -> Exit {
    if !comparison.newly_failing.is_empty() {
        Exit::Failures
    } else if comparison.new.selected == 0 {
        Exit::NothingSelected
    } else if comparison.new.judged < comparison.new.selected {
        Exit::Incomplete
    } else {
        Exit::AsExpected
    }
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

fn human(comparison: &Comparison) -> String {
    let mut text = String::new();
    let red = AnsiColor::Red.on_default();
    let green = AnsiColor::Green.on_default();
    let cyan = AnsiColor::Cyan.on_default();
    for (title, style, changes, full) in [
        ("newly failing", red, &comparison.newly_failing, true),
        ("newly passing", green, &comparison.newly_passing, false),
        ("other changes", cyan, &comparison.changed, false),
    ] {
        if !changes.is_empty() {
            let _ = writeln!(text, "{style}{title}{style:#}  {}", changes.len());
            for change in changes {
                told_change(&mut text, change, full);
            }
            text.push('\n');
        }
    }
    for (word, side) in [("old", &comparison.old), ("new", &comparison.new)] {
        told_side(&mut text, word, side);
    }
    let _ = writeln!(
        text,
        "{} newly failing, {} newly passing, {} other changes, {} the same",
        comparison.newly_failing.len(),
        comparison.newly_passing.len(),
        comparison.changed.len(),
        comparison.same
    );
    text
}

fn word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("not run", Verdict::word)
}

fn told_change(text: &mut String, change: &Change, full: bool) {
    let (old, new) = (word(change.old), word(change.new));
    let verdicts = if old == new {
        format!("{new}, as before")
    } else {
        format!("{new}, was {old}")
    };
    let _ = writeln!(
        text,
        "  {BOLD}{}/{}{BOLD:#}  {verdicts}",
        change.area, change.scenario
    );
    for check in &change.checks {
        let _ = writeln!(
            text,
            "    {}  {}, was {}",
            check.id,
            word(check.new),
            word(check.old)
        );
        if full && check.new.is_some_and(|new| new > Verdict::Pass) {
            let _ = writeln!(text, "      {DIM}expected{DIM:#}  {}", check.expected);
            let _ = writeln!(text, "      {DIM}saw{DIM:#}       {}", check.seen);
        }
    }
    if let Some(reproduce) = change.reproduce.as_ref().filter(|_| full) {
        let _ = writeln!(text, "    {DIM}reproduce{DIM:#}  {reproduce}");
    }
}

fn told_side(text: &mut String, word: &str, side: &Side) {
    let missing = side.selected.saturating_sub(side.judged);
    let missing = if missing == 0 {
        String::new()
    } else {
        format!(", {missing} did not run")
    };
    let _ = writeln!(
        text,
        "{word}  {} scenarios on {}, suite {}{missing}",
        side.selected, side.subject, side.suite
    );
}
