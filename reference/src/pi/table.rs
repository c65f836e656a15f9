//! The kernel's process table, as far as a tree needs it: who lives, below whom, and with which mark.
//!
//! A process is named by its id and its start time; an id alone is given to somebody else some day.

use std::collections::HashMap;
use std::fs;

use super::outcome::MARK_VARIABLE;

/// A process and when it started; together they name it for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Process id.
    pub pid: i32,
    /// Start in clock ticks since boot.
    pub start: u64,
}

/// One line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The process.
    pub who: Identity,
    /// Id of its parent.
    pub parent: i32,
    /// Id of its group.
    pub group: i32,
    /// Ended: a zombie is dead, and so is what is about to vanish (`field.zombie-is-not-alive`).
    pub dead: bool,
}

/// Reads `/proc/PID/stat`; `None` when there is no such process any more.
pub fn stat(pid: i32) -> Option<Seen> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The command's name stands in parentheses and may hold anything.
fn parse_stat(pid: i32, text: &str) -> Option<Seen> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Seen {
        who: Identity {
            pid,
            start: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

/// The run's mark in a process's environment.
pub fn mark(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let mark = entries.find_map(|entry| {
        let value = entry.strip_prefix(MARK_VARIABLE.as_bytes())?;
        value.strip_prefix(b"=")
    })?;
    Some(String::from_utf8_lossy(mark).into_owned())
}

/// Every process below `root`, by its id.
///
/// Walks from parent to child, which costs by the size of the tree and not by that of the machine; where the kernel
/// does not list children, the whole table is read.
pub fn below(root: i32) -> HashMap<i32, Seen> {
    let Some(first) = children(root) else {
        return among(everyone(), root);
    };
    let mut found = HashMap::new();
    let mut open = first;
    while let Some(pid) = open.pop() {
        if let Some(seen) = stat(pid) {
            // A process whose parent died meanwhile is met again where it came home; once is enough.
            if found.insert(pid, seen).is_none() {
                open.extend(children(pid).unwrap_or_default());
            }
        }
    }
    found
}

/// The children of a process, whichever of its threads started them. `None` when the kernel does not say.
fn children(pid: i32) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    let mut known = false;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        if let Ok(list) = fs::read_to_string(thread.path().join("children")) {
            known = true;
            all.extend(
                list.split_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            );
        }
    }
    known.then_some(all)
}

/// Every process that can be seen.
pub fn everyone() -> HashMap<i32, Seen> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

/// Those of `all` that are below `root`.
fn among(all: HashMap<i32, Seen>, root: i32) -> HashMap<i32, Seen> {
    let is_below = |seen: &Seen| {
        let mut at = *seen;
        // No chain of parents is longer than the table; one that changes while it is read may seem to be a ring.
        for _ in 0..all.len() {
            if at.parent == root {
                return true;
            }
            match all.get(&at.parent) {
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    let below = all.values().filter(|seen| is_below(seen));
    below.map(|seen| (seen.who.pid, *seen)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_fields() {
        let text = "12 (a) b) (c) Z 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let seen = parse_stat(12, text).unwrap();
        let who = Identity {
            pid: 12,
            start: 4242,
        };
        assert_eq!(
            (seen.who, seen.parent, seen.group, seen.dead),
            (who, 5, 6, true)
        );
    }

    #[test]
    fn the_walk_and_the_whole_table_agree() {
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", "sleep 600 & read line; kill $!"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = shell.id().cast_signed();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while children(pid).unwrap().is_empty() {
            assert!(std::time::Instant::now() < deadline, "no child came");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let [sleeper] = children(pid).unwrap()[..] else {
            panic!("more than one child")
        };
        let own = std::process::id().cast_signed();
        let (walked, scanned) = (below(own), among(everyone(), own));
        for pid in [pid, sleeper] {
            assert_eq!(walked[&pid].who, scanned[&pid].who);
        }
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(stat(pid).is_none());
    }
}
