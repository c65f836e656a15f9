//! Starting the subject with just the descriptors, signals and limits that it is to have.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::str::FromStr as _;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use super::protocol::{MARK, Start};

/// Starts the subject: it gets the warden's descriptors 0 and 1, and `stderr` as 2; nothing else. It leads a process group
/// of its own, so that a subject that signals "its group" does not reach the harness.
///
/// # Errors
/// When the program cannot be started; the text completes "cannot start …".
pub fn launch(start: &Start, stderr: &OwnedFd) -> Result<Pid, String> {
    let argv = argv(start);
    let program = argv.first().ok_or("an empty command")?.clone();
    let text =
        |text: &str| CString::new(text).map_err(|_| format!("`{text}`, which contains a NUL byte"));
    let args = argv
        .iter()
        .map(|arg| text(arg))
        .collect::<Result<Vec<_>, _>>()?;
    let mut env = start
        .env
        .iter()
        .map(|(name, value)| text(&format!("{name}={value}")))
        .collect::<Result<Vec<_>, _>>()?;
    env.push(text(&format!("{MARK}={}", start.mark))?);
    std::env::set_current_dir(&start.cwd)
        .map_err(|error| format!("in `{}`: {error}", start.cwd))?;

    let wrong = |error: nix::Error| format!("`{program}`: {}", error.desc());
    let mut files = PosixSpawnFileActions::init().map_err(wrong)?;
    files.add_dup2(stderr.as_raw_fd(), 2).map_err(wrong)?;
    // Whoever started the runner may have left descriptors open in it; a child that has them would be held against the subject.
    for fd in open_descriptors() {
        files.add_close(fd).map_err(wrong)?;
    }
    let mut attributes = PosixSpawnAttr::init().map_err(wrong)?;
    attributes
        .set_sigmask(&signals(&start.blocked)?)
        .map_err(wrong)?;
    // Rust's runtime ignores SIGPIPE; the subject must not inherit that from us.
    attributes
        .set_sigdefault(&SigSet::from(Signal::SIGPIPE))
        .map_err(wrong)?;
    attributes.set_pgroup(Pid::from_raw(0)).map_err(wrong)?;
    attributes
        .set_flags(
            PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
                | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF
                | PosixSpawnFlags::POSIX_SPAWN_SETPGROUP,
        )
        .map_err(wrong)?;
    posix_spawn(program.as_str(), &files, &attributes, &args, &env).map_err(wrong)
}

/// Numbers of the descriptors above 2 that are open here.
fn open_descriptors() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|fd| *fd > 2).collect()
}

/// The command, behind a shell when something must be set that only the process itself can set before it becomes the
/// subject: ignored signals and the limit of descriptors both outlive `exec`.
fn argv(start: &Start) -> Vec<String> {
    let mut prelude = String::new();
    if let Some(limit) = start.descriptors {
        prelude += &format!("ulimit -n {limit}; ");
    }
    if !start.ignored.is_empty() {
        let names: Vec<&str> = start
            .ignored
            .iter()
            .map(|name| name.trim_start_matches("SIG"))
            .collect();
        prelude += &format!("trap '' {}; ", names.join(" "));
    }
    if prelude.is_empty() {
        return start.argv.clone();
    }
    let shell = ["/bin/sh", "-c", &format!("{prelude}exec \"$@\""), "sh"].map(str::to_owned);
    shell
        .into_iter()
        .chain(start.argv.iter().cloned())
        .collect()
}

/// A set out of full names.
fn signals(names: &[String]) -> Result<SigSet, String> {
    let mut set = SigSet::empty();
    for name in names {
        set.add(
            Signal::from_str(name)
                .map_err(|_| format!("with `{name}` blocked: there is no such signal"))?,
        );
    }
    Ok(set)
}
