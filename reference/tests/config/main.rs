//! Configuration files: what they change, and what is said about each fault.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod faults;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reference::config::{self, Config, Diagnostics, Limits, Locations, SIZE_LIMIT};
use reference::profile::{BUNDLED, Model, Origin, Registry, Thinking};
use serde_json::{Value, json};

/// Folders of a session: an agent directory and a project.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["agent", "project/.pi"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(inside)
    }

    fn user(&self, text: impl AsRef<[u8]>) {
        fs::write(self.path("agent/delegator.json"), text).unwrap();
    }

    fn project(&self, text: impl AsRef<[u8]>) {
        fs::write(self.path("project/.pi/delegator.json"), text).unwrap();
    }

    fn load(&self, trusted: bool) -> Result<Config, Diagnostics> {
        config::load(&Locations {
            agent: self.path("agent"),
            project: self.path("project"),
            trusted,
        })
    }
}

/// A complete definition with `changes` laid over it; a change to null takes the key away.
fn definition(changes: Value) -> Value {
    let mut whole = json!({
        "description": "Does something.", "model": "stub/x", "thinking": "low", "prompt": "Do it.",
        "tools": ["read"], "extensions": [], "skills": [], "deadlineMs": 60_000,
    });
    let object = whole.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(object.shift_remove(key)),
            _ => drop(object.insert(key.clone(), value.clone())),
        }
    }
    whole
}

fn file(profiles: Value) -> String {
    json!({ "profiles": profiles }).to_string()
}

// shows: config.missing-file-fine
#[test]
fn without_files_the_bundled_profiles_hold() {
    assert_eq!(Place::new().load(true).unwrap(), Config::bundled());
    // Nor does it matter whether the folders exist.
    let nowhere = Locations {
        agent: "/nowhere/agent".into(),
        project: "/nowhere/project".into(),
        trusted: true,
    };
    assert_eq!(config::load(&nowhere).unwrap(), Config::bundled());
}

// shows: config.user-file, config.replace-is-complete
#[test]
fn a_user_file_adds_replaces_and_disables() {
    let place = Place::new();
    let scout = definition(
        json!({"tools": ["ls"], "prompt": "Mine.", "model": "inherit", "thinking": "off"}),
    );
    place.user(file(
        json!({"scribe": definition(json!({})), "scout": scout, "worker": null}),
    ));
    let config = place.load(false).unwrap();
    assert_eq!(
        config.profiles.names(),
        ["scout", "reviewer", "oracle", "tester", "scribe"]
    );
    let scout = config.profiles.get("scout").unwrap();
    assert_eq!(
        (
            scout.prompt.as_str(),
            scout.tools.as_slice(),
            &scout.model,
            scout.thinking,
            scout.origin
        ),
        (
            "Mine.",
            ["ls".to_owned()].as_slice(),
            &Model::Inherit,
            Thinking::Off,
            Origin::User
        )
    );
    assert_eq!(scout.deadline, Duration::from_secs(60));
    let untouched = Registry::bundled();
    assert_eq!(config.profiles.get("oracle"), untouched.get("oracle"));
}

// shows: config.project-precedence, config.untrusted-project-ignored
#[test]
fn the_project_wins_over_the_user_when_it_is_trusted() {
    let place = Place::new();
    let with_prompt = |prompt: &str| definition(json!({"prompt": prompt}));
    place.user(file(
        json!({"scout": with_prompt("user"), "mine": with_prompt("user"), "tester": null}),
    ));
    place.project(file(
        json!({"scout": with_prompt("project"), "tester": with_prompt("project"), "mine": null}),
    ));
    let trusted = place.load(true).unwrap();
    assert_eq!(
        trusted.profiles.names(),
        ["scout", "reviewer", "oracle", "worker", "tester"]
    );
    for name in ["scout", "tester"] {
        assert_eq!(trusted.profiles.get(name).unwrap().prompt, "project");
    }
    assert_eq!((trusted.sources.len(), trusted.ignored), (2, None));
    let untrusted = place.load(false).unwrap();
    assert_eq!(
        untrusted.profiles.names(),
        ["scout", "reviewer", "oracle", "worker", "mine"]
    );
    assert_eq!(untrusted.profiles.get("scout").unwrap().prompt, "user");
    assert_eq!(
        untrusted.ignored,
        Some(place.path("project/.pi/delegator.json"))
    );
    // Not even looked into: it may be broken.
    place.project("{");
    assert_eq!(place.load(false).unwrap(), untrusted);
    assert!(place.load(true).is_err());
}

// shows: config.session-scoped
#[test]
fn sessions_of_two_projects_have_registries_of_their_own() {
    let (one, two) = (Place::new(), Place::new());
    one.project(file(json!({"scout": definition(json!({"prompt": "one"}))})));
    two.project(file(json!({"scout": null, "other": definition(json!({}))})));
    let (first, second) = (one.load(true).unwrap(), two.load(true).unwrap());
    assert_eq!(first.profiles.get("scout").unwrap().prompt, "one");
    assert!(first.profiles.get("other").is_none());
    assert!(second.profiles.get("scout").is_none() && second.profiles.get("other").is_some());
    // Resolving the second did not touch the first.
    assert_eq!(first, one.load(true).unwrap());
}

