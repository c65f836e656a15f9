//! Processes below a child: started by it, and what they do themselves.
//!
//! A descendant is this executable again, with [`FLAG`] and its orders. The child goes on only when the descendant has
//! its session, its signals and its journal (it then makes the file `ready/TOKEN`): whoever sees what the child does next
//! also finds the descendant as it was ordered.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::{Deserialize, Serialize};

use crate::act::{self, StreamName};
use crate::journal::{Journal, What};
use crate::{load, start};

/// First argument of a descendant.
pub const FLAG: &str = "--fake-pi-descendant";

/// What a descendant is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Orders {
    name: String,
    token: String,
    act: act::Descendant,
    /// Still has to fork: this process only starts the real one and ends.
    fork: bool,
}

/// How long a child waits for its descendant to be ready; a loaded machine takes its time.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Starts one and waits until it is ready. Gives its process id.
///
/// # Errors
/// When it cannot be started, or does not get ready.
pub fn spawn(act: &act::Descendant, folder: &Path) -> Result<i32, String> {
    let token = uuid::Uuid::new_v4().to_string();
    let name = act.name.clone().unwrap_or_else(|| "descendant".to_owned());
    let orders = Orders {
        name,
        token: token.clone(),
        act: act.clone(),
        fork: act.double_fork,
    };
    let ready = folder.join("ready");
    std::fs::create_dir_all(&ready)
        .map_err(|error| format!("cannot make `{}`: {error}", ready.display()))?;
    let mut command = command(&orders)?;
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot start a descendant: {error}"))?;
    if act.double_fork {
        // The one between has nothing else to do; its end makes the descendant an orphan.
        let _ = child.wait();
    }
    let ready = ready.join(token);
    let deadline = Instant::now() + READY_LIMIT;
    loop {
        if let Ok(pid) = std::fs::read_to_string(&ready)
            && let Ok(pid) = pid.trim().parse()
        {
            let _ = std::fs::remove_file(&ready);
            return Ok(pid);
        }
        if Instant::now() > deadline {
            return Err("a descendant did not get ready".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn command(orders: &Orders) -> Result<Command, String> {
    let exe =
        std::env::current_exe().map_err(|error| format!("cannot find this executable: {error}"))?;
    let text = serde_json::to_string(orders).map_err(|error| error.to_string())?;
    let mut command = Command::new(exe);
    command.arg(FLAG).arg(text);
    let stream = |name| {
        if orders.act.holds.contains(&name) {
            Stdio::inherit()
        } else {
            Stdio::null()
        }
    };
    command
        .stdin(stream(StreamName::Stdin))
        .stdout(stream(StreamName::Stdout))
        .stderr(stream(StreamName::Stderr));
    // The one between only starts the next; group and environment are the descendant's own. With `session` it leads its
    // group anyway, and a process that already leads one could not make a session.
    if !orders.fork {
        if orders.act.group && !orders.act.session {
            command.process_group(0);
        }
        if orders.act.scrubbed {
            command.env_clear();
        }
    }
    Ok(command)
}

/// The descendant's own program.
pub fn main(args: &[OsString]) -> ExitCode {
    if let [word, line, ..] = args
        && word == SHELL
    {
        return become_shell(line);
    }
    let argv: Vec<OsString> = std::env::args_os().take(2).collect();
    let orders = args
        .first()
        .and_then(|text| serde_json::from_str::<Orders>(&text.to_string_lossy()).ok());
    match orders {
        Some(orders) if orders.fork => {
            let next = Orders {
                fork: false,
                ..orders
            };
            let started = command(&next)
                .and_then(|mut command| command.spawn().map_err(|error| error.to_string()));
            ExitCode::from(u8::from(started.is_err()))
        }
        Some(orders) => live(&orders, &argv),
        None => ExitCode::from(crate::EXIT_BAD_SCRIPT),
    }
}

fn live(orders: &Orders, argv: &[OsString]) -> ExitCode {
    let act = &orders.act;
    if act.session {
        // Fails only for a group leader, which nobody made of it.
        let _ = nix::unistd::setsid();
    }
    let seen = start::look("descendant", Some(&orders.name), argv);
    let mut caught = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ] {
        caught.add(signal);
    }
    let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&caught), None);
    let Ok(folder) = load::folder() else {
        return ExitCode::from(crate::EXIT_BAD_SCRIPT);
    };
    let Ok(journal) = Journal::create(&folder.join("journal"), seen) else {
        return ExitCode::from(crate::EXIT_BAD_SCRIPT);
    };
    if act.zombie {
        journal.write(What::Exit {
            code: Some(0),
            signal: None,
        });
        announce(&folder, &orders.token);
        return ExitCode::SUCCESS;
    }
    let Ok(signals) = SignalFd::with_flags(&caught, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
    else {
        return ExitCode::from(crate::EXIT_BAD_SCRIPT);
    };
    announce(&folder, &orders.token);
    let end = Instant::now() + act.lives.map_or(Duration::from_secs(60), |span| span.0);
    let every = act.every.map_or(Duration::from_millis(20), |span| span.0);
    let mut writes = act.writes.clone();
    loop {
        while let Ok(Some(info)) = signals.read_signal() {
            let number = info.ssi_signo as i32;
            let name = start::signal_name(number);
            let ignored = act.ignores.iter().any(|signal| signal.name() == name);
            journal.write(What::Signal {
                name: name.clone(),
                from: i32::try_from(info.ssi_pid).ok(),
            });
            if !ignored {
                journal.write(What::Exit {
                    code: None,
                    signal: Some(name),
                });
                end_by(number, &caught);
            }
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            journal.write(What::Exit {
                code: Some(0),
                signal: None,
            });
            return ExitCode::SUCCESS;
        }
        if let Some(text) = &writes
            && let Err((stream, error)) = write_to(act, text)
        {
            journal.write(What::WriteFailed {
                stream: stream.to_owned(),
                error: format!("{error:?}"),
            });
            writes = None;
        }
        let wait = if writes.is_some() {
            left.min(every)
        } else {
            left
        };
        let timeout =
            PollTimeout::try_from(wait.min(Duration::from_secs(30))).unwrap_or(PollTimeout::MAX);
        let _ = poll(
            &mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)],
            timeout,
        );
    }
}

