//! Parts of a selection, for several machines: `--partition hash:2/5`, and what Bazel asks for in the environment.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::check::words::nearest;
use crate::cli::Failure;
use crate::report::{Format, Output};
use crate::scenario::Planned;

/// One part of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    how: How,
    /// From 1.
    part: u64,
    of: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// By the scenario's name alone: what else is selected changes nothing.
    Hash,
    /// By the place in the selection: parts of one size.
    Count,
}

impl Partition {
    /// The scenarios of this part, in their order.
    pub fn pick(self, mut selected: Vec<Planned>) -> Vec<Planned> {
        let mut place = 0;
        selected.retain(|planned| {
            let number = match self.how {
                How::Hash => hash(&planned.name),
                How::Count => place,
            };
            place += 1;
            number % self.of == self.part - 1
        });
        selected
    }
}

/// The first bytes of a digest: the same on every machine and in every version.
fn hash(name: &str) -> u64 {
    let digest = Sha256::digest(name.as_bytes());
    digest
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (how, rest) = text
            .split_once(':')
            .ok_or_else(|| format!("`{text}` is no part; write `hash:M/N`, such as `hash:1/3`"))?;
        let how = match how {
            "hash" => How::Hash,
            "count" => How::Count,
            other => {
                let near = nearest(other, ["hash", "count"]);
                let near = near.map_or(String::new(), |word| format!("; nearest is `{word}`"));
                return Err(format!(
                    "`{other}` is no way to make parts; there are hash and count{near}"
                ));
            }
        };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (part, of) = rest
            .split_once('/')
            .and_then(|(part, of)| Some((number(part)?, number(of)?)))
            .ok_or_else(|| format!("`{rest}` is not M/N with two whole numbers, such as `1/3`"))?;
        if part == 0 || part > of {
            return Err(format!(
                "there is no part {part} of {of}; parts count from 1 to {of}"
            ));
        }
        Ok(Self { how, part, of })
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {}", self.part, self.of)
    }
}

/// What Bazel's test protocol asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Bazel {
    /// The part to run, from `TEST_SHARD_INDEX` and `TEST_TOTAL_SHARDS`.
    pub partition: Option<Partition>,
    /// A file to touch, which says that sharding is understood: `TEST_SHARD_STATUS_FILE`.
    pub status: Option<PathBuf>,
    /// Where a JUnit report is wanted: `XML_OUTPUT_FILE`.
    pub xml: Option<PathBuf>,
}

