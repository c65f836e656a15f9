//! The repository checks itself: who may use whose code, which modules stay pure, who may print or send signals, and
//! the small hygiene that nobody should have to remember.
//!
//! A rule is a function from a tree of texts to faults. The same function judges the repository and two small trees in
//! memory: one that must be accused, one that must not. So a rule that has gone blind fails here.

#![expect(clippy::unwrap_used, reason = "a test that panics has said so")]

mod docs;
mod hygiene;
mod layers;
mod scenarios;
mod tree;

use tree::{Fault, Tree};

/// One rule of the repository.
struct Rule {
    name: &'static str,
    /// What one would ask when it fails.
    why: &'static str,
    check: fn(&Tree) -> Vec<Fault>,
    /// Trees that break the rule, each in one way.
    bad: &'static [&'static [(&'static str, &'static str)]],
    /// A tree that looks suspicious and is right.
    good: &'static [(&'static str, &'static str)],
}

fn rules() -> Vec<&'static Rule> {
    [layers::RULES, hygiene::RULES, docs::RULES, scenarios::RULES]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn the_repository_keeps_every_rule() {
    let tree = Tree::of_the_repository();
    let mut report = String::new();
    for rule in rules() {
        let faults = (rule.check)(&tree);
        if !faults.is_empty() {
            report += &format!("\n{} ({})\n", rule.name, rule.why);
            for fault in faults {
                report += &format!("  {fault}\n");
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn every_rule_accuses_its_bad_trees_and_not_its_good_one() {
    for rule in rules() {
        assert!(
            !rule.bad.is_empty(),
            "{}: has no bad tree, so nothing shows that it can fail",
            rule.name
        );
        for bad in rule.bad {
            assert!(
                !(rule.check)(&Tree::in_memory(bad)).is_empty(),
                "{}: accuses nothing in {bad:?}",
                rule.name
            );
        }
        let faults = (rule.check)(&Tree::in_memory(rule.good));
        assert!(
            faults.is_empty(),
            "{}: accuses its good tree: {}",
            rule.name,
            faults[0]
        );
    }
}
