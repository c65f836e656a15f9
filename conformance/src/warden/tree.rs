//! The processes below the warden: who is there, who has gone, and who may be signalled.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::protocol::MARK;
use crate::evidence::Process;
use crate::proc::{self, Stat};

/// A process that is known to be ours: a descendant of the warden, or bearing its mark. Only the tree makes these, and only
/// these can be signalled.
#[derive(Debug)]
struct Ours {
    process: Process,
    /// Names this very process, whatever becomes of its number.
    fd: OwnedFd,
}

/// Pid and start time.
pub type Key = (i32, u64);

/// What a look at the tree found.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// Seen for the first time.
    pub seen: Vec<Process>,
    /// Ended.
    pub gone: Vec<Key>,
}

impl Changes {
    /// Nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.gone.is_empty()
    }
}

/// All processes below one root process (the warden itself).
#[derive(Debug)]
pub struct Tree {
    root: i32,
    mark: String,
    alive: HashMap<Key, Ours>,
    /// Ended, but perhaps still a zombie: not to be seen again.
    ended: HashSet<Key>,
}

impl Tree {
    /// The tree below `root`, whose members may also be known by `mark`.
    pub fn new(root: i32, mark: impl Into<String>) -> Self {
        Self {
            root,
            mark: mark.into(),
            alive: HashMap::new(),
            ended: HashSet::new(),
        }
    }

    /// Nobody is alive that is known of.
    pub fn is_empty(&self) -> bool {
        self.alive.is_empty()
    }

    /// Descriptors that become readable when their process ends.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.alive.values().map(|ours| ours.fd.as_fd())
    }

    /// Walks `/proc` from the root down.
    pub fn look(&mut self) -> Changes {
        let mut changes = Changes::default();
        self.drop_ended(&mut changes);
        let mut queue = vec![self.root];
        let mut ours: HashSet<i32> = HashSet::from([self.root]);
        while let Some(parent) = queue.pop() {
            for pid in proc::children(parent) {
                if !ours.insert(pid) {
                    continue;
                }
                queue.push(pid);
                let Some(stat) = proc::stat(pid) else {
                    continue;
                };
                // The number was read a moment ago; whoever has it now counts only if its parent is one of us.
                self.meet(pid, &stat, |now| ours.contains(&now.ppid), &mut changes);
            }
        }
        changes
    }

    /// Looks through all of `/proc` for our mark: what is no descendant any more, however that came about.
    pub fn look_for_marked(&mut self) -> Changes {
        let mut changes = Changes::default();
        for pid in proc::all() {
            if pid == self.root || !proc::has_env(pid, MARK, &self.mark) {
                continue;
            }
            let Some(stat) = proc::stat(pid) else {
                continue;
            };
            let mark = self.mark.clone();
            self.meet(
                pid,
                &stat,
                |_| proc::has_env(pid, MARK, &mark),
                &mut changes,
            );
        }
        changes
    }

    /// Takes a process in, after `is_ours` held for it while a descriptor named it.
    fn meet(
        &mut self,
        pid: i32,
        stat: &Stat,
        is_ours: impl Fn(&Stat) -> bool,
        changes: &mut Changes,
    ) {
        let key = (pid, stat.start_ticks);
        if self.alive.contains_key(&key) || self.ended.contains(&key) {
            return;
        }
        let named = Pid::from_raw(pid).and_then(|raw| pidfd_open(raw, PidfdFlags::empty()).ok());
        let now = proc::stat(pid).filter(|now| now.start_ticks == stat.start_ticks && is_ours(now));
        let (Some(fd), Some(now)) = (named, now) else {
            return;
        };
        let process = proc::process(pid, &now);
        changes.seen.push(process.clone());
        if now.is_dead() {
            self.ended.insert(key);
            changes.gone.push(key);
        } else {
            self.alive.insert(key, Ours { process, fd });
        }
    }

    fn drop_ended(&mut self, changes: &mut Changes) {
        let ended: Vec<Key> = self
            .alive
            .iter()
            .filter(|(_, ours)| has_ended(ours.fd.as_fd()))
            .map(|(key, _)| *key)
            .collect();
        for key in ended {
            self.alive.remove(&key);
            self.ended.insert(key);
            changes.gone.push(key);
        }
    }

    /// Everybody who is alive, as the kernel shows them now.
    pub fn members(&self) -> Vec<Process> {
        let fresh = self.alive.values().map(|ours| {
            let pid = ours.process.pid;
            match proc::stat(pid) {
                Some(stat) if stat.start_ticks == ours.process.start_ticks => {
                    proc::process(pid, &stat)
                }
                _ => ours.process.clone(),
            }
        });
        let mut members: Vec<Process> = fresh.collect();
        members.sort_by_key(|process| (process.start_ticks, process.pid));
        members
    }

    /// Sends a signal to one member, by its pid. `false`: there is none of that number.
    pub fn signal(&self, pid: i32, signal: Signal) -> bool {
        let member = self.alive.values().find(|ours| ours.process.pid == pid);
        member.is_some_and(|ours| pidfd_send_signal(&ours.fd, signal).is_ok())
    }

    /// Sends a signal to all members.
    pub fn signal_all(&self, signal: Signal) {
        for ours in self.alive.values() {
            // It may have ended in the meantime, which is what is wanted.
            let _ = pidfd_send_signal(&ours.fd, signal);
        }
    }
}

