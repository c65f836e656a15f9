//! The entries of a session: what `get_entries` and `get_tree` show, and what a session file holds line by line.

use serde_json::{Value, json};

/// A moment (milliseconds since 1970) as Pi writes it: `2026-12-01T00:42:28.670Z`.
pub fn iso(ms: u64) -> String {
    let at = i64::try_from(ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.unwrap_or_default()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

/// All entries, oldest first; each has the one before it as its parent.
#[derive(Debug, Default)]
pub(super) struct Entries(Vec<Value>);

impl Entries {
    /// Adds an entry of this type and returns it. `fields` follow the common ones.
    pub(super) fn add(&mut self, id: &str, kind: &str, now: u64, fields: &Value) -> Value {
        let parent = self.leaf();
        let mut entry = json!({"type": kind, "id": id, "parentId": parent, "timestamp": iso(now)});
        for (name, field) in fields.as_object().into_iter().flatten() {
            entry[name] = field.clone();
        }
        self.0.push(entry.clone());
        entry
    }

    /// The id of the newest entry, or null.
    pub(super) fn leaf(&self) -> Value {
        self.0
            .last()
            .map_or(Value::Null, |entry| entry["id"].clone())
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Value] {
        &self.0
    }

    /// The id of the newest entry that holds a message of this role, or null.
    pub(super) fn newest_message(&self, role: &str) -> Value {
        let found = self
            .0
            .iter()
            .rev()
            .find(|entry| entry["message"]["role"] == role);
        found.map_or(Value::Null, |entry| entry["id"].clone())
    }

    /// The id of the entry that holds the `index`-th message, or of the first entry.
    pub(super) fn of_message(&self, index: usize) -> Value {
        let mut messages = self.0.iter().filter(|entry| entry["type"] == "message");
        messages
            .nth(index)
            .or(self.0.first())
            .map_or(Value::Null, |entry| entry["id"].clone())
    }

    /// The tree of `get_tree`: nested `{entry, children}`, since nothing here ever branches.
    pub(super) fn tree(&self) -> Value {
        self.0.iter().rev().fold(
            json!([]),
            |children, entry| json!([{"entry": entry, "children": children}]),
        )
    }

    /// The user messages of `get_fork_messages`.
    pub(super) fn fork_messages(&self) -> Value {
        let users = self
            .0
            .iter()
            .filter(|entry| entry["message"]["role"] == "user");
        users
            .map(|entry| json!({"entryId": entry["id"], "text": entry["message"]["content"][0]["text"]}))
            .collect()
    }
}
