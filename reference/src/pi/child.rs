//! Starting a child: its own group, three pipes, nothing else inherited, no code between fork and exec.

use std::io;
use std::process::Stdio;

use nix::errno::Errno;
use tokio::process::{Child, Command};

use super::group::{self, Tree};
use super::outcome::{Launch, MARK_VARIABLE};

/// A child that runs.
#[derive(Debug)]
pub struct Started {
    /// The process, with its pipes.
    pub child: Child,
    /// Its tree.
    pub tree: Tree,
}

/// Starts the child of a launch.
///
/// # Errors
/// The program cannot be started, or this system cannot keep track of what a child leaves behind.
pub fn start(launch: &Launch) -> io::Result<Started> {
    start_where(launch, group::adopt_orphans())
}

/// As [`start`], on a system that adopts orphans or does not.
fn start_where(launch: &Launch, adopts: Result<(), Errno>) -> io::Result<Started> {
    if !launch.program.is_absolute() {
        return Err(io::Error::other("the program's path is not absolute"));
    }
    adopts.map_err(|error| {
        io::Error::other(format!("this system cannot adopt orphaned processes ({error}), and without that nothing is started"))
    })?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .current_dir(&launch.cwd)
        .env(MARK_VARIABLE, &launch.mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Only for a task that is dropped in the middle; an orderly end goes through the tree.
        .kill_on_drop(launch.kill_on_drop)
        .process_group(0);
    for (name, value) in &launch.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Whoever looks for orphans to reap must not see this child before it is entered.
    let mut own = group::own_children();
    let child = command.spawn()?;
    // Without its id nothing could be signalled, and 0 would be our own group.
    let pid = child.id().map(u32::cast_signed).filter(|pid| *pid > 0);
    let pid = pid.ok_or_else(|| io::Error::other("the child has no process id"))?;
    own.add(pid);
    drop(own);
    Ok(Started {
        child,
        tree: Tree::new(pid, &launch.mark),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pi::outcome::Limits;

    // shows: launch.unsupported-platform-fails-closed
    #[test]
    fn where_orphans_are_not_adopted_nothing_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("started");
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), format!("echo > '{}'", trace.display()).into()],
            cwd: folder.path().to_owned(),
            env: Vec::new(),
            task: String::new(),
            mark: "a-mark".to_owned(),
            limits: Limits::default(),
            kill_on_drop: true,
        };
        // Outside a runtime: a spawn would panic, so an error means that it was not even tried.
        let error = start_where(&launch, Err(Errno::EINVAL)).unwrap_err();
        assert!(error.to_string().contains("nothing is started"), "{error}");
        assert!(!trace.exists());
    }
}
