//! Framing beside peers.
fn main() {}
