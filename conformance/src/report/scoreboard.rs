//! The scoreboard: results of several subjects side by side, as one Markdown document. Facts only, in the order in which they are given.

use std::fmt::Write as _;

use indexmap::{IndexMap, IndexSet};

use crate::adapter::Adapter;
use crate::report::{Event, Finished};
use crate::verdict::Verdict;

/// Longest text of what was seen, in characters.
const SEEN: usize = 160;

/// One subject's run.
#[derive(Debug, Clone)]
pub struct Results {
    /// Its adapter.
    pub adapter: Adapter,
    /// Judged scenarios in order.
    pub finished: Vec<Finished>,
}

/// Why events are no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoResults {
    /// They do not begin as a run does.
    #[error("the first line is no `run` event")]
    NoRun,
    /// The run was cut off.
    #[error("it has no `summary` at its end: the run was cut off")]
    NoEnd,
}

/// Name of the subject that a run's events are about, and its scenarios.
///
/// # Errors
/// When they are not those of a whole run.
pub fn gather(events: Vec<Event>) -> Result<(String, Vec<Finished>), NoResults> {
    let mut subject = None;
    let mut finished = Vec::new();
    let mut ended = false;
    for event in events {
        match event {
            Event::Run { subject: name, .. } => subject = Some(name),
            Event::Finished(one) => finished.push(*one),
            Event::Summary(_) => ended = true,
            _ => {}
        }
    }
    let subject = subject.ok_or(NoResults::NoRun)?;
    if ended {
        Ok((subject, finished))
    } else {
        Err(NoResults::NoEnd)
    }
}

/// How many of each sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    pass: usize,
    differs: usize,
    fail: usize,
    open: usize,
    not_applicable: usize,
}

impl Counts {
    fn of<'a>(finished: impl Iterator<Item = &'a Finished>) -> Self {
        let mut counts = Self::default();
        for one in finished {
            *match one.verdict {
                Verdict::Pass => &mut counts.pass,
                Verdict::Differs => &mut counts.differs,
                Verdict::Fail | Verdict::KnownFailure | Verdict::Stale => &mut counts.fail,
                Verdict::NotApplicable => &mut counts.not_applicable,
                Verdict::Inconclusive | Verdict::NoEvidence | Verdict::HarnessError => {
                    &mut counts.open
                }
            } += 1;
        }
        counts
    }

    fn applied(&self) -> usize {
        self.pass + self.differs + self.fail + self.open
    }
}

/// The document. `command` is the line that makes it.
pub fn markdown(all: &[Results], command: &str) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write(&mut text, all, command);
    text
}

fn write(out: &mut String, all: &[Results], command: &str) -> std::fmt::Result {
    writeln!(out, "# Scoreboard\n")?;
    writeln!(
        out,
        "Published delegators, each as it is, against the same scenarios. Made by `{command}` from the results of `pi-conform run`; the\n\
         adapters lie in `conformance/adapters/`. A scenario that asks for what an adapter does not declare is *not applicable* to it. *Differs* is\n\
         what an adapter declares as its policy where honest contracts differ. *Open* is what could not be judged.\n\n\
         Areas that were run: {}. One run each; `DIR` stands for a folder of yours.\n",
        areas_of(all).into_iter().collect::<Vec<_>>().join(", ")
    )?;
    writeln!(
        out,
        "| delegator | version | talked to as | its children | pass | differs | fail | open | not applicable |"
    )?;
    writeln!(out, "|---|---|---|---|---:|---:|---:|---:|---:|")?;
    for one in all {
        let counts = Counts::of(one.finished.iter());
        writeln!(
            out,
            "| [{0}](#{9}) | {1} | {2} | {3} | {4} | {5} | {6} | {7} | {8} |",
            one.adapter.adapter,
            version(&one.adapter),
            one.adapter.transport.word(),
            one.adapter.child_mode.word(),
            counts.pass,
            counts.differs,
            counts.fail,
            counts.open,
            counts.not_applicable,
            // As renderers of Markdown make it of a heading.
            one.adapter.adapter.replace('.', ""),
        )?;
    }
    areas(out, all)?;
    for one in all {
        subject(out, one)?;
    }
    Ok(())
}

/// Areas that somebody was run on.
fn areas_of(all: &[Results]) -> IndexSet<&str> {
    let finished = all.iter().flat_map(|one| &one.finished);
    finished.map(|finished| finished.area.as_str()).collect()
}

