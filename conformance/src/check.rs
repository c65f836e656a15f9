//! Checks: pure functions from evidence to verdicts.
//!
//! ```text
//!  "a.signals"  ──paths──►  Path ──calls, children, whole, tools──►  Sight (label, witness, look)  ─┐
//!  "call.settles" ─paths──► Path ──facts──────────────────────────►  Fact (two bounds on one clock) ─┼─► judge ─► CheckVerdict
//!  {within: grace}          matcher, timing, expr (figures and settings)  ──────────────────────────┘
//! ```
//!
//! A look ends in one of three ways that stay apart to the end: something is there, it is absent from a thing that was seen,
//! or nothing was seen that could have carried it. Only the first two are judged; the third is `no-evidence`, never a pass.
//! Nothing here reads a clock, a file or the environment.

pub mod applies;
pub mod calls;
pub mod children;
pub mod expr;
pub mod extract;
pub mod facts;
pub mod handshake;
mod invariants;
mod judge;
pub mod kind;
pub mod matcher;
pub mod paths;
pub mod picture;
pub mod sight;
pub mod story;
#[cfg(test)]
mod tests;
pub mod timing;
pub mod tools;
mod validate;
pub mod whole;
pub mod words;
pub mod world;

pub use applies::inapplicable;
pub use invariants::INVARIANTS;
pub use judge::{ids, judge};
pub use paths::Names;
pub use validate::{CheckError, validate};
