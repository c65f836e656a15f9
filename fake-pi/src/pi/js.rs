//! JSON as JavaScript's `JSON.stringify` writes it, byte for byte.
//!
//! Two things differ from `serde_json`'s own writer: numbers (a cost of 1.8e-5 is `0.000018` on Pi's wire, and a whole
//! double has no `.0`), and lone surrogates. A JavaScript string may hold half of a surrogate pair, a Rust string may
//! not; here it is carried as a private-use character of plane 16 ([`lone`]) and written as the escape `\ud83d`.

use serde_json::{Number, Value};

/// Plane 16's private-use area is where halves of surrogate pairs live inside our strings.
const CARRIER: u32 = 0x10_0000;

/// Half of a surrogate pair (`0xd800..=0xdfff`) as a character that [`line`] writes as its escape.
///
/// Any other code unit gives the replacement character.
pub fn lone(unit: u16) -> char {
    match unit {
        0xd800..=0xdfff => {
            char::from_u32(CARRIER + u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::REPLACEMENT_CHARACTER,
    }
}

fn carried(c: char) -> Option<u16> {
    let unit = u16::try_from(u32::from(c).checked_sub(CARRIER)?).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

/// Appends as JavaScript's `+=` does: a high half at the end of `text` and a low half at the start of `more` become
/// one character.
pub fn append(text: &mut String, more: &str) {
    let high = text
        .chars()
        .next_back()
        .and_then(carried)
        .filter(|unit| *unit < 0xdc00);
    let mut rest = more.chars();
    let low = rest.next().and_then(carried).filter(|unit| *unit >= 0xdc00);
    if let (Some(high), Some(low)) = (high, low)
        && let Some(Ok(joined)) = char::decode_utf16([high, low]).next()
    {
        text.pop();
        text.push(joined);
        text.push_str(rest.as_str());
        return;
    }
    text.push_str(more);
}

/// JSON text whose escapes of lone surrogates (`\\ud83d` without its other half) are replaced by what [`lone`] gives, so
/// that strict readers take it. `None` when there are none.
pub fn carry_surrogates(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut out, mut plain, mut at, mut found) = (String::new(), 0, 0, false);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(high @ 0xd800..=0xdbff) if !matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => {
                out.push_str(&json[plain..at]);
                out.push(lone(high));
                at += 6;
                plain = at;
                found = true;
            }
            Some(0xd800..=0xdbff) => at += 12,
            Some(low @ 0xdc00..=0xdfff) => {
                out.push_str(&json[plain..at]);
                out.push(lone(low));
                at += 6;
                plain = at;
                found = true;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    out.push_str(&json[plain..]);
    found.then_some(out)
}

/// A JavaScript number as a JSON value: whole numbers without a fraction.
pub fn number(value: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only whole numbers below 2^53 are converted"
    )]
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// One record as a line, without its LF.
pub fn line(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, name);
                out.push(':');
                write(out, field);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    use std::fmt::Write as _;
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else {
        // Writing to a String cannot fail.
        let _ = write!(out, "{number}");
        return;
    };
    let size = value.abs();
    if value == 0.0 {
        out.push('0');
    } else if (1e-6..1e21).contains(&size) {
        let _ = write!(out, "{value}");
    } else {
        // JavaScript always signs the exponent: 1e-7, 1e+21.
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                let _ = write!(out, "{digits}e+{exponent}");
            }
            _ => out.push_str(&text),
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    use std::fmt::Write as _;
    out.push('"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            c if c < ' ' || carried(c).is_some() => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + c.len_utf8();
        if escape.is_empty() {
            let unit = carried(c).map_or(u32::from(c), u32::from);
            let _ = write!(out, "\\u{unit:04x}");
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_javascripts() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.000018, "0.000018"),
            (1e-6 * 120.0, "0.00011999999999999999"),
            (1e-7, "1e-7"),
            (1e21, "1e+21"),
            (0.10078125, "0.10078125"),
        ] {
            assert_eq!(line(&number(value)), text);
        }
        assert_eq!(line(&json!(1_796_085_711_600_u64)), "1796085711600");
    }

    #[test]
    fn halves_of_a_pair_are_escaped_and_joined() {
        let mut text = String::from("a");
        append(&mut text, &lone(0xd83d).to_string());
        assert_eq!(line(&json!(text)), "\"a\\ud83d\"");
        append(&mut text, &format!("{}b", lone(0xde00)));
        assert_eq!(text, "a\u{1f600}b");
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        assert_eq!(
            line(&json!("\u{2028}\u{85}\u{0}\"\\\n\u{7f}é")),
            "\"\u{2028}\u{85}\\u0000\\\"\\\\\\n\u{7f}é\""
        );
    }
}
