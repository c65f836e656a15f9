//! Reading what a parent writes as it may write it: JavaScript escapes a lone half of a surrogate pair, which no UTF-8 text can hold.

use serde_json::Value;

/// A JSON value; each escaped lone surrogate in it becomes U+FFFD.
///
/// # Errors
/// When it is no JSON for another reason.
pub fn value(line: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(line).or_else(|error| match mended(line) {
        Some(mended) => serde_json::from_slice(&mended),
        None => Err(error),
    })
}

/// The same bytes with lone surrogates replaced; `None` when there are none.
fn mended(line: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    let mut found = false;
    while at < line.len() {
        match (line[at], escaped(line, at)) {
            (_, Some(high @ 0xD800..0xDC00)) => {
                let paired = matches!(escaped(line, at + 6), Some(0xDC00..0xE000));
                if paired {
                    out.extend_from_slice(&line[at..at + 12]);
                    at += 12;
                    continue;
                }
                tracing::trace!(high, "a lone high surrogate");
                out.extend_from_slice(b"\\ufffd");
                found = true;
                at += 6;
            }
            (_, Some(0xDC00..0xE000)) => {
                out.extend_from_slice(b"\\ufffd");
                found = true;
                at += 6;
            }
            // An escaped backslash is no beginning of another escape.
            (b'\\', None) => {
                let end = line.len().min(at + 2);
                out.extend_from_slice(&line[at..end]);
                at = end;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    found.then_some(out)
}

/// The code unit of a `\uXXXX` at this place.
fn escaped(line: &[u8], at: usize) -> Option<u32> {
    let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_and_backslashes_stay() {
        for (text, expected) in [
            (r#""a\ud83d b""#, "a\u{fffd} b"),
            (r#""\ude00""#, "\u{fffd}"),
            (r#""\ud83d\ude00 \ud83d""#, "\u{1F600} \u{fffd}"),
            (r#""\\ud83d \ud83d\ud83d""#, "\\ud83d \u{fffd}\u{fffd}"),
            (r#""plain \u00e9""#, "plain é"),
        ] {
            assert_eq!(value(text.as_bytes()).unwrap(), expected, "{text}");
        }
        assert!(value(b"{").is_err() && value(b"\"\\ud8").is_err());
    }
}
