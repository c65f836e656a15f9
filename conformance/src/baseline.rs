//! Known failures: what a subject is known to get wrong, check by check, each with a reason.
//!
//! ```yaml
//! known-failures:
//!   - scenario: descendant-holds-stdout
//!     check: "* call.settles"
//!     kind: hang
//!     reason: "the pipe is read to its end after the exit"
//!     issue: https://issues.example/41
//!     until: 2027-06-30
//! ```
//!
//! A known failure that passes is *stale*, an entry that matches nothing *unmatched*, one whose day is over *expired*; each fails the
//! run, so that the list cannot rot.

mod file;
mod update;

use globset::{Glob, GlobMatcher};
use jiff::civil::Date;

use crate::catalogue::Catalogue;
use crate::check::words::nearest;
use crate::scenario::Planned;
use crate::verdict::{CheckVerdict, FailureKind, ScenarioVerdict, Verdict};
use crate::yaml::YamlError;

pub use update::{Change, update};

/// A baseline file.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    file: String,
    text: String,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    scenario: String,
    check: String,
    reason: String,
    issue: Option<String>,
    kind: Option<Kind>,
    /// The last day on which it counts.
    until: Option<Date>,
    /// It fails now and then: in this share of its runs.
    flaky: Option<f64>,
    expired: bool,
    /// Where it stands in the file, in bytes.
    offset: usize,
    scenarios: GlobMatcher,
    checks: GlobMatcher,
    /// It matched a scenario that ran.
    met: bool,
    /// It matched a check in one.
    used: bool,
    /// Checks that failed as it says, that did not, and that are called as it says.
    hits: usize,
    misses: usize,
    named: usize,
}

/// How an entry says that its check fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Verdict(Verdict),
    Failure(FailureKind),
}

/// A pattern that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no pattern: {what}")]
pub struct PatternError {
    /// As written.
    pub pattern: String,
    /// What is wrong.
    pub what: String,
}

/// An entry that matched nothing, or whose day is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The entry: scenario and check.
    pub entry: String,
    /// What is wrong, with the nearest name.
    pub problem: String,
}

impl Baseline {
    /// Reads a baseline; `file` is its name for people, `today` decides which entries have expired.
    ///
    /// # Errors
    /// With the place: when it is not in the format, an entry has no reason, or a pattern, a kind, a date or a rate is none.
    pub fn parse(file: &str, text: &str, today: Date) -> Result<Self, Box<YamlError>> {
        Ok(Self {
            file: file.to_owned(),
            text: text.to_owned(),
            entries: file::read(file, text, today)?,
        })
    }

