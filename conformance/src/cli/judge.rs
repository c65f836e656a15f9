//! `judge`: bundles again, with the checks of today.

use std::path::{Path, PathBuf};

use crate::bundle;
use crate::catalogue::Catalogue;
use crate::cli::args::Judge;
use crate::cli::session::{Live, Session};
use crate::cli::{Exit, Failure};

/// Runs the command.
pub fn main(args: &Judge) -> Result<Exit, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let mut folders = Vec::new();
    for path in &args.bundles {
        folders.extend(bundles(path)?);
    }
    // All are read before anything is told: a bundle that cannot be read is a wrong argument, not half a report.
    let all = folders
        .iter()
        .map(|folder| {
            bundle::read(folder)
                .map(|evidence| (folder, evidence))
                .map_err(|error| Failure::usage(full(&error)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut session = Session::open(
        &catalogue,
        &args.format,
        args.baseline.as_deref(),
        args.verbose,
        Live::No,
    )?;
    let adapter = all.first().map(|(_, evidence)| &evidence.header.adapter);
    let (name, about) = adapter.map_or(("", ""), |adapter| (&adapter.adapter, &adapter.about));
    session.begin(name, about, all.len(), 1);
    for (folder, evidence) in &all {
        let verdict = session.judge(evidence);
        session.finish(evidence, &verdict, Some(folder.display().to_string()), 0);
    }
    let known: Vec<&str> = all
        .iter()
        .map(|(_, evidence)| evidence.header.name.as_str())
        .collect();
    session.end(&known)
}

/// A bundle, or the bundles in a folder of them.
fn bundles(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_bundle = |path: &Path| path.join("bundle.json").is_file();
    if is_bundle(path) || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let named = |error: std::io::Error| {
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
