//! Random cases. The same seed gives the same cases.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sha2::{Digest as _, Sha256};

use super::case::{Abort, Call, Case, Chop, Descendant, Ending, Noise};
use crate::adapter::{Adapter, ChildMode};
use crate::check::applies::declares;

/// Most calls of a case.
const MOST_CALLS: usize = 4;
/// Bytes of standard error that a child writes at most.
const MOST_STDERR: u64 = 400_000;
/// Bytes of a record that carries no answer, where the subject claims no limit.
const BIG: u64 = 300_000;

/// What a subject allows to be generated.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    commands: bool,
    parallel: bool,
    deadline: bool,
    cancel: bool,
    record_cap: Option<u64>,
}

impl Allowed {
    fn of(adapter: &Adapter) -> Self {
        Self {
            commands: adapter.child_mode == ChildMode::Rpc,
            parallel: adapter.transport != crate::adapter::Transport::PiExtension,
            deadline: adapter.settings.contains_key("deadline") && declares(adapter, "deadline"),
            cancel: declares(adapter, "cancel"),
            record_cap: adapter.figures.record_cap.map(|size| size.0),
        }
    }
}

/// Cases for one subject.
pub fn strategy(adapter: &Adapter) -> BoxedStrategy<Case> {
    let allowed = Allowed::of(adapter);
    let most = if allowed.cancel || allowed.deadline {
        1
    } else {
        0
    };
    let together = if allowed.parallel {
        any::<bool>().boxed()
    } else {
        Just(false).boxed()
    };
    let ordinary =
        (vec(call(allowed), 1..=MOST_CALLS), together.clone()).prop_map(|(calls, together)| Case {
            calls,
            together,
            deadline: false,
        });
    if !allowed.deadline || most == 0 {
        return ordinary.boxed();
    }
    let endless = (vec(endless(allowed), 1..=2), together).prop_map(|(calls, together)| Case {
        calls,
        together,
        deadline: true,
    });
    prop_oneof![9 => ordinary, 1 => endless].boxed()
}

fn call(allowed: Allowed) -> BoxedStrategy<Call> {
    (
        vec(descendant(), 0..=2),
        vec(noise(allowed), 0..=4),
        ending(allowed),
        prop::bool::weighted(0.25),
        prop::option::weighted(0.4, chop()),
        abort(allowed),
    )
        .prop_map(|(descendants, noise, ending, stubborn, chop, abort)| {
            // What never ends by itself is ended by the caller.
            let abort = if ending.is_endless() && abort == Abort::No {
                Abort::AtWork
            } else {
                abort
            };
            Call {
                descendants,
                noise,
                ending,
                stubborn,
                chop,
                abort,
            }
        })
        .boxed()
}

/// A call that only the deadline ends.
fn endless(allowed: Allowed) -> BoxedStrategy<Call> {
    let ending = prop_oneof![Just(Ending::Hang), Just(Ending::Stream)];
    (call(allowed), ending)
        .prop_map(|(call, ending)| Call {
            ending,
            abort: Abort::No,
            ..call
        })
        .boxed()
}

fn descendant() -> impl Strategy<Value = Descendant> {
    (
        any::<[bool; 4]>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |([stdout, stderr, stubborn, session], double_fork, writes)| Descendant {
                stdout,
                stderr,
                stubborn,
                session,
                double_fork,
                writes: writes && (stdout || stderr),
            },
        )
}

/// Texts that readers get wrong: separators that are no line ends, characters of two to four bytes, quotes and escapes.
fn text() -> BoxedStrategy<String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,8}".boxed(),
        1 => Just("\u{2028}".to_owned()).boxed(),
        1 => Just("é✓𝄞".to_owned()).boxed(),
        1 => Just("\"quoted\\\"".to_owned()).boxed(),
        1 => Just("\r\n\t".to_owned()).boxed(),
        1 => Just("{\"type\":\"agent_settled\"}".to_owned()).boxed(),
        1 => Just("\u{85}\u{0}\u{7f}".to_owned()).boxed(),
    ];
    let short = vec(piece, 1..6).prop_map(|pieces| format!("x{}x", pieces.concat()));
    let long = (1_000usize..20_000).prop_map(|count| "löng ".repeat(count / 6).trim().to_owned());
    prop_oneof![8 => short, 1 => long].boxed()
}

