//! The suite: scenarios in, verdicts out.

pub mod adapter;
pub mod baseline;
pub mod bundle;
pub mod catalogue;
pub mod check;
pub mod cli;
pub mod clock;
pub mod compare;
pub mod contract;
pub mod coverage;
pub mod doctor;
pub mod draft;
pub mod evidence;
pub mod harness;
pub mod kill_matrix;
pub mod proc;
pub mod report;
pub mod runner;
pub mod sandbox;
pub mod scenario;
pub mod smoke;
pub mod spin;
pub mod stub_provider;
pub mod verdict;
pub mod warden;
pub mod yaml;
