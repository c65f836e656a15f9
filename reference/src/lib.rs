//! A delegator that keeps every promise.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

pub mod cli;
pub mod config;
pub mod dialect;
pub mod mcp;
pub mod pi;
pub mod profile;
pub mod session;
pub mod signals;

pub use cli::main_with;

/// The whole `delegate` program, without a twist. `args` begin with the name that it was started under.
pub fn main(args: Vec<OsString>) -> ExitCode {
    main_with(args, Arc::new(pi::seam::Sound))
}