fn announce(folder: &Path, token: &str) {
    let path = folder.join("ready").join(token);
    // Written under another name first: the reader must never see half a number.
    let draft = path.with_extension("draft");
    let pid = nix::unistd::getpid().as_raw().to_string();
    if std::fs::write(&draft, pid).is_ok() {
        let _ = std::fs::rename(draft, path);
    }
}

/// Writes to the stream that it holds; tells which one failed, and how.
fn write_to(act: &act::Descendant, text: &str) -> Result<(), (&'static str, Errno)> {
    let held = |name| act.holds.contains(&name);
    let (name, result) = if held(StreamName::Stdout) || !held(StreamName::Stderr) {
        let mut out = std::io::stdout();
        let result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        ("stdout", result)
    } else {
        ("stderr", std::io::stderr().write_all(text.as_bytes()))
    };
    result.map_err(|error| {
        let number = error
            .raw_os_error()
            .map_or(Errno::UnknownErrno, Errno::from_raw);
        (name, number)
    })
}

/// Second word of a descendant that becomes a shell in a session of its own.
const SHELL: &str = "--shell";

/// A command that a tool runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    reader: Option<std::thread::JoinHandle<()>>,
    output: Arc<Mutex<Vec<u8>>>,
    code: Option<i32>,
    ended_at: Option<Instant>,
}

/// How long after the shell's end a held pipe is still read, as in the real Pi.
const PIPE_PATIENCE: Duration = Duration::from_millis(100);

/// Runs a command line the way Pi's bash tool does: leader of its own session, `/dev/null` for input, output on a pipe.
///
/// # Errors
/// When it cannot be started.
pub fn shell(line: &str) -> Result<Running, String> {
    let told = |error: std::io::Error| format!("cannot run `{line}`: {error}");
    let exe = std::env::current_exe().map_err(told)?;
    let (mut reading, writing) = std::io::pipe().map_err(told)?;
    let mut command = Command::new(exe);
    command.arg(FLAG).arg(SHELL).arg(line);
    command
        .stdin(Stdio::null())
        .stdout(writing.try_clone().map_err(told)?)
        .stderr(writing);
    let child = command.spawn().map_err(told)?;
    drop(command);
    let output = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&output);
    let reader = std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = reading.read(&mut chunk) {
            sink.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend_from_slice(&chunk[..count]);
        }
    });
    Ok(Running {
        child,
        reader: Some(reader),
        output,
        code: None,
        ended_at: None,
    })
}

impl Running {
    /// The exit code, once the shell has ended and its output is in (or its pipe is held by somebody else).
    pub fn ended(&mut self) -> Option<i32> {
        if self.code.is_none() {
            let status = self.child.try_wait().ok().flatten()?;
            self.code = Some(status.code().unwrap_or(1));
            self.ended_at = Some(Instant::now());
        }
        let finished = self
            .reader
            .as_ref()
            .is_none_or(std::thread::JoinHandle::is_finished);
        let late = self
            .ended_at
            .is_some_and(|at| at.elapsed() >= PIPE_PATIENCE);
        self.code.filter(|_| finished || late)
    }

    /// Kills the command's whole group.
    pub fn kill(&mut self) {
        let group = nix::unistd::Pid::from_raw(self.child.id() as i32);
        let _ = nix::sys::signal::killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }

    /// What it printed so far.
    pub fn output(&self) -> String {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&output).into_owned()
    }
}

fn become_shell(line: &OsString) -> ExitCode {
    let _ = nix::unistd::setsid();
    let error = Command::new("/bin/sh").arg("-c").arg(line).exec();
    let _ = writeln!(std::io::stderr(), "cannot run a shell: {error}");
    ExitCode::from(127)
}

/// Whether the descendant with this name has ended, as far as its journal and the kernel know.
pub fn has_ended(folder: &Path, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let start = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        serde_json::from_str::<crate::journal::Entry>(text.lines().next()?).ok()
    };
    entries
        .flatten()
        .filter_map(|entry| start(entry.path()))
        .any(|entry| match entry.what {
            What::Start(start) => {
                start.name.as_deref() == Some(name)
                    && !Path::new(&format!("/proc/{}", entry.pid)).exists()
            }
            _ => false,
        })
}

/// Ends this process by a signal's default action.
pub fn end_by(number: i32, blocked: &SigSet) -> ! {
    let _ = pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(blocked), None);
    if let Ok(signal) = Signal::try_from(number) {
        // Twice: Rust's own handler for SIGSEGV only restores the default the first time.
        let _ = raise(signal);
        let _ = raise(signal);
    }
    // An ignored signal ends nobody; a shell would show it like this.
    std::process::exit(128 + number)
}
