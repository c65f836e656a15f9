//! One page that holds all: no network, no fonts or scripts of others, and readable without its own script.
//!
//! The page is a template, [`PAGE`], with its style and its script in files of their own. All texts are escaped by the
//! template engine; what is not seen is made visible first. A policy in the page lets no script run but this one.

use std::io::{self, Write};

use base64::Engine as _;
use minijinja::Environment;
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::report::gathered::{End, Gathered};
use crate::report::text::visible;
use crate::report::{Event, Finished, Reporter, Summary, svg};
use crate::verdict::{CheckVerdict, Verdict};

/// The page, as a template.
const PAGE: &str = include_str!("html/page.html");
/// Its style.
const STYLE: &str = include_str!("html/page.css");
/// The script of its filter.
const SCRIPT: &str = include_str!("html/filter.js");

/// Every verdict, in the order in which a page tells them.
const VERDICTS: [Verdict; 9] = [
    Verdict::Pass,
    Verdict::Fail,
    Verdict::HarnessError,
    Verdict::Stale,
    Verdict::NoEvidence,
    Verdict::Inconclusive,
    Verdict::Differs,
    Verdict::KnownFailure,
    Verdict::NotApplicable,
];

/// Collects the run and writes the page at its end.
pub struct Html<W> {
    out: W,
    run: Gathered,
}

impl<W: Write> Html<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            run: Gathered::default(),
        }
    }
}

impl<W: Write> Reporter for Html<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Some(End::Run(summary)) = self.run.take(event) {
            let run = std::mem::take(&mut self.run);
            let page = page(&run, summary).map_err(io::Error::other)?;
            self.out.write_all(page.as_bytes())?;
            self.out.flush()?;
        }
        Ok(())
    }
}

/// The whole page.
fn page(run: &Gathered, summary: &Summary) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    let syntax = minijinja::syntax::SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    // The name's ending makes the engine escape.
    environment.add_template("page.html", PAGE)?;
    let script = SCRIPT.trim();
    let digest = sha2::Sha256::digest(script.as_bytes());
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    let mut context = context(run, summary);
    context["style"] = STYLE.into();
    context["script"] = script.into();
    context["script_digest"] = digest.into();
    let template = environment.get_template("page.html")?;
    template.render(minijinja::value::Serde(&context))
}

fn context(run: &Gathered, summary: &Summary) -> Value {
    let bad = run.worst_first(|verdict| verdict != Verdict::Pass);
    let cards: Vec<Value> = bad
        .iter()
        .enumerate()
        .map(|(index, finished)| card(finished, index))
        .collect();
    let areas: Vec<Value> = run
        .areas()
        .iter()
        .map(|(name, numbers)| area(run, name, numbers))
        .collect();
    let unmatched: Vec<Value> = run
        .unmatched
        .iter()
        .map(|(entry, problem)| json!({"entry": visible(entry), "problem": visible(problem)}))
        .collect();
    json!({
        "subject": visible(&run.subject),
        "about": visible(&run.about),
        "suite": visible(&run.suite),
        "selected": summary.selected,
        "conclusion": summary.conclusion(run.unmatched.len()),
        "fine": summary.is_as_expected(run.unmatched.len()),
        "not_run": summary.not_run(),
        "totals": shares(summary, summary.selected),
        "areas": areas,
        "cards": cards,
        "unmatched": unmatched,
    })
}

/// How many of each verdict there are, with the part of the whole, in percent; those that are none left out.
fn shares(summary: &Summary, of: usize) -> Vec<Value> {
    let all = VERDICTS
        .iter()
        .map(|verdict| (verdict, summary.of(*verdict)));
    all.filter(|(_, number)| *number > 0)
        .map(|(verdict, number)| {
            let share = number as f64 * 100.0 / of.max(1) as f64;
            json!({"verdict": verdict.word(), "words": words(*verdict), "count": number, "share": format!("{share:.3}")})
        })
        .collect()
}

/// A verdict as a reader wants to see it.
fn words(verdict: Verdict) -> String {
    verdict.word().replace('-', " ")
}

fn area(run: &Gathered, name: &str, numbers: &Summary) -> Value {
    let mut passing: Vec<&Finished> = run
        .finished
        .iter()
        .filter(|finished| finished.area == name && finished.verdict == Verdict::Pass)
        .collect();
    passing.sort_by(|a, b| a.scenario.cmp(&b.scenario));
    let rows: Vec<Value> = passing
        .iter()
        .map(|finished| {
            json!({"scenario": visible(&finished.scenario), "took": took(finished.duration_ms)})
        })
        .collect();
    json!({
        "name": visible(name),
        "total": numbers.selected,
        "pass": numbers.pass,
        "shares": shares(numbers, numbers.selected),
        "bad": numbers.selected - numbers.pass,
        "passing": rows,
    })
}

/// A scenario that is not a pass.
fn card(finished: &Finished, index: usize) -> Value {
    let (passing, wrong): (Vec<_>, Vec<_>) = finished
        .checks
        .iter()
        .partition(|check| check.verdict == Verdict::Pass);
    let mut wrong = wrong;
    wrong.sort_by_key(|check| std::cmp::Reverse(check.verdict));
    let told = |checks: &[&CheckVerdict]| -> Vec<Value> {
        checks.iter().map(|one| check(finished, one)).collect()
    };
    let witnesses: Vec<Value> = finished
        .witnesses
        .iter()
        .map(|(name, says)| {
            let says: Vec<String> = says.iter().map(|line| visible(line)).collect();
            json!({"name": visible(name), "says": says})
        })
        .collect();
    let timeline: Vec<String> = finished.timeline.iter().map(|line| visible(line)).collect();
    let picture = finished.picture.as_ref();
    json!({
        "id": format!("s{index}"),
        "verdict": finished.verdict.word(),
        "words": words(finished.verdict),
        "open": finished.verdict == Verdict::Fail,
        "area": visible(&finished.area),
        "scenario": visible(&finished.scenario),
        "took": took(finished.duration_ms),
        "reruns": finished.reruns,
        "why": visible(&finished.why),
        "wrong": told(&wrong),
        "passing": told(&passing),
        "witnesses": witnesses,
        "timeline": timeline.join("\n"),
        "svg": picture.map(|picture| svg::draw(picture, &format!("t{index}"))),
        "left_out": picture.map_or(0, |picture| picture.left_out),
        "bundle": finished.bundle.as_deref().map(visible),
        "reproduce": visible(&finished.reproduce),
    })
}

fn check(finished: &Finished, check: &CheckVerdict) -> Value {
    let rules: Vec<Value> = check
        .proves
        .iter()
        .map(|id| {
            let rule = finished.rules.get(id).map_or("", String::as_str);
            json!({"id": visible(id), "rule": visible(rule)})
        })
        .collect();
    let (witness, seen) = witness(&check.seen);
    json!({
        "id": visible(&check.id),
        "verdict": check.verdict.word(),
        "words": words(check.verdict),
        "rules": rules,
        "expected": visible(&check.expected),
        "witness": witness,
        "seen": visible(seen),
    })
}

/// The witness that a check's words begin with, and the rest.
fn witness(seen: &str) -> (Option<&str>, &str) {
    match seen.split_once(": ") {
        Some((name @ ("claims" | "journal" | "kernel" | "runner"), rest)) => (Some(name), rest),
        _ => (None, seen),
    }
}

/// How long something took.
fn took(ms: u64) -> String {
    if ms < 1000 {
        format!("{ms} ms")
    } else {
        format!("{:.1} s", ms as f64 / 1000.0)
    }
}
