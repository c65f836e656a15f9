//! JSON that knows where it stands: every value of a document with its line and column, and keys that come twice.
//!
//! `serde_json` names a place for broken syntax only. A raw value borrows from the text, so its address tells the
//! place of everything else.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A place in a text, both counted from 1; columns count bytes, as `serde_json` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    text: &'a str,
    raw: &'a RawValue,
}

/// What kind of value stands there, in the words of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "a list",
            Self::Object => "an object",
        })
    }
}

/// Reads a whole document.
///
/// # Errors
/// Broken syntax, with the place and `serde_json`'s words for it.
pub fn parse(text: &str) -> Result<Value<'_>, (Place, String)> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Ok(Value { text, raw }),
        Err(error) => {
            let place = Place {
                line: error.line().max(1),
                column: error.column().max(1),
            };
            let words = error.to_string();
            let words = words
                .rsplit_once(" at line ")
                .map_or(words.as_str(), |(head, _)| head);
            Err((place, words.to_owned()))
        }
    }
}

impl<'a> Value<'a> {
    /// Where it begins.
    pub fn place(&self) -> Place {
        let offset = (self.raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or("");
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        Place { line, column }
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self.raw.get().as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Its text in the document.
    pub fn source(&self) -> &'a str {
        self.raw.get()
    }

    /// The string, if it is one. A lone surrogate makes it none: such text could not be handed on.
    pub fn string(&self) -> Option<String> {
        serde_json::from_str(self.raw.get()).ok()
    }

    /// The whole number, if it is one that is not negative and has neither fraction nor exponent.
    pub fn whole(&self) -> Option<u64> {
        let digits = self.raw.get();
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    }

    /// The entries of the object, if it is one, in order; a key that comes twice is there twice.
    pub fn object(&self) -> Option<Vec<(String, Value<'a>)>> {
        let Pairs(pairs) = serde_json::from_str(self.raw.get()).ok()?;
        let text = self.text;
        Some(
            pairs
                .into_iter()
                .map(|(key, raw)| (key, Value { text, raw }))
                .collect(),
        )
    }

    /// The items of the list, if it is one.
    pub fn array(&self) -> Option<Vec<Value<'a>>> {
        let Items(items) = serde_json::from_str(self.raw.get()).ok()?;
        let text = self.text;
        Some(items.into_iter().map(|raw| Value { text, raw }).collect())
    }
}

/// An object as a list of pairs.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A list.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_place() {
        let text = "{\n  \"a\": 1,\n  \"b\": [true,\n    \"x\"], \"a\": null }";
        let object = parse(text).unwrap().object().unwrap();
        let seen: Vec<_> = object
            .iter()
            .map(|(key, value)| format!("{key} {} {}", value.place(), value.kind()))
            .collect();
        assert_eq!(seen, ["a 2:8 a number", "b 3:8 a list", "a 4:16 null"]);
        let items = object[1].1.array().unwrap();
        assert_eq!(
            (items[1].place(), items[1].string()),
            (Place { line: 4, column: 5 }, Some("x".into()))
        );
    }

    #[test]
    fn whole_numbers_only() {
        for (text, expected) in [
            ("0", Some(0)),
            ("9007199254740992", Some(1 << 53)),
            ("18446744073709551616", None),
            ("-1", None),
            ("1.0", None),
            ("1e3", None),
            ("\"1\"", None),
        ] {
            assert_eq!(parse(text).unwrap().whole(), expected, "{text}");
        }
    }

    #[test]
    fn broken_syntax_has_a_place() {
        let (place, words) = parse("{\n  \"a\": 1,\n}").unwrap_err();
        assert_eq!((place.line, words.as_str()), (3, "key must be a string"));
        assert!(parse("").is_err() && parse("{} {}").is_err());
        // Deep nesting is refused or skipped, never a stack overflow.
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        let _ = parse(&deep);
    }
}
