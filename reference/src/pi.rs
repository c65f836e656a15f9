//! One child, run to its outcome.
//!
//! ```text
//!  bytes ─► framing ─► wire ─► run ─► effects ─► pump ─► stdin, signals, settlement
//!                               └► answer
//! ```
//!
//! `framing`, `wire`, `answer` and `run` are pure: no clock, no process, no runtime. `pump` is the one loop that feeds
//! them and does what they want; `child` starts, `table` looks, and only `group` sends signals. `guardian` is what ends
//! the trees when this program is killed.

pub mod answer;
pub mod child;
pub mod framing;
pub mod group;
pub mod guardian;
pub mod outcome;
pub mod pump;
pub mod run;
pub mod seam;
pub mod table;
pub mod wire;

pub use outcome::{Cause, Cleanup, Exit, Launch, Limits, Outcome, Update, Why};
pub use pump::{Stop, run};
