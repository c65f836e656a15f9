//! What a subject is made of and the suite does not bring along: npm packages, found where they were installed, and a checkout.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;

use crate::adapter::{Adapter, Transport};

/// Packages that a parent Pi needs, unless the adapter names its own.
const OF_A_PARENT: [(&str, &str); 2] = [
    ("node", "node@22"),
    ("pi", "@earendil-works/pi-coding-agent@1.6.0"),
];

/// Environment variable that names the folder below which npm packages were installed.
pub const PACKAGES: &str = "PI_CONFORM_PACKAGES";

/// A part that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {cure}")]
pub struct Missing {
    /// What.
    pub what: String,
    /// The command that brings it.
    pub cure: String,
}

/// A package as an adapter names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package<'a> {
    /// Its name, with its scope.
    pub name: &'a str,
    /// Its version, or the beginning of one (`22`).
    pub version: &'a str,
}

impl<'a> Package<'a> {
    /// Reads `NAME@VERSION`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, version) = text.rsplit_once('@')?;
        (!name.is_empty() && !version.is_empty()).then_some(Self { name, version })
    }

    fn fits(&self, folder: &Path) -> bool {
        let text = std::fs::read_to_string(folder.join("package.json")).unwrap_or_default();
        let package: Value = serde_json::from_str(&text).unwrap_or_default();
        let found = package["version"].as_str().unwrap_or_default();
        found == self.version
            || found
                .strip_prefix(self.version)
                .is_some_and(|rest| rest.starts_with('.'))
    }
}

/// All packages of an adapter by name, those of its transport among them.
pub fn packages(adapter: &Adapter) -> IndexMap<String, String> {
    let mut all = IndexMap::new();
    if adapter.transport == Transport::PiExtension {
        for (name, package) in OF_A_PARENT {
            all.insert(name.to_owned(), package.to_owned());
        }
    }
    all.extend(adapter.parts.npm.clone());
    all
}

/// Finds every part: `packages.NAME` and `checkout`, for the adapter's templates.
///
/// A package is found in `FOLDER/node_modules` and in `FOLDER/*/node_modules`, in the version that is asked for.
///
/// # Errors
/// The first that is not there.
pub fn find(
    adapter: &Adapter,
    folder: &Path,
    checkout: Option<&Path>,
) -> Result<IndexMap<String, Value>, Missing> {
    let mut found = serde_json::Map::new();
    for (name, text) in packages(adapter) {
        found.insert(name, package(&text, folder)?.to_string_lossy().into());
    }
    let mut parts = IndexMap::from([("packages".to_owned(), Value::Object(found))]);
    if let Some(source) = &adapter.parts.checkout {
        let Some(path) = checkout else {
            return Err(Missing {
                what: format!("a checkout of {source}"),
                cure: "get one, install what it needs, and name its folder with `--checkout DIR`"
                    .to_owned(),
            });
        };
        let path = path.canonicalize().map_err(|error| Missing {
            what: format!("the checkout `{}`", path.display()),
            cure: error.to_string(),
        })?;
        parts.insert("checkout".to_owned(), path.to_string_lossy().into());
    }
    Ok(parts)
}

/// The folder of one package.
///
/// # Errors
/// When it is not there, or is not written as packages are.
pub fn package(text: &str, folder: &Path) -> Result<PathBuf, Missing> {
    let Some(package) = Package::parse(text) else {
        return Err(Missing {
            what: format!("the package `{text}`"),
            cure: "the adapter names it as `PACKAGE@VERSION`, such as `pi-subagents@0.49.0`"
                .to_owned(),
        });
    };
    let within = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut prefixes: Vec<PathBuf> = within.map(|entry| entry.path()).collect();
    prefixes.sort();
    prefixes.insert(0, folder.to_owned());
    let found = prefixes
        .into_iter()
        .map(|prefix| prefix.join("node_modules").join(package.name))
        .find(|path| package.fits(path));
    found
        .and_then(|path| path.canonicalize().ok())
        .ok_or_else(|| Missing {
            what: format!("the npm package `{text}`"),
            cure: install(&package, folder),
        })
}

/// The command that brings a package: each version has a folder of its own, so that several live side by side.
fn install(package: &Package<'_>, folder: &Path) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-._".contains(c) {
            c
        } else {
            '_'
        }
    };
    let own: String = format!("{}@{}", package.name, package.version)
        .chars()
        .map(|c| if c == '@' { '@' } else { plain(c) })
        .collect();
    format!(
        "`npm install --prefix {} {}@{}` brings it",
        folder.join(own.trim_start_matches('@')).display(),
        package.name,
        package.version
    )
}

/// Where npm packages are looked for: as given, else as the environment says, else in the user's cache.
pub fn packages_folder(given: Option<&Path>) -> PathBuf {
    if let Some(given) = given {
        return given.to_owned();
    }
    if let Some(named) = std::env::var_os(PACKAGES) {
        return named.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    cache
        .or(home)
        .unwrap_or_else(std::env::temp_dir)
        .join("pi-conform/packages")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_by_name_and_version_beside_others() {
        let folder = tempfile::tempdir().unwrap();
        for (prefix, version) in [("a", "1.6.0"), ("b", "1.6.10")] {
            let path = folder.path().join(prefix).join("node_modules/@scope/pi");
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(
                path.join("package.json"),
                format!(r#"{{"version":"{version}"}}"#),
            )
            .unwrap();
        }
        let found =
            |text| package(text, folder.path()).map(|path| path.to_string_lossy().into_owned());
        assert!(found("@scope/pi@1.6.0").unwrap().contains("/a/"));
        assert!(found("@scope/pi@1.6.10").unwrap().contains("/b/"));
        assert!(
            found("@scope/pi@1").unwrap().contains("/a/"),
            "the beginning of a version is enough"
        );
        let missing = found("@scope/pi@1.6.1").unwrap_err();
        assert_eq!(missing.what, "the npm package `@scope/pi@1.6.1`");
        assert!(missing.cure.contains("npm install --prefix"), "{missing}");
        assert!(found("pi").unwrap_err().cure.contains("PACKAGE@VERSION"));
    }
}
