//! For the day on which this program is killed by SIGKILL and can end nothing itself (`field.delegator-killed`).
//!
//! A real Pi ends when its input does, which is closed with this program; a hung one does not, and neither do the
//! commands that Pi has put in the background. So there is a guardian: this executable once more, in a group of its
//! own, one for the whole program, started with the first child. It reads from a pipe which runs there are. The pipe
//! ends when this program has ended, however that came; then the guardian ends whatever still carries the mark of a run
//! that was not reported as over, and goes.
//!
//! ```text
//!  delegate ──"+MARK"──"-MARK"──► pipe ──► guardian ── end of pipe ──► TERM, KILL to what carries an open mark
//! ```
//!
//! Why not a parent-death signal: it has to be set between fork and exec (`pre_exec`, which the design rules out for its
//! cost), is bound to the *thread* that started the child, and does not reach grandchildren.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::group::{self, own_children};

/// The command word under which this executable is the guardian. Not for people.
const WORD: &str = "guardian";
/// Longest line that the guardian reads, in bytes: a sign, a mark and an LF.
const LINE: u64 = 256;
/// How long the end of the program waits for the guardian to go. It has nothing to do then.
const FAREWELL: Duration = Duration::from_secs(1);

static GUARD: Mutex<Guard> = Mutex::new(Guard {
    name: None,
    process: None,
    marks: None,
});

struct Guard {
    /// The name under which this program was started: the executable may be several, told apart by it.
    name: Option<OsString>,
    process: Option<Child>,
    /// Runs that were begun and not reported as over.
    marks: Option<HashSet<String>>,
}

fn guard() -> MutexGuard<'static, Guard> {
    // Nothing panics while it is held; a poisoned one still tells which runs there are.
    GUARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on there is a guardian as soon as there is a child. `name` is that under which this program was started.
/// Without this call (in tests, whose executable is another) there is none.
pub fn enable(name: &OsStr) {
    guard().name = Some(name.to_owned());
}

/// A run begins; to be called before its child is started.
pub fn begin(mark: &str) {
    let mut guard = guard();
    guard.marks.get_or_insert_default().insert(mark.to_owned());
    guard.report('+', mark);
}

/// A run is over and nothing of it is left. One that left something is not reported: the guardian tries once more.
pub fn over(mark: &str) {
    let mut guard = guard();
    guard.marks.get_or_insert_default().remove(mark);
    guard.report('-', mark);
}

/// The program ends: lets the guardian go, and waits for it a moment.
pub fn dismiss() {
    let mut guard = guard();
    guard.name = None;
    let Some(mut process) = guard.process.take() else {
        return;
    };
    drop(process.stdin.take());
    let begin = Instant::now();
    while matches!(process.try_wait(), Ok(None)) && begin.elapsed() < FAREWELL {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Guard {
    fn report(&mut self, sign: char, mark: &str) {
        let Some(name) = &self.name else { return };
        let written = self
            .process
            .as_mut()
            .is_some_and(|process| write(process, &format!("{sign}{mark}\n")).is_ok());
        if written || self.marks.as_ref().is_none_or(HashSet::is_empty) {
            return;
        }
        // None yet, or it was killed: a new one is told of every run.
        if let Some(mut dead) = self.process.take() {
            drop(dead.stdin.take());
            if matches!(dead.try_wait(), Ok(Some(_))) {
                own_children().remove(dead.id().cast_signed());
            }
        }
        let lines = self.marks.iter().flatten();
        let lines: String = lines.map(|mark| format!("+{mark}\n")).collect();
        match start(name).and_then(|mut process| write(&mut process, &lines).map(|()| process)) {
            Ok(process) => self.process = Some(process),
            // Children are supervised all the same; only a SIGKILL finds nobody to clean up behind it.
            Err(error) => tracing::warn!("cannot start the guardian: {error}"),
        }
    }
}

/// Starts a guardian. Nothing that it has can hold anything open: no terminal group, no pipe, no folder.
fn start(name: &OsStr) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(name)
        .arg(WORD)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut own = own_children();
    let process = command.spawn()?;
    own.add_helper(process.id().cast_signed());
    drop(own);
    if let Some(stdin) = &process.stdin {
        // A guardian that was stopped must not stop anybody else.
        fcntl(stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    Ok(process)
}

fn write(process: &mut Child, lines: &str) -> io::Result<()> {
    let stdin = process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    stdin.write_all(lines.as_bytes())
}

/// The guardian's whole program, if these are its arguments.
pub fn main(args: &[OsString]) -> Option<ExitCode> {
    let [_, word] = args else { return None };
    if word != WORD {
        return None;
    }
    let marks = read_marks(io::stdin().lock());
    if !marks.is_empty() {
        group::end_marked(&marks);
    }
    Some(ExitCode::SUCCESS)
}

/// Reads until the input ends: the runs that are not over.
fn read_marks(mut input: impl io::BufRead) -> HashSet<String> {
    let mut marks = HashSet::new();
    let mut line = String::new();
    loop {
        line.clear();
        match input.by_ref().take(LINE).read_line(&mut line) {
            Ok(0) | Err(_) => return marks,
            Ok(_) => {}
        }
        let line = line.trim_end();
        if let Some(mark) = line.strip_prefix('+') {
            marks.insert(mark.to_owned());
        } else if let Some(mark) = line.strip_prefix('-') {
            marks.remove(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_are_the_runs_that_were_not_over() {
        let left = read_marks(&b"+a\n+b\n-a\n+c\n-nobody\n\nnoise\n"[..]);
        assert_eq!(left, HashSet::from(["b".to_owned(), "c".to_owned()]));
        assert!(read_marks(&b"+a\n-a\n"[..]).is_empty());
    }

    #[test]
    fn only_its_own_word_alone_is_the_guardian() {
        for args in [
            &["delegate"][..],
            &["delegate", "mcp"],
            &["delegate", "guardian", "x"],
        ] {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            assert!(main(&args).is_none(), "{args:?}");
        }
    }
}
