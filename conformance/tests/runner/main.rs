//! The runner against small MCP servers written in `sh`: sound ones, and ones with every fault that a harness must survive.

mod bad_subjects;
mod death;
mod leaks;
mod sound;
mod support;
