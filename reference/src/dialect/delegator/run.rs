//! LOCAL, adapted when the core lands.
use super::progress::Activity;
use super::result::*;
use crate::pi::{self, Outcome, Update};
pub fn seen(update: Update) -> Activity {
    match update {
        Update::Tool { name, detail } => Activity::Tool { name, detail },
    }
}
pub fn worded(o: Outcome) -> CallResult {
    let v = match o.reason {
        "" if o.answer.is_some() => Verdict::Success,
        "aborted" | "shutdown" => Verdict::Cancelled,
        "deadline" => Verdict::Timeout,
        _ => Verdict::Failed,
    };
    let mut r = CallResult::without_run(v, o.reason, o.reason);
    r.ok = v == Verdict::Success;
    r.error = o.error;
    r.answer = o.answer.unwrap_or_default();
    r
}
pub use pi::run;
