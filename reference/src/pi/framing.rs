//! Bytes into records (pure): LF ends a record, and nothing else does.
//!
//! ```text
//!  read ──► records that lie within it: borrowed, never copied ───► Frame::Record
//!       └─► one that straddles reads ─► put together ─► LF ───────► Frame::Record
//!                                         │ longer than HEAD: its head is weighed, once
//!                                         ├─ not needed ─► counted only ─► LF ─► Frame::Skipped
//!                                         └─ needed, over the cap ─────────────► Frame::Oversized, the rest dropped
//! ```
//!
//! Each byte is looked at once, and nothing longer than the cap is ever held. What becomes of a record depends on its
//! bytes alone, however the reads fell; the tests hold that against a naive twin. One CR before the LF is not part of
//! the record and does not count towards the cap.

use memchr::{memchr, memchr_iter};

/// Longest record in bytes, without its LF (`framing.record-limit-8mib`; ruling 11 of the catalogue).
pub const RECORD_CAP: usize = 8 * 1024 * 1024;
/// How much of a record is looked at to tell whether it can be skipped. Shorter ones are always kept.
pub const HEAD: usize = 64 * 1024;
/// Longest record that is kept when the run can do without it. Pi shortens the output of a command to 50 KiB; escaped and
/// told twice that is still less.
const USEFUL_CAP: usize = 1024 * 1024;
/// Capacity above which a spill is given back after its record.
const SPILL_KEPT: usize = 1024 * 1024;
/// Below this length a plain loop finds an LF sooner than a vector search has started.
const SHORT: usize = 16;

/// What to do with a record that is longer than [`HEAD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It carries meaning: kept up to the cap; a fault beyond it.
    Matters,
    /// It carries meaning that the run can do without: kept up to a mebibyte, skipped beyond it.
    Useful,
    /// It carries nothing, but is part of an answer: never stored, and a fault beyond the cap.
    Partial,
    /// It carries nothing: never stored, however long it is.
    Harmless,
}

/// A record, or what is left of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole record, without LF and without the CR before it.
    Record(&'a [u8]),
    /// A record that was not stored: its first [`HEAD`] bytes, and its length with a CR, if there was one.
    Skipped {
        /// The beginning.
        head: &'a [u8],
        /// Bytes before the LF.
        len: u64,
    },
    /// A record that outgrew the cap and may not be skipped. Told as soon as it is known; the rest is dropped.
    Oversized {
        /// The beginning.
        head: &'a [u8],
    },
}

