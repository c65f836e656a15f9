//! One child, run to its outcome: the first vertical path, in one file.
//!
//! Starts the program in a process group of its own, writes the prompt, reads records until the run has settled, and
//! ends the whole tree: SIGTERM, then SIGKILL, strays outside the group included.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use self::group::Tree;
use crate::dialect::stop::{Stop, Why};

pub mod group;

/// Where a mutant differs.
pub mod seam {
    /// A way to differ; the sound program has none.
    pub trait Twist: Send + Sync {}

    /// No difference.
    #[derive(Debug, Clone, Copy)]
    pub struct Sound;

    impl Twist for Sound {}
}

/// What is started, and under which limits.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Changes of its environment; `None` takes a variable away.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The task.
    pub task: String,
    /// Unique mark of the run, in its environment as `PI_DELEGATE_RUN_ID`.
    pub mark: String,
    /// The limits.
    pub limits: Limits,
}

/// Limits of a run.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Wall-clock limit.
    pub deadline: Duration,
    /// Limit of a tool that is known to be fast.
    pub tool_timeout: Option<Duration>,
    /// Limit from the prompt to a sign of its run.
    pub start_watchdog: Option<Duration>,
    /// Longest record in bytes.
    pub record_cap: usize,
    /// Longest answer in bytes.
    pub output_cap: usize,
    /// How much of stderr is kept.
    pub stderr_cap: usize,
    /// From SIGTERM to SIGKILL.
    pub term_grace: Duration,
    /// From the settled answer, or the end, to SIGTERM.
    pub drain: Duration,
}

/// What a child was seen to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// The run began.
    Started,
    /// A tool began.
    Tool {
        /// Its name.
        name: String,
        /// The argument that says most.
        detail: String,
    },
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// It settled.
    Settled,
    /// It was told to stop.
    Stopped(Why),
    /// The deadline passed.
    Deadline,
    /// A tool took too long.
    ToolTimeout(String),
    /// The prompt was accepted and nothing followed, or not even that.
    NotStarted {
        /// Whether the prompt was answered.
        accepted: bool,
    },
    /// The prompt was refused, with these words.
    PromptRefused(String),
    /// The output ended first.
    Ended,
    /// The wire protocol was broken.
    Protocol(String),
    /// The child could not be started.
    Spawn(String),
}

/// How a run came out.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Why it ended.
    pub cause: Cause,
    /// Text of the last assistant message.
    pub text: String,
    /// Bytes that it had before it was cut.
    pub original_bytes: u64,
    /// Stop reason of that message.
    pub stop_reason: String,
    /// Its error.
    pub error: String,
    /// Exit code.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Sum of the usage: input, output, cache read, cache write, total.
    pub tokens: [u64; 5],
    /// Sum of the cost.
    pub cost: f64,
    /// The end of stderr.
    pub stderr_tail: String,
    /// SIGTERM was sent.
    pub term: bool,
    /// SIGKILL was sent.
    pub kill: bool,
    /// Processes that outlived the child.
    pub strays: usize,
    /// Something may still live.
    pub incomplete: bool,
    /// Remarks.
    pub health: Vec<String>,
}

/// How often the process table is read while something is expected to vanish from it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a Pi of the 0.73 line, which never says that it has settled, must be silent behind `agent_end`. A retry or a
/// compaction is announced within the same turn of its event loop.
const QUIET: Duration = Duration::from_secs(1);

