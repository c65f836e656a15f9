//! The requirement catalogue that the executable carries: `scenarios/requirements/*.yaml`.

use include_dir::{Dir, include_dir};
use indexmap::IndexMap;
use serde::Deserialize;

use crate::check::words::nearest;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../scenarios/requirements");

/// All requirements.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// Areas in order of their file names: name and what it holds.
    pub areas: IndexMap<String, String>,
    /// Requirements by id.
    pub requirements: IndexMap<String, Requirement>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Requirement {
    /// Dotted slug.
    pub id: String,
    /// `must`, `should`, `may`.
    pub level: String,
    /// Systems that it binds.
    pub systems: Vec<String>,
    /// `core`, `capability`, `dialect`.
    pub tier: String,
    /// With tier `capability`: which.
    #[serde(default)]
    pub capability: Option<String>,
    /// The rule in words.
    pub rule: String,
    /// How it is shown.
    pub check: How,
    /// A reading, or a conflict between systems.
    #[serde(default)]
    pub note: Option<String>,
    /// Where it comes from.
    #[serde(default)]
    pub source: Vec<String>,
    /// Its area.
    #[serde(skip)]
    pub area: String,
}

/// How a requirement is shown.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct How {
    /// Configuration and state before the first call.
    pub setup: Option<String>,
    /// What the child does.
    pub child: Option<String>,
    /// What the caller does.
    pub caller: Option<String>,
    /// What is observed then; absent where no scenario can show it.
    pub expect: Option<String>,
    /// Property that a unit test shows.
    pub unit: Option<String>,
}

#[derive(Debug, Deserialize)]
struct File {
    area: String,
    summary: String,
    requirements: Vec<Requirement>,
}

/// Why the catalogue cannot be read, or an id not be found.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// A file is not as it must be.
    #[error("{file}: {what}")]
    File {
        /// Which.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// Two requirements have one id.
    #[error("{file}: requirement `{id}` exists twice")]
    Twice {
        /// The second one's file.
        file: String,
        /// The id.
        id: String,
    },
    /// There is no such id.
    #[error("there is no requirement `{id}`{}", .nearest.as_ref().map_or(String::new(), |word| format!("; nearest is `{word}`")))]
    Unknown {
        /// As given.
        id: String,
        /// One that exists.
        nearest: Option<String>,
    },
}

impl Catalogue {
    /// The one that the executable carries.
    ///
    /// # Errors
    /// When a file of it is broken, which a test keeps from happening.
    pub fn embedded() -> Result<Self, CatalogueError> {
        let mut files: Vec<_> = FILES
            .files()
            .filter(|file| file.path().extension().is_some_and(|e| e == "yaml"))
            .collect();
        files.sort_by_key(|file| file.path());
        let mut catalogue = Self::default();
        for file in files {
            let name = file.path().display().to_string();
            catalogue.add(&name, file.contents_utf8().unwrap_or_default())?;
        }
        Ok(catalogue)
    }

    /// Adds one file.
    ///
    /// # Errors
    /// When it is not in the catalogue's format, or an id is there already.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), CatalogueError> {
        let wrong = |what: String| CatalogueError::File {
            file: name.to_owned(),
            what,
        };
        let file: File = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        self.areas.insert(file.area.clone(), file.summary);
        for mut requirement in file.requirements {
            requirement.area.clone_from(&file.area);
            requirement.rule = requirement
                .rule
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let id = requirement.id.clone();
            if self.requirements.insert(id.clone(), requirement).is_some() {
                return Err(CatalogueError::Twice {
                    file: name.to_owned(),
                    id,
                });
            }
        }
        Ok(())
    }

    /// A requirement by its id.
    ///
    /// # Errors
    /// When there is none, with the nearest id.
    pub fn get(&self, id: &str) -> Result<&Requirement, CatalogueError> {
        self.requirements
            .get(id)
            .ok_or_else(|| CatalogueError::Unknown {
                id: id.to_owned(),
                nearest: nearest(id, self.requirements.keys().map(String::as_str))
                    .map(str::to_owned),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_catalogue_is_whole() {
        let catalogue = Catalogue::embedded().unwrap();
        assert_eq!(catalogue.areas.len(), 39);
        assert_eq!(catalogue.requirements.len(), 1356);
        let core = catalogue
            .requirements
            .values()
            .filter(|r| r.tier == "core")
            .count();
        assert_eq!(core, 115);
    }

    #[test]
    fn a_wrong_id_is_answered_with_the_nearest() {
        let catalogue = Catalogue::embedded().unwrap();
        let error = catalogue.get("drain.clean-exti").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no requirement `drain.clean-exti`; nearest is `drain.clean-exit`"
        );
    }

    #[test]
    fn an_id_exists_once() {
        let text = "area: a\nsummary: s\nrequirements:\n  - {id: a.b, level: must, systems: [x], tier: core, rule: r, check: {unit: u}}\n";
        let mut catalogue = Catalogue::default();
        catalogue.add("one.yaml", text).unwrap();
        let error = catalogue.add("two.yaml", text).unwrap_err().to_string();
        assert_eq!(error, "two.yaml: requirement `a.b` exists twice");
    }
}
