//! Runs that were told before, as events again: a file of JSON lines, or bundles that are judged again.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;

use crate::bundle;
use crate::catalogue::Catalogue;
use crate::cli::session::{Beginning, Live, Past, Session};
use crate::cli::{Exit, Failure, session};
use crate::report::events::{FORMAT, MutantSummary, Totals};
use crate::report::{Event, Output, Reporter, Reports, Summary};

/// The events of a file, each with its line.
#[derive(Debug)]
pub struct Stream {
    /// Which file.
    pub path: PathBuf,
    /// The events in their order; the last is a summary.
    pub events: Vec<(usize, Event)>,
}

impl Stream {
    /// Reads a file of JSON lines. What this version does not know is skipped. A run that was cut off gets the summary of what
    /// it has told; a last line without its end is what a crash leaves, and left out.
    ///
    /// # Errors
    /// When it cannot be read, or is not the events of one run in a format that this version reads.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let named = |line: usize, problem: &dyn std::fmt::Display| {
            Failure::usage(format!("{}, line {line}: {problem}", path.display()))
        };
        let unreadable =
            |error: io::Error| Failure::usage(format!("cannot read {}: {error}", path.display()));
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut reader = io::BufReader::new(file);
        let (mut events, mut bytes) = (Vec::new(), Vec::new());
        let mut ended = false;
        for number in 1.. {
            bytes.clear();
            reader.read_until(b'\n', &mut bytes).map_err(unreadable)?;
            if bytes.pop() != Some(b'\n') {
                break;
            }
            if ended {
                return Err(named(
                    number,
                    &"there is more behind the summary; each run has a file of its own, and `pi-conform merge` makes one of several",
                ));
            }
            let not_json = |error: serde_json::Error| {
                let hint = if events.is_empty() {
                    "; a file of JSON lines is what `pi-conform run --format json:FILE` writes"
                } else {
                    ""
                };
                named(number, &format!("no event of a run: {error}{hint}"))
            };
            let raw: Value = serde_json::from_slice(&bytes).map_err(not_json)?;
            let kind = raw["type"].as_str().unwrap_or_default().to_owned();
            match (events.is_empty(), kind.as_str()) {
                (true, "run") => {
                    // The number comes first: what a later format holds beside it may mean nothing to us.
                    let format = raw["format"].as_u64().unwrap_or(0);
                    if format == 0 || format > u64::from(FORMAT) {
                        return Err(named(
                            number,
                            &format!(
                                "format {format}, and this version reads {FORMAT}; use the version that wrote it, or a later one"
                            ),
                        ));
                    }
                }
                (true, _) => {
                    return Err(named(
                        number,
                        &"the first event is no `run`; a file of JSON lines is what `pi-conform run --format json:FILE` writes",
                    ));
                }
                (false, "run") => {
                    return Err(named(
                        number,
                        &"a second run begins; each run has a file of its own, and `pi-conform merge` makes one of several",
                    ));
                }
                (false, "started" | "finished" | "unmatched" | "rounds" | "mutant" | "summary") => {
                }
                // Events are only added within a format.
                (false, _) => continue,
            }
            let event: Event = serde_json::from_slice(&bytes).map_err(|error| {
                named(number, &format!("`{kind}` is not as it should be: {error}"))
            })?;
            ended = matches!(event, Event::Summary(_));
            events.push((number, event));
        }
        if events.is_empty() {
            return Err(Failure::usage(format!(
                "{} holds no events; a file of JSON lines is what `pi-conform run --format json:FILE` writes",
                path.display()
            )));
        }
        if !ended {
            let last = events.last().map_or(0, |(line, _)| *line);
            let summary = summary(events.iter().map(|(_, event)| event));
            events.push((last, Event::Summary(summary)));
        }
        Ok(Self {
            path: path.to_owned(),
            events,
        })
    }
}

/// The summary that follows from events.
pub fn summary<'e>(events: impl Iterator<Item = &'e Event>) -> Totals {
    let (mut run, mut matrix) = (Summary::default(), MutantSummary::default());
    for event in events {
        match event {
            Event::Run { selected, .. } => run.selected = *selected,
            Event::Finished(finished) => {
                run.count(finished.verdict);
                run.flaky += usize::from(finished.flaky);
            }
            Event::Mutant(mutant) => {
                matrix.mutants += 1;
                if mutant.killed {
                    matrix.killed += 1;
                } else {
                    matrix.survived.push(mutant.mutant.clone());
                }
            }
            Event::Started { .. }
            | Event::Unmatched { .. }
            | Event::Rounds(_)
            | Event::Summary(_) => {}
        }
    }
    if matrix.mutants > 0 {
        Totals::Mutants(matrix)
    } else {
        Totals::Run(run)
    }
}

