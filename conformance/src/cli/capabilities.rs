//! `run --capabilities FILE`: what a subject declares may be narrowed for a run, with a reason, and never widened.
//!
//! ```yaml
//! lacks:
//!   - {capability: cancel, reason: this host cannot send it}
//! ```

use std::path::Path;

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::adapter::Adapter;
use crate::cli::{Failure, suite};
use crate::report::Narrowed;
use crate::yaml::{self, YamlError};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    lacks: Vec<Lack>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lack {
    capability: Spanned<String>,
    reason: Spanned<String>,
}

/// Takes capabilities away from an adapter; gives what was taken.
///
/// # Errors
/// When the file cannot be read, is not in the format, gives no reason, or names what the adapter does not declare.
pub fn narrow(adapter: &mut Adapter, path: &Path) -> Result<Vec<Narrowed>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("capabilities {}: {error}", path.display())))?;
    parse(adapter, &path.to_string_lossy(), &text).map_err(|error| suite::diagnostic(*error))
}

fn parse(adapter: &mut Adapter, name: &str, text: &str) -> Result<Vec<Narrowed>, Box<YamlError>> {
    let file: File = yaml::parse(name, text)?;
    let wrong = |message: String, help: Option<String>, at: &Spanned<String>| {
        let offset = yaml::offset(text, at.referenced);
        Box::new(YamlError::at(name, text, message, help, offset))
    };
    let mut narrowed = Vec::new();
    for Lack { capability, reason } in file.lacks {
        if reason.value.trim().is_empty() {
            let message = format!("`{}` is left out without a reason", capability.value);
            return Err(wrong(message, None, &reason));
        }
        let Some(at) = adapter
            .capabilities
            .iter()
            .position(|its| *its == capability.value)
        else {
            let declared: Vec<&str> = adapter.capabilities.iter().map(String::as_str).collect();
            let message = format!(
                "the adapter `{}` does not declare `{}`",
                adapter.adapter, capability.value
            );
            let help = yaml::suggestion(&capability.value, &declared);
            return Err(wrong(message, Some(help), &capability));
        };
        adapter.capabilities.remove(at);
        narrowed.push(Narrowed {
            capability: capability.value,
            reason: reason.value,
        });
    }
    Ok(narrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter() -> Adapter {
        Adapter {
            adapter: "a".to_owned(),
            capabilities: vec!["cancel".to_owned(), "usage".to_owned()],
            ..Adapter::default()
        }
    }

    #[test]
    fn what_is_named_with_a_reason_is_taken_away() {
        let mut adapter = adapter();
        let text = "lacks:\n  - {capability: cancel, reason: no host}\n";
        let narrowed = parse(&mut adapter, "c.yaml", text).unwrap();
        assert_eq!(adapter.capabilities, ["usage"]);
        assert_eq!(narrowed[0].reason, "no host");
    }

    #[test]
    fn nothing_is_widened_or_left_out_in_silence() {
        for (text, said) in [
            (
                "lacks:\n  - {capability: cancle, reason: r}\n",
                "c.yaml:2:18: the adapter `a` does not declare `cancle`",
            ),
            (
                "lacks:\n  - {capability: cancel, reason: ' '}\n",
                "c.yaml:2:34: `cancel` is left out without a reason",
            ),
            ("has:\n  - cancel\n", "c.yaml:1:1: there is no key `has`"),
        ] {
            let error = parse(&mut adapter(), "c.yaml", text).unwrap_err();
            assert_eq!(error.to_string(), said);
        }
    }
}
