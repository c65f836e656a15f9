//! Reports: siblings that read the same events and nothing else.
//!
//! [`events`] is the format. A new reporter is a new file here and a word in [`Format`]; nothing else changes.

mod badge;
pub mod events;
pub mod gathered;
mod github;
mod html;
mod human;
mod json;
mod junit;
mod markdown;
mod progress;
pub mod scoreboard;
mod svg;
mod tap;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

pub use badge::Badge;
pub use events::{Attempt, Event, Finished, Narrowed, Rounds, Summary, Tally};
pub use github::Github;
pub use html::Html;
pub use human::Human;
pub use json::Json;
pub use junit::Junit;
pub use markdown::Markdown;
pub use progress::{Plain, Progress};
pub use tap::Tap;

use crate::check::words::nearest;

/// Something that tells events to someone.
pub trait Reporter {
    /// Takes the next event. The last one is [`Event::Summary`].
    ///
    /// # Errors
    /// When its destination cannot be written.
    fn event(&mut self, event: &Event) -> io::Result<()>;
}

/// The formats that reports come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Human,
    /// JSON lines: the events as they are.
    Json,
    /// JUnit XML, for CI servers.
    Junit,
    /// TAP 14, for harnesses that read it.
    Tap,
    /// Annotations of a GitHub workflow.
    Github,
    /// A table and the failures, for a job's summary.
    Markdown,
    /// What a badge shows.
    Badge,
    /// A page that holds all, with pictures.
    Html,
}

const FORMATS: [(&str, Format); 8] = [
    ("human", Format::Human),
    ("json", Format::Json),
    ("junit", Format::Junit),
    ("tap", Format::Tap),
    ("github", Format::Github),
    ("markdown", Format::Markdown),
    ("badge", Format::Badge),
    ("html", Format::Html),
];

impl Format {
    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        let found = FORMATS.iter().find(|(_, format)| *format == self);
        found.map_or("", |(word, _)| word)
    }

    /// It has a form for a kill matrix, not only for a run.
    pub fn tells_a_matrix(self) -> bool {
        matches!(
            self,
            Self::Human | Self::Json | Self::Markdown | Self::Badge
        )
    }
}

/// The words of some formats: `a, b and c`.
pub fn format_words(wanted: impl Fn(Format) -> bool) -> String {
    let words: Vec<&str> = FORMATS
        .iter()
        .filter(|(_, format)| wanted(*format))
        .map(|(word, _)| *word)
        .collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}

/// `FORMAT` or `FORMAT:FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// In which format.
    pub format: Format,
    /// Where to; standard output if absent.
    pub file: Option<PathBuf>,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, file) = text
            .split_once(':')
            .map_or((text, None), |(word, file)| (word, Some(file)));
        let Some((_, format)) = FORMATS.iter().find(|(name, _)| *name == word) else {
            let near = nearest(word, FORMATS.iter().map(|(name, _)| *name));
            let near = near.map_or(String::new(), |word| format!("; nearest is `{word}`"));
            let all = format_words(|_| true);
            return Err(format!("`{word}` is no format; there are {all}{near}"));
        };
        match file {
            Some("") => Err(format!("`{text}` names no file after the colon")),
            file => Ok(Self {
                format: *format,
                file: file.map(PathBuf::from),
            }),
        }
    }
}

/// A reporter for an output. `verbose` tells passes too.
///
/// # Errors
/// When the file cannot be made.
pub fn reporter(output: &Output, verbose: bool) -> io::Result<Box<dyn Reporter>> {
    let named = |error: io::Error, path: &PathBuf| {
        io::Error::new(
            error.kind(),
            format!("cannot write the report {}: {error}", path.display()),
        )
    };
    let file = match &output.file {
        None => None,
        Some(path) => Some(std::fs::File::create(path).map_err(|error| named(error, path))?),
    };
    let human = output.format == Format::Human;
    let out: Box<dyn Write> = match file {
        None if human => Box::new(anstream::AutoStream::auto(io::stdout())),
        None => Box::new(io::stdout()),
        Some(file) if human => Box::new(anstream::StripStream::new(file)),
        Some(file) => Box::new(file),
    };
    Ok(match output.format {
        Format::Human => Box::new(Human::new(out, verbose)),
        Format::Json => Box::new(Json::new(out)),
        Format::Junit => Box::new(Junit::new(out)),
        Format::Tap => Box::new(Tap::new(out)),
        Format::Github => Box::new(Github::new(out)),
        Format::Markdown => Box::new(Markdown::new(out)),
        Format::Badge => Box::new(Badge::new(out)),
        Format::Html => Box::new(Html::new(out)),
    })
}

/// Tells each event to several reporters.
#[derive(Default)]
pub struct Reports(pub Vec<Box<dyn Reporter>>);

impl Reporter for Reports {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        // One that cannot write keeps nothing from the others.
        let mut told = Ok(());
        for reporter in &mut self.0 {
            told = told.and(reporter.event(event));
        }
        told
    }
}
