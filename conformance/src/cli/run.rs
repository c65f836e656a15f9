//! `run`: scenarios on a subject.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::cli::args::{Flaky, Run, Subject, Which};
use crate::cli::partition::Bazel;
use crate::cli::rounds::{Plan, Runner};
use crate::cli::session::{Beginning, Live, Session};
use crate::cli::{Bundled, Exit, Failure, baseline, capabilities, select, suite};
use crate::clock;
use crate::runner::{self, RunContext, StageError};
use crate::scenario::Planned;
use crate::spin::Spin;

/// Names of the scenarios that were not as expected, one a line, in the folder of `--out`.
const NOT_AS_EXPECTED: &str = "not-as-expected.txt";

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Run) -> Result<Exit, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let bazel = Bazel::read(|name| std::env::var(name).ok())?;
    let mut adapter = suite::adapter(&args.subject.adapter)?;
    let narrowed = match &args.capabilities {
        None => Vec::new(),
        Some(path) => capabilities::narrow(&mut adapter, path)?,
    };
    let all = suite::plan(&args.which.files, &adapter)?;
    let known: Vec<String> = all.iter().map(|planned| planned.name.clone()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let mut which = args.which.clone();
    which.partition = which.partition.or(bazel.partition);
    bazel.touch()?;
    let mut chosen = select::select(all.clone(), &which, &catalogue)?;
    if args.failed {
        let last = not_as_expected(args.out.as_deref())?;
        chosen.retain(|planned| last.contains(&planned.name));
    }
    if chosen.is_empty() && args.failed {
        anstream::eprintln!(
            "pi-conform: nothing was selected: the last run left nothing to repeat"
        );
    } else if chosen.is_empty() && is_empty_part(&all, &which, &catalogue)? {
        // A machine of several that has nothing to do is no failure of any.
        anstream::eprintln!("pi-conform: this part of the selection is empty");
    } else if chosen.is_empty() {
        anstream::eprintln!("pi-conform: nothing was selected");
    }
    let mut outputs = args.format.clone();
    outputs.extend(bazel.output());
    let baseline = args.baseline.as_deref();
    let updates = args.update;
    // A baseline that is to be written need not be there yet.
    let is_new = updates && baseline.is_some_and(|path| !path.exists());
    let mut session = Session::open(
        &catalogue,
        &outputs,
        baseline.filter(|_| !is_new),
        args.verbose,
        Live::Yes,
    )?;
    session.flaky_passes = args.flaky == Flaky::Pass;
    session.seen = updates.then(Vec::new);
    if adapter.adapter == Subject::default().adapter {
        session
            .baseline
            .refuse_flaky(&all, &catalogue)
            .map_err(|error| suite::diagnostic(*error))?;
    }
    let out = Out::open(args.out.as_deref(), args.keep)?;
    let context = context(bundled, args, out.path())?;
    // That a command cannot be started is a fault of the adapter's user: told once, not as a verdict on a subject.
    runner::check_command(&adapter, &context).map_err(|error| {
        let name = &adapter.adapter;
        Failure::usage(match error {
            StageError::Missing(missing) => {
                format!("the adapter `{name}` needs what is not there: {missing}")
            }
            error => format!("{error}; it is the `command` of the adapter `{name}`"),
        })
    })?;
    suite::watch_interrupts(&context.interrupt);
    let plan = plan(args);
    let jobs = args.jobs.map_or_else(runner::default_jobs, usize::from);
    session.begin(Beginning {
        subject: &adapter.adapter,
        about: &adapter.about,
        selected: plan.selected(chosen.len()),
        jobs,
        seed: plan.seed,
        narrowed,
    });
    let load = args.under_load.then(|| Spin::start(&context.executable));
    let load = load.transpose().map_err(|error| {
        Failure::harness(format!("cannot start what keeps the machine busy: {error}"))
    })?;
    let mut rounds = Runner::new(&mut session, &adapter, &context, plan);
    rounds.jobs = jobs;
    rounds.keep = args.keep;
    rounds.run(&chosen);
    let (wrong, kept) = (std::mem::take(&mut rounds.wrong), rounds.kept);
    drop(load);
    out.close(args.out.is_some(), &wrong, kept)?;
    if let (Some(seen), Some(path)) = (session.seen.take(), baseline) {
        baseline::write(path, &seen, &known)?;
    }
    let exit = session.end(&known)?;
    let idle = exit == Exit::NothingSelected && is_empty_part(&all, &which, &catalogue)?;
    Ok(if idle { Exit::AsExpected } else { exit })
}

