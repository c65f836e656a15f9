//! Compact progress: one line on what the child does, and not too many of them. Pure; the shell brings the time.

use std::time::Duration;

use super::result::head;

/// Most bytes of a line.
pub const LINE_LIMIT: usize = 200;
/// Lines that may come at once, before the pace holds them back.
const BURST: u32 = 20;
/// Time after which one more line may come.
const REFILL: Duration = Duration::from_millis(200);
/// Silence after which a line says that the run still goes on, so that a client's own time limit does not end it.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// What a child was seen to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// Its run began.
    Started,
    /// A tool began: its name, and the one argument that says most.
    Tool {
        /// Name of the tool.
        name: String,
        /// Path, pattern or command; may be empty.
        detail: String,
    },
    /// Something else worth a line, in a few words.
    Note(String),
}

/// A budget of lines that refills with time: a few at once are welcome, a flood is not.
#[derive(Debug, Clone)]
pub struct Pace {
    left: u32,
    refilled: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            left: BURST,
            refilled: Duration::ZERO,
        }
    }
}

impl Pace {
    /// Whether a line may be sent at `now`, counted from the start of the call; if so it is taken from the budget.
    pub fn allows(&mut self, now: Duration) -> bool {
        let elapsed = now.saturating_sub(self.refilled);
        let more = u32::try_from(elapsed.as_millis() / REFILL.as_millis()).unwrap_or(u32::MAX);
        if more > 0 {
            self.left = self.left.saturating_add(more).min(BURST);
            self.refilled = now;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }

    /// How long after `now` the next line may be sent.
    pub fn next(&self, now: Duration) -> Duration {
        if self.left > 0 {
            Duration::ZERO
        } else {
            (self.refilled + REFILL).saturating_sub(now)
        }
    }
}

/// The progress of one call: what is known so far, as a line.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    profile: String,
    doing: String,
    tools: u64,
}

impl Progress {
    /// Nothing has happened yet.
    pub fn new(profile: &str) -> Self {
        Self {
            profile: profile.to_owned(),
            doing: "starting".to_owned(),
            tools: 0,
        }
    }

    /// Takes in what was seen.
    pub fn see(&mut self, activity: &Activity) {
        self.doing = match activity {
            Activity::Started => "thinking".to_owned(),
            Activity::Tool { name, detail } => {
                self.tools += 1;
                let (name, detail) = (one_line(name), one_line(detail));
                if detail.is_empty() {
                    name
                } else {
                    format!("{name} {detail}")
                }
            }
            Activity::Note(note) => one_line(note),
        };
    }

    /// The line at `elapsed`, such as `scout: read src/main.rs (3 tools, 12 s)`.
    pub fn line(&self, elapsed: Duration) -> String {
        let facts = match self.tools {
            0 => format!(" ({} s)", elapsed.as_secs()),
            1 => format!(" (1 tool, {} s)", elapsed.as_secs()),
            tools => format!(" ({tools} tools, {} s)", elapsed.as_secs()),
        };
        let mut line = format!("{}: {}", self.profile, self.doing);
        let room = LINE_LIMIT - facts.len();
        if line.len() > room {
            line = format!("{}…", head(&line, room - '…'.len_utf8()));
        }
        line + &facts
    }
}

/// Text of the child on one line: white space and control characters become single spaces.
fn one_line(text: &str) -> String {
    // A command may be megabytes long; what the line has room for is enough to look at.
    let mut line = String::new();
    for word in head(text, 4 * LINE_LIMIT).split(|c: char| c.is_whitespace() || c.is_control()) {
        if !word.is_empty() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tool(name: &str, detail: &str) -> Activity {
        Activity::Tool {
            name: name.into(),
            detail: detail.into(),
        }
    }

    #[test]
    fn a_line_says_what_goes_on() {
        let mut progress = Progress::new("scout");
        let mut lines = vec![progress.line(Duration::ZERO)];
        for activity in [
            Activity::Started,
            tool("read", "src/main.rs"),
            tool("bash", "cargo test \\\n  --workspace\u{1b}[31m"),
            Activity::Note("retrying (1 of 3)".into()),
        ] {
            progress.see(&activity);
            lines.push(progress.line(Duration::from_millis(12_900)));
        }
        assert_eq!(
            lines,
            [
                "scout: starting (0 s)",
                "scout: thinking (12 s)",
                "scout: read src/main.rs (1 tool, 12 s)",
                "scout: bash cargo test \\ --workspace [31m (2 tools, 12 s)",
                "scout: retrying (1 of 3) (2 tools, 12 s)",
            ]
        );
    }

    #[test]
    fn a_burst_passes_and_a_flood_does_not() {
        let mut pace = Pace::default();
        let allowed = |pace: &mut Pace, at: u64, tries: usize| {
            (0..tries)
                .filter(|_| pace.allows(Duration::from_millis(at)))
                .count()
        };
        assert_eq!(allowed(&mut pace, 0, 100), 20);
        assert_eq!(
            pace.next(Duration::from_millis(50)),
            Duration::from_millis(150)
        );
        assert_eq!(allowed(&mut pace, 199, 5), 0);
        assert_eq!(allowed(&mut pace, 200, 5), 1);
        assert_eq!(allowed(&mut pace, 60_000, 100), 20);
    }

    proptest! {
        // shows: semantics.progress-compact
        #[test]
        fn lines_are_bounded_single_lines(name in ".{0,300}", detail in "\\PC{0,900}", seconds in 0u64..1_000_000_000) {
            let mut progress = Progress::new("reviewer");
            progress.see(&tool(&name, &detail));
            let line = progress.line(Duration::from_secs(seconds));
            prop_assert!(line.len() <= LINE_LIMIT, "{} bytes", line.len());
            prop_assert!(!line.chars().any(char::is_control));
        }
    }
}
