//! Texts of others, made harmless: what a subject wrote can hold anything.

use std::fmt::Write as _;

use crate::report::Finished;
use crate::verdict::{CheckVerdict, Verdict};

/// A text in which characters that are not seen, or that turn the order of others round, stand as `␛` or `‹U+202E›`.
/// Line feeds and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            // The pictures of control characters lie in their order.
            '\0'..='\u{1f}' => {
                shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'));
            }
            '\u{7f}' => shown.push('␡'),
            c if hidden(c) => {
                // Writing to a text cannot fail.
                let _ = write!(shown, "‹U+{:04X}›", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Controls, marks of direction, what has no width, and what is no character at all.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// A text on one line.
pub fn line(text: &str) -> String {
    visible(text)
        .replace('\n', "⏎")
        .replace('\t', " ")
        .trim()
        .to_owned()
}

/// Checks that decided the scenario's verdict; all that are not a pass when none has just that verdict.
pub fn deciding(finished: &Finished) -> Vec<&CheckVerdict> {
    let same: Vec<_> = finished
        .checks
        .iter()
        .filter(|check| check.verdict == finished.verdict)
        .collect();
    if !same.is_empty() {
        return same;
    }
    let wrong = |check: &&CheckVerdict| check.verdict > Verdict::Pass;
    finished.checks.iter().filter(wrong).collect()
}

/// `1 scenario`, `2 scenarios`.
pub fn count(number: usize, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}
