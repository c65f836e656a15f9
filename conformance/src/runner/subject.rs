//! One subject behind its warden.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::command::CommandHost;
use super::host::Host;
use super::mcp::Mcp;
use super::pi::{Model, PiHost};
use super::recorder::Recorder;
use super::wire::output_of;
use crate::adapter::ParentPi;
use crate::evidence::What;
use crate::warden::{Order, Report, Start};

/// Longest time for a warden to say goodbye after it was told to finish.
const GOODBYE: Duration = Duration::from_secs(20);
/// Longest time for the rest of the output to be read after that.
const OUTPUT: Duration = Duration::from_secs(10);

/// How a subject is talked to.
pub enum Talk {
    /// As an MCP server.
    Mcp,
    /// As a command.
    Command,
    /// As an extension in a real parent.
    Pi(Box<TalkPi>),
}

/// What it takes to talk to a parent Pi.
pub struct TalkPi {
    /// What the adapter says about it.
    pub parent: ParentPi,
    /// The parent's line tells `agent_settled`.
    pub tells_settled: bool,
    /// Its model.
    pub model: Model,
}

/// A subject that was started. Dropped early, its warden ends everything below it.
pub struct Subject {
    name: String,
    /// How it is talked to.
    pub host: Box<dyn Host>,
    orders: UnixStream,
    warden: Child,
    recorder: Arc<Recorder>,
    /// The input was closed by a step, or at the end.
    pub closed: bool,
}

impl Subject {
    /// Starts a warden, which starts the subject.
    ///
    /// # Errors
    /// When the warden itself cannot be started.
    pub fn start(
        name: &str,
        executable: &Path,
        start: Start,
        talk: Talk,
        recorder: Arc<Recorder>,
    ) -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut warden = Command::new(executable)
            .arg0("pi-conform")
            .arg("warden")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(OwnedFd::from(theirs))
            // Keys pressed at the terminal are for the runner, which then ends everything in order.
            .process_group(0)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (warden.stdin.take(), warden.stdout.take()) else {
            return Err(std::io::Error::other("the warden has no streams"));
        };
        let argv = start.argv.clone();
        let heard = Arc::clone(&recorder);
        let host: Box<dyn Host> = match talk {
            Talk::Mcp => Box::new(Mcp::new(name, stdin, stdout, heard)),
            Talk::Command => Box::new(CommandHost::new(name, stdin, stdout, heard)),
            Talk::Pi(talk) => Box::new(PiHost::new(name, stdin, stdout, heard, *talk)),
        };
        let mut subject = Self {
            name: name.to_owned(),
            host,
            orders: ours.try_clone()?,
            warden,
            recorder: Arc::clone(&recorder),
            closed: false,
        };
        subject.order(&Order::Start(Box::new(start)));
        let name = name.to_owned();
        std::thread::spawn(move || listen(&name, &argv, ours, &recorder));
        Ok(subject)
    }

    /// Gives the warden an order.
    pub fn order(&mut self, order: &Order) {
        if let Ok(mut line) = serde_json::to_vec(order) {
            line.push(b'\n');
            // A warden that has died is noticed by the thread that listens to it.
            let _ = self.orders.write_all(&line);
        }
    }

    /// Closes the input, once.
    pub fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.host.close();
        }
    }

    /// Lets the warden look for survivors, end what is left, and go.
    pub fn finish(mut self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.order(&Order::Finish { grace_ms });
        let until = Instant::now() + grace + GOODBYE;
        while !self.recorder.is_finished(&self.name) && Instant::now() < until {
            self.recorder.wait(Duration::from_millis(100));
        }
        if !self.recorder.is_finished(&self.name) {
            self.recorder
                .fault(format!("the warden of `{}` did not finish", self.name));
            let _ = self.warden.kill();
        }
        // Everybody who held the subject's output has gone, so its end is near; what was written counts.
        let until = Instant::now() + OUTPUT;
        while !self.recorder.is_finished(&output_of(&self.name)) && Instant::now() < until {
            self.recorder.wait(Duration::from_millis(100));
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // With the socket closed a warden that still runs knows that nobody waits for it, and tidies up.
        let _ = self.orders.shutdown(std::net::Shutdown::Both);
        let until = Instant::now() + GOODBYE;
        while matches!(self.warden.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = self.warden.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Turns the warden's reports into events.
fn listen(name: &str, argv: &[String], socket: UnixStream, recorder: &Recorder) {
    let mut done = false;
    for line in BufReader::new(socket).lines() {
        let Ok(line) = line else {
            break;
        };
        match serde_json::from_str::<Report>(&line) {
            Ok(Report::Done) => {
                done = true;
                break;
            }
            Ok(report) => note(name, argv, report, recorder),
            // What is no report is the warden's own standard error: it panicked.
            Err(_) => recorder.fault(format!("the warden of `{name}` says: {line}")),
        }
    }
    if !done {
        recorder.fault(format!("the warden of `{name}` died"));
    }
    recorder.lose(name);
    recorder.finish(name);
}

fn note(name: &str, argv: &[String], report: Report, recorder: &Recorder) {
    let subject = name.to_owned();
    match report {
        Report::Started { t_ns, pid } => recorder.note_at(
            t_ns,
            What::SubjectStarted {
                subject,
                pid,
                argv: argv.to_vec(),
            },
        ),
        Report::NotStarted { message } => {
            recorder.fault(format!("cannot start {message}"));
            recorder.lose(name);
        }
        Report::Seen { t_ns, process } => {
            recorder.note_at(t_ns, What::ProcessSeen(Box::new(process)))
        }
        Report::Gone {
            t_ns,
            pid,
            start_ticks,
        } => {
            recorder.note_at(t_ns, What::ProcessGone { pid, start_ticks });
        }
        Report::Reaped {
            t_ns,
            pid,
            code,
            signal,
        } => {
            recorder.note_at(t_ns, What::OrphanReaped { pid, code, signal });
        }
        Report::Exited { t_ns, code, signal } => {
            recorder.note_at(
                t_ns,
                What::SubjectExited {
                    subject,
                    code,
                    signal,
                },
            );
        }
        Report::Sampled {
            id: 0,
            t_ns,
            snapshot: Some(sample),
        } => {
            let name = "auto".to_owned();
            recorder.note_at(
                t_ns,
                What::Sample {
                    name,
                    subject,
                    sample,
                },
            );
        }
        Report::Sampled { id, snapshot, .. } => recorder.put_sample(id, snapshot),
        Report::Stderr(text) => recorder.put_stderr(name, &Report::stderr_bytes(&text)),
        Report::Survivors { processes, .. } => recorder.put_survivors(processes),
        Report::Fault { message } => recorder.fault(message),
        Report::Done => {}
    }
}
