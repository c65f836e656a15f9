//! Files that a scenario lays out, and the folders' names in its texts.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;

use crate::scenario::{FileContent, FullFile};

/// Puts folders in place of `{run}`, `{work}` …: in every text of a value, keys of maps among them. Other braces stay.
pub fn fill(value: &mut Value, folders: &IndexMap<String, String>) {
    match value {
        Value::String(text) => *text = fill_text(text, folders),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, folders)),
        Value::Object(map) => {
            let filled = std::mem::take(map).into_iter().map(|(key, mut value)| {
                fill(&mut value, folders);
                (fill_text(&key, folders), value)
            });
            *map = filled.collect();
        }
        _ => {}
    }
}

fn fill_text(text: &str, folders: &IndexMap<String, String>) -> String {
    let mut filled = text.to_owned();
    if filled.contains('{') {
        for (name, path) in folders {
            filled = filled.replace(&format!("{{{name}}}"), path);
        }
    }
    filled
}

/// Writes one file of a scenario. Relative paths start at `run`, and no path may leave it.
///
/// # Errors
/// When it would leave the scenario's folder, or cannot be written.
pub fn lay_out(run: &Path, path: &str, content: &FileContent) -> io::Result<()> {
    let path = within(run, path)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match content {
        FileContent::Text(text) => fs::write(&path, text),
        FileContent::Folder(()) => fs::create_dir_all(&path),
        FileContent::Full(file) => full(&path, file),
    }
}

fn full(path: &Path, file: &FullFile) -> io::Result<()> {
    if let Some(target) = &file.link {
        return std::os::unix::fs::symlink(target, path);
    }
    let mut out = fs::File::create(path)?;
    if let Some(text) = &file.text {
        out.write_all(text.as_bytes())?;
    }
    if let Some(json) = &file.json {
        serde_json::to_writer_pretty(&mut out, json)?;
        out.write_all(b"\n")?;
    }
    if let Some(size) = file.blanks {
        let blanks = vec![b' '; 1 << 20];
        let mut left = size.0;
        while left > 0 {
            let piece = left.min(blanks.len() as u64);
            out.write_all(&blanks[..piece as usize])?;
            left -= piece;
        }
    }
    if file.executable {
        out.set_permissions(fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The path below `run`, by its words alone: links are the scenario's own affair.
fn within(run: &Path, path: &str) -> io::Result<PathBuf> {
    let mut whole = PathBuf::new();
    for part in run.join(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    if !whole.starts_with(run) {
        return Err(io::Error::other(format!(
            "`{path}` leads out of the scenario's folder"
        )));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_names_of_folders_are_filled() {
        let folders = IndexMap::from([("run".to_owned(), "/r".to_owned())]);
        let mut value = json!({"{run}/a": ["{run}", "{\"run\": {run}}", "{other}", 1]});
        fill(&mut value, &folders);
        assert_eq!(
            value,
            json!({"/r/a": ["/r", "{\"run\": /r}", "{other}", 1]})
        );
    }

    #[test]
    fn a_path_out_of_the_folder_is_refused() {
        let run = tempfile::tempdir().unwrap();
        let text = FileContent::Text("x".into());
        assert!(lay_out(run.path(), "a/../b/c.txt", &text).is_ok());
        assert!(run.path().join("b/c.txt").is_file());
        for path in ["../x", "/etc/x", "a/../../x"] {
            let error = lay_out(run.path(), path, &text).unwrap_err();
            assert!(error.to_string().contains("leads out"), "{path}: {error}");
        }
    }
}
