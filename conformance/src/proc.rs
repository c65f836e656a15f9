//! What `/proc` says about a process. Everything here may vanish while it is read: then it is `None`.

use std::fs;

use crate::evidence::{Process, Snapshot};

/// Fields of `/proc/PID/stat` that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// State letter, `Z` for a zombie.
    pub state: char,
    /// Parent.
    pub ppid: i32,
    /// Process group.
    pub pgid: i32,
    /// Session.
    pub sid: i32,
    /// Start time in clock ticks since boot: with the pid it names a process for ever.
    pub start_ticks: u64,
}

impl Stat {
    /// Whether it has ended and waits to be reaped (or is being torn down).
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Reads `/proc/PID/stat`.
pub fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The command's name stands in parentheses and may itself contain blanks and parentheses, so fields are counted from the
/// last `)`.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = || fields.next()?.parse::<i64>().ok();
    let (ppid, pgid, sid) = (number()?, number()?, number()?);
    // Field 22; six is the session, so fifteen lie between.
    let start_ticks = fields.nth(15)?.parse().ok()?;
    Some(Stat {
        state,
        ppid: i32::try_from(ppid).ok()?,
        pgid: i32::try_from(pgid).ok()?,
        sid: i32::try_from(sid).ok()?,
        start_ticks,
    })
}

/// Processor time that a process has spent so far, in user and kernel.
pub fn processor_time(pid: i32) -> Option<std::time::Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    // Fields 14 and 15; the state, field 3, is the first here. Linux counts them in hundredths of a second for everybody.
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(std::time::Duration::from_millis((user + system) * 10))
}

/// Command line; empty for a zombie.
pub fn argv(pid: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let trimmed = text.trim_end_matches('\0');
    if trimmed.is_empty() {
        return Vec::new();
    }
    trimmed.split('\0').map(str::to_owned).collect()
}

/// A process as evidence shows it.
pub fn process(pid: i32, stat: &Stat) -> Process {
    Process {
        pid,
        start_ticks: stat.start_ticks,
        ppid: stat.ppid,
        pgid: stat.pgid,
        sid: stat.sid,
        state: stat.state.to_string(),
        argv: argv(pid),
    }
}

/// Direct children, zombies among them.
pub fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return found;
    };
    for task in tasks.flatten() {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    found
}

/// All process ids there are.
pub fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.collect()
}

/// Whether `NAME=VALUE` is in the environment that a process was started with. `false` where it cannot be read.
pub fn has_env(pid: i32, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ
        .split(|byte| *byte == 0)
        .any(|entry| entry == wanted.as_bytes())
}

/// What a process has at the moment.
pub fn snapshot(pid: i32) -> Option<Snapshot> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':')
            .split_ascii_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
    };
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
    let mut live = 0;
    let mut zombies = 0;
    for child in children(pid) {
        match stat(child) {
            Some(stat) if stat.is_dead() => zombies += 1,
            Some(_) => live += 1,
            None => {}
        }
    }
    Some(Snapshot {
        rss: field("VmRSS")? * 1024,
        peak_rss: field("VmHWM")? * 1024,
        fds,
        threads: field("Threads")?,
        children: live,
        zombies,
    })
}

/// Makes the kernel count the peak of resident memory anew from here; where that is not allowed the peak stays since start.
pub fn reset_peak(pid: i32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_blanks_and_parentheses_is_no_trap() {
        let text = "42 (a ) R 1 (b) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 123 45";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.state, stat.ppid, stat.pgid, stat.sid), ('S', 7, 8, 9));
        assert_eq!(stat.start_ticks, 987_654);
    }

    #[test]
    fn own_process_reads_as_itself() {
        let me = std::process::id().cast_signed();
        let stat = stat(me).unwrap();
        assert_eq!(stat.ppid, nix::unistd::getppid().as_raw());
        assert!(!argv(me).is_empty());
        let snapshot = snapshot(me).unwrap();
        assert!(snapshot.rss > 0 && snapshot.peak_rss > 0 && snapshot.fds >= 3);
    }
}