fn noise(allowed: Allowed) -> BoxedStrategy<Noise> {
    let cap = allowed.record_cap.unwrap_or(BIG);
    let big = if allowed.record_cap.is_some() {
        prop_oneof![Just(cap - 1), Just(cap), Just(cap + 1), 1_000u64..BIG].boxed()
    } else {
        (1_000u64..BIG).boxed()
    };
    let always = prop_oneof![
        3 => text().prop_map(Noise::Tool),
        1 => Just(Noise::Retry),
        1 => Just(Noise::Compaction),
        1 => Just(Noise::Malformed),
        1 => Just(Noise::Unknown),
        1 => Just(Noise::Scalar),
        1 => Just(Noise::Blank),
        1 => big.prop_map(Noise::Big),
        1 => (1u64..MOST_STDERR).prop_map(Noise::Stderr),
        1 => text().prop_map(Noise::Reply),
        1 => (1u64..60).prop_map(Noise::Pause),
    ];
    if allowed.commands {
        prop_oneof![12 => always, 1 => Just(Noise::Dialog)].boxed()
    } else {
        always.boxed()
    }
}

fn ending(allowed: Allowed) -> BoxedStrategy<Ending> {
    let always = prop_oneof![
        4 => text().prop_map(Ending::Answer),
        4 => text().prop_map(Ending::AnswerExit),
        2 => text().prop_map(Ending::AnswerStay),
        2 => text().prop_map(Ending::Length),
        2 => text().prop_map(Ending::Error),
        1 => (1i32..200).prop_map(Ending::Exit),
        1 => Just(Ending::Exit(0)),
        1 => Just(Ending::Killed),
        1 => Just(Ending::Cut),
    ];
    let refused = if allowed.commands { 1 } else { 0 };
    let endless = if allowed.cancel { 3 } else { 0 };
    let mut all = vec![(17, always.boxed())];
    if refused > 0 {
        all.push((refused, Just(Ending::Rejected).boxed()));
    }
    if endless > 0 {
        all.push((
            endless,
            prop_oneof![Just(Ending::Hang), Just(Ending::Stream)].boxed(),
        ));
    }
    proptest::strategy::Union::new_weighted(all).boxed()
}

fn chop() -> impl Strategy<Value = Chop> {
    let every = prop_oneof![
        Just(0usize),
        Just(1),
        Just(3),
        Just(7),
        Just(64),
        Just(4095)
    ];
    (every, prop::bool::weighted(0.2)).prop_map(|(every, crlf)| Chop { every, crlf })
}

fn abort(allowed: Allowed) -> BoxedStrategy<Abort> {
    if !allowed.cancel {
        return Just(Abort::No).boxed();
    }
    prop_oneof![
        6 => Just(Abort::No),
        1 => Just(Abort::AtWork),
        1 => (0u64..80).prop_map(Abort::After),
    ]
    .boxed()
}

/// Cases of one seed, each of which can be made smaller.
pub struct Trees {
    strategy: BoxedStrategy<Case>,
    seed: u64,
}

impl Trees {
    /// For one subject and seed.
    pub fn new(adapter: &Adapter, seed: u64) -> Self {
        Self {
            strategy: strategy(adapter),
            seed,
        }
    }

    /// The case of this number, with its smaller ones.
    ///
    /// # Errors
    /// When the strategy refuses, which it never does.
    pub fn tree(&self, number: u64) -> Result<Box<dyn ValueTree<Value = Case>>, String> {
        let digest = Sha256::digest(format!("explore/{}/{number}", self.seed));
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &digest);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let tree: NewTree<BoxedStrategy<Case>> = self.strategy.new_tree(&mut runner);
        tree.map(|tree| tree as Box<dyn ValueTree<Value = Case>>)
            .map_err(|reason| reason.to_string())
    }
}

/// The case of this number and seed.
///
/// # Errors
/// As [`Trees::tree`].
pub fn case_of(adapter: &Adapter, seed: u64, number: u64) -> Result<Case, String> {
    Ok(Trees::new(adapter, seed).tree(number)?.current())
}
