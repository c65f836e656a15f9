//! A child's whole tree: what belongs to it, and the only place that sends signals.
//!
//! The group is not enough: the real Pi starts every bash command in a session of its own, and what such a command leaves
//! in the background is in no group of ours. So this process is a *child subreaper*: whatever is orphaned below it comes
//! home to it, and every process that a run started, however it fled, is a descendant of this one. Among those a run's own
//! are told by descent from its child, by its group, and by the mark in their environment.
//!
//! Only descendants are signalled. A descendant's pid cannot be given to a stranger while it is looked at: it is freed
//! when its parent reaps it, and the start time is compared right before the signal.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::outcome::MARK_VARIABLE;
use super::seam::Reach;

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
struct Seen {
    who: Identity,
    parent: i32,
    group: i32,
    dead: bool,
}

/// Children that the runtime waits for; their status belongs to it. Held while a child is started, so that nobody looks
/// between its fork and its entry here.
static OWN_CHILDREN: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// The children that are somebody's to wait for.
#[derive(Debug)]
pub struct OwnChildren(MutexGuard<'static, Option<HashSet<i32>>>);

/// Locks the list of children; keep it while a child is started.
pub fn own_children() -> OwnChildren {
    OwnChildren(OWN_CHILDREN.lock().unwrap_or_else(PoisonError::into_inner))
}

impl OwnChildren {
    /// A child was started.
    pub fn add(&mut self, pid: i32) {
        self.0.get_or_insert_default().insert(pid);
    }

    /// It was reaped.
    pub fn remove(&mut self, pid: i32) {
        self.0.get_or_insert_default().remove(&pid);
    }

    fn has(&self, pid: i32) -> bool {
        self.0.as_ref().is_some_and(|own| own.contains(&pid))
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, HashSet::len)
    }
}

/// Makes this process the one to which orphans come home. Once is enough.
///
/// # Errors
/// The system has no such thing: then nothing may be started (`launch.unsupported-platform-fails-closed`).
pub fn adopt_orphans() -> Result<(), Errno> {
    nix::sys::prctl::set_child_subreaper(true)
}

/// The tree of one child.
#[derive(Debug)]
pub struct Tree {
    child: i32,
    mark: String,
    /// Whether the child was reaped; from then on its pid, and its group when that is empty, may be anybody's.
    reaped: bool,
    /// Descendants that were seen while they could be told: they stay this run's, also after they fled.
    known: HashSet<Identity>,
}

impl Tree {
    /// The tree of a child that has just been started as leader of its own group.
    pub fn new(child: i32, mark: &str) -> Self {
        Self {
            child,
            mark: mark.to_owned(),
            reaped: false,
            known: HashSet::new(),
        }
    }

    /// The child was reaped.
    pub fn child_reaped(&mut self) {
        self.reaped = true;
        own_children().remove(self.child);
    }

    /// Looks what is alive of the tree beside the child itself, and reaps orphans that came home dead.
    pub fn look(&mut self) -> usize {
        self.members().len()
    }

    /// As [`Tree::look`], but in the child's own group only.
    pub fn look_group(&mut self) -> usize {
        let child = self.child;
        self.members()
            .iter()
            .filter(|member| member.group == child)
            .count()
    }

    /// Sends a signal to everything that is alive of the tree, or only to a part of it. Gives how many were told.
    pub fn signal(&mut self, signal: Signal, reach: Reach) -> usize {
        let mut told = 0;
        if !self.reaped {
            // Unreaped, so pid and group are still the child's. The group in one call: nothing in it escapes by forking.
            let child = Pid::from_raw(self.child);
            let sent = if reach == Reach::Child {
                kill(child, signal)
            } else {
                killpg(child, signal)
            };
            told += usize::from(sent.is_ok());
        }
        if reach == Reach::Child {
            return told;
        }
        for member in self.members() {
            let in_group = member.group == self.child;
            let told_already = in_group && !self.reaped;
            let left_out = reach == Reach::Group && !in_group;
            if !told_already
                && !left_out
                && stat(member.who.pid).is_some_and(|now| now.who == member.who && !now.dead)
            {
                told += usize::from(kill(Pid::from_raw(member.who.pid), signal).is_ok());
            }
        }
        told
    }

