//! `mutants`: the kill matrix.

use std::fmt::Write as _;

use serde_json::json;

use crate::adapter::Adapter;
use crate::catalogue::Catalogue;
use crate::check;
use crate::check::words::nearest;
use crate::cli::args::Mutants;
use crate::cli::{Bundled, BundledSubject, Exit, Failure, select, session, suite};
use crate::kill_matrix::{self, scenarios_for};
use crate::report::events::{FORMAT, MutantSummary, Totals};
use crate::report::{Event, Format, Reporter as _, Reports};
use crate::runner::{self, Keep, Progress, RunContext};
use crate::scenario::Planned;
use crate::verdict::{ScenarioVerdict, Verdict};

/// The adapter of the reference, which all mutants share.
const ADAPTER: &str = "reference-delegator";

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Mutants) -> Result<Exit, Failure> {
    let chosen = choose(bundled, args)?;
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    for mutant in &chosen {
        for id in &mutant.breaks {
            catalogue
                .get(id)
                .map_err(|error| Failure::harness(format!("mutant `{}`: {error}", mutant.name)))?;
        }
    }
    if args.list {
        return list(args, &chosen);
    }
    session::matrix_has_form(&args.format)?;
    if chosen.is_empty() {
        anstream::eprintln!("pi-conform: nothing was selected");
        return Ok(Exit::NothingSelected);
    }
    let adapter = suite::adapter(ADAPTER)?;
    let planned = suite::plan(&args.files, &adapter)?;
    let mut matrix = Matrix {
        reports: session::open_reports(&args.format, false, session::Live::Yes)?,
        context: suite::context(bundled)?,
        adapter: &adapter,
        jobs: args.jobs.map_or_else(runner::default_jobs, usize::from),
        harness_errors: Vec::new(),
    };
    suite::watch_interrupts(&matrix.context.interrupt);
    matrix.run(&chosen, &planned, args.full)
}

/// Mutants by name or pattern.
fn choose<'b>(bundled: &'b Bundled, args: &Mutants) -> Result<Vec<&'b BundledSubject>, Failure> {
    let all: Vec<&BundledSubject> = bundled
        .subjects
        .iter()
        .filter(|subject| !subject.sound)
        .collect();
    let patterns = select::patterns(&args.names)?;
    for (pattern, matcher) in &patterns {
        if !all
            .iter()
            .any(|mutant| mutant.name == *pattern || matcher.is_match(&mutant.name))
        {
            let near = nearest(pattern, all.iter().map(|mutant| mutant.name.as_str()));
            let near = near.map_or(String::new(), |near| format!("; nearest is `{near}`"));
            return Err(Failure::usage(format!(
                "no mutant is called `{pattern}`{near}"
            )));
        }
    }
    let wanted = |mutant: &&BundledSubject| {
        patterns.is_empty()
            || patterns
                .iter()
                .any(|(pattern, matcher)| mutant.name == *pattern || matcher.is_match(&mutant.name))
    };
    Ok(all.into_iter().filter(wanted).collect())
}

fn list(args: &Mutants, chosen: &[&BundledSubject]) -> Result<Exit, Failure> {
    let as_json = args
        .format
        .iter()
        .any(|output| output.format == Format::Json);
    let mut text = String::new();
    for mutant in chosen {
        let line = if as_json {
            json!({"mutant": mutant.name, "about": mutant.about, "breaks": mutant.breaks})
                .to_string()
        } else {
            format!(
                "{:<32} {}  [{}]",
                mutant.name,
                mutant.about,
                mutant.breaks.join(", ")
            )
        };
        let _ = writeln!(text, "{line}");
    }
    session::print(text.as_bytes())
}

struct Matrix<'a> {
    reports: Reports,
    context: RunContext,
    adapter: &'a Adapter,
    jobs: usize,
    harness_errors: Vec<String>,
}

