//! `lint`: every word of every scenario means something, before anything runs.

use crate::catalogue::Catalogue;
use crate::check;
use crate::cli::args::Lint;
use crate::cli::{Exit, Failure, suite};
use crate::coverage::proves;

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
    let mut problem = |file: &str, what: String| {
        problems += 1;
        anstream::eprintln!("{file}: {what}");
    };
    for loaded in &loaded {
        let scenario = &loaded.scenario;
        for id in proves(scenario) {
            if let Err(error) = catalogue.get(id) {
                problem(&loaded.file, error.to_string());
            }
        }
        for (index, one) in scenario.checks.iter().enumerate() {
            if let Err(error) = check::validate(one, scenario, &declared) {
                problem(&loaded.file, format!("checks[{index}] {error}"));
            }
        }
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