/// Rows by area: pass / differs / fail of each subject.
fn areas(out: &mut String, all: &[Results]) -> std::fmt::Result {
    let areas = areas_of(all);
    writeln!(
        out,
        "\n## By area\n\nPass / differs / fail; a dash where nothing applies.\n"
    )?;
    let names: Vec<&str> = all.iter().map(|one| one.adapter.adapter.as_str()).collect();
    writeln!(out, "| area | {} |", names.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(all.len()))?;
    for area in areas {
        write!(out, "| {area} |")?;
        for one in all {
            let of_area = one.finished.iter().filter(|finished| finished.area == area);
            let counts = Counts::of(of_area);
            if counts.applied() == 0 {
                write!(out, " – |")?;
            } else {
                write!(
                    out,
                    " {} / {} / {} |",
                    counts.pass, counts.differs, counts.fail
                )?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn subject(out: &mut String, one: &Results) -> std::fmt::Result {
    let adapter = &one.adapter;
    writeln!(out, "\n## {}\n\n{}\n", adapter.adapter, adapter.about)?;
    let list = |words: &[String]| {
        if words.is_empty() {
            "none".to_owned()
        } else {
            words.join(", ")
        }
    };
    writeln!(out, "- Version: {}", version(adapter))?;
    if let Some(source) = &adapter.parts.checkout {
        writeln!(
            out,
            "- Source: {source} (a checkout, given by `--checkout`)"
        )?;
    }
    writeln!(
        out,
        "- Capabilities that the adapter declares: {}",
        list(&adapter.capabilities)
    )?;
    let policy: Vec<String> = adapter
        .policy
        .iter()
        .map(|(name, choice)| format!("{name}: {choice}"))
        .collect();
    writeln!(out, "- Declared policy: {}", list(&policy))?;
    let wrong = |finished: &&Finished| {
        matches!(
            finished.verdict,
            Verdict::Fail
                | Verdict::Differs
                | Verdict::NoEvidence
                | Verdict::Inconclusive
                | Verdict::HarnessError
        )
    };
    let mut by_verdict: IndexMap<Verdict, Vec<&Finished>> = IndexMap::new();
    for finished in one.finished.iter().filter(wrong) {
        by_verdict
            .entry(finished.verdict)
            .or_default()
            .push(finished);
    }
    by_verdict.sort_unstable_by(|a, _, b, _| b.cmp(a));
    for (verdict, scenarios) in by_verdict {
        writeln!(out, "\n### {}: {}\n", adapter.adapter, verdict.word())?;
        for finished in scenarios {
            line(out, finished)?;
        }
    }
    Ok(())
}

/// One scenario: what was seen where it went wrong, the requirements, how to see it again.
fn line(out: &mut String, finished: &Finished) -> std::fmt::Result {
    let of_it = |check: &&crate::verdict::CheckVerdict| check.verdict == finished.verdict;
    let first = finished.checks.iter().find(of_it);
    let proves: IndexSet<&str> = finished
        .checks
        .iter()
        .filter(of_it)
        .flat_map(|check| check.proves.iter().map(String::as_str))
        .collect();
    let (expected, seen) = first.map_or((String::new(), String::new()), |check| {
        (plain(&check.expected), plain(&check.seen))
    });
    writeln!(
        out,
        "- **{}/{}**: {expected}; {seen}",
        finished.area,
        plain(&finished.scenario)
    )?;
    let proves: Vec<&str> = proves.into_iter().collect();
    let again = anywhere(&finished.reproduce);
    if proves.is_empty() {
        writeln!(out, "  `{again}`")
    } else {
        writeln!(out, "  ({}) `{again}`", proves.join(", "))
    }
}

/// The line that runs it again, for somebody whose folders are others.
fn anywhere(reproduce: &str) -> String {
    let mut words = Vec::new();
    let mut given = reproduce.split(' ');
    while let Some(word) = given.next() {
        words.push(word);
        if matches!(word, "--checkout" | "--packages") && given.next().is_some() {
            words.push("DIR");
        }
    }
    words.join(" ")
}

/// One line of Markdown, with nothing of the run's own folders in it and nothing that Markdown would take for its own.
fn plain(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| "`[](),".contains(c));
        if bare.starts_with('/') && bare.matches('/').count() > 1 {
            let end = bare.rsplit('/').next().unwrap_or_default();
            words.push(word.replace(bare, &format!("…/{end}")));
        } else {
            words.push(word.to_owned());
        }
    }
    let mut short: String = words.join(" ").chars().take(SEEN).collect();
    if words.join(" ").chars().count() > SEEN {
        short.push('…');
    }
    short
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('*', "\\*")
}

fn version(adapter: &Adapter) -> &str {
    adapter.parts.version.as_deref().unwrap_or("–")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_marks_of_markdown_do_not_reach_the_page() {
        assert_eq!(
            plain("kernel: survivors is [`/tmp/x/y/bin/pi --a`, a|b *c* <d>]"),
            "kernel: survivors is [`…/pi --a`, a\\|b \\*c\\* &lt;d>]"
        );
        assert!(plain(&"word ".repeat(100)).ends_with('…'));
        assert_eq!(
            anywhere("pi-conform run 'x' --checkout /home/me/x --adapter y"),
            "pi-conform run 'x' --checkout DIR --adapter y"
        );
    }

    #[test]
    fn events_without_a_beginning_or_an_end_are_no_results() {
        assert_eq!(gather(vec![]).unwrap_err(), NoResults::NoRun);
        let run = Event::Run {
            format: 1,
            suite: String::new(),
            subject: "s".into(),
            about: String::new(),
            selected: 0,
            jobs: 1,
            seed: None,
            narrowed: Vec::new(),
        };
        assert_eq!(gather(vec![run]).unwrap_err(), NoResults::NoEnd);
    }
}
