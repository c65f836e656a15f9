//! The table of checks.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, getrlimit};
use rustix::process::{Pid, PidfdFlags};

use super::{Check, Missing, Patient, folder, temporary};
use crate::adapter::{Adapter, ChildMode, Transport};
use crate::runner::{self, parts};

/// Open files that the suite may want at once.
const DESCRIPTORS: u64 = 1024;
/// Processes that it may want at once.
const PROCESSES: u64 = 512;

/// All checks: the adapter's own first, then the machine, then what only some runs want.
pub const CHECKS: &[Check] = &[
    Check {
        name: "program",
        purpose: "the adapter's command",
        needed: |_| true,
        look: program,
    },
    Check {
        name: "tmpdir",
        purpose: "folders of scenarios, with programs in them",
        needed: |_| true,
        look: tmpdir,
    },
    Check {
        name: "hard-links",
        purpose: "one executable under many names; without them each is a copy",
        needed: |_| false,
        look: hard_links,
    },
    Check {
        name: "proc",
        purpose: "the kernel as a witness",
        needed: |_| true,
        look: proc,
    },
    Check {
        name: "subreaper",
        purpose: "orphans come home to the warden",
        needed: |_| true,
        look: subreaper,
    },
    Check {
        name: "pidfd",
        purpose: "ends of processes that are not the warden's own",
        needed: |_| true,
        look: pidfd,
    },
    Check {
        name: "descriptors",
        purpose: "many scenarios at once",
        needed: |_| true,
        look: descriptors,
    },
    Check {
        name: "processes",
        purpose: "many scenarios at once",
        needed: |_| true,
        look: processes,
    },
    Check {
        name: "node",
        purpose: "a real Pi as parent",
        needed: is_extension,
        look: |patient| package(patient, "node@22"),
    },
    Check {
        name: "pi-1.6.0",
        purpose: "a real Pi as parent",
        needed: is_extension,
        look: |patient| package(patient, "@earendil-works/pi-coding-agent@1.6.0"),
    },
    Check {
        name: "pi-0.73.1",
        purpose: "delegators for the older line of Pi",
        needed: |_| false,
        look: |patient| package(patient, "@mariozechner/pi-coding-agent@0.73.1"),
    },
    Check {
        name: "chromium",
        purpose: "the test of the HTML report",
        needed: |_| false,
        look: chromium,
    },
];

fn is_extension(adapter: &Adapter) -> bool {
    adapter.transport == Transport::PiExtension || adapter.child_mode == ChildMode::InProcess
}

fn program(patient: &Patient<'_>) -> Result<String, Missing> {
    match runner::check_command(patient.adapter, patient.context) {
        Ok(()) => Ok("the adapter's command and all its parts are there".to_owned()),
        Err(error) => {
            let error = error.to_string();
            let error = error.trim_start_matches("cannot start the subject: ");
            // What is missing of its parts already says what brings it.
            match error.split_once("; ") {
                Some((what, cure)) => Err(Missing::new(what, command(cure))),
                None => Err(Missing::new(
                    error,
                    format!(
                        "install it, or put the `command` of the adapter `{}` right",
                        patient.adapter.adapter
                    ),
                )),
            }
        }
    }
}

fn tmpdir(_: &Patient<'_>) -> Result<String, Missing> {
    let place = temporary().display().to_string();
    let cure = "export TMPDIR=\"$HOME/tmp\" && mkdir -p \"$TMPDIR\"";
    let bad = |what: String| Missing::new(what, cure);
    let folder = folder().map_err(|error| bad(format!("{place} cannot be written: {error}")))?;
    let script = folder.path().join("runs");
    let made = fs::write(&script, "#!/bin/sh\nexit 0\n")
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)));
    made.map_err(|error| bad(format!("{place} cannot be written: {error}")))?;
    let ran = Command::new(&script)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match ran {
        Ok(status) if status.success() => {
            Ok(format!("{place} can be written, and programs run there"))
        }
        _ => Err(bad(format!("no program runs in {place} (mounted noexec?)"))),
    }
}

