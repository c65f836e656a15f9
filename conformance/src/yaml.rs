//! YAML in, types out, and for what is wrong: file, line, column, and the nearest right word.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use serde::de::DeserializeOwned;

/// What is wrong in a YAML file, with the place.
#[derive(Debug)]
pub struct YamlError {
    message: String,
    help: Option<String>,
    label: Option<LabeledSpan>,
    source: NamedSource<String>,
    line: u64,
    column: u64,
}

/// Reads a document; `file` is its name for people.
///
/// # Errors
/// When it is no YAML, or not of the wanted shape.
pub fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Box<YamlError>> {
    serde_saphyr::from_str(text).map_err(|error| Box::new(YamlError::new(file, text, &error)))
}

impl YamlError {
    fn new(file: &str, text: &str, error: &serde_saphyr::Error) -> Self {
        let error = error.without_snippet();
        let (message, help) = words(error);
        let location = error.location();
        let (line, column) = location.map_or((1, 1), |at| (at.line(), at.column()));
        let label = location.map(|at| {
            let span = at.span();
            let offset = span
                .byte_offset()
                .unwrap_or_else(|| byte_of(text, line, column));
            let len = span.byte_len().unwrap_or(1).max(1);
            LabeledSpan::new(Some("here".into()), offset as usize, len as usize)
        });
        Self {
            message,
            help,
            label,
            source: NamedSource::new(file, text.to_owned()),
            line,
            column,
        }
    }

    /// An error that a reader of the parsed document found at a place of its text (byte offset and length).
    pub fn at(
        file: &str,
        text: &str,
        message: String,
        help: Option<String>,
        offset: usize,
    ) -> Self {
        let before = &text[..offset.min(text.len())];
        Self {
            message,
            help,
            label: Some(LabeledSpan::new(Some("here".into()), offset, 1)),
            source: NamedSource::new(file, text.to_owned()),
            line: before.matches('\n').count() as u64 + 1,
            column: before.len() as u64 - before.rfind('\n').map_or(0, |at| at as u64 + 1) + 1,
        }
    }
}

/// The message, and what to write instead.
fn words(error: &serde_saphyr::Error) -> (String, Option<String>) {
    match error {
        serde_saphyr::Error::SerdeUnknownField {
            field, expected, ..
        } => (
            format!("there is no key `{field}`"),
            Some(suggestion(field, expected)),
        ),
        serde_saphyr::Error::SerdeUnknownVariant {
            variant, expected, ..
        } => (
            format!("there is no `{variant}`"),
            Some(suggestion(variant, expected)),
        ),
        serde_saphyr::Error::SerdeMissingField { field, .. } => {
            (format!("the key `{field}` is missing"), None)
        }
        other => {
            let text = other.render();
            let text = text.split(" at line ").next().unwrap_or(&text);
            (text.trim().trim_end_matches('.').to_owned(), None)
        }
    }
}

/// `did you mean …` when something is near, else everything that may stand there.
pub fn suggestion(word: &str, expected: &[&str]) -> String {
    match nearest(word, expected.iter().copied()) {
        Some(right) => format!("did you mean `{right}`?"),
        None => format!("write one of {}", expected.join(", ")),
    }
}

/// The word that looks most like `word`, if one looks like it at all.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known
        .into_iter()
        .map(|right| (strsim::jaro_winkler(word, right), right));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.75).then_some(best.1)
}

/// Where a place of a parsed document stands in its text, in bytes.
pub fn offset(text: &str, at: serde_saphyr::Location) -> usize {
    let offset = at.span().byte_offset();
    offset.unwrap_or_else(|| byte_of(text, at.line(), at.column())) as usize
}

fn byte_of(text: &str, line: u64, column: u64) -> u64 {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1) as usize)
        .map(str::len)
        .sum();
    let within = text[start..]
        .chars()
        .take(column.saturating_sub(1) as usize)
        .map(char::len_utf8)
        .sum::<usize>();
    (start + within) as u64
}

/// Byte offset of a place in the text: the keys of the path are followed downwards, then the wrong word is looked for.
pub fn find(text: &str, path: &[String], word: Option<&str>) -> usize {
    let mut at = 0;
    for key in path.iter().map(String::as_str).chain(word) {
        if let Some(step) = key.strip_prefix('[').and_then(|key| key.strip_suffix(']')) {
            // The place in a list: that many dashes at the first dash's indent.
            let number = step.parse().unwrap_or(0);
            at = item(text, at, number).unwrap_or(at);
        } else if let Some(found) = word_at(text, at, key) {
            at = found;
        } else if Some(key) == word {
            at = word_at(text, 0, key).unwrap_or(at);
        }
    }
    at
}

/// Where `word` stands as a whole word from `from` on.
fn word_at(text: &str, from: usize, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text[from..]
        .match_indices(word)
        .map(|(at, _)| from + at)
        .find(|&at| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// Where the `number`-th item of the block list that begins after `from` stands.
fn item(text: &str, from: usize, number: usize) -> Option<usize> {
    let mut indent = None;
    let mut seen = 0;
    let mut start = text[from..].find('\n').map(|at| from + at + 1)?;
    for line in text[start..].split_inclusive('\n') {
        let blanks = line.len() - line.trim_start().len();
        if line.trim_start().starts_with("- ") && *indent.get_or_insert(blanks) == blanks {
            if seen == number {
                return Some(start + blanks);
            }
            seen += 1;
        }
        start += line.len();
    }
    None
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            message,
            line,
            column,
            ..
        } = self;
        write!(f, "{}:{line}:{column}: {message}", self.source.name())
    }
}

impl std::error::Error for YamlError {}

impl Diagnostic for YamlError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = self.label.clone()?;
        Some(Box::new(std::iter::once(label)))
    }
}
