//! A stand-in for pi.
fn main() {}
