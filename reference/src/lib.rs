//! A delegator that keeps every promise.

pub mod config;
pub mod profile;
