//! The options, as clap takes them.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::author_args::{Attach, Doctor, Init, Smoke};
use super::partition::Partition;
use super::report_args::{Compare, Merge, Report};
use crate::report::Output;

/// Runs YAML scenarios against a Pi delegator, watches it with three witnesses, judges, reports.
///
/// Without a command it runs: `pi-conform` alone runs every scenario on the bundled reference.
#[derive(Debug, Parser)]
#[command(
    name = "pi-conform",
    version,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub struct Args {
    /// What to do; default: run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `run`.
    #[command(flatten)]
    pub run: Run,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run scenarios against a subject and judge them (the default).
    Run(Run),
    /// List scenarios.
    List(List),
    /// Say what a requirement is, and which scenarios, tests and mutants show it.
    Why(Why),
    /// Show which requirements are shown by what.
    Coverage(Coverage),
    /// Look scenarios over without running them.
    Lint(Lint),
    /// Print the JSON schema of one of the formats.
    Schema(Schema),
    /// Judge bundles again, without running anything.
    Judge(Judge),
    /// Make reports, in any format, of a run that is over.
    Report(Report),
    /// Compare two runs: newly failing first.
    Compare(Compare),
    /// Make one run of several that were parts of it.
    Merge(Merge),
    /// Run the broken delegators: who catches whom.
    Mutants(Mutants),
    /// Write a first adapter for a delegator, from what it says of itself.
    Init(Init),
    /// Say what a run needs of this machine: what is there, what is missing, what brings it.
    Doctor(Doctor),
    /// Look whether an adapter is right, apart from the delegator.
    Smoke(Smoke),
    /// Lay a scenario out for a subject that is started by hand, under a debugger say.
    Attach(Attach),
    /// Expectations: bring a list of known failures up to date.
    Baseline(Baseline),
    /// The scenarios as tests of Rust's own harness, for `cargo nextest` and the like.
    Harness(Harness),
    /// Make random scenarios, run them, and make what is found as small as it gets.
    Explore(Explore),
    /// Make one document out of the results of several subjects.
    Scoreboard(Scoreboard),
    /// Print a completion script for a shell.
    Completions(Completions),
}

/// Which scenarios.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Which {
    /// Names of scenarios: plain, with axis values, as AREA/NAME, or patterns with `*`.
    #[arg(value_name = "SCENARIO")]
    pub names: Vec<String>,
    /// Only scenarios that show this requirement (also a pattern, such as `drain.*`).
    #[arg(long, value_name = "ID")]
    pub requirement: Vec<String>,
    /// Only scenarios of this area.
    #[arg(long, value_name = "AREA")]
    pub area: Vec<String>,
    /// Scenario files or folders in place of those that the program carries.
    #[arg(long = "scenarios", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Only one part of the selection: `hash:M/N` by name, whatever else is selected, or `count:M/N` by number; M counts from 1.
    #[arg(long, value_name = "hash:M/N")]
    pub partition: Option<Partition>,
    /// Only scenarios of this version of the contract: a list that is frozen.
    #[arg(long, value_name = "VERSION")]
    pub contract: Option<u32>,
}

/// Which subject.
#[derive(Debug, Clone, clap::Args)]
pub struct Subject {
    /// Adapter: one that the program carries, or a YAML file.
    #[arg(long, value_name = "NAME|FILE", default_value = "reference-delegator")]
    pub adapter: String,
    /// Working copy of the subject's source, for an adapter that asks for one.
    #[arg(long, value_name = "DIR")]
    pub checkout: Option<PathBuf>,
    /// Folder below which npm packages lie; default: $PI_CONFORM_PACKAGES, else a folder in the user's cache.
    #[arg(long, value_name = "DIR")]
    pub packages: Option<PathBuf>,
}

impl Default for Subject {
    fn default() -> Self {
        Self {
            adapter: "reference-delegator".to_owned(),
            checkout: None,
            packages: None,
        }
    }
}

