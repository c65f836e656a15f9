//! A scriptable stand-in for `pi`: exact wire format, controlled misbehaviour.
//!
//! ```text
//!  script beside the executable ─► load ─► player ──► pi::Session ──► records ─► out ─► stdout
//!  argv, stdin, signals ─────────────────►   │  (what Pi would do)                 (cuts, bursts)
//!                                            ├─► descendants, exit, streams: what goes wrong on purpose
//!                                            └─► journal: what this process saw, line by line
//! ```
//!
//! | module | subject |
//! |---|---|
//! | [`act`] | the act language |
//! | [`load`] | finding and reading the script |
//! | [`args`] | Pi's command line |
//! | [`pi`] | Pi's behaviour on the wire, a pure function |
//! | [`player`] | acts in order, and what interrupts them |
//! | [`out`] | standard output: one writer, in the wanted pieces |
//! | [`descendant`] | processes below the child |
//! | [`journal`], [`start`] | the witness |

use std::ffi::OsString;
use std::process::ExitCode;

pub mod act;
pub mod args;
mod content;
pub mod descendant;
pub mod journal;
pub mod load;
pub mod out;
pub mod pi;
pub mod player;
mod reply;
pub mod start;

/// Exit code when the script beside the executable is missing or wrong.
pub const EXIT_BAD_SCRIPT: u8 = 70;

/// The whole program. `args` begins with the program's own name.
pub fn main(args: Vec<OsString>) -> ExitCode {
    match args.get(1).and_then(|arg| arg.to_str()) {
        Some(descendant::FLAG) => descendant::main(&args[2..]),
        Some("--check-script") => load::check(&args[2..]),
        Some("--schema") => load::print_schema(args.get(2).and_then(|name| name.to_str())),
        _ => player::main(args),
    }
}
