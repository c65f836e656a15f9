//! `coverage`: requirements and what shows them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::catalogue::Catalogue;
use crate::check::words::nearest;
use crate::cli::args::{Coverage as Args, Style};
use crate::cli::{Exit, Failure, session, suite};
use crate::coverage::{self, Count, Coverage, Covered};

/// Runs the command.
pub fn main(args: &Args) -> Result<Exit, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let loaded = suite::load(&[])?;
    let scenarios = loaded
        .iter()
        .map(|loaded| (loaded.area.as_str(), &loaded.scenario));
    let open = coverage::open().map_err(Failure::harness)?;
    let all = Coverage::of(&catalogue, scenarios, coverage::tests(), &open);
    known(
        args.tier.as_deref(),
        "tier",
        all.requirements.iter().map(|row| row.tier.as_str()),
    )?;
    known(
        args.area.as_deref(),
        "area",
        all.requirements.iter().map(|row| row.area.as_str()),
    )?;
    let systems = all
        .requirements
        .iter()
        .flat_map(|row| row.systems.iter().map(String::as_str));
    known(args.system.as_deref(), "system", systems)?;
    let fits =
        |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|wanted| wanted == has);
    let coverage = all.only(|row| {
        fits(&args.tier, &row.tier)
            && fits(&args.area, &row.area)
            && args
                .system
                .as_ref()
                .is_none_or(|system| row.systems.contains(system))
    });
    let text = match args.format {
        Style::Json => serde_json::to_string(&coverage).map_err(Failure::harness)? + "\n",
        Style::Human => table(&coverage, args.missing),
    };
    session::print(text.as_bytes())
}

fn known<'k>(
    word: Option<&str>,
    what: &str,
    known: impl Iterator<Item = &'k str>,
) -> Result<(), Failure> {
    let Some(word) = word else { return Ok(()) };
    let known: Vec<&str> = known.collect();
    if known.contains(&word) {
        return Ok(());
    }
    let near = nearest(word, known).map_or(String::new(), |near| format!("; nearest is `{near}`"));
    Err(Failure::usage(format!(
        "no {what} is called `{word}`{near}"
    )))
}

/// The table: all, per tier, per system, per area.
fn table(coverage: &Coverage, missing: bool) -> String {
    let rows = &coverage.requirements;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<28} {:>6} {:>9} {:>10} {:>6} {:>8}",
        "", "all", "scenario", "test only", "open", "missing"
    );
    let mut line = |name: &str, count: Count| {
        let Count {
            all,
            scenario,
            test,
            open,
            missing,
        } = count;
        let _ = writeln!(
            text,
            "{name:<28} {all:>6} {scenario:>9} {test:>10} {open:>6} {missing:>8}"
        );
    };
    line("all", Count::of(rows));
    for (title, groups) in [
        ("tier", grouped(rows, |row| vec![row.tier.as_str()])),
        (
            "system",
            grouped(rows, |row| row.systems.iter().map(String::as_str).collect()),
        ),
        ("area", grouped(rows, |row| vec![row.area.as_str()])),
    ] {
        for (name, rows) in groups {
            line(&format!("{title} {name}"), Count::of(rows));
        }
    }
    if missing {
        let nothing = rows.iter().filter(|row| row.shown_by.is_empty());
        for row in nothing {
            let reason = row
                .open
                .as_deref()
                .map_or("missing".to_owned(), |reason| format!("open: {reason}"));
            let _ = writeln!(text, "{}  {reason}", row.id);
        }
    }
    text
}

fn grouped<'c>(
    rows: &'c [Covered],
    by: impl Fn(&'c Covered) -> Vec<&'c str>,
) -> BTreeMap<&'c str, Vec<&'c Covered>> {
    let mut groups: BTreeMap<&str, Vec<&Covered>> = BTreeMap::new();
    for row in rows {
        for key in by(row) {
            groups.entry(key).or_default().push(row);
        }
    }
    groups
}
