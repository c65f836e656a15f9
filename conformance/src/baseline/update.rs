//! Bringing a baseline up to date: only the lines of entries that come or go change.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::civil::Date;

use super::{Baseline, Entry};
use crate::check::words::short;
use crate::verdict::{CheckVerdict, ScenarioVerdict, Verdict};
use crate::yaml::YamlError;

/// The key under which the entries stand.
const KEY: &str = "known-failures:";

/// A baseline brought up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The whole file.
    pub text: String,
    /// New entries: scenario and check.
    pub added: Vec<String>,
    /// Entries that were taken out.
    pub removed: Vec<String>,
}

/// What a baseline must say after a run. `seen` are the run's verdicts without any baseline, `known` all scenarios that there are.
///
/// Entries of failures that are new are added at the end, with what was seen as a reason to be replaced; those that are stale or
/// match nothing are taken out. An entry that has expired, is flaky, or is for a scenario that did not run, stays. Every other line
/// stays byte for byte, comments too.
///
/// # Errors
/// When the file is not right, or its entries do not stand one below the other after dashes.
pub fn update(
    file: &str,
    text: &str,
    seen: &[ScenarioVerdict],
    known: &[&str],
) -> Result<Change, Box<YamlError>> {
    // On the first day nothing has expired: whether it still holds is all that matters here.
    let mut baseline = Baseline::parse(file, text, Date::MIN)?;
    let mut new: Vec<(String, CheckVerdict)> = Vec::new();
    let mut told = BTreeSet::new();
    for verdict in seen {
        let mut verdict = verdict.clone();
        baseline.apply(&mut verdict);
        for check in verdict.checks {
            let is_new = check.verdict == Verdict::Fail;
            if is_new && told.insert((verdict.name.clone(), check.id.clone())) {
                new.push((verdict.name.clone(), check));
            }
        }
    }
    let name = |entry: &Entry| format!("{} / {}", entry.scenario, entry.check);
    let gone = |entry: &Entry| {
        let stale = entry.misses > 0 && entry.hits == 0 && entry.flaky.is_none();
        let nameless = entry.met && entry.named == 0;
        stale || nameless || !entry.met && !entry.exists(known)
    };
    let (goes, stays): (Vec<&Entry>, Vec<&Entry>) = baseline.entries.iter().partition(|e| gone(e));
    let mut change = Change {
        text: text.to_owned(),
        added: new
            .iter()
            .map(|(name, check)| format!("{name} / {}", check.id))
            .collect(),
        removed: goes.iter().map(|entry| name(entry)).collect(),
    };
    if goes.is_empty() && new.is_empty() {
        return Ok(change);
    }
    let lines = Lines::of(text);
    let wrong = |offset| {
        let message =
            "only entries that stand one below the other, each after a dash, can be changed";
        let help = "write each as a line `- scenario: …` with its keys below it";
        Box::new(YamlError::at(
            file,
            text,
            message.to_owned(),
            Some(help.to_owned()),
            offset,
        ))
    };
    let place = |entry: &Entry| lines.entry(entry.offset).ok_or_else(|| wrong(entry.offset));
    let removed = goes
        .iter()
        .map(|entry| place(entry))
        .collect::<Result<Vec<_>, _>>()?;
    let kept = stays
        .iter()
        .map(|entry| place(entry))
        .collect::<Result<Vec<_>, _>>()?;
    let all = || removed.iter().chain(&kept);
    let last = all().map(|place| place.last).max();
    let indent = all().next().map_or(2, |place| place.indent);
    let entries: String = new
        .iter()
        .map(|(name, check)| entry(name, check, indent))
        .collect();
    let after = last.or_else(|| lines.0.iter().position(|line| line.starts_with(KEY)));
    let mut out = String::new();
    for (number, line) in lines.0.iter().enumerate() {
        let goes = removed
            .iter()
            .any(|place| (place.first..=place.last).contains(&number));
        if goes && !is_comment(line) {
            // Its line goes.
        } else if last.is_none() && after == Some(number) {
            out += &line.replace("[]", "").replace(": \n", ":\n");
        } else {
            out += line;
        }
        if after == Some(number) {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out += &entries;
        }
    }
    if after.is_none() {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        let _ = write!(out, "{KEY}\n{entries}");
    }
    change.text = out;
    Ok(change)
}

