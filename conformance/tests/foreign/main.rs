//! Subjects that know nothing of this project, in Python with its standard library alone: the tutorial as it is written, what
//! `init` makes of such a server, and that the judge passes the sound one and fails the broken one.
//!
//! Without python3 the trials show as ignored, with the reason.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authoring;
mod judge;
mod place;
mod tutorial;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

const TRIALS: &[(&str, fn())] = &[
    ("tutorial is as it is written", tutorial::is_as_written),
    ("sound server passes", judge::sound_server_passes),
    ("broken server fails", judge::broken_server_fails),
    (
        "what is not declared is not applicable",
        judge::undeclared_is_not_applicable,
    ),
    (
        "init writes an adapter that runs",
        authoring::init_writes_what_runs,
    ),
    (
        "init asks on a terminal",
        authoring::init_asks_on_a_terminal,
    ),
    (
        "init says what it cannot fill",
        authoring::init_says_what_it_cannot_fill,
    ),
    (
        "init overwrites nothing",
        authoring::init_overwrites_nothing,
    ),
    (
        "init says why nothing was written",
        authoring::init_says_why_nothing_was_written,
    ),
    (
        "attach shows and judges what was fed by hand",
        authoring::attach_by_hand,
    ),
];

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let trials = TRIALS.iter().map(|(name, body)| {
        Trial::ignorable_test(*name, move || -> Result<Completion, Failed> {
            if !place::has_python() {
                return Ok(Completion::ignored_with(
                    "python3 is not there; a package of that name brings it",
                ));
            }
            body();
            Ok(Completion::Completed)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
