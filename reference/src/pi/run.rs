//! One run as a state machine (pure): what happened goes in with the time, what is to be done comes out.
//!
//! Two questions, one after the other. First: *why does it end?* The first cause holds. Then: *what is left?* The tree is
//! ended, within bounds, and whatever is found there never changes the cause.
//!
//! ```text
//!                 ┌─ talking ────────────────────────────────────────────────────────┐
//!   prompt ──────►│ waiting ──► running ◄──► recovering (retry, compaction)          │
//!                 │    │           │  agent_end without agent_settled (0.73): quiet  │
//!                 └────┼───────────┼──────────────────────────────────────────────────┘
//!        start watchdog│           │ settled · end of output · exit and drain · deadline · stop · tool limit · …
//!                      ▼           ▼
//!                 ┌─ cleaning ───────────────────────────────────────────────────────┐
//!                 │ leaving ──────────► asked (TERM) ──────────► forced (KILL)       │
//!                 │ (settled: stdin     after drain, linger,     after grace         │
//!                 │  closed, time to go) or at once                                  │
//!                 └──────┬────────────────────┬───────────────────────┬──────────────┘
//!                        └────────────────────┴───────────────────────┘
//!                          child reaped, tree empty, pipes ended (or given up on)
//!                                             ▼
//!                                          settled, once
//! ```
//!
//! Times are since the start of the run. The shell wakes the machine at [`Run::deadline`].

mod cleaning;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::answer::Answer;
use super::outcome::{Cause, Cleanup, Exit, Limits, Outcome, Update, Why};
use super::wire::Record;

use cleaning::Cleaning;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A record was read. The flag: some of its bytes had to be replaced.
    Record(Record, bool),
    /// A record that was too long to be kept: what its head says.
    Skipped(Record),
    /// A line was no record.
    Unusable,
    /// A record that matters is over the cap.
    Oversized,
    /// Standard output ended; `true`: inside a record.
    StdoutEnd(bool),
    /// Standard error ended.
    StderrEnd,
    /// Standard input cannot be written any more.
    StdinBroken,
    /// The child has ended and was reaped.
    Exited(Exit),
    /// What was found alive of the tree, the child itself left out.
    Found(usize),
    /// The run was told to stop.
    Stop(Why),
    /// Time has passed.
    Tick,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Write this line to standard input.
    Write(String),
    /// Close standard input, after what is still to be written.
    CloseStdin,
    /// SIGTERM to the whole tree.
    Term,
    /// SIGKILL to the whole tree.
    Kill,
    /// Look what is alive of the tree, and say it with [`Input::Found`].
    Look,
    /// Tell who watches.
    Tell(Update),
    /// It is over: the outcome can be taken. The last effect, and it comes once.
    Settle,
}

/// Tools that end within seconds or hang; `bash` may take as long as it likes (`tool-timeout.bash-exempt`).
pub const FAST_TOOLS: [&str; 6] = ["read", "ls", "grep", "find", "edit", "write"];

/// Most tool calls that are timed at once; more are a broken child's, and the deadline holds for them.
const OPEN_TOOLS: usize = 256;

/// Words with which Pi's bash tool says that it ended a command.
const BASH_TIMED_OUT: &str = "Command timed out after";
const BASH_ABORTED: &str = "Command aborted";

/// A run from its prompt to its settlement.
#[derive(Debug)]
pub struct Run {
    limits: Limits,
    now: Duration,
    out: Vec<Effect>,
    talk: Talk,
    answer: Answer,
    cause: Option<Cause>,
    exit: Option<Exit>,
    /// Standard output ended, and whether that was inside a record.
    stdout_end: Option<bool>,
    stderr_end: bool,
    cleaning: Cleaning,
    counts: Counts,
}

/// Where the conversation stands.
#[derive(Debug, Default)]
struct Talk {
    accepted: bool,
    started: bool,
    /// This Pi says `agent_settled`.
    settles: bool,
    /// Another attempt, or a compaction, is announced: what settles now is the old one.
    recovering: bool,
    /// Since when it is quiet after an `agent_end` that may be the last.
    quiet_since: Option<Duration>,
    /// Until when output may still come from a child that has gone, or a child may still go whose output has ended.
    drain_until: Option<Duration>,
    /// Fast tools that run: id to name and limit.
    tools: BTreeMap<String, (String, Duration)>,
}

/// What is counted and skipped.
#[derive(Debug, Default)]
struct Counts {
    unusable: u64,
    replaced: u64,
    skipped: u64,
}

