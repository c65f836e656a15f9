//! Bytes into records (pure): LF ends a record, and nothing else does.
//!
//! Each byte is looked at once. A record that lies within one read is borrowed from it and never copied; only one that
//! straddles reads is put together. Nothing longer than the cap is ever held, and a long record that is known not to
//! matter is not held at all: its head decides, once there are [`HEAD`] bytes of it, however the reads fell.
//!
//! ```text
//!                LF                          HEAD bytes, matters
//!   ┌────────┐ ◄─────┐ ┌─────────────┐ ◄──────────────────────┐
//!   │ record │       └─│ put together│                        │
//!   └────────┘         └─────────────┘ ── over the cap ──► ┌──────────┐
//!                             │ HEAD bytes, does not matter│ skipping │ ── LF ──► told with its length
//!                             └──────────────────────────► └──────────┘
//! ```

use memchr::memchr;

/// Longest record that is accepted, in bytes without its LF (`framing.record-limit-8mib`).
pub const RECORD_CAP: usize = 8 * 1024 * 1024;

/// How many bytes of a long record are looked at to tell what it is (ruling 11 of the catalogue).
pub const HEAD: usize = 64 * 1024;

/// What the head of a long record says about the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It is needed whole; over the cap it breaks the protocol.
    Matters,
    /// It is not needed, but it is of the kind that carries an answer: over the cap it breaks the protocol.
    Partial,
    /// It is not needed, however long.
    Harmless,
}

/// What comes out of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole record, without its line end.
    Record(&'a [u8]),
    /// A long record that was not kept: its head, and its length in bytes without the LF.
    Skipped {
        /// The first [`HEAD`] bytes.
        head: &'a [u8],
        /// Length of the whole.
        len: u64,
    },
    /// A record that matters is over the cap. Told as soon as that is known, once for each such record.
    Oversized {
        /// The first bytes of it.
        head: &'a [u8],
    },
}

/// What is left when the stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest<'a> {
    /// Nothing: the last record had its LF.
    Nothing,
    /// Bytes without an LF after them. Whether they are a whole record, their reader finds out.
    Bytes(&'a [u8]),
    /// The end of a record that was not kept.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Bytes are kept in `spill`.
    Keep,
    /// Bytes are counted; `told` once an oversized record was reported.
    Skip {
        len: u64,
        weight: Weight,
        told: bool,
    },
}

/// Cuts a stream of bytes into records.
#[derive(Debug)]
pub struct Framer {
    cap: usize,
    weigh: fn(&[u8]) -> Weight,
    spill: Vec<u8>,
    weighed: bool,
    mode: Mode,
}

impl Framer {
    /// A framer. `weigh` is asked once for each record longer than [`HEAD`], with exactly its first [`HEAD`] bytes.
    pub fn new(cap: usize, weigh: fn(&[u8]) -> Weight) -> Self {
        Self {
            cap,
            weigh,
            spill: Vec::new(),
            weighed: false,
            mode: Mode::Keep,
        }
    }

