//! How a failed check fails (pure): a function of what it looks at.

use crate::check::paths::{Names, Path, Root};
use crate::verdict::FailureKind;

/// The kind of failure of a check or an invariant by its id, as in `checks[2] call.settles` and `invariant survivors`.
/// `None` for what is nobody's failure, such as steps that did not run.
pub fn of(id: &str, names: &Names) -> Option<FailureKind> {
    use FailureKind::*;
    if let Some(invariant) = id.strip_prefix("invariant ") {
        return match invariant {
            "survivors" => Some(Leak),
            "settlements" => Some(Hang),
            "late-updates" | "strays" | "handshake" => Some(Protocol),
            "subject-alive" => Some(Crash),
            "witnesses" => Some(WrongClaim),
            _ => None,
        };
    }
    let (_, observation) = id.split_once(' ')?;
    let path = Path::parse(observation, names).ok()?;
    Some(match &path.root {
        Root::Whole(word) => match word.as_str() {
            "launches" | "pids-differ" | "traps" => Launch,
            _ => Leak,
        },
        Root::Call(_) => match path.look.strip_prefix("child.") {
            Some(look) => child(look),
            None => call(&path.look),
        },
        Root::Child(..) => child(&path.look),
        Root::Subject(_) => match path.look.as_str() {
            "strays" => Protocol,
            "stderr" => WrongClaim,
            "exits" => Hang,
            look if look.starts_with("sample.") => Leak,
            "memory-growth" | "zombies-at-end" => Leak,
            _ => Crash,
        },
        Root::Tools(_) | Root::Tool => Protocol,
        Root::Facts => WrongClaim,
    })
}

fn call(look: &str) -> FailureKind {
    use FailureKind::*;
    match look {
        "settles" | "settled" | "duration" => Hang,
        "settlements" | "protocol-error" | "updates.late" | "details" | "result" => Protocol,
        "answer" | "text" | "message" | "updates" | "updates.text" => Lost,
        "truncation.original" | "truncation.kept" | "updates.bytes" | "task" | "word" => Corrupt,
        "launches" => Launch,
        look if look.starts_with("usage") => Lost,
        _ => WrongClaim,
    }
}

fn child(look: &str) -> FailureKind {
    use FailureKind::*;
    if let Some(descendant) = look.strip_prefix("descendant.") {
        return match descendant.rsplit_once('.').map(|(_, look)| look) {
            Some("gone") => Leak,
            Some("signals") => Conduct,
            _ => Launch,
        };
    }
    match look {
        "task" | "task-bytes" | "task-sha256" | "task-intact" => Corrupt,
        "extra-fds" => Leak,
        "exited" | "started" => Hang,
        "signals" | "prompts" | "ended" | "reached" | "write-failed" | "faults" => Conduct,
        look if look.starts_with("stdin") => Conduct,
        _ => Launch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::paths::{CALL_BUILT_IN, CHILD, SUBJECT};

    #[test]
    fn what_a_check_looks_at_says_how_it_fails() {
        let names = Names {
            calls: ["call".to_owned()].into(),
            children: ["a".to_owned()].into(),
            subjects: ["subject".to_owned()].into(),
            ..Names::default()
        };
        for (id, kind) in [
            ("invariant survivors", FailureKind::Leak),
            ("checks[0] survivors", FailureKind::Leak),
            ("checks[1] a.descendant.d.gone", FailureKind::Leak),
            ("checks[2] call.settles", FailureKind::Hang),
            ("checks[3] each call.answer", FailureKind::Lost),
            ("checks[4] a.task-sha256", FailureKind::Corrupt),
            ("checks[5] call.ok", FailureKind::WrongClaim),
            ("checks[6] call.settlements", FailureKind::Protocol),
            ("checks[7] tool.required", FailureKind::Protocol),
            ("checks[8] subject.exit-code", FailureKind::Crash),
            ("checks[9] call.child.argv", FailureKind::Launch),
            ("checks[10] a#2.signals", FailureKind::Conduct),
        ] {
            assert_eq!(of(id, &names), Some(kind), "{id}");
        }
        assert_eq!(of("invariant steps", &names), None);
        let looks = CALL_BUILT_IN
            .iter()
            .map(|look| format!("checks[0] call.{look}"));
        let looks = looks.chain(CHILD.iter().map(|look| format!("checks[0] a.{look}")));
        for id in looks.chain(
            SUBJECT
                .iter()
                .map(|look| format!("checks[0] subject.{look}")),
        ) {
            assert!(of(&id, &names).is_some(), "{id}");
        }
    }
}