impl Run {
    /// Begins a run: the prompt is the first effect.
    pub fn begin(limits: Limits, task: &str) -> (Self, Vec<Effect>) {
        let prompt = serde_json::json!({"id": "1", "type": "prompt", "message": task});
        let run = Self {
            limits,
            now: Duration::ZERO,
            out: Vec::new(),
            talk: Talk::default(),
            answer: Answer::default(),
            cause: None,
            exit: None,
            stdout_end: None,
            stderr_end: false,
            cleaning: Cleaning::default(),
            counts: Counts::default(),
        };
        (run, vec![Effect::Write(prompt.to_string())])
    }

    /// Takes one input in. Time never goes back.
    pub fn handle(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        self.now = self.now.max(now);
        if !self.cleaning.is_over() {
            self.take(input);
            self.expire();
            if self.cause.is_some() {
                self.clean();
            }
        }
        std::mem::take(&mut self.out)
    }

    /// When the machine wants to be woken, if nothing happens before.
    pub fn deadline(&self) -> Option<Duration> {
        if self.cleaning.is_over() {
            return None;
        }
        if self.cause.is_some() {
            return self.cleaning.wakes();
        }
        let tools = self.talk.tools.values().map(|(_, until)| *until);
        let others = [
            Some(self.limits.deadline),
            self.limits.start_watchdog.filter(|_| !self.talk.started),
            self.talk.quiet_since.map(|since| since + self.limits.quiet),
            self.talk.drain_until,
        ];
        tools.chain(others.into_iter().flatten()).min()
    }

    /// The outcome, once the run has settled. `stderr_tail` is the shell's to add.
    pub fn outcome(mut self) -> Outcome {
        let last = self.answer.take();
        let health = self.health();
        let answered = last.is_some();
        let last = last.unwrap_or_default();
        Outcome {
            cause: self.cause.unwrap_or(Cause::Ended),
            answered,
            text: last.text,
            original_bytes: last.original_bytes,
            stop_reason: last.stop_reason,
            error: last.error,
            exit: self.exit.unwrap_or_default(),
            tokens: self.answer.tokens,
            cost: self.answer.cost,
            stderr_tail: String::new(),
            cleanup: Cleanup {
                drained: self.stdout_end.is_some() && self.stderr_end,
                ..self.cleaning.facts()
            },
            health,
        }
    }

