//! One executable with several names: the suite, and everything that the suite starts.
//!
//! | started as | is |
//! |---|---|
//! | `pi`, `fake-pi`, or anything beside a fake-pi script | fake-pi |
//! | the name of a bundled subject: `delegate`, `mutant-NAME` | that subject |
//! | `… warden` | the warden of one subject, when the runner starts it |
//! | `… each-call` | what starts a command anew for each call, when that is how a subject is used |
//! | `… spin-while-input-is-open` | what keeps the machine busy during a run `--under-load` |
//! | anything else | the command line of the suite |

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use conformance::cli::{self, Bundled, BundledSubject};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let name = args.first().map(Path::new).and_then(Path::file_name);
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    if matches!(name.as_str(), "pi" | "fake-pi") || beside_a_script() {
        return fake_pi::main(args);
    }
    let bundled = bundled();
    // Mutants are linked as `mutant-NAME`, so that none takes a name that means something else.
    let plain = name.strip_prefix("mutant-").unwrap_or(&name);
    if let Some(subject) = bundled
        .subjects
        .iter()
        .find(|subject| subject.name == plain)
    {
        return (subject.main)(args);
    }
    if args.get(1).is_some_and(|word| word == "warden") {
        return conformance::warden::main();
    }
    if args
        .get(1)
        .is_some_and(|word| word == conformance::spin::WORD)
    {
        return conformance::spin::main();
    }
    if args
        .get(1)
        .is_some_and(|word| word == conformance::runner::EACH_CALL)
    {
        let command = args[2..]
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        return conformance::runner::each_call(&command.collect::<Vec<_>>());
    }
    cli::main(bundled)
}

/// The subjects that this executable carries: the sound reference, and the broken ones.
fn bundled() -> Bundled {
    let sound = BundledSubject {
        name: "delegate".to_owned(),
        about: "the bundled reference, a delegator that keeps every promise".to_owned(),
        breaks: Vec::new(),
        sound: true,
        main: reference::main,
    };
    let broken = mutants::all().into_iter().map(|mutant| BundledSubject {
        name: mutant.name.to_owned(),
        about: mutant.about.to_owned(),
        breaks: mutant.breaks.iter().map(|id| (*id).to_owned()).collect(),
        sound: false,
        main: mutant.main,
    });
    Bundled {
        subjects: std::iter::once(sound).chain(broken).collect(),
    }
}

/// A fake-pi script lies beside the executable: then it plays that, whatever its name. Traps are of that sort.
fn beside_a_script() -> bool {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("/"));
    ["json", "yaml", "yml"]
        .iter()
        .any(|kind| folder.join(format!("fake-pi.script.{kind}")).exists())
}
