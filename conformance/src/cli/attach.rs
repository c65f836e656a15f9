//! `attach`: a scenario for somebody who starts the subject by hand, under a debugger say.
//!
//! The messages to feed go to standard output and nothing else does, so that they can be put in a file or a pipe; how to start the
//! subject, and what each message is, stand on standard error.

use std::io::BufRead as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::check;
use crate::cli::args::Which;
use crate::cli::author_args::Attach;
use crate::cli::{Bundled, Exit, Failure, select, suite};
use crate::evidence::Evidence;
use crate::runner::attach::{Attached, Said};
use crate::runner::{Interrupt, RunContext};
use crate::scenario::Planned;
use crate::verdict::Verdict;

/// Names that are told when one stands for several scenarios.
const TOLD: usize = 6;

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Attach) -> Result<Exit, Failure> {
    let adapter = suite::adapter(&args.subject.adapter)?;
    let planned = one(args, suite::plan(&args.files, &adapter)?)?;
    let mut context: RunContext = suite::context_of(bundled, &args.subject)?;
    context.keep_folders = args.keep;
    suite::watch_interrupts(&context.interrupt);
    let mut attached = Attached::lay_out(&planned, &adapter, &context).map_err(Failure::usage)?;
    start(&attached);
    for said in attached.script() {
        match said {
            Said::Note(note) => anstream::eprintln!("# {note}"),
            Said::Line(line) => anstream::println!("{line}"),
        }
    }
    anstream::eprintln!(
        "# when it is over, press Enter here: then its children's journals are shown and judged"
    );
    wait(&context.interrupt);
    let exit = told(&attached.evidence());
    if args.keep {
        anstream::eprintln!("# kept: {}", attached.folder());
    }
    Ok(exit)
}

/// The one scenario that was named.
fn one(args: &Attach, all: Vec<Planned>) -> Result<Planned, Failure> {
    let catalogue = Catalogue::embedded().map_err(Failure::harness)?;
    let which = Which {
        names: vec![args.scenario.clone()],
        ..Which::default()
    };
    let mut chosen = select::select(all, &which, &catalogue)?;
    if chosen.len() > 1 {
        let names: Vec<&str> = chosen.iter().map(|planned| planned.name.as_str()).collect();
        let more = if names.len() > TOLD { ", …" } else { "" };
        return Err(Failure::usage(format!(
            "`{}` stands for {} scenarios; name one: {}{more}",
            args.scenario,
            names.len(),
            names[..names.len().min(TOLD)].join(", ")
        )));
    }
    chosen.pop().ok_or_else(|| Failure {
        message: "nothing was selected".to_owned(),
        exit: Exit::NothingSelected,
    })
}

/// How the subject is started: a line for a shell, with its whole environment and nothing else.
fn start(attached: &Attached) {
    let start = &attached.start;
    anstream::eprintln!(
        "# laid out in {}; start the subject like this:",
        attached.folder()
    );
    anstream::eprintln!("cd {}", shell_words::quote(&start.cwd));
    let mut words = vec!["env".to_owned(), "-i".to_owned()];
    words.extend(
        start
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    words.extend(start.argv.iter().cloned());
    anstream::eprintln!("{}", shell_words::join(words));
    if !start.blocked.is_empty() || !start.ignored.is_empty() || start.descriptors.is_some() {
        anstream::eprintln!(
            "# the scenario also has signals blocked ({}) and ignored ({}), and a limit of descriptors ({})",
            start.blocked.join(" "),
            start.ignored.join(" "),
            start
                .descriptors
                .map_or("none".to_owned(), |limit| limit.to_string())
        );
    }
    anstream::eprintln!("# and feed it the lines of standard output, one after the other:");
}

/// Waits for a line, for the end of input, or for a signal.
fn wait(interrupt: &Interrupt) {
    let (say, hear) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // A line, the end, an error: all the same, the wait is over.
        let _ = std::io::stdin().lock().read_line(&mut line);
        let _ = say.send(());
    });
    while !interrupt.raised() {
        match hear.recv_timeout(Duration::from_millis(50)) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// What the journals say, and what can be judged by them.
fn told(evidence: &Evidence) -> Exit {
    let verdict = check::judge(evidence);
    if evidence.journals.is_empty() {
        anstream::eprintln!("# no child was started");
    }
    for line in check::story::timeline(evidence) {
        anstream::eprintln!("{line}");
    }
    anstream::eprintln!(
        "# the subject's claims and the kernel were not watched: what depends on them is not judged"
    );
    let mut failed = false;
    let mut judged = false;
    // What holds in every scenario needs all three witnesses, so the scenario's own checks alone are told.
    let own = verdict
        .checks
        .iter()
        .filter(|check| check.id.starts_with("checks["));
    for check in own {
        match check.verdict {
            Verdict::Pass => {
                judged = true;
                anstream::eprintln!("✓ {}: {}", check.id, check.seen);
            }
            Verdict::Fail => {
                judged = true;
                failed = true;
                anstream::eprintln!(
                    "✗ {}: expected {}; saw {}",
                    check.id,
                    check.expected,
                    check.seen
                );
            }
            _ => anstream::eprintln!("– {}: not judged", check.id),
        }
    }
    match (judged, failed) {
        (_, true) => Exit::Failures,
        (true, false) => Exit::AsExpected,
        (false, false) => Exit::Incomplete,
    }
}
