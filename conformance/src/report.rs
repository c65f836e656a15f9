//! Reports: siblings that read the same events and nothing else.
//!
//! [`events`] is the format. A new reporter is a new file here and a word in [`Format`]; nothing else changes.

pub mod events;
mod human;
mod json;
mod junit;
mod progress;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

pub use events::{Event, Finished, Summary};
pub use human::Human;
pub use json::Json;
pub use junit::Junit;
pub use progress::{Plain, Progress};

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
}

const FORMATS: [(&str, Format); 3] = [
    ("human", Format::Human),
    ("json", Format::Json),
    ("junit", Format::Junit),
];

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
            return Err(format!(
                "`{word}` is no format; there are human, json and junit{near}"
            ));
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
    Ok(match (output.format, file) {
        (Format::Human, None) => Box::new(Human::new(
            anstream::AutoStream::auto(io::stdout()),
            verbose,
        )),
        (Format::Human, Some(file)) => {
            Box::new(Human::new(anstream::StripStream::new(file), verbose))
        }
        (Format::Json, None) => Box::new(Json::new(io::stdout())),
        (Format::Json, Some(file)) => Box::new(Json::new(file)),
        (Format::Junit, None) => Box::new(Junit::new(io::stdout())),
        (Format::Junit, Some(file)) => Box::new(Junit::new(file)),
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
