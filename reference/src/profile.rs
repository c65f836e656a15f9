//! Profiles: the named agents that a task can be handed to, and the command line that each one becomes.
//!
//! A profile is complete by construction: whoever holds one needs nothing else to start its child, save the task
//! (which travels on stdin, never in an argument vector) and the parent's model, should the profile inherit it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

/// Names of the bundled profiles, in the order in which they are listed.
pub const BUNDLED: [&str; 5] = ["scout", "reviewer", "oracle", "tester", "worker"];

/// Pi's built-in tools. A profile that loads extensions may name theirs as well.
pub const BUILTIN_TOOLS: [&str; 7] = ["read", "grep", "find", "ls", "bash", "edit", "write"];

/// The flags that keep whatever lies about on the host out of a child: extensions, skills, prompt templates and
/// context files are only what the profile names. Both Pi lines in use know all four.
pub const ISOLATION_FLAGS: [&str; 4] = [
    "--no-extensions",
    "--no-skills",
    "--no-prompt-templates",
    "--no-context-files",
];

/// Shortest deadline that a profile may have (ruling 28 of the catalogue).
pub const DEADLINE_MIN: Duration = Duration::from_secs(1);
/// Longest deadline that a profile may have (ruling 28 of the catalogue).
pub const DEADLINE_MAX: Duration = Duration::from_secs(60 * 60);
/// Longest model id, in bytes of UTF-8 (ruling 28 of the catalogue).
pub const MODEL_LIMIT: usize = 256;
/// Longest role prompt, in bytes. It is one argument of the child, and Linux refuses an argument of more than 128 KiB
/// with an error that names nothing; so it is refused earlier, with a margin and by name.
pub const PROMPT_LIMIT: usize = 100 * 1024;
/// Longest description, in bytes: it goes into the tool schema, which every request of the parent carries.
pub const DESCRIPTION_LIMIT: usize = 1024;

/// How hard the child's model is asked to think: Pi's `--thinking` levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thinking {
    /// Not at all.
    Off,
    /// The least that the model offers.
    Minimal,
    /// A little.
    Low,
    /// The usual measure.
    Medium,
    /// A lot.
    High,
    /// More than a lot, where the model offers it.
    Xhigh,
    /// The most; Pi 1.6 knows it, the 0.73 line warns and goes on without.
    Max,
}

impl Thinking {
    /// All levels, weakest first.
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The level as Pi spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl fmt::Display for Thinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Thinking {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == word)
            .ok_or(())
    }
}

/// Which model a profile's children use when the call names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Model {
    /// The parent's, as far as it is known; else Pi's own default (ruling 26: inheriting is stated, not implied).
    Inherit,
    /// This one.
    Id(String),
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inherit => f.write_str("inherit"),
            Self::Id(id) => f.write_str(id),
        }
    }
}

/// Why a model id is no model id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadModel {
    /// Nothing but white space, or nothing at all.
    #[error("model is empty")]
    Blank,
    /// Over [`MODEL_LIMIT`].
    #[error("model is {0} bytes long, at most {MODEL_LIMIT} are allowed")]
    Long(usize),
    /// A control character or white space within.
    #[error("model contains {0:?}, which no model id does")]
    Character(char),
    /// Pi would take it for an option.
    #[error("model begins with `-`, as an option would")]
    Option,
    /// Pi reads `id:high` as a thinking level, which is the profile's to choose.
    #[error("model ends in the thinking level `:{0}`; thinking belongs to the profile")]
    Thinking(Thinking),
}

/// Whether `id` can be handed to Pi as a model: 1 to 256 bytes, no white space or control characters, not an option,
/// and without the thinking level that Pi would accept as a suffix.
pub fn check_model(id: &str) -> Result<(), BadModel> {
    if id.trim().is_empty() {
        return Err(BadModel::Blank);
    }
    if id.len() > MODEL_LIMIT {
        return Err(BadModel::Long(id.len()));
    }
    if let Some(odd) = id.chars().find(|c| c.is_control() || c.is_whitespace()) {
        return Err(BadModel::Character(odd));
    }
    if id.starts_with('-') {
        return Err(BadModel::Option);
    }
    let suffix = id.rsplit_once(':').map(|(_, suffix)| suffix);
    if let Some(level) = suffix.and_then(|word| word.parse().ok()) {
        return Err(BadModel::Thinking(level));
    }
    Ok(())
}

