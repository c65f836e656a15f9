//! `lint`: every word of every scenario means something, before anything runs.

use indexmap::IndexMap;
use miette::Diagnostic as _;

use crate::catalogue::Catalogue;
use crate::check;
use crate::cli::args::Lint;
use crate::cli::{Exit, Failure, suite};
use crate::coverage::proves;
use crate::scenario;
use crate::yaml::YamlError;

/// Runs the command.
pub fn main(args: &Lint) -> Result<Exit, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let loaded = suite::load(&args.files)?;
    let adapters = suite::adapters()?;
    let declared: Vec<&str> = adapters
        .iter()
        .flat_map(|adapter| adapter.observations.keys().map(String::as_str))
        .collect();
    let mut problems = 0;
    let mut problem = |error: &YamlError| {
        problems += 1;
        let help = error
            .help()
            .map_or(String::new(), |help| format!("; {help}"));
        anstream::eprintln!("{error}{help}");
    };
    let mut names: IndexMap<&str, &str> = IndexMap::new();
    for loaded in &loaded {
        let scenario = &loaded.scenario;
        let name = scenario.scenario.as_str();
        if let Some(other) = names.insert(name, &loaded.file) {
            let message = format!("the name `{name}` exists twice, also in {other}");
            problem(&loaded.wrong(&["scenario"], Some(name), message, None));
        }
        for id in proves(scenario) {
            if let Err(error) = catalogue.get(id) {
                let message = error.to_string();
                problem(&loaded.wrong(&["proves"], Some(id), message, None));
            }
        }
        for (index, one) in scenario.checks.iter().enumerate() {
            if let Err(error) = check::validate(one, scenario, &declared) {
                let message = format!("checks[{index}] {error}");
                let item = format!("[{index}]");
                let at = &["checks", &item];
                problem(&loaded.wrong(at, Some(&error.observation), message, None));
            }
        }
        scenario::review(loaded).iter().for_each(&mut problem);
    }
    if loaded.is_empty() {
        anstream::eprintln!("pi-conform: nothing was selected");
        return Ok(Exit::NothingSelected);
    }
    anstream::println!("{} scenarios, {problems} problems", loaded.len());
    Ok(if problems == 0 {
        Exit::AsExpected
    } else {
        Exit::Failures
    })
}
