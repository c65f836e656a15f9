//! A child's whole tree: what belongs to it, and the only place that sends signals.
//!
//! The group is not enough: the real Pi starts every bash command in a session of its own, and what such a command leaves
//! in the background is in no group of ours. So this process is a *child subreaper*: whatever is orphaned below it comes
//! home to it, and every process that a run started, however it fled, is a descendant of this one. Among those a run's own
//! are told by descent from its child, by its group, and by the mark in their environment.
//!
//! Only what was started here is signalled. The child and its group are, as long as the child is not reaped: until then
//! both ids are its own. Any other process is held by a descriptor first, then compared with what was seen, then
//! signalled through the descriptor: whoever may have got its id meanwhile is left alone.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

use super::seam::Reach;
use super::table::{self, Identity, Seen};

/// Children whose status is somebody's to take. Held while one is started, so that nobody looks between its start and
/// its entry here.
static OWN_CHILDREN: Mutex<Option<Own>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Own {
    children: HashSet<i32>,
    helpers: HashSet<i32>,
}

/// The children that are somebody's to wait for.
#[derive(Debug)]
pub struct OwnChildren(MutexGuard<'static, Option<Own>>);

/// Locks the list of children; keep it while a child is started.
pub fn own_children() -> OwnChildren {
    OwnChildren(OWN_CHILDREN.lock().unwrap_or_else(PoisonError::into_inner))
}

impl OwnChildren {
    /// The child of a run was started.
    pub fn add(&mut self, pid: i32) {
        self.0.get_or_insert_default().children.insert(pid);
    }

    /// A process that belongs to no run was started.
    pub fn add_helper(&mut self, pid: i32) {
        self.0.get_or_insert_default().helpers.insert(pid);
    }

    /// It was reaped.
    pub fn remove(&mut self, pid: i32) {
        let own = self.0.get_or_insert_default();
        own.children.remove(&pid);
        own.helpers.remove(&pid);
    }

    fn has(&self, pid: i32) -> bool {
        let own = self.0.as_ref();
        own.is_some_and(|own| own.children.contains(&pid) || own.helpers.contains(&pid))
    }

    /// How many runs have a child.
    fn runs(&self) -> usize {
        self.0.as_ref().map_or(0, |own| own.children.len())
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
            if !told_already && !left_out {
                told += usize::from(tell(member.who, signal));
            }
        }
        told
    }

    fn members(&mut self) -> Vec<Seen> {
        let own = own_children();
        let mut all = table::below(std::process::id().cast_signed());
        let strangers = |all: &HashMap<i32, Seen>| all.keys().any(|pid| !own.has(*pid));
        if !strangers(&all) {
            // The kernel may leave a process out of a list that changes while it is read. "Nobody is left" is worth a
            // second look.
            all = table::below(std::process::id().cast_signed());
        }
        for seen in all.values().filter(|seen| seen.dead) {
            reap(seen, &own);
        }
        let alone = own.runs() <= 1;
        let members: Vec<Seen> = all
            .values()
            .filter(|seen| !seen.dead && !own.has(seen.who.pid))
            .filter(|seen| self.is_member(seen, &all, alone))
            .copied()
            .collect();
        drop(own);
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
        match table::mark(at.who.pid) {
            Some(mark) => mark == self.mark,
            // An orphan without any mark has scrubbed its environment: it is this run's when there is no other.
            None => alone && at.parent == std::process::id().cast_signed(),
        }
    }
}

/// Sends a signal to that process and to no other that may have its id by now. Whether it was told.
fn tell(who: Identity, signal: Signal) -> bool {
    let is_still = || table::stat(who.pid).is_some_and(|now| now.who == who && !now.dead);
    let (Some(pid), Some(number)) = (
        rustix::process::Pid::from_raw(who.pid),
        rustix::process::Signal::from_named_raw(signal as i32),
    ) else {
        return false;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(held) => is_still() && pidfd_send_signal(held, number).is_ok(),
        Err(rustix::io::Errno::NOSYS) => is_still() && kill(Pid::from_raw(who.pid), signal).is_ok(),
        Err(_) => false,
    }
}

/// From SIGTERM to SIGKILL for what a dead delegator left: there is no answer to be waited for.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);
/// After that nothing more is tried.
const ORPHAN_LIMIT: Duration = Duration::from_secs(4);
const ORPHAN_LOOK: Duration = Duration::from_millis(20);

