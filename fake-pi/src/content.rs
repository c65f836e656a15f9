//! Bytes that acts ask for: raw ones, records of an exact size, floods, and the ways to cut them (pure).

use base64::Engine as _;
use serde_json::{Value, json};

use crate::act::{Big, Endless, Flood, FullRaw, Raw, Repeat, StreamName, Written};
use crate::out::Chunk;
use crate::pi::js;

/// Floods and endless lines are written in blocks of about this many bytes.
pub const BLOCK: usize = 256 * 1024;

/// The text of a `repeat`.
pub fn repeat(repeat: &Repeat) -> String {
    let mut text = repeat.before.clone();
    match (repeat.times, repeat.bytes) {
        (Some(times), None) => text.push_str(&repeat.piece.repeat(times as usize)),
        (times, Some(bytes)) => {
            let room = (bytes.0 as usize).saturating_sub(text.len());
            let most = times.map_or(usize::MAX, |times| times as usize);
            let wanted = room.div_ceil(repeat.piece.len().max(1)).min(most);
            let mut body = repeat.piece.repeat(wanted);
            body.truncate(body.floor_char_boundary(room));
            text.push_str(&body);
        }
        (None, None) => text.push_str(&repeat.piece),
    }
    text
}

/// The bytes of a `raw` or `stderr` act.
///
/// # Errors
/// When its base64 or hex is none.
pub fn raw(raw: &Raw) -> Result<Vec<u8>, String> {
    let full = match raw {
        Raw::Text(text) => return Ok(text.clone().into_bytes()),
        Raw::Full(full) => full.as_ref(),
    };
    let FullRaw {
        text,
        base64,
        hex,
        repeat: repeated,
        record,
        cut,
        lf,
    } = full;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(text.as_deref().unwrap_or_default().as_bytes());
    if let Some(base64) = base64 {
        let decoded = base64::engine::general_purpose::STANDARD.decode(base64);
        bytes.extend(decoded.map_err(|error| format!("`{base64}` is no base64: {error}"))?);
    }
    if let Some(hex) = hex {
        let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
        for pair in digits.chunks(2) {
            let pair: String = pair.iter().collect();
            let byte = u8::from_str_radix(&pair, 16)
                .ok()
                .filter(|_| pair.len() == 2);
            bytes.push(byte.ok_or_else(|| format!("`{pair}` in `{hex}` is no hexadecimal byte"))?);
        }
    }
    if let Some(repeated) = repeated {
        bytes.extend_from_slice(repeat(repeated).as_bytes());
    }
    if let Some(record) = record {
        bytes.extend_from_slice(js::line(record).as_bytes());
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.0 as usize);
    }
    if *lf {
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// A record of exactly `bytes` bytes.
///
/// # Errors
/// When the type is unknown, or the size too small for it.
pub fn big(big: &Big) -> Result<Vec<u8>, String> {
    let usage = json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let content = json!([{"type": "text", "text": "FILL"}]);
    let record = match big.record.as_str() {
        "tool_execution_end" => {
            json!({"type": "tool_execution_end", "toolCallId": "call_big", "toolName": "read",
            "result": {"content": content}, "isError": false})
        }
        "tool_execution_update" => {
            json!({"type": "tool_execution_update", "toolCallId": "call_big", "toolName": "bash",
            "args": {}, "partialResult": {"content": content, "details": {}}})
        }
        "message_update" => json!({"type": "message_update", "usage": usage,
            "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "FILL"}}),
        "message_end" => {
            json!({"type": "message_end", "message": {"role": "assistant", "content": content,
            "api": "openai-completions", "provider": "stub", "model": "x", "usage": usage, "stopReason": "stop",
            "timestamp": 0}})
        }
        "unknown" => json!({"type": "brand_new_thing", "payload": "FILL"}),
        other => {
            let known =
                "tool_execution_end, tool_execution_update, message_update, message_end, unknown";
            return Err(format!(
                "there is no big record `{other}`; write one of {known}"
            ));
        }
    };
    let line = js::line(&record);
    let (head, tail) = line.split_once("FILL").unwrap_or((&line, ""));
    let wanted = big.bytes.0 as usize;
    let fill = wanted.checked_sub(head.len() + tail.len()).ok_or_else(|| {
        format!(
            "a `{}` has at least {} bytes",
            big.record,
            head.len() + tail.len()
        )
    })?;
    let mut bytes = Vec::with_capacity(wanted + 1);
    bytes.extend_from_slice(head.as_bytes());
    bytes.resize(head.len() + fill, b'x');
    bytes.extend_from_slice(tail.as_bytes());
    if big.lf {
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// The blocks of a line that does not end.
pub fn endless(endless: &Endless) -> impl Iterator<Item = Vec<u8>> + use<> {
    let head = endless.head.clone().unwrap_or_else(|| {
        r#"{"type":"message_update","usage":{},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":""#
            .to_owned()
    });
    let mut left = endless.bytes.0 as usize;
    let mut block = head.into_bytes();
    std::iter::from_fn(move || {
        let mut next = std::mem::take(&mut block);
        next.resize(BLOCK.max(next.len()).min(left.max(1)), b'x');
        next.truncate(left);
        left -= next.len();
        (!next.is_empty()).then_some(next)
    })
}

/// The blocks of a flood.
pub fn flood(flood: &Flood) -> impl Iterator<Item = Vec<u8>> + use<> {
    let stderr = flood.stream == StreamName::Stderr;
    let record = flood.record.as_ref().map_or_else(
        || {
            "{\"type\":\"message_update\",\"usage\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"totalTokens\":0,\
             \"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"total\":0}},\
             \"assistantMessageEvent\":{\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"flood \"}}"
                .to_owned()
        },
        js::line,
    );
    let (lines, bytes) = match (flood.lines, flood.bytes) {
        (None, None) => (1, u64::MAX),
        (lines, bytes) => (
            lines.unwrap_or(u64::MAX),
            bytes.map_or(u64::MAX, |bytes| bytes.0),
        ),
    };
    let (mut number, mut sent) = (0_u64, 0_u64);
    std::iter::from_fn(move || {
        let mut block = Vec::with_capacity(BLOCK + 512);
        while block.len() < BLOCK && number < lines && sent < bytes {
            let before = block.len();
            number += 1;
            if stderr {
                let filler =
                    "of many that nobody wants to read, but somebody must, or the writer blocks";
                block.extend_from_slice(format!("line {number} {filler}\n").as_bytes());
            } else {
                block.extend_from_slice(record.as_bytes());
                block.push(b'\n');
            }
            sent += (block.len() - before) as u64;
        }
        (!block.is_empty()).then_some(block)
    })
}

/// The blocks of a stream for measuring: whole records of a named mix, about `bytes` in all.
///
/// # Errors
/// When there is no such mix.
pub fn firehose(
    mix: Option<&str>,
    bytes: u64,
) -> Result<impl Iterator<Item = Vec<u8>> + use<>, String> {
    let delta = |size: usize| {
        let event = json!({"type": "text_delta", "contentIndex": 0, "delta": "d".repeat(size)});
        js::line(
            &json!({"type": "message_update", "usage": {"input": 0, "output": 0}, "assistantMessageEvent": event}),
        )
    };
    let tool = |size: usize| {
        let content: Value = json!([{"type": "text", "text": "t".repeat(size)}]);
        js::line(
            &json!({"type": "tool_execution_end", "toolCallId": "c", "toolName": "read",
            "result": {"content": content}, "isError": false}),
        )
    };
    let lines: Vec<String> = match mix.unwrap_or("deltas") {
        "deltas" => (0..64).map(|n| delta(20 + n * 3)).collect(),
        "mixed" => (0..64)
            .map(|n| {
                if n % 16 == 15 {
                    tool(16 * 1024)
                } else {
                    delta(40 + n * 4)
                }
            })
            .collect(),
        "large" => vec![tool(1 << 20)],
        other => {
            return Err(format!(
                "there is no mix `{other}`; write one of deltas, mixed, large"
            ));
        }
    };
    let mut block = lines.join("\n").into_bytes();
    block.push(b'\n');
    let times = (bytes as usize).div_ceil(block.len());
    Ok(std::iter::repeat_n(block, times))
}

/// Cuts what was collected the way a `written` act wants it.
pub fn cut(mut bytes: Vec<u8>, written: &Written) -> Vec<Chunk> {
    if written.crlf {
        bytes = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .fold(Vec::new(), |mut all, line| {
                match line.strip_suffix(b"\n") {
                    Some(line) => all.extend([line, b"\r\n"].concat()),
                    None => all.extend_from_slice(line),
                }
                all
            });
    }
    if !written.last_lf && bytes.ends_with(b"\n") {
        bytes.pop();
    }
    if let Some(cut) = written.cut {
        bytes.truncate(cut.0 as usize);
    }
    let pause = written
        .pause
        .map_or(std::time::Duration::ZERO, |pause| pause.0);
    let chunk = |bytes: &[u8]| Chunk {
        bytes: bytes.to_vec(),
        pause,
    };
    if let Some(every) = written.every {
        return bytes.chunks(every.max(1)).map(chunk).collect();
    }
    if !written.cuts.is_empty() {
        let mut cuts: Vec<usize> = written
            .cuts
            .iter()
            .map(|at| (*at as usize).min(bytes.len()))
            .collect();
        cuts.sort_unstable();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain(std::iter::once(bytes.len()));
        return starts
            .zip(ends)
            .map(|(from, to)| chunk(&bytes[from..to]))
            .filter(|c| !c.bytes.is_empty())
            .collect();
    }
    if written.burst || !bytes.contains(&b'\n') {
        return vec![chunk(&bytes)];
    }
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(chunk)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::Size;

    fn written(text: &str) -> Written {
        serde_saphyr::from_str(text).unwrap()
    }

    fn pieces(bytes: &[u8], how: &str) -> Vec<String> {
        let chunks = cut(bytes.to_vec(), &written(&format!("{{do: [], {how}}}")));
        chunks
            .into_iter()
            .map(|chunk| String::from_utf8(chunk.bytes).unwrap())
            .collect()
    }

    #[test]
    fn bytes_are_cut_as_asked() {
        let all = b"one\ntwo\n";
        assert_eq!(pieces(all, "burst: true"), ["one\ntwo\n"]);
        assert_eq!(pieces(all, "every: 3"), ["one", "\ntw", "o\n"]);
        assert_eq!(pieces(all, "cuts: [5, 1]"), ["o", "ne\nt", "wo\n"]);
        assert_eq!(pieces(all, "crlf: true"), ["one\r\n", "two\r\n"]);
        assert_eq!(pieces(all, "last-lf: false"), ["one\n", "two"]);
        assert_eq!(pieces(all, "cut: 5"), ["one\n", "t"]);
    }

    #[test]
    fn a_big_record_has_exactly_its_size_and_is_json() {
        for record in [
            "tool_execution_end",
            "tool_execution_update",
            "message_update",
            "message_end",
            "unknown",
        ] {
            let act = Big {
                record: record.into(),
                bytes: Size(1000),
                lf: true,
            };
            let bytes = big(&act).unwrap();
            assert_eq!(bytes.len(), 1001, "{record}");
            serde_json::from_slice::<Value>(&bytes).unwrap();
        }
        let small = Big {
            record: "message_end".into(),
            bytes: Size(10),
            lf: true,
        };
        assert!(big(&small).unwrap_err().contains("at least"));
    }

    #[test]
    fn an_endless_line_has_its_bytes_and_no_lf() {
        let act = Endless {
            bytes: Size(600_000),
            head: None,
            stderr: false,
        };
        let all: Vec<u8> = endless(&act).flatten().collect();
        assert_eq!(all.len(), 600_000);
        assert!(!all.contains(&b'\n'));
    }

    #[test]
    fn a_repeat_is_cut_at_a_character() {
        let act = Repeat {
            piece: "é".into(),
            times: None,
            bytes: Some(Size(5)),
            before: "a".into(),
        };
        assert_eq!(repeat(&act), "aéé");
        let act = Repeat {
            bytes: Some(Size(4)),
            ..act
        };
        assert_eq!(repeat(&act), "aé");
    }

    #[test]
    fn a_flood_counts_lines_or_bytes() {
        let act: Flood = serde_saphyr::from_str("{stream: stdout, lines: 5000}").unwrap();
        let all: Vec<u8> = flood(&act).flatten().collect();
        assert_eq!(all.iter().filter(|byte| **byte == b'\n').count(), 5000);
        let act: Flood = serde_saphyr::from_str("{stream: stderr, bytes: 1MiB}").unwrap();
        let all: Vec<u8> = flood(&act).flatten().collect();
        assert!((1 << 20..(1 << 20) + 200).contains(&all.len()));
    }

    #[test]
    fn raw_bytes_come_from_every_notation() {
        let bytes = |text: &str| raw(&serde_saphyr::from_str::<Raw>(text).unwrap());
        assert_eq!(bytes("plain").unwrap(), b"plain");
        assert_eq!(bytes("{hex: c7 0a}").unwrap(), [0xc7, 0x0a]);
        assert_eq!(bytes("{base64: aGk=, lf: true}").unwrap(), b"hi\n");
        assert_eq!(bytes("{record: {type: x}, cut: 4}").unwrap(), b"{\"ty");
        assert!(
            bytes("{hex: c}")
                .unwrap_err()
                .contains("no hexadecimal byte")
        );
    }
}
