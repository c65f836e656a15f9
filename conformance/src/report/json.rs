//! JSON lines: the events as they are.

use std::io::{self, Write};

use crate::report::{Event, Reporter};

/// Writes each event as one line, at once, so that a run which is cut off loses nothing that it has told.
pub struct Json<W>(W);

impl<W: Write> Json<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self(out)
    }
}

impl<W: Write> Reporter for Json<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.0.write_all(&line)?;
        self.0.flush()
    }
}