/// Something is selected, but nothing of it is in this part.
fn is_empty_part(all: &[Planned], which: &Which, catalogue: &Catalogue) -> Result<bool, Failure> {
    let mut whole = which.clone();
    let part = whole.partition.take();
    Ok(part.is_some() && !select::select(all.to_vec(), &whole, catalogue)?.is_empty())
}

/// How often what runs.
fn plan(args: &Run) -> Plan {
    let stress = args.stress.map(Duration::from_secs);
    // Any number will do that differs from run to run; it is told, so that an order can be had again.
    let fresh = || u64::from(std::process::id()) ^ (clock::now_ns() & 0xffff_ffff);
    Plan {
        repeat: args.repeat,
        stress,
        until_fail: args.until_fail,
        seed: args.seed.or_else(|| stress.map(|_| fresh())),
        retries: args.retries,
    }
}

fn context(bundled: &Bundled, args: &Run, out: &Path) -> Result<RunContext, Failure> {
    let mut context = suite::context_of(bundled, &args.subject)?;
    context.bundles = Some(out.to_owned());
    context.keep_folders = args.keep;
    let mut reproduce = String::from("pi-conform run '{name}'");
    let default = Subject::default();
    if args.subject.adapter != default.adapter {
        reproduce += &format!(" --adapter {}", quoted(&args.subject.adapter));
    }
    for (option, path) in [
        ("--checkout", &args.subject.checkout),
        ("--packages", &args.subject.packages),
    ] {
        if let Some(path) = path {
            reproduce += &format!(" {option} {}", quoted(&path.to_string_lossy()));
        }
    }
    if let Some(file) = &args.capabilities {
        reproduce += &format!(" --capabilities {}", quoted(&file.to_string_lossy()));
    }
    for file in &args.which.files {
        reproduce += &format!(" --scenarios {}", quoted(&file.to_string_lossy()));
    }
    context.reproduce = reproduce;
    Ok(context)
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Where bundles go: the folder that was asked for, or a new one that goes away again when nothing was kept in it.
enum Out {
    Given(PathBuf),
    Own(tempfile::TempDir),
}

impl Out {
    fn open(given: Option<&Path>, keep: bool) -> Result<Self, Failure> {
        match given {
            Some(path) => {
                std::fs::create_dir_all(path).map_err(|error| {
                    Failure::usage(format!(
                        "cannot make the folder {}: {error}",
                        path.display()
                    ))
                })?;
                let path = path.canonicalize();
                path.map(Self::Given).map_err(|error| {
                    Failure::usage(format!("cannot use the folder of --out: {error}"))
                })
            }
            None => {
                let mut builder = tempfile::Builder::new();
                let made = builder
                    .prefix("pi-conform-")
                    .disable_cleanup(keep)
                    .tempdir();
                made.map(Self::Own).map_err(|error| {
                    Failure::harness(format!("cannot make a folder for the evidence: {error}; set TMPDIR to a folder that can be written, or give `--out`"))
                })
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Own(folder) => folder.path(),
        }
    }

    /// Notes what was not as expected, and keeps an own folder when there is evidence in it.
    fn close(self, given: bool, wrong: &[String], kept: bool) -> Result<(), Failure> {
        if given {
            let path = self.path().join(NOT_AS_EXPECTED);
            let lines: String = wrong.iter().map(|name| format!("{name}\n")).collect();
            std::fs::write(&path, lines).map_err(|error| {
                Failure::harness(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        if let Self::Own(folder) = self
            && (kept || !wrong.is_empty())
        {
            let _ = folder.keep();
        }
        Ok(())
    }
}

/// What the last run with this folder noted.
fn not_as_expected(out: Option<&Path>) -> Result<Vec<String>, Failure> {
    let Some(out) = out else {
        return Err(Failure::usage(
            "`--failed` needs `--out DIR`: the folder of the run before, which notes what was not as expected",
        ));
    };
    let path = out.join(NOT_AS_EXPECTED);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::usage(format!(
            "cannot read {}: {error}; a run with `--out {}` writes it",
            path.display(),
            out.display()
        ))
    })?;
    Ok(text.lines().map(str::to_owned).collect())
}
