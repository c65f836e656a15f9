//! Generated scenarios: random children and callers, judged by what holds for any delegator.
//!
//! ```text
//!  seed ─► generate ─► Case ─► write ─► Scenario ─► runner ─► judge ─► a finding? ─► shrink ─► a file
//!                       └► predict: what an honest delegator may say of it
//! ```
//!
//! A case is data; what a delegator may claim about it is predicted from the case alone, and becomes ordinary checks of the scenario.
//! So a finding is a scenario file that says by itself what is wrong.

mod case;
mod generate;
mod predict;
mod shrink;
mod write;

pub use case::{Abort, Call, Case, Chop, Descendant, Ending, Noise};
pub use generate::{Trees, case_of, strategy};
pub use predict::{Prediction, predict};
pub use shrink::{Shrunk, shrink};
pub use write::{planned, yaml};
