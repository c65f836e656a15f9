//! A delegator that keeps every promise.

pub mod config;
pub mod profile;
pub mod session;
pub mod signals;
