//! The head of a record that is too long to be kept: what its top level tells within the part at hand. Pure.

use serde_json::Value;

/// What the head tells. Only keys at the top level count, and `role` directly in `message`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// `type`.
    pub kind: Option<String>,
    /// `message.role`.
    pub role: Option<String>,
    /// `toolCallId`.
    pub tool_id: Option<String>,
    /// `toolName`.
    pub tool_name: Option<String>,
}

impl Head {
    /// Looks through `head`, the beginning of a JSON object or of something else.
    pub fn scan(head: &[u8]) -> Self {
        let mut found = Self::default();
        let mut depth = 0_usize;
        // Path: the key at depth 1, and whether the next string is a key.
        let mut outer = String::new();
        let mut key = String::new();
        let mut expects_key = false;
        let mut at = 0;
        while let Some(&byte) = head.get(at) {
            match byte {
                b'{' => {
                    depth += 1;
                    expects_key = true;
                    if depth == 2 {
                        outer.clone_from(&key);
                    }
                }
                b'[' => {
                    // Nothing inside a list is of interest; `3` keeps what is inside it from looking like it.
                    depth += 3;
                    expects_key = false;
                }
                b'}' => depth = depth.saturating_sub(1),
                b']' => depth = depth.saturating_sub(3),
                b',' => expects_key = depth <= 2,
                b':' => expects_key = false,
                b'"' => {
                    let Some(end) = string_end(head, at) else {
                        break;
                    };
                    if depth <= 2 && (expects_key || wanted(&key)) {
                        let text = text(&head[at..=end]);
                        if expects_key {
                            key = text;
                        } else {
                            found.note(depth, &outer, &key, text);
                        }
                    }
                    at = end;
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    fn note(&mut self, depth: usize, outer: &str, key: &str, value: String) {
        match (depth, key) {
            (1, "type") => self.kind = Some(value),
            (1, "toolCallId") => self.tool_id = Some(value),
            (1, "toolName") => self.tool_name = Some(value),
            (2, "role") if outer == "message" => self.role = Some(value),
            _ => {}
        }
    }
}

fn wanted(key: &str) -> bool {
    matches!(key, "type" | "toolCallId" | "toolName" | "role")
}

/// Where the string that begins at `start` has its closing quote.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// A string literal as text; one that is no JSON reads as empty.
fn text(literal: &[u8]) -> String {
    match serde_json::from_slice(literal) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: [Option<&str>; 4]) {
        let Head {
            kind,
            role,
            tool_id,
            tool_name,
        } = Head::scan(head.as_bytes());
        let found = [kind, role, tool_id, tool_name];
        assert_eq!(
            found,
            expected.map(|text| text.map(str::to_owned)),
            "{head}"
        );
    }

    #[test]
    fn only_the_top_level_counts() {
        let none = [None; 4];
        check("", none);
        check("[1,2", none);
        check(r#"{"type":"agent_e"#, none);
        check(
            r#"{"type":"agent_end","messages":[{"role":"user","type":"x"},["toolName","#,
            [Some("agent_end"), None, None, None],
        );
        check(
            r#"{"message":{"content":[{"type":"text","role":"no"}],"role":"assistant","x":{"role":"no"}},"type":"message_end","#,
            [Some("message_end"), Some("assistant"), None, None],
        );
        check(
            r#"{"type":"tool_execution_end","toolCallId":"a\"b","toolName":"bash","result":{"content":[{"type":"text","text":"{\"type\":\"no\",\"toolName\":\"no\"}"#,
            [Some("tool_execution_end"), None, Some("a\"b"), Some("bash")],
        );
        check(
            r#"{"x":{"role":"no","type":"no"},"n":-1.5e3,"ok":true,"type":"t"}"#,
            [Some("t"), None, None, None],
        );
    }
}
