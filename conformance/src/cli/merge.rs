//! `merge`: the parts of a run that went to several machines, as one.

use std::path::{Path, PathBuf};

use indexmap::{IndexMap, IndexSet};

use crate::cli::report_args::Merge;
use crate::cli::told::{self, Stream};
use crate::cli::{Exit, Failure};
use crate::report::events::Totals;
use crate::report::{Event, Format, Output, Rounds};
use crate::verdict::Verdict;

/// Runs the command.
pub fn main(args: &Merge) -> Result<Exit, Failure> {
    let mut outputs = args.format.clone();
    if outputs.is_empty() {
        outputs.push(Output {
            format: Format::Json,
            file: None,
        });
    }
    let streams = args
        .files
        .iter()
        .map(|file| Stream::read(file))
        .collect::<Result<Vec<_>, _>>()?;
    let events = merged(&streams)?;
    told::replay(&events, &outputs, args.verbose)
}

/// Where a scenario was judged first, and how.
struct Place<'s> {
    path: &'s Path,
    line: usize,
    verdict: Verdict,
}

/// One stream of several: one `run`, what each has told, one `summary`. A scenario that two files judged alike is told once; an
/// entry of the baseline that matched nothing likewise.
fn merged(streams: &[Stream]) -> Result<Vec<Event>, Failure> {
    let mut events = vec![opening(streams)?];
    let mut first: IndexMap<(&str, &str), Place<'_>> = IndexMap::new();
    let mut unmatched: IndexSet<(&str, &str)> = IndexSet::new();
    let mut rounds: Option<Box<Rounds>> = None;
    let mut twice = 0;
    for stream in streams {
        // Within a file a scenario may stand more than once: `--repeat` runs it so often. So `first` takes this file's at its end.
        let mut own = Vec::new();
        for (line, event) in &stream.events {
            match event {
                Event::Started { scenario, area } => {
                    if !first.contains_key(&(area.as_str(), scenario.as_str())) {
                        events.push(event.clone());
                    }
                }
                Event::Finished(finished) => {
                    let key = (finished.area.as_str(), finished.scenario.as_str());
                    let Some(place) = first.get(&key) else {
                        own.push((key, *line, finished.verdict));
                        events.push(event.clone());
                        continue;
                    };
                    if place.verdict != finished.verdict {
                        return Err(Failure::usage(format!(
                            "{}, line {line}: {}/{} is `{}`, and `{}` in {}, line {}; a scenario can have one verdict in a run",
                            stream.path.display(),
                            finished.area,
                            finished.scenario,
                            finished.verdict.word(),
                            place.verdict.word(),
                            place.path.display(),
                            place.line
                        )));
                    }
                    twice += 1;
                }
                Event::Unmatched { entry, problem } => {
                    unmatched.insert((entry, problem));
                }
                Event::Rounds(its) => match &mut rounds {
                    None => rounds = Some(its.clone()),
                    Some(all) => {
                        all.rounds = all.rounds.max(its.rounds);
                        all.scenarios.extend(its.scenarios.iter().cloned());
                    }
                },
                Event::Run { .. } | Event::Mutant(_) | Event::Summary(_) => {}
            }
        }
        for (key, line, verdict) in own {
            let path = &stream.path;
            let worst = first.entry(key).or_insert(Place {
                path,
                line,
                verdict,
            });
            if verdict > worst.verdict {
                (worst.line, worst.verdict) = (line, verdict);
            }
        }
    }
    if let Some(Event::Run { selected, .. }) = events.first_mut() {
        *selected = selected.saturating_sub(twice);
    }
    events.extend(
        unmatched
            .into_iter()
            .map(|(entry, problem)| Event::Unmatched {
                entry: entry.to_owned(),
                problem: problem.to_owned(),
            }),
    );
    events.extend(rounds.map(Event::Rounds));
    let summary = told::summary(events.iter());
    events.push(Event::Summary(summary));
    Ok(events)
}

/// The first event: that of the first file, with the numbers of all.
fn opening(streams: &[Stream]) -> Result<Event, Failure> {
    let mut opening: Option<(&PathBuf, Event)> = None;
    for stream in streams {
        let Some((line, event)) = stream.events.first() else {
            continue;
        };
        if let Some((line, _)) = stream.events.iter().find(|(_, event)| {
            matches!(event, Event::Mutant(_) | Event::Summary(Totals::Mutants(_)))
        }) {
            return Err(Failure::usage(format!(
                "{}, line {line}: a kill matrix, which cannot be merged",
                stream.path.display()
            )));
        }
        let Some((path, whole)) = &mut opening else {
            opening = Some((&stream.path, event.clone()));
            continue;
        };
        if let (
            Event::Run {
                format: format_a,
                suite: suite_a,
                subject: subject_a,
                selected: selected_a,
                jobs: jobs_a,
                ..
            },
            Event::Run {
                format,
                suite,
                subject,
                selected,
                jobs,
                ..
            },
        ) = (whole, event)
        {
            for (what, here, there) in [
                ("the format is", format.to_string(), format_a.to_string()),
                ("the suite is", suite.clone(), suite_a.clone()),
                ("the subject is", subject.clone(), subject_a.clone()),
            ] {
                if here != there {
                    return Err(Failure::usage(format!(
                        "{}, line {line}: {what} `{here}`, and `{there}` in {}, line 1; parts of one run have the same",
                        stream.path.display(),
                        path.display()
                    )));
                }
            }
            *selected_a = selected_a.saturating_add(*selected);
            *jobs_a = (*jobs_a).max(*jobs);
        }
    }
    opening
        .map(|(_, event)| event)
        .ok_or_else(|| Failure::usage("there is nothing to merge"))
}