    /// Takes the bytes of one read and gives every frame in them to `each`.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame<'_>)) {
        while !bytes.is_empty() {
            let end = memchr(b'\n', bytes);
            let (piece, rest) = match end {
                Some(end) => (&bytes[..end], &bytes[end + 1..]),
                None => (bytes, &[][..]),
            };
            bytes = rest;
            if end.is_some()
                && self.spill.is_empty()
                && self.mode == Mode::Keep
                && piece.len() <= HEAD
            {
                each(Frame::Record(trim(piece)));
            } else {
                self.grow(piece, &mut each);
                if end.is_some() {
                    self.finish_record(&mut each);
                }
            }
        }
    }

    /// Adds a piece to the record that is being put together.
    fn grow(&mut self, piece: &[u8], each: &mut impl FnMut(Frame<'_>)) {
        let Mode::Skip { len, weight, told } = &mut self.mode else {
            return self.keep(piece, each);
        };
        *len += piece.len() as u64;
        if *len > self.cap as u64 && *weight != Weight::Harmless && !*told {
            *told = true;
            each(Frame::Oversized { head: &self.spill });
        }
    }

    fn keep(&mut self, piece: &[u8], each: &mut impl FnMut(Frame<'_>)) {
        let room = HEAD.saturating_sub(self.spill.len());
        if !self.weighed && piece.len() > room {
            // The head is complete and there is more: now it is told what the record is, always at the same byte.
            self.spill.extend_from_slice(&piece[..room]);
            self.weighed = true;
            let weight = (self.weigh)(&self.spill);
            if weight != Weight::Matters {
                self.mode = Mode::Skip {
                    len: HEAD as u64,
                    weight,
                    told: false,
                };
            }
            return self.grow(&piece[room..], each);
        }
        if self.spill.len() + piece.len() > self.cap {
            let len = (self.spill.len() + piece.len()) as u64;
            self.spill.truncate(HEAD);
            self.spill.shrink_to(HEAD);
            each(Frame::Oversized { head: &self.spill });
            self.mode = Mode::Skip {
                len,
                weight: Weight::Matters,
                told: true,
            };
            return;
        }
        self.spill.extend_from_slice(piece);
    }

    fn finish_record(&mut self, each: &mut impl FnMut(Frame<'_>)) {
        match self.mode {
            Mode::Keep => each(Frame::Record(trim(&self.spill))),
            Mode::Skip { told: true, .. } => {}
            Mode::Skip { len, .. } => each(Frame::Skipped {
                head: &self.spill,
                len,
            }),
        }
        self.spill.clear();
        // One long answer must not hold its buffer for the rest of the run.
        self.spill.shrink_to(HEAD);
        self.weighed = false;
        self.mode = Mode::Keep;
    }

    /// What is left at the end of the stream.
    pub fn finish(&self) -> Rest<'_> {
        match self.mode {
            Mode::Skip { .. } => Rest::Cut,
            Mode::Keep if self.spill.is_empty() => Rest::Nothing,
            Mode::Keep => Rest::Bytes(trim(&self.spill)),
        }
    }

    /// Bytes that are held at the moment.
    pub fn held(&self) -> usize {
        self.spill.capacity()
    }
}

/// CR before LF is blank space to JSON; it is taken off so that a line compares as it was meant.
fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAP: usize = 100_000;

    fn weigh(head: &[u8]) -> Weight {
        assert_eq!(head.len(), HEAD);
        match head[0] {
            b'h' => Weight::Harmless,
            b'p' => Weight::Partial,
            _ => Weight::Matters,
        }
    }

    /// What a frame is, without borrowing.
    fn describe(frame: Frame<'_>) -> String {
        match frame {
            Frame::Record(bytes) if bytes.len() < 20 => {
                format!("record {}", String::from_utf8_lossy(bytes))
            }
            Frame::Record(bytes) => format!("record {} bytes of {}", bytes.len(), bytes[0] as char),
            Frame::Skipped { head, len } => format!("skipped {len} bytes of {}", head[0] as char),
            Frame::Oversized { head } => format!("oversized {}", head[0] as char),
        }
    }

    fn frames(input: &[u8], cuts: &[usize]) -> (Vec<String>, String) {
        let mut framer = Framer::new(CAP, weigh);
        let mut seen = Vec::new();
        let mut from = 0;
        for &cut in cuts.iter().chain([&input.len()]) {
            let to = cut.clamp(from, input.len());
            framer.push(&input[from..to], |frame| seen.push(describe(frame)));
            assert!(framer.held() <= 2 * CAP, "held {}", framer.held());
            from = to;
        }
        (
            seen,
            format!("{:?}", framer.finish()).chars().take(40).collect(),
        )
    }

    /// The obvious way: split the whole at LF, then look at each line.
    fn naive(input: &[u8]) -> (Vec<String>, String) {
        let mut lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
        let last = lines.pop().unwrap_or_default();
        let mut seen = Vec::new();
        let mut rest = Rest::Nothing;
        for (line, whole) in lines
            .iter()
            .map(|line| (*line, true))
            .chain([(last, false)])
        {
            let weight = if line.len() > HEAD {
                weigh(&line[..HEAD])
            } else {
                Weight::Matters
            };
            let over = line.len() > CAP && weight != Weight::Harmless;
            if over {
                seen.push(describe(Frame::Oversized { head: line }));
            }
            match (whole, weight) {
                (true, _) if over => {}
                (true, Weight::Matters) => seen.push(describe(Frame::Record(trim(line)))),
                (true, _) => seen.push(describe(Frame::Skipped {
                    head: line,
                    len: line.len() as u64,
                })),
                (false, _) if over || weight != Weight::Matters => rest = Rest::Cut,
                (false, _) if line.is_empty() => {}
                (false, _) => rest = Rest::Bytes(trim(line)),
            }
        }
        (seen, format!("{rest:?}").chars().take(40).collect())
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        let sizes = prop_oneof![
            6 => 0..40_usize,
            1 => HEAD - 2..HEAD + 3,
            1 => CAP - 2..CAP + 3,
            1 => Just(2 * CAP),
        ];
        (
            sizes,
            prop_oneof![Just(b'h'), Just(b'p'), Just(b'm')],
            any::<bool>(),
        )
            .prop_map(|(size, byte, cr)| {
                let mut line = vec![byte; size];
                if cr && size > 0 {
                    line[size - 1] = b'\r';
                }
                line
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        // shows: framing.record-split-across-writes, framing.many-records-one-write, framing.oversized-line-bounded
        #[test]
        fn every_way_of_cutting_the_stream_gives_the_same_frames(
            lines in prop::collection::vec(line(), 0..8),
            ended in any::<bool>(),
            cuts in prop::collection::vec(0..400_000_usize, 0..12),
        ) {
            let mut input = lines.join(&b'\n');
            if ended && !input.is_empty() {
                input.push(b'\n');
            }
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(frames(&input, &cuts), naive(&input));
        }
    }

    #[test]
    fn one_byte_at_a_time_is_one_more_way() {
        let input = b"{\"a\":1}\r\n\n{\"b\":\"\xe2\x80\xa8\"}\nrest";
        let every: Vec<usize> = (0..input.len()).collect();
        assert_eq!(frames(input, &every), naive(input));
        assert_eq!(frames(input, &[]).0.len(), 3);
    }

    // shows: framing.oversized-line-bounded
    #[test]
    fn the_cap_is_exact() {
        for (size, expected) in [
            (RECORD_CAP - 1, "record 8388607 bytes of m"),
            (RECORD_CAP, "record 8388608 bytes of m"),
            (RECORD_CAP + 1, "oversized m"),
        ] {
            let mut framer = Framer::new(RECORD_CAP, |_| Weight::Matters);
            let mut seen = Vec::new();
            let mut line = vec![b'm'; size];
            line.push(b'\n');
            for piece in line.chunks(70_000) {
                framer.push(piece, |frame| seen.push(describe(frame)));
            }
            assert_eq!(seen, [expected]);
        }
    }

    // shows: field.linear-cost
    #[test]
    fn a_harmless_record_is_never_held_beyond_its_head() {
        let mut framer = Framer::new(RECORD_CAP, weigh);
        let mut lens = Vec::new();
        for _ in 0..320 {
            framer.push(&[b'h'; 65_536], |_| panic!("no frame before the LF"));
            assert!(framer.held() <= 2 * HEAD, "held {}", framer.held());
        }
        framer.push(b"\n", |frame| lens.push(describe(frame)));
        assert_eq!(lens, ["skipped 20971520 bytes of h"]);
    }
}
