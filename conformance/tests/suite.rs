//! The scenarios as tests, for `cargo nextest` and `cargo test`: see `conformance::harness`.

fn main() -> std::process::ExitCode {
    conformance::harness::main(env!("CARGO_BIN_EXE_pi-conform"))
}
