//! Gathers at build time what the executable carries: the scenarios, which unit and property tests show which
//! requirement (`// shows: id, id` above a test), and the list of open requirements.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the workspace whose Rust sources are searched.
const CRATES: [&str; 4] = ["reference", "fake-pi", "conformance", "benches"];

/// Folders of `scenarios/` that hold other things than scenarios.
const OTHER_FOLDERS: [&str; 3] = ["contract", "requirements", "traces"];

/// What a marker line starts with.
const MARKER: &str = "// shows:";

/// So many lines below a marker its test must begin.
const REACH: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    let mut shown = Vec::new();
    for name in CRATES {
        let folder = root.join(name);
        for part in ["src", "tests", "mutants"] {
            let part = folder.join(part);
            if part.is_dir() {
                println!("cargo::rerun-if-changed={}", part.display());
                search(&part, &root, &mut shown)?;
            }
        }
    }
    shown.sort();
    let mut code = String::from("&[\n");
    for (id, test) in &shown {
        writeln!(code, "    ({id:?}, {test:?}),")?;
    }
    code.push(']');
    fs::write(out.join("shows.rs"), code)?;

    println!(
        "cargo::rerun-if-changed={}",
        root.join("scenarios").display()
    );
    let open =
        fs::read_to_string(root.join("scenarios/open.yaml")).unwrap_or_else(|_| "[]".to_owned());
    fs::write(out.join("open.yaml"), open)?;
    fs::write(
        out.join("scenarios.rs"),
        scenarios(&root.join("scenarios"))?,
    )?;
    Ok(())
}

/// The scenario files of every area, as Rust source: name and text of each. Traces and requirements are not among them.
fn scenarios(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut code = String::from("&[\n");
    for area in sorted(folder)? {
        let name = area
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !area.is_dir() || OTHER_FOLDERS.contains(&name.as_str()) {
            continue;
        }
        for file in sorted(&area)? {
            if file.extension().is_some_and(|end| end == "yaml") {
                let shown = file.strip_prefix(folder)?.display().to_string();
                let path = file.canonicalize()?.display().to_string();
                let shown = format!("scenarios/{shown}");
                writeln!(code, "    ({shown:?}, include_str!({path:?})),")?;
            }
        }
    }
    code.push(']');
    Ok(code)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(folder)?;
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    Ok(entries)
}

fn search(
    folder: &Path,
    root: &Path,
    shown: &mut Vec<(String, String)>,
) -> Result<(), Box<dyn Error>> {
    for path in sorted(folder)? {
        if path.is_dir() {
            search(&path, root, shown)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string();
            markers(&fs::read_to_string(&path)?, &file, shown);
        }
    }
    Ok(())
}

/// Each marker with the test below it. A marker above no test is taken by its line, so that it does not get lost unseen.
fn markers(text: &str, file: &str, shown: &mut Vec<(String, String)>) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (number, line) in lines.iter().enumerate() {
        let Some(ids) = line.strip_prefix(MARKER) else {
            continue;
        };
        let below = lines.iter().skip(number + 1).take(REACH);
        let test = below.filter_map(|line| function(line)).next();
        let test = test.map_or_else(
            || format!("{file}:{}", number + 1),
            |name| format!("{file}::{name}"),
        );
        for id in ids.split(',').map(str::trim).filter(|id| !id.is_empty()) {
            shown.push((id.to_owned(), test.clone()));
        }
    }
}

fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line.strip_prefix("fn ")?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
}
