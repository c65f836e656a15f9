//! The one result that a call has: an object for programs, text for the parent's model.

use schemars::JsonSchema;
use serde::Serialize;

use super::request::Refusal;
use crate::config::clip;

/// Most bytes of text that a result may have beside an answer or an error of full length.
pub const EXTRA_TEXT: usize = 4096;
/// Most bytes of the child's stderr that the text shows; the object carries more.
const SHOWN_STDERR: usize = 2048;

/// How a call ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Verdict {
    /// There is an answer to rely on.
    Success,
    /// The run failed.
    Failed,
    /// The call, the parent or the session ended it.
    Cancelled,
    /// A time limit ended it.
    Timeout,
    /// Nothing was started.
    Refused,
}

/// How the child ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ExitFacts {
    /// Exit code.
    pub code: Option<i32>,
    /// Name of the signal that ended it.
    pub signal: Option<String>,
}

/// Tokens and cost, summed over the run's assistant messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct UsageFacts {
    /// Input tokens that came from no cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
    /// All tokens.
    pub total: u64,
    /// Cost in the provider's currency.
    pub cost: f64,
}

/// What was cut from the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct TruncationFacts {
    /// Whether anything was.
    pub truncated: bool,
    /// Bytes that the child's answer had.
    pub original_bytes: u64,
    /// Bytes of it in `answer`.
    pub kept_bytes: u64,
}

/// What it took to end the child's process tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CleanupFacts {
    /// Whether anything had to be ended by force.
    pub forced: bool,
    /// Whether SIGTERM was sent.
    pub term: bool,
    /// Whether SIGKILL was sent.
    pub kill: bool,
    /// Whether the child's output was read to its end.
    pub drained: bool,
    /// How many processes that had left the group were found and ended.
    pub strays: u64,
    /// Whether something may still be running.
    pub incomplete: bool,
}

/// The structured result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DelegateResult")]
pub struct CallResult {
    /// Whether there is an answer to rely on.
    pub ok: bool,
    /// How the call ended.
    pub outcome: Verdict,
    /// Why it is no success, as a word; empty for a success.
    pub reason: String,
    /// The same in a sentence.
    pub message: String,
    /// The child's final text; empty unless `ok`.
    pub answer: String,
    /// What the child had said when it failed. Not an answer.
    pub partial_answer: String,
    /// Stop reason of the child's last message.
    pub stop_reason: String,
    /// Error text of the provider or of Pi.
    pub error: String,
    /// How the child ended.
    pub exit: ExitFacts,
    /// Tokens and cost.
    pub usage: UsageFacts,
    /// What was cut from the answer.
    pub truncation: TruncationFacts,
    /// The end of the child's stderr.
    pub stderr_tail: String,
    /// What it took to end the child's process tree.
    pub cleanup: CleanupFacts,
    /// The profile that was asked for.
    pub profile: String,
    /// The model that the child was started with; empty where Pi chose.
    pub model: String,
    /// From the call to its result, in milliseconds.
    pub duration_ms: u64,
    /// Remarks on a run that came to its outcome all the same.
    pub warnings: Vec<String>,
}

impl CallResult {
    /// The result of a call that started nothing.
    pub fn refused(refusal: &Refusal, profile: &str) -> Self {
        Self {
            profile: profile.to_owned(),
            ..Self::without_run(Verdict::Refused, refusal.reason, &refusal.message)
        }
    }

    /// A result without a child behind it.
    pub fn without_run(outcome: Verdict, reason: &str, message: &str) -> Self {
        Self {
            ok: false,
            outcome,
            reason: reason.to_owned(),
            message: message.to_owned(),
            answer: String::new(),
            partial_answer: String::new(),
            stop_reason: String::new(),
            error: String::new(),
            exit: ExitFacts::default(),
            usage: UsageFacts::default(),
            truncation: TruncationFacts::default(),
            stderr_tail: String::new(),
            cleanup: CleanupFacts {
                drained: true,
                ..CleanupFacts::default()
            },
            profile: String::new(),
            model: String::new(),
            duration_ms: 0,
            warnings: Vec::new(),
        }
    }

