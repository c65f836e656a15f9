//! The runner against small MCP servers written in `sh`: sound ones, and ones with every fault that a harness must survive.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_subjects;
mod death;
mod leaks;
mod sound;
mod support;
