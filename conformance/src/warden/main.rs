//! The warden's one loop.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use rustix::fs::inotify;

use super::launch::launch;
use super::protocol::{Order, Report, Start, encode_stderr};
use super::tree::{Changes, Tree};
use crate::clock::now_ns;
use crate::proc;

/// Between two walks while things happen.
const QUICK: Duration = Duration::from_millis(5);
/// Between two walks while nothing happens; starts and ends of fake-pi wake the warden anyway.
const CALM: Duration = Duration::from_millis(40);
/// Between two samples that the warden takes by itself.
const SAMPLE: Duration = Duration::from_millis(250);
/// By so much the peak must have grown for such a sample to be reported.
const PEAK_STEP: u64 = 1 << 20;
/// Longest time for killed processes to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of standard error that are reported; the rest is read and dropped.
const STDERR_KEPT: usize = 1 << 20;

/// The hidden subcommand `warden`. Its descriptor 2 is the socket to the runner; 0 and 1 become the subject's.
pub fn main() -> ExitCode {
    match Warden::start() {
        Ok(mut warden) => {
            warden.work();
            ExitCode::SUCCESS
        }
        // There is nobody to tell: the socket is what could not be had.
        Err(_) => ExitCode::FAILURE,
    }
}

struct Warden {
    orders: BufReader<UnixStream>,
    reports: UnixStream,
    signals: SignalFd,
    journals: Option<OwnedFd>,
    stderr: Option<io::PipeReader>,
    stderr_kept: usize,
    tree: Tree,
    subject: Option<Pid>,
    exited: bool,
    pause: Duration,
    next_walk: Instant,
    next_sample: Instant,
    peak: u64,
    folder: Option<String>,
    finishing: Option<Instant>,
}

impl Warden {
    fn start() -> io::Result<Self> {
        let socket = io::stderr().as_fd().try_clone_to_owned()?;
        let reports = UnixStream::from(socket);
        let mut orders = BufReader::new(reports.try_clone()?);
        // Nothing that the subject sends to its parent may end the warden: all signals come through the descriptor.
        let mask = SigSet::all();
        mask.thread_block()?;
        let signals = SignalFd::with_flags(
            &SigSet::from(Signal::SIGCHLD),
            SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
        )?;
        nix::sys::prctl::set_child_subreaper(true)?;

        let mut line = String::new();
        orders.read_line(&mut line)?;
        let Ok(Order::Start(start)) = serde_json::from_str(&line) else {
            return Err(io::Error::other("the first order is not to start"));
        };
        let (read, write) = io::pipe()?;
        let mut warden = Self {
            orders,
            reports,
            signals,
            journals: watch(&start.journals),
            stderr: Some(read),
            stderr_kept: 0,
            tree: Tree::new(std::process::id().cast_signed(), start.mark.clone()),
            subject: None,
            exited: false,
            pause: QUICK,
            next_walk: Instant::now(),
            next_sample: Instant::now() + SAMPLE,
            peak: 0,
            folder: start.folder.clone(),
            finishing: None,
        };
        warden.launch(&start, &OwnedFd::from(write));
        Ok(warden)
    }

    fn launch(&mut self, start: &Start, stderr: &OwnedFd) {
        match launch(start, stderr) {
            Ok(pid) => {
                self.subject = Some(pid);
                self.report(&Report::Started {
                    t_ns: now_ns(),
                    pid: pid.as_raw(),
                });
            }
            Err(message) => {
                self.exited = true;
                self.report(&Report::NotStarted { message });
            }
        }
        // The subject's streams belong to the subject alone: an end held here would keep them open after it.
        if let Err(error) = release_standard_streams() {
            self.report(&Report::Fault {
                message: format!("cannot let go of the subject's streams: {error}"),
            });
        }
    }

    /// Until the runner says `Finish`, or dies.
    fn work(&mut self) {
        loop {
            self.wait();
            self.reap();
            self.read_stderr();
            if let Some(journals) = &self.journals {
                let mut bytes = [0; 4096];
                if nix::unistd::read(journals, &mut bytes).is_ok_and(|read| read > 0) {
                    self.next_walk = Instant::now();
                }
            }
            if Instant::now() >= self.next_walk {
                self.walk();
            }
            if Instant::now() >= self.next_sample {
                self.sample_by_itself();
            }
            if !self.take_orders() {
                self.abandoned();
                return;
            }
            if let Some(until) = self.finishing
                && (self.tree.is_empty() || Instant::now() >= until)
            {
                self.finish();
                return;
            }
        }
    }

