//! The suite: scenarios in, verdicts out.

pub mod adapter;
pub mod check;
pub mod evidence;
pub mod scenario;
pub mod stub_provider;
pub mod verdict;
