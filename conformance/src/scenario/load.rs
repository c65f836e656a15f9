//! Loading scenarios: from a folder, a file, or the executable itself; and expanding them for an adapter.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::axes::{self, AxesError};
use super::{Planned, Scenario};
use crate::adapter::Adapter;
use crate::yaml::{self, YamlError};

/// The scenarios that the executable carries: file and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// Folders of `scenarios/` that hold other things.
const OTHER_FOLDERS: [&str; 3] = ["contract", "requirements", "traces"];

/// One scenario file, read and checked for its shape.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Area: the folder that the file lies in.
    pub area: String,
    /// The file, as it is shown to people.
    pub file: String,
    /// Its text, to point into.
    pub text: String,
    /// The scenario at the first value of each axis.
    pub scenario: Scenario,
    /// The document before its axes are expanded.
    document: Value,
}

impl Loaded {
    /// Something wrong at a place of the file: the keys that lead there, and the word itself.
    pub fn wrong(
        &self,
        path: &[&str],
        word: Option<&str>,
        message: String,
        help: Option<String>,
    ) -> YamlError {
        let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
        let offset = yaml::find(&self.text, &path, word);
        YamlError::at(&self.file, &self.text, message, help, offset)
    }
}

/// Why scenarios cannot be loaded.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LoadError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Yaml(#[from] Box<YamlError>),
    /// Nothing there.
    #[error("`{}` holds no scenario: no `.yaml` file in it or in its folders", .0.display())]
    Nothing(PathBuf),
}

/// The scenarios that the executable carries, by area and name.
///
/// # Errors
/// When one of them is wrong, which a test of ours would have found.
pub fn embedded() -> Result<Vec<Loaded>, LoadError> {
    let mut loaded = Vec::new();
    for (file, text) in EMBEDDED {
        loaded.push(parse(file, text)?);
    }
    loaded.sort_by(|a, b| key(a).cmp(&key(b)));
    Ok(loaded)
}

