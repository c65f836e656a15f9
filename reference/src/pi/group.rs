//! The process tree of one child, and the only place that sends signals.
//!
//! The tree is more than the child's process group: Pi starts every command in a session of its own, and what runs in the
//! background there outlives Pi. So a process belongs to the tree when it is the child, when it descends from a process
//! that does, or when it carries the run's mark in its environment. This program is a child subreaper, so whatever loses its
//! parent becomes its child and can still be seen; and it collects those when they have died.
//!
//! A process is known by its id *and* its start time, and is looked up again before each signal, so that a process that
//! got the id of a dead one is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// The variable that holds a run's mark in its child and all that descends from it.
pub const MARK: &str = "PI_DELEGATE_RUN_ID";

/// Children that are being waited for by their runs. No one else may collect them.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One child's tree. Dropping it gives the child's id back.
pub struct Tree {
    leader: i32,
    mark: Vec<u8>,
    /// Members that were alive at the last look, the child among them: id and start time.
    known: BTreeMap<i32, u64>,
}

/// A line of the kernel's process table.
struct Entry {
    parent: i32,
    /// In clock ticks since the machine started.
    start: u64,
    dead: bool,
}

impl Tree {
    /// Starts the command as the leader of a group of its own, with the mark in its environment.
    ///
    /// # Errors
    /// What the system says when it cannot start it.
    pub fn spawn(command: &mut Command, mark: &str) -> io::Result<(Child, Self)> {
        prctl::set_child_subreaper(true)?;
        command.env(MARK, mark).process_group(0);
        // Held over the start, so that a child that dies at once is not taken for an orphan.
        let mut leaders = leaders();
        let child = command.spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = id.ok_or_else(|| io::Error::other("the child has no process id"))?;
        leaders.insert(leader);
        drop(leaders);
        let known = entry(leader).map(|entry| (leader, entry.start));
        let mark = format!("{MARK}={mark}").into_bytes();
        Ok((
            child,
            Self {
                leader,
                mark,
                known: known.into_iter().collect(),
            },
        ))
    }

    /// Looks at the process table and says how many processes of the tree live, the child itself not counted. Orphans
    /// that have died are collected on the way.
    pub fn look(&mut self) -> usize {
        let table = table();
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let leaders = leaders();
        for (id, entry) in &table {
            if entry.dead && entry.parent == own && !leaders.contains(id) {
                // Someone else may have been faster.
                let _ = waitpid(Pid::from_raw(*id), Some(WaitPidFlag::WNOHANG));
            }
        }
        let alone = leaders.len() == 1;
        self.known.retain(|id, start| {
            table
                .get(id)
                .is_some_and(|entry| !entry.dead && entry.start == *start)
        });
        loop {
            let before = self.known.len();
            for (id, entry) in table
                .iter()
                .filter(|(id, entry)| !entry.dead && !leaders.contains(id))
            {
                // An orphan without a mark can be told apart only while there is no other run.
                let orphan = alone && entry.parent == own;
                if self.known.contains_key(&entry.parent) || orphan {
                    self.known.insert(*id, entry.start);
                }
            }
            if self.known.len() == before {
                break;
            }
        }
        for (id, entry) in table {
            if !entry.dead && !self.known.contains_key(&id) && self.is_marked(id) {
                self.known.insert(id, entry.start);
            }
        }
        self.known.keys().filter(|id| **id != self.leader).count()
    }

    fn is_marked(&self, id: i32) -> bool {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == self.mark)
    }

    /// Sends a signal to all that live of the tree. False when there was nobody to send it to.
    pub fn signal(&mut self, signal: Signal) -> bool {
        self.look();
        let mut sent = false;
        for (id, start) in &self.known {
            if entry(*id).is_some_and(|entry| entry.start == *start && !entry.dead) {
                sent |= kill(Pid::from_raw(*id), signal).is_ok();
            }
        }
        sent
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        leaders().remove(&self.leader);
    }
}

/// Every process that can be seen.
fn table() -> BTreeMap<i32, Entry> {
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|found| found.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, entry(id)?))).collect()
}

/// The line of one process; none when it is gone.
fn entry(id: i32) -> Option<Entry> {
    parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// `/proc/PID/stat`. The name stands in parentheses and may hold blanks and parentheses itself.
fn parse(stat: &str) -> Option<Entry> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    Some(Entry {
        dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_behind_the_last_parenthesis() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n";
        let entry = parse(line).unwrap();
        assert_eq!((entry.parent, entry.start, entry.dead), (7, 987_654, false));
        assert!(
            parse("42 (sh) Z 7 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9 0 0")
                .unwrap()
                .dead
        );
        assert!(parse("nonsense").is_none());
    }
}