    /// Turns failures that are known into `known-failure`, and known failures that pass into `stale`. `own` verdicts such as
    /// `inconclusive` stay, unless an entry names them: nothing is known about them.
    pub fn apply(&mut self, verdict: &mut ScenarioVerdict) {
        let mut touched = false;
        for entry in &mut self.entries {
            if !entry.meets(verdict) {
                continue;
            }
            entry.met = true;
            if entry.expired {
                continue;
            }
            for check in &mut verdict.checks {
                if entry.checks.is_match(&check.id) {
                    touched |= entry.judge(check);
                }
            }
            let idle_pattern = entry.check.contains('*') && !entry.used && entry.flaky.is_none();
            if idle_pattern
                && verdict.verdict <= Verdict::Differs
                && let Some(check) = verdict.checks.iter_mut().find(|check| {
                    entry.checks.is_match(&check.id) && check.verdict <= Verdict::Differs
                })
            {
                check.verdict = Verdict::Stale;
                check.seen += &format!(" (the baseline says that it fails: {})", entry.why());
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

    /// Entries that matched nothing, and those that have expired. `known` are all scenario names that exist for the adapter; one
    /// that exists but was not selected is no fault.
    pub fn unmatched(&self, known: &[&str]) -> Vec<Unmatched> {
        let wrong = self.entries.iter().filter_map(|entry| {
            let problem = entry.problem(known)?;
            Some(Unmatched {
                entry: format!("{} / {}", entry.scenario, entry.check),
                problem,
            })
        });
        wrong.collect()
    }

    /// The sound reference promises to keep every `must`: that it does so now and then is no expectation.
    ///
    /// # Errors
    /// When a flaky entry covers a check that shows such a requirement, with its place.
    pub fn refuse_flaky(
        &self,
        all: &[Planned],
        catalogue: &Catalogue,
    ) -> Result<(), Box<YamlError>> {
        let must = |id: &&String| {
            let requirement = catalogue.requirements.get(*id);
            requirement.is_some_and(|requirement| requirement.level == "must")
        };
        for entry in self.entries.iter().filter(|entry| entry.flaky.is_some()) {
            for planned in all.iter().filter(|it| entry.is_for(&it.area, &it.name)) {
                let scenario = &planned.scenario;
                let checks = crate::check::ids(scenario);
                for (id, check) in checks.iter().zip(&scenario.checks) {
                    let own = [&check.proves, &scenario.proves];
                    let proves = own.into_iter().find(|ids| !ids.is_empty());
                    let found = proves.into_iter().flatten().find(must);
                    let Some(found) = found.filter(|_| entry.checks.is_match(id)) else {
                        continue;
                    };
                    let message = format!(
                        "the reference may not be flaky in `{id}` of `{}`: `{found}` is a must",
                        planned.name
                    );
                    let (file, text) = (&self.file, &self.text);
                    let error = YamlError::at(file, text, message, None, entry.offset);
                    return Err(Box::new(error));
                }
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Holds the entry against a check that is called as it says; whether that changed the check.
    fn judge(&mut self, check: &mut CheckVerdict) -> bool {
        let pattern = self.check.contains('*');
        self.named += 1;
        let fails = check.verdict > Verdict::Stale;
        if fails && self.fits(check) {
            check.verdict = Verdict::KnownFailure;
            check.seen += &format!(" ({})", self.known());
            self.used = true;
            self.hits += 1;
            return true;
        }
        match check.verdict {
            Verdict::Fail if !pattern => {
                self.misses += 1;
                self.used = true;
                if let Some(kind) = self.kind {
                    check.seen += &format!(" (the baseline knows it as `{}`)", kind.word());
                }
                false
            }
            // A pattern stands for the checks that fail; only when none does is it stale.
            Verdict::Pass | Verdict::Differs if !pattern && self.flaky.is_none() => {
                check.verdict = Verdict::Stale;
                check.seen += &format!(" (the baseline says that it fails: {})", self.why());
                self.used = true;
                self.misses += 1;
                true
            }
            verdict => {
                self.misses +=
                    usize::from(verdict <= Verdict::Differs && verdict != Verdict::NotApplicable);
                self.used |= !pattern;
                false
            }
        }
    }

    /// Whether the check fails as the entry says.
    fn fits(&self, check: &CheckVerdict) -> bool {
        match self.kind {
            None => check.verdict == Verdict::Fail,
            Some(Kind::Verdict(verdict)) => check.verdict == verdict,
            Some(Kind::Failure(kind)) => check.kind == Some(kind),
        }
    }

    /// What is said of a failure that is known.
    fn known(&self) -> String {
        match (self.flaky, self.until) {
            (Some(rate), Some(until)) => {
                format!(
                    "known to fail in {rate} of its runs, until {until}: {}",
                    self.why()
                )
            }
            _ => format!("known: {}", self.why()),
        }
    }

    fn why(&self) -> String {
        let issue = self.issue.as_ref();
        let issue = issue.map_or(String::new(), |issue| format!(", {issue}"));
        format!("{}{issue}", self.reason)
    }

    /// By its full name with axis values, by a pattern, or by the plain name for all axis values.
    fn meets(&self, verdict: &ScenarioVerdict) -> bool {
        self.is_for(&verdict.area, &verdict.name)
    }

    fn is_for(&self, area: &str, name: &str) -> bool {
        let full = format!("{area}/{name}");
        [name, plain(name), full.as_str(), plain(&full)]
            .iter()
            .any(|name| *name == self.scenario || self.scenarios.is_match(name))
    }

    /// There is a scenario that it is for.
    fn exists(&self, known: &[&str]) -> bool {
        let own = self.scenario.rsplit('/').next().unwrap_or_default();
        known.iter().any(|its| {
            self.scenarios.is_match(its)
                || plain(its) == self.scenario
                || *its == own
                || plain(its) == own
        })
    }

    fn problem(&self, known: &[&str]) -> Option<String> {
        if let Some(until) = self.until.filter(|_| self.expired) {
            return Some(format!(
                "it expired on {until}: mend the subject, or look at it again and give it a new day"
            ));
        }
        if self.met && !self.used {
            return Some("no check of the scenario is called so".to_owned());
        }
        (!self.met && !self.exists(known)).then(|| {
            let near = nearest(&self.scenario, known.iter().copied().map(plain));
            let near = near.map_or(String::new(), |word| format!("; nearest is `{word}`"));
            format!("there is no such scenario{near}")
        })
    }
}

impl Kind {
    /// Verdicts that an entry may expect.
    const VERDICTS: [Verdict; 3] = [Verdict::Fail, Verdict::NoEvidence, Verdict::Inconclusive];

    fn all() -> impl Iterator<Item = Self> {
        let verdicts = Self::VERDICTS.map(Self::Verdict).into_iter();
        verdicts.chain(FailureKind::ALL.map(Self::Failure))
    }

    fn word(self) -> &'static str {
        match self {
            Self::Verdict(verdict) => verdict.word(),
            Self::Failure(kind) => kind.word(),
        }
    }
}

/// A name without its axis values.
pub fn plain(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// A glob in which brackets stand for themselves: names spell axis values in them.
pub fn glob(pattern: &str) -> Result<GlobMatcher, PatternError> {
    let escaped = pattern
        .replace('[', "\u{1}")
        .replace(']', "[]]")
        .replace('\u{1}', "[[]");
    let glob = Glob::new(&escaped).map_err(|error| PatternError {
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
                kind: (*verdict == Verdict::Fail).then_some(FailureKind::WrongClaim),
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
        parse(entry).unwrap_or_else(|error| panic!("{error}"))
    }

    fn parse(entry: &str) -> Result<Baseline, Box<YamlError>> {
        let today = jiff::civil::date(2026, 12, 1);
        Baseline::parse("b.yaml", &format!("known-failures:\n  - {entry}\n"), today)
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
    fn an_entry_may_say_how_it_fails() {
        for (kind, expected) in [
            ("wrong-claim", Verdict::KnownFailure),
            ("fail", Verdict::KnownFailure),
            ("leak", Verdict::Fail),
            ("no-evidence", Verdict::Fail),
        ] {
            let entry =
                format!("{{scenario: x, check: 'checks[0] call.ok', kind: {kind}, reason: r}}");
            let mut known = baseline(&entry);
            let mut fails = verdict("x", &[("checks[0] call.ok", Verdict::Fail)]);
            known.apply(&mut fails);
            assert_eq!(fails.verdict, expected, "{kind}");
        }
        let mut known = baseline("{scenario: x, check: '*', kind: no-evidence, reason: r}");
        let mut blank = verdict("x", &[("checks[0] call.ok", Verdict::NoEvidence)]);
        known.apply(&mut blank);
        assert_eq!(blank.verdict, Verdict::KnownFailure);
    }

    #[test]
    fn an_entry_whose_day_is_over_excuses_nothing_and_is_told() {
        let until = |day: &str| baseline(&format!("{{scenario: x, reason: r, until: {day}}}"));
        let fails = || verdict("x", &[("checks[0] call.ok", Verdict::Fail)]);
        let (mut good, mut over) = (until("2026-12-01"), until("2026-11-30"));
        let (mut excused, mut told) = (fails(), fails());
        good.apply(&mut excused);
        over.apply(&mut told);
        assert_eq!(
            excused.verdict,
            Verdict::KnownFailure,
            "its last day counts"
        );
        assert_eq!(good.unmatched(&["x"]), []);
        assert_eq!(told.verdict, Verdict::Fail);
        let problem = &over.unmatched(&["x"])[0].problem;
        assert!(problem.starts_with("it expired on 2026-11-30"), "{problem}");
    }

    #[test]
    fn what_is_flaky_may_pass_and_fail() {
        let mut known = baseline(
            "{scenario: x, check: 'checks[0] call.ok', reason: r, issue: '#4', flaky: {rate: 0.1, until: 2027-01-01}}",
        );
        let mut passes = verdict("x", &[("checks[0] call.ok", Verdict::Pass)]);
        let mut fails = verdict("x", &[("checks[0] call.ok", Verdict::Fail)]);
        known.apply(&mut passes);
        known.apply(&mut fails);
        assert_eq!(passes.verdict, Verdict::Pass);
        assert_eq!(fails.verdict, Verdict::KnownFailure);
        assert_eq!(
            fails.checks[0].seen,
            "seen (known to fail in 0.1 of its runs, until 2027-01-01: r, #4)"
        );
        assert_eq!(known.unmatched(&["x"]), []);
    }

    #[test]
    fn the_reference_may_not_be_flaky_in_a_must() {
        let text = "scenario: s\nproves: [drain.clean-exit]\nwhy: w\nsteps: [{call: {}}]\nchecks: [{call.ok: true}]\n";
        let planned = Planned {
            name: "s".to_owned(),
            area: "a".to_owned(),
            file: String::new(),
            axes: indexmap::IndexMap::new(),
            scenario: serde_saphyr::from_str(text).unwrap(),
        };
        let catalogue = Catalogue::embedded().unwrap();
        let flaky = "reason: r, flaky: {rate: 0.1, until: 2027-01-01}";
        let error = baseline(&format!("{{scenario: s, {flaky}}}"))
            .refuse_flaky(std::slice::from_ref(&planned), &catalogue)
            .unwrap_err();
        assert!(
            error.to_string().ends_with("`drain.clean-exit` is a must"),
            "{error}"
        );
        let other = baseline(&format!("{{scenario: other, {flaky}}}"));
        assert!(other.refuse_flaky(&[planned], &catalogue).is_ok());
    }

    #[test]
    fn what_is_wrong_in_an_entry_is_told_with_its_place() {
        for (entry, said) in [
            (
                "{scenario: x, reason: ' '}",
                "b.yaml:2:27: the entry for `x` has no reason",
            ),
            ("{scenario: x}", "the key `reason` is missing"),
            (
                "{scenario: x, reson: y}",
                "b.yaml:2:19: there is no key `reson`",
            ),
            (
                "{scenario: x, reason: y, kind: leek}",
                "b.yaml:2:36: there is no kind `leek`",
            ),
            (
                "{scenario: x, reason: y, until: soon}",
                "b.yaml:2:37: `soon` is no date",
            ),
            (
                "{scenario: x, reason: y, flaky: {rate: 1.0, until: 2027-01-01}}",
                "b.yaml:2:44: the rate 1 is not between 0 and 1",
            ),
            (
                "{scenario: x, reason: y, flaky: {rate: 0.5}}",
                "the key `until` is missing",
            ),
            ("{scenario: 'x{', reason: y}", "`x{` is no pattern"),
        ] {
            let error = parse(entry).unwrap_err().to_string();
            assert!(error.contains(said), "{entry}: {error}");
        }
        assert!(Baseline::parse("b.yaml", "known-failures:\n", Date::MIN).is_ok());
    }
}