/// `run`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Run {
    /// Which scenarios.
    #[command(flatten)]
    pub which: Which,
    /// Which subject.
    #[command(flatten)]
    pub subject: Subject,
    /// So many scenarios at once; default by the number of cores.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Report in this format, to standard output or to a file: human, json, junit, tap,
    /// github, markdown, badge, html. May be given several times.
    #[arg(long, value_name = "FORMAT[:FILE]")]
    pub format: Vec<Output>,
    /// Known failures of the subject.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write what this run shows into the baseline; the run itself is judged by the baseline as it was.
    #[arg(long, requires = "baseline")]
    pub update: bool,
    /// Do without capabilities that the adapter declares: a YAML list with a reason each.
    #[arg(long, value_name = "FILE")]
    pub capabilities: Option<PathBuf>,
    /// Keep the evidence of every scenario, and the folders that they ran in; else only that of failures.
    #[arg(long)]
    pub keep: bool,
    /// Where bundles are written; default: a new folder below the system's temporary one.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only scenarios that were not as expected in the last run with the same `--out`.
    #[arg(long)]
    pub failed: bool,
    /// Run the selection so often.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Run the selection again and again, each time in another order, until so many seconds are over; at least once.
    #[arg(long, value_name = "SECONDS", conflicts_with = "repeat", value_parser = clap::value_parser!(u64).range(1..))]
    pub stress: Option<u64>,
    /// With several rounds: begin nothing more when a scenario was not as expected.
    #[arg(long)]
    pub until_fail: bool,
    /// What the order of each round is made from; with `--stress` it is told and new each time, else the order is the written one.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run a scenario that fails again, by itself, up to so often. One that then passes is flaky.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retries: u32,
    /// What a flaky scenario counts as. It is told as flaky either way.
    #[arg(long, value_enum, value_name = "fail|pass", default_value_t)]
    pub flaky: Flaky,
    /// Keep every core busy meanwhile.
    #[arg(long)]
    pub under_load: bool,
    /// Tell every scenario, not only those that are not as expected.
    #[arg(short, long)]
    pub verbose: bool,
}

/// What a flaky scenario counts as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Flaky {
    /// As a failure.
    #[default]
    Fail,
    /// As a pass.
    Pass,
}

/// Output of the commands that have no run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// For people.
    #[default]
    Human,
    /// JSON.
    Json,
}

/// `list`.
#[derive(Debug, Clone, clap::Args)]
pub struct List {
    /// Which scenarios.
    #[command(flatten)]
    pub which: Which,
    /// For which subject axes are expanded.
    #[command(flatten)]
    pub subject: Subject,
    /// Names alone or JSON lines.
    #[arg(long, value_enum, default_value_t)]
    pub format: Style,
    /// What there is to list.
    #[arg(long, value_enum, default_value_t)]
    pub what: Listed,
}

/// What `list` lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Scenarios with their axis values.
    #[default]
    Scenarios,
    /// Areas of the catalogue.
    Areas,
    /// Adapters that the program carries.
    Adapters,
    /// Names of scenarios and ids of their checks, as the next frozen list of the contract.
    Contract,
}

/// `why`.
#[derive(Debug, Clone, clap::Args)]
pub struct Why {
    /// A requirement's id.
    #[arg(value_name = "ID")]
    pub id: String,
}

/// `coverage`.
#[derive(Debug, Clone, clap::Args)]
pub struct Coverage {
    /// A table, or one JSON object.
    #[arg(long, value_enum, default_value_t)]
    pub format: Style,
    /// Only requirements of this tier.
    #[arg(long, value_name = "TIER")]
    pub tier: Option<String>,
    /// Only requirements that bind this system.
    #[arg(long, value_name = "SYSTEM")]
    pub system: Option<String>,
    /// Only requirements of this area.
    #[arg(long, value_name = "AREA")]
    pub area: Option<String>,
    /// Name the requirements that nothing shows.
    #[arg(long)]
    pub missing: bool,
}

/// `lint`.
#[derive(Debug, Clone, clap::Args)]
pub struct Lint {
    /// Files or folders; default: the scenarios that the program carries.
    #[arg(value_name = "PATH")]
    pub files: Vec<PathBuf>,
}

/// `schema`.
#[derive(Debug, Clone, clap::Args)]
pub struct Schema {
    /// Which format.
    #[arg(value_enum)]
    pub of: SchemaOf,
}

