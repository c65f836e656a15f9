//! One child, run to its outcome.
//!
//! ```text
//!  bytes ─► framing ─► wire ─► run ─► effects ─► pump ─► stdin, signals, settlement
//!                               └► answer
//! ```
//!
//! `framing`, `wire`, `answer` and `run` are pure: no clock, no process, no runtime. `pump` is the one loop that feeds
//! them and does what they want; `child` starts, and only `group` sends signals.

pub mod answer;
pub mod child;
pub mod framing;
pub mod group;
pub mod outcome;
pub mod pump;
pub mod run;
pub mod seam;
pub mod wire;

pub use outcome::{Cause, Cleanup, Exit, Launch, Limits, Outcome, Update, Why};
pub use pump::{Stop, run};