/// Where a definition came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Part of this program.
    Bundled,
    /// The user's configuration file.
    User,
    /// The trusted project's configuration file.
    Project,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bundled => "bundled",
            Self::User => "user",
            Self::Project => "project",
        })
    }
}

/// One named agent, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name: a lower-case letter, then up to 63 lower-case letters, digits, `-` or `_`.
    pub name: String,
    /// One sentence for the parent's model, which chooses by it.
    pub description: String,
    /// Model when the call names none.
    pub model: Model,
    /// Thinking level; no call can change it.
    pub thinking: Thinking,
    /// Role prompt, given as the system prompt.
    pub prompt: String,
    /// Tools that the child may use. Empty: none.
    pub tools: Vec<String>,
    /// Extensions to load, as canonical absolute paths.
    pub extensions: Vec<PathBuf>,
    /// Skills to load, as canonical absolute paths.
    pub skills: Vec<PathBuf>,
    /// Wall-clock time from launch after which the run is ended; no call can change it.
    pub deadline: Duration,
    /// Which layer defined it.
    pub origin: Origin,
}

impl Profile {
    /// The arguments of a child of this profile. `model` is what precedence (call, profile, parent) came to; without
    /// one Pi's own default holds. The order is part of the contract: tests hold it as golden vectors.
    ///
    /// The task is not in it: it goes through stdin, where neither `ps` nor a length limit meets it.
    pub fn arguments(&self, model: Option<&str>) -> Vec<OsString> {
        let mut args: Vec<OsString> = ["--mode", "rpc", "--no-session"]
            .map(OsString::from)
            .to_vec();
        args.extend(ISOLATION_FLAGS.map(OsString::from));
        if let Some(model) = model {
            args.extend(["--model".into(), model.into()]);
        }
        args.extend(["--thinking".into(), self.thinking.as_str().into()]);
        if self.tools.is_empty() {
            args.push("--no-tools".into());
        } else {
            args.extend(["--tools".into(), self.tools.join(",").into()]);
        }
        args.extend(["--system-prompt".into(), OsString::from(&self.prompt)]);
        for path in &self.extensions {
            args.extend(["--extension".into(), path.into()]);
        }
        for path in &self.skills {
            args.extend(["--skill".into(), path.into()]);
        }
        args
    }

    /// The model that a call of this profile runs with: the call's own, else the profile's, else the parent's.
    pub fn effective_model<'a>(
        &'a self,
        call: Option<&'a str>,
        parent: Option<&'a str>,
    ) -> Option<&'a str> {
        match (call, &self.model) {
            (Some(model), _) => Some(model),
            (None, Model::Id(model)) => Some(model),
            (None, Model::Inherit) => parent,
        }
    }
}

/// The profiles in force. Resolved once per session; there is no way to change one afterwards, and a call in flight
/// shares its profile rather than copying it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    profiles: IndexMap<String, Arc<Profile>>,
}

impl Registry {
    /// What holds without any configuration.
    pub fn bundled() -> Self {
        Self::new(BUNDLED.map(bundled_profile))
    }

    /// These profiles, in this order.
    pub fn new(profiles: impl IntoIterator<Item = Profile>) -> Self {
        let profiles = profiles
            .into_iter()
            .map(|profile| (profile.name.clone(), Arc::new(profile)))
            .collect();
        Self { profiles }
    }

    /// The profile of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.profiles.get(name)
    }

    /// All of them: bundled first, then added ones in the order of their files.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values().map(AsRef::as_ref)
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.profiles.keys().map(String::as_str).collect()
    }
}