/// Formats that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// fake-pi's script: the act language.
    Script,
    /// A line of fake-pi's journal.
    Journal,
    /// A scenario file.
    Scenario,
    /// An adapter file.
    Adapter,
    /// `bundle.json` of a bundle.
    Bundle,
    /// A line of `events.jsonl` in a bundle.
    Evidence,
    /// A line of `run --format json`.
    Event,
    /// The object of `compare --format json`.
    Comparison,
}

/// `judge`.
#[derive(Debug, Clone, clap::Args)]
pub struct Judge {
    /// Bundles: folders that a run has written, or folders of such.
    #[arg(value_name = "BUNDLE", required = true)]
    pub bundles: Vec<PathBuf>,
    /// As with `run`.
    #[arg(long, value_name = "FORMAT[:FILE]")]
    pub format: Vec<Output>,
    /// As with `run`.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// As with `run`.
    #[arg(short, long)]
    pub verbose: bool,
}

/// `mutants`.
#[derive(Debug, Clone, clap::Args)]
pub struct Mutants {
    /// Mutants by name or pattern; default: all.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Run every scenario on every mutant, not only those that show what it breaks.
    #[arg(long)]
    pub full: bool,
    /// Names and what they break, without running anything.
    #[arg(long)]
    pub list: bool,
    /// So many scenarios at once.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// As with `run`; human, json, markdown and badge have a form for a matrix.
    #[arg(long, value_name = "FORMAT[:FILE]")]
    pub format: Vec<Output>,
    /// Scenario files or folders in place of those that the program carries.
    #[arg(long = "scenarios", value_name = "PATH")]
    pub files: Vec<PathBuf>,
}

/// `baseline`.
#[derive(Debug, Clone, clap::Args)]
pub struct Baseline {
    /// What to do.
    #[command(subcommand)]
    pub command: BaselineCommand,
}

/// What `baseline` does.
#[derive(Debug, Clone, Subcommand)]
pub enum BaselineCommand {
    /// Add what newly fails, take out what no longer does; all other lines stay as they are.
    Update(BaselineUpdate),
}

/// `baseline update`.
#[derive(Debug, Clone, clap::Args)]
pub struct BaselineUpdate {
    /// The baseline; a new file when it is not there.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What a run told: the file of `run --format json:FILE`.
    #[arg(long, value_name = "RUN.jsonl", required = true)]
    pub from: Vec<PathBuf>,
    /// Which subject it was, to know all scenarios that there are.
    #[command(flatten)]
    pub subject: Subject,
    /// Scenario files or folders in place of those that the program carries.
    #[arg(long = "scenarios", value_name = "PATH")]
    pub files: Vec<PathBuf>,
}

/// `harness`.
#[derive(Debug, Clone, clap::Args)]
pub struct Harness {
    /// Which subject.
    #[command(flatten)]
    pub subject: Subject,
    /// Scenario files or folders in place of those that the program carries.
    #[arg(long = "scenarios", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Arguments of Rust's test harness, after `--`: `--list --format terse`, `--exact NAME`, `--ignored`, `--skip PART`.
    #[arg(last = true, value_name = "LIBTEST-ARGS")]
    pub libtest: Vec<String>,
}

/// `explore`.
#[derive(Debug, Clone, clap::Args)]
pub struct Explore {
    /// The same seed makes the same cases for the same adapter.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many cases.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: u64,
    /// Only the case of this number.
    #[arg(long, value_name = "N")]
    pub case: Option<u64>,
    /// Broken delegators, by name or pattern, in place of the subject: for each the first case that finds it.
    #[arg(long, value_name = "NAME")]
    pub mutants: Vec<String>,
    /// Which subject.
    #[command(flatten)]
    pub subject: Subject,
    /// So many cases at once.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Folder for the scenario files of findings; default: the current one.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// As with `run`.
    #[arg(long, value_name = "FORMAT[:FILE]")]
    pub format: Vec<Output>,
    /// As with `run`.
    #[arg(short, long)]
    pub verbose: bool,
}

/// `scoreboard`.
#[derive(Debug, Clone, clap::Args)]
pub struct Scoreboard {
    /// Files that `run --format json:FILE` has written, one a subject, in the order in which they are to stand.
    #[arg(value_name = "RESULTS", required = true)]
    pub results: Vec<PathBuf>,
    /// Where the document goes; default: standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `completions`.
#[derive(Debug, Clone, clap::Args)]
pub struct Completions {
    /// For which shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
