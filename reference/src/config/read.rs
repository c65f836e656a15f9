//! The part of configuration that touches the file system: reading within bounds, and finding the paths that a
//! definition names.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::layer::{Entry, Layer};
use super::parse::{self, Definition, Written};
use super::{Diagnostic, SIZE_LIMIT, clip, within};
use crate::profile::{Origin, Profile};

/// Reads one layer: the file's text, its definitions, and the canonical paths of what they load. `root` is the folder
/// that relative paths must not leave: the agent directory for the user's file, the project for a project's. Absolute
/// paths may lead anywhere in the user's file; in a project's they have to stay inside the project as well.
///
/// `Ok(None)`: there is no file.
///
/// # Errors
/// Every fault of the file.
pub fn layer(
    origin: Origin,
    file: &Path,
    root: &Path,
) -> Result<Option<Layer<Profile>>, Vec<Diagnostic>> {
    let whole = |problem: String, correction: &str| {
        vec![Diagnostic {
            file: file.to_owned(),
            place: None,
            profile: None,
            key: None,
            problem,
            correction: correction.into(),
        }]
    };
    let text = match bounded(file) {
        Ok(Text::Whole(text)) => text,
        Ok(Text::Missing) => return Ok(None),
        Ok(Text::NoFile) => {
            return Err(whole(
                "this is not a regular file".into(),
                "put a file there, or remove it",
            ));
        }
        Ok(Text::TooLong) => {
            let problem = format!("the file is larger than {SIZE_LIMIT} bytes");
            return Err(whole(problem, "shorten it"));
        }
        Err(error) => {
            return Err(whole(
                format!("cannot read the file: {error}"),
                "make it readable, or remove it",
            ));
        }
    };
    // A project's file that is a link out of the project would let it point at whatever it likes.
    if origin == Origin::Project && !stays_within(file, root) {
        let problem = "the file is a link that leads out of the project";
        return Err(whole(problem.into(), "put the file itself there"));
    }
    let Layer {
        origin,
        file,
        entries,
        limits,
    } = parse::document(origin, file, &text)?;
    let mut faults = Vec::new();
    let mut placed = Vec::new();
    for Entry {
        name,
        place,
        definition,
    } in entries
    {
        let definition = match definition {
            None => None,
            Some(definition) => match settle(definition, origin, &file, root) {
                Ok(profile) => Some(profile),
                Err(found) => {
                    faults.extend(found);
                    continue;
                }
            },
        };
        placed.push(Entry {
            name,
            place,
            definition,
        });
    }
    if faults.is_empty() {
        Ok(Some(Layer {
            origin,
            file,
            entries: placed,
            limits,
        }))
    } else {
        Err(faults)
    }
}

/// What was found at a path.
enum Text {
    Whole(Vec<u8>),
    Missing,
    NoFile,
    TooLong,
}

/// Reads a file of at most [`SIZE_LIMIT`] bytes, without ever holding more and without waiting for a named pipe's writer.
fn bounded(path: &Path) -> io::Result<Text> {
    let mut options = File::options();
    options
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            // A dangling link is a fault, not an absent file.
            return Ok(if path.symlink_metadata().is_ok() {
                Text::NoFile
            } else {
                Text::Missing
            });
        }
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(Text::NoFile);
    }
    let mut text = Vec::new();
    file.take(SIZE_LIMIT as u64 + 1).read_to_end(&mut text)?;
    Ok(if text.len() > SIZE_LIMIT {
        Text::TooLong
    } else {
        Text::Whole(text)
    })
}

fn stays_within(file: &Path, root: &Path) -> bool {
    match (file.canonicalize(), root.canonicalize()) {
        (Ok(file), Ok(root)) => within(&file, &root),
        _ => false,
    }
}

/// Finds the paths of a definition.
fn settle(
    definition: Definition,
    origin: Origin,
    file: &Path,
    root: &Path,
) -> Result<Profile, Vec<Diagnostic>> {
    let Definition {
        mut profile,
        extensions,
        skills,
    } = definition;
    let mut faults = Vec::new();
    for (key, written, found) in [
        ("extensions", extensions, &mut profile.extensions),
        ("skills", skills, &mut profile.skills),
    ] {
        for Written { text, place } in written {
            match canonical(&text, origin, file, root) {
                Ok(path) => found.push(path),
                Err((problem, correction)) => faults.push(Diagnostic {
                    file: file.to_owned(),
                    place: Some(place),
                    profile: Some(profile.name.clone()),
                    key: Some(key.into()),
                    problem,
                    correction,
                }),
            }
        }
    }
    if faults.is_empty() {
        Ok(profile)
    } else {
        Err(faults)
    }
}

/// The canonical path of what is written, or what is wrong with it and what to do.
fn canonical(
    text: &str,
    origin: Origin,
    file: &Path,
    root: &Path,
) -> Result<PathBuf, (String, String)> {
    let shown = clip(text);
    let written = Path::new(text);
    // Relative paths start at the file that names them, so that moving both moves the meaning.
    let base = file.parent().unwrap_or(root);
    let path = base.join(written).canonicalize().map_err(|error| {
        let correction = if text.starts_with('~') {
            "`~` is not expanded: write the path out".to_owned()
        } else {
            format!(
                "name a path that exists, absolute or relative to {}",
                base.display()
            )
        };
        (format!("`{shown}` cannot be found: {error}"), correction)
    })?;
    if written.is_relative() || origin == Origin::Project {
        let root = root.canonicalize().map_err(|error| {
            (
                format!("{} cannot be found: {error}", root.display()),
                "create the folder".to_owned(),
            )
        })?;
        if !within(&path, &root) {
            let problem = format!(
                "`{shown}` leads out of {}, to {}",
                root.display(),
                path.display()
            );
            let correction = match origin {
                Origin::Project => "keep it inside the project",
                _ => "write the absolute path if that is what you mean",
            };
            return Err((problem, correction.to_owned()));
        }
    }
    let kind = fs::metadata(&path).map_err(|error| {
        (
            format!("`{shown}` cannot be read: {error}"),
            "make it readable".to_owned(),
        )
    })?;
    if !(kind.is_file() || kind.is_dir()) {
        return Err((
            format!("`{shown}` is neither a file nor a folder"),
            "name a file or a folder".to_owned(),
        ));
    }
    Ok(path)
}
