//! Between the dialect's words and those of one child's run.

use super::progress::Activity;
use super::result::{CallResult, CleanupFacts, ExitFacts, TruncationFacts, UsageFacts, Verdict};
use crate::config::{self, clip};
use crate::pi::{Cause, Limits, Outcome, Update, Why};
use std::time::Duration;

/// The limits of a run of this session, with the profile's deadline.
pub fn limits(session: &config::Limits, deadline: Duration) -> Limits {
    Limits {
        deadline,
        tool_timeout: session.tool_timeout,
        start_watchdog: session.start_watchdog,
        record_cap: session.record_cap,
        output_cap: session.output_cap,
        stderr_cap: session.stderr_cap,
        bash_timeout_ends_run: true,
        ..Limits::default()
    }
}

/// An update as something to tell.
pub fn activity(update: Update) -> Activity {
    match update {
        Update::Started => Activity::Started,
        Update::Tool { name, detail } => Activity::Tool { name, detail },
    }
}

/// An outcome as a result. The profile and the model are the caller's to add.
pub fn result(outcome: Outcome) -> CallResult {
    let (verdict, reason, message) = verdict(&outcome);
    let ok = verdict == Verdict::Success;
    let kept_bytes = outcome.text.len() as u64;
    let (answer, partial_answer) = if ok {
        (outcome.text, String::new())
    } else {
        (String::new(), outcome.text)
    };
    let [input, output, cache_read, cache_write, total] = outcome.tokens;
    let signal = outcome
        .exit
        .signal
        .and_then(|number| nix::sys::signal::Signal::try_from(number).ok());
    CallResult {
        ok,
        answer,
        partial_answer,
        stop_reason: outcome.stop_reason,
        error: outcome.error,
        exit: ExitFacts {
            code: outcome.exit.code,
            signal: signal.map(|signal| signal.as_str().to_owned()),
        },
        usage: UsageFacts {
            input,
            output,
            cache_read,
            cache_write,
            total,
            cost: outcome.cost,
        },
        truncation: TruncationFacts {
            truncated: kept_bytes < outcome.original_bytes,
            original_bytes: outcome.original_bytes,
            kept_bytes,
        },
        stderr_tail: outcome.stderr_tail,
        cleanup: CleanupFacts {
            forced: outcome.cleanup.forced(),
            term: outcome.cleanup.term,
            kill: outcome.cleanup.kill,
            drained: outcome.cleanup.drained,
            strays: outcome.cleanup.strays as u64,
            incomplete: outcome.cleanup.incomplete,
        },
        warnings: outcome.health,
        ..CallResult::without_run(verdict, reason, &message)
    }
}

fn verdict(outcome: &Outcome) -> (Verdict, &'static str, String) {
    use Verdict::{Cancelled, Failed, Timeout};
    match &outcome.cause {
        Cause::Stopped(Why::Aborted) => (Cancelled, "aborted", "the call was cancelled".into()),
        Cause::Stopped(Why::Shutdown) => (Cancelled, "shutdown", "the session ended".into()),
        Cause::Deadline => (
            Timeout,
            "deadline",
            "the deadline of the profile passed".into(),
        ),
        Cause::ToolTimeout(tool) => (
            Timeout,
            "tool-timeout",
            format!("the tool {} took too long", clip(tool)),
        ),
        Cause::NotStarted { accepted: true } => (
            Failed,
            "not-started",
            "the prompt was accepted but never started".into(),
        ),
        Cause::NotStarted { accepted: false } => {
            (Failed, "no-response", "no response to the prompt".into())
        }
        Cause::PromptRefused(words) => (
            Failed,
            "prompt-refused",
            format!("the prompt was refused: {}", clip(words)),
        ),
        Cause::BashTimeout(words) => (
            Failed,
            "bash-timeout",
            format!("a Bash command did not end by itself: {}", clip(words)),
        ),
        Cause::Oversized => (
            Failed,
            "protocol-error",
            "a record that matters is longer than the limit".into(),
        ),
        Cause::IncompleteRecord => (
            Failed,
            "incomplete-last-record",
            "the output ended inside its last record, which is incomplete".into(),
        ),
        Cause::Spawn(words) => (Failed, "spawn-error", words.clone()),
        Cause::Settled | Cause::Ended => said(outcome),
    }
}

/// The verdict on what the child said last. Without `agent_settled` (`Ended`) a natural end counts when the process ended
/// well too (ruling 9 of the catalogue).
fn said(outcome: &Outcome) -> (Verdict, &'static str, String) {
    let failed = |reason, message| (Verdict::Failed, reason, message);
    let settled = outcome.cause == Cause::Settled;
    if !outcome.answered
        || !(settled || outcome.exit.code == Some(0) || outcome.stop_reason == "error")
    {
        return died(outcome);
    }
    match outcome.stop_reason.as_str() {
        "stop" if outcome.text.trim().is_empty() => {
            failed("empty-answer", "the last message has no text".into())
        }
        "stop" => (Verdict::Success, "", String::new()),
        "error" => failed("provider-error", "the model's provider failed".into()),
        "length" => failed(
            "length",
            "the answer was cut by the model's token limit".into(),
        ),
        "aborted" => (
            Verdict::Cancelled,
            "aborted",
            "the child says that its run was aborted".into(),
        ),
        // The run ended between a tool's result and the answer to it.
        "toolUse" => failed("no-answer", "the child ended without an answer".into()),
        other => failed(
            "unknown-stop-reason",
            format!("the last message ended with `{}`", clip(other)),
        ),
    }
}

/// The verdict on a child that ended before it had answered.
fn died(outcome: &Outcome) -> (Verdict, &'static str, String) {
    let failed = |reason, message| (Verdict::Failed, reason, message);
    match (outcome.exit.code, outcome.exit.signal) {
        (_, Some(signal)) if !outcome.cleanup.term => {
            let name = nix::sys::signal::Signal::try_from(signal);
            let name = name.map_or_else(|_| signal.to_string(), |name| name.as_str().to_owned());
            failed(
                "signal",
                format!("the child died of {name} before it had answered"),
            )
        }
        (Some(code), _) if code != 0 && !outcome.cleanup.term => failed(
            "exit",
            format!("the child ended with code {code} before it had answered"),
        ),
        _ => failed("no-answer", "the child ended without an answer".into()),
    }
}
