//! `list`: what there is.

use std::fmt::Write as _;

use serde_json::json;

use crate::catalogue::Catalogue;
use crate::check::inapplicable;
use crate::cli::args::{List, Listed, Style};
use crate::cli::{Exit, Failure, select, session, suite};
use crate::contract;
use crate::coverage::proves;

/// Runs the command.
pub fn main(args: &List) -> Result<Exit, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let mut text = String::new();
    match args.what {
        Listed::Scenarios => {
            let adapter = suite::adapter(&args.subject.adapter)?;
            let all = suite::plan(&args.which.files, &adapter)?;
            let chosen = select::select(all, &args.which, &catalogue)?;
            if chosen.is_empty() {
                anstream::eprintln!("pi-conform: nothing was selected");
                return Ok(Exit::NothingSelected);
            }
            for planned in chosen {
                let why_not = inapplicable(&planned.scenario, &adapter);
                let line = match (args.format, why_not) {
                    (Style::Json, why_not) => {
                        let scenario = &planned.scenario;
                        let mut ids = proves(scenario);
                        ids.dedup();
                        let row = json!({
                            "scenario": planned.name, "area": planned.area, "axes": planned.axes, "file": planned.file,
                            "why": scenario.why, "proves": ids, "not_applicable": why_not,
                        });
                        row.to_string()
                    }
                    (Style::Human, None) => format!("{}/{}", planned.area, planned.name),
                    (Style::Human, Some(why)) => {
                        format!("{}/{}  (not applicable: {why})", planned.area, planned.name)
                    }
                };
                let _ = writeln!(text, "{line}");
            }
        }
        Listed::Contract => {
            let versions = contract::versions().map_err(Failure::harness)?;
            let next = versions.keys().max().map_or(1, |last| last + 1);
            let scenarios = contract::list(&suite::load(&args.which.files)?);
            let contract = contract::Contract {
                contract: next,
                scenarios,
            };
            text = match args.format {
                Style::Json => json!(contract).to_string() + "\n",
                Style::Human => contract::write(&contract),
            };
        }
        Listed::Areas => {
            for (area, about) in &catalogue.areas {
                let line = match args.format {
                    Style::Json => json!({"area": area, "about": about}).to_string(),
                    Style::Human => format!("{area:<26} {about}"),
                };
                let _ = writeln!(text, "{line}");
            }
        }
        Listed::Adapters => {
            for adapter in suite::adapters()? {
                let line = match args.format {
                    Style::Json => {
                        json!({"adapter": adapter.adapter, "about": adapter.about}).to_string()
                    }
                    Style::Human => format!("{:<26} {}", adapter.adapter, adapter.about),
                };
                let _ = writeln!(text, "{line}");
            }
        }
    }
    session::print(text.as_bytes())
}
