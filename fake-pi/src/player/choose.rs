//! Which child of a script a start is (pure).

use indexmap::IndexMap;

use crate::act::{Act, Child, Flavour, FullChild, Mark, Occasion, Script};

/// A child with its short form written out.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// Its flavour.
    pub flavour: Flavour,
    /// Its acts.
    pub acts: Vec<Act>,
    /// Acts for occasions.
    pub on: IndexMap<Occasion, Vec<Act>>,
}

impl Chosen {
    fn of(name: &str, child: &Child) -> Self {
        let (flavour, acts, on) = match child {
            Child::Acts(acts) => (Flavour::default(), acts.clone(), IndexMap::new()),
            Child::Full(FullChild {
                flavour, acts, on, ..
            }) => (*flavour, acts.clone(), on.clone()),
        };
        Self {
            name: name.to_owned(),
            flavour,
            acts,
            on,
        }
    }
}

/// What is known of a start.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The task, once it is known.
    pub task: Option<&'a str>,
    /// All arguments.
    pub argv: &'a [String],
    /// The working directory.
    pub cwd: &'a str,
}

/// The flavour before a child is chosen: that of the first one.
pub fn first_flavour(script: &Script) -> Flavour {
    script
        .children
        .first()
        .map_or(Flavour::default(), |(name, child)| {
            Chosen::of(name, child).flavour
        })
}

/// The child of a start, or `None` while that cannot be told.
pub fn choose(script: &Script, facts: Facts<'_>) -> Option<Chosen> {
    if script.children.len() == 1 {
        return script
            .children
            .first()
            .map(|(name, child)| Chosen::of(name, child));
    }
    let found = script
        .children
        .iter()
        .find(|(name, child)| fits(name, child, facts));
    found.map(|(name, child)| Chosen::of(name, child))
}

fn fits(name: &str, child: &Child, facts: Facts<'_>) -> bool {
    let mark = match child {
        Child::Full(FullChild {
            when: Some(mark), ..
        }) => mark.clone(),
        _ => Mark {
            task: Some(format!("kit-child-{name}")),
            ..Mark::default()
        },
    };
    let task = |word: &String| facts.task.is_some_and(|task| has_word(task, word));
    let argv = |word: &String| facts.argv.iter().any(|arg| arg.contains(word.as_str()));
    mark.task.as_ref().is_none_or(task)
        && mark.argv.as_ref().is_none_or(argv)
        && mark
            .cwd
            .as_ref()
            .is_none_or(|end| facts.cwd.ends_with(end.as_str()))
}

/// Whether a text has a word, not only the beginning of a longer one (`kit-child-a` is not in `kit-child-ab`).
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

/// The word `kit-call-…` of a task.
pub fn call_word(task: &str) -> Option<String> {
    let at = task.find("kit-call-")?;
    let end = task[at..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    Some(task[at..at + end.unwrap_or(task.len() - at)].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str =
        "children:\n  a: []\n  ab: []\n  there:\n    when: {cwd: /cwd}\n    acts: []\n";

    fn chosen(task: Option<&str>, cwd: &str) -> Option<String> {
        let script: Script = serde_saphyr::from_str(SCRIPT).unwrap();
        choose(
            &script,
            Facts {
                task,
                argv: &[],
                cwd,
            },
        )
        .map(|chosen| chosen.name)
    }

    #[test]
    fn a_mark_chooses_whole_words_only() {
        assert_eq!(chosen(None, "/work"), None);
        assert_eq!(
            chosen(Some("kit-child-a kit-call-1 do"), "/work").as_deref(),
            Some("a")
        );
        assert_eq!(
            chosen(Some("kit-child-ab kit-call-1 do"), "/work").as_deref(),
            Some("ab")
        );
        assert_eq!(chosen(None, "/run/cwd").as_deref(), Some("there"));
    }

    #[test]
    fn the_only_child_is_chosen_at_once() {
        let script: Script = serde_saphyr::from_str("children:\n  only: []\n").unwrap();
        let facts = Facts {
            task: None,
            argv: &[],
            cwd: "/",
        };
        assert_eq!(
            choose(&script, facts).map(|chosen| chosen.name).as_deref(),
            Some("only")
        );
    }

    #[test]
    fn the_word_of_the_call_is_found() {
        assert_eq!(
            call_word("kit-child-a kit-call-12 do it").as_deref(),
            Some("kit-call-12")
        );
        assert_eq!(call_word("kit-call-3").as_deref(), Some("kit-call-3"));
        assert_eq!(call_word("nothing"), None);
    }
}
