//! Known failures: what a subject is known to get wrong, check by check, each with a reason.
//!
//! ```yaml
//! known-failures:
//!   - scenario: descendant-holds-stdout
//!     check: "* call.settles"
//!     reason: "issue 41: the pipe is read to its end after the exit"
//! ```
//!
//! A known failure that passes is *stale*, an entry that matches nothing *unmatched*; both fail the run, so that the list cannot rot.

use globset::{Glob, GlobMatcher};
use serde::Deserialize;

use crate::check::words::nearest;
use crate::verdict::{ScenarioVerdict, Verdict};

/// A baseline file.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    scenario: String,
    check: String,
    reason: String,
    scenarios: GlobMatcher,
    checks: GlobMatcher,
    /// It matched a scenario that ran.
    met: bool,
    /// It matched a check in one.
    used: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    known_failures: Vec<Written>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    scenario: String,
    #[serde(default = "any")]
    check: String,
    reason: String,
}

fn any() -> String {
    "*".to_owned()
}

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It is not in the format.
    #[error("{0}")]
    Format(String),
    /// An entry says no reason.
    #[error("the entry for `{0}` has no reason; say why it is known to fail")]
    NoReason(String),
    /// A pattern is not one.
    #[error("`{pattern}` is no pattern: {what}")]
    Pattern {
        /// As written.
        pattern: String,
        /// What is wrong.
        what: String,
    },
}

/// An entry that matched nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The entry: scenario and check.
    pub entry: String,
    /// What is wrong, with the nearest name.
    pub problem: String,
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// When it is not in the format, an entry has no reason or a pattern is broken.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let file: File = serde_saphyr::from_str(text)
            .map_err(|error| BaselineError::Format(error.to_string()))?;
        let entries = file
            .known_failures
            .into_iter()
            .map(Entry::new)
            .collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// Turns failures that are known into `known-failure`, and known failures that pass into `stale`. `own` verdicts such as
    /// `inconclusive` stay: nothing is known about them.
    pub fn apply(&mut self, verdict: &mut ScenarioVerdict) {
        let mut touched = false;
        for entry in &mut self.entries {
            if !entry.meets(verdict) {
                continue;
            }
            entry.met = true;
            for check in &mut verdict.checks {
                if !entry.checks.is_match(&check.id) {
                    continue;
                }
                let pattern = entry.check.contains('*');
                match check.verdict {
                    Verdict::Fail => {
                        check.verdict = Verdict::KnownFailure;
                        check.seen += &format!(" (known: {})", entry.reason);
                        entry.used = true;
                        touched = true;
                    }
                    // A pattern stands for the checks that fail; only when none does is it stale, below.
                    Verdict::Pass | Verdict::Differs if !pattern => {
                        check.verdict = Verdict::Stale;
                        check.seen +=
                            &format!(" (the baseline says that it fails: {})", entry.reason);
                        entry.used = true;
                        touched = true;
                    }
                    _ => entry.used |= !pattern,
                }
            }
            let pattern_without_failure = entry.check.contains('*') && !entry.used;
            if pattern_without_failure
                && let Some(check) = verdict.checks.iter_mut().find(|check| {
                    entry.checks.is_match(&check.id) && check.verdict <= Verdict::Differs
                })
                && verdict.verdict <= Verdict::Differs
            {
                check.verdict = Verdict::Stale;
                check.seen += &format!(" (the baseline says that it fails: {})", entry.reason);
                entry.used = true;
                touched = true;
            }
        }
        if touched {
            let checks = verdict.checks.iter().map(|check| check.verdict);
            verdict.verdict = checks
                .filter(|v| *v != Verdict::NotApplicable)
                .max()
                .unwrap_or(verdict.verdict);
        }
    }

    /// Entries that matched nothing. `known` are all scenario names that exist for the adapter; one that exists but was not
    /// selected is no fault.
    pub fn unmatched(&self, known: &[&str]) -> Vec<Unmatched> {
        let wrong = self.entries.iter().filter_map(|entry| {
            let name = format!("{} / {}", entry.scenario, entry.check);
            if entry.met && !entry.used {
                let problem = "no check of the scenario is called so".to_owned();
                return Some(Unmatched {
                    entry: name,
                    problem,
                });
            }
            let exists = known
                .iter()
                .any(|its| entry.scenarios.is_match(its) || plain(its) == entry.scenario);
            (!entry.met && !exists).then(|| {
                let near = nearest(&entry.scenario, known.iter().copied().map(plain));
                let near = near.map_or(String::new(), |word| format!("; nearest is `{word}`"));
                Unmatched {
                    entry: name,
                    problem: format!("there is no such scenario{near}"),
                }
            })
        });
        wrong.collect()
    }
}

impl Entry {
    fn new(written: Written) -> Result<Self, BaselineError> {
        if written.reason.trim().is_empty() {
            return Err(BaselineError::NoReason(written.scenario));
        }
        Ok(Self {
            scenarios: glob(&written.scenario)?,
            checks: glob(&written.check)?,
            scenario: written.scenario,
            check: written.check,
            reason: written.reason,
            met: false,
            used: false,
        })
    }

