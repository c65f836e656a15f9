//! Looking a check over before anything runs: every word in it means something.

use crate::check::expr::Scope;
use crate::check::matcher;
use crate::check::paths::{Names, Path, parse_other};
use crate::check::timing;
use crate::scenario::{Check, Expect, Scenario};

/// What is wrong with a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{observation}`: {what}")]
pub struct CheckError {
    /// Its left side, as written.
    pub observation: String,
    /// What is wrong, with the nearest right word.
    pub what: String,
}

/// Looks over one check of a scenario. `declared` are observations that adapters add to the built-in words.
///
/// # Errors
/// When the observation, a matcher, a name in an expression or another observation on the right side does not exist, or when
/// there is not exactly one observation.
pub fn validate(check: &Check, scenario: &Scenario, declared: &[&str]) -> Result<(), CheckError> {
    let names = Names::of(scenario);
    let scope = Scope::names_of(scenario);
    let mut entries = check.expect.iter();
    let (Some((observation, expect)), None) = (entries.next(), entries.next()) else {
        let all: Vec<&str> = check.expect.keys().map(String::as_str).collect();
        let what = format!(
            "a check has exactly one observation, and here are {}",
            all.len()
        );
        return Err(CheckError {
            observation: all.join(", "),
            what,
        });
    };
    let accepted = check.policy.values().flat_map(|choices| choices.values());
    for expect in std::iter::once(expect).chain(accepted) {
        one(observation, expect, &names, &scope, declared).map_err(|what| CheckError {
            observation: observation.clone(),
            what,
        })?;
    }
    Ok(())
}

fn one(
    observation: &str,
    expect: &Expect,
    names: &Names,
    scope: &Scope,
    declared: &[&str],
) -> Result<(), String> {
    let path = Path::parse(observation, names).map_err(|error| error.to_string())?;
    if matcher::is_time(&expect.0) {
        return timing::check(&expect.0, &path, names, scope);
    }
    let known = || declared.iter().copied();
    path.check_look(names, known())
        .map_err(|error| error.to_string())?;
    let expression = |text: &str| scope.check(text).map_err(|error| error.to_string());
    let other = |text: &str| {
        let path = parse_other(text, names, path.each).map_err(|error| error.to_string())?;
        path.check_look(names, known())
            .map_err(|error| error.to_string())
    };
    matcher::check(&expect.0, &expression, &other)
}
