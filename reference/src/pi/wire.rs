//! Pi's records as a listener takes them (pure): tolerant, and only as deep as it matters.
//!
//! First the type, then, for the few types that carry meaning, their fields. Everything else is an event that was heard
//! and nothing more. What is not JSON, or no object, is told as such; what it means is decided elsewhere.

use std::borrow::Cow;

use serde::Deserialize;

use super::framing::Weight;

use head::Head;

mod head;
mod loose;

/// One line of a child's output.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A record. `repaired`: some of its bytes were no UTF-8, or half a surrogate pair, and were replaced.
    Record(Record, bool),
    /// JSON, but no record; or no JSON at all. To be counted and skipped (ruling 10 of the catalogue).
    Unusable,
}

/// A record, as far as it matters.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The answer to our prompt.
    PromptResponse {
        /// Whether it was taken.
        success: bool,
        /// Why not.
        error: String,
        /// Whether it names a disposition, as Pi has done since 1.0: such a Pi says `agent_settled` at the end.
        disposition: bool,
    },
    /// A run, or another attempt of it, begins.
    AgentStart,
    /// A turn begins.
    TurnStart,
    /// An assistant's message begins: whatever came before was not the last one.
    AssistantStart,
    /// An assistant's message is complete.
    AssistantEnd(Box<Message>),
    /// A tool begins.
    ToolStart {
        /// Id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The argument that tells people most.
        detail: String,
    },
    /// A tool has ended.
    ToolEnd {
        /// Id of the call.
        id: String,
        /// The tool.
        name: String,
        /// Whether it failed.
        failed: bool,
        /// The end of its text (at most [`TOOL_TEXT`] bytes).
        text: String,
    },
    /// A run, or an attempt of it, has ended.
    AgentEnd {
        /// Whether another attempt follows; Pi 0.73 does not say.
        will_retry: Option<bool>,
    },
    /// All work is over (not in Pi 0.73).
    Settled,
    /// Another attempt, or a compaction, is under way.
    RecoveryStart,
    /// That has ended; with `true` a further run follows it.
    RecoveryEnd(bool),
    /// A dialog wants an answer.
    Dialog {
        /// Its id.
        id: String,
    },
    /// Any other event.
    Other,
}

/// An assistant's message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Message {
    /// Its text blocks, joined.
    pub text: String,
    /// Why the model stopped.
    pub stop_reason: String,
    /// What went wrong, in the provider's words.
    pub error: String,
    /// Token counts: input, output, cache read, cache write, total.
    pub tokens: [u64; 5],
    /// Cost in dollars.
    pub cost: f64,
}

/// How much of a tool's text is kept: enough for the remark that Pi puts at its end.
pub const TOOL_TEXT: usize = 512;

/// Dialogs; other UI requests want no answer.
const DIALOGS: [&str; 4] = ["confirm", "select", "input", "editor"];

/// Reads one line.
pub fn read(line: &[u8]) -> Line {
    let (text, replaced) = match simdutf8::basic::from_utf8(line) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (String::from_utf8_lossy(line), true),
    };
    if let Ok(record) = parse(&text) {
        return Line::Record(record, replaced);
    }
    // serde_json refuses half a surrogate pair, which Pi writes when a delta ends inside one.
    let repaired = repair(&text);
    let replaced = replaced || repaired.is_some();
    let text = repaired.as_deref().unwrap_or(&text);
    match parse(text) {
        Ok(record) => Line::Record(record, replaced),
        Err(_) => loose::read(text).map_or(Line::Unusable, |record| Line::Record(record, replaced)),
    }
}

/// Whether a line that nothing ended is a whole JSON value (rather than the beginning of one).
pub fn is_whole(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
        || matches!(read(line), Line::Record(..))
}

/// What the head of a long record says about it: see [`Weight`].
pub fn weigh(head: &[u8]) -> Weight {
    let head = Head::scan(head);
    let Some(kind) = head.kind.as_deref() else {
        return Weight::Matters;
    };
    match kind {
        "message_update" => Weight::Partial,
        "message_start" | "message_end" => match head.role.as_deref() {
            Some("user" | "system" | "toolResult") => Weight::Harmless,
            _ => Weight::Matters,
        },
        // Its last paragraph tells whether the command was cut short.
        "tool_execution_end" if head.tool_name.as_deref() == Some("bash") => Weight::Useful,
        "response" | "compaction_end" | "extension_ui_request" => Weight::Useful,
        _ => Weight::Harmless,
    }
}

