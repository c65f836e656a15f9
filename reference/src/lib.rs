//! A delegator that keeps every promise: it hands a task to a fresh child `pi` and brings the answer back, once, in
//! bounded time, and leaves nothing behind.
//!
//! ```text
//!  MCP client ─► mcp ─┐                                                 ┌─► result: object and text
//!                     ├─► dialect: check the request ─► pi: run a child ─┤
//!  people ─────► cli ─┘       ▲                          │  ▲           └─► updates: progress
//!                    session, config, profile            ▼  │
//!                                              stdin, signals  records, exit, time
//! ```
//!
//! # Theory of operation
//!
//! A run asks two questions, one after the other. *Why does it end?* There are a dozen causes; the first that comes holds,
//! and nothing that happens later changes it. *What is left?* The tree is asked to go, then forced, each step within a
//! bound; what is found there is told beside the cause. Both questions are answered by one pure machine ([`pi::run`]) that
//! is told what happened and when, and says what is to be done. So each race is a row of a table, and no test waits.
//!
//! Around the machine lie a framer that looks at each byte once ([`pi::framing`]), a tolerant view of Pi's records
//! ([`pi::wire`]), one loop that does what the machine wants ([`pi::pump`]), and the only place that sends signals
//! ([`pi::group`]). A mutant of the conformance suite twists what passes between the machine and the loop
//! ([`pi::seam`]); the sound program twists nothing.
//!
//! # What always holds
//!
//! - Every wait after the first cause has a bound, and every buffer has a named one.
//! - A signal goes to a process that was started here and is still that process, or to nobody.
//! - Nothing runs between fork and exec; children have descriptors 0 to 2, a clean signal state and a group of their own.
//! - A child's tree is more than its group: what fled to a session of its own is found by descent, adoption and the run's
//!   mark in its environment, and ended too.
//! - If this program is killed, its [`pi::guardian`] ends what it had running.
//!
//! This crate uses nothing of the suite's. A judge that shares code with the judged shares its faults.

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
