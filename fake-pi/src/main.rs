//! The program `fake-pi`; all of it is in the library, so that other executables can become it.

use std::process::ExitCode;

fn main() -> ExitCode {
    fake_pi::main(std::env::args_os().collect())
}