    /// Waits until something happens or something is due.
    fn wait(&mut self) {
        if !self.orders.buffer().is_empty() {
            return;
        }
        let mut due = self.next_walk.min(self.next_sample);
        if let Some(until) = self.finishing {
            due = due.min(until);
        }
        let left = due.saturating_duration_since(Instant::now());
        // Rounded up, or the last fraction of a millisecond would be spent spinning.
        let millis = u16::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        let mut fds = vec![
            PollFd::new(self.reports.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        let more = self.journals.iter().map(|fd| fd.as_fd());
        let more = more.chain(self.stderr.iter().map(|pipe| pipe.as_fd()));
        for fd in more.chain(self.tree.fds()) {
            fds.push(PollFd::new(fd, PollFlags::POLLIN));
        }
        let woken = poll(&mut fds, PollTimeout::from(millis)).unwrap_or(0) > 0;
        // A process has ended: say so at once, since a check may count from here.
        let ended = fds[2..].iter().any(|fd| fd.any().unwrap_or(false));
        if woken && ended {
            self.next_walk = Instant::now();
        }
    }

    /// Takes in what has ended: the subject with its wait status, and orphans.
    fn reap(&mut self) {
        while let Ok(Some(_)) = self.signals.read_signal() {}
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Ok(status) = waitid(Id::All, peek) {
            let Some(pid) = status.pid() else {
                return;
            };
            // Before its number is free again: an orphan that lived too short to be seen is seen now.
            self.walk();
            let t_ns = now_ns();
            let (code, signal) = match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => (Some(code), None),
                Ok(WaitStatus::Signaled(_, signal, _)) => (None, Some(short(signal))),
                _ => return,
            };
            let report = if Some(pid) == self.subject {
                self.exited = true;
                Report::Exited { t_ns, code, signal }
            } else {
                Report::Reaped {
                    t_ns,
                    pid: pid.as_raw(),
                    code,
                    signal,
                }
            };
            self.report(&report);
        }
    }

    fn walk(&mut self) {
        let changes = self.tree.look();
        self.pause = if changes.is_empty() {
            (self.pause * 5 / 4).min(CALM)
        } else {
            QUICK
        };
        self.next_walk = Instant::now() + self.pause;
        self.tell(changes);
    }

    fn tell(&mut self, changes: Changes) {
        let t_ns = now_ns();
        for process in changes.seen {
            self.report(&Report::Seen { t_ns, process });
        }
        for (pid, start_ticks) in changes.gone {
            self.report(&Report::Gone {
                t_ns,
                pid,
                start_ticks,
            });
        }
    }

    fn read_stderr(&mut self) {
        let Some(pipe) = &mut self.stderr else {
            return;
        };
        let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::ZERO).unwrap_or(0) == 0 {
            return;
        }
        let mut bytes = [0; 64 << 10];
        match pipe.read(&mut bytes) {
            Ok(0) | Err(_) => self.stderr = None,
            Ok(read) => {
                let kept = read.min(STDERR_KEPT - self.stderr_kept);
                self.stderr_kept += kept;
                if kept > 0 {
                    self.report(&Report::Stderr(encode_stderr(&bytes[..kept])));
                }
            }
        }
    }

    /// Samples of its own show the peak of a subject that dies before anyone asks.
    fn sample_by_itself(&mut self) {
        self.next_sample = Instant::now() + SAMPLE;
        let Some(pid) = self.subject.filter(|_| !self.exited) else {
            return;
        };
        if let Some(snapshot) = proc::snapshot(pid.as_raw())
            && snapshot.peak_rss > self.peak + PEAK_STEP
        {
            self.peak = snapshot.peak_rss;
            self.report(&Report::Sampled {
                id: 0,
                t_ns: now_ns(),
                snapshot: Some(snapshot),
            });
        }
    }

