//! `harness`: the scenarios as tests of Rust's own harness.

use libtest_mimic::Arguments;

use crate::cli::args::Harness;
use crate::cli::{Exit, Failure, tell};
use crate::harness;

/// Runs the command. What Rust's harness says with its exit code is said with ours.
pub fn main(args: &Harness) -> Result<Exit, Failure> {
    let executable = std::env::current_exe().map_err(|error| {
        Failure::harness(format!("cannot find out where this program lies: {error}"))
    })?;
    let arguments = Arguments::from_iter(
        std::iter::once("pi-conform harness").chain(args.libtest.iter().map(String::as_str)),
    );
    let mut suite = tell::suite(&args.subject.adapter, &args.files, executable, true)?;
    if let Some(checkout) = &args.subject.checkout {
        suite.context.checkout = Some(checkout.clone());
    }
    Ok(if harness::run(suite, arguments) {
        Exit::AsExpected
    } else {
        Exit::Failures
    })
}
