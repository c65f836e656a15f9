//! The options of the commands that read what runs have told: `report`, `compare`, `merge`.

use std::path::PathBuf;

use super::args::Style;
use crate::report::Output;

/// `report`.
#[derive(Debug, Clone, clap::Args)]
pub struct Report {
    /// A file that `run --format json:FILE` has written, or bundles: folders that a run has kept, or folders of such.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// As with `run`.
    #[arg(long, value_name = "FORMAT[:FILE]")]
    pub format: Vec<Output>,
    /// Known failures of the subject; for bundles, which are judged again.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// As with `run`.
    #[arg(short, long)]
    pub verbose: bool,
}

/// `compare`.
#[derive(Debug, Clone, clap::Args)]
pub struct Compare {
    /// The run before: a file of JSON lines, or a folder of bundles.
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The run now, likewise.
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Lines for people, or one JSON object.
    #[arg(long, value_enum, default_value_t)]
    pub format: Style,
}

/// `merge`.
#[derive(Debug, Clone, clap::Args)]
pub struct Merge {
    /// Files that `run --format json:FILE` has written: parts of one run on one subject.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// As with `run`; default: json.
    #[arg(long, value_name = "FORMAT[:FILE]")]
    pub format: Vec<Output>,
    /// As with `run`.
    #[arg(short, long)]
    pub verbose: bool,
}
