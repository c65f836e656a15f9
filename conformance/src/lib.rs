//! The suite: scenarios in, verdicts out.

pub mod adapter;
pub mod evidence;
pub mod scenario;
pub mod verdict;