/// What a record says of which only the head was kept.
pub fn read_head(head: &[u8]) -> Record {
    let head = Head::scan(head);
    let id = head.tool_id.unwrap_or_default();
    let name = head.tool_name.unwrap_or_default();
    match head.kind.as_deref().unwrap_or_default() {
        "agent_start" => Record::AgentStart,
        "turn_start" => Record::TurnStart,
        "tool_execution_start" => Record::ToolStart {
            id,
            name,
            detail: String::new(),
        },
        "tool_execution_end" => Record::ToolEnd {
            id,
            name,
            failed: false,
            text: String::new(),
        },
        "agent_end" => Record::AgentEnd { will_retry: None },
        "auto_retry_start" | "compaction_start" => Record::RecoveryStart,
        "auto_retry_end" | "compaction_end" => Record::RecoveryEnd(false),
        _ => Record::Other,
    }
}

/// Just the type.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
}

fn parse(text: &str) -> Result<Record, serde_json::Error> {
    // Deltas are most of a stream, and all that matters about them is that they came.
    if text.starts_with("{\"type\":\"message_update\"") && text.ends_with('}') {
        return Ok(Record::Other);
    }
    // serde would also take a list for a struct, by position.
    if !text.trim_start().starts_with('{') {
        return Err(serde::de::Error::custom("not an object"));
    }
    let typed: Typed<'_> = serde_json::from_str(text)?;
    Ok(match typed.kind.as_deref().unwrap_or_default() {
        "response" => response(serde_json::from_str(text)?),
        "agent_start" => Record::AgentStart,
        "turn_start" => Record::TurnStart,
        "message_start" => match serde_json::from_str::<MessageRole<'_>>(text)?
            .message
            .role
            .as_ref()
        {
            "assistant" => Record::AssistantStart,
            _ => Record::Other,
        },
        "message_end" => match serde_json::from_str::<MessageRole<'_>>(text)?
            .message
            .role
            .as_ref()
        {
            "assistant" => {
                let raw: MessageEnd<'_> = serde_json::from_str(text)?;
                Record::AssistantEnd(Box::new(raw.message.into()))
            }
            _ => Record::Other,
        },
        "tool_execution_start" => tool_start(serde_json::from_str(text)?),
        "tool_execution_end" => tool_end(serde_json::from_str(text)?),
        "agent_end" => {
            let raw: AgentEnd = serde_json::from_str(text)?;
            Record::AgentEnd {
                will_retry: raw.will_retry,
            }
        }
        "agent_settled" => Record::Settled,
        "auto_retry_start" | "compaction_start" => Record::RecoveryStart,
        "compaction_end" => {
            let raw: AgentEnd = serde_json::from_str(text)?;
            Record::RecoveryEnd(raw.will_retry.unwrap_or(false))
        }
        "auto_retry_end" => Record::RecoveryEnd(false),
        "extension_ui_request" => {
            let raw: Dialog<'_> = serde_json::from_str(text)?;
            match DIALOGS.contains(&raw.method.as_ref()) {
                true => Record::Dialog {
                    id: raw.id.into_owned(),
                },
                false => Record::Other,
            }
        }
        _ => Record::Other,
    })
}

#[derive(Deserialize)]
struct MessageRole<'a> {
    #[serde(borrow)]
    message: Role<'a>,
}

#[derive(Deserialize)]
struct Role<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
}

#[derive(Deserialize)]
struct MessageEnd<'a> {
    #[serde(borrow)]
    message: RawMessage<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    error_message: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: RawUsage,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawUsage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    total_tokens: u64,
    cost: RawCost,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawCost {
    total: f64,
}

