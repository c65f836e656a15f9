//! The `delegate` program. Everything is in the library, so that other executables can become it.
fn main() {}
