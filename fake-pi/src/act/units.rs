//! Times and sizes as scripts write them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time: `500ms`, `1s`, `2m`; a plain number is milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A number of bytes: `51200`, `64KiB`, `8MiB`, also `8MiB+1`, `8MiB-1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl std::str::FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a time; write it like `500ms`, `1s` or `2m`");
        let text = text.trim();
        let split = text
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len());
        let number: f64 = text[..split].trim().parse().map_err(|_| wrong())?;
        let millis = match &text[split..] {
            "" | "ms" => number,
            "s" => number * 1e3,
            "m" => number * 60e3,
            "h" => number * 3600e3,
            _ => return Err(wrong()),
        };
        if !(0.0..=1e15).contains(&millis) {
            return Err(wrong());
        }
        Ok(Self(Duration::from_secs_f64(millis / 1e3)))
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}ms", self.0.as_secs_f64() * 1e3)
    }
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a size; write it like `51200`, `64KiB` or `8MiB+1`");
        let (base, delta) = match text
            .trim()
            .char_indices()
            .skip(1)
            .find(|(_, c)| "+-".contains(*c))
        {
            Some((at, _)) => (&text.trim()[..at], text.trim()[at..].replace(' ', "")),
            None => (text.trim(), "0".into()),
        };
        let base = base.trim();
        let split = base
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(base.len());
        let number: u64 = base[..split].trim().parse().map_err(|_| wrong())?;
        let unit = match &base[split..] {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(wrong()),
        };
        let delta: i64 = delta.parse().map_err(|_| wrong())?;
        number
            .checked_mul(unit)
            .and_then(|n| n.checked_add_signed(delta))
            .map(Self)
            .ok_or_else(wrong)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! text_or_number {
    ($type:ident, $name:literal, $what:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<$type, E> {
                        n.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<$type, E> {
                        n.to_string().parse().map_err(E::custom)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"description": $what, "type": ["string", "integer"]})
            }
        }
    };
}

text_or_number!(
    Span,
    "Span",
    "a time such as 500ms, 1s or 2m (a plain number is milliseconds)"
);
text_or_number!(
    Size,
    "Size",
    "a size such as 51200, 64KiB or 8MiB+1 (a plain number is bytes)"
);
