//! The signals that end this program, and the signal state that its children inherit.
//!
//! A handled signal is at its default again in whatever is executed, so installing a handler here is what gives
//! children a clean state; no code runs between fork and exec for it.

use std::io;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

/// Signals that end every child tree and then this program, in the order in which they are looked at.
pub const ENDING: [Signal; 4] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGQUIT,
];

/// Unblocks every signal in this thread and all that are started from it; to be called before there are others.
pub fn unblock() -> io::Result<()> {
    SigSet::empty().thread_set_mask().map_err(io::Error::from)
}

/// Listeners for the ending signals.
pub struct Signals {
    ending: Vec<(Signal, Listener)>,
    _quiet: Vec<Listener>,
}

impl Signals {
    /// Installs them. `keep_ignored`: an ending signal that this program was started with as ignored (as `nohup` does
    /// with HUP) stays without effect on it, while its children get the default all the same.
    ///
    /// # Errors
    /// The system refuses a handler. Must be called within a runtime.
    pub fn install(keep_ignored: bool) -> io::Result<Self> {
        let ignored = ignored();
        let mut ending = Vec::new();
        for signal_number in ENDING {
            let listener = listen(signal_number)?;
            if !(keep_ignored && ignored.contains(&signal_number)) {
                ending.push((signal_number, listener));
            }
        }
        // Others that came ignored: still without effect here, at their default in children. PIPE is left to the
        // standard library, and job control to the shell.
        let mut quiet = Vec::new();
        for signal_number in ignored {
            let left = [
                Signal::SIGPIPE,
                Signal::SIGCHLD,
                Signal::SIGKILL,
                Signal::SIGSTOP,
            ];
            if !ENDING.contains(&signal_number) && !left.contains(&signal_number) {
                // Some cannot be handled (SEGV and its like); nobody starts a program with those ignored.
                quiet.extend(listen(signal_number));
            }
        }
        Ok(Self {
            ending,
            _quiet: quiet,
        })
    }

    /// Waits for the next ending signal.
    pub async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (number, listener) in &mut self.ending {
                if listener.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Dies of `signal`, as whoever waits for this program expects to see.
    pub fn die_of(&self, signal: Signal) -> ExitCode {
        crate::pi::guardian::dismiss();
        let _ = signal_hook::low_level::emulate_default_handler(signal as i32);
        // Not reached for the signals of `ENDING`; a shell's way to say the same.
        ExitCode::from(128 + u8::try_from(signal as i32).unwrap_or(0))
    }
}

fn listen(number: Signal) -> io::Result<Listener> {
    signal(SignalKind::from_raw(number as i32))
}

/// The signals that are ignored in this process.
fn ignored() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    Signal::iterator()
        .filter(|&number| mask & (1 << (number as i32 - 1)) != 0)
        .collect()
}