    fn members(&mut self) -> Vec<Seen> {
        let own = own_children();
        let all = below(std::process::id().cast_signed());
        for seen in all.values().filter(|seen| seen.dead) {
            reap(seen, &own);
        }
        let alone = own.len() <= 1;
        drop(own);
        let members: Vec<Seen> = all
            .values()
            .filter(|seen| !seen.dead && seen.who.pid != self.child)
            .filter(|seen| self.is_member(seen, &all, alone))
            .copied()
            .collect();
        self.known
            .retain(|who| all.get(&who.pid).is_some_and(|seen| seen.who == *who));
        self.known.extend(members.iter().map(|seen| seen.who));
        members
    }

    fn is_member(&self, seen: &Seen, all: &HashMap<i32, Seen>, alone: bool) -> bool {
        if self.known.contains(&seen.who) || (!self.reaped && seen.group == self.child) {
            return true;
        }
        // Upwards: through the child, through somebody known, or home to this process as an orphan.
        let mut at = *seen;
        for _ in 0..all.len() {
            if at.parent == self.child && !self.reaped {
                return true;
            }
            match all.get(&at.parent) {
                Some(parent) if self.known.contains(&parent.who) => return true,
                Some(parent) => at = *parent,
                None => break,
            }
        }
        match marks(at.who.pid) {
            Some(mark) => mark == self.mark,
            // An orphan without any mark has scrubbed its environment: it is this run's when there is no other.
            None => {
                alone && at.parent == std::process::id().cast_signed() && at.who.pid != self.child
            }
        }
    }
}

/// The mark in a process's environment.
fn marks(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let wanted = format!("{MARK_VARIABLE}=");
    let entries = environment.split(|byte| *byte == 0);
    let mark = entries
        .filter_map(|entry| entry.strip_prefix(wanted.as_bytes()))
        .next()?;
    Some(String::from_utf8_lossy(mark).into_owned())
}

/// Takes the status of an orphan that came home and ended; the children that the runtime waits for are left to it.
fn reap(seen: &Seen, own: &OwnChildren) {
    if seen.parent == std::process::id().cast_signed() && !own.has(seen.who.pid) {
        // Gone already, or somebody else's after all: either way there is nothing to take.
        let _ = waitpid(Pid::from_raw(seen.who.pid), Some(WaitPidFlag::WNOHANG));
    }
}

/// Every process below `root`, by its id.
fn below(root: i32) -> HashMap<i32, Seen> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: HashMap<i32, Seen> = numbers.filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let is_below = |seen: &Seen| {
        let mut at = *seen;
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
    all.iter()
        .filter(|(_, seen)| is_below(seen))
        .map(|(pid, seen)| (*pid, *seen))
        .collect()
}

/// Reads `/proc/PID/stat`. The command's name stands in parentheses and may hold anything.
fn stat(pid: i32) -> Option<Seen> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &text)
}

fn parse_stat(pid: i32, text: &str) -> Option<Seen> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Seen {
        who: Identity {
            pid,
            start: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        // A zombie is dead, and so is what is about to vanish (`field.zombie-is-not-alive`).
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_fields() {
        let text = "12 (a) b) (c) Z 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let seen = parse_stat(12, text).unwrap();
        assert_eq!(
            seen,
            Seen {
                who: Identity {
                    pid: 12,
                    start: 4242
                },
                parent: 5,
                group: 6,
                dead: true
            }
        );
    }

    fn wait_for(mut fact: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !fact() {
            assert!(Instant::now() < deadline, "the fact never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    // shows: drain.signal-only-own-pids
    #[test]
    fn a_tree_whose_child_was_reaped_signals_nobody_and_a_live_one_is_ended_with_what_fled() {
        adopt_orphans().unwrap();
        let mark = uuid::Uuid::new_v4().to_string();
        use std::os::unix::process::CommandExt as _;
        let mut own = own_children();
        // One descendant in a session of its own, orphaned at once, beside a child that waits.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "setsid sh -c 'sleep 600 & exit 0'; sleep 600"])
            .env(MARK_VARIABLE, &mark)
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        own.add(pid);
        drop(own);
        let mut tree = Tree::new(pid, &mark);
        wait_for(|| tree.look() >= 2);
        let fled = tree.known.iter().copied().collect::<Vec<_>>();
        assert!(tree.signal(Signal::SIGKILL, Reach::Tree) > 0);
        child.wait().unwrap();
        tree.child_reaped();
        wait_for(|| tree.look() == 0);
        for who in fled {
            assert!(stat(who.pid).is_none_or(|seen| seen.who != who || seen.dead));
        }
        assert_eq!(
            tree.signal(Signal::SIGKILL, Reach::Tree),
            0,
            "nothing is left to signal"
        );
    }
}
