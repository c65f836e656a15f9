//! Markdown: a table of the areas, then each failure. Fits a job's summary page, which takes at most 1 MiB.

use std::io::{self, Write};

use crate::report::events::MutantSummary;
use crate::report::gathered::{End, Gathered};
use crate::report::text::{count, deciding, line};
use crate::report::{Event, Finished, Reporter, Summary};
use crate::verdict::Verdict;

/// Bytes of failures told in full; those behind are told by name.
const FULL_BYTES: usize = 600 * 1024;
/// Failures told by name behind those.
const BY_NAME: usize = 1000;
/// Longest text of a check, in characters.
const TEXT: usize = 2000;

/// Collects the run and writes it at its end.
pub struct Markdown<W> {
    out: W,
    run: Gathered,
}

impl<W: Write> Markdown<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            run: Gathered::default(),
        }
    }

    fn end(&mut self, summary: &Summary) -> io::Result<()> {
        let run = std::mem::take(&mut self.run);
        let out = &mut self.out;
        writeln!(out, "## pi-conform: {}\n", text(&run.subject))?;
        let not_run = summary.not_run();
        let mut told = format!(
            "{}: **{} pass**, **{} fail**",
            count(summary.selected, "scenario"),
            summary.pass,
            summary.fail
        );
        for (number, word) in [
            (summary.differs, "differ by a declared policy"),
            (summary.known_failure, "known to fail"),
            (summary.not_applicable, "not applicable"),
            (summary.stale, "stale"),
            (summary.flaky, "flaky"),
            (summary.inconclusive, "inconclusive"),
            (summary.no_evidence, "without evidence"),
            (summary.harness_error, "not run for a fault of the harness"),
            (not_run, "not run"),
        ] {
            if number > 0 {
                told += &format!(", {number} {word}");
            }
        }
        writeln!(out, "{told}. Suite {}.\n", text(&run.suite))?;
        let areas = run.areas();
        if !areas.is_empty() {
            writeln!(
                out,
                "| area | pass | fail | differs | known | not applicable | other |"
            )?;
            writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
            for (area, numbers) in &areas {
                row(out, &text(area), numbers)?;
            }
            if areas.len() > 1 {
                row(out, "**all**", summary)?;
            }
            writeln!(out)?;
        }
        let bad = run.worst_first(|verdict| verdict > Verdict::KnownFailure);
        if !bad.is_empty() {
            writeln!(out, "### Not as expected\n")?;
        }
        let (mut bytes, mut left) = (0, Vec::new());
        for finished in bad {
            let whole = in_full(finished);
            if bytes + whole.len() > FULL_BYTES {
                left.push(finished);
                continue;
            }
            bytes += whole.len();
            out.write_all(whole.as_bytes())?;
        }
        if !left.is_empty() {
            writeln!(out, "And {} more:\n", left.len())?;
            for finished in left.iter().take(BY_NAME) {
                writeln!(out, "- {}", heading(finished))?;
            }
            if left.len() > BY_NAME {
                writeln!(out, "- … {} in all", left.len())?;
            }
            writeln!(out)?;
        }
        let flaky = run.flaky();
        if !flaky.is_empty() {
            writeln!(out, "### Passed only when run again\n")?;
            for finished in flaky {
                let words: Vec<&str> = finished.attempts.iter().map(|a| a.verdict.word()).collect();
                writeln!(out, "- {}: {}", heading(finished), words.join(", "))?;
            }
            writeln!(out)?;
        }
        if !run.unmatched.is_empty() {
            writeln!(out, "### Entries of the baseline that match nothing\n")?;
            for (entry, problem) in &run.unmatched {
                writeln!(out, "- {}: {}", code(entry), text(problem))?;
            }
            writeln!(out)?;
        }
        out.flush()
    }

    fn matrix(&mut self, summary: &MutantSummary) -> io::Result<()> {
        let run = std::mem::take(&mut self.run);
        let out = &mut self.out;
        writeln!(out, "## pi-conform: broken delegators\n")?;
        writeln!(
            out,
            "{}: **{} killed**, **{} survived**; the sound reference is accused by {}.\n",
            count(summary.mutants, "mutant"),
            summary.killed,
            summary.survived.len(),
            count(summary.sound_accused.len(), "scenario")
        )?;
        writeln!(out, "| mutant | | what is broken | caught by |")?;
        writeln!(out, "|---|---|---|---|")?;
        for mutant in &run.mutants {
            let word = if mutant.killed { "killed" } else { "survived" };
            let by = mutant.killers.first().map_or("nobody".to_owned(), |by| {
                format!("{} / {}", text(&by.scenario), text(&by.check))
            });
            let (name, about) = (text(&mutant.mutant), text(&mutant.about));
            writeln!(out, "| {name} | {word} | {about} | {by} |")?;
        }
        for name in &summary.sound_accused {
            writeln!(out, "\n- the sound reference fails {}", code(name))?;
        }
        out.flush()
    }
}

fn row<W: Write>(out: &mut W, name: &str, numbers: &Summary) -> io::Result<()> {
    let other = numbers.stale + numbers.inconclusive + numbers.no_evidence + numbers.harness_error;
    let cell = |number: usize| match number {
        0 => "·".to_owned(),
        number => number.to_string(),
    };
    let fail = match numbers.fail {
        0 => cell(0),
        number => format!("**{number}**"),
    };
    writeln!(
        out,
        "| {name} | {} | {fail} | {} | {} | {} | {} |",
        cell(numbers.pass),
        cell(numbers.differs),
        cell(numbers.known_failure),
        cell(numbers.not_applicable),
        cell(other)
    )
}

fn heading(finished: &Finished) -> String {
    let name = format!("{}/{}", finished.area, finished.scenario);
    format!("{} {}", finished.verdict.word(), code(&name))
}

fn in_full(finished: &Finished) -> String {
    let mut lines = vec![
        format!("#### {}", heading(finished)),
        String::new(),
        text(&finished.why),
        String::new(),
    ];
    for check in deciding(finished) {
        lines.push(format!("- {}", code(&check.id)));
        for id in &check.proves {
            let rule = finished.rules.get(id).map_or("", String::as_str);
            lines.push(format!("  - requirement {}: {}", code(id), text(rule)));
        }
        lines.push(format!("  - expected: {}", text(&check.expected)));
        lines.push(format!("  - seen: {}", text(&check.seen)));
    }
    let reproduce = format!("Reproduce: {}", code(&finished.reproduce));
    lines.extend([String::new(), reproduce, String::new()]);
    let mut whole = lines.join("\n");
    whole.push('\n');
    whole
}

/// A text on one line that means nothing to Markdown or HTML.
fn text(raw: &str) -> String {
    let mut escaped = String::new();
    let whole = line(raw);
    for c in whole.chars().take(TEXT) {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            // An at sign would call somebody of that name.
            '@' => escaped += "&#64;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    if whole.chars().nth(TEXT).is_some() {
        escaped += " …";
    }
    escaped
}

/// A text as code on one line: with a fence longer than any run of back-quotes in it.
fn code(raw: &str) -> String {
    let raw = line(raw);
    let longest = raw.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if raw.starts_with('`') || raw.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{raw}{pad}{fence}")
}

impl<W: Write> Reporter for Markdown<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match self.run.take(event) {
            Some(End::Run(summary)) => self.end(summary),
            Some(End::Matrix(summary)) => self.matrix(summary),
            None => Ok(()),
        }
    }
}
