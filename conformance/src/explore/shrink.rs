//! Making a finding smaller.

use proptest::strategy::ValueTree;

use super::case::Case;

/// A finding that was made smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct Shrunk {
    /// The smallest case that still shows it.
    pub case: Case,
    /// How many smaller ones were tried.
    pub tried: usize,
}

/// Walks to smaller cases as long as they `show` the same, trying `most` of them.
///
/// The first case is known to show it. Where a try does not, the walk goes another way, as proptest's own does.
pub fn shrink(
    tree: &mut dyn ValueTree<Value = Case>,
    most: usize,
    mut shows: impl FnMut(&Case) -> bool,
) -> Shrunk {
    let mut best = tree.current();
    let mut tried = 0;
    if !tree.simplify() {
        return Shrunk { case: best, tried };
    }
    while tried < most {
        let candidate = tree.current();
        tried += 1;
        let goes_on = if shows(&candidate) {
            best = candidate;
            tree.simplify()
        } else {
            tree.complicate()
        };
        if !goes_on {
            break;
        }
    }
    Shrunk { case: best, tried }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::case::{Ending, Noise};
    use crate::explore::generate::Trees;

    #[test]
    fn what_remains_is_what_shows_it() {
        let adapter = crate::adapter::load("reference-delegator").unwrap();
        let trees = Trees::new(&adapter, 11);
        let malformed = |case: &Case| {
            case.calls
                .iter()
                .any(|call| call.noise.contains(&Noise::Malformed))
        };
        let mut tree = (0..500)
            .map(|number| trees.tree(number).unwrap())
            .find(|tree| {
                let case = tree.current();
                case.calls.len() > 2 && malformed(&case)
            })
            .expect("one of so many cases has it");
        let shrunk = shrink(&mut *tree, 2_000, malformed);
        assert_eq!(shrunk.case.calls.len(), 1, "{:?}", shrunk.case);
        let call = &shrunk.case.calls[0];
        assert_eq!(call.noise, [Noise::Malformed]);
        assert!(call.descendants.is_empty() && !call.stubborn && call.chop.is_none());
        assert!(matches!(call.ending, Ending::Answer(_)), "{call:?}");
    }
}
