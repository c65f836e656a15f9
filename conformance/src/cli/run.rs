//! `run`: scenarios on a subject.

use std::path::{Path, PathBuf};

use crate::bundle;
use crate::catalogue::Catalogue;
use crate::check::handshake;
use crate::cli::args::Run;
use crate::cli::session::{Live, Session};
use crate::cli::{Bundled, Exit, Failure, select, suite};
use crate::evidence::{Evidence, What};
use crate::report::Event;
use crate::runner::{self, INTERRUPTED, Keep, Progress, RunContext, StageError};
use crate::scenario::Planned;
use crate::verdict::{CheckVerdict, ScenarioVerdict, Verdict};

/// Names of the scenarios that were not as expected, one a line, in the folder of `--out`.
const NOT_AS_EXPECTED: &str = "not-as-expected.txt";

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Run) -> Result<Exit, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let adapter = suite::adapter(&args.subject.adapter)?;
    let all = suite::plan(&args.which.files, &adapter)?;
    let known: Vec<String> = all.iter().map(|planned| planned.name.clone()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let mut chosen = select::select(all.clone(), &args.which, &catalogue)?;
    if args.failed {
        let last = not_as_expected(args.out.as_deref())?;
        chosen.retain(|planned| last.contains(&planned.name));
    }
    if chosen.is_empty() && args.failed {
        anstream::eprintln!(
            "pi-conform: nothing was selected: the last run left nothing to repeat"
        );
    } else if chosen.is_empty() {
        anstream::eprintln!("pi-conform: nothing was selected");
    }
    let mut session = Session::open(
        &catalogue,
        &args.format,
        args.baseline.as_deref(),
        args.verbose,
        Live::Yes,
    )?;
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
    let jobs = args.jobs.map_or_else(runner::default_jobs, usize::from);
    let rounds = usize::try_from(args.repeat).unwrap_or(usize::MAX);
    session.begin(
        &adapter.adapter,
        &adapter.about,
        chosen.len().saturating_mul(rounds),
        jobs,
    );
    let mut wrong: Vec<String> = Vec::new();
    let mut starts = Starts::Unknown(0);
    for round in 1..=args.repeat {
        // Each round has a folder of its own, so that none takes away what another left.
        let mut context = context.clone();
        if args.repeat > 1 {
            context.bundles = Some(out.path().join(format!("round-{round}")));
        }
        let mut pass = Pass {
            session: &mut session,
            context: &context,
            keep: args.keep,
            again: None,
            wrong: &mut wrong,
            starts: &mut starts,
            hopeless: jobs.max(FEW),
        };
        let again = pass.run(&chosen, &adapter, jobs);
        if !again.is_empty() && !context.interrupt.raised() {
            // The machine stalled while time mattered: once more, each by itself.
            pass.again = Some(1);
            pass.run(&again, &adapter, 1);
        }
        if context.interrupt.raised() {
            break;
        }
    }
    out.close(args.out.is_some(), &wrong)?;
    session.end(&known)
}

/// One pass over scenarios.
struct Pass<'a, 'c> {
    session: &'a mut Session<'c>,
    context: &'a RunContext,
    keep: bool,
    /// How often these ran before; the first time an inconclusive one is put off.
    again: Option<u32>,
    wrong: &'a mut Vec<String>,
    starts: &'a mut Starts,
    /// After so many scenarios without an answer there will be none.
    hopeless: usize,
}

/// Fewest scenarios in which a subject must not answer before the others are left out.
const FEW: usize = 3;

/// Whether the subject ever answers.
enum Starts {
    /// It did.
    Yes,
    /// In so many scenarios it did not.
    Unknown(usize),
}

impl Pass<'_, '_> {
    /// Runs and reports; gives back those to be run again.
    fn run(
        &mut self,
        planned: &[Planned],
        adapter: &crate::adapter::Adapter,
        jobs: usize,
    ) -> Vec<Planned> {
        let mut again = Vec::new();
        let context = self.context;
        runner::run_all(
            planned,
            adapter,
            context,
            jobs,
            &mut |progress| match progress {
                Progress::Started(planned) => {
                    let (scenario, area) = (planned.name.clone(), planned.area.clone());
                    self.session.tell(&Event::Started { scenario, area });
                    Keep::Nothing
                }
                Progress::Finished(planned, evidence) => {
                    if was_cut_short(&evidence) {
                        // The run ended, not this scenario: nothing is said about it.
                        return Keep::Nothing;
                    }
                    let verdict = self.session.judge(&evidence);
                    self.note_start(&evidence, &verdict);
                    if verdict.verdict == Verdict::Inconclusive && self.again.is_none() {
                        again.push(planned.clone());
                        return Keep::Nothing;
                    }
                    let expected = verdict.verdict <= Verdict::KnownFailure;
                    if !expected {
                        self.wrong.push(planned.name.clone());
                    }
                    let kept = self.keep || !expected;
                    let folder = context.bundles.as_ref().filter(|_| kept);
                    let folder = folder.map(|bundles| {
                        bundles
                            .join(bundle::folder_name(&planned.name))
                            .display()
                            .to_string()
                    });
                    self.session
                        .finish(&evidence, &verdict, folder, self.again.unwrap_or(0));
                    if kept { Keep::Bundle } else { Keep::Nothing }
                }
            },
        );
        again
    }

    /// A subject that never answers would cost its patience in every scenario: after a few the run ends.
    fn note_start(&mut self, evidence: &Evidence, verdict: &ScenarioVerdict) {
        let answered =
            |event: &crate::evidence::Event| matches!(event.what, What::Initialized { .. });
        let silent = |check: &CheckVerdict| check.id == handshake::ID;
        match self.starts {
            Starts::Yes => {}
            Starts::Unknown(times) if verdict.checks.iter().any(silent) => {
                *times += 1;
                if *times == self.hopeless && !self.context.interrupt.raised() {
                    anstream::eprintln!(
                        "pi-conform: the subject answered in none of {times} scenarios, so the others are left out"
                    );
                    self.context.interrupt.raise();
                }
            }
            Starts::Unknown(_) if evidence.events.iter().any(answered) => {
                *self.starts = Starts::Yes;
            }
            Starts::Unknown(_) => {}
        }
    }
}

fn was_cut_short(evidence: &Evidence) -> bool {
    evidence.events.iter().any(
        |event| matches!(&event.what, What::HarnessError { message } if message == INTERRUPTED),
    )
}

fn context(bundled: &Bundled, args: &Run, out: &Path) -> Result<RunContext, Failure> {
    let mut context = suite::context_of(bundled, &args.subject)?;
    context.bundles = Some(out.to_owned());
    context.keep_folders = args.keep;
    let mut reproduce = String::from("pi-conform run '{name}'");
    let default = crate::cli::args::Subject::default();
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
    fn close(self, given: bool, wrong: &[String]) -> Result<(), Failure> {
        if given {
            let path = self.path().join(NOT_AS_EXPECTED);
            let lines: String = wrong.iter().map(|name| format!("{name}\n")).collect();
            std::fs::write(&path, lines).map_err(|error| {
                Failure::harness(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        if let Self::Own(folder) = self
            && !wrong.is_empty()
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
