//! The command line. One file a command; what they share is in [`suite`] and [`select`].
//!
//! Messages and reports are all that this program prints: reports on standard output, everything else on standard error.

mod args;
mod attach;
mod author_args;
mod baseline;
mod capabilities;
mod compare;
mod coverage;
mod doctor;
mod exit;
mod explore;
mod harness;
mod init;
mod judge;
mod lint;
mod list;
mod marks;
mod merge;
mod mutants;
mod partition;
mod report_args;
mod rounds;
mod run;
mod schema;
mod scoreboard;
mod select;
mod session;
mod smoke;
mod suite;
pub(crate) mod tell;
mod told;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{Args, Command};
pub use exit::Exit;

/// What the executable carries beside the suite: the reference and its broken twins.
#[derive(Debug, Clone, Default)]
pub struct Bundled {
    /// All subjects; the first sound one is the default.
    pub subjects: Vec<BundledSubject>,
}

/// A subject inside the executable.
#[derive(Debug, Clone)]
pub struct BundledSubject {
    /// Its name: `delegate`, or a mutant's.
    pub name: String,
    /// One sentence: what it is, or what is broken in it.
    pub about: String,
    /// Requirements that it breaks; empty when it is sound.
    pub breaks: Vec<String>,
    /// It keeps every promise.
    pub sound: bool,
    /// The whole program.
    pub main: fn(Vec<OsString>) -> ExitCode,
}

/// Something that ends a command early: what to say, and with which code to exit.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What is wrong; a fragment without a full stop.
    pub message: String,
    /// The exit code.
    pub exit: Exit,
}

impl Failure {
    /// The command was given something wrong.
    pub fn usage(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            exit: Exit::Usage,
        }
    }

    /// The harness itself could not do something.
    pub fn harness(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            exit: Exit::Harness,
        }
    }
}

/// The whole program, with the arguments that it was started with.
pub fn main(bundled: Bundled) -> ExitCode {
    main_with(&bundled, std::env::args_os().skip(1).collect())
}

/// The whole program. `args` is without the program's name.
pub fn main_with(bundled: &Bundled, args: Vec<OsString>) -> ExitCode {
    let args = match Args::try_parse_from(std::iter::once(OsString::from("pi-conform")).chain(args))
    {
        Ok(args) => args,
        Err(error) => {
            // Help and version are asked for; everything else is wrong usage.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::AsExpected
            };
            let _ = error.print();
            return exit.into();
        }
    };
    match dispatch(bundled, args) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            anstream::eprintln!("pi-conform: {failure}");
            failure.exit.into()
        }
    }
}

fn dispatch(bundled: &Bundled, args: Args) -> Result<Exit, Failure> {
    match args.command.unwrap_or(Command::Run(args.run)) {
        Command::Run(args) => run::main(bundled, &args),
        Command::List(args) => list::main(&args),
        Command::Why(args) => why::main(bundled, &args),
        Command::Coverage(args) => coverage::main(&args),
        Command::Lint(args) => lint::main(&args),
        Command::Schema(args) => schema::main(&args),
        Command::Judge(args) => judge::main(&args),
        Command::Report(args) => judge::report(&args),
        Command::Compare(args) => compare::main(&args),
        Command::Merge(args) => merge::main(&args),
        Command::Mutants(args) => mutants::main(bundled, &args),
        Command::Init(args) => init::main(bundled, &args),
        Command::Doctor(args) => doctor::main(bundled, &args),
        Command::Attach(args) => attach::main(bundled, &args),
        Command::Smoke(args) => smoke::main(bundled, &args),
        Command::Baseline(args) => baseline::main(&args),
        Command::Harness(args) => harness::main(&args),
        Command::Explore(args) => explore::main(bundled, &args),
        Command::Scoreboard(args) => scoreboard::main(&args),
        Command::Completions(args) => {
            let mut out = Vec::new();
            clap_complete::generate(args.shell, &mut Args::command(), "pi-conform", &mut out);
            session::print(&out)
        }
    }
}
