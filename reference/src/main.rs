//! The `delegate` program. All of it is in the library, so that other executables can become it.
fn main() {}
