//! What JavaScript does with JSON that is not whole: the error text of `JSON.parse`, and the value that Pi salvages
//! out of the arguments of a tool call while they still stream in.

use serde_json::{Map, Value};

/// The message of the `SyntaxError` that `JSON.parse` throws for `text`, or `None` when it is well-formed.
///
/// `place` adds ` (line L column C)`, as newer Node versions do (Pi 1.6.0 was recorded on Node 22, 0.73.1 on Node 20).
pub fn error(text: &str, place: bool) -> Option<String> {
    let units: Vec<char> = text.chars().collect();
    let mut scanner = Scanner {
        text: &units,
        at: 0,
    };
    let failure = scanner.document().err()?;
    let spot = |at: usize| {
        let position = utf16(&units[..at]);
        let line = units[..at].iter().filter(|c| **c == '\n').count() + 1;
        let column = utf16(
            &units[units[..at]
                .iter()
                .rposition(|c| *c == '\n')
                .map_or(0, |lf| lf + 1)..at],
        ) + 1;
        match place {
            true => format!("{position} (line {line} column {column})"),
            false => position.to_string(),
        }
    };
    Some(match failure {
        Failure::End => "Unexpected end of JSON input".to_owned(),
        Failure::At(what, at) => format!("{what} in JSON at position {}", spot(at)),
        Failure::Trailing(at) => format!(
            "Unexpected non-whitespace character after JSON at position {}",
            spot(at)
        ),
        Failure::Token(at) => unexpected_token(&units, at),
    })
}

fn utf16(text: &[char]) -> usize {
    text.iter().map(|c| c.len_utf16()).sum()
}

/// V8 shows the whole text up to 40 characters, and else ten on both sides of the place.
fn unexpected_token(text: &[char], at: usize) -> String {
    const CONTEXT: usize = 10;
    let token = text[at];
    let show = |from: usize, to: usize| text[from..to].iter().collect::<String>();
    if text.len() <= 4 * CONTEXT {
        return format!(
            "Unexpected token '{token}', \"{}\" is not valid JSON",
            show(0, text.len())
        );
    }
    let from = at.saturating_sub(CONTEXT);
    let to = (at + CONTEXT).min(text.len());
    let before = if from > 0 { "..." } else { "" };
    let after = if to < text.len() { "..." } else { "" };
    format!(
        "Unexpected token '{token}', {before}\"{}\"{after} is not valid JSON",
        show(from, to)
    )
}

