//! How fast lines are found: the reference's framer beside what it could at best be (a scan for LF), what the standard
//! library offers, and the obvious loop.
//!
//! Every reader first has to count the corpus right. Compare within one run: the ratio to `memchr scan` holds on another
//! machine, bytes per second do not.

use std::hint::black_box;
use std::io::{BufRead, BufReader};

use benches::Corpus;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// As much as one read of a pipe brings.
const CHUNK: usize = 64 * 1024;
const SIZE: usize = 8 * 1024 * 1024;
const SEED: u64 = 0x5eed;

/// Counts records; looks at every byte that it must.
type Reader = fn(&[u8]) -> usize;

const READERS: &[(&str, Reader)] = &[
    ("memchr scan", scan),
    ("std read_until", read_until),
    ("std lines", lines),
    ("naive", naive),
];

fn scan(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

fn read_until(bytes: &[u8]) -> usize {
    let mut reader = BufReader::with_capacity(CHUNK, bytes);
    let mut line = Vec::new();
    let mut records = 0;
    while reader
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        records += 1;
        black_box(&line);
        line.clear();
    }
    records
}

/// Loses what is not UTF-8, as many a delegator does: then it counts as read and broken.
fn lines(bytes: &[u8]) -> usize {
    let reader = BufReader::with_capacity(CHUNK, bytes);
    reader.lines().map(|line| drop(black_box(line))).count()
}

/// A growing buffer that is searched from its start after every chunk.
fn naive(bytes: &[u8]) -> usize {
    let mut buffer: Vec<u8> = Vec::new();
    let mut records = 0;
    for chunk in bytes.chunks(CHUNK) {
        buffer.extend_from_slice(chunk);
        while let Some(at) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=at).collect();
            black_box(line);
            records += 1;
        }
    }
    records
}

fn framing(criterion: &mut Criterion) {
    for Corpus {
        name,
        bytes,
        records,
    } in benches::all(SEED, SIZE)
    {
        let mut group = criterion.benchmark_group(format!("framing/{name}"));
        group
            .throughput(Throughput::Bytes(bytes.len() as u64))
            .sample_size(10);
        for (reader, count) in READERS {
            assert_eq!(count(&bytes), records, "{reader} on {name}");
            group.bench_with_input(
                BenchmarkId::from_parameter(reader),
                &bytes,
                |bench, bytes| {
                    bench.iter(|| count(black_box(bytes)));
                },
            );
        }
        group.finish();
    }
}

criterion_group!(all, framing);
criterion_main!(all);