/// Scenarios of a file or of a folder with all below it.
///
/// # Errors
/// When something cannot be read, is wrong, or when there is none.
pub fn from_path(path: &Path) -> Result<Vec<Loaded>, LoadError> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    if files.is_empty() {
        return Err(LoadError::Nothing(path.to_owned()));
    }
    files.sort();
    files
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file).map_err(|source| io(file, source))?;
            let mut loaded = parse(&file.to_string_lossy(), &text)?;
            if loaded.area.is_empty() {
                // A file of the current folder: its area is that folder's name all the same.
                let whole = std::path::absolute(file).map_err(|source| io(file, source))?;
                let area = whole.parent().and_then(Path::file_name).unwrap_or_default();
                loaded.area = area.to_string_lossy().into_owned();
            }
            Ok(loaded)
        })
        .collect()
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), LoadError> {
    if !path.is_dir() {
        // A file that was named is read whatever its name is; what is missing shows when it is opened.
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(|source| io(path, source))? {
        let entry = entry.map_err(|source| io(path, source))?.path();
        let is_scenario =
            is_yaml(&entry) && entry.file_name().is_some_and(|name| name != "open.yaml");
        if (entry.is_dir() && !is_other(&entry)) || (entry.is_file() && is_scenario) {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

fn io(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Io {
        path: path.to_owned(),
        source,
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end == "yaml" || end == "yml")
}

fn is_other(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| OTHER_FOLDERS.iter().any(|other| name == *other))
}

fn key(loaded: &Loaded) -> (&str, &str) {
    (&loaded.area, &loaded.scenario.scenario)
}

/// Reads one scenario; `file` is its name for people, its folder is the area.
///
/// # Errors
/// With file, line, column and the nearest right word.
pub fn parse(file: &str, text: &str) -> Result<Loaded, Box<YamlError>> {
    let document: Value = yaml::parse(file, text)?;
    // The shape does not depend on the subject, so any figures do; the first point stands for all.
    let adapter = any_adapter();
    let axes = |error: AxesError| axes_error(file, text, &error);
    let points = axes::points(&document, &adapter).map_err(axes)?;
    let mut first = None;
    for point in &points {
        let scenario = typed::<Scenario>(file, text, &point.fill(&document).map_err(axes)?)?;
        first.get_or_insert(scenario);
    }
    let area = Path::new(file).parent().and_then(Path::file_name);
    Ok(Loaded {
        area: area.map_or(String::new(), |area| area.to_string_lossy().into_owned()),
        file: file.to_owned(),
        text: text.to_owned(),
        scenario: first
            .ok_or_else(|| Box::new(YamlError::at(file, text, "nothing to run".into(), None, 0)))?,
        document,
    })
}

/// The scenarios that one file stands for with an adapter.
///
/// # Errors
/// When a template names nothing, or a figure of the adapter does not fit where it is used.
pub fn expand(loaded: &Loaded, adapter: &Adapter) -> Result<Vec<Planned>, Box<YamlError>> {
    let Loaded {
        file,
        text,
        document,
        area,
        ..
    } = loaded;
    let axes = |error: AxesError| axes_error(file, text, &error);
    let points = axes::points(document, adapter).map_err(axes)?;
    let unclaimed = axes::unclaimed(document, adapter);
    let unclaimed: Vec<String> = unclaimed
        .iter()
        .map(|name| format!("figure.{name}"))
        .collect();
    points
        .into_iter()
        .map(|point| {
            let mut scenario: Scenario = typed(file, text, &point.fill(document).map_err(axes)?)?;
            scenario.needs.extend(unclaimed.clone());
            Ok(Planned {
                name: format!("{}{}", scenario.scenario, point.suffix),
                area: area.clone(),
                file: file.clone(),
                axes: point.axes,
                scenario,
            })
        })
        .collect()
}

/// A filled-in document with its types. The document has no positions any more; they are found again through the path
/// of the fault and the wrong word in it.
fn typed<T: DeserializeOwned>(
    file: &str,
    text: &str,
    document: &Value,
) -> Result<T, Box<YamlError>> {
    serde_path_to_error::deserialize(document).map_err(|error| {
        let path: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        let message = error.into_inner().to_string();
        let (message, help, word) = explain(&message);
        let offset = yaml::find(text, &path, word.as_deref());
        Box::new(YamlError::at(file, text, message, help, offset))
    })
}

fn axes_error(file: &str, text: &str, error: &AxesError) -> Box<YamlError> {
    let offset = match error {
        AxesError::Unknown { name, .. } => text.find(&format!("{{{{{name}")).unwrap_or(0),
        AxesError::Shape { axis } | AxesError::Empty { axis } => {
            yaml::find(text, &["axes".into(), axis.clone()], None)
        }
    };
    Box::new(YamlError::at(file, text, error.to_string(), None, offset))
}

/// serde's words in ours: message, help, and the wrong word itself.
fn explain(message: &str) -> (String, Option<String>, Option<String>) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let wrong = |kind: &str, says: &str| {
        let word = message
            .starts_with(kind)
            .then(|| quoted.first().copied())
            .flatten()?;
        let help = yaml::suggestion(word, quoted.get(1..).unwrap_or_default());
        Some((
            format!("there is no {says}`{word}`"),
            Some(help),
            Some(word.to_owned()),
        ))
    };
    wrong("unknown field", "key ")
        .or_else(|| wrong("unknown variant", ""))
        .unwrap_or_else(|| {
            let message = match (message.starts_with("missing field"), quoted.first()) {
                (true, Some(key)) => format!("the key `{key}` is missing"),
                _ => message.to_owned(),
            };
            // The value itself, where serde tells it: it stands in the text somewhere, perhaps as the value of an axis.
            let value = message.split('"').nth(1).map(str::to_owned);
            (message, None, value)
        })
}

fn any_adapter() -> Adapter {
    Adapter {
        profiles: vec!["profile".into()],
        ..Adapter::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "scenario: s\nwhy: w\naxes:\n  cut: [1, 7]\nchildren:\n  a:\n    - written: {every: \"{{cut}}\", do: [{answer: x}]}\nsteps:\n  - call: {child: a}\nchecks:\n  - call.ok: true\n";

    fn wrong(from: &str, to: &str) -> String {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD);
        let error = parse("scenarios/area/s.yaml", &text).unwrap_err();
        let help = miette::Diagnostic::help(&*error).map(|help| format!(" ({help})"));
        format!("{error}{}", help.unwrap_or_default())
    }

    #[test]
    fn a_file_becomes_one_scenario_a_point() {
        let loaded = parse("scenarios/area/s.yaml", GOOD).unwrap();
        let planned = expand(&loaded, &any_adapter()).unwrap();
        let names: Vec<&str> = planned
            .iter()
            .map(|planned| planned.name.as_str())
            .collect();
        assert_eq!(names, ["s[cut=1]", "s[cut=7]"]);
        assert_eq!(planned[0].area, "area");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_the_nearest_right_word() {
        let cases = [
            (
                "answer: x",
                "answr: x",
                "7:41: there is no `answr` (did you mean `answer`?)",
            ),
            (
                "  - call: {child",
                "  - cal: {child",
                "9:5: there is no `cal` (did you mean `call`?)",
            ),
            (
                "{child: a}",
                "{chlid: a}",
                "9:12: there is no key `chlid` (did you mean `child`?)",
            ),
            ("why: w\n", "", "1:1: the key `why` is missing"),
            (
                "{{cut}}",
                "{{cutt}}",
                "7:25: `{{cutt}}` is neither an axis of this scenario nor a figure of the adapter; did you mean `cut`?",
            ),
            (
                "why: w\n",
                "why: w\nalonee: true\n",
                "3:1: there is no key `alonee` (did you mean `alone`?)",
            ),
        ];
        for (from, to, expected) in cases {
            assert_eq!(
                wrong(from, to),
                format!("scenarios/area/s.yaml:{expected}"),
                "{to}"
            );
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_told_where_it_stands() {
        let told = wrong("[1, 7]", "[1, many]");
        assert!(told.starts_with("scenarios/area/s.yaml:4:12: "), "{told}");
    }

    #[test]
    fn text_that_is_no_yaml_is_told_with_its_line() {
        let told = wrong("[1, 7]", "[1, 7");
        assert!(told.starts_with("scenarios/area/s.yaml:"), "{told}");
    }

    #[test]
    fn a_folder_without_scenarios_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let error = from_path(folder.path()).unwrap_err();
        assert!(error.to_string().contains("holds no scenario"), "{error}");
        let error = from_path(&folder.path().join("nosuch.yaml")).unwrap_err();
        assert!(error.to_string().contains("nosuch.yaml"), "{error}");
    }

    /// The YAML blocks of a document that are whole scenarios.
    fn examples(document: &str) -> Vec<&str> {
        let blocks = document.split("```yaml\n").skip(1);
        blocks
            .filter_map(|rest| rest.split("```").next())
            .filter(|block| block.starts_with("scenario:"))
            .collect()
    }

    #[test]
    fn examples_in_the_documents_are_right() {
        let documents = [
            include_str!("../../../docs/scenarios.md"),
            include_str!("../../../scenarios/README.md"),
        ];
        let examples: Vec<&str> = documents.into_iter().flat_map(examples).collect();
        assert_eq!(examples.len(), 4);
        for example in examples {
            let loaded =
                parse("area/example.yaml", example).unwrap_or_else(|error| panic!("{error}"));
            for check in &loaded.scenario.checks {
                crate::check::validate(check, &loaded.scenario, &[])
                    .unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }

    #[test]
    fn every_check_of_an_embedded_scenario_means_something() {
        let catalogue = crate::catalogue::Catalogue::embedded().unwrap();
        let mut wrong = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        for Loaded { file, scenario, .. } in embedded().unwrap() {
            if !names.insert(scenario.scenario.clone()) {
                wrong.push(format!("{file}: the name exists twice"));
            }
            for check in &scenario.checks {
                if let Err(error) = crate::check::validate(check, &scenario, &[]) {
                    wrong.push(format!("{file}: {error}"));
                }
            }
            for id in crate::coverage::proves(&scenario) {
                if let Err(error) = catalogue.get(id) {
                    wrong.push(format!("{file}: {error}"));
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn every_embedded_scenario_loads() {
        let loaded = embedded().unwrap_or_else(|error| panic!("{error}"));
        assert!(loaded.len() > 100, "only {} scenarios", loaded.len());
    }
}