impl Bazel {
    /// Reads the environment; `get` gives a variable's value.
    ///
    /// # Errors
    /// When the numbers make no sense.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let partition = match (set("TEST_SHARD_INDEX"), set("TEST_TOTAL_SHARDS")) {
            (None, None) => None,
            (index, total) => {
                let number = |name: &str, value: Option<String>| {
                    let value = value.unwrap_or_default();
                    value.parse::<u64>().map_err(|_| {
                        Failure::usage(format!("{name} is `{value}`, which is no whole number"))
                    })
                };
                let of = number("TEST_TOTAL_SHARDS", total)?;
                let index = number("TEST_SHARD_INDEX", index)?;
                if index >= of {
                    return Err(Failure::usage(format!(
                        "TEST_SHARD_INDEX is {index} of {of} shards; it counts from 0"
                    )));
                }
                let (how, part) = (How::Hash, index + 1);
                Some(Partition { how, part, of })
            }
        };
        let status = partition.and(set("TEST_SHARD_STATUS_FILE"));
        Ok(Self {
            partition,
            status: status.map(PathBuf::from),
            xml: set("XML_OUTPUT_FILE").map(PathBuf::from),
        })
    }

    /// Says that sharding is understood.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn touch(&self) -> Result<(), Failure> {
        let made = |path: &Path| {
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            file.map(drop).map_err(|error| {
                Failure::usage(format!(
                    "TEST_SHARD_STATUS_FILE {}: {error}",
                    path.display()
                ))
            })
        };
        self.status.as_deref().map_or(Ok(()), made)
    }

    /// The report that is wanted beside those of the command line.
    pub fn output(&self) -> Option<Output> {
        self.xml.clone().map(|file| Output {
            format: Format::Junit,
            file: Some(file),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn planned(name: &str) -> Planned {
        let text = format!("scenario: {name}\nwhy: w\nsteps: []\nchecks: []\n");
        Planned {
            name: name.to_owned(),
            area: String::new(),
            file: String::new(),
            axes: indexmap::IndexMap::new(),
            scenario: serde_saphyr::from_str(&text).unwrap(),
        }
    }

    fn names(planned: Vec<Planned>) -> Vec<String> {
        planned.into_iter().map(|planned| planned.name).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn parts_are_disjoint_and_together_everything(
            all in proptest::collection::btree_set("[a-z]{1,8}", 0..40),
            of in 1_u64..9,
            hashed in any::<bool>(),
        ) {
            let all: Vec<Planned> = all.iter().map(|name| planned(&format!("x{name}"))).collect();
            let how = if hashed { How::Hash } else { How::Count };
            let parts: Vec<Vec<String>> = (1..=of)
                .map(|part| names(Partition { how, part, of }.pick(all.clone())))
                .collect();
            let together: BTreeSet<&String> = parts.iter().flatten().collect();
            prop_assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), all.len());
            prop_assert_eq!(together.len(), all.len());
        }

        #[test]
        fn the_part_of_a_name_does_not_depend_on_the_others(
            all in proptest::collection::btree_set("[a-z]{1,8}", 1..40),
            of in 1_u64..9,
            first in any::<prop::sample::Index>(),
        ) {
            let all: Vec<String> = all.iter().map(|name| format!("x{name}")).collect();
            let one = first.get(&all);
            for part in 1..=of {
                let partition = Partition { how: How::Hash, part, of };
                let whole = names(partition.pick(all.iter().map(|n| planned(n)).collect()));
                let alone = names(partition.pick(vec![planned(one)]));
                prop_assert_eq!(whole.contains(one), alone.contains(one));
            }
        }
    }

    #[test]
    fn the_part_of_a_name_is_the_same_in_every_version() {
        assert_eq!(hash("clean-exit") % 5, CLEAN_EXIT_OF_FIVE);
    }

    /// Written down once, so that a change of the hash shows.
    const CLEAN_EXIT_OF_FIVE: u64 = 4;

    #[test]
    fn nonsense_is_told() {
        for (text, said) in [
            ("1/3", "write `hash:M/N`"),
            ("hsh:1/3", "nearest is `hash`"),
            ("hash:1", "is not M/N"),
            ("hash:a/3", "is not M/N"),
            ("hash:0/3", "parts count from 1 to 3"),
            ("count:4/3", "there is no part 4 of 3"),
        ] {
            let error = text.parse::<Partition>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(
            "hash:2/5".parse::<Partition>().unwrap().to_string(),
            "part 2 of 5"
        );
    }

    #[test]
    fn bazel_counts_from_zero() {
        let read = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            Bazel::read(|name| {
                let found = pairs.iter().find(|(its, _)| its == name);
                found.map(|(_, value)| value.clone())
            })
        };
        assert_eq!(read(&[]).unwrap(), Bazel::default());
        let second = read(&[("TEST_SHARD_INDEX", "1"), ("TEST_TOTAL_SHARDS", "3")]).unwrap();
        assert_eq!(second.partition, Some("hash:2/3".parse().unwrap()));
        for (pairs, said) in [
            (
                &[("TEST_SHARD_INDEX", "3"), ("TEST_TOTAL_SHARDS", "3")][..],
                "counts from 0",
            ),
            (
                &[("TEST_SHARD_INDEX", "x"), ("TEST_TOTAL_SHARDS", "3")],
                "TEST_SHARD_INDEX is `x`",
            ),
            (&[("TEST_SHARD_INDEX", "1")], "TEST_TOTAL_SHARDS is ``"),
        ] {
            let error = read(pairs).unwrap_err().message;
            assert!(error.contains(said), "{error}");
        }
    }
}