    fn health(&self) -> Vec<String> {
        let Counts {
            unusable,
            replaced,
            skipped,
        } = self.counts;
        let mut remarks = Vec::new();
        let mut remark = |count: u64, what: &str| {
            if count > 0 {
                remarks.push(format!("{count} {what}"));
            }
        };
        remark(unusable, "lines were no records and were skipped");
        remark(
            replaced,
            "records had bytes that are no text, which were replaced",
        );
        remark(skipped, "long records that carry no answer were not kept");
        let code = self.exit.and_then(|exit| exit.code).unwrap_or(0);
        if self.cause == Some(Cause::Settled) && code != 0 && !self.cleaning.facts().term {
            remarks.push(format!("the child ended with code {code} after its answer"));
        }
        remarks
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Record(record, replaced) => {
                self.counts.replaced += u64::from(replaced);
                self.record(record);
            }
            Input::Skipped(record) => {
                self.counts.skipped += 1;
                self.record(record);
            }
            // No activity: junk keeps nothing alive.
            Input::Unusable => self.counts.unusable += 1,
            Input::Oversized => self.ends(Cause::Oversized),
            Input::StdoutEnd(cut) => {
                self.stdout_end = Some(cut);
                if cut {
                    self.ends(Cause::IncompleteRecord);
                }
                match self.exit {
                    Some(_) => self.ends(Cause::Ended),
                    // A child without output can say nothing more; it gets a moment to go by itself.
                    None => self.talk.drain_until = Some(self.now + self.limits.post_exit_drain),
                }
            }
            Input::StderrEnd => self.stderr_end = true,
            Input::Exited(exit) => {
                self.exit = Some(exit);
                self.cleaning.child_gone(self.now);
                match self.stdout_end {
                    Some(_) => self.ends(Cause::Ended),
                    // What it wrote before its end is still in the pipe; a helper that holds the pipe gets no longer.
                    None => self.talk.drain_until = Some(self.now + self.limits.post_exit_drain),
                }
            }
            Input::Found(alive) => self.cleaning.found(alive, self.exit.is_some()),
            Input::Stop(why) => self.ends(Cause::Stopped(why)),
            // A child that does not read will end, or hang; each has its own cause.
            Input::StdinBroken | Input::Tick => {}
        }
    }

    /// The first cause holds.
    fn ends(&mut self, cause: Cause) {
        if self.cause.is_none() {
            self.cause = Some(cause);
        }
    }

    fn record(&mut self, record: Record) {
        // A dialog is answered whatever state the run is in: Pi holds off its own end while one is open.
        if let Record::Dialog { id } = &record {
            let answer =
                serde_json::json!({"type": "extension_ui_response", "id": id, "cancelled": true});
            self.out.push(Effect::Write(answer.to_string()));
        }
        if self.cause.is_some() {
            return;
        }
        match record {
            Record::PromptResponse {
                success: false,
                error,
                ..
            } => {
                return self.ends(Cause::PromptRefused(bounded(&error)));
            }
            Record::PromptResponse { disposition, .. } => {
                self.talk.accepted = true;
                self.talk.settles |= disposition;
                return;
            }
            Record::AgentStart => {
                self.talk.recovering = false;
                self.talk.quiet_since = None;
                self.answer.begins();
            }
            Record::TurnStart | Record::AssistantStart => self.answer.begins(),
            Record::AssistantEnd(message) => self.answer.message(*message, &self.limits),
            Record::ToolStart { id, name, detail } => self.tool_starts(id, name, detail),
            Record::ToolEnd {
                id,
                name,
                failed,
                text,
            } => {
                self.talk.tools.remove(&id);
                self.bash_ended(&name, failed, &text);
            }
            Record::AgentEnd { will_retry } => {
                self.heard();
                self.talk.settles |= will_retry.is_some();
                self.talk.recovering = will_retry == Some(true);
                // Only silence tells that a Pi without agent_settled is done.
                self.talk.quiet_since = (!self.talk.settles).then_some(self.now);
                return;
            }
            // A settled event of an attempt that is being repeated is not the end (ruling 2 of the design).
            Record::Settled if self.talk.recovering => {}
            Record::Settled => {
                self.heard();
                return self.ends(Cause::Settled);
            }
            Record::RecoveryStart => {
                self.talk.recovering = true;
                self.talk.quiet_since = None;
            }
            Record::RecoveryEnd(again) => {
                self.heard();
                self.talk.recovering = again;
                if !again && self.talk.started && !self.talk.settles && self.answer.last().is_some()
                {
                    self.talk.quiet_since = Some(self.now);
                }
                return;
            }
            Record::Dialog { .. } | Record::Other => {}
        }
        self.heard();
    }

    /// An event of a run: it has started, and where silence is waited for, that begins anew.
    fn heard(&mut self) {
        if self.talk.quiet_since.is_some() {
            self.talk.quiet_since = Some(self.now);
        }
        if !self.talk.started {
            self.talk.started = true;
            self.out.push(Effect::Tell(Update::Started));
        }
    }

    fn tool_starts(&mut self, id: String, name: String, detail: String) {
        self.answer.begins();
        let limit = self
            .limits
            .tool_timeout
            .filter(|_| FAST_TOOLS.contains(&name.as_str()));
        if let Some(limit) = limit
            && self.talk.tools.len() < OPEN_TOOLS
        {
            self.talk.tools.insert(id, (name.clone(), self.now + limit));
        }
        self.heard();
        self.out.push(Effect::Tell(Update::Tool { name, detail }));
    }

    fn bash_ended(&mut self, name: &str, failed: bool, text: &str) {
        let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
        let ended = last.starts_with(BASH_TIMED_OUT) || last == BASH_ABORTED;
        if self.limits.bash_timeout_ends_run && name == "bash" && failed && ended {
            self.ends(Cause::BashTimeout(bounded(last)));
        }
    }

    /// Limits that have passed, the mightiest first: what comes at the same moment is one cause.
    fn expire(&mut self) {
        if self.cause.is_some() {
            return;
        }
        let now = self.now;
        if now >= self.limits.deadline {
            return self.ends(Cause::Deadline);
        }
        if let Some((name, _)) = self
            .talk
            .tools
            .values()
            .find(|(_, until)| now >= *until)
            .cloned()
        {
            return self.ends(Cause::ToolTimeout(name));
        }
        if self
            .limits
            .start_watchdog
            .is_some_and(|limit| !self.talk.started && now >= limit)
        {
            return self.ends(Cause::NotStarted {
                accepted: self.talk.accepted,
            });
        }
        if self
            .talk
            .quiet_since
            .is_some_and(|since| now >= since + self.limits.quiet)
        {
            return self.ends(Cause::Settled);
        }
        if self.talk.drain_until.is_some_and(|until| now >= until) {
            self.ends(Cause::Ended);
        }
    }

    /// Ends what is left, as far as it has come; settles when nothing is left.
    fn clean(&mut self) {
        let settled = self.cause == Some(Cause::Settled);
        let pipes_ended = self.stdout_end.is_some() && self.stderr_end;
        let gone = self.exit.is_some();
        self.cleaning.step(
            self.now,
            &self.limits,
            settled,
            gone,
            pipes_ended,
            &mut self.out,
        );
    }
}

/// Longest text of a child inside a cause, in bytes.
const CAUSE_TEXT: usize = 4096;

fn bounded(text: &str) -> String {
    text[..text.floor_char_boundary(CAUSE_TEXT)].to_owned()
}
