//! `explore`: generated scenarios.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::strategy::ValueTree as _;

use crate::adapter::Adapter;
use crate::catalogue::Catalogue;
use crate::check;
use crate::cli::args::Explore;
use crate::cli::session::{Beginning, Live, Past, Session};
use crate::cli::{Bundled, Exit, Failure, select, suite};
use crate::explore::{self, Case, Trees};
use crate::runner::{self, INTERRUPTED, Keep, Progress, RunContext};
use crate::scenario::Planned;
use crate::verdict::{ScenarioVerdict, Verdict};

/// Why a generated scenario is there, until something is found.
const WHY: &str = "Generated: random children and callers, judged by what holds for any delegator.";
/// Smaller cases that are tried for one finding.
const MOST_TRIES: usize = 40;
/// How often a smaller case must show the same, out of [`TIMES`].
const OFTEN: usize = 2;
/// Runs of each smaller case.
const TIMES: usize = 3;
/// So many findings are made smaller; further ones would mostly be the same.
const MOST_SHRUNK: usize = 5;

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Explore) -> Result<Exit, Failure> {
    let adapter = suite::adapter(&args.subject.adapter)?;
    let context = suite::context_of(bundled, &args.subject)?;
    runner::check_command(&adapter, &context).map_err(Failure::usage)?;
    suite::watch_interrupts(&context.interrupt);
    if !args.mutants.is_empty() {
        return mutants(bundled, args, &adapter, &context);
    }
    let trees = Trees::new(&adapter, args.seed);
    let numbers = numbers(args);
    let mut cases = Vec::new();
    for &number in &numbers {
        let case = trees.tree(number).map_err(Failure::harness)?.current();
        cases.push(planned(args.seed, number, &case)?);
    }
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let mut session = Session::open(&catalogue, &args.format, None, args.verbose, Live::Yes)?;
    let jobs = args.jobs.map_or_else(runner::default_jobs, usize::from);
    session.begin(Beginning {
        subject: &adapter.adapter,
        about: &adapter.about,
        selected: cases.len(),
        jobs,
        seed: Some(args.seed),
        narrowed: Vec::new(),
    });
    let mut found = Vec::new();
    run(
        &cases,
        &adapter,
        &context,
        jobs,
        &mut |planned, evidence, verdict| {
            if verdict.verdict == Verdict::Fail {
                let number = cases.iter().position(|one| one.name == planned.name);
                found.extend(number.map(|at| (numbers[at], failed(verdict))));
            }
            session.finish(evidence, verdict, Past::default());
        },
    );
    for (number, kinds) in found.iter().take(MOST_SHRUNK) {
        if context.interrupt.raised() {
            break;
        }
        let mut tree = trees.tree(*number).map_err(Failure::harness)?;
        let shrunk = explore::shrink(&mut *tree, MOST_TRIES, |case| {
            !context.interrupt.raised()
                && shows(args.seed, *number, case, kinds, &adapter, &context)
        });
        keep(args, *number, &shrunk.case, kinds)?;
    }
    session.end(&[])
}

fn numbers(args: &Explore) -> Vec<u64> {
    match args.case {
        Some(case) => vec![case],
        None => (1..=args.cases).collect(),
    }
}

fn planned(seed: u64, number: u64, case: &Case) -> Result<Planned, Failure> {
    explore::planned(&format!("explore-{seed}-{number}"), WHY, case).map_err(Failure::harness)
}

/// Runs cases and tells each verdict; those that the machine spoilt are run once more.
fn run(
    cases: &[Planned],
    adapter: &Adapter,
    context: &RunContext,
    jobs: usize,
    tell: &mut dyn FnMut(&Planned, &crate::evidence::Evidence, &ScenarioVerdict),
) {
    runner::run_all(cases, adapter, context, jobs, &mut |progress| {
        if let Progress::Finished(planned, evidence) = progress {
            let cut_short = evidence.events.iter().any(|event| {
                matches!(&event.what, crate::evidence::What::HarnessError { message } if message == INTERRUPTED)
            });
            if !cut_short {
                let mut evidence = *evidence;
                let mut verdict = check::judge(&evidence);
                if verdict.verdict == Verdict::Inconclusive {
                    evidence = runner::run(planned, adapter, context);
                    verdict = check::judge(&evidence);
                }
                tell(planned, &evidence, &verdict);
            }
        }
        Keep::Nothing
    });
}

