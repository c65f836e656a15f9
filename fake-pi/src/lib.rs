//! A scriptable stand-in for `pi`.

pub mod act;
pub mod journal;
pub mod pi;
