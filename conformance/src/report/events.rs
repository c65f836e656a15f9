//! The events of a run, in the order in which they happened. These types are the format of `--format json`: one line an event.
//!
//! | `type` | when | fields |
//! |---|---|---|
//! | `run` | once, first | `format` (this format's number), `suite` (version), `subject`, `about`, `selected`, `jobs`, `seed`, `narrowed` |
//! | `started` | a scenario begins | `scenario`, `area` |
//! | `finished` | a scenario is judged | see [`Finished`] |
//! | `unmatched` | at the end, an entry of the baseline that matched nothing | `entry`, `problem` |
//! | `rounds` | at the end of a run of several rounds | see [`Rounds`] |
//! | `mutant` | with `mutants`, one is through | see [`MutantJudged`] |
//! | `summary` | once, last | see [`Summary`], or with `mutants` [`MutantSummary`] |
//!
//! Within one format number fields are only added, never removed or changed in meaning. A reader skips events and fields
//! that it does not know.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::check::picture::Picture;
use crate::verdict::{CheckVerdict, Verdict};

/// Number of this format.
pub const FORMAT: u32 = 1;

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins.
    Run {
        /// [`FORMAT`].
        format: u32,
        /// Version of the suite.
        suite: String,
        /// The adapter's name.
        subject: String,
        /// What it is.
        about: String,
        /// How many scenarios were selected.
        selected: usize,
        /// How many run at once.
        jobs: usize,
        /// What the order of each round is made from, where it is not the written one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
        /// Capabilities that the adapter declares and this run leaves out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        narrowed: Vec<Narrowed>,
    },
    /// A scenario begins.
    Started {
        /// Its full name with axis values.
        scenario: String,
        /// Its area.
        area: String,
    },
    /// A scenario is judged.
    Finished(Box<Finished>),
    /// An entry of the baseline matched nothing.
    Unmatched {
        /// Scenario and check as the entry names them.
        entry: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Several rounds are over.
    Rounds(Box<Rounds>),
    /// A mutant is through.
    Mutant(Box<MutantJudged>),
    /// The run is over.
    Summary(Totals),
}

/// Numbers at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Totals {
    /// Of a run.
    Run(Summary),
    /// Of a kill matrix.
    Mutants(MutantSummary),
}

/// A capability that this run does without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Narrowed {
    /// Its name.
    pub capability: String,
    /// Why, in the words of the file that says so.
    pub reason: String,
}

/// How often which scenario got which verdict, over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rounds {
    /// Rounds that began.
    pub rounds: u32,
    /// Every scenario that was judged, in order of its first verdict.
    pub scenarios: Vec<Tally>,
}

/// One scenario over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Full name with axis values.
    pub scenario: String,
    /// Area.
    pub area: String,
    /// How often which verdict.
    pub verdicts: IndexMap<Verdict, u32>,
    /// How often it passed only when it was run again.
    #[serde(default)]
    pub flaky: u32,
}

impl Tally {
    /// Always the same verdict, and at once.
    pub fn is_steady(&self) -> bool {
        self.verdicts.len() == 1 && self.flaky == 0
    }
}

/// One run of a scenario that was run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Its verdict.
    pub verdict: Verdict,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
    /// The checks that were not as expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckVerdict>,
    /// Where the evidence lies, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// A judged scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// Full name with axis values.
    pub scenario: String,
    /// Area.
    pub area: String,
    /// Axis values.
    pub axes: IndexMap<String, Value>,
    /// Why the scenario matters.
    pub why: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
    /// How often it was run again because the machine had stalled.
    #[serde(default)]
    pub reruns: u32,
    /// Every attempt in order, this last one too, when there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// It failed and then passed, with nothing changed between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// Every check with its own verdict.
    pub checks: Vec<CheckVerdict>,
    /// The rule of each requirement that a check which is not a pass shows.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub rules: IndexMap<String, String>,
    /// What each witness saw, by its name; only when it is not a pass.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub witnesses: IndexMap<String, Vec<String>>,
    /// What happened, in one order of time; only when it is not a pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<String>,
    /// The same as a picture: lanes, bars and marks; only when it is not a pass and something was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
    /// Where the evidence lies, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// One line that runs it again.
    pub reproduce: String,
}

