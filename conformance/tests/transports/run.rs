//! One trial: the real program on one subject, and the verdicts that it must give.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use conformance::adapter::{self, Adapter, Transport};
use conformance::runner::parts;
use libtest_mimic::{Completion, Failed, Trial};
use serde_json::Value;

/// Who is judged.
#[derive(Clone, Copy)]
pub enum Subject {
    /// An adapter of `docs/examples`.
    Example(&'static str),
    /// The same with the older line of Pi as the parent.
    Older(&'static str),
    /// An adapter that the program carries.
    Published(&'static str),
    /// An adapter with the files beside it.
    Written {
        adapter: &'static str,
        files: &'static [(&'static str, &'static str)],
    },
}

/// The verdicts that must come.
#[derive(Clone, Copy)]
pub enum Expected {
    All(&'static [&'static str], &'static str),
    Each(&'static [(&'static str, &'static str)]),
}

impl Expected {
    fn verdicts(self) -> BTreeMap<String, String> {
        let pairs: Vec<(&str, &str)> = match self {
            Self::All(names, verdict) => names.iter().map(|name| (*name, verdict)).collect(),
            Self::Each(pairs) => pairs.to_vec(),
        };
        pairs
            .into_iter()
            .map(|(name, verdict)| (name.to_owned(), verdict.to_owned()))
            .collect()
    }
}

pub fn trial(name: &str, subject: Subject, expected: Expected) -> Trial {
    Trial::ignorable_test(name, move || judge(subject, expected))
}

/// Where `.ci/run` and the README bring Node, Pi and the packages.
fn packages() -> PathBuf {
    // Cargo's folder for the tests' files lies beside the profiles, in the target folder.
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("pi")
}

fn judge(subject: Subject, expected: Expected) -> Result<Completion, Failed> {
    let folder = tempfile::tempdir()?;
    let file = lay_out(subject, folder.path());
    let adapter = adapter::load(&file).unwrap();
    if let Some(missing) = missing(&adapter) {
        let required =
            std::env::var_os("PI_CONFORM_REAL_PI").is_some_and(|value| value == "required");
        return if required {
            Err(missing.into())
        } else {
            Ok(Completion::ignored_with(missing))
        };
    }
    let expected = expected.verdicts();
    let results = folder.path().join("results.jsonl");
    let output = Command::new(env!("CARGO_BIN_EXE_pi-conform"))
        .arg("run")
        .args(expected.keys())
        .args(["--adapter", &file, "-j", "3"])
        .arg("--packages")
        .arg(packages())
        .arg("--format")
        .arg(format!("json:{}", results.display()))
        .arg("--out")
        .arg(folder.path().join("bundles"))
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .output()?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let seen = verdicts(&results);
    if seen == expected {
        Ok(Completion::Completed)
    } else {
        Err(format!("expected {expected:#?}\nsaw {seen:#?}\n{told}").into())
    }
}

/// The adapter's name or file.
fn lay_out(subject: Subject, folder: &Path) -> String {
    let example = |name: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples");
        root.join(format!("{name}.yaml"))
    };
    match subject {
        Subject::Published(name) => name.to_owned(),
        Subject::Example(name) => example(name).to_string_lossy().into_owned(),
        Subject::Older(name) => {
            let text = std::fs::read_to_string(example(name)).unwrap();
            let parent = "transport: pi-extension\n";
            assert!(text.contains(parent));
            let older = "parts: {npm: {pi: \"@mariozechner/pi-coding-agent@0.73.1\"}}\n";
            let text = text.replace(parent, &format!("{parent}{older}"));
            let file = folder.join(format!("{name}.yaml"));
            std::fs::write(&file, text).unwrap();
            let extension = format!("{name}.ts");
            std::fs::copy(
                example(name).with_file_name(&extension),
                folder.join(extension),
            )
            .unwrap();
            file.to_string_lossy().into_owned()
        }
        Subject::Written { adapter, files } => {
            for (name, text) in files {
                std::fs::write(folder.join(name), text).unwrap();
            }
            let file = folder.join("adapter.yaml");
            std::fs::write(&file, adapter).unwrap();
            file.to_string_lossy().into_owned()
        }
    }
}

/// What the subject needs and is not there.
fn missing(adapter: &Adapter) -> Option<String> {
    if let Err(missing) = parts::find(adapter, &packages(), None) {
        return Some(missing.to_string());
    }
    let python = adapter.transport == Transport::Command;
    let there = || Command::new("python3").arg("--version").output().is_ok();
    (python && !there()).then(|| "there is no `python3`".to_owned())
}

fn verdicts(results: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(results).unwrap_or_default();
    let events = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let finished = events.filter(|event| event["type"] == "finished");
    finished
        .map(|event| {
            let word = |key: &str| event[key].as_str().unwrap().to_owned();
            (word("scenario"), word("verdict"))
        })
        .collect()
}
