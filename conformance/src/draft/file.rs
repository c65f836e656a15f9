//! The text of a new adapter file.

use std::fmt::Write as _;

use serde_json::Value;

use super::Draft;
use crate::smoke::written;

/// Writes it. Every key has a word about it, and what cannot be known is there to be uncommented.
pub(super) fn write(draft: &Draft) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = head(&mut text, draft);
    let _ = body(&mut text, draft);
    text
}

fn head(text: &mut String, draft: &Draft) -> std::fmt::Result {
    writeln!(
        text,
        "# How `pi-conform` talks to {}. Written by `pi-conform init`; docs/adapters.md has every key.",
        draft.name
    )?;
    writeln!(text, "adapter: {}", word(&draft.name))?;
    writeln!(text, "transport: {}", draft.transport)?;
    let words: Vec<String> = draft.command.iter().map(|each| word(each)).collect();
    let words = words.join(", ");
    if draft.transport == "pi-extension" {
        writeln!(
            text,
            "# What a real parent Pi loads. `{{{{ here }}}}` is the folder of this file."
        )?;
        writeln!(text, "parent:\n  extensions: [{words}]")?;
    } else {
        writeln!(
            text,
            "# It runs in a folder of the scenario's. `{{{{ here }}}}` is the folder of this file."
        )?;
        writeln!(text, "command: [{words}]")?;
        if draft.transport == "command" {
            text.push_str(
                "# Each call starts it anew, with the request on its input; this is for one that takes a request a line instead.\n\
                 # uses: {serves: true}\n",
            );
        }
    }
    if draft.env.is_empty() {
        writeln!(
            text,
            "# Variables on top of PATH, HOME, TMPDIR, LANG and PI_CODING_AGENT_DIR.\n# env: {{PI_BINARY: \"{{{{ child }}}}\"}}"
        )?;
    } else {
        writeln!(text, "env:")?;
        for (name, value) in &draft.env {
            writeln!(text, "  {name}: {}", Value::from(value.as_str()))?;
        }
    }
    let seen = if draft.mode_seen {
        "as it was seen to start Pi"
    } else {
        "not seen yet: rpc, json or text"
    };
    writeln!(text, "# Which of Pi's modes its children run in; {seen}.")?;
    writeln!(text, "child-mode: {}", draft.child_mode)?;
    text.push_str(
        "# What it can do beside the plain call. What is not declared is not applicable, and never counts as passed.\n\
         capabilities:\n\
         \x20 # - cancel      # a cancelled call ends its child\n\
         \x20 # - progress    # it sends progress while the child works\n\
         \x20 # - usage       # its results have the child's usage\n\
         \x20 # - stderr-tail # its failures have the end of the child's stderr\n",
    );
    if draft.transport == "mcp" {
        text.push_str("  - mcp\n");
    } else {
        text.push_str("  []\n");
    }
    text.push_str(
        "# What it promises. A time that is left out is held to the default contract's; what depends on a size is then not applicable.\n\
         figures:\n\
         \x20 grace: 5s               # from a cancel or a limit to the result\n\
         \x20 # post-exit-drain: 1s   # from the child's exit to the result, while something holds its pipe\n\
         \x20 # output-cap: 50KiB     # bytes of answer in a result\n\
         \x20 # record-cap: 8MiB      # longest line that it takes from the child\n",
    );
    Ok(())
}

fn body(text: &mut String, draft: &Draft) -> std::fmt::Result {
    if !draft.profiles.is_empty() {
        let profiles: Vec<String> = draft.profiles.iter().map(|each| word(each)).collect();
        writeln!(
            text,
            "# Agents that a call may name; the first is the default."
        )?;
        writeln!(text, "profiles: [{}]", profiles.join(", "))?;
    }
    writeln!(
        text,
        "# What a scenario asks for, as a tool call. An argument whose template comes out empty is left out."
    )?;
    writeln!(
        text,
        "operations:\n  spawn:\n    tool: {}\n    arguments:",
        word(&draft.tool)
    )?;
    for (name, value) in &draft.arguments {
        writeln!(text, "      {}: {value}", word(name))?;
    }
    if !draft.left_out.is_empty() {
        let all: Vec<String> = draft
            .left_out
            .iter()
            .map(|(name, kind)| format!("{name} ({kind})"))
            .collect();
        writeln!(text, "      # it also takes: {}", all.join(", "))?;
    }
    writeln!(
        text,
        "# Where a result says what: JSON pointers into it, or `text` for all its text; patterns and maps: docs/adapters.md."
    )?;
    writeln!(text, "observations:")?;
    for (name, observation) in &draft.observations {
        writeln!(text, "  {name}: {}", written(observation))?;
    }
    Ok(())
}

/// A word as YAML takes it: plain where it can be.
fn word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+@".contains(c);
    let starts = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    // These would be read as something else than a text.
    let other = ["true", "false", "null", "yes", "no", "on", "off"]
        .contains(&word.to_ascii_lowercase().as_str());
    if starts && !other && word.chars().all(plain) {
        return word.to_owned();
    }
    Value::from(word).to_string()
}