impl From<RawMessage<'_>> for Message {
    fn from(raw: RawMessage<'_>) -> Self {
        let texts = raw.content.iter().filter(|block| block.kind == "text");
        let usage = &raw.usage;
        Self {
            text: texts.filter_map(|block| block.text.as_deref()).collect(),
            stop_reason: raw.stop_reason.unwrap_or_default().into_owned(),
            error: raw.error_message.unwrap_or_default().into_owned(),
            tokens: [
                usage.input,
                usage.output,
                usage.cache_read,
                usage.cache_write,
                usage.total_tokens,
            ],
            cost: usage.cost.total,
        }
    }
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    command: Cow<'a, str>,
    #[serde(default)]
    success: bool,
    #[serde(borrow, default)]
    error: Option<Cow<'a, str>>,
    #[serde(default)]
    data: Option<Disposition>,
}

#[derive(Deserialize)]
struct Disposition {
    #[serde(default)]
    disposition: Option<serde::de::IgnoredAny>,
}

fn response(raw: Response<'_>) -> Record {
    if raw.command != "prompt" {
        return Record::Other;
    }
    Record::PromptResponse {
        success: raw.success,
        error: raw.error.unwrap_or_default().into_owned(),
        disposition: raw.data.is_some_and(|data| data.disposition.is_some()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolStart<'a> {
    #[serde(borrow, default)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_name: Cow<'a, str>,
    #[serde(default)]
    args: serde_json::Value,
}

fn tool_start(raw: ToolStart<'_>) -> Record {
    let detail = ["path", "command", "pattern"]
        .iter()
        .find_map(|key| raw.args[key].as_str());
    Record::ToolStart {
        id: raw.tool_call_id.into_owned(),
        name: raw.tool_name.into_owned(),
        detail: detail.unwrap_or_default().to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolEnd<'a> {
    #[serde(borrow, default)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_name: Cow<'a, str>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow, default)]
    result: Option<ToolResult<'a>>,
}

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
}

fn tool_end(raw: ToolEnd<'_>) -> Record {
    let content = raw.result.map(|result| result.content).unwrap_or_default();
    let text: String = content
        .iter()
        .filter_map(|block| block.text.as_deref())
        .collect();
    let from = text.ceil_char_boundary(text.len().saturating_sub(TOOL_TEXT));
    Record::ToolEnd {
        id: raw.tool_call_id.into_owned(),
        name: raw.tool_name.into_owned(),
        failed: raw.is_error,
        text: text[from..].to_owned(),
    }
}

#[derive(Deserialize)]
struct AgentEnd {
    #[serde(rename = "willRetry", default)]
    will_retry: Option<bool>,
}

#[derive(Deserialize)]
struct Dialog<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
}

/// The text with every escape of half a surrogate pair replaced by that of U+FFFD (ruling 4 of the design); `None` when
/// there is none.
fn repair(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]).map(|found| at + found) {
        let Some(unit) = escaped_unit(bytes, found) else {
            at = (found + 2).min(bytes.len());
            continue;
        };
        at = found + 6;
        let pair = (0xd800..0xdc00).contains(&unit)
            && escaped_unit(bytes, at).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        if pair {
            at += 6;
        } else if (0xd800..0xe000).contains(&unit) {
            repaired.push_str(&text[copied..found]);
            repaired.push_str("\\ufffd");
            copied = at;
        }
    }
    (copied > 0).then(|| repaired + &text[copied..])
}