    /// `false`: the runner has gone.
    fn take_orders(&mut self) -> bool {
        loop {
            if self.orders.buffer().is_empty() {
                let mut fds = [PollFd::new(self.reports.as_fd(), PollFlags::POLLIN)];
                if poll(&mut fds, PollTimeout::ZERO).unwrap_or(0) == 0 {
                    return true;
                }
            }
            let mut line = String::new();
            if self.orders.read_line(&mut line).unwrap_or(0) == 0 {
                return false;
            }
            match serde_json::from_str(&line) {
                Ok(order) => self.obey(order),
                Err(error) => self.report(&Report::Fault {
                    message: format!("the warden does not understand an order: {error}"),
                }),
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start(_) => self.report(&Report::Fault {
                message: "the warden was told to start a second subject".to_owned(),
            }),
            Order::Sample { id, reset_peak } => {
                let pid = self.subject.filter(|_| !self.exited).map(Pid::as_raw);
                let snapshot = pid.and_then(proc::snapshot);
                if let (Some(pid), true) = (pid, reset_peak) {
                    proc::reset_peak(pid);
                    self.peak = snapshot.as_ref().map_or(0, |snapshot| snapshot.rss);
                }
                self.report(&Report::Sampled {
                    id,
                    t_ns: now_ns(),
                    snapshot,
                });
            }
            Order::Signal { signal } => {
                let changes = self.tree.look();
                self.tell(changes);
                let sent = match (self.subject, signal_of(&signal)) {
                    (Some(pid), Some(signal)) => self.tree.signal(pid.as_raw(), signal),
                    _ => false,
                };
                if !sent && !self.exited {
                    self.report(&Report::Fault {
                        message: format!("cannot send {signal} to the subject"),
                    });
                }
            }
            Order::Finish { grace_ms } => {
                self.finishing = Some(Instant::now() + Duration::from_millis(grace_ms));
                self.next_walk = Instant::now();
                self.pause = QUICK;
                let changes = self.tree.look_for_marked();
                self.tell(changes);
                self.walk();
            }
        }
    }

    /// Tells who is left, ends them, says goodbye.
    fn finish(&mut self) {
        let mut changes = self.tree.look();
        let marked = self.tree.look_for_marked();
        changes.seen.extend(marked.seen);
        changes.gone.extend(marked.gone);
        self.tell(changes);
        let processes = self.tree.members();
        self.report(&Report::Survivors {
            t_ns: now_ns(),
            processes,
        });
        // What is ended from here on was ended by the harness: it is no evidence any more.
        if !self.end_all() {
            let left = self.tree.members();
            let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
            self.report(&Report::Fault {
                message: format!("cannot end the processes {}", pids.join(" ")),
            });
        }
        while self.stderr.is_some() && self.stderr_is_ready() {
            self.read_stderr();
        }
        self.report(&Report::Done);
    }

    fn stderr_is_ready(&self) -> bool {
        let Some(pipe) = &self.stderr else {
            return false;
        };
        let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).unwrap_or(0) > 0
    }

    /// The runner died: nobody listens, so there is only tidying up.
    fn abandoned(&mut self) {
        self.end_all();
        if let Some(folder) = &self.folder {
            crate::sandbox::remove_abandoned(std::path::Path::new(folder));
        }
    }

    /// Kills until nobody is left. `false` when some cannot be ended.
    fn end_all(&mut self) -> bool {
        let until = Instant::now() + KILL_PATIENCE;
        loop {
            self.tree.look();
            self.tree.look_for_marked();
            if self.tree.is_empty() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            self.tree.signal_all(rustix::process::Signal::KILL);
            let fds: Vec<_> = self.tree.fds().collect();
            let mut fds: Vec<PollFd<'_>> = fds
                .into_iter()
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
                .collect();
            let _ = poll(&mut fds, PollTimeout::from(20u16));
            while matches!(
                waitpid(None, Some(WaitPidFlag::WNOHANG)),
                Ok(status) if status != WaitStatus::StillAlive
            ) {}
        }
    }

    fn report(&mut self, report: &Report) {
        // A runner that does not listen any more is noticed where orders are taken.
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            let _ = self.reports.write_all(&line);
        }
    }
}

/// Puts `/dev/null` where the subject's input and output were.
fn release_standard_streams() -> io::Result<()> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    Ok(())
}

/// A descriptor that is readable once a file was made in one of these folders.
fn watch(folders: &[String]) -> Option<OwnedFd> {
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    // Without it the warden walks by the clock alone, which only makes it less exact.
    let watcher = inotify::init(flags).ok()?;
    for folder in folders {
        let _ = inotify::add_watch(&watcher, folder.as_str(), inotify::WatchFlags::CREATE);
    }
    debug_assert!(watcher.as_raw_fd() > 2);
    Some(watcher)
}

/// `TERM` for `SIGTERM`.
fn short(signal: Signal) -> String {
    signal.as_str().trim_start_matches("SIG").to_owned()
}

fn signal_of(name: &str) -> Option<rustix::process::Signal> {
    let signal: Signal = name.parse().ok()?;
    rustix::process::Signal::from_named_raw(signal as i32)
}
