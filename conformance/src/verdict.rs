//! Verdicts: what judging a bundle gives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verdict on a check, a scenario, or a run. Ordered from good to bad: the worst check decides a scenario.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it must be.
    Pass,
    /// The subject does not declare what this needs.
    NotApplicable,
    /// Not as the default contract says, but as the adapter declares; a policy, no violation.
    Differs,
    /// Fails as the baseline says it would.
    KnownFailure,
    /// The baseline says that it fails, but it passed.
    Stale,
    /// The machine stalled while time mattered.
    Inconclusive,
    /// The check saw nothing that it could judge.
    NoEvidence,
    /// A violation.
    Fail,
    /// The harness itself failed.
    HarnessError,
}

/// One check's verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckVerdict {
    /// Stable id, the same on pass and fail: `checks[N] OBSERVATION`.
    pub id: String,
    /// Requirements that it shows.
    pub proves: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// What was expected, in words.
    pub expected: String,
    /// What was seen, in words (with the witness's name).
    pub seen: String,
    /// How it fails, when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
}

/// How a check fails: what it looks at says that, not the words of the day. Expectations are pinned to it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Something is left behind or grows: a process, a file, a descriptor, memory.
    Leak,
    /// Something does not end, or not in time.
    Hang,
    /// A part of the answer does not arrive.
    Lost,
    /// Something arrives as other bytes than were sent.
    Corrupt,
    /// The subject says something that is not so.
    WrongClaim,
    /// The subject speaks another way than the protocol and its own tool list say.
    Protocol,
    /// The subject itself ends badly.
    Crash,
    /// The child is started another way than it must be.
    Launch,
    /// The child is spoken to or ended another way than it must be.
    Conduct,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Leak,
        Self::Hang,
        Self::Lost,
        Self::Corrupt,
        Self::WrongClaim,
        Self::Protocol,
        Self::Crash,
        Self::Launch,
        Self::Conduct,
    ];

    /// Its word in reports and baselines; the same as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Hang => "hang",
            Self::Lost => "lost",
            Self::Corrupt => "corrupt",
            Self::WrongClaim => "wrong-claim",
            Self::Protocol => "protocol",
            Self::Crash => "crash",
            Self::Launch => "launch",
            Self::Conduct => "conduct",
        }
    }
}

/// One scenario's verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioVerdict {
    /// Full name.
    pub name: String,
    /// Area.
    pub area: String,
    /// The worst of its checks.
    pub verdict: Verdict,
    /// Each check.
    pub checks: Vec<CheckVerdict>,
}

impl Verdict {
    /// Its word in reports; the same as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NotApplicable => "not-applicable",
            Self::Differs => "differs",
            Self::KnownFailure => "known-failure",
            Self::Stale => "stale",
            Self::Inconclusive => "inconclusive",
            Self::NoEvidence => "no-evidence",
            Self::Fail => "fail",
            Self::HarnessError => "harness-error",
        }
    }
}
