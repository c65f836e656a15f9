//! The axis of time: proportional, except that long times in which nothing happens are cut short and say so.

use crate::check::picture::Picture;

/// Width of a time that is cut short.
const BREAK: f64 = 46.0;
/// Least distance of two ticks.
const APART: f64 = 76.0;
/// Most breaks.
const BREAKS: usize = 5;
/// A time without events is cut short when it takes this part of what is left, or more.
const PART: f64 = 0.3;

/// From time to place.
pub struct Axis {
    parts: Vec<Part>,
}

/// A part of it, in which the scale is one.
#[derive(Debug, Clone, Copy)]
struct Part {
    from_ns: u64,
    to_ns: u64,
    x: f64,
    width: f64,
    cut: bool,
}

/// A time that is cut short.
pub struct Break {
    /// Where it begins.
    pub x: f64,
    /// How wide it is drawn.
    pub width: f64,
    /// How long it was.
    pub ns: u64,
}

impl Axis {
    /// The axis of a picture between two places.
    pub fn of(picture: &Picture, left: f64, right: f64) -> Self {
        let mut times = times(picture);
        times.sort_unstable();
        times.dedup();
        let gaps: Vec<(u64, u64)> = times.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let mut cut = cuts(&gaps, picture.end_ns);
        cut.sort_unstable();
        let shown: u64 = picture.end_ns - cut.iter().map(|(from, to)| to - from).sum::<u64>();
        let room = right - left - BREAK * cut.len() as f64;
        let scale = room / (shown.max(1) as f64);
        let (mut parts, mut at, mut x) = (Vec::new(), 0, left);
        let mut push = |from_ns, to_ns, width, cut, x: &mut f64| {
            parts.push(Part {
                from_ns,
                to_ns,
                x: *x,
                width,
                cut,
            });
            *x += width;
        };
        for (from, to) in cut {
            push(at, from, (from - at) as f64 * scale, false, &mut x);
            push(from, to, BREAK, true, &mut x);
            at = to;
        }
        let rest = (picture.end_ns - at) as f64 * scale;
        push(at, picture.end_ns, rest, false, &mut x);
        Self { parts }
    }

    /// Where a time lies. What is behind the end lies at the end.
    pub fn x(&self, t: u64) -> f64 {
        let inside = self.parts.iter().find(|part| t <= part.to_ns);
        match inside {
            Some(part) => {
                let length = part.to_ns - part.from_ns;
                let done = t.saturating_sub(part.from_ns);
                part.x + part.width * done as f64 / length.max(1) as f64
            }
            None => self.parts.last().map_or(0.0, |part| part.x + part.width),
        }
    }

    /// Times that are cut short.
    pub fn breaks(&self) -> Vec<Break> {
        let cut = self.parts.iter().filter(|part| part.cut);
        cut.map(|part| Break {
            x: part.x,
            width: part.width,
            ns: part.to_ns - part.from_ns,
        })
        .collect()
    }

    /// Ticks with their labels, none nearer than is readable.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let shown = self.parts.iter().filter(|part| !part.cut);
        let (mut ns, mut width) = (0, 0.0);
        for part in shown.clone() {
            ns += part.to_ns - part.from_ns;
            width += part.width;
        }
        let step = step(ns as f64 / f64::max(width, 1.0) * APART);
        let breaks = self.breaks();
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for part in shown {
            let mut t = part.from_ns.div_ceil(step) * step;
            while t <= part.to_ns {
                let x = self.x(t);
                let far = |other: f64| (x - other).abs() >= APART * 0.8;
                let clear = breaks
                    .iter()
                    .all(|cut| (cut.x + cut.width / 2.0 - x).abs() >= APART * 0.75);
                if clear && ticks.last().is_none_or(|(last, _)| far(*last)) {
                    ticks.push((x, ms(t)));
                }
                t += step;
            }
        }
        ticks
    }
}

/// Every time at which something happened. A stall is none: it says that nothing did.
fn times(picture: &Picture) -> Vec<u64> {
    let mut times = vec![0, picture.end_ns];
    for lane in &picture.lanes {
        times.extend(lane.marks.iter().map(|mark| mark.at_ns));
        for call in &lane.calls {
            times.push(call.from_ns);
            times.extend(call.to_ns);
        }
        if let Some(bar) = &lane.bar {
            times.extend([bar.from_ns, bar.to_ns]);
        }
    }
    times.retain(|t| *t <= picture.end_ns);
    times
}

/// The longest gaps, as long as one takes much of what is left.
fn cuts(gaps: &[(u64, u64)], whole: u64) -> Vec<(u64, u64)> {
    let mut longest = gaps.to_vec();
    longest.sort_unstable_by_key(|(from, to)| std::cmp::Reverse(to - from));
    let (mut cut, mut left) = (Vec::new(), whole);
    for (from, to) in longest.into_iter().take(BREAKS) {
        let much = (to - from) as f64 >= left as f64 * PART;
        // With few events nothing is gained.
        if !much || gaps.len() < 6 {
            break;
        }
        left -= to - from;
        cut.push((from, to));
    }
    cut
}

/// The next of 1, 2, 5 × 10^n that is no less, in nanoseconds.
fn step(least: f64) -> u64 {
    let mut ten = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = ten.saturating_mul(factor);
            if step as f64 >= least {
                return step;
            }
        }
        ten = ten.saturating_mul(10);
    }
}

/// Nanoseconds as milliseconds, with no more places than are needed: `0.25 ms`, `40 ms`, `12 000 ms`.
pub fn ms(ns: u64) -> String {
    let whole = ns / 1_000_000;
    if whole >= 10 {
        return format!("{} ms", thousands((ns + 500_000) / 1_000_000));
    }
    let text = format!("{:.2}", ns as f64 / 1e6);
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            // A narrow space that does not break.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}