// shows: config.registry-immutable
#[test]
fn what_was_resolved_stays_whatever_happens_to_files_and_copies() {
    let place = Place::new();
    place.user(file(json!({"scribe": definition(json!({}))})));
    let config = place.load(false).unwrap();
    let before = config.clone();
    place.user(file(json!({"scout": null})));
    // What is handed out are copies or shared values; changing a copy changes nothing else.
    let mut copy = (**config.profiles.get("scribe").unwrap()).clone();
    copy.tools.clear();
    copy.prompt = "changed".into();
    assert_eq!(config, before);
    assert_eq!(config.profiles.get("scribe").unwrap().tools, ["read"]);
}

// shows: config.size-bounded
#[test]
fn a_large_file_is_refused_after_its_bound() {
    let place = Place::new();
    let padded = |size: usize| format!("{{}}{}", " ".repeat(size - 2));
    place.user(padded(SIZE_LIMIT));
    assert!(place.load(false).is_ok());
    place.user(padded(SIZE_LIMIT + 1));
    let shown = place.load(false).unwrap_err().to_string();
    assert!(
        shown.ends_with("the file is larger than 262144 bytes; shorten it"),
        "{shown}"
    );
    // A sparse terabyte takes no time, because nobody reads it.
    let file = fs::File::create(place.path("agent/delegator.json")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(place.load(false).unwrap_err().to_string(), shown);
}

#[test]
fn only_a_regular_file_is_a_configuration() {
    let place = Place::new();
    let path = place.path("agent/delegator.json");
    let refused = || place.load(false).unwrap_err().to_string();
    fs::create_dir(&path).unwrap();
    assert!(refused().ends_with("this is not a regular file; put a file there, or remove it"));
    fs::remove_dir(&path).unwrap();
    // A named pipe without a writer must not make the start wait.
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert!(refused().contains("not a regular file"));
    fs::remove_file(&path).unwrap();
    symlink("/no/such/file", &path).unwrap();
    assert!(refused().contains("not a regular file"));
    // A project's file may not lead out of the project; the user's may be kept elsewhere.
    fs::remove_file(&path).unwrap();
    let elsewhere = place.path("elsewhere.json");
    fs::write(&elsewhere, "{}").unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(place.load(false).is_ok());
    symlink(&elsewhere, place.path("project/.pi/delegator.json")).unwrap();
    let shown = place.load(true).unwrap_err().to_string();
    assert!(
        shown.contains("the file is a link that leads out of the project"),
        "{shown}"
    );
}

/// Extensions of a profile of that origin, after they were written as `written`.
fn extensions(place: &Place, origin: Origin, written: &str) -> Result<Vec<PathBuf>, String> {
    let text = file(json!({"mine": definition(json!({"extensions": [written]}))}));
    match origin {
        Origin::Project => place.project(text),
        _ => place.user(text),
    }
    let config = place
        .load(origin == Origin::Project)
        .map_err(|diagnostics| diagnostics.to_string())?;
    Ok(config.profiles.get("mine").unwrap().extensions.clone())
}

// shows: config.capability-paths-canonical
#[test]
fn paths_are_canonical_or_refused() {
    let place = Place::new();
    for path in ["agent/ext/real.ts", "project/tools/x.ts", "outside.ts"] {
        let path = place.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    symlink("real.ts", place.path("agent/ext/link.ts")).unwrap();
    symlink(place.path("outside.ts"), place.path("agent/ext/out.ts")).unwrap();
    let found = |origin, written: &str| extensions(&place, origin, written);
    let one = |path: &str| Ok(vec![place.path(path)]);
    for written in ["ext/real.ts", "./ext/../ext/real.ts", "ext/link.ts"] {
        assert_eq!(
            found(Origin::User, written),
            one("agent/ext/real.ts"),
            "{written}"
        );
    }
    assert_eq!(found(Origin::User, "ext"), one("agent/ext"));
    let absolute = place.path("outside.ts").display().to_string();
    assert_eq!(found(Origin::User, &absolute), one("outside.ts"));
    for (written, part) in [
        ("ext/missing.ts", "`ext/missing.ts` cannot be found: "),
        ("~/x.ts", "`~` is not expanded: write the path out"),
        ("../outside.ts", "`../outside.ts` leads out of "),
        ("ext/out.ts", "`ext/out.ts` leads out of "),
        ("", "an entry cannot be empty"),
    ] {
        let shown = found(Origin::User, written).unwrap_err();
        assert!(
            shown.contains(part) && shown.contains("profile `mine`: `extensions`: "),
            "{written}: {shown}"
        );
    }
    fs::remove_file(place.path("agent/delegator.json")).unwrap();
    assert_eq!(
        found(Origin::Project, "../tools/x.ts"),
        one("project/tools/x.ts")
    );
    let shown = found(Origin::Project, &absolute).unwrap_err();
    assert!(shown.ends_with("; keep it inside the project"), "{shown}");
    assert!(found(Origin::Project, "../../outside.ts").is_err());
}

#[test]
fn tools_of_extensions_may_be_named_where_there_are_extensions() {
    let place = Place::new();
    fs::write(place.path("agent/e.ts"), "").unwrap();
    place.user(file(json!({"mine": definition(json!({"extensions": ["e.ts"], "tools": ["read", "web_search"]}))})));
    assert_eq!(
        place
            .load(false)
            .unwrap()
            .profiles
            .get("mine")
            .unwrap()
            .tools,
        ["read", "web_search"]
    );
    place.user(file(
        json!({"mine": definition(json!({"extensions": ["e.ts"], "tools": ["a,b"]}))}),
    ));
    assert!(place.load(false).is_err());
}

// shows: field.extreme-time-limits
#[test]
fn limits_are_read_and_zero_switches_a_time_limit_off() {
    let place = Place::new();
    let limits = |limits: Value| {
        place.user(json!({ "limits": limits }).to_string());
        place
            .load(false)
            .map(|config| config.limits)
            .map_err(|diagnostics| diagnostics.to_string())
    };
    let shipped = Limits::default();
    assert_eq!(limits(json!({})), Ok(shipped.clone()));
    let off = Limits {
        start_watchdog: None,
        tool_timeout: None,
        ..shipped.clone()
    };
    assert_eq!(
        limits(json!({"startWatchdogMs": 0, "toolTimeoutMs": 0})),
        Ok(off)
    );
    for millis in [1, (1u64 << 31) - 1, 1 << 31, 30 * 24 * 3600 * 1000, 1 << 53] {
        let tool_timeout = Some(Duration::from_millis(millis));
        assert_eq!(
            limits(json!({"toolTimeoutMs": millis})),
            Ok(Limits {
                tool_timeout,
                ..shipped.clone()
            })
        );
    }
    let small = Limits {
        output_cap: 1,
        stderr_cap: 1,
        record_cap: 4096,
        task_chars: 1,
        ..shipped
    };
    let written =
        json!({"outputCapBytes": 1, "stderrCapBytes": 1, "recordCapBytes": 4096, "taskChars": 1});
    assert_eq!(limits(written), Ok(small));
    for (key, value, range) in [
        ("startWatchdogMs", json!(-1), "0 to 9007199254740992"),
        ("toolTimeoutMs", json!(0.5), "0 to 9007199254740992"),
        ("toolTimeoutMs", json!("5s"), "0 to 9007199254740992"),
        (
            "toolTimeoutMs",
            json!((1u64 << 53) + 1),
            "0 to 9007199254740992",
        ),
        ("outputCapBytes", json!(0), "1 to 51200"),
        ("outputCapBytes", json!(51_201), "1 to 51200"),
        ("stderrCapBytes", json!(65_537), "1 to 65536"),
        ("recordCapBytes", json!(4095), "4096 to 8388608"),
        ("taskChars", json!(1_000_001), "1 to 1000000"),
    ] {
        let mut object = json!({});
        object[key] = value;
        let shown = limits(object).unwrap_err();
        let wanted = format!("write a whole number from {range}");
        assert!(
            shown.contains(&format!("`{key}`: ")) && shown.ends_with(&wanted),
            "{shown}"
        );
    }
    assert!(
        limits(json!({"outputCap": 1}))
            .unwrap_err()
            .ends_with("did you mean `outputCapBytes`?")
    );
}

/// The documentation, from the repository's root.
fn document(name: &str) -> String {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs")
            .join(name),
    )
    .unwrap()
}

#[test]
fn the_documented_example_is_a_configuration() {
    let text = document("delegate.md");
    let (_, rest) = text.split_once("```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let place = Place::new();
    place.user(example);
    let config = place
        .load(false)
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert_eq!(
        config.profiles.names(),
        ["scout", "reviewer", "oracle", "tester", "scribe"]
    );
    // The example writes the limits out as they are shipped.
    assert_eq!(config.limits, Limits::default());
}

// shows: hermetic.documentation-truthful
#[test]
fn the_documented_profiles_are_the_bundled_ones() {
    let text = document("delegate.md");
    let registry = Registry::bundled();
    for name in BUNDLED {
        let profile = registry.get(name).unwrap();
        let minutes = profile.deadline.as_secs() / 60;
        let row = format!(
            "| `{name}` | {} | {} | {minutes} min |",
            profile.tools.join(", "),
            profile.thinking
        );
        assert!(text.contains(&row), "docs/delegate.md lacks {row}");
    }
}

// shows: hermetic.manual-smoke-list
#[test]
fn the_checks_by_hand_are_written_down_with_command_and_outcome() {
    let text = document("delegate.md");
    let (_, section) = text
        .split_once("## Checks by hand with a real Pi\n")
        .unwrap();
    let section = section.replace("\n   ", " ");
    let checks: Vec<_> = section
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    assert_eq!(checks.len(), 7);
    for check in checks {
        let (command, outcome) = check.split_once('→').expect(check);
        assert!(
            command.contains("`")
                && command.contains("delegate run -p ")
                && !outcome.trim().is_empty(),
            "{check}"
        );
    }
}