/// The events of one run: of a file of JSON lines, or of bundles.
///
/// # Errors
/// When they are of both sorts, are several files, or cannot be read; also when a baseline is given for what is judged already.
pub fn events(paths: &[PathBuf], baseline: Option<&Path>) -> Result<Vec<Event>, Failure> {
    let (files, folders): (Vec<_>, Vec<_>) = paths.iter().partition(|path| !path.is_dir());
    match (files.as_slice(), folders.as_slice()) {
        ([], _) => judged(paths, baseline),
        ([file], []) => {
            let stream = Stream::read(file)?;
            if baseline.is_some() {
                return Err(Failure::usage(format!(
                    "`--baseline` is for bundles, which are judged now; in {} all is judged already",
                    file.display()
                )));
            }
            Ok(stream.events.into_iter().map(|(_, event)| event).collect())
        }
        ([file, other, ..], []) => Err(Failure::usage(format!(
            "{} and {} are two files; `pi-conform merge` makes one run of several",
            file.display(),
            other.display()
        ))),
        ([file, ..], [folder, ..]) => Err(Failure::usage(format!(
            "{} is a file and {} a folder; a report is of bundles, or of one file of JSON lines",
            file.display(),
            folder.display()
        ))),
    }
}

/// Judges bundles, and folders of bundles, with the checks of today.
///
/// # Errors
/// When a bundle or the baseline cannot be read.
pub fn judged(paths: &[PathBuf], baseline: Option<&Path>) -> Result<Vec<Event>, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let mut folders = Vec::new();
    for path in paths {
        folders.extend(bundles(path)?);
    }
    // One that is named twice, by itself and by its folder, is one.
    let mut met = HashSet::new();
    folders.retain(|folder| met.insert(folder.canonicalize().unwrap_or_else(|_| folder.clone())));
    // All are read before anything is told: a bundle that cannot be read is a wrong argument, not half a report.
    let all = folders
        .iter()
        .map(|folder| {
            bundle::read(folder)
                .map(|evidence| (folder, evidence))
                .map_err(|error| Failure::usage(full(&error)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let kept = Kept::default();
    let reports = Reports(vec![Box::new(kept.clone())]);
    let mut session = Session::new(&catalogue, reports, baseline)?;
    let adapter = all.first().map(|(_, evidence)| &evidence.header.adapter);
    let (name, about) = adapter.map_or(("", ""), |adapter| (&adapter.adapter, &adapter.about));
    session.begin(Beginning {
        subject: name,
        about,
        selected: all.len(),
        jobs: 1,
        ..Beginning::default()
    });
    for (folder, evidence) in &all {
        let verdict = session.judge(evidence);
        let past = Past {
            bundle: Some(folder.display().to_string()),
            ..Past::default()
        };
        session.finish(evidence, &verdict, past);
    }
    let known: Vec<&str> = all
        .iter()
        .map(|(_, evidence)| evidence.header.name.as_str())
        .collect();
    session.end(&known)?;
    Ok(kept.0.take())
}

/// Keeps events.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<Event>>>);

impl Reporter for Kept {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.0.borrow_mut().push(event.clone());
        Ok(())
    }
}

/// Tells events to outputs, and gives the exit code of what they say.
///
/// # Errors
/// When an output cannot be written, or has no form for a kill matrix when they are of one.
pub fn replay(events: &[Event], outputs: &[Output], verbose: bool) -> Result<Exit, Failure> {
    let is_matrix = |event: &Event| matches!(event, Event::Summary(Totals::Mutants(_)));
    if events.iter().any(is_matrix) {
        session::matrix_has_form(outputs)?;
    }
    let reports = session::open_reports(outputs, verbose, Live::No)?;
    let catalogue = Catalogue::default();
    let mut session = Session::new(&catalogue, reports, None)?;
    for event in events {
        session.tell(event);
    }
    session.close()?;
    let unmatched = events
        .iter()
        .filter(|event| matches!(event, Event::Unmatched { .. }))
        .count();
    Ok(match events.last() {
        Some(Event::Summary(Totals::Run(summary))) => Exit::of(summary, unmatched, false),
        Some(Event::Summary(Totals::Mutants(summary)))
            if summary.survived.is_empty() && summary.sound_accused.is_empty() =>
        {
            Exit::AsExpected
        }
        Some(Event::Summary(Totals::Mutants(_))) => Exit::Failures,
        _ => Exit::Incomplete,
    })
}

/// A bundle, or the bundles in a folder of them.
fn bundles(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_bundle = |path: &Path| path.join("bundle.json").is_file();
    if is_bundle(path) || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let named = |error: io::Error| {
        Failure::usage(format!(
            "cannot read the folder {}: {error}",
            path.display()
        ))
    };
    let mut inside = Vec::new();
    for entry in std::fs::read_dir(path).map_err(named)? {
        let path = entry.map_err(named)?.path();
        if is_bundle(&path) {
            inside.push(path);
        }
    }
    inside.sort();
    if inside.is_empty() {
        inside.push(path.to_owned());
    }
    Ok(inside)
}

/// An error with what caused it.
fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += &format!(": {cause_text}");
        }
        source = cause.source();
    }
    text
}
