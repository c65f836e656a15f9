//! `why`: a requirement in words, and all that shows it.

use std::fmt::Write as _;

use crate::catalogue::Catalogue;
use crate::cli::args::Why;
use crate::cli::{Bundled, Exit, Failure, session, suite};
use crate::coverage;

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Why) -> Result<Exit, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let requirement = catalogue.get(&args.id).map_err(Failure::usage)?;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}  ({}, {}, {})",
        requirement.id,
        requirement.level,
        requirement.tier,
        requirement.systems.join(", ")
    );
    let _ = writeln!(text, "  {}", requirement.rule);
    let check = &requirement.check;
    let parts = [
        ("setup", &check.setup),
        ("child", &check.child),
        ("caller", &check.caller),
        ("expect", &check.expect),
        ("unit", &check.unit),
        ("note", &requirement.note),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            let _ = writeln!(
                text,
                "  {name:<8} {}",
                part.split_whitespace().collect::<Vec<_>>().join(" ")
            );
        }
    }
    let _ = writeln!(text, "  {:<8} {}", "source", requirement.source.join(", "));
    let mut shown = false;
    for loaded in suite::load(&[])? {
        if coverage::proves(&loaded.scenario).contains(&args.id.as_str()) {
            shown = true;
            let _ = writeln!(
                text,
                "  scenario {}/{}: {}",
                loaded.area,
                loaded.scenario.scenario,
                loaded.scenario.why.trim()
            );
        }
    }
    for (_, test) in coverage::tests().iter().filter(|(id, _)| *id == args.id) {
        shown = true;
        let _ = writeln!(text, "  test     {test}");
    }
    for invariant in crate::check::INVARIANTS
        .iter()
        .filter(|invariant| invariant.proves.contains(&args.id.as_str()))
    {
        let _ = writeln!(text, "  always   {}: {}", invariant.id, invariant.expected);
    }
    for subject in bundled
        .subjects
        .iter()
        .filter(|subject| subject.breaks.contains(&args.id))
    {
        let _ = writeln!(text, "  mutant   {}: {}", subject.name, subject.about);
    }
    if !shown {
        let open = coverage::open().map_err(Failure::harness)?;
        let reason = open.get(&args.id).map_or(
            "nothing shows it, and it is not named as open",
            String::as_str,
        );
        let _ = writeln!(text, "  open     {reason}");
    }
    session::print(text.as_bytes())
}
