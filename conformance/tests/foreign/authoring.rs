//! `init` and `attach` with a server that is not ours.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use super::judge::SERVER;
use super::place::{Place, text};

const COMMAND: &str = "python3 mcp_delegator.py";

pub fn init_writes_what_runs() {
    let place = Place::with("mcp_delegator.py", SERVER);
    let done = place.pi_conform(&["init", "--command", COMMAND]);
    assert_eq!(
        done.status.code(),
        Some(0),
        "{}{}",
        text(&done.stdout),
        text(&done.stderr)
    );
    let file = place.read("mcp-delegator.yaml");
    for line in [
        r#"command: [python3, "{{ here }}/mcp_delegator.py"]"#,
        "child-mode: json",
        "    tool: ask_agent",
        r#"      prompt: "{{ task }}""#,
        r#"      workdir: "{{ cwd }}""#,
        "  answer: text",
        "  ok: [{pointer: /isError, not: true}, {pointer: /content, value: true}]",
    ] {
        assert!(
            file.lines().any(|its| its == line),
            "`{line}` is not in\n{file}"
        );
    }
    // From another folder too: the file finds the server by its own place.
    let other = tempfile::tempdir().unwrap();
    let adapter = place.path("mcp-delegator.yaml");
    let mut command = place.dressed(super::place::EXECUTABLE);
    command
        .current_dir(other.path())
        .args(["smoke", "--adapter"])
        .arg(adapter);
    let smoke = command.output().unwrap();
    assert_eq!(smoke.status.code(), Some(0), "{}", text(&smoke.stdout));
    let run = place.pi_conform(&["run", "--adapter", "mcp-delegator.yaml", "clean-exit"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stdout));
    place.is_tidy();
}

pub fn init_says_what_it_cannot_fill() {
    let demanding = SERVER.replace(
        r#""required": ["prompt"]"#,
        r#""required": ["prompt", "budget"]"#,
    );
    let place = Place::with("mcp_delegator.py", &demanding);
    let done = place.pi_conform(&["init", "--command", COMMAND]);
    assert_eq!(done.status.code(), Some(2));
    let said = "the tool `ask_agent` requires the argument `budget` (any), which nothing fills; `--argument budget=VALUE` does";
    assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
    let done = place.pi_conform(&["init", "--command", COMMAND, "--tool", "ask_agnet"]);
    assert!(
        text(&done.stderr).contains("no tool `ask_agnet`; did you mean `ask_agent`?"),
        "{}",
        text(&done.stderr)
    );
    let done = place.pi_conform(&["init"]);
    assert!(
        text(&done.stderr).contains("`init` needs `--command"),
        "{}",
        text(&done.stderr)
    );
    assert!(!place.path("mcp-delegator.yaml").exists());
}

pub fn init_overwrites_nothing() {
    let place = Place::with("mcp_delegator.py", SERVER);
    place.file("mine.yaml", "mine\n");
    let args = ["init", "--command", COMMAND, "--out", "mine.yaml"];
    let done = place.pi_conform(&args);
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("mine.yaml is already there; `--force` overwrites it"));
    assert_eq!(place.read("mine.yaml"), "mine\n");
    let done = place.pi_conform(&[&args[..], &["--force"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(place.read("mine.yaml").contains("adapter: mcp-delegator"));
}

pub fn init_says_why_nothing_was_written() {
    let place = Place::with("dies.py", "import sys\nsys.exit('no licence')\n");
    let done = place.pi_conform(&["init", "--command", "python3 dies.py"]);
    assert_eq!(done.status.code(), Some(1));
    let said = "nothing was written: `command`: it ended with code 1 before it answered the handshake; the last of its standard error: no licence";
    assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
    assert!(!place.path("dies.yaml").exists());
    place.is_tidy();
}

/// What a person at a debugger does: starts the subject with the line that was printed, and feeds it what was printed.
pub fn attach_by_hand() {
    let place = Place::with("mcp_delegator.py", SERVER);
    let made = place.pi_conform(&["init", "--command", COMMAND]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let mut command = place.dressed(super::place::EXECUTABLE);
    command
        .args(["attach", "clean-exit", "--adapter", "mcp-delegator.yaml"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut attach = command.spawn().unwrap();
    let mut said = BufReader::new(attach.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("press Enter here") {
        assert_ne!(said.read_line(&mut told).unwrap(), 0, "{told}");
    }
    let folder = told
        .lines()
        .find_map(|line| line.strip_prefix("cd "))
        .unwrap();
    let start = told
        .lines()
        .find(|line| line.starts_with("env -i "))
        .unwrap();
    let mut messages = String::new();
    let mut lines = BufReader::new(attach.stdout.take().unwrap());
    for _ in 0..3 {
        lines.read_line(&mut messages).unwrap();
    }
    let mut subject = place.dressed("sh");
    subject
        .args(["-c", &format!("cd {folder} && exec {start}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut subject = subject.spawn().unwrap();
    let mut input = subject.stdin.take().unwrap();
    input.write_all(messages.as_bytes()).unwrap();
    let mut answers = BufReader::new(subject.stdout.take().unwrap());
    let mut answer = String::new();
    while !answer.contains("\"id\": 1,") {
        assert_ne!(answers.read_line(&mut answer).unwrap(), 0, "{answer}");
    }
    drop(input);
    assert!(subject.wait().unwrap().success());
    assert!(answer.contains("\"text\": \"clean\""), "{answer}");
    attach.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(attach.wait().unwrap().code(), Some(0), "{rest}");
    for part in [
        "journal  a  exits 0",
        "✓ checks[3] a.signals",
        "– checks[0] call.ok: not judged",
    ] {
        assert!(rest.contains(part), "`{part}` is not in\n{rest}");
    }
    place.is_tidy();
}

/// On a terminal it asks, and takes what is typed.
pub fn init_asks_on_a_terminal() {
    let place = Place::with("mcp_delegator.py", SERVER);
    let pty = nix::pty::openpty(None, None).unwrap();
    let end = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut command = place.dressed(super::place::EXECUTABLE);
    command
        .arg("init")
        .stdin(end())
        .stderr(end())
        .stdout(Stdio::piped());
    let mut init = command.spawn().unwrap();
    let mut screen = std::fs::File::from(pty.master);
    let mut keys = screen.try_clone().unwrap();
    for (question, typed) in [
        ("Which command starts", "python3 mcp_delegator.py\r"),
        ("be called", "typed\r"),
    ] {
        let mut seen = String::new();
        while !seen.contains(question) {
            let mut piece = [0; 1024];
            let read = screen.read(&mut piece).unwrap();
            seen += &text(&piece[..read]);
        }
        keys.write_all(typed.as_bytes()).unwrap();
    }
    let mut out = String::new();
    init.stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert_eq!(init.wait().unwrap().code(), Some(0), "{out}");
    assert!(
        out.contains("typed.yaml is written: the adapter is right"),
        "{out}"
    );
    assert!(place.read("typed.yaml").contains("adapter: typed\n"));
}
