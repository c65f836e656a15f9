//! Streams as a child writes them, built from a seed: the same seed gives the same bytes on every machine.
//!
//! Each corpus knows how many records it holds, so that a bench can ask its readers before it times them.

use serde_json::json;

/// A stream of JSON lines.
pub struct Corpus {
    /// What is special about it.
    pub name: &'static str,
    /// What the child writes.
    pub bytes: Vec<u8>,
    /// Records in it, cut ones and broken ones included: as many as there are LFs.
    pub records: usize,
}

/// All corpora, each of about `size` bytes.
pub fn all(seed: u64, size: usize) -> Vec<Corpus> {
    vec![
        deltas(seed, size),
        long_deltas(seed, size),
        huge_record(seed, size),
        broken_utf8(seed, size),
        crlf(seed, size),
    ]
}

/// What a child writes most: a delta of a few words, and now and then the message that they make.
pub fn deltas(seed: u64, size: usize) -> Corpus {
    let mut random = Random(seed);
    fill("deltas", size, |number| {
        let words = if number % 200 == 199 {
            400
        } else {
            random.between(2, 8)
        };
        delta(&mut random, words)
    })
}

/// Deltas among which every hundredth is 64 KiB long: a tool's output.
pub fn long_deltas(seed: u64, size: usize) -> Corpus {
    let mut random = Random(seed);
    fill("long deltas", size, |number| {
        let words = if number % 100 == 50 {
            11_000
        } else {
            random.between(2, 8)
        };
        delta(&mut random, words)
    })
}

/// One record of nearly the whole size between small ones: an answer of megabytes.
pub fn huge_record(seed: u64, size: usize) -> Corpus {
    let mut random = Random(seed);
    fill("huge record", size, |number| {
        // Six bytes a word, blank included.
        let words = if number == 1 {
            size / 6
        } else {
            random.between(2, 8)
        };
        delta(&mut random, words)
    })
}

/// Deltas of which every tenth holds a byte that no UTF-8 has.
pub fn broken_utf8(seed: u64, size: usize) -> Corpus {
    let mut random = Random(seed);
    fill("broken UTF-8", size, |number| {
        let words = random.between(2, 8);
        let mut line = delta(&mut random, words);
        if number % 10 == 9 {
            let at = line.len() / 2;
            line[at] = 0xff;
        }
        line
    })
}

/// Deltas whose lines end in CR LF.
pub fn crlf(seed: u64, size: usize) -> Corpus {
    let mut random = Random(seed);
    fill("CR LF", size, |_| {
        let words = random.between(2, 8);
        let mut line = delta(&mut random, words);
        line.push(b'\r');
        line
    })
}

fn fill(name: &'static str, size: usize, mut line: impl FnMut(usize) -> Vec<u8>) -> Corpus {
    let mut bytes = Vec::with_capacity(size + size / 4);
    let mut records = 0;
    while bytes.len() < size {
        bytes.extend(line(records));
        bytes.push(b'\n');
        records += 1;
    }
    Corpus {
        name,
        bytes,
        records,
    }
}

fn delta(random: &mut Random, words: usize) -> Vec<u8> {
    let text: String = (0..words).map(|_| random.word() + " ").collect();
    let event = json!({"type": "text_delta", "contentIndex": 0, "delta": text});
    let usage =
        json!({"input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 120});
    json!({"type": "message_update", "usage": usage, "assistantMessageEvent": event})
        .to_string()
        .into_bytes()
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `least` to `most`, both included.
    fn between(&mut self, least: u64, most: u64) -> usize {
        usize::try_from(least + self.next() % (most - least + 1)).unwrap_or(usize::MAX)
    }

    /// Five letters; one word in sixteen is not ASCII.
    fn word(&mut self) -> String {
        let bits = self.next();
        let letter =
            |at: u32| char::from(b'a' + u8::try_from((bits >> (at * 8)) % 26).unwrap_or(0));
        let mut word: String = (0..5).map(letter).collect();
        if bits >> 60 == 0 {
            word.replace_range(2..4, "é");
        }
        word
    }
}