fn hard_links(patient: &Patient<'_>) -> Result<String, Missing> {
    let executable = &patient.context.executable;
    let cure = format!(
        "export TMPDIR={} # a folder on the file system of {}",
        executable.parent().unwrap_or(Path::new("/")).display(),
        executable.display()
    );
    let folder = folder().map_err(|error| Missing::new(error.to_string(), cure.clone()))?;
    let link = folder.path().join("link");
    match fs::hard_link(executable, &link) {
        Ok(()) => Ok("the executable can be linked into the temporary folder".to_owned()),
        Err(error) => {
            let size = fs::metadata(executable).map_or(0, |meta| meta.size()) >> 20;
            Err(Missing::new(
                format!(
                    "the executable cannot be linked ({error}), so each run copies its {size} MiB once"
                ),
                cure,
            ))
        }
    }
}

fn proc(_: &Patient<'_>) -> Result<String, Missing> {
    let cure = "mount -t proc proc /proc # without hidepid, and with CONFIG_PROC_CHILDREN";
    let own = i32::try_from(std::process::id()).unwrap_or(1);
    if crate::proc::stat(own).is_none() {
        return Err(Missing::new("/proc/PID/stat cannot be read", cure));
    }
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(_) => Ok("stat and children of processes can be read".to_owned()),
        Err(error) => Err(Missing::new(
            format!("/proc/PID/task/TID/children cannot be read: {error}"),
            cure,
        )),
    }
}

fn subreaper(_: &Patient<'_>) -> Result<String, Missing> {
    use nix::sys::prctl::{get_child_subreaper, set_child_subreaper};
    // This program is one for no longer than the question takes.
    let set = get_child_subreaper()
        .and_then(|before| set_child_subreaper(true).and_then(|()| set_child_subreaper(before)));
    set.map(|()| "a process can be one".to_owned())
        .map_err(|error| {
            Missing::new(
                format!("prctl(PR_SET_CHILD_SUBREAPER) fails: {error}"),
                "allow prctl in the sandbox that this runs in (seccomp); Linux has it since 3.4",
            )
        })
}

fn pidfd(_: &Patient<'_>) -> Result<String, Missing> {
    let own: Pid = rustix::process::getpid();
    match rustix::process::pidfd_open(own, PidfdFlags::empty()) {
        Ok(_) => Ok("processes can be held on to".to_owned()),
        Err(error) => Err(Missing::new(
            format!("pidfd_open fails: {error}"),
            "allow pidfd_open in the sandbox that this runs in (seccomp); Linux has it since 5.3",
        )),
    }
}

fn limit(resource: Resource, least: u64, what: &str, cure: String) -> Result<String, Missing> {
    let (soft, _) =
        getrlimit(resource).map_err(|error| Missing::new(error.to_string(), cure.clone()))?;
    if soft >= least {
        let told = if soft == u64::MAX {
            "no limit".to_owned()
        } else {
            soft.to_string()
        };
        return Ok(format!("{told} ({least} are enough)"));
    }
    Err(Missing::new(
        format!("only {soft} {what}, {least} are wanted"),
        cure,
    ))
}

fn descriptors(_: &Patient<'_>) -> Result<String, Missing> {
    let cure = format!("ulimit -n {DESCRIPTORS}");
    limit(Resource::RLIMIT_NOFILE, DESCRIPTORS, "open files", cure)
}

fn processes(_: &Patient<'_>) -> Result<String, Missing> {
    let cure = format!("ulimit -u {PROCESSES}");
    limit(Resource::RLIMIT_NPROC, PROCESSES, "processes", cure)
}

fn package(patient: &Patient<'_>, package: &str) -> Result<String, Missing> {
    parts::package(package, &patient.context.packages)
        .map(|folder| folder.display().to_string())
        .map_err(|missing| {
            Missing::new(
                format!("{} is not there", missing.what),
                command(&missing.cure),
            )
        })
}

/// The command in a sentence such as "`npm install x` brings it".
fn command(cure: &str) -> &str {
    match cure.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        Some((command, _)) => command,
        None => cure,
    }
}

/// Names under which Chromium is installed.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn chromium(_: &Patient<'_>) -> Result<String, Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all =
        std::env::split_paths(&path).flat_map(|folder| CHROMIUM.map(|name| folder.join(name)));
    let found: Option<PathBuf> = all.find(|path| path.is_file());
    found
        .map(|path| path.display().to_string())
        .ok_or_else(|| Missing::new("there is no chromium on PATH", "apt-get install chromium"))
}