/// The unit of a `\uXXXX` escape at this place.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: &str) -> Record {
        match read(line.as_bytes()) {
            Line::Record(record, _) => record,
            Line::Unusable => panic!("unusable: {line}"),
        }
    }

    // shows: framing.unknown-event-ignored, framing.non-object-json-ignored, framing.malformed-record-policy
    #[test]
    fn what_is_no_record_is_unusable_and_what_is_unknown_is_just_an_event() {
        for line in [
            "42",
            "\"x\"",
            "[]",
            "null",
            "not json",
            "{\"type\":",
            "",
            "true",
        ] {
            assert_eq!(read(line.as_bytes()), Line::Unusable, "{line}");
        }
        assert_eq!(record(r#"{"type":"brand_new_thing","x":1}"#), Record::Other);
        assert_eq!(record(r#"{"x":1}"#), Record::Other);
    }

    #[test]
    fn an_answer_is_read_with_its_usage() {
        let line = r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"total":0.5}},"stopReason":"stop"}}"#;
        let Record::AssistantEnd(message) = record(line) else {
            panic!()
        };
        assert_eq!(
            (message.text.as_str(), message.stop_reason.as_str()),
            ("ab", "stop")
        );
        assert_eq!((message.tokens, message.cost), ([1, 2, 3, 4, 10], 0.5));
    }

    // shows: field.lone-surrogate
    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        let line = r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"\ud83d x \ud83d\ude00 \\ud83d \ude00"}],"stopReason":"stop"}}"#;
        let Line::Record(Record::AssistantEnd(message), true) = read(line.as_bytes()) else {
            panic!()
        };
        assert_eq!(message.text, "\u{fffd} x \u{1f600} \\ud83d \u{fffd}");
    }

    // shows: field.invalid-utf8-keeps-draining
    #[test]
    fn bytes_that_are_no_utf8_are_replaced() {
        let line = b"{\"type\":\"agent_start\",\"x\":\"\xc7\"}";
        assert_eq!(read(line), Line::Record(Record::AgentStart, true));
    }

    #[test]
    fn only_the_four_dialogs_want_an_answer() {
        let ask = |method: &str| {
            record(&format!(
                r#"{{"type":"extension_ui_request","id":"i","method":"{method}"}}"#
            ))
        };
        assert_eq!(ask("confirm"), Record::Dialog { id: "i".into() });
        assert_eq!(ask("notify"), Record::Other);
    }

    #[test]
    fn the_head_of_a_long_record_tells_what_it_is() {
        let cases = [
            (
                r#"{"type":"tool_execution_end","toolName":"read","result":{"type":"message_end"#,
                Weight::Harmless,
            ),
            (
                r#"{"type":"tool_execution_end","toolName":"bash","result":{"#,
                Weight::Useful,
            ),
            (
                r#"{"type":"message_end","message":{"role":"assistant","content":["#,
                Weight::Matters,
            ),
            (
                r#"{"type":"message_end","message":{"role":"toolResult","content":["#,
                Weight::Harmless,
            ),
            (
                r#"{"message":{"content":[{"role":"user"}],"role":"assistant"},"type":"message_end","#,
                Weight::Matters,
            ),
            (r#"{"type":"message_update","usage":{"#, Weight::Partial),
            (r#"no json at all"#, Weight::Matters),
        ];
        for (head, weight) in cases {
            assert_eq!(weigh(head.as_bytes()), weight, "{head}");
        }
    }

    #[test]
    fn a_record_of_which_only_the_head_was_kept_still_ends_its_tool_and_its_run() {
        let end = r#"{"type":"tool_execution_end","toolCallId":"t1","toolName":"read","result":{"content":[{"text":"aaa"#;
        let Record::ToolEnd { id, .. } = read_head(end.as_bytes()) else {
            panic!()
        };
        assert_eq!(id, "t1");
        let end = read_head(br#"{"type":"agent_end","messages":[{"role":"user""#);
        assert_eq!(end, Record::AgentEnd { will_retry: None });
    }

    #[test]
    fn fields_of_an_unexpected_shape_cost_their_value_and_not_the_record() {
        for (line, text) in [
            (
                r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"a"}],"usage":null,"stopReason":"stop"}}"#,
                "a",
            ),
            (
                r#"{"type":"message_end","message":{"role":"assistant","content":"plain","usage":{"input":1.5,"cost":"?"},"stopReason":"stop","errorMessage":7}}"#,
                "plain",
            ),
            (
                r#"{"type":"message_end","type":"message_end","message":{"role":"assistant","content":[1,{"type":"text","text":"b"}],"stopReason":"stop"}}"#,
                "b",
            ),
        ] {
            let Record::AssistantEnd(message) = record(line) else {
                panic!("{line}")
            };
            assert_eq!(message.text, text);
            assert_eq!(
                (message.stop_reason.as_str(), message.error.as_str()),
                ("stop", "")
            );
        }
        let end = r#"{"type":"tool_execution_end","toolCallId":"t","toolName":"read","isError":null,"result":"text"}"#;
        assert!(matches!(record(end), Record::ToolEnd { id, .. } if id == "t"));
        assert_eq!(
            record(r#"{"type":"agent_end","willRetry":"no"}"#),
            Record::AgentEnd { will_retry: None }
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(line in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
            let _ = (read(&line), weigh(&line), read_head(&line), is_whole(&line));
        }
    }
}
