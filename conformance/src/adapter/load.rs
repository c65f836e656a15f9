//! Loading an adapter by name or from a file.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use miette::Diagnostic;
use serde_json::Value;

use super::{Adapter, meaning};
use crate::yaml::{self, YamlError};

/// The adapters that come with the suite.
static BUNDLED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/adapters");

/// Why an adapter cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum AdapterError {
    /// Neither a name that is known nor a file.
    #[error("there is no adapter `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What to write instead.
        #[help]
        help: String,
    },
    /// The file cannot be read.
    #[error("cannot read adapter `{}`: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not written as an adapter is, or means nothing.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Yaml(#[from] Box<YamlError>),
}

/// Names of the adapters that come with the suite, sorted.
pub fn bundled_names() -> Vec<&'static str> {
    let stems = BUNDLED.files().filter_map(|file| {
        let path = file.path();
        (path.extension()? == "yaml").then(|| path.file_stem()?.to_str())?
    });
    let mut names: Vec<_> = stems.collect();
    names.sort_unstable();
    names
}

/// Loads an adapter: by the name of a bundled one, else from a file. What contains a `/` or ends in `.yaml` is a file.
///
/// # Errors
/// When there is none, or it is not right.
pub fn load(name_or_file: &str) -> Result<Adapter, AdapterError> {
    if let Some(file) = BUNDLED.get_file(format!("{name_or_file}.yaml")) {
        let text = file.contents_utf8().unwrap_or_default();
        return parse(&format!("{name_or_file}.yaml"), text);
    }
    let is_file = name_or_file.contains('/')
        || name_or_file.ends_with(".yaml")
        || name_or_file.ends_with(".yml")
        || Path::new(name_or_file).is_file();
    if !is_file {
        let names = bundled_names();
        return Err(AdapterError::Unknown {
            name: name_or_file.to_owned(),
            help: format!(
                "{}; a file is named by its path, such as `./{name_or_file}.yaml`",
                yaml::suggestion(name_or_file, &names)
            ),
        });
    }
    let text = std::fs::read_to_string(name_or_file).map_err(|source| AdapterError::Io {
        path: name_or_file.into(),
        source,
    })?;
    parse_at(name_or_file, &text)
}

/// Reads the text of a file, which need not be there yet: `{{ here }}` in it is the file's folder.
///
/// # Errors
/// When it is not right.
pub fn parse_at(file: &str, text: &str) -> Result<Adapter, AdapterError> {
    let whole = std::path::absolute(file).map_err(|source| AdapterError::Io {
        path: file.into(),
        source,
    })?;
    let folder = whole.parent().unwrap_or(Path::new("/"));
    let adapter: Adapter = yaml::parse(file, text)?;
    checked(file, text, at_home(adapter, &folder.to_string_lossy()))
}

/// Reads an adapter's text; `file` is its name for people.
///
/// # Errors
/// When it is not right.
pub fn parse(file: &str, text: &str) -> Result<Adapter, AdapterError> {
    checked(file, text, yaml::parse(file, text)?)
}

/// Puts the file's folder in place of `{{ here }}`, so that the adapter needs its file no longer.
fn at_home(adapter: Adapter, folder: &str) -> Adapter {
    let Ok(mut value) = serde_json::to_value(&adapter) else {
        return adapter;
    };
    settle(&mut value, folder);
    serde_json::from_value(value).unwrap_or(adapter)
}

fn settle(value: &mut Value, folder: &str) {
    match value {
        Value::String(text) if text.contains("here") => {
            for written in ["{{ here }}", "{{here}}"] {
                *text = text.replace(written, folder);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settle(item, folder)),
        Value::Object(map) => map.values_mut().for_each(|value| settle(value, folder)),
        _ => {}
    }
}

fn checked(file: &str, text: &str, adapter: Adapter) -> Result<Adapter, AdapterError> {
    meaning::look(&adapter).map_err(|fault| {
        let at = yaml::find(text, &fault.path, fault.word.as_deref());
        Box::new(YamlError::at(file, text, fault.message, fault.help, at))
    })?;
    Ok(adapter)
}