/// One of [`BUNDLED`].
fn bundled_profile(name: &str) -> Profile {
    // Read-only profiles have no bash: a shell could change whatever it likes (ruling 27).
    const LOOK: &[&str] = &["read", "grep", "find", "ls"];
    const TRY: &[&str] = &["read", "grep", "find", "ls", "bash"];
    const CHANGE: &[&str] = &["read", "grep", "find", "ls", "bash", "edit", "write"];
    let (description, thinking, tools, minutes, prompt) = match name {
        "scout" => (
            "Finds things out in the code base, quickly and without changing anything: where something is, how it works, what uses it.",
            Thinking::Low,
            LOOK,
            5,
            include_str!("../../prompts/scout.md"),
        ),
        "reviewer" => (
            "Reviews a change or a piece of code for defects. Reads only: cannot edit files or run commands.",
            Thinking::High,
            LOOK,
            15,
            include_str!("../../prompts/reviewer.md"),
        ),
        "oracle" => (
            "Thinks hard about a difficult question, such as a puzzling bug or a costly design decision. Reads only: cannot edit files or run commands.",
            Thinking::Xhigh,
            LOOK,
            20,
            include_str!("../../prompts/oracle.md"),
        ),
        "tester" => (
            "Tries out real behaviour by running commands, and reports what holds and what fails. Does not edit sources or configuration.",
            Thinking::Medium,
            TRY,
            20,
            include_str!("../../prompts/tester.md"),
        ),
        _ => (
            "Carries out a piece of work: edits files, runs commands, validates the outcome.",
            Thinking::Medium,
            CHANGE,
            30,
            include_str!("../../prompts/worker.md"),
        ),
    };
    Profile {
        name: name.to_owned(),
        description: description.to_owned(),
        model: Model::Inherit,
        thinking,
        prompt: prompt.trim_end().to_owned(),
        tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
        extensions: Vec::new(),
        skills: Vec::new(),
        deadline: Duration::from_secs(60 * minutes),
        origin: Origin::Bundled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(profile: &Profile, model: Option<&str>) -> Vec<String> {
        let args = profile.arguments(model);
        args.into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect()
    }

    /// The golden vector of a bundled profile; `<prompt>` stands for the role text, which is compared with its file.
    fn check_golden(name: &str, model: Option<&str>, golden: &str) {
        let registry = Registry::bundled();
        let mut found = argv(registry.get(name).unwrap(), model);
        let file = format!("{}/../prompts/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let prompt = std::fs::read_to_string(file).unwrap();
        for arg in &mut found {
            if arg == prompt.trim_end() {
                *arg = "<prompt>".into();
            }
        }
        assert_eq!(found.join(" "), golden, "{name}");
    }

    // shows: launch.argv-profile-contract, profile.five-bundled, launch.argv-isolation
    #[test]
    fn bundled_profiles_have_their_golden_vectors() {
        const HEAD: &str = "--mode rpc --no-session --no-extensions --no-skills --no-prompt-templates --no-context-files";
        for (name, rest) in [
            (
                "scout",
                "--thinking low --tools read,grep,find,ls --system-prompt <prompt>",
            ),
            (
                "reviewer",
                "--thinking high --tools read,grep,find,ls --system-prompt <prompt>",
            ),
            (
                "oracle",
                "--thinking xhigh --tools read,grep,find,ls --system-prompt <prompt>",
            ),
            (
                "tester",
                "--thinking medium --tools read,grep,find,ls,bash --system-prompt <prompt>",
            ),
            (
                "worker",
                "--thinking medium --tools read,grep,find,ls,bash,edit,write --system-prompt <prompt>",
            ),
        ] {
            check_golden(name, None, &format!("{HEAD} {rest}"));
            check_golden(
                name,
                Some("stub/x"),
                &format!("{HEAD} --model stub/x {rest}"),
            );
        }
        assert_eq!(Registry::bundled().names(), BUNDLED);
    }

    // shows: launch.argv-profile-contract, config.capability-paths-canonical
    #[test]
    fn a_configured_profile_has_its_golden_vector() {
        let profile = Profile {
            name: "docs".into(),
            description: "Writes documentation.".into(),
            model: Model::Id("stub/writer".into()),
            thinking: Thinking::Minimal,
            prompt: "Write.".into(),
            tools: vec!["read".into(), "lookup".into()],
            extensions: vec!["/ext/a.ts".into(), "/ext/b".into()],
            skills: vec!["/skills/style".into()],
            deadline: Duration::from_secs(60),
            origin: Origin::User,
        };
        let model = profile.effective_model(None, Some("parent/m"));
        assert_eq!(
            argv(&profile, model).join(" "),
            "--mode rpc --no-session --no-extensions --no-skills --no-prompt-templates --no-context-files \
             --model stub/writer --thinking minimal --tools read,lookup --system-prompt Write. \
             --extension /ext/a.ts --extension /ext/b --skill /skills/style"
        );
        let bare = Profile {
            tools: Vec::new(),
            ..profile
        };
        assert!(argv(&bare, None).contains(&"--no-tools".to_owned()));
    }

    // shows: profile.reviewer-oracle-read-only, profile.tester-bash-no-edit, profile.worker-mutates
    #[test]
    fn tools_follow_the_role() {
        let registry = Registry::bundled();
        let has =
            |name: &str, tool: &str| registry.get(name).unwrap().tools.iter().any(|t| t == tool);
        for name in ["scout", "reviewer", "oracle"] {
            for tool in ["bash", "edit", "write"] {
                assert!(!has(name, tool), "{name} has {tool}");
            }
        }
        assert!(has("tester", "bash") && !has("tester", "edit") && !has("tester", "write"));
        assert!(
            ["bash", "edit", "write"]
                .iter()
                .all(|tool| has("worker", tool))
        );
    }

    // shows: deadline.mandatory
    #[test]
    fn every_bundled_profile_has_a_deadline_within_the_bounds() {
        for profile in Registry::bundled().iter() {
            assert!(
                (DEADLINE_MIN..=DEADLINE_MAX).contains(&profile.deadline),
                "{}",
                profile.name
            );
            assert!(
                profile.prompt.len() <= PROMPT_LIMIT
                    && profile.description.len() <= DESCRIPTION_LIMIT
            );
        }
    }

    // shows: config.precedence-model, config.call-override-beats-profile
    #[test]
    fn the_model_of_the_call_comes_first_then_the_profile_then_the_parent() {
        let registry = Registry::bundled();
        let inheriting = registry.get("scout").unwrap();
        let fixed = Profile {
            model: Model::Id("own".into()),
            ..Profile::clone(inheriting)
        };
        for (profile, call, parent, expected) in [
            (&fixed, Some("call"), Some("parent"), Some("call")),
            (&fixed, None, Some("parent"), Some("own")),
            (inheriting, Some("call"), Some("parent"), Some("call")),
            (inheriting, None, Some("parent"), Some("parent")),
            (inheriting, None, None, None),
        ] {
            assert_eq!(profile.effective_model(call, parent), expected);
        }
    }

    // shows: launch.model-override-invalid-rejected
    #[test]
    fn model_ids_are_checked() {
        let longest = "m".repeat(MODEL_LIMIT);
        for good in [
            "stub/x",
            "x",
            "qwen3:8b",
            "a/b/c:free",
            "ümlaut",
            longest.as_str(),
        ] {
            assert_eq!(check_model(good), Ok(()), "{good}");
        }
        for (bad, expected) in [
            ("", BadModel::Blank),
            (" \t\n", BadModel::Blank),
            ("a b", BadModel::Character(' ')),
            ("a\u{7}", BadModel::Character('\u{7}')),
            ("a\n", BadModel::Character('\n')),
            ("\0", BadModel::Character('\0')),
            ("--help", BadModel::Option),
            ("stub/x:high", BadModel::Thinking(Thinking::High)),
        ] {
            assert_eq!(check_model(bad), Err(expected), "{bad:?}");
        }
        assert_eq!(
            check_model(&"m".repeat(MODEL_LIMIT + 1)),
            Err(BadModel::Long(MODEL_LIMIT + 1))
        );
        // Two bytes a character: the limit counts bytes.
        assert!(check_model(&"ü".repeat(MODEL_LIMIT / 2 + 1)).is_err());
    }
}
