//! Load on purpose: a helper process whose threads do nothing but keep the cores busy (`--under-load`).
//!
//! It is the same executable under another word, and lives no longer than the one that started it: it ends when its standard
//! input does, and that pipe's other end is closed with the starter, however this ends.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

/// The argument that makes the executable the helper.
pub const WORD: &str = "spin-while-input-is-open";

/// The helper itself.
pub fn main() -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for _ in 0..cores {
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    // Nothing is ever written to it: reading ends when the starter has gone.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}

/// The helper as seen by its starter; it ends with this value.
#[derive(Debug)]
pub struct Spin(Child);

impl Spin {
    /// Starts the helper.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(executable: &Path) -> std::io::Result<Self> {
        Command::new(executable)
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
    }
}

impl Drop for Spin {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It has nothing to end; what does not work here would not work better a second time.
        let _ = self.0.wait();
    }
}