/// Ends every process that carries one of these marks, and what descends from it. For the guardian, to which nobody is a
/// child: it looks through the whole process table. Blocks until nobody is left, at most [`ORPHAN_LIMIT`].
pub fn end_marked(marks: &HashSet<String>) {
    let begin = Instant::now();
    let mut asked = HashSet::new();
    let mut looks_in_vain = 0;
    // One that was just being started carries its mark a moment later only.
    while looks_in_vain < 3 && begin.elapsed() < ORPHAN_LIMIT {
        let found = marked(marks);
        looks_in_vain = if found.is_empty() {
            looks_in_vain + 1
        } else {
            0
        };
        for who in found {
            if begin.elapsed() >= ORPHAN_GRACE {
                tell(who, Signal::SIGKILL);
            } else if asked.insert(who) {
                tell(who, Signal::SIGTERM);
            }
        }
        std::thread::sleep(ORPHAN_LOOK);
    }
}

fn marked(marks: &HashSet<String>) -> Vec<Identity> {
    let mut all = table::everyone();
    all.retain(|_, seen| !seen.dead);
    let has_mark = |pid: i32| table::mark(pid).is_some_and(|mark| marks.contains(&mark));
    let mut found: HashSet<i32> = all.keys().copied().filter(|pid| has_mark(*pid)).collect();
    loop {
        let more: Vec<i32> = all
            .values()
            .filter(|seen| found.contains(&seen.parent) && !found.contains(&seen.who.pid))
            .map(|seen| seen.who.pid)
            .collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    found
        .iter()
        .filter_map(|pid| Some(all.get(pid)?.who))
        .collect()
}

/// Takes the status of an orphan that came home and ended; the children that the runtime waits for are left to it.
fn reap(seen: &Seen, own: &OwnChildren) {
    if seen.parent == std::process::id().cast_signed() && !own.has(seen.who.pid) {
        // Gone already, or somebody else's after all: either way there is nothing to take.
        let _ = waitpid(Pid::from_raw(seen.who.pid), Some(WaitPidFlag::WNOHANG));
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::pi::outcome::MARK_VARIABLE;

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
            assert!(table::stat(who.pid).is_none_or(|seen| seen.who != who || seen.dead));
        }
        assert_eq!(
            tree.signal(Signal::SIGKILL, Reach::Tree),
            0,
            "nothing is left to signal"
        );
    }

    // shows: field.delegator-killed
    #[test]
    fn what_carries_a_mark_is_ended_with_what_descends_from_it_and_nobody_else() {
        let mark = uuid::Uuid::new_v4().to_string();
        // Ignores SIGTERM, and what it has started has scrubbed its environment.
        let script = "trap '' TERM; env -i sleep 600 & wait";
        let start = |mark: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).env(MARK_VARIABLE, mark);
            command.spawn().unwrap()
        };
        let (mut one, mut other) = (start(&mark), start("another"));
        let sleeper = |parent: &std::process::Child| {
            let parent = parent.id().cast_signed();
            table::everyone()
                .into_values()
                .find(|seen| seen.parent == parent)
        };
        wait_for(|| sleeper(&one).is_some() && sleeper(&other).is_some());
        let sleeping = sleeper(&one).unwrap().who;
        end_marked(&HashSet::from([mark]));
        one.wait().unwrap();
        wait_for(|| table::stat(sleeping.pid).is_none_or(|seen| seen.who != sleeping || seen.dead));
        assert!(other.try_wait().unwrap().is_none());
        let left = sleeper(&other).unwrap().who;
        assert!(tell(left, Signal::SIGKILL));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    // shows: drain.signal-only-own-pids
    #[test]
    fn a_process_that_has_the_id_of_another_is_not_signalled() {
        let mut child = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let who = table::stat(child.id().cast_signed()).unwrap().who;
        let other = Identity {
            start: who.start + 1,
            ..who
        };
        assert!(!tell(other, Signal::SIGKILL));
        assert!(child.try_wait().unwrap().is_none());
        assert!(tell(who, Signal::SIGKILL));
        child.wait().unwrap();
        assert!(!tell(who, Signal::SIGKILL), "it is gone");
    }
}
