//! The answer so far (pure): the last complete assistant message, bounded, and the sums over all of them.

use super::outcome::Limits;
use super::wire::Message;

/// Folds messages into the answer.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The last message, unless something newer has begun since.
    last: Option<Last>,
    /// Sum of the usage: input, output, cache read, cache write, total.
    pub tokens: [u64; 5],
    /// Sum of the cost.
    pub cost: f64,
}

/// A complete message, bounded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Last {
    /// Its text, cut at a character.
    pub text: String,
    /// Bytes that it had.
    pub original_bytes: u64,
    /// Its stop reason.
    pub stop_reason: String,
    /// Its error, cut at a character.
    pub error: String,
}

impl Answer {
    /// A newer message, turn or attempt has begun: what came before was not the last word, and a run that breaks off now
    /// has none.
    pub fn begins(&mut self) {
        self.last = None;
    }

    /// A message is complete. Its usage counts once: later events only repeat it.
    pub fn message(&mut self, message: Message, limits: &Limits) {
        for (sum, part) in self.tokens.iter_mut().zip(message.tokens) {
            *sum = sum.saturating_add(part);
        }
        self.cost += message.cost;
        self.last = Some(Last {
            original_bytes: message.text.len() as u64,
            text: cut(message.text, limits.output_cap),
            stop_reason: cut(message.stop_reason, REASON_CAP),
            error: cut(message.error, limits.output_cap),
        });
    }

    /// The last message, if it is still the last word.
    pub fn last(&self) -> Option<&Last> {
        self.last.as_ref()
    }

    /// Takes the last message out.
    pub fn take(&mut self) -> Option<Last> {
        self.last.take()
    }
}

/// Longest stop reason that is kept, in bytes.
const REASON_CAP: usize = 256;

/// At most `cap` bytes of a text, never half a character.
fn cut(mut text: String, cap: usize) -> String {
    text.truncate(text.floor_char_boundary(cap));
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message {
            text: text.into(),
            stop_reason: "stop".into(),
            tokens: [1, 2, 3, 4, 10],
            cost: 0.5,
            ..Message::default()
        }
    }

    // shows: bounds.truncation-keeps-utf8-valid, bounds.returned-output-bounded, bounds.error-text
    #[test]
    fn text_and_error_are_cut_at_a_character() {
        let limits = Limits {
            output_cap: 5,
            ..Limits::default()
        };
        let mut answer = Answer::default();
        answer.message(
            Message {
                error: "ééé".into(),
                ..message("a𝄞𝄞")
            },
            &limits,
        );
        let last = answer.last().unwrap();
        assert_eq!(
            (last.text.as_str(), last.original_bytes, last.error.as_str()),
            ("a𝄞", 9, "éé")
        );
    }

    // shows: semantics.usage-aggregated
    #[test]
    fn usage_is_summed_over_messages_and_the_last_text_counts() {
        let mut answer = Answer::default();
        for text in ["one", "two"] {
            answer.message(message(text), &Limits::default());
        }
        assert_eq!((answer.tokens, answer.cost), ([2, 4, 6, 8, 20], 1.0));
        assert_eq!(answer.last().unwrap().text, "two");
    }

    #[test]
    fn a_message_is_not_the_last_word_once_another_begins() {
        let mut answer = Answer::default();
        answer.message(message("one"), &Limits::default());
        answer.begins();
        assert_eq!(answer.last(), None);
        assert_eq!(answer.tokens[0], 1);
    }
}
