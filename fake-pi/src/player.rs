//! The player: acts from top to bottom, while Pi's own behaviour goes on beside them.
//!
//! ```text
//!   stdin ──► reader ──┐                        ┌──► Session (what Pi does) ──► records ──► out ──► stdout
//!   signalfd ► signals ├─► Stage (one lock) ────┤
//!   timers ──► clock ──┘     ▲  │ wakes         └──► waiting acts, occasions
//!                            │  ▼
//!                          acts, one after the other
//!                            │ interrupted by an occasion (`on:`)
//!                            └─► its acts instead; what was running is given up
//! ```
//!
//! Four threads share one [`stage::Stage`]. Acts wait only there (for the prompt, a fact, room in the pipe), so an
//! occasion can interrupt them anywhere. Commands and signals that no act takes go to the [`Session`](crate::pi::Session),
//! which answers as the recordings of the real Pi show.

mod acts;
mod choose;
mod events;
mod model;
mod stage;
mod talk;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

use crate::act::Flavour;
use crate::args::{self, Asked};
use crate::journal::{Journal, What};
use crate::{EXIT_BAD_SCRIPT, load, start};

/// Signals that a child catches, whatever it then does about them.
fn caught() -> SigSet {
    let mut set = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ] {
        set.add(signal);
    }
    set
}

/// The program of a child. `argv` begins with the program's own name.
#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "what the real Pi prints before it starts"
)]
pub fn main(argv: Vec<OsString>) -> ExitCode {
    // First of all: what was inherited, before anything is changed or opened.
    let seen = start::look("child", None, &argv);
    let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&caught()), None);
    // A child that dies by SIGSEGV on purpose leaves no core file in somebody's folder.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let arguments: Vec<String> = argv
        .iter()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let folder = match load::folder() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("fake-pi: cannot find its own folder: {error}");
            return ExitCode::from(EXIT_BAD_SCRIPT);
        }
    };
    let script = load::find(&folder);
    let asks_version = arguments
        .iter()
        .any(|arg| arg == "--version" || arg == "-v");
    let flavour = match &script {
        Ok(script) => choose::first_flavour(script),
        Err(_) => Flavour::default(),
    };
    if let (true, Asked::Version(text)) = (asks_version, args::parse(&arguments, flavour)) {
        match flavour {
            Flavour::V1_6_0 => println!("{text}"),
            Flavour::V0_73_1 => eprintln!("{text}"),
        }
        return ExitCode::SUCCESS;
    }
    let journal = match Journal::create(&folder.join("journal"), seen) {
        Ok(journal) => Arc::new(journal),
        Err(error) => {
            eprintln!(
                "fake-pi: cannot write a journal in `{}`: {error}",
                folder.display()
            );
            return ExitCode::from(EXIT_BAD_SCRIPT);
        }
    };
    let script = match script {
        Ok(script) => script,
        Err(report) => {
            journal.write(What::Fault {
                message: report.to_string(),
            });
            eprintln!("fake-pi: {report:?}");
            return ExitCode::from(EXIT_BAD_SCRIPT);
        }
    };
    match args::parse(&arguments, flavour) {
        Asked::Run(args) => acts::play(script, *args, arguments, folder, journal),
        Asked::Version(_) => ExitCode::SUCCESS,
        Asked::Help => {
            println!(
                "fake-pi: a scriptable stand-in for pi; its script lies beside this executable"
            );
            ExitCode::SUCCESS
        }
        Asked::Refused(text) => {
            eprintln!("{text}");
            journal.write(What::Exit {
                code: Some(1),
                signal: None,
            });
            ExitCode::from(1)
        }
    }
}
