//! Lists of things that are right, wrong or open, one a line: what `smoke` and `doctor` print.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

/// What a line says about its thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It is right.
    Right,
    /// It is wrong.
    Wrong,
    /// It is neither: not needed, or not looked at.
    Open,
}

impl Mark {
    fn sign(self) -> (&'static str, Style) {
        match self {
            Self::Right => ("✓", AnsiColor::Green.on_default()),
            Self::Wrong => ("✗", AnsiColor::Red.on_default()),
            Self::Open => ("–", AnsiColor::BrightBlack.on_default()),
        }
    }
}

/// Appends a line, `✓ name  says`, and what to do about it below.
pub fn line(out: &mut String, mark: Mark, name: &str, says: &str, help: Option<&str>) {
    let (sign, style) = mark.sign();
    // Writing to a text cannot fail.
    let _ = writeln!(out, "{style}{sign}{style:#} {name:<12} {says}");
    if let Some(help) = help {
        let _ = writeln!(out, "  {:<12} → {help}", "");
    }
}
