//! What lies about when a scenario is over.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use indexmap::IndexMap;

/// So many files are listed at most.
const MOST: usize = 5000;
/// Folders of a scenario in which its own work can show.
const WORK: [&str; 4] = ["work", "cwd", "home", "agent"];

/// Everything below a folder with its mode in octal, by relative path.
pub fn with_modes(folder: &Path) -> IndexMap<String, String> {
    let mut found = Vec::new();
    walk(folder, &mut |path, meta| {
        found.push((
            relative(folder, path),
            format!("{:o}", meta.mode() & 0o7777),
        ));
    });
    found.sort();
    found.into_iter().take(MOST).collect()
}

/// Every file below the scenario's work folders, relative to the scenario's folder.
pub fn work_files(run: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in WORK {
        walk(&run.join(name), &mut |path, meta| {
            if !meta.is_dir() {
                found.push(relative(run, path));
            }
        });
    }
    found.sort();
    found.truncate(MOST);
    found
}

fn relative(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

/// Visits everything below; links are not followed.
fn walk(folder: &Path, visit: &mut dyn FnMut(&Path, &std::fs::Metadata)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(meta) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        visit(&path, &meta);
        if meta.is_dir() {
            walk(&path, visit);
        }
    }
}