/// Runs one child to its end; its process tree is gone when this returns.
pub async fn run(
    launch: Launch,
    mut stop: Stop,
    updates: mpsc::Sender<Update>,
    _twist: &dyn seam::Twist,
) -> Outcome {
    let mut outcome = Outcome {
        cause: Cause::Ended,
        text: String::new(),
        original_bytes: 0,
        stop_reason: String::new(),
        error: String::new(),
        code: None,
        signal: None,
        tokens: [0; 5],
        cost: 0.0,
        stderr_tail: String::new(),
        term: false,
        kill: false,
        strays: 0,
        incomplete: false,
        health: Vec::new(),
    };
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .current_dir(&launch.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for (name, value) in &launch.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let (mut child, mut tree) = match Tree::spawn(&mut command, &launch.mark) {
        Ok(started) => started,
        Err(error) => {
            outcome.cause = Cause::Spawn(format!(
                "cannot start {}: {error}",
                launch.program.display()
            ));
            return outcome;
        }
    };
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let errors = tokio::spawn(stderr_tail(child.stderr.take(), launch.limits.stderr_cap));
    let mut prompt =
        serde_json::json!({"id": "1", "type": "prompt", "message": launch.task}).to_string();
    prompt.push('\n');
    // Held open until the run has settled: Pi drops a run whose input ends.
    let (settled, hold) = tokio::sync::oneshot::channel::<()>();
    let writing = tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(prompt.as_bytes()).await;
            let _ = hold.await;
        }
    });
    if let Some(stdout) = stdout {
        let reading = read(stdout, &launch, &updates, &mut outcome);
        let cause = tokio::select! {
            cause = reading => cause,
            why = stop.wait() => Cause::Stopped(why),
            () = sleep(launch.limits.deadline) => Cause::Deadline,
        };
        outcome.cause = cause;
    }
    // Whoever is seen now is known later, when its parent is gone.
    tree.look();
    drop(settled);
    end(&mut child, &mut tree, &launch.limits, &mut outcome).await;
    writing.abort();
    let stderr = timeout(launch.limits.drain, errors).await;
    outcome.stderr_tail = stderr.ok().and_then(Result::ok).unwrap_or_default();
    outcome.original_bytes = outcome.text.len() as u64;
    let kept =
        crate::dialect::delegator::result::head(&outcome.text, launch.limits.output_cap).len();
    outcome.text.truncate(kept);
    outcome
}

/// Reads records until one of them ends the run.
async fn read(
    stdout: tokio::process::ChildStdout,
    launch: &Launch,
    updates: &mpsc::Sender<Update>,
    outcome: &mut Outcome,
) -> Cause {
    let mut lines = BufReader::with_capacity(1 << 16, stdout);
    let mut line = Vec::new();
    let (mut accepted, mut started) = (false, false);
    let mut tool: Option<(String, tokio::time::Instant)> = None;
    let begin = tokio::time::Instant::now();
    let mut quiet = None;
    loop {
        line.clear();
        let cap = launch.limits.record_cap as u64 + 1;
        let mut bounded = (&mut lines).take(cap);
        let watchdog = launch
            .limits
            .start_watchdog
            .filter(|_| !started)
            .map(|after| begin + after);
        let tool_end = tool
            .as_ref()
            .and_then(|(_, since)| launch.limits.tool_timeout.map(|after| *since + after));
        let next = tokio::select! {
            read = bounded.read_until(b'\n', &mut line) => read,
            () = at(quiet) => return Cause::Settled,
            () = at(watchdog) => return Cause::NotStarted { accepted },
            () = at(tool_end) => return Cause::ToolTimeout(tool.map(|(name, _)| name).unwrap_or_default()),
        };
        match next {
            Ok(0) | Err(_) => return Cause::Ended,
            Ok(length) if length as u64 >= cap && line.last() != Some(&b'\n') => {
                return Cause::Protocol(format!(
                    "a record is longer than {} bytes",
                    launch.limits.record_cap
                ));
            }
            Ok(_) => {}
        }
        let whole = line.last() == Some(&b'\n');
        let Ok(record) = serde_json::from_slice::<Value>(&line) else {
            if whole {
                outcome.health.push("a malformed record was skipped".into());
                outcome.health.truncate(8);
                continue;
            }
            return Cause::Protocol("the output ended inside its last record".into());
        };
        match record["type"].as_str().unwrap_or_default() {
            "response" if record["command"] == "prompt" => {
                accepted = true;
                if record["success"] == false {
                    return Cause::PromptRefused(
                        record["error"].as_str().unwrap_or_default().to_owned(),
                    );
                }
            }
            "agent_start" if !started => {
                started = true;
                let _ = updates.try_send(Update::Started);
            }
            "tool_execution_start" => {
                let name = record["toolName"].as_str().unwrap_or_default().to_owned();
                let arguments = ["path", "pattern", "command"];
                let detail = arguments
                    .iter()
                    .find_map(|key| record["args"][key].as_str())
                    .unwrap_or_default();
                let _ = updates.try_send(Update::Tool {
                    name: name.clone(),
                    detail: detail.to_owned(),
                });
                tool = (name != "bash").then(|| (name, tokio::time::Instant::now()));
            }
            "tool_execution_end" => tool = None,
            "message_end" if record["message"]["role"] == "assistant" => {
                take(&record["message"], outcome)
            }
            "agent_settled" => return Cause::Settled,
            _ => {}
        }
        quiet = match record["type"].as_str() {
            Some("agent_end") if record.get("willRetry").is_none() => {
                Some(tokio::time::Instant::now() + QUIET)
            }
            Some("agent_start" | "auto_retry_start" | "compaction_start") => None,
            _ => quiet.map(|_| tokio::time::Instant::now() + QUIET),
        };
    }
}

