//! What a call asks for, checked. Pure, save that the shell looks whether the folder exists ([`folder`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::config::{Config, clip, listed, nearest};
use crate::profile::{Profile, check_model};

/// The parameters of a call. There are no others: thinking, tools and deadline belong to the profile.
pub const PARAMETERS: [&str; 4] = ["task", "profile", "cwd", "model"];

/// A call's arguments, found sound as far as can be told without looking at the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What to do. Whole: a task is refused rather than cut.
    pub task: String,
    /// Who does it.
    pub profile: Arc<Profile>,
    /// Working directory, as it was written.
    pub cwd: Option<String>,
    /// Model for this call.
    pub model: Option<String>,
}

/// Why a call was refused. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Machine-readable word: `invalid-arguments`, `configuration`, `nested` or `shutdown`.
    pub reason: &'static str,
    /// For people and models: what is wrong and what to write instead.
    pub message: String,
}

impl Refusal {
    /// Arguments that cannot be used.
    pub fn arguments(message: impl Into<String>) -> Self {
        Self {
            reason: "invalid-arguments",
            message: message.into(),
        }
    }
}

/// Checks the arguments of a call. All faults are named together, so that a model corrects them in one go.
///
/// # Errors
/// A [`Refusal`] with one line for each fault.
pub fn check(arguments: &Map<String, Value>, config: &Config) -> Result<Asked, Refusal> {
    let mut faults = Vec::new();
    for name in arguments
        .keys()
        .filter(|name| !PARAMETERS.contains(&name.as_str()))
    {
        faults.push(unknown(name));
    }
    let task = keep(
        task(arguments.get("task"), config.limits.task_chars),
        &mut faults,
    );
    let profile = keep(profile(arguments.get("profile"), config), &mut faults);
    let cwd = keep(optional("cwd", arguments.get("cwd")), &mut faults).flatten();
    let model = keep(optional("model", arguments.get("model")), &mut faults).flatten();
    if let Some(Err(error)) = model.as_deref().map(check_model) {
        faults.push(error.to_string());
    }
    match (task, profile) {
        (Some(task), Some(profile)) if faults.is_empty() => Ok(Asked {
            task,
            profile,
            cwd,
            model,
        }),
        _ => Err(Refusal::arguments(faults.join("\n"))),
    }
}

/// The working directory of a call: `asked`, or the session's own.
///
/// # Errors
/// A folder that does not exist, or is none.
pub fn folder(asked: Option<&str>, session: &Path) -> Result<PathBuf, Refusal> {
    let Some(asked) = asked else {
        return Ok(session.to_owned());
    };
    let shown = clip(asked);
    if asked.is_empty() || asked.contains('\0') {
        return Err(Refusal::arguments(format!("cwd `{shown}` is no path")));
    }
    let path = session.join(asked);
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => Err(Refusal::arguments(format!(
            "cwd `{shown}` is not a directory"
        ))),
        Err(error) => Err(Refusal::arguments(format!(
            "cwd `{shown}` cannot be used: {error}"
        ))),
    }
}

fn keep<T>(found: Result<T, String>, faults: &mut Vec<String>) -> Option<T> {
    found.map_err(|fault| faults.push(fault)).ok()
}

fn unknown(name: &str) -> String {
    let shown = clip(name);
    let lower = name.to_lowercase();
    if ["deadline", "timeout", "thinking"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return format!(
            "there is no argument `{shown}`: deadline and thinking belong to the profile"
        );
    }
    match nearest(name, PARAMETERS) {
        Some(word) => format!("there is no argument `{shown}`; did you mean `{word}`?"),
        None => format!(
            "there is no argument `{shown}`; the arguments are {}",
            listed(PARAMETERS)
        ),
    }
}

fn task(value: Option<&Value>, limit: u64) -> Result<String, String> {
    let task = match value {
        Some(Value::String(task)) => task,
        Some(other) => return Err(format!("task is {}, not a string", kind(other))),
        None => return Err("task is missing: say what is to be done".into()),
    };
    if task.trim().is_empty() {
        return Err("task is blank: say what is to be done".into());
    }
    // Characters as Pi counts them.
    let length = task.encode_utf16().count() as u64;
    if length > limit {
        return Err(format!(
            "task is {length} characters long, at most {limit} are allowed"
        ));
    }
    Ok(task.clone())
}

fn profile(value: Option<&Value>, config: &Config) -> Result<Arc<Profile>, String> {
    let names = listed(config.profiles.names());
    let name = match value {
        Some(Value::String(name)) => name,
        Some(other) => {
            return Err(format!(
                "profile is {}, not a string; the profiles are {names}",
                kind(other)
            ));
        }
        None => return Err(format!("profile is missing; the profiles are {names}")),
    };
    if let Some(profile) = config.profiles.get(name) {
        return Ok(Arc::clone(profile));
    }
    let hint = match nearest(name, config.profiles.names()) {
        Some(word) => format!("did you mean `{word}`? The profiles are {names}"),
        None => format!("the profiles are {names}"),
    };
    Err(format!("there is no profile `{}`; {hint}", clip(name)))
}

