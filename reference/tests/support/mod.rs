//! What the tests of the program share: a place with a child program in it, and the two ways to drive `delegate`.

#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long a fact is waited for before the test says that it never came.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a fact, by asking for it again and again.
pub fn wait_for<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process of that id runs; one that only waits to be reaped does not.
pub fn runs(pid: i32) -> bool {
    let exists = kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH);
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    exists
        && !status
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Folders for one test: agent directory, home, project (the working directory), and the child program.
pub struct Place {
    root: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "agent", "project/.pi", "bin/journal"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let place = Self { root };
        // A link, not a copy: a fresh copy that is still open for writing in a sibling test's fork cannot be executed.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/child.sh");
        std::os::unix::fs::symlink(script, place.path("bin/pi")).unwrap();
        place
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(inside)
    }

    /// The program, in this place's environment and nothing of the caller's.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_delegate"));
        command
            .args(arguments)
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("bin").display()),
            )
            .env("HOME", self.path("home"))
            .env("PI_CODING_AGENT_DIR", self.path("agent"))
            .current_dir(self.path("project"));
        command
    }

    pub fn user_config(&self, text: impl AsRef<[u8]>) {
        fs::write(self.path("agent/delegator.json"), text).unwrap();
    }

    /// What the children noted, oldest first.
    pub fn launches(&self) -> Vec<Launched> {
        let mut found: Vec<_> = fs::read_dir(self.path("bin/journal"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "argv"))
            .map(|path| (path.metadata().unwrap().modified().unwrap(), path))
            .collect();
        found.sort();
        found
            .into_iter()
            .map(|(_, path)| Launched::read(&path))
            .collect()
    }

    /// Waits until a child hangs; its process id and that of its own child.
    pub fn hanging(&self) -> (i32, i32) {
        wait_for("a hanging child", || {
            let entries = fs::read_dir(self.path("bin/journal")).unwrap();
            entries.filter_map(|entry| entry.ok()).find_map(|entry| {
                let path = entry.path();
                let child = path.file_stem()?.to_str()?.parse().ok()?;
                let its_child =
                    (path.extension()? == "hangs").then(|| fs::read_to_string(&path).ok())??;
                Some((child, its_child.trim().parse().ok()?))
            })
        })
    }
}

/// One start of the child program.
#[derive(Debug)]
pub struct Launched {
    pub argv: Vec<String>,
    pub cwd: String,
    pub pid: i32,
}

impl Launched {
    fn read(path: &Path) -> Self {
        let argv = String::from_utf8(fs::read(path).unwrap()).unwrap();
        let argv = argv.split_terminator('\0').map(str::to_owned).collect();
        let cwd = fs::read_to_string(path.with_extension("cwd"))
            .unwrap()
            .trim_end()
            .to_owned();
        let pid = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        Self { argv, cwd, pid }
    }

    /// The value after a flag.
    pub fn flag(&self, name: &str) -> Option<&str> {
        let at = self.argv.iter().position(|argument| argument == name)?;
        self.argv.get(at + 1).map(String::as_str)
    }
}

/// `delegate mcp` with its input in our hand.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<thread::JoinHandle<String>>,
}

impl Server {
    /// Starts it and opens the session.
    pub fn start(command: Command) -> Self {
        let mut server = Self::bare(command);
        server.send(&[initialize()]);
        let answer = server.response(0);
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "delegate",
            "{answer}"
        );
        server.send(&[json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]);
        server
    }

    /// Starts it and says nothing.
    pub fn bare(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            input,
            lines,
            stderr: Some(stderr),
        }
    }

    /// Writes messages in one write.
    pub fn send(&mut self, messages: &[Value]) {
        let text: String = messages
            .iter()
            .map(|message| format!("{message}\n"))
            .collect();
        self.write(text.as_bytes());
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next message.
    pub fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("no message came");
        serde_json::from_str(&line).expect(&line)
    }

    /// The response to `id`; what comes before it is returned by nobody, so call this when nothing else matters.
    pub fn response(&mut self, id: i64) -> Value {
        self.until(id).pop().unwrap()
    }

    /// All messages up to and including the response to `id`.
    pub fn until(&mut self, id: i64) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next());
            if seen.last().is_some_and(|message| message["id"] == id) {
                return seen;
            }
        }
    }

    /// Does a call and returns its result.
    pub fn call(&mut self, id: i64, arguments: Value) -> Value {
        self.send(&[call(id, arguments)]);
        let mut response = self.response(id);
        response["result"].take()
    }

    pub fn tools(&mut self) -> Value {
        self.send(&[json!({"jsonrpc": "2.0", "id": 9000, "method": "tools/list"})]);
        self.response(9000)["result"]["tools"].take()
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end; the messages that still came, and what it wrote to stderr.
    pub fn ended(mut self) -> (ExitStatus, Vec<Value>, String) {
        let status = wait_for("the end of the server", || self.child.try_wait().unwrap());
        let rest = self
            .lines
            .iter()
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        (status, rest, stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a failure: end the server by a signal that it passes on to its children's trees, then for good.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::SIGTERM);
            let start = Instant::now();
            while matches!(self.child.try_wait(), Ok(None))
                && start.elapsed() < Duration::from_secs(10)
            {
                thread::sleep(Duration::from_millis(5));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }})
}

pub fn call(id: i64, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "delegate", "arguments": arguments}})
}

pub fn cancel(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// A complete definition with these tools and this model.
pub fn definition(model: &str) -> Value {
    json!({
        "description": "Does something.", "model": model, "thinking": "minimal", "prompt": "Do it.",
        "tools": ["read"], "extensions": [], "skills": [], "deadlineMs": 60_000,
    })
}

/// Makes a file that anybody may execute but that is no program.
pub fn not_executable(path: &Path) {
    fs::write(path, "").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}
