//! Putting a real Pi in place as the parent, with fake-pi where its children will be.
//!
//! Delegators find their child in three ways: they start their own entry again, they look `pi` up on PATH (or in a variable that
//! the adapter sets), or they resolve Pi's package. One layout serves each of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::adapter::Interpose;

/// Folder below TMPDIR in which Pi's loader of extensions keeps what it compiled.
pub const LOADER_CACHE: &str = "jiti";

const SHIM: &str = include_str!("shim.mjs");
const HOOK: &str = include_str!("hook.mjs");

/// Where the parts of a parent are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Node's executable.
    pub node: PathBuf,
    /// Pi's package.
    pub package: PathBuf,
    /// The file that the package names as `pi`.
    pub entry: PathBuf,
    /// The package's name and version.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What starts the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What Node is to run.
    pub script: PathBuf,
    /// Variables that make it so.
    pub env: Vec<(String, String)>,
}

impl Parent {
    /// Looks into the packages.
    ///
    /// # Errors
    /// When one of them is not as npm leaves it.
    pub fn of(node: &Path, package: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(package.join("package.json"))?;
        let about: Value = serde_json::from_str(&text).map_err(io::Error::other)?;
        let word = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
        let entry = about["bin"]["pi"].as_str().or(about["bin"].as_str());
        let entry = entry.ok_or_else(|| io::Error::other("the package names no program `pi`"))?;
        let executable = node.join("bin/node");
        if !executable.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("`{}`", executable.display()),
            ));
        }
        Ok(Self {
            node: executable,
            entry: package.join(entry).canonicalize()?,
            package: package.to_owned(),
            name: word("name"),
            version: word("version"),
        })
    }

    /// Arguments that every parent gets: it speaks RPC, asks the runner's model, and loads nothing but what the adapter names.
    pub fn flags(&self) -> &'static [&'static str] {
        const ALL: [&str; 10] = [
            "--mode",
            "rpc",
            "--provider",
            "stub",
            "--model",
            "x",
            "--no-extensions",
            "--no-skills",
            "--no-context-files",
            "--no-mcp",
        ];
        // The older line has no `--no-mcp`.
        if self.tells_settled() {
            &ALL
        } else {
            &ALL[..ALL.len() - 1]
        }
    }

    /// Whether this line tells when a run has settled; the older one ends with `agent_end`.
    pub fn tells_settled(&self) -> bool {
        !self.version.starts_with("0.")
    }

    /// Lays out what stands between the parent's children and a real Pi, below `folder`. `fake` is fake-pi, beside its script.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn lay_out(&self, how: Interpose, folder: &Path, fake: &Path) -> io::Result<Entry> {
        let kit = json!({"real": self.entry, "fake": fake}).to_string();
        match how {
            Interpose::Path => Ok(Entry {
                script: self.entry.clone(),
                env: Vec::new(),
            }),
            Interpose::Shim => {
                // As a package of the same name, in a folder of the same shape: some delegators look at both.
                let package = folder.join("node_modules").join(&self.name);
                let dist = package.join("dist");
                fs::create_dir_all(&dist)?;
                let about = json!({
                    "name": self.name, "version": self.version, "type": "module", "bin": {"pi": "dist/cli.js"},
                });
                fs::write(package.join("package.json"), about.to_string())?;
                fs::write(dist.join("kit.json"), kit)?;
                fs::write(dist.join("cli.js"), SHIM)?;
                Ok(Entry {
                    script: dist.join("cli.js"),
                    env: Vec::new(),
                })
            }
            Interpose::Hook => {
                fs::create_dir_all(folder)?;
                fs::write(folder.join("kit.json"), kit)?;
                let hook = folder.join("hook.mjs");
                fs::write(&hook, HOOK)?;
                Ok(Entry {
                    script: self.entry.clone(),
                    env: vec![(
                        "NODE_OPTIONS".to_owned(),
                        format!("--import={}", hook.display()),
                    )],
                })
            }
        }
    }
}