    /// By its full name with axis values, by a pattern, or by the plain name for all axis values.
    fn meets(&self, verdict: &ScenarioVerdict) -> bool {
        let full = format!("{}/{}", verdict.area, verdict.name);
        [verdict.name.as_str(), plain(&verdict.name), full.as_str()]
            .iter()
            .any(|name| *name == self.scenario || self.scenarios.is_match(name))
    }
}

/// A name without its axis values.
pub fn plain(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// A glob in which brackets stand for themselves: names spell axis values in them.
pub fn glob(pattern: &str) -> Result<GlobMatcher, BaselineError> {
    let escaped = pattern
        .replace('[', "\u{1}")
        .replace(']', "[]]")
        .replace('\u{1}', "[[]");
    let glob = Glob::new(&escaped).map_err(|error| BaselineError::Pattern {
        pattern: pattern.to_owned(),
        what: error.kind().to_string(),
    })?;
    Ok(glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::CheckVerdict;

    fn verdict(name: &str, checks: &[(&str, Verdict)]) -> ScenarioVerdict {
        let checks: Vec<CheckVerdict> = checks
            .iter()
            .map(|(id, verdict)| CheckVerdict {
                id: (*id).to_owned(),
                proves: Vec::new(),
                verdict: *verdict,
                expected: String::new(),
                seen: "seen".to_owned(),
            })
            .collect();
        let worst = checks.iter().map(|check| check.verdict).max().unwrap();
        ScenarioVerdict {
            name: name.to_owned(),
            area: "drain".to_owned(),
            verdict: worst,
            checks,
        }
    }

    fn baseline(entry: &str) -> Baseline {
        Baseline::parse(&format!("known-failures:\n  - {entry}\n")).unwrap()
    }

    #[test]
    fn a_known_failure_is_calm_and_keeps_its_reason() {
        let mut known =
            baseline("{scenario: 'x[cut=7]', check: 'checks[0] call.ok', reason: issue 41}");
        let mut seven = verdict(
            "x[cut=7]",
            &[
                ("checks[0] call.ok", Verdict::Fail),
                ("checks[1] a.argv", Verdict::Pass),
            ],
        );
        known.apply(&mut seven);
        assert_eq!(seven.verdict, Verdict::KnownFailure);
        assert_eq!(seven.checks[0].seen, "seen (known: issue 41)");
        let mut eight = verdict("x[cut=8]", &[("checks[0] call.ok", Verdict::Fail)]);
        known.apply(&mut eight);
        assert_eq!(
            eight.verdict,
            Verdict::Fail,
            "another axis value is another matter"
        );
        assert_eq!(known.unmatched(&["x[cut=7]"]), []);
    }

    #[test]
    fn another_check_that_fails_still_fails() {
        let mut known = baseline("{scenario: x, check: 'checks[0] call.ok', reason: r}");
        let mut both = verdict(
            "x",
            &[
                ("checks[0] call.ok", Verdict::Fail),
                ("checks[1] a.argv", Verdict::Fail),
            ],
        );
        known.apply(&mut both);
        assert_eq!(both.verdict, Verdict::Fail);
    }

    #[test]
    fn a_known_failure_that_passes_is_stale() {
        for check in ["'checks[0] call.ok'", "'*'"] {
            let mut known = baseline(&format!("{{scenario: x, check: {check}, reason: r}}"));
            let mut passes = verdict("x", &[("checks[0] call.ok", Verdict::Pass)]);
            known.apply(&mut passes);
            assert_eq!(passes.verdict, Verdict::Stale, "{check}");
        }
    }

    #[test]
    fn entries_that_match_nothing_are_named() {
        let mut known = baseline("{scenario: x, check: 'checks[9] call.ok', reason: r}");
        known.apply(&mut verdict("x", &[("checks[0] call.ok", Verdict::Pass)]));
        assert_eq!(
            known.unmatched(&["x"])[0].problem,
            "no check of the scenario is called so"
        );
        let known = baseline("{scenario: descendant-holds-stdot, reason: r}");
        let problem = &known.unmatched(&["descendant-holds-stdout", "clean-exit"])[0].problem;
        assert_eq!(
            problem,
            "there is no such scenario; nearest is `descendant-holds-stdout`"
        );
        assert_eq!(
            known.unmatched(&["descendant-holds-stdot"]),
            [],
            "one that was not selected is no fault"
        );
    }

    #[test]
    fn a_reason_is_required_and_unknown_keys_are_refused() {
        let no_reason =
            Baseline::parse("known-failures:\n  - {scenario: x, reason: ' '}\n").unwrap_err();
        assert!(no_reason.to_string().contains("has no reason"));
        assert!(Baseline::parse("known-failures:\n  - {scenario: x}\n").is_err());
        assert!(Baseline::parse("known-failures:\n  - {scenario: x, reson: y}\n").is_err());
    }
}
