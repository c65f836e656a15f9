//! Faults in how a child's output is read and its input written.

use reference::pi::Limits;
use reference::pi::run::{Effect, Input};
use reference::pi::seam::RunTwist;
use reference::pi::wire::Record;

use crate::{Mutant, mutant};

pub const MUTANTS: &[Mutant] = &[
    mutant::<DecodesChunks>(
        "decodes-each-chunk-alone",
        "Bytes become text read by read, so a cut character is lost.",
        &["framing.utf8-split-across-chunks"],
    ),
    mutant::<SplitsAtU2028>(
        "splits-at-u2028",
        "U+2028 ends a record, as it ends a line elsewhere.",
        &["framing.many-records-one-write"],
    ),
    mutant::<NoRecordCap>(
        "no-record-cap",
        "A record may be as long as it likes.",
        &["framing.oversized-line-bounded"],
    ),
    mutant::<UnboundedStderr>(
        "stderr-unbounded",
        "All of stderr is kept.",
        &["bounds.stderr-bounded", "bounds.stderr-tail-64kib"],
    ),
    mutant::<NoStderr>(
        "stderr-dropped",
        "What the child says on stderr is thrown away.",
        &["semantics.failure-includes-stderr"],
    ),
    mutant::<JunkIsFatal>(
        "junk-is-fatal",
        "The first line that is no record ends the run.",
        &[
            "framing.malformed-record-policy",
            "framing.non-object-json-ignored",
        ],
    ),
    mutant::<StrictSurrogates>(
        "half-a-surrogate-drops-the-record",
        "A record with half a surrogate pair is skipped.",
        &["field.lone-surrogate"],
    ),
    mutant::<CutRecordIsFine>(
        "incomplete-last-record-ignored",
        "A stream that ends inside a record has simply ended.",
        &["field.last-record-cut"],
    ),
    mutant::<ClosesStdin>(
        "stdin-closed-at-once",
        "Input is closed behind the prompt, because nothing more will be written.",
        &[
            "semantics.terminal-answer-captured",
            "launch.known-profile-runs",
        ],
    ),
    mutant::<DialogUnanswered>(
        "dialog-unanswered",
        "A dialog is left open.",
        &["field.term-held-by-dialog"],
    ),
    mutant::<PromptTwice>(
        "prompt-written-twice",
        "The prompt is sent again, to be sure.",
        &["field.accepted-but-silent"],
    ),
    mutant::<ReadIsRecord>(
        "a-read-is-a-record",
        "Takes the end of a read for the end of a record.",
        &["framing.record-split-across-writes"],
    ),
    mutant::<NeedsLf>(
        "last-record-needs-lf",
        "Drops a last record that has no LF.",
        &[
            "framing.last-record-without-newline",
            "field.last-record-cut",
        ],
    ),
    mutant::<StopsAtInvalid>(
        "stops-at-invalid-utf8",
        "Reads no further once bytes came that are not UTF-8.",
        &["field.invalid-utf8-keeps-draining"],
    ),
];

#[derive(Default)]
struct DecodesChunks;

impl RunTwist for DecodesChunks {
    fn rewrites(&self) -> bool {
        true
    }

    fn bytes(&mut self, bytes: &mut Vec<u8>) {
        *bytes = String::from_utf8_lossy(bytes).into_owned().into_bytes();
    }
}

#[derive(Default)]
struct SplitsAtU2028;

impl RunTwist for SplitsAtU2028 {
    fn rewrites(&self) -> bool {
        true
    }

    fn bytes(&mut self, bytes: &mut Vec<u8>) {
        *bytes = String::from_utf8_lossy(bytes)
            .replace('\u{2028}', "\n")
            .into_bytes();
    }
}

#[derive(Default)]
struct NoRecordCap;

impl RunTwist for NoRecordCap {
    fn limits(&mut self, limits: &mut Limits) {
        limits.record_cap = usize::MAX;
    }
}

#[derive(Default)]
struct UnboundedStderr;

impl RunTwist for UnboundedStderr {
    fn stderr_cap(&self, _cap: usize) -> usize {
        usize::MAX
    }
}

#[derive(Default)]
struct NoStderr;

impl RunTwist for NoStderr {
    fn stderr_cap(&self, _cap: usize) -> usize {
        0
    }
}

#[derive(Default)]
struct JunkIsFatal;

impl RunTwist for JunkIsFatal {
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![if input == Input::Unusable {
            Input::Oversized
        } else {
            input
        }]
    }
}

#[derive(Default)]
struct StrictSurrogates;

impl RunTwist for StrictSurrogates {
    fn input(&mut self, input: Input) -> Vec<Input> {
        vec![if matches!(input, Input::Record(_, true)) {
            Input::Unusable
        } else {
            input
        }]
    }
}

#[derive(Default)]
struct CutRecordIsFine;

impl RunTwist for CutRecordIsFine {
    fn input(&mut self, input: Input) -> Vec<Input> {
        match input {
            // The text that came before is taken for the answer, as readers of deltas do.
            Input::StdoutEnd(true) => {
                let message = reference::pi::wire::Message {
                    text: "earlier text".into(),
                    stop_reason: "stop".into(),
                    ..Default::default()
                };
                let record = Record::AssistantEnd(Box::new(message));
                vec![Input::Record(record, false), Input::StdoutEnd(false)]
            }
            input => vec![input],
        }
    }
}

#[derive(Default)]
struct ClosesStdin;

impl RunTwist for ClosesStdin {
    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        match effect {
            Effect::Write(_) => vec![effect, Effect::CloseStdin],
            _ => vec![effect],
        }
    }
}

#[derive(Default)]
struct DialogUnanswered;

impl RunTwist for DialogUnanswered {
    fn input(&mut self, input: Input) -> Vec<Input> {
        match input {
            Input::Record(Record::Dialog { .. }, replaced) => {
                vec![Input::Record(Record::Other, replaced)]
            }
            _ => vec![input],
        }
    }
}

#[derive(Default)]
struct PromptTwice;

impl RunTwist for PromptTwice {
    fn effect(&mut self, effect: Effect) -> Vec<Effect> {
        match &effect {
            Effect::Write(line) if line.contains("\"prompt\"") => vec![effect.clone(), effect],
            _ => vec![effect],
        }
    }
}

#[derive(Default)]
struct ReadIsRecord;

impl RunTwist for ReadIsRecord {
    fn rewrites(&self) -> bool {
        true
    }

    fn bytes(&mut self, bytes: &mut Vec<u8>) {
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
    }
}

#[derive(Default)]
struct NeedsLf {
    open: Vec<u8>,
}

impl RunTwist for NeedsLf {
    fn rewrites(&self) -> bool {
        true
    }

    fn bytes(&mut self, bytes: &mut Vec<u8>) {
        self.open.append(bytes);
        let whole = self.open.iter().rposition(|byte| *byte == b'\n');
        *bytes = self.open.drain(..whole.map_or(0, |end| end + 1)).collect();
    }
}

#[derive(Default)]
struct StopsAtInvalid {
    stopped: bool,
}

impl RunTwist for StopsAtInvalid {
    fn rewrites(&self) -> bool {
        true
    }

    fn bytes(&mut self, bytes: &mut Vec<u8>) {
        // A character that the read has cut is not broken yet.
        let broken = std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some());
        self.stopped |= broken;
        if self.stopped {
            bytes.clear();
        }
    }
}