/// What is left when the stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest<'a> {
    /// Nothing: the last record had its LF, or was told as oversized already.
    Nothing,
    /// Bytes without an LF after them. Whether they are a whole record, their reader finds out.
    Bytes(&'a [u8]),
    /// The same of a record that was not stored.
    Skipped {
        /// The beginning.
        head: &'a [u8],
        /// Whether its last byte ends an object, as that of every whole record does.
        closed: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The spill holds all there is of the open record.
    Spill { weight: Option<Weight> },
    /// The spill holds the head.
    Skip { weight: Weight, len: u64, last: u8 },
    /// Everything up to the next LF goes.
    Drop,
}

/// Cuts a stream of chunks into records.
#[derive(Debug)]
pub struct Framer {
    cap: usize,
    head: usize,
    weigh: fn(&[u8]) -> Weight,
    spill: Vec<u8>,
    state: State,
}

const FRESH: State = State::Spill { weight: None };

impl Framer {
    /// A framer for records of up to `cap` bytes. `weigh` is asked once for each record longer than [`HEAD`], with
    /// the first [`HEAD`] bytes of it.
    pub fn new(cap: usize, weigh: fn(&[u8]) -> Weight) -> Self {
        Self::with_head(cap, HEAD, weigh)
    }

    /// The same with a head of another size, so that tests need no big records.
    fn with_head(cap: usize, head: usize, weigh: fn(&[u8]) -> Weight) -> Self {
        Self {
            cap,
            head: head.min(cap),
            weigh,
            spill: Vec::new(),
            state: FRESH,
        }
    }

    /// Bytes that are held at the moment.
    pub fn held(&self) -> usize {
        self.spill.capacity()
    }

    /// Takes in a chunk and hands out every record that it completes, in order.
    pub fn push(&mut self, chunk: &[u8], mut each: impl FnMut(Frame<'_>)) {
        let mut rest = chunk;
        if self.open() {
            let Some(end) = find_lf(rest) else {
                return self.extend(rest, &mut each);
            };
            self.extend(&rest[..end], &mut each);
            self.close(&mut each);
            rest = &rest[end + 1..];
        }
        let mut start = 0;
        if rest.len() < SHORT {
            while let Some(length) = find_lf(&rest[start..]) {
                each(self.whole(&rest[start..start + length]));
                start += length + 1;
            }
        } else {
            for end in memchr_iter(b'\n', rest) {
                each(self.whole(&rest[start..end]));
                start = end + 1;
            }
        }
        if start < rest.len() {
            self.extend(&rest[start..], &mut each);
        }
    }

    /// What is left at the end of the stream.
    pub fn finish(&self) -> Rest<'_> {
        match self.state {
            State::Spill { .. } if self.spill.is_empty() => Rest::Nothing,
            State::Spill { .. } => Rest::Bytes(trim(&self.spill)),
            State::Skip { last, .. } => Rest::Skipped {
                head: &self.spill,
                closed: last == b'}',
            },
            State::Drop => Rest::Nothing,
        }
    }

    fn open(&self) -> bool {
        self.state != FRESH || !self.spill.is_empty()
    }

    /// Whether `len` bytes that end in `last` are too many: a CR at the end does not count.
    fn over(&self, weight: Weight, len: u64, last: u8) -> bool {
        let cap = match weight {
            Weight::Useful => self.cap.min(USEFUL_CAP),
            _ => self.cap,
        };
        len - u64::from(last == b'\r') > cap as u64
    }

    /// A record that lies within one chunk.
    fn whole<'a>(&self, record: &'a [u8]) -> Frame<'a> {
        if record.len() <= self.head {
            return Frame::Record(trim(record));
        }
        let head = &record[..self.head];
        let length = record.len() as u64;
        let weight = (self.weigh)(head);
        let over = self.over(weight, length, record[record.len() - 1]);
        match weight {
            Weight::Matters | Weight::Partial if over => Frame::Oversized { head },
            Weight::Useful if over => Frame::Skipped { head, len: length },
            Weight::Matters | Weight::Useful => Frame::Record(trim(record)),
            Weight::Partial | Weight::Harmless => Frame::Skipped { head, len: length },
        }
    }

    /// More of the open record, without its LF. `bytes` may be empty.
    fn extend(&mut self, mut bytes: &[u8], each: &mut impl FnMut(Frame<'_>)) {
        while let Some(&last) = bytes.last() {
            match &mut self.state {
                State::Drop => return,
                State::Skip {
                    weight,
                    len,
                    last: end,
                } => {
                    *len += bytes.len() as u64;
                    *end = last;
                    let (weight, length) = (*weight, *len);
                    if weight == Weight::Partial && self.over(weight, length, last) {
                        each(Frame::Oversized { head: &self.spill });
                        self.drop_rest();
                    }
                    return;
                }
                State::Spill { weight: None } => {
                    let room = self.head - self.spill.len();
                    if bytes.len() <= room {
                        return self.spill.extend_from_slice(bytes);
                    }
                    self.spill.extend_from_slice(&bytes[..room]);
                    bytes = &bytes[room..];
                    let weight = (self.weigh)(&self.spill);
                    self.state = match weight {
                        Weight::Matters | Weight::Useful => State::Spill {
                            weight: Some(weight),
                        },
                        Weight::Harmless | Weight::Partial => State::Skip {
                            weight,
                            len: self.spill.len() as u64,
                            last,
                        },
                    };
                }
                State::Spill {
                    weight: Some(weight),
                } => {
                    let weight = *weight;
                    let length = self.spill.len() + bytes.len();
                    if !self.over(weight, length as u64, last) {
                        return self.spill.extend_from_slice(bytes);
                    }
                    self.spill.truncate(self.head);
                    self.spill.shrink_to(self.head);
                    if weight == Weight::Useful {
                        self.state = State::Skip {
                            weight: Weight::Harmless,
                            len: length as u64,
                            last,
                        };
                    } else {
                        each(Frame::Oversized { head: &self.spill });
                        self.drop_rest();
                    }
                    return;
                }
            }
        }
    }

    /// The LF of the open record.
    fn close(&mut self, each: &mut impl FnMut(Frame<'_>)) {
        match self.state {
            State::Spill { .. } => each(Frame::Record(trim(&self.spill))),
            State::Skip { len, .. } => each(Frame::Skipped {
                head: &self.spill,
                len,
            }),
            State::Drop => {}
        }
        self.spill.clear();
        self.spill.shrink_to(SPILL_KEPT);
        self.state = FRESH;
    }

    fn drop_rest(&mut self) {
        self.spill = Vec::new();
        self.state = State::Drop;
    }
}

fn find_lf(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT {
        bytes.iter().position(|&byte| byte == b'\n')
    } else {
        memchr(b'\n', bytes)
    }
}

fn trim(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r").unwrap_or(record)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records of tests say their weight by their first letter.
    fn weigh(head: &[u8]) -> Weight {
        match head.first() {
            Some(b'k') => Weight::Useful,
            Some(b'p') => Weight::Partial,
            Some(b's') => Weight::Harmless,
            _ => Weight::Matters,
        }
    }

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Told {
        Record(Vec<u8>),
        Skipped(Vec<u8>, u64),
        Oversized(Vec<u8>),
        Last(Vec<u8>),
        LastSkipped(Vec<u8>, bool),
    }

    fn told(frame: Frame<'_>) -> Told {
        match frame {
            Frame::Record(record) => Told::Record(record.to_vec()),
            Frame::Skipped { head, len } => Told::Skipped(head.to_vec(), len),
            Frame::Oversized { head } => Told::Oversized(head.to_vec()),
        }
    }

    fn framed(cap: usize, head: usize, chunks: &[&[u8]]) -> Vec<Told> {
        let mut framer = Framer::with_head(cap, head, weigh);
        let mut seen = Vec::new();
        for chunk in chunks {
            framer.push(chunk, |frame| seen.push(told(frame)));
            assert!(framer.spill.len() <= cap + 1, "{} held", framer.held());
        }
        match framer.finish() {
            Rest::Bytes(record) => seen.push(Told::Last(record.to_vec())),
            Rest::Skipped { head, closed } => {
                seen.push(Told::LastSkipped(head.to_vec(), closed));
            }
            Rest::Nothing => {}
        }
        seen
    }

    /// The obvious implementation: the whole input, split at LF.
    fn naive(cap: usize, head: usize, input: &[u8]) -> Vec<Told> {
        let head = head.min(cap);
        let mut pieces: Vec<&[u8]> = input.split(|&byte| byte == b'\n').collect();
        let open = pieces.pop().unwrap_or_default();
        let one = |record: &[u8], ended: bool| {
            let bare = record.strip_suffix(b"\r").unwrap_or(record);
            let weight = if record.len() > head {
                weigh(&record[..head])
            } else {
                Weight::Matters
            };
            let start = record[..record.len().min(head)].to_vec();
            let over = bare.len() > cap;
            let keeps = matches!(weight, Weight::Matters | Weight::Useful);
            let fatal = matches!(weight, Weight::Matters | Weight::Partial);
            match (over, keeps, fatal, ended) {
                (true, _, true, _) => Some(Told::Oversized(start)),
                (false, true, _, true) => Some(Told::Record(bare.to_vec())),
                (false, true, _, false) if record.is_empty() => None,
                (false, true, _, false) => Some(Told::Last(bare.to_vec())),
                (_, _, _, true) => Some(Told::Skipped(start, record.len() as u64)),
                (_, _, _, false) => Some(Told::LastSkipped(start, record.ends_with(b"}"))),
            }
        };
        let mut seen: Vec<_> = pieces
            .iter()
            .filter_map(|record| one(record, true))
            .collect();
        seen.extend(one(open, false));
        seen
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let letter = prop_oneof![
            4 => Just(b'\n'), 2 => Just(b'\r'), 8 => Just(b'x'), 1 => Just(b'}'),
            2 => Just(b'k'), 2 => Just(b'p'), 2 => Just(b's'), 1 => any::<u8>(),
        ];
        prop::collection::vec(letter, 0..200)
    }

    fn cut(input: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
        places.extend([0, input.len()]);
        places.sort_unstable();
        places
            .windows(2)
            .map(|ends| input[ends[0]..ends[1]].to_vec())
            .collect()
    }

    proptest! {
        // shows: framing.record-split-across-writes, framing.many-records-one-write
        #[test]
        fn chunking_changes_nothing(
            input in stream(),
            cuts in prop::collection::vec(any::<usize>(), 0..40),
            cap in 1usize..40,
            head in 1usize..24,
        ) {
            let expected = naive(cap, head, &input);
            let chunks = cut(&input, &cuts);
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(framed(cap, head, &chunks), expected.clone());
            prop_assert_eq!(framed(cap, head, &[&input]), expected.clone());
            let single: Vec<&[u8]> = input.chunks(1).collect();
            prop_assert_eq!(framed(cap, head, &single), expected);
        }
    }

    #[test]
    fn every_size_around_the_cap_in_every_chunk_size() {
        for letter in [b'x', b'k', b'p', b's'] {
            for size in 30..=34 {
                for end in ["", "\n", "\r\n", "\r\r\n"] {
                    let mut input = vec![letter; size];
                    input.extend_from_slice(end.as_bytes());
                    input.extend_from_slice(b"next\n");
                    let expected = naive(32, 16, &input);
                    for step in 1..=input.len() {
                        let chunks: Vec<&[u8]> = input.chunks(step).collect();
                        assert_eq!(framed(32, 16, &chunks), expected, "{input:?} by {step}");
                    }
                }
            }
        }
    }

    // shows: framing.oversized-line-bounded
    #[test]
    fn the_cap_is_exact_and_an_endless_line_holds_no_memory() {
        let mut framer = Framer::new(RECORD_CAP, |_| Weight::Matters);
        let block = vec![b'x'; 1 << 16];
        let count = |framer: &mut Framer, chunk: &[u8]| {
            let mut seen = Vec::new();
            framer.push(chunk, |frame| {
                seen.push(match frame {
                    Frame::Record(record) => record.len(),
                    Frame::Skipped { .. } => 1,
                    Frame::Oversized { .. } => 2,
                });
            });
            seen
        };
        for _ in 0..RECORD_CAP / block.len() {
            assert!(count(&mut framer, &block).is_empty());
        }
        assert_eq!(count(&mut framer, b"\n"), [RECORD_CAP]);
        assert!(framer.spill.capacity() <= SPILL_KEPT);
        for _ in 0..RECORD_CAP / block.len() {
            assert!(count(&mut framer, &block).is_empty());
        }
        assert_eq!(count(&mut framer, b"x"), [2]);
        for _ in 0..1024 {
            assert!(count(&mut framer, &block).is_empty());
            assert_eq!(framer.held(), 0);
        }
        assert_eq!(count(&mut framer, b"\nok\n"), ["ok".len()]);
    }

    // shows: field.linear-cost
    #[test]
    fn a_record_that_is_not_needed_is_never_held_beyond_its_head() {
        let mut framer = Framer::new(RECORD_CAP, |_| Weight::Harmless);
        let block = vec![b'x'; HEAD];
        for _ in 0..320 {
            framer.push(&block, |_| panic!("no frame before the LF"));
            assert!(framer.held() <= 2 * HEAD, "{} held", framer.held());
        }
        let mut lens = Vec::new();
        framer.push(b"\n", |frame| {
            if let Frame::Skipped { head, len } = frame {
                lens.push((head.len(), len));
            }
        });
        assert_eq!(lens, [(HEAD, 320 * HEAD as u64)]);
    }

    #[test]
    fn only_lf_splits() {
        let text = "a\u{2028}b\u{85}c\rd\u{b}e\n";
        let expected = vec![Told::Record(text.trim_end().as_bytes().to_vec())];
        assert_eq!(framed(100, 100, &[text.as_bytes()]), expected);
    }
}
