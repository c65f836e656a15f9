//! JSON that keeps what a comparison needs: the order of fields, the text of numbers, and lone surrogates.

use fake_pi::pi::js;

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Word(String),
    Text(String),
    List(Vec<Json>),
    Fields(Vec<(String, Json)>),
}

impl Json {
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Fields(fields) => fields
                .iter()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of the field of this name.
    pub fn text_of(&self, name: &str) -> &str {
        self.get(name).and_then(Json::text).unwrap_or_default()
    }
}

/// Reads one line; `None` if it is no JSON.
pub fn parse(line: &str) -> Option<Json> {
    let mut reader = Reader { text: line, at: 0 };
    let value = reader.value()?;
    reader.blanks();
    (reader.at == line.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn blanks(&mut self) {
        while self
            .peek()
            .is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r'))
        {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: char) -> Option<()> {
        self.blanks();
        (self.peek()? == c).then(|| self.at += c.len_utf8())
    }

    fn value(&mut self) -> Option<Json> {
        self.blanks();
        match self.peek()? {
            '"' => self.string().map(Json::Text),
            '[' => {
                self.eat('[')?;
                let mut items = Vec::new();
                if self.eat(']').is_some() {
                    return Some(Json::List(items));
                }
                loop {
                    items.push(self.value()?);
                    if self.eat(',').is_none() {
                        break;
                    }
                }
                self.eat(']').map(|()| Json::List(items))
            }
            '{' => {
                self.eat('{')?;
                let mut fields = Vec::new();
                if self.eat('}').is_some() {
                    return Some(Json::Fields(fields));
                }
                loop {
                    self.blanks();
                    let name = self.string()?;
                    self.eat(':')?;
                    fields.push((name, self.value()?));
                    if self.eat(',').is_none() {
                        break;
                    }
                }
                self.eat('}').map(|()| Json::Fields(fields))
            }
            _ => {
                let rest = &self.text[self.at..];
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
                    .unwrap_or(rest.len());
                self.at += end;
                (end > 0).then(|| Json::Word(rest[..end].to_owned()))
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        self.eat('"')?;
        let mut text = String::new();
        loop {
            let c = self.peek()?;
            self.at += c.len_utf8();
            match c {
                '"' => return Some(text),
                '\\' => {
                    let escape = self.peek()?;
                    self.at += escape.len_utf8();
                    match escape {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'b' => text.push('\u{8}'),
                        'f' => text.push('\u{c}'),
                        'u' => {
                            let unit =
                                u16::from_str_radix(self.text.get(self.at..self.at + 4)?, 16)
                                    .ok()?;
                            self.at += 4;
                            match char::from_u32(u32::from(unit)) {
                                Some(c) => text.push(c),
                                None => js::append(&mut text, &js::lone(unit).to_string()),
                            }
                        }
                        other => text.push(other),
                    }
                }
                c => text.push(c),
            }
        }
    }
}

/// The line with one thing changed, for each thing that carries meaning: every field left out, every text and word
/// altered. Times and what the recorder left out are not touched, since the comparison does not look at them.
pub fn mutations(line: &str) -> Vec<String> {
    let Some(whole) = parse(line) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    walk(&whole, &mut |altered| altered, &mut found);
    found.iter().map(write).collect()
}

const LOOSE: [&str; 5] = [
    "timestamp",
    "durationMs",
    "wall_time_seconds",
    "toolsAdded",
    "RECORDER",
];

fn walk(value: &Json, put: &mut dyn FnMut(Json) -> Json, found: &mut Vec<Json>) {
    match value {
        Json::Word(word) => found.push(put(Json::Word(if word == "1" {
            "2".into()
        } else {
            "1".into()
        }))),
        Json::Text(text) => {
            let identifier = text.len() == 36
                || (text.len() == 8 && text.chars().all(|c| c.is_ascii_hexdigit()));
            if !identifier && !text.contains("[[RECORDER") {
                found.push(put(Json::Text(format!("{text}~"))));
            }
        }
        Json::List(items) => {
            for at in 0..items.len() {
                let mut fewer = items.clone();
                fewer.remove(at);
                found.push(put(Json::List(fewer)));
                let mut put_item = |item: Json| {
                    let mut items = items.clone();
                    items[at] = item;
                    put(Json::List(items))
                };
                walk(&items[at], &mut put_item, found);
            }
        }
        Json::Fields(fields) => {
            for (at, (name, field)) in fields.iter().enumerate() {
                if LOOSE.contains(&name.as_str()) {
                    continue;
                }
                let mut fewer = fields.clone();
                fewer.remove(at);
                found.push(put(Json::Fields(fewer)));
                let mut put_field = |field: Json| {
                    let mut fields = fields.clone();
                    fields[at].1 = field;
                    put(Json::Fields(fields))
                };
                walk(field, &mut put_field, found);
            }
        }
    }
}

/// The same as a JSON value, its numbers read exactly.
pub fn to_value(value: &Json) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Json::Word(word) => match word.as_str() {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => js::number(number.parse().unwrap()),
        },
        Json::Text(text) => Value::String(text.clone()),
        Json::List(items) => items.iter().map(to_value).collect(),
        Json::Fields(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, field)| (name.clone(), to_value(field)))
                .collect(),
        ),
    }
}

fn write(value: &Json) -> String {
    match value {
        Json::Word(word) => word.clone(),
        Json::Text(text) => js::line(&serde_json::json!(text)),
        Json::List(items) => format!(
            "[{}]",
            items.iter().map(write).collect::<Vec<_>>().join(",")
        ),
        Json::Fields(fields) => {
            let field = |(name, value): &(String, Json)| format!("\"{name}\":{}", write(value));
            format!(
                "{{{}}}",
                fields.iter().map(field).collect::<Vec<_>>().join(",")
            )
        }
    }
}