enum Failure {
    End,
    At(&'static str, usize),
    Trailing(usize),
    Token(usize),
}

struct Scanner<'a> {
    text: &'a [char],
    at: usize,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), Failure> {
        self.value()?;
        self.blanks();
        if self.at < self.text.len() {
            Err(Failure::Trailing(self.at))
        } else {
            Ok(())
        }
    }

    fn blanks(&mut self) {
        while self
            .text
            .get(self.at)
            .is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r'))
        {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<char, Failure> {
        self.text.get(self.at).copied().ok_or(Failure::End)
    }

    fn value(&mut self) -> Result<(), Failure> {
        self.blanks();
        match self.peek()? {
            '{' => self.members(),
            '[' => self.elements(),
            '"' => self.string(),
            't' => self.word("true"),
            'f' => self.word("false"),
            'n' => self.word("null"),
            '-' | '0'..='9' => self.number(),
            _ => Err(Failure::Token(self.at)),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Failure> {
        for expected in word.chars() {
            if self.peek()? != expected {
                return Err(Failure::Token(self.at));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Failure> {
        let digits = |this: &mut Self| {
            let from = this.at;
            while this.text.get(this.at).is_some_and(char::is_ascii_digit) {
                this.at += 1;
            }
            this.at > from
        };
        if self.peek()? == '-' {
            self.at += 1;
            if !self.text.get(self.at).is_some_and(char::is_ascii_digit) {
                return Err(Failure::At("No number after minus sign", self.at));
            }
        }
        digits(self);
        if self.text.get(self.at) == Some(&'.') {
            self.at += 1;
            if !digits(self) {
                return Err(Failure::At("Unterminated fractional number", self.at));
            }
        }
        if self
            .text
            .get(self.at)
            .is_some_and(|c| matches!(c, 'e' | 'E'))
        {
            self.at += 1;
            if self
                .text
                .get(self.at)
                .is_some_and(|c| matches!(c, '+' | '-'))
            {
                self.at += 1;
            }
            if !digits(self) {
                return Err(Failure::At("Exponent part is missing a number", self.at));
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Failure> {
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                None => return Err(Failure::At("Unterminated string", self.at)),
                Some('"') => break,
                Some('\\') => self.escape()?,
                Some(c) if *c < ' ' => {
                    return Err(Failure::At(
                        "Bad control character in string literal",
                        self.at,
                    ));
                }
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Failure> {
        self.at += 1;
        match self.text.get(self.at) {
            None => Err(Failure::At("Unterminated string", self.at)),
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.at += 1;
                Ok(())
            }
            Some('u') => {
                self.at += 1;
                for _ in 0..4 {
                    match self.text.get(self.at) {
                        None => return Err(Failure::At("Unterminated string", self.at)),
                        Some(c) if c.is_ascii_hexdigit() => self.at += 1,
                        Some(_) => return Err(Failure::At("Bad Unicode escape", self.at)),
                    }
                }
                Ok(())
            }
            Some(_) => Err(Failure::At("Bad escaped character", self.at)),
        }
    }

    fn members(&mut self) -> Result<(), Failure> {
        self.at += 1;
        self.blanks();
        let mut name = "Expected property name or '}'";
        if self.text.get(self.at) == Some(&'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blanks();
            match self.text.get(self.at) {
                Some('"') => self.string()?,
                _ => return Err(Failure::At(name, self.at)),
            }
            self.blanks();
            match self.text.get(self.at) {
                Some(':') => self.at += 1,
                _ => return Err(Failure::At("Expected ':' after property name", self.at)),
            }
            self.value()?;
            self.blanks();
            match self.text.get(self.at) {
                Some(',') => self.at += 1,
                Some('}') => break,
                _ => {
                    return Err(Failure::At(
                        "Expected ',' or '}' after property value",
                        self.at,
                    ));
                }
            }
            name = "Expected double-quoted property name";
        }
        self.at += 1;
        Ok(())
    }

    fn elements(&mut self) -> Result<(), Failure> {
        self.at += 1;
        self.blanks();
        if self.text.get(self.at) == Some(&']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value()?;
            self.blanks();
            match self.text.get(self.at) {
                Some(',') => self.at += 1,
                Some(']') => break,
                _ => {
                    return Err(Failure::At(
                        "Expected ',' or ']' after array element",
                        self.at,
                    ));
                }
            }
        }
        self.at += 1;
        Ok(())
    }
}

/// What can be read out of JSON that has not fully come in: an unfinished string or container is closed, an unfinished
/// name, number or word is left out. Always an object, since it stands for a tool's arguments.
pub fn salvage(text: &str) -> Value {
    if let Ok(whole) = serde_json::from_str::<Value>(text) {
        return if whole.is_object() {
            whole
        } else {
            Value::Object(Map::new())
        };
    }
    let units: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        text: &units,
        at: 0,
    };
    match reader.value() {
        Some(object @ Value::Object(_)) => object,
        _ => Value::Object(Map::new()),
    }
}

struct Reader<'a> {
    text: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.blanks();
        match self.text.get(self.at)? {
            '{' => Some(self.object()),
            '[' => Some(self.array()),
            '"' => {
                let (text, _) = self.string();
                Some(Value::String(text))
            }
            _ => {
                let from = self.at;
                while self
                    .text
                    .get(self.at)
                    .is_some_and(|c| !matches!(c, ',' | '}' | ']') && !c.is_whitespace())
                {
                    self.at += 1;
                }
                serde_json::from_str(&self.text[from..self.at].iter().collect::<String>()).ok()
            }
        }
    }

    /// The text, and whether its closing quote was there.
    fn string(&mut self) -> (String, bool) {
        let from = self.at;
        self.at += 1;
        let mut end = self.at;
        while let Some(c) = self.text.get(self.at) {
            match c {
                '"' => {
                    self.at += 1;
                    let quoted: String = self.text[from..self.at].iter().collect();
                    return (serde_json::from_str(&quoted).unwrap_or_default(), true);
                }
                '\\' => {
                    let length = if self.text.get(self.at + 1) == Some(&'u') {
                        6
                    } else {
                        2
                    };
                    if self.at + length > self.text.len() {
                        self.at = self.text.len();
                        break;
                    }
                    self.at += length;
                }
                _ => self.at += 1,
            }
            end = self.at;
        }
        let quoted: String = self.text[from..end].iter().chain(&['"']).collect();
        (serde_json::from_str(&quoted).unwrap_or_default(), false)
    }

    fn object(&mut self) -> Value {
        let mut fields = Map::new();
        self.at += 1;
        loop {
            self.blanks();
            if self.text.get(self.at) != Some(&'"') {
                break;
            }
            let (name, closed) = self.string();
            self.blanks();
            if !closed || self.text.get(self.at) != Some(&':') {
                break;
            }
            self.at += 1;
            let Some(value) = self.value() else { break };
            fields.insert(name, value);
            self.blanks();
            if self.text.get(self.at) != Some(&',') {
                break;
            }
            self.at += 1;
        }
        if self.text.get(self.at) == Some(&'}') {
            self.at += 1;
        }
        Value::Object(fields)
    }

    fn array(&mut self) -> Value {
        let mut items = Vec::new();
        self.at += 1;
        while let Some(value) = self.value() {
            items.push(value);
            self.blanks();
            if self.text.get(self.at) != Some(&',') {
                break;
            }
            self.at += 1;
        }
        if self.text.get(self.at) == Some(&']') {
            self.at += 1;
        }
        Value::Array(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_v8s() {
        for (text, message) in [
            ("", "Unexpected end of JSON input"),
            ("   ", "Unexpected end of JSON input"),
            (
                "{\"type\":\"prompt\", broken",
                "Expected double-quoted property name in JSON at position 18 (line 1 column 19)",
            ),
            (
                "{\"path\": \"note",
                "Unterminated string in JSON at position 14 (line 1 column 15)",
            ),
            ("nope", "Unexpected token 'o', \"nope\" is not valid JSON"),
            (
                "{",
                "Expected property name or '}' in JSON at position 1 (line 1 column 2)",
            ),
        ] {
            assert_eq!(error(text, true).as_deref(), Some(message));
        }
        assert_eq!(error("{\"a\":[1,2.5e3,\"\\u00e9\",null]} ", true), None);
        assert_eq!(
            error("{\"a\" 1}", false).as_deref(),
            Some("Expected ':' after property name in JSON at position 5")
        );
    }

    #[test]
    fn unfinished_arguments_are_salvaged() {
        for (text, value) in [
            ("", json!({})),
            ("{\"path", json!({})),
            ("{\"path\": \"no", json!({"path": "no"})),
            ("{\"a\": 1, \"b\": [1, 2", json!({"a": 1, "b": [1, 2]})),
            ("{\"a\": \"x\\", json!({"a": "x"})),
            ("[1]", json!({})),
        ] {
            assert_eq!(salvage(text), value, "{text}");
        }
    }
}
