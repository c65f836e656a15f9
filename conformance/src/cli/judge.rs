//! `judge`: bundles again, with the checks of today. `report`: any format of what was told before.

use crate::cli::args::Judge;
use crate::cli::report_args::Report;
use crate::cli::{Exit, Failure, told};

/// Runs `judge`.
pub fn main(args: &Judge) -> Result<Exit, Failure> {
    let events = told::judged(&args.bundles, args.baseline.as_deref())?;
    told::replay(&events, &args.format, args.verbose)
}

/// Runs `report`.
pub fn report(args: &Report) -> Result<Exit, Failure> {
    let events = told::events(&args.runs, args.baseline.as_deref())?;
    told::replay(&events, &args.format, args.verbose)
}