/// What failed, without the numbers of calls: the same fault in a smaller case may be another call's.
fn failed(verdict: &ScenarioVerdict) -> BTreeSet<String> {
    let failed = verdict
        .checks
        .iter()
        .filter(|check| check.verdict == Verdict::Fail);
    failed
        .map(|check| {
            let look = check
                .id
                .split_once(']')
                .map_or(check.id.as_str(), |(_, look)| look.trim());
            look.split_once('.')
                .map_or(look, |(_, look)| look)
                .to_owned()
        })
        .collect()
}

/// Whether a smaller case shows one of the same faults, mostly.
fn shows(
    seed: u64,
    number: u64,
    case: &Case,
    kinds: &BTreeSet<String>,
    adapter: &Adapter,
    context: &RunContext,
) -> bool {
    let Ok(planned) = planned(seed, number, case) else {
        return false;
    };
    let mut times = 0;
    for run in 0..TIMES {
        let verdict = check::judge(&runner::run(&planned, adapter, context));
        times += usize::from(!failed(&verdict).is_disjoint(kinds));
        if times == OFTEN || times + (TIMES - run - 1) < OFTEN {
            break;
        }
    }
    times >= OFTEN
}

/// Writes a finding as a scenario file, and says how to run it.
fn keep(args: &Explore, number: u64, case: &Case, kinds: &BTreeSet<String>) -> Result<(), Failure> {
    let name = format!("explore-{}-{number}", args.seed);
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let why = format!(
        "Found by `explore --seed {} --case {number}`: {} is not as it must be.",
        args.seed,
        kinds.join(", ")
    );
    let text = explore::yaml(&name, &why, case).map_err(Failure::harness)?;
    let folder = args.out.as_deref().unwrap_or(Path::new("."));
    let path = folder.join(format!("{name}.yaml"));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    anstream::eprintln!(
        "found: {}; the smallest case that shows it: pi-conform run --adapter {} --scenarios {}",
        kinds.join(", "),
        args.subject.adapter,
        path.display()
    );
    Ok(())
}

/// For each mutant, the first case that finds it.
fn mutants(
    bundled: &Bundled,
    args: &Explore,
    adapter: &Adapter,
    context: &RunContext,
) -> Result<Exit, Failure> {
    let patterns = select::patterns(&args.mutants)?;
    let chosen: Vec<&str> = bundled
        .subjects
        .iter()
        .filter(|subject| !subject.sound)
        .map(|subject| subject.name.as_str())
        .filter(|name| {
            patterns
                .iter()
                .any(|(text, matcher)| text == name || matcher.is_match(name))
        })
        .collect();
    if chosen.is_empty() {
        anstream::eprintln!("pi-conform: nothing was selected");
        return Ok(Exit::NothingSelected);
    }
    let trees = Trees::new(adapter, args.seed);
    let jobs = args.jobs.map_or_else(runner::default_jobs, usize::from);
    let mut found = 0;
    for name in &chosen {
        if context.interrupt.raised() {
            return Ok(Exit::Incomplete);
        }
        let mut context = context.clone();
        context.bundled = format!("mutant-{name}");
        let first = first_finding(args, &trees, adapter, &context, jobs)?;
        found += usize::from(first.is_some());
        let told = first.map_or_else(
            || format!("not found in {} cases", args.cases),
            |(number, kinds)| format!("found by case {number}: {kinds}"),
        );
        anstream::println!("{name:<44} {told}");
    }
    anstream::println!(
        "{found} of {} mutants found within {} cases each",
        chosen.len(),
        args.cases
    );
    Ok(Exit::AsExpected)
}

/// The first case, by its number, that fails; cases run in batches, so a few more may have run.
fn first_finding(
    args: &Explore,
    trees: &Trees,
    adapter: &Adapter,
    context: &RunContext,
    jobs: usize,
) -> Result<Option<(u64, String)>, Failure> {
    let all = numbers(args);
    for batch in all.chunks(jobs.saturating_mul(2).max(1)) {
        let mut cases = Vec::new();
        for &number in batch {
            let case = trees.tree(number).map_err(Failure::harness)?.current();
            cases.push(planned(args.seed, number, &case)?);
        }
        let mut first: Option<(u64, String)> = None;
        run(
            &cases,
            adapter,
            context,
            jobs,
            &mut |planned, _, verdict| {
                if verdict.verdict != Verdict::Fail {
                    return;
                }
                let at = cases
                    .iter()
                    .position(|one| one.name == planned.name)
                    .unwrap_or(0);
                if first.as_ref().is_none_or(|(number, _)| *number > batch[at]) {
                    let kinds: Vec<String> = failed(verdict).into_iter().collect();
                    first = Some((batch[at], kinds.join(", ")));
                }
            },
        );
        if first.is_some() || context.interrupt.raised() {
            return Ok(first);
        }
    }
    Ok(None)
}