/// A new entry as text. JSON's texts are YAML's too.
fn entry(name: &str, check: &CheckVerdict, indent: usize) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let dash = " ".repeat(indent);
    let mut text = format!("{dash}- scenario: {}\n", quoted(name));
    let _ = writeln!(text, "{dash}  check: {}", quoted(&check.id));
    if let Some(kind) = check.kind {
        let _ = writeln!(text, "{dash}  kind: {}", kind.word());
    }
    let reason = format!("to be explained: {}", short(&check.seen));
    let _ = writeln!(text, "{dash}  reason: {}", quoted(&reason));
    text
}

/// The lines of a text, each with its end.
struct Lines<'a>(Vec<&'a str>);

/// The lines of one entry, both ends included.
struct Place {
    first: usize,
    last: usize,
    /// Blanks before its dash.
    indent: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self(text.split_inclusive('\n').collect())
    }

    /// The lines of the entry that begins at a byte of the text.
    fn entry(&self, offset: usize) -> Option<Place> {
        let mut end = 0;
        let at = self.0.iter().position(|line| {
            end += line.len();
            end > offset
        })?;
        let dash = |number: &usize| {
            let line = self.0[*number].trim();
            line == "-" || line.starts_with("- ")
        };
        // The dash stands before its first key, or alone on a line above it.
        let first = (0..=at).rev().find(|number| !self.is_idle(*number))?;
        let first = if dash(&first) {
            first
        } else {
            (0..first).rev().find(|n| !self.is_idle(*n))?
        };
        if !dash(&first) {
            return None;
        }
        let indent = indent(self.0[first]);
        let next = (first + 1..self.0.len())
            .find(|&number| !self.is_idle(number) && self::indent(self.0[number]) <= indent)
            .unwrap_or(self.0.len());
        let last = (first..next).rev().find(|&number| !self.is_idle(number))?;
        Some(Place {
            first,
            last,
            indent,
        })
    }

    /// A blank line, or one that is a comment alone.
    fn is_idle(&self, number: usize) -> bool {
        self.0[number].trim().is_empty() || is_comment(self.0[number])
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verdict::FailureKind;

    fn verdict(name: &str, checks: &[(&str, Verdict)]) -> ScenarioVerdict {
        let checks: Vec<CheckVerdict> = checks
            .iter()
            .map(|(id, verdict)| CheckVerdict {
                id: (*id).to_owned(),
                proves: Vec::new(),
                verdict: *verdict,
                expected: String::new(),
                seen: "claims: call.ok is \"no\"".to_owned(),
                kind: (*verdict == Verdict::Fail).then_some(FailureKind::WrongClaim),
            })
            .collect();
        ScenarioVerdict {
            name: name.to_owned(),
            area: "drain".to_owned(),
            verdict: checks.iter().map(|check| check.verdict).max().unwrap(),
            checks,
        }
    }

    fn changed(text: &str, seen: &[ScenarioVerdict], known: &[&str]) -> Change {
        update("b.yaml", text, seen, known).unwrap_or_else(|error| panic!("{error}"))
    }

    const FILE: &str = "# ours
known-failures:
  # the pipe
  - scenario: holds   # odd
    check: 'checks[0] call.ok'
    reason: >
      issue 41

  - {scenario: 'cut[at=7]', reason: issue 40}
  # at the end
  - scenario: gone
    reason: issue 39
# bye
";

    #[test]
    fn new_failures_come_stale_and_unmatched_entries_go_and_all_else_stays() {
        let seen = [
            verdict("holds", &[("checks[0] call.ok", Verdict::Fail)]),
            verdict("cut[at=7]", &[("checks[0] call.ok", Verdict::Pass)]),
            verdict("more[x=1]", &[("checks[3] a.argv", Verdict::Fail)]),
        ];
        let change = changed(FILE, &seen, &["holds", "cut[at=7]", "more[x=1]"]);
        let expected = "# ours
known-failures:
  # the pipe
  - scenario: holds   # odd
    check: 'checks[0] call.ok'
    reason: >
      issue 41

  # at the end
  - scenario: \"more[x=1]\"
    check: \"checks[3] a.argv\"
    kind: wrong-claim
    reason: \"to be explained: claims: call.ok is \\\"no\\\"\"
# bye
";
        assert_eq!(change.text, expected);
        assert_eq!(change.added, ["more[x=1] / checks[3] a.argv"]);
        assert_eq!(change.removed, ["cut[at=7] / *", "gone / *"]);
        let again = changed(&change.text, &seen, &["holds", "cut[at=7]", "more[x=1]"]);
        assert_eq!(again.text, change.text, "once is enough");
    }

    #[test]
    fn an_empty_or_missing_list_takes_entries() {
        let seen = [verdict("s", &[("checks[0] call.ok", Verdict::Fail)])];
        for text in [
            "",
            "# none\nknown-failures: []\n",
            "known-failures:\n",
            "known-failures: []",
        ] {
            let change = changed(text, &seen, &["s"]);
            assert_eq!(
                changed(&change.text, &seen, &["s"]).added,
                Vec::<String>::new(),
                "{text}"
            );
            assert_eq!(change.text.contains("# none"), text.contains("# none"));
        }
        let gone = [verdict("s", &[("checks[0] call.ok", Verdict::Pass)])];
        let empty = changed(
            "known-failures:\n  - {scenario: s, reason: r}\n",
            &gone,
            &["s"],
        );
        assert_eq!(empty.text, "known-failures:\n");
    }

    #[test]
    fn a_list_in_brackets_is_not_touched() {
        let seen = [verdict("s", &[("checks[0] call.ok", Verdict::Pass)])];
        let text = "known-failures: [{scenario: s, reason: r}]\n";
        let error = update("b.yaml", text, &seen, &["s"])
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("b.yaml:1:18: only entries that stand"),
            "{error}"
        );
    }

    #[test]
    fn an_entry_that_did_not_run_stays() {
        let change = changed(FILE, &[], &["holds", "cut[at=7]", "gone"]);
        assert_eq!(change.text, FILE);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever stands around the entries, an update that changes nothing changes nothing, and one that takes an entry out
        /// leaves every comment.
        #[test]
        fn comments_survive_and_nothing_changes_by_itself(
            entries in proptest::collection::vec((0_usize..4, any::<bool>(), "[ ]{0,3}(#[ a-z:{-]{0,9})?"), 1..8),
            taken in any::<prop::sample::Index>(),
            last in any::<bool>(),
        ) {
            let mut text = "# head\nknown-failures:\n".to_owned();
            for (number, (style, spaced, comment)) in entries.iter().enumerate() {
                if *spaced {
                    text += &format!("\n{comment}\n");
                }
                let note = if comment.contains('#') { " # note" } else { "" };
                text += &match style {
                    0 => format!("  - {{scenario: s{number}, reason: r}}{note}\n"),
                    1 => format!("  - scenario: s{number}{note}\n    reason: 'r # no comment'\n"),
                    2 => format!("  -\n    scenario: s{number}\n    reason: |\n      r\n\n      s\n"),
                    _ => format!("  - reason: r\n    check: '*'\n    scenario: \"s{number}\"\n"),
                };
            }
            if last {
                text.pop();
            }
            let names: Vec<String> = (0..entries.len()).map(|number| format!("s{number}")).collect();
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let fails: Vec<ScenarioVerdict> =
                known.iter().map(|name| verdict(name, &[("checks[0] call.ok", Verdict::Fail)])).collect();
            prop_assert_eq!(&changed(&text, &fails, &known).text, &text);
            let gone = taken.index(entries.len());
            let mut seen = fails.clone();
            seen[gone] = verdict(known[gone], &[("checks[0] call.ok", Verdict::Pass)]);
            let change = changed(&text, &seen, &known);
            let comments = |text: &str| {
                let lines = text.lines().filter(|line| is_comment(line));
                lines.map(str::to_owned).collect::<Vec<_>>()
            };
            prop_assert_eq!(comments(&change.text), comments(&text));
            prop_assert_eq!(change.removed.len(), 1);
            let left = Baseline::parse("b.yaml", &change.text, Date::MIN).unwrap();
            prop_assert_eq!(left.entries.len(), entries.len() - 1);
        }
    }
}
