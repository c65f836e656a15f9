//! Lines of an untrusted stream: bounded each, and bounded in all.

use std::io::Read;

/// Longest line that is taken as one; a longer one is skipped to its end.
const LONGEST: usize = 32 << 20;
/// Most bytes that one subject may write on its standard output.
const MOST: u64 = 512 << 20;
/// Bytes of a line that was too long that are kept.
const HEAD: usize = 4 << 10;

/// One line, or what came in its place.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its LF.
    Whole(Vec<u8>),
    /// A line longer than the bound.
    TooLong {
        /// How it began.
        head: Vec<u8>,
        /// Its length.
        bytes: usize,
    },
    /// The stream ended inside a line.
    Unfinished(Vec<u8>),
    /// More than the bound for the whole stream; nothing is read any more.
    TooMuch,
}

/// Iterates over the lines of a stream.
#[derive(Debug)]
pub struct Lines<R> {
    stream: R,
    chunk: Vec<u8>,
    /// What of the chunk has not been looked at.
    at: usize,
    line: Vec<u8>,
    /// Bytes of the current line that were dropped.
    dropped: usize,
    total: u64,
    ended: bool,
    longest: usize,
    most: u64,
}

impl<R: Read> Lines<R> {
    /// With the bounds of this module.
    pub fn new(stream: R) -> Self {
        Self::bounded(stream, LONGEST, MOST)
    }

    fn bounded(stream: R, longest: usize, most: u64) -> Self {
        Self {
            stream,
            chunk: Vec::new(),
            at: 0,
            line: Vec::new(),
            dropped: 0,
            total: 0,
            ended: false,
            longest,
            most,
        }
    }

    fn keep(&mut self, until: usize) {
        let piece = &self.chunk[self.at..until];
        let room = self.longest - self.line.len();
        let kept = piece.len().min(room);
        self.line.extend_from_slice(&piece[..kept]);
        self.dropped += piece.len() - kept;
        self.at = until;
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.dropped) {
            0 => Line::Whole(line),
            dropped => Line::TooLong {
                bytes: line.len() + dropped,
                head: line[..line.len().min(HEAD)].to_vec(),
            },
        }
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(found) = self.chunk[self.at..].iter().position(|byte| *byte == b'\n') {
                self.keep(self.at + found);
                self.at += 1;
                return Some(self.take());
            }
            self.keep(self.chunk.len());
            if self.ended {
                return None;
            }
            self.chunk.resize(64 << 10, 0);
            self.at = 0;
            // A stream that cannot be read any more has ended, for whatever reason.
            let read = self.stream.read(&mut self.chunk).unwrap_or(0);
            self.chunk.truncate(read);
            self.total += read as u64;
            if read == 0 {
                self.ended = true;
                if self.line.is_empty() && self.dropped == 0 {
                    return None;
                }
                return Some(match self.take() {
                    Line::Whole(line) => Line::Unfinished(line),
                    other => other,
                });
            }
            if self.total > self.most {
                self.ended = true;
                self.chunk.clear();
                return Some(Line::TooMuch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, longest: usize, most: u64) -> Vec<Line> {
        Lines::bounded(text.as_bytes(), longest, most).collect()
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[test]
    fn lines_end_at_lf_and_a_rest_is_named_as_such() {
        assert_eq!(lines("", 9, 99), []);
        assert_eq!(
            lines("a\n\nb\n", 9, 99),
            [whole("a"), whole(""), whole("b")]
        );
        assert_eq!(
            lines("a\nb", 9, 99),
            [whole("a"), Line::Unfinished("b".into())]
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let too_long = Line::TooLong {
            head: "123".into(),
            bytes: 5,
        };
        assert_eq!(lines("12345\nab\n", 3, 99), [too_long, whole("ab")]);
        assert_eq!(lines("123\n", 3, 99), [whole("123")]);
    }

    #[test]
    fn a_flood_ends_the_reading() {
        assert_eq!(lines("a\nb\n", 9, 3), [Line::TooMuch]);
    }
}
