//! The reference with the real Pi: both lines in use, a scripted model on loopback, no key, no network.
//!
//! Every trial starts `delegate mcp` in folders of its own, hands it a task over MCP, and looks at three things: the
//! result, what the model was asked, and what the kernel still has of the trial's processes. Without Node 22 and Pi the
//! trials show as ignored, with the command that brings both; with `PI_CONFORM_REAL_PI=required` they fail instead.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that panics has said so, and its own harness captures nothing"
)]

mod delegate;
mod line;
mod processes;
mod stage;
mod trials;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use line::{LINES, Line};

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    // A trial mostly waits for Pi; more of them than cores finish sooner.
    arguments.test_threads.get_or_insert(4);
    let trials = LINES.iter().flat_map(|line| {
        trials::ALL.iter().map(move |(name, body)| {
            Trial::ignorable_test(format!("pi {} {name}", line.version), move || {
                run(line, *body)
            })
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A trial's body. It panics when something is wrong.
type Body = fn(&'static Line) -> std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn run(line: &'static Line, body: Body) -> Result<Completion, Failed> {
    if let Err(missing) = line.is_there() {
        let required =
            std::env::var_os("PI_CONFORM_REAL_PI").is_some_and(|value| value == "required");
        return if required {
            Err(missing.into())
        } else {
            Ok(Completion::ignored_with(missing))
        };
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(body(line));
    Ok(Completion::Completed)
}