/// Takes in an assistant message.
fn take(message: &Value, outcome: &mut Outcome) {
    let blocks = message["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    outcome.text = blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    outcome.stop_reason = message["stopReason"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    outcome.error = message["errorMessage"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let usage = &message["usage"];
    for (sum, key) in
        outcome
            .tokens
            .iter_mut()
            .zip(["input", "output", "cacheRead", "cacheWrite", "totalTokens"])
    {
        *sum = sum.saturating_add(usage[key].as_u64().unwrap_or(0));
    }
    outcome.cost += usage["cost"]["total"].as_f64().unwrap_or(0.0);
}

async fn at(instant: Option<tokio::time::Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Ends the tree: a settled child may go by itself first, all others get SIGTERM at once; then SIGKILL. What is left
/// when the child is gone gets the same.
async fn end(child: &mut Child, tree: &mut Tree, limits: &Limits, outcome: &mut Outcome) {
    let exit = |status: Result<std::io::Result<_>, _>| status.ok().and_then(Result::ok);
    let mut status = None;
    if matches!(outcome.cause, Cause::Settled | Cause::Ended) {
        status = exit(timeout(limits.drain, child.wait()).await);
    }
    if status.is_none() {
        outcome.term = tree.signal(Signal::SIGTERM);
        status = exit(timeout(limits.term_grace, child.wait()).await);
    }
    if status.is_none() {
        outcome.kill = tree.signal(Signal::SIGKILL);
        status = exit(timeout(limits.drain, child.wait()).await);
    }
    outcome.strays = tree.look();
    for (signal, patience) in [
        (Signal::SIGTERM, limits.term_grace),
        (Signal::SIGKILL, limits.drain),
    ] {
        if tree.look() > 0 && tree.signal(signal) {
            outcome.term |= signal == Signal::SIGTERM;
            outcome.kill |= signal == Signal::SIGKILL;
            gone(tree, patience).await;
        }
    }
    outcome.incomplete = status.is_none() || tree.look() > 0;
    if let Some(status) = status {
        use std::os::unix::process::ExitStatusExt as _;
        (outcome.code, outcome.signal) = (status.code(), status.signal());
    }
}

/// Waits until nothing of the tree lives, but no longer than `patience`.
async fn gone(tree: &mut Tree, patience: Duration) {
    let end = tokio::time::Instant::now() + patience;
    while tree.look() > 0 && tokio::time::Instant::now() < end {
        sleep(LOOK_EVERY).await;
    }
}

/// Reads stderr to its end and keeps the last `cap` bytes.
async fn stderr_tail(stderr: Option<ChildStderr>, cap: usize) -> String {
    let mut kept = Vec::new();
    if let Some(mut stderr) = stderr {
        let mut piece = vec![0; 1 << 14];
        while let Ok(length @ 1..) = stderr.read(&mut piece).await {
            kept.extend_from_slice(&piece[..length]);
            if kept.len() > 2 * cap {
                kept.drain(..kept.len() - cap);
            }
        }
    }
    let start = kept.len().saturating_sub(cap);
    String::from_utf8_lossy(&kept[start..]).into_owned()
}
