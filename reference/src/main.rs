//! The `delegate` program. All of it is in the library, so that other executables can become it.

use std::process::ExitCode;

fn main() -> ExitCode {
    reference::main(std::env::args_os().collect())
}
