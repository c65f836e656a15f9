//! `doctor`: what is there, what is missing, and what brings it.

use crate::cli::args::Style;
use crate::cli::author_args::Doctor;
use crate::cli::marks::{Mark, line};
use crate::cli::{Bundled, Exit, Failure, session, suite};
use crate::doctor::{self, Found};

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Doctor) -> Result<Exit, Failure> {
    let adapter = suite::adapter(&args.subject.adapter)?;
    let context = suite::context_of(bundled, &args.subject)?;
    let all = doctor::look(&adapter, &context);
    let text = match args.format {
        Style::Json => {
            let lines: Result<Vec<String>, _> = all.iter().map(serde_json::to_string).collect();
            lines.map_err(Failure::harness)?.join("\n") + "\n"
        }
        Style::Human => told(&all),
    };
    session::print(text.as_bytes())?;
    let lacks = |found: &Found| found.needed && !found.there;
    Ok(if all.iter().any(lacks) {
        Exit::Incomplete
    } else {
        Exit::AsExpected
    })
}

fn told(all: &[Found]) -> String {
    let mut text = String::new();
    for found in all {
        let mark = match (found.there, found.needed) {
            (true, _) => Mark::Right,
            (false, true) => Mark::Wrong,
            (false, false) => Mark::Open,
        };
        let says = if found.there {
            found.says.clone()
        } else {
            format!("{}; it is for: {}", found.says, found.purpose)
        };
        line(&mut text, mark, found.name, &says, found.cure.as_deref());
    }
    text
}