impl Matrix<'_> {
    fn run(
        &mut self,
        mutants: &[&BundledSubject],
        planned: &[Planned],
        full: bool,
    ) -> Result<Exit, Failure> {
        let plans: Vec<Vec<usize>> = mutants
            .iter()
            .map(|mutant| scenarios_for(&mutant.breaks, planned, full))
            .collect();
        let mut union: Vec<usize> = plans.iter().flatten().copied().collect();
        union.sort_unstable();
        union.dedup();
        let pick = |indices: &[usize]| -> Vec<Planned> {
            indices
                .iter()
                .map(|&index| planned[index].clone())
                .collect()
        };
        let runs = union.len() + plans.iter().map(Vec::len).sum::<usize>();
        self.tell(&Event::Run {
            format: FORMAT,
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            subject: self.adapter.adapter.clone(),
            about: format!("{} mutants and the sound reference", mutants.len()),
            selected: runs,
            jobs: self.jobs,
            seed: None,
            narrowed: Vec::new(),
        })?;
        let sound = self.verdicts(None, &pick(&union))?;
        let accused = sound
            .iter()
            .filter(|verdict| verdict.verdict == Verdict::Fail)
            .map(|verdict| verdict.name.clone());
        let mut summary = MutantSummary {
            sound_accused: accused.collect(),
            ..MutantSummary::default()
        };
        let failing = kill_matrix::failing(&sound);
        for (mutant, plan) in mutants.iter().zip(&plans) {
            if self.context.interrupt.raised() {
                break;
            }
            let verdicts = self.verdicts(Some(&mutant.name), &pick(plan))?;
            let judged = kill_matrix::judge(
                &mutant.name,
                &mutant.about,
                &mutant.breaks,
                &verdicts,
                &failing,
            );
            summary.mutants += 1;
            if judged.killed {
                summary.killed += 1;
            } else {
                summary.survived.push(mutant.name.clone());
            }
            self.tell(&Event::Mutant(Box::new(judged)))?;
        }
        let exit = if let Some(error) = self.harness_errors.first() {
            anstream::eprintln!("pi-conform: {error}");
            Exit::Harness
        } else if !summary.survived.is_empty() || !summary.sound_accused.is_empty() {
            Exit::Failures
        } else if self.context.interrupt.raised() {
            Exit::Incomplete
        } else {
            Exit::AsExpected
        };
        self.tell(&Event::Summary(Totals::Mutants(summary)))?;
        Ok(exit)
    }

    /// Runs scenarios on a mutant, or on the sound reference. Inconclusive ones run once more, each by itself.
    fn verdicts(
        &mut self,
        mutant: Option<&str>,
        planned: &[Planned],
    ) -> Result<Vec<ScenarioVerdict>, Failure> {
        let mut context = self.context.clone();
        if let Some(mutant) = mutant {
            context.bundled = format!("mutant-{mutant}");
        }
        let (mut verdicts, mut again) = (Vec::new(), Vec::new());
        let mut failed = Ok(());
        let label = mutant.unwrap_or("sound");
        let errors = &mut self.harness_errors;
        let reports = &mut self.reports;
        let mut take = |planned: &Planned, verdict: ScenarioVerdict| {
            if verdict.verdict == Verdict::Inconclusive {
                again.push(planned.clone());
                return;
            }
            if verdict.verdict == Verdict::HarnessError {
                let why = verdict
                    .checks
                    .iter()
                    .find(|check| check.verdict == Verdict::HarnessError);
                errors.push(format!(
                    "{label} on {}: {}",
                    planned.name,
                    why.map_or("", |check| &check.seen)
                ));
            }
            verdicts.push(verdict);
        };
        runner::run_all(
            planned,
            self.adapter,
            &context,
            self.jobs,
            &mut |progress| {
                match progress {
                    Progress::Started(planned) => {
                        let scenario = format!("{label} on {}", planned.name);
                        let told = reports.event(&Event::Started {
                            scenario,
                            area: planned.area.clone(),
                        });
                        if failed.is_ok() {
                            failed = told;
                        }
                    }
                    Progress::Finished(planned, evidence) => take(planned, check::judge(&evidence)),
                }
                Keep::Nothing
            },
        );
        for planned in &again {
            verdicts.push(check::judge(&runner::run(planned, self.adapter, &context)));
        }
        failed.map_err(|error| Failure::harness(format!("cannot write a report: {error}")))?;
        Ok(verdicts)
    }

    fn tell(&mut self, event: &Event) -> Result<(), Failure> {
        self.reports
            .event(event)
            .map_err(|error| Failure::harness(format!("cannot write a report: {error}")))
    }
}
