//! A subject that never answers the handshake: one failure says so, in place of every check that saw nothing.

use crate::check::judge::look_of;
use crate::check::sight::Witness;
use crate::evidence::{Evidence, What};
use crate::verdict::{CheckVerdict, Verdict};

/// The check's stable id in verdicts and baselines.
pub const ID: &str = "invariant handshake";

/// Looks of a scenario's own checks that are about the subject's start and end: such a scenario judges for itself.
const LOOKS: [&str; 6] = [
    "starts",
    "alive",
    "exits",
    "exit-code",
    "exit-signal",
    "stderr",
];

/// So much of the last line of standard error is told, in characters.
const LAST_WORDS: usize = 200;

/// The failure, when the first subject was started and never answered.
pub fn never_answered(evidence: &Evidence) -> Option<CheckVerdict> {
    let checks = &evidence.header.scenario.checks;
    let mut own = checks.iter().flat_map(|check| check.expect.keys());
    if own.any(|path| LOOKS.contains(&look_of(path))) {
        return None;
    }
    let events = || evidence.events.iter().map(|event| &event.what);
    let first = events().find_map(|what| match what {
        What::SubjectStarted { subject, .. } => Some(subject),
        _ => None,
    })?;
    let wanted = format!("{first}.starts");
    let in_vain = |what: &What| matches!(what, What::GaveUp { fact, .. } if *fact == wanted);
    if !events().any(in_vain) {
        return None;
    }
    let end = events().find_map(|what| match what {
        What::SubjectExited {
            subject,
            code,
            signal,
        } if subject == first => Some(signal.as_ref().map_or_else(
            || format!("it ended with code {}", code.unwrap_or(-1)),
            |signal| format!("it was ended by {signal}"),
        )),
        _ => None,
    });
    let mut seen = format!(
        "{}: {} before it answered `initialize`",
        Witness::Kernel.name(),
        end.unwrap_or_else(|| "it ran until patience was at its end,".to_owned())
    );
    let strays = events().filter(|what| matches!(what, What::Stray { .. }));
    match strays.count() {
        0 => {}
        n => seen += &format!("; {n} lines of its output were no messages of the protocol"),
    }
    let stderr = evidence.stderr.get(first).map_or("", String::as_str);
    if let Some(last) = stderr.lines().rfind(|line| !line.trim().is_empty()) {
        let last: String = last.trim().chars().take(LAST_WORDS).collect();
        seen += &format!("; the last of its standard error: {last}");
    }
    Some(CheckVerdict {
        id: ID.to_owned(),
        proves: Vec::new(),
        verdict: Verdict::Fail,
        expected: "the subject answers `initialize`".to_owned(),
        seen,
        kind: None,
    })
}
