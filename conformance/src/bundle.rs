//! Bundles: the evidence of one scenario as a folder (see [`crate::evidence`] for its layout).

use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::de::DeserializeOwned;

use crate::evidence::{Evidence, FORMAT, Header};

/// Why a bundle cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file or folder of it.
    #[error("cannot {doing} `{}`", .path.display())]
    Io {
        /// `read` or `write`.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder has no `bundle.json`.
    #[error("`{}` is no bundle: it has no `bundle.json`; a bundle is a folder that `pi-conform run` wrote", .0.display())]
    NotABundle(PathBuf),
    /// Written by a later version.
    #[error("`{}` has format {found}, and this version reads formats up to {FORMAT}; judge it with the version that wrote it, or a later one", .path.display())]
    TooNew {
        /// `bundle.json`.
        path: PathBuf,
        /// Its format number.
        found: u64,
    },
    /// A line or file that is not as it should be.
    #[error("cannot read `{}`, line {line}: {source}", .path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}

/// Name of a scenario's bundle folder: its full name, with what does not belong in a file name replaced, and short
/// enough; a digest keeps long names apart.
pub fn folder_name(name: &str) -> String {
    use sha2::Digest as _;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=,[]".contains(c);
    let clean: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    if clean == name && clean.len() <= 100 {
        return clean;
    }
    let digest = sha2::Sha256::digest(name.as_bytes());
    let short: String = digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let head: String = clean.chars().take(100).collect();
    format!("{head}~{short}")
}

/// Writes evidence as a bundle. The folder is made; files of an earlier bundle in it are replaced.
///
/// # Errors
/// When something cannot be written.
pub fn write(folder: &Path, evidence: &Evidence) -> Result<(), BundleError> {
    for part in ["journal", "stderr"] {
        let path = folder.join(part);
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(writing(&path))?;
        }
        std::fs::create_dir_all(&path).map_err(writing(&path))?;
    }
    write_header(folder, &evidence.header)?;
    write_lines(&folder.join("events.jsonl"), &evidence.events)?;
    for (at, journal) in evidence.journals.iter().enumerate() {
        let pid = journal.first().map_or(0, |entry| entry.pid);
        write_lines(
            &folder.join(format!("journal/{at:03}-{pid}.jsonl")),
            journal,
        )?;
    }
    for (subject, text) in &evidence.stderr {
        let path = folder.join(format!("stderr/{subject}.log"));
        std::fs::write(&path, text).map_err(writing(&path))?;
    }
    Ok(())
}

/// Writes `bundle.json` alone, before anything has happened.
///
/// # Errors
/// When it cannot be written.
pub fn write_header(folder: &Path, header: &Header) -> Result<(), BundleError> {
    let path = folder.join("bundle.json");
    let mut text =
        serde_json::to_string_pretty(header).map_err(|source| BundleError::Malformed {
            path: path.clone(),
            line: 1,
            source,
        })?;
    text.push('\n');
    std::fs::write(&path, text).map_err(writing(&path))
}

fn write_lines<T: serde::Serialize>(path: &Path, items: &[T]) -> Result<(), BundleError> {
    let mut bytes = Vec::new();
    for (at, item) in items.iter().enumerate() {
        serde_json::to_writer(&mut bytes, item).map_err(|source| BundleError::Malformed {
            path: path.to_owned(),
            line: at + 1,
            source,
        })?;
        bytes.push(b'\n');
    }
    std::fs::write(path, bytes).map_err(writing(path))
}

/// Reads a bundle. Events come in order of time. A last line that was cut by a crash is left out.
///
/// # Errors
/// When the folder is no bundle, was written by a later version, or something in it cannot be read.
pub fn read(folder: &Path) -> Result<Evidence, BundleError> {
    let path = folder.join("bundle.json");
    let text = std::fs::read_to_string(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            BundleError::NotABundle(folder.to_owned())
        }
        _ => reading(&path)(source),
    })?;
    let malformed = |source: serde_json::Error| BundleError::Malformed {
        path: path.clone(),
        line: source.line(),
        source,
    };
    // The number comes first: what a later format holds beside it may mean nothing to us.
    let raw: serde_json::Value = serde_json::from_str(&text).map_err(malformed)?;
    let found = raw["format"].as_u64().unwrap_or(0);
    if found > u64::from(FORMAT) {
        return Err(BundleError::TooNew { path, found });
    }
    let header: Header = serde_json::from_str(&text).map_err(malformed)?;
    let mut events = read_lines(&folder.join("events.jsonl"))?;
    events.sort_by_key(|event: &crate::evidence::Event| event.t_ns);
    let journals = files(&folder.join("journal"))?
        .iter()
        .map(|path| read_lines(path))
        .collect::<Result<_, _>>()?;
    let mut stderr = IndexMap::new();
    for path in files(&folder.join("stderr"))? {
        let bytes = std::fs::read(&path).map_err(reading(&path))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        stderr.insert(
            name.into_owned(),
            String::from_utf8_lossy(&bytes).into_owned(),
        );
    }
    Ok(Evidence {
        header,
        events,
        journals,
        stderr,
    })
}

/// Reads a file of JSON lines. A last line without its end is what a crash leaves: it is left out.
///
/// # Errors
/// When it cannot be read, or another line is malformed.
pub fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, BundleError> {
    let file = std::fs::File::open(path).map_err(reading(path))?;
    let mut lines = io::BufReader::new(file);
    let mut items = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        lines.read_until(b'\n', &mut line).map_err(reading(path))?;
        if line.last() != Some(&b'\n') {
            break;
        }
        let item = serde_json::from_slice(&line).map_err(|source| BundleError::Malformed {
            path: path.to_owned(),
            line: number,
            source,
        })?;
        items.push(item);
    }
    Ok(items)
}

/// Files of a folder in order of their names; none where the folder is missing.
fn files(folder: &Path) -> Result<Vec<PathBuf>, BundleError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(reading(folder))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(reading(folder))?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn reading(path: &Path) -> impl Fn(io::Error) -> BundleError {
    io_error("read", path)
}

fn writing(path: &Path) -> impl Fn(io::Error) -> BundleError {
    io_error("write", path)
}

fn io_error(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> BundleError {
    let path = path.to_owned();
    move |source| BundleError::Io {
        doing,
        path: path.clone(),
        source,
    }
}
