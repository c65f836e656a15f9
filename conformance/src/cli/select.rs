//! Choosing scenarios by name, pattern, requirement and area.

use clap::CommandFactory as _;
use globset::GlobMatcher;

use crate::baseline::{glob, plain};
use crate::catalogue::Catalogue;
use crate::check::words::nearest;
use crate::cli::Failure;
use crate::cli::args::{Args, Which};
use crate::contract;
use crate::coverage::proves;
use crate::scenario::Planned;

/// Scenarios that the options choose, in their order.
///
/// # Errors
/// When a name, a requirement or an area does not exist: it is then a mistake, and the nearest right word is told. A
/// requirement or area of the catalogue that no scenario is about is none; it selects nothing.
pub fn select(
    all: Vec<Planned>,
    which: &Which,
    catalogue: &Catalogue,
) -> Result<Vec<Planned>, Failure> {
    let names = patterns(&which.names)?;
    let requirements = patterns(&which.requirement)?;
    for (pattern, matcher) in &names {
        if !all.iter().any(|planned| named(planned, pattern, matcher)) {
            return Err(unknown(
                "scenario",
                pattern,
                &all.iter().map(|p| plain(&p.name)).collect::<Vec<_>>(),
            ));
        }
    }
    for (pattern, matcher) in &requirements {
        let mut ids = catalogue.requirements.keys().map(String::as_str);
        if !ids.any(|id| id == pattern || matcher.is_match(id)) {
            let ids: Vec<&str> = catalogue.requirements.keys().map(String::as_str).collect();
            return Err(unknown("requirement", pattern, &ids));
        }
    }
    for area in &which.area {
        let folders = all.iter().map(|planned| planned.area.as_str());
        let areas: Vec<&str> = folders
            .chain(catalogue.areas.keys().map(String::as_str))
            .collect();
        if !areas.contains(&area.as_str()) {
            return Err(unknown("area", area, &areas));
        }
    }
    let chosen = |planned: &Planned| {
        (names.is_empty()
            || names
                .iter()
                .any(|(pattern, matcher)| named(planned, pattern, matcher)))
            && (requirements.is_empty()
                || requirements
                    .iter()
                    .any(|(pattern, matcher)| shows(planned, pattern, matcher)))
            && (which.area.is_empty() || which.area.contains(&planned.area))
    };
    let frozen = which.contract.map(contract::version).transpose();
    let frozen = frozen.map_err(Failure::usage)?;
    let kept = |planned: &Planned| {
        frozen
            .as_ref()
            .is_none_or(|it| it.holds(&planned.area, plain(&planned.name)))
    };
    let selected = all
        .into_iter()
        .filter(|it| chosen(it) && kept(it))
        .collect();
    Ok(match which.partition {
        Some(partition) => partition.pick(selected),
        None => selected,
    })
}

/// Patterns with their text.
pub fn patterns(texts: &[String]) -> Result<Vec<(String, GlobMatcher)>, Failure> {
    texts
        .iter()
        .map(|text| Ok((text.clone(), glob(text).map_err(Failure::usage)?)))
        .collect()
}

/// By full name, plain name, `area/name`, or a pattern for any of these.
fn named(planned: &Planned, pattern: &str, matcher: &GlobMatcher) -> bool {
    let full = format!("{}/{}", planned.area, planned.name);
    let names = [
        planned.name.as_str(),
        plain(&planned.name),
        full.as_str(),
        plain(&full),
    ];
    names
        .iter()
        .any(|name| *name == pattern || matcher.is_match(name))
}

fn shows(planned: &Planned, pattern: &str, matcher: &GlobMatcher) -> bool {
    proves(&planned.scenario)
        .into_iter()
        .any(|id| id == pattern || matcher.is_match(id))
}

fn unknown(what: &str, word: &str, known: &[&str]) -> Failure {
    // A mistyped first argument may have meant a command: without one it names a scenario.
    let program = Args::command();
    let commands: Vec<&str> = match what {
        "scenario" => program
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect(),
        _ => Vec::new(),
    };
    let near = nearest(word, known.iter().copied().chain(commands.iter().copied()));
    let near = near.map_or(String::new(), |near| {
        let kind = if commands.contains(&near) {
            "the command "
        } else {
            ""
        };
        format!("; nearest is {kind}`{near}`")
    });
    Failure::usage(format!("no {what} is called `{word}`{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(area: &str, name: &str, proves: &str) -> Planned {
        let text = format!("scenario: s\nproves: [{proves}]\nwhy: w\nsteps: []\nchecks: []\n");
        Planned {
            name: name.to_owned(),
            area: area.to_owned(),
            file: String::new(),
            axes: indexmap::IndexMap::new(),
            scenario: serde_saphyr::from_str(&text).unwrap(),
        }
    }

    fn all() -> Vec<Planned> {
        vec![
            planned("framing", "cut[at=7]", "framing.cut"),
            planned("framing", "cut[at=8]", "framing.cut"),
            planned("drain", "clean-exit", "drain.clean-exit"),
        ]
    }

    fn chosen(
        names: &[&str],
        requirements: &[&str],
        areas: &[&str],
    ) -> Result<Vec<String>, String> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let which = Which {
            names: owned(names),
            requirement: owned(requirements),
            area: owned(areas),
            ..Which::default()
        };
        match select(all(), &which, &Catalogue::embedded().unwrap()) {
            Ok(planned) => Ok(planned.into_iter().map(|planned| planned.name).collect()),
            Err(failure) => Err(failure.message),
        }
    }

    #[test]
    fn names_patterns_requirements_and_areas_choose() {
        for (names, requirements, areas, expected) in [
            (
                &[][..],
                &[][..],
                &[][..],
                &["cut[at=7]", "cut[at=8]", "clean-exit"][..],
            ),
            (&["cut"], &[], &[], &["cut[at=7]", "cut[at=8]"]),
            (&["cut[at=8]"], &[], &[], &["cut[at=8]"]),
            (&["framing/cut[at=7]"], &[], &[], &["cut[at=7]"]),
            (&["*-exit"], &[], &[], &["clean-exit"]),
            (&["framing/*"], &[], &[], &["cut[at=7]", "cut[at=8]"]),
            (&[], &["drain.*"], &[], &["clean-exit"]),
            (&[], &[], &["framing"], &["cut[at=7]", "cut[at=8]"]),
            (&["cut"], &["drain.*"], &[], &[]),
            (&[], &["drain.no-zombies"], &[], &[]),
            (&[], &[], &["cards"], &[]),
        ] {
            assert_eq!(
                chosen(names, requirements, areas).unwrap(),
                expected,
                "{names:?} {requirements:?} {areas:?}"
            );
        }
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_nearest() {
        assert_eq!(
            chosen(&["clean-exti"], &[], &[]).unwrap_err(),
            "no scenario is called `clean-exti`; nearest is `clean-exit`"
        );
        assert_eq!(
            chosen(&[], &["drain.clean-exti"], &[]).unwrap_err(),
            "no requirement is called `drain.clean-exti`; nearest is `drain.clean-exit`"
        );
        assert_eq!(
            chosen(&[], &[], &["framin"]).unwrap_err(),
            "no area is called `framin`; nearest is `framing`"
        );
    }
}
