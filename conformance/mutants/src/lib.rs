//! Delegators broken on purpose, each in one way: they prove that the suite can fail.
//!
//! Each is the whole reference with a twist at the seam of its pure machine ([`reference::pi::seam`]): what the machine is
//! told, or what is done of what it wants. A twist is a few lines, and its name says the fault. `breaks` names the
//! requirements whose scenarios have to catch it.

use std::ffi::OsString;
use std::marker::PhantomData;
use std::process::ExitCode;
use std::sync::Arc;

use reference::pi::seam::{RunTwist, Twist};

mod answer;
mod launch;
mod stream;
mod supervision;
mod surroundings;
mod telling;
mod tools;

/// One broken delegator.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What is wrong, as a slug.
    pub name: &'static str,
    /// The fault in a sentence.
    pub about: &'static str,
    /// Requirements that it breaks.
    pub breaks: &'static [&'static str],
    /// The whole program, with the fault.
    pub main: fn(Vec<OsString>) -> ExitCode,
}

/// All of them.
pub fn all() -> Vec<Mutant> {
    [
        supervision::MUTANTS,
        stream::MUTANTS,
        answer::MUTANTS,
        launch::MUTANTS,
        tools::MUTANTS,
        telling::MUTANTS,
        surroundings::MUTANTS,
    ]
    .concat()
}

/// The twist of every run is a fresh `T`.
struct Each<T>(PhantomData<fn() -> T>);

impl<T: RunTwist + Default + 'static> Twist for Each<T> {
    fn run(&self) -> Box<dyn RunTwist> {
        Box::new(T::default())
    }
}

/// The program with `T` in every run.
fn main<T: RunTwist + Default + 'static>(args: Vec<OsString>) -> ExitCode {
    reference::main_with(args, Arc::new(Each::<T>(PhantomData)))
}

/// A mutant whose runs are twisted by `T`.
const fn mutant<T: RunTwist + Default + 'static>(
    name: &'static str,
    about: &'static str,
    breaks: &'static [&'static str],
) -> Mutant {
    Mutant {
        name,
        about,
        breaks,
        main: main::<T>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_has_a_name_of_its_own_a_sentence_and_something_that_it_breaks() {
        let all = all();
        assert!(all.len() >= 25, "only {}", all.len());
        let names: std::collections::BTreeSet<&str> =
            all.iter().map(|mutant| mutant.name).collect();
        assert_eq!(names.len(), all.len());
        for mutant in all {
            assert!(
                mutant.about.ends_with('.') && !mutant.breaks.is_empty(),
                "{}",
                mutant.name
            );
        }
    }

    /// The ids of the catalogue, as they stand in its files.
    fn catalogue() -> std::collections::BTreeSet<String> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = folder.join("../../scenarios/requirements");
        let mut ids = std::collections::BTreeSet::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "yaml") {
                let text = std::fs::read_to_string(path).unwrap();
                let lines = text.lines();
                let found = lines.filter_map(|line| line.trim().strip_prefix("- id: "));
                ids.extend(found.map(|id| id.trim().to_owned()));
            }
        }
        ids
    }

    #[test]
    fn what_a_mutant_breaks_stands_in_the_catalogue() {
        let known = catalogue();
        assert!(known.len() > 1000, "{} ids", known.len());
        for mutant in all() {
            for id in mutant.breaks {
                assert!(known.contains(*id), "{}: there is no {id}", mutant.name);
            }
        }
    }
}