    /// The text for the parent's model, as blocks: the answer and, if it was cut, a block that says so; or what went
    /// wrong, the provider's own words first. At most `cap` bytes for the first part plus [`EXTRA_TEXT`].
    pub fn text(&self, cap: usize) -> Vec<String> {
        if self.ok {
            let mut blocks = vec![self.answer.clone()];
            if self.truncation.truncated {
                let TruncationFacts {
                    original_bytes,
                    kept_bytes,
                    ..
                } = self.truncation;
                blocks.push(format!(
                    "[answer cut: these are {kept_bytes} of its {original_bytes} bytes]"
                ));
            }
            return blocks;
        }
        // With an ordinary cap the whole text stays under it; a tiny cap leaves room for the explanation all the same.
        let room = if cap >= 2 * EXTRA_TEXT {
            cap - EXTRA_TEXT
        } else {
            cap
        };
        let mut parts = Vec::new();
        if !self.error.trim().is_empty() {
            parts.push(head(&self.error, room).to_owned());
        }
        parts.push(head(&self.message, EXTRA_TEXT - SHOWN_STDERR - 256).to_owned());
        let stderr = tail(self.stderr_tail.trim_end(), SHOWN_STDERR);
        if self.answer.is_empty() && !stderr.trim().is_empty() {
            parts.push(format!("stderr of the child:\n{stderr}"));
        }
        if self.cleanup.incomplete {
            parts.push("some process of the child may still be running".to_owned());
        }
        vec![parts.join("\n\n")]
    }
}

/// The first `limit` bytes of `text` at most, ending at a character's end.
pub fn head(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The last `limit` bytes of `text` at most, beginning at a character's start.
pub fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// `name` quoted for a message, within bounds.
pub fn quoted(name: &str) -> String {
    format!("`{}`", clip(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn success(answer: &str) -> CallResult {
        CallResult {
            ok: true,
            answer: answer.into(),
            ..CallResult::without_run(Verdict::Success, "", "")
        }
    }

    // shows: bounds.truncation-disclosed
    #[test]
    fn an_answer_is_its_own_text_and_a_cut_is_said_beside_it() {
        assert_eq!(success("two files").text(51_200), ["two files"]);
        let truncation = TruncationFacts {
            truncated: true,
            original_bytes: 1_048_576,
            kept_bytes: 1,
        };
        let cut = CallResult {
            truncation,
            ..success("t")
        };
        assert_eq!(
            cut.text(1),
            ["t", "[answer cut: these are 1 of its 1048576 bytes]"]
        );
    }

    // shows: semantics.provider-error-captured, semantics.failure-includes-stderr, bounds.error-text
    #[test]
    fn a_failure_puts_the_providers_words_first_and_stays_within_bounds() {
        let failed = CallResult {
            error: "quota exceeded".into(),
            stderr_tail: "fatal: no key\n".into(),
            ..CallResult::without_run(
                Verdict::Failed,
                "provider-error",
                "the model's provider failed",
            )
        };
        let text =
            "quota exceeded\n\nthe model's provider failed\n\nstderr of the child:\nfatal: no key";
        assert_eq!(failed.text(51_200), [text]);
        let long = CallResult {
            error: "ü".repeat(1_000_000),
            message: "m".repeat(100_000),
            stderr_tail: "ß".repeat(100_000),
            ..failed
        };
        for cap in [1, 100, 8192, 51_200] {
            let length = long.text(cap)[0].len();
            let bound = if cap >= 2 * EXTRA_TEXT {
                cap
            } else {
                cap + EXTRA_TEXT
            };
            assert!(length <= bound, "{length} bytes with a cap of {cap}");
        }
    }

    // shows: bounds.truncation-keeps-utf8-valid
    #[test]
    fn cuts_fall_between_characters() {
        let text = "a😀b";
        let heads: Vec<_> = (0..=6).map(|limit| head(text, limit)).collect();
        assert_eq!(heads, ["", "a", "a", "a", "a", "a😀", "a😀b"]);
        let tails: Vec<_> = (0..=6).map(|limit| tail(text, limit)).collect();
        assert_eq!(tails, ["", "b", "b", "b", "b", "😀b", "a😀b"]);
    }

    // shows: semantics.basic-failure-and-success-shape
    #[test]
    fn success_and_failure_differ_in_data_and_both_fit_the_schema() {
        let schema = serde_json::to_value(schemars::schema_for!(CallResult)).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        let refusal = Refusal::arguments("task is missing");
        for result in [success("x"), CallResult::refused(&refusal, "scout")] {
            let value = serde_json::to_value(&result).unwrap();
            let object = value.as_object().unwrap();
            assert!(object.keys().eq(properties.keys()), "{object:?}");
            assert_eq!(result.ok, result.reason.is_empty());
        }
        let required: Vec<_> = schema["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        assert_eq!(required, properties.keys().collect::<Vec<_>>());
    }
}