/// Numbers of a run: how many scenarios got which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// All that were selected.
    pub selected: usize,
    /// As they must be.
    pub pass: usize,
    /// Violations.
    pub fail: usize,
    /// As the adapter's policy says, not as the default contract does.
    pub differs: usize,
    /// Failures that the baseline knows.
    pub known_failure: usize,
    /// Known failures that passed.
    pub stale: usize,
    /// Not declared by the subject.
    pub not_applicable: usize,
    /// Nothing was seen that could be judged.
    pub no_evidence: usize,
    /// The machine stalled, twice.
    pub inconclusive: usize,
    /// The harness failed.
    pub harness_error: usize,
    /// Those among them that failed first and passed when they were run again.
    #[serde(default)]
    pub flaky: usize,
}

impl Summary {
    /// Counts one verdict.
    pub fn count(&mut self, verdict: Verdict) {
        let field = match verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Fail => &mut self.fail,
            Verdict::Differs => &mut self.differs,
            Verdict::KnownFailure => &mut self.known_failure,
            Verdict::Stale => &mut self.stale,
            Verdict::NotApplicable => &mut self.not_applicable,
            Verdict::NoEvidence => &mut self.no_evidence,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::HarnessError => &mut self.harness_error,
        };
        *field += 1;
    }

    /// How many have a verdict.
    pub fn of(&self, verdict: Verdict) -> usize {
        match verdict {
            Verdict::Pass => self.pass,
            Verdict::Fail => self.fail,
            Verdict::Differs => self.differs,
            Verdict::KnownFailure => self.known_failure,
            Verdict::Stale => self.stale,
            Verdict::NotApplicable => self.not_applicable,
            Verdict::NoEvidence => self.no_evidence,
            Verdict::Inconclusive => self.inconclusive,
            Verdict::HarnessError => self.harness_error,
        }
    }

    /// Selected scenarios that have no verdict.
    pub fn not_run(&self) -> usize {
        self.selected.saturating_sub(self.judged())
    }

    /// Scenarios of which it is not known whether they are as they must be.
    pub fn open(&self) -> usize {
        self.no_evidence + self.inconclusive + self.not_run()
    }

    /// Nothing is wrong and nothing open, with so many `unmatched` entries of the baseline.
    pub fn is_as_expected(&self, unmatched: usize) -> bool {
        let wrong = self.fail + self.stale + self.flaky + self.harness_error + unmatched;
        wrong + self.open() == 0 && self.not_applicable < self.selected
    }

    /// What the numbers mean, with so many `unmatched` entries of the baseline.
    pub fn conclusion(&self, unmatched: usize) -> &'static str {
        if self.harness_error > 0 {
            "the harness failed, so nothing is said about those scenarios"
        } else if self.fail + self.stale + unmatched > 0 {
            "not all is as it must be"
        } else if self.flaky > 0 {
            "not steady: something passed only when it was run again"
        } else if self.no_evidence + self.inconclusive > 0 {
            "incomplete: some scenarios could not be judged"
        } else if self.not_run() > 0 {
            "incomplete: the run was ended before its time"
        } else if self.selected == 0 {
            "nothing was selected"
        } else if self.not_applicable == self.selected {
            "nothing was judged: no selected scenario applies to this subject"
        } else {
            "all as expected"
        }
    }

    /// Scenarios that have a verdict.
    pub fn judged(&self) -> usize {
        self.pass
            + self.fail
            + self.differs
            + self.known_failure
            + self.stale
            + self.not_applicable
            + self.no_evidence
            + self.inconclusive
            + self.harness_error
    }
}

/// A mutant against the scenarios that were run on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MutantJudged {
    /// Its name.
    pub mutant: String,
    /// What is broken in it.
    pub about: String,
    /// Requirements that it breaks.
    pub breaks: Vec<String>,
    /// A failing check shows one of them.
    pub killed: bool,
    /// How many scenarios were run on it.
    pub scenarios: usize,
    /// Who caught it: a failing check that shows one of the broken requirements.
    pub killers: Vec<Killer>,
    /// Checks that failed too, without naming the right requirement.
    pub others: usize,
}

/// A check that caught a mutant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Killer {
    /// The scenario.
    pub scenario: String,
    /// The check.
    pub check: String,
    /// The requirements that it names.
    pub proves: Vec<String>,
}

/// Numbers of a kill matrix.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MutantSummary {
    /// All that were run.
    pub mutants: usize,
    /// Caught by a check that names a requirement which they break.
    pub killed: usize,
    /// Not caught so.
    pub survived: Vec<String>,
    /// Scenarios that failed on the sound reference.
    pub sound_accused: Vec<String>,
}
