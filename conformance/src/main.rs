//! `pi-conform`: one executable that carries the suite and the bundled subjects.

use std::process::ExitCode;

use conformance::cli::{self, Bundled, BundledSubject};

fn main() -> ExitCode {
    cli::main(Bundled {
        subjects: vec![BundledSubject {
            name: "delegate".to_owned(),
            about: "the bundled reference, a delegator that keeps every promise".to_owned(),
            breaks: Vec::new(),
            sound: true,
            main: reference::main,
        }],
    })
}