/// A process has ended when its descriptor is readable.
fn has_ended(fd: BorrowedFd<'_>) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A process that ends with the test.
    struct Sleeper(Child);

    impl Sleeper {
        fn start(mark: Option<&str>) -> Self {
            let mut command = Command::new("sleep");
            command.arg("300");
            if let Some(mark) = mark {
                command.env(MARK, mark);
            }
            Self(command.spawn().unwrap())
        }

        fn pid(&self) -> i32 {
            self.0.id().cast_signed()
        }

        fn is_alive(&mut self) -> bool {
            self.0.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    // shows: hermetic.signals-only-own-fixtures
    #[test]
    fn signals_reach_own_fixtures_and_nobody_else() {
        let mut stranger = Sleeper::start(None);
        let mut other_run = Sleeper::start(Some("another-run"));
        let mut own = Sleeper::start(Some("this-run"));
        // A root that has no children: only the mark counts.
        let mut tree = Tree::new(stranger.pid(), "this-run");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while tree.is_empty() && std::time::Instant::now() < deadline {
            tree.look();
            tree.look_for_marked();
        }
        assert_eq!(
            tree.members().iter().map(|p| p.pid).collect::<Vec<_>>(),
            [own.pid()]
        );
        assert!(!tree.signal(stranger.pid(), Signal::KILL));
        assert!(!tree.signal(other_run.pid(), Signal::KILL));
        tree.signal_all(Signal::KILL);
        own.0.wait().unwrap();
        assert!(stranger.is_alive() && other_run.is_alive());
    }

    #[test]
    fn an_ended_process_is_gone_once_and_never_seen_again_as_a_zombie() {
        let mut sleeper = Sleeper::start(None);
        let mut tree = Tree::new(std::process::id().cast_signed(), "x");
        let seen = tree.look().seen;
        assert!(seen.iter().any(|process| process.pid == sleeper.pid()));
        sleeper.0.kill().unwrap();
        let mut gone = 0;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while gone == 0 && std::time::Instant::now() < deadline {
            gone += tree
                .look()
                .gone
                .iter()
                .filter(|key| key.0 == sleeper.pid())
                .count();
        }
        assert_eq!(gone, 1);
        let again = tree.look();
        assert!(
            again
                .seen
                .iter()
                .all(|process| process.pid != sleeper.pid())
        );
        assert!(again.gone.iter().all(|key| key.0 != sleeper.pid()));
    }
}
