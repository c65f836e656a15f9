//! `run`: scenarios on a subject.

use std::path::{Path, PathBuf};

use crate::bundle;
use crate::catalogue::Catalogue;
use crate::cli::args::Run;
use crate::cli::session::{Live, Session};
use crate::cli::{Bundled, Exit, Failure, select, suite};
use crate::report::Event;
use crate::runner::{self, Keep, Progress, RunContext};
use crate::scenario::Planned;
use crate::verdict::Verdict;

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
    if chosen.is_empty() {
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
        Failure::usage(format!(
            "{error}; it is the `command` of the adapter `{}`",
            adapter.adapter
        ))
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
                    let verdict = self.session.judge(&evidence);
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
}

fn context(bundled: &Bundled, args: &Run, out: &Path) -> Result<RunContext, Failure> {
    let mut context = suite::context(bundled)?;
    context.bundles = Some(out.to_owned());
    context.keep_folders = args.keep;
    let mut reproduce = String::from("pi-conform run '{name}'");
    let default = crate::cli::args::Subject::default();
    if args.subject.adapter != default.adapter {
        reproduce += &format!(" --adapter {}", args.subject.adapter);
    }
    for file in &args.which.files {
        reproduce += &format!(" --scenarios {}", file.display());
    }
    context.reproduce = reproduce;
    Ok(context)
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
                    Failure::harness(format!("cannot make a folder for the evidence: {error}"))
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
