//! What a process finds at its start: for the first entry of its journal.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use indexmap::IndexMap;
use nix::unistd::{getpgid, getpid, getppid, getsid};

use crate::journal::{Descriptor, Start};

/// Whether SIGPIPE was ignored when the process was started. Rust's runtime ignores it before `main`, so the
/// disposition that was inherited can only be read before that.
mod inherited {
    use std::sync::atomic::{AtomicBool, Ordering};

    static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

    #[expect(
        unsafe_code,
        reason = "runs before the runtime; asks the kernel for one disposition and changes nothing"
    )]
    #[used]
    #[unsafe(link_section = ".init_array")]
    static ASK: extern "C" fn() = {
        extern "C" fn ask() {
            let mut old = std::mem::MaybeUninit::<nix::libc::sigaction>::zeroed();
            // SAFETY: with a null `act` sigaction only writes the current disposition to `old`, which is large enough.
            let ignored = unsafe {
                nix::libc::sigaction(nix::libc::SIGPIPE, std::ptr::null(), old.as_mut_ptr()) == 0
                    && old.assume_init().sa_sigaction == nix::libc::SIG_IGN
            };
            SIGPIPE_IGNORED.store(ignored, Ordering::Relaxed);
        }
        ask
    };

    pub fn sigpipe_ignored() -> bool {
        SIGPIPE_IGNORED.load(Ordering::Relaxed)
    }
}

/// Looks at this process. Must be called before it opens anything or changes its signal state.
pub fn look(role: &str, name: Option<&str>, argv: &[std::ffi::OsString]) -> Start {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ppid = getppid().as_raw();
    let mut ignored = signals(&status, "SigIgn:");
    ignored.retain(|signal| signal != "PIPE" || inherited::sigpipe_ignored());
    Start {
        role: role.to_owned(),
        name: name.map(str::to_owned),
        argv: argv
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        env: std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .collect::<IndexMap<_, _>>(),
        cwd: std::env::current_dir()
            .map_or(String::new(), |path| path.to_string_lossy().into_owned()),
        ppid,
        parent_argv: command_line(ppid),
        pgid: getpgid(None).map_or(0, nix::unistd::Pid::as_raw),
        sid: getsid(None).map_or(0, nix::unistd::Pid::as_raw),
        start_ticks: start_ticks(),
        fds: descriptors(),
        blocked: signals(&status, "SigBlk:"),
        ignored,
    }
}

fn command_line(pid: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    line.split(|byte| *byte == 0)
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect()
}

/// Field 22 of `/proc/self/stat`; the command name before it may hold blanks and parentheses.
pub fn start_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    after
        .split(' ')
        .nth(19)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}

fn descriptors() -> Vec<Descriptor> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let me = format!("/proc/{}/fd", getpid());
    let mut found: Vec<Descriptor> = entries
        .flatten()
        .filter_map(|entry| {
            let fd = entry.file_name().to_string_lossy().parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            // The descriptor that reads this very folder is ours.
            let own = target.as_os_str().as_bytes() == me.as_bytes();
            (!own).then(|| Descriptor {
                fd,
                target: target.to_string_lossy().into_owned(),
            })
        })
        .collect();
    found.sort_by_key(|descriptor| descriptor.fd);
    found
}

/// Names of the signals in a mask of `/proc/self/status`.
fn signals(status: &str, field: &str) -> Vec<String> {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let mask = line
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    // 32 and above are real-time signals, the first two of them the C library's own.
    (1..32)
        .filter(|number| mask & (1 << (number - 1)) != 0)
        .map(signal_name)
        .collect()
}

/// `TERM` for 15.
pub fn signal_name(number: i32) -> String {
    match nix::sys::signal::Signal::try_from(number) {
        Ok(signal) => signal.as_str().trim_start_matches("SIG").to_owned(),
        Err(_) => number.to_string(),
    }
}
