//! `scoreboard`: results of several subjects as one document.

use crate::bundle;
use crate::cli::args::Scoreboard;
use crate::cli::{Exit, Failure, session, suite};
use crate::report::scoreboard::{Results, gather, markdown};

/// Runs the command.
pub fn main(args: &Scoreboard) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for path in &args.results {
        let events = bundle::read_lines(path).map_err(Failure::usage)?;
        let (subject, finished) = gather(events)
            .map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
        let adapter = suite::adapter(&subject)?;
        all.push(Results { adapter, finished });
    }
    let text = markdown(&all, "pi-conform scoreboard RESULTS…");
    let Some(path) = &args.out else {
        return session::print(text.as_bytes());
    };
    std::fs::write(path, text)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    Ok(Exit::AsExpected)
}
