//! What a model provider delivers, piece by piece, and what Pi's messages say when it fails.

use serde_json::Value;

use super::js;
use super::usage::Tokens;
use crate::act::Flavour;

/// One piece of a model's reply, in the order in which the provider sends them. A reply starts with [`ModelPiece::Begin`]
/// and ends with [`ModelPiece::End`] or [`ModelPiece::Fail`].
#[derive(Debug, Clone, PartialEq)]
pub enum ModelPiece {
    /// The response has begun (its headers came).
    Begin,
    /// The first chunk, with the provider's id of this reply.
    Id(String),
    /// Messages API: the token counts at the start of the reply.
    StartTokens(Tokens),
    /// Reasoning text.
    Thinking(String),
    /// Messages API: the signature of the thinking block.
    Signature(String),
    /// Answer text.
    Text(String),
    /// Messages API: a new, empty text block opens.
    TextBlock,
    /// Messages API: a new, empty thinking block opens.
    ThinkingBlock,
    /// A tool call opens.
    ToolStart {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// A piece of the last tool call's arguments (JSON text).
    ToolArguments(String),
    /// Messages API: the open block is closed.
    BlockEnd,
    /// Why the model stopped, in the provider's words: `stop`, `length`, `tool_calls`, `end_turn`, `content_filter` …
    Finish(String),
    /// The token counts.
    Tokens(Tokens),
    /// The reply is over.
    End,
    /// The request or the stream failed.
    Fail(Failure),
}

impl ModelPiece {
    /// A whole reply: `text`, stopped by itself. What most children say.
    pub fn answer(id: &str, text: &str, tokens: Option<Tokens>) -> Vec<Self> {
        let mut pieces = vec![Self::Begin, Self::Id(id.to_owned())];
        pieces.extend(words(text).map(|word| Self::Text(word.to_owned())));
        pieces.push(Self::Finish("stop".to_owned()));
        pieces.extend(tokens.map(Self::Tokens));
        pieces.push(Self::End);
        pieces
    }
}

/// Cuts a text into words, each with the blanks behind it.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// How a request or a stream failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The provider answered with this HTTP status and body.
    Http(u16, String),
    /// Nothing listens at this address (`host:port`).
    Refused(String),
    /// The connection was reset while the reply streamed.
    Reset,
    /// An error object inside the stream.
    InStream(String),
    /// Exactly this `errorMessage`; `true` when it is worth another attempt.
    Text(String, bool),
}

impl Failure {
    /// The `errorMessage` of the answer.
    pub fn message(&self, flavour: Flavour) -> String {
        let newer = flavour == Flavour::V1_6_0;
        match self {
            Self::Http(status, body) => {
                let error = serde_json::from_str::<Value>(body)
                    .ok()
                    .and_then(|body| body.get("error").cloned());
                match error {
                    Some(error) if newer => format!("{status}: {}", js::line(&error)),
                    Some(error) => {
                        let text = error
                            .get("message")
                            .and_then(Value::as_str)
                            .map(str::to_owned);
                        format!("{status} {}", text.unwrap_or_else(|| js::line(&error)))
                    }
                    None => format!("{status} {body}"),
                }
            }
            Self::Refused(address) if newer => {
                format!("Connection error.: connect ECONNREFUSED {address}")
            }
            Self::Refused(_) => "Connection error.".to_owned(),
            Self::Reset if newer => "terminated: read ECONNRESET".to_owned(),
            Self::Reset => "terminated".to_owned(),
            Self::InStream(text) | Self::Text(text, _) => text.clone(),
        }
    }

    /// Whether Pi tries again.
    pub fn transient(&self) -> bool {
        match self {
            Self::Http(status, _) => matches!(status, 429 | 500..=599),
            Self::Refused(_) | Self::Reset => true,
            Self::InStream(text) => {
                let text = text.to_lowercase();
                [
                    "overloaded",
                    "rate limit",
                    "too many requests",
                    "timeout",
                    "timed out",
                    "connection",
                ]
                .iter()
                .any(|word| text.contains(word))
            }
            Self::Text(_, transient) => *transient,
        }
    }

    /// Whether the provider's client library repeats the request by itself (before any stream).
    pub fn hidden_by_client(&self) -> bool {
        match self {
            Self::Http(status, _) => matches!(status, 408 | 409 | 429 | 500..=599),
            Self::Refused(_) => true,
            _ => false,
        }
    }

    /// Whether it says that the conversation does not fit into the model's context window.
    pub fn is_overflow(&self) -> bool {
        match self {
            Self::Http(400 | 413, body) => {
                let body = body.to_lowercase();
                body.contains("maximum context length") || body.contains("context_length_exceeded")
            }
            _ => false,
        }
    }
}