fn optional(name: &str, value: Option<&Value>) -> Result<Option<String>, String> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!(
            "{name} is {}, not a string; leave it out for the default",
            kind(other)
        )),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(arguments: Value) -> Result<Asked, String> {
        let arguments = arguments.as_object().cloned().unwrap();
        check(&arguments, &Config::bundled()).map_err(|refusal| {
            assert_eq!(refusal.reason, "invalid-arguments");
            refusal.message
        })
    }

    #[test]
    fn a_sound_call_is_taken_as_it_is() {
        let call = asked(
            json!({"task": " look \u{2028}", "profile": "scout", "cwd": "x", "model": "a/b"}),
        )
        .unwrap();
        assert_eq!(
            (call.task.as_str(), call.profile.name.as_str()),
            (" look \u{2028}", "scout")
        );
        assert_eq!(
            (call.cwd.as_deref(), call.model.as_deref()),
            (Some("x"), Some("a/b"))
        );
    }

    // shows: launch.task-missing-rejected, launch.task-blank-rejected, launch.profile-unknown-rejected
    // shows: launch.model-override-invalid-rejected, launch.schema-no-thinking-or-deadline, config.no-dynamic-reload
    #[test]
    fn unsound_calls_are_refused_in_these_words() {
        const NAMES: &str = "scout, reviewer, oracle, tester, worker";
        for (arguments, expected) in [
            (
                json!({"profile": "scout"}),
                "task is missing: say what is to be done".to_owned(),
            ),
            (
                json!({"task": "  \n\t\u{a0}", "profile": "scout"}),
                "task is blank: say what is to be done".into(),
            ),
            (
                json!({"task": 5, "profile": "scout"}),
                "task is a number, not a string".into(),
            ),
            (
                json!({"task": "t"}),
                format!("profile is missing; the profiles are {NAMES}"),
            ),
            (
                json!({"task": "t", "profile": "nosuch"}),
                format!("there is no profile `nosuch`; the profiles are {NAMES}"),
            ),
            (
                json!({"task": "t", "profile": "Scuot"}),
                format!(
                    "there is no profile `Scuot`; did you mean `scout`? The profiles are {NAMES}"
                ),
            ),
            (
                json!({"task": "t", "profile": "scout", "model": ""}),
                "model is empty".into(),
            ),
            (
                json!({"task": "t", "profile": "scout", "model": "a b"}),
                "model contains ' ', which no model id does".into(),
            ),
            (
                json!({"task": "t", "profile": "scout", "model": "m".repeat(257)}),
                "model is 257 bytes long, at most 256 are allowed".into(),
            ),
            (
                json!({"task": "t", "profile": "scout", "cwd": null}),
                "cwd is null, not a string; leave it out for the default".into(),
            ),
            (
                json!({"task": "t", "profile": "scout", "deadlineMs": 5}),
                "there is no argument `deadlineMs`: deadline and thinking belong to the profile"
                    .into(),
            ),
            (
                json!({"task": "t", "profile": "scout", "thinking": "high"}),
                "there is no argument `thinking`: deadline and thinking belong to the profile"
                    .into(),
            ),
            (
                json!({"task": "t", "profile": "scout", "modle": "x"}),
                "there is no argument `modle`; did you mean `model`?".into(),
            ),
            (
                json!({"task": "t", "profile": "scout", "background": true}),
                "there is no argument `background`; the arguments are task, profile, cwd, model"
                    .into(),
            ),
            (
                json!({"task": "", "profile": 1}),
                format!(
                    "task is blank: say what is to be done\nprofile is a number, not a string; the profiles are {NAMES}"
                ),
            ),
        ] {
            assert_eq!(asked(arguments.clone()), Err(expected), "{arguments}");
        }
    }

    // shows: launch.task-oversized-rejected
    #[test]
    fn the_task_limit_counts_utf16_units_and_is_exact() {
        let call = |task: String| asked(json!({"task": task, "profile": "scout"}));
        assert!(call("x".repeat(100_000)).is_ok());
        assert!(call("😀".repeat(50_000)).is_ok());
        for task in ["x".repeat(100_001), "😀".repeat(50_000) + "x"] {
            assert_eq!(
                call(task).unwrap_err(),
                "task is 100001 characters long, at most 100000 are allowed"
            );
        }
    }

    // shows: launch.cwd-nonexistent-rejected, launch.cwd-not-directory-rejected, launch.cwd-default
    #[test]
    fn folders_are_looked_at() {
        let folder_of = |asked| {
            folder(asked, Path::new(env!("CARGO_MANIFEST_DIR"))).map_err(|refusal| refusal.message)
        };
        let session = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(folder_of(None), Ok(session.clone()));
        assert_eq!(folder_of(Some("src")), Ok(session.join("src")));
        assert_eq!(
            folder_of(Some("Cargo.toml")),
            Err("cwd `Cargo.toml` is not a directory".into())
        );
        let missing = folder_of(Some("/no/such/folder")).unwrap_err();
        assert!(
            missing.starts_with("cwd `/no/such/folder` cannot be used: "),
            "{missing}"
        );
        assert!(folder_of(Some("")).is_err() && folder_of(Some("a\0b")).is_err());
    }
}
