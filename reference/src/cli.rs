//! The command line: words in, words out. Whatever is decided is decided elsewhere.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use serde_json::Map;

use crate::config::{Config, Diagnostics};
use crate::dialect::delegator::Delegator;
use crate::dialect::delegator::result::{CallResult, Verdict};
use crate::mcp;
use crate::pi::guardian;
use crate::pi::seam::Twist;
use crate::session::{MARK_VARIABLE, Program, Session};
use crate::signals::{self, Signals};

mod status;

/// Exit codes; part of the interface, described in `docs/delegate.md`.
pub mod exit {
    /// There is an answer.
    pub const SUCCESS: u8 = 0;
    /// The run failed.
    pub const FAILED: u8 = 1;
    /// Refused before anything was started.
    pub const REFUSED: u8 = 2;
    /// Cancelled.
    pub const CANCELLED: u8 = 3;
    /// A time limit ended the run.
    pub const TIMEOUT: u8 = 4;
    /// Something that must not happen.
    pub const INTERNAL: u8 = 70;
}

/// Most bytes of a task on standard input: more than any limit on its characters lets through.
const STDIN_LIMIT: u64 = 8 * 1024 * 1024;

/// Hands tasks to fresh child `pi` processes and brings their answers back.
#[derive(Debug, Parser)]
#[command(name = "delegate", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve MCP on standard input and output.
    Mcp {
        #[command(flatten)]
        trust: Trust,
    },
    /// Hand one task to a child and print its answer.
    ///
    /// Exit codes: 0 success, 1 the run failed, 2 refused before anything was started, 3 cancelled, 4 a time limit
    /// ended the run.
    Run(Run),
    /// Show the profiles in force.
    Profiles {
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        trust: Trust,
    },
    /// Say whether the configuration is sound and the child program there.
    Check {
        #[command(flatten)]
        trust: Trust,
    },
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
struct Trust {
    /// Let the project's `.pi/delegator.json` count.
    #[arg(long)]
    trust_project: bool,
}

#[derive(Debug, Args)]
struct Run {
    /// What to do; `-` reads it from standard input.
    task: String,
    /// Which profile does it.
    #[arg(long, short, value_name = "NAME")]
    profile: String,
    /// Working directory of the child.
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Model for this run.
    #[arg(long, short, value_name = "ID")]
    model: Option<String>,
    /// Print the whole result as one line of JSON.
    #[arg(long)]
    json: bool,
    /// Say nothing about progress.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    trust: Trust,
}

/// The whole program. `args` begin with the name that it was started under.
pub fn main_with(args: Vec<OsString>, twist: Arc<dyn Twist>) -> ExitCode {
    if let Some(code) = guardian::main(&args) {
        return code;
    }
    if let Some(name) = args.first() {
        guardian::enable(name);
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            let asked = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            return ExitCode::from(if asked { exit::SUCCESS } else { exit::REFUSED });
        }
    };
    log();
    match cli.command {
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "delegate", &mut text);
            print(&text, exit::SUCCESS)
        }
        Command::Profiles { json, trust } => {
            with_session(&trust, |session| profiles(session, json))
        }
        Command::Check { trust } => with_session(&trust, check),
        Command::Mcp { trust } => with_session(&trust, |session| serve(session, twist)),
        Command::Run(run) => {
            let trust = Trust {
                trust_project: run.trust.trust_project,
            };
            with_session(&trust, |session| self::run(session, run, twist))
        }
    }
}

/// Logs to stderr what `DELEGATE_LOG` asks for; without it, warnings of our own only.
fn log() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("DELEGATE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("reference=warn"));
    // A second call in one process (a test) finds the logger installed, which is as good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .without_time()
        .try_init();
}

fn with_session(trust: &Trust, then: impl FnOnce(Session) -> ExitCode) -> ExitCode {
    match Session::begin(trust.trust_project) {
        Ok(session) => then(session),
        Err(error) => complain(&error.to_string(), exit::REFUSED),
    }
}

/// The configuration, after its oddities were said on stderr.
fn sound(session: &Session) -> Result<&Config, ExitCode> {
    match &session.config {
        Ok(config) => Ok(config),
        Err(diagnostics) => Err(complain(&faulty(diagnostics), exit::REFUSED)),
    }
}

fn faulty(diagnostics: &Diagnostics) -> String {
    format!("the configuration is faulty, and nothing is delegated:\n{diagnostics}")
}

fn profiles(session: Session, json: bool) -> ExitCode {
    let config = match sound(&session) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let mut text = String::new();
    for profile in config.profiles.iter() {
        if json {
            let line = serde_json::json!({
                "name": profile.name,
                "origin": profile.origin.to_string(),
                "description": profile.description,
                "model": profile.model.to_string(),
                "thinking": profile.thinking.as_str(),
                "tools": profile.tools,
                "extensions": profile.extensions,
                "skills": profile.skills,
                "deadlineMs": u64::try_from(profile.deadline.as_millis()).unwrap_or(u64::MAX),
            });
            text.push_str(&format!("{line}\n"));
            continue;
        }
        let tools = if profile.tools.is_empty() {
            "none".to_owned()
        } else {
            profile.tools.join(", ")
        };
        text.push_str(&format!(
            "{} ({})\n  {}\n  tools: {tools}\n  model: {}, thinking: {}, deadline: {} s\n",
            profile.name,
            profile.origin,
            profile.description,
            profile.model,
            profile.thinking,
            profile.deadline.as_secs_f64(),
        ));
    }
    print(text.as_bytes(), exit::SUCCESS)
}

fn check(session: Session) -> ExitCode {
    let config = match sound(&session) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let mut text = String::from("the configuration is sound\n");
    for (origin, file) in &config.sources {
        text.push_str(&format!("  {origin}: {}\n", file.display()));
    }
    if let Some(file) = &config.ignored {
        text.push_str(&format!("  not trusted, ignored: {}\n", file.display()));
    }
    text.push_str(&format!(
        "  profiles: {}\n",
        config.profiles.names().join(", ")
    ));
    match &session.program {
        Program::At(path) if path.is_file() => {
            text.push_str(&format!("  child program: {}\n", path.display()));
            print(text.as_bytes(), exit::SUCCESS)
        }
        Program::At(path) => complain(
            &format!("there is no child program at {}", path.display()),
            exit::REFUSED,
        ),
        Program::Missing(why) => complain(why, exit::REFUSED),
    }
}

fn serve(session: Session, twist: Arc<dyn Twist>) -> ExitCode {
    if let Err(diagnostics) = &session.config {
        // Said here for whoever started the server, and again to every call.
        complain(&faulty(diagnostics), exit::REFUSED);
    }
    if session.nested {
        complain(
            &format!("{MARK_VARIABLE} is set: inside a child nothing is delegated"),
            exit::REFUSED,
        );
    }
    if io::stdin().is_terminal() {
        complain("waiting for MCP messages on standard input", exit::SUCCESS);
    }
    with_runtime(false, |signals| async move {
        let delegator = Arc::new(Delegator::new(Arc::new(session), twist));
        mcp::serve(delegator, signals).await
    })
}

fn run(session: Session, run: Run, twist: Arc<dyn Twist>) -> ExitCode {
    let task = match run.task.as_str() {
        "-" => match task_from_stdin() {
            Ok(task) => task,
            Err(error) => return complain(&error, exit::REFUSED),
        },
        _ => run.task,
    };
    let mut arguments = Map::new();
    arguments.insert("task".into(), task.into());
    arguments.insert("profile".into(), run.profile.clone().into());
    for (name, value) in [("cwd", run.cwd), ("model", run.model)] {
        if let Some(value) = value {
            arguments.insert(name.into(), value.into());
        }
    }
    let (json, quiet, profile) = (run.json, run.quiet, run.profile);
    with_runtime(true, |mut signals| async move {
        let delegator = Delegator::new(Arc::new(session), twist);
        let (result, signal) =
            status::watched(&delegator, &arguments, &profile, quiet, &mut signals).await;
        let code = show(&result, json);
        match signal {
            Some(signal) => signals.die_of(signal),
            None => code,
        }
    })
}

fn task_from_stdin() -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(STDIN_LIMIT + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read the task from standard input: {error}"))?;
    if bytes.len() as u64 > STDIN_LIMIT {
        return Err(format!(
            "the task on standard input is larger than {STDIN_LIMIT} bytes"
        ));
    }
    String::from_utf8(bytes).map_err(|_| "the task on standard input is not UTF-8".to_owned())
}

/// Prints a result: the answer (or everything, as JSON) to stdout, what went wrong to stderr.
fn show(result: &CallResult, json: bool) -> ExitCode {
    let code = match result.outcome {
        Verdict::Success => exit::SUCCESS,
        Verdict::Failed => exit::FAILED,
        Verdict::Refused => exit::REFUSED,
        Verdict::Cancelled => exit::CANCELLED,
        Verdict::Timeout => exit::TIMEOUT,
    };
    // The caps of the result hold here too; this one only shares out the text.
    let blocks = result.text(usize::MAX);
    let (answer, remarks) = if result.ok {
        blocks.split_at(1)
    } else {
        blocks.split_at(0)
    };
    for remark in remarks {
        complain(remark, code);
    }
    for warning in &result.warnings {
        complain(&format!("warning: {warning}"), code);
    }
    if json {
        return match serde_json::to_string(result) {
            Ok(line) => print(format!("{line}\n").as_bytes(), code),
            Err(error) => complain(&error.to_string(), exit::INTERNAL),
        };
    }
    let mut text = answer.concat();
    if result.ok && !text.ends_with('\n') {
        text.push('\n');
    }
    print(text.as_bytes(), code)
}

/// Runs `body` with a runtime and the ending signals. What the runtime still holds at the end (a thread that reads
/// standard input, say) does not keep the program.
fn with_runtime<F>(keep_ignored: bool, body: impl FnOnce(Signals) -> F) -> ExitCode
where
    F: Future<Output = ExitCode>,
{
    // Before any thread is started: they all inherit the mask.
    if let Err(error) = signals::unblock() {
        return complain(&format!("cannot unblock signals: {error}"), exit::INTERNAL);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("cannot start: {error}"), exit::INTERNAL),
    };
    let code = runtime.block_on(async {
        match Signals::install(keep_ignored) {
            Ok(signals) => body(signals).await,
            Err(error) => complain(&format!("cannot handle signals: {error}"), exit::INTERNAL),
        }
    });
    runtime.shutdown_background();
    guardian::dismiss();
    code
}

/// Writes to standard output. A reader that went away is no fault of ours; any other failure is.
fn print(text: &[u8], code: u8) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::from(code),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(code),
        Err(error) => complain(
            &format!("cannot write to standard output: {error}"),
            exit::INTERNAL,
        ),
    }
}

/// Writes to standard error, which may be closed.
fn complain(text: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr().lock(), "delegate: {text}");
    ExitCode::from(code)
}
