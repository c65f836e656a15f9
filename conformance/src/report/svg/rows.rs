//! Rows in which nothing lies over anything.

/// Most rows of labels below a bar.
const ROWS: usize = 6;
/// Least distance of two labels in a row.
const GAP: f64 = 7.0;
/// Longest label, in units.
const LONGEST: f64 = 170.0;

/// Where a mark's label stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// What it says, cut to a length.
    pub text: String,
    /// Its row; `None` when there is no room.
    pub row: Option<usize>,
    /// It stands left of its mark.
    pub left: bool,
}

/// Width of a text in the labels' size: an estimate that is rather too wide.
pub fn width(text: &str) -> f64 {
    text.chars().map(glyph).sum()
}

fn glyph(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 3.4,
        'm' | 'w' | 'M' | 'W' | '…' => 9.8,
        c if c.is_ascii_uppercase() => 7.8,
        c if c.is_ascii() => 6.3,
        // Scripts of the East are twice as wide.
        c if u32::from(c) >= 0x1100 => 12.5,
        _ => 7.2,
    }
}

/// A text that is cut to a width.
pub fn fit(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut used = glyph('…');
    let kept = text.chars().take_while(|c| {
        used += glyph(*c);
        used <= room
    });
    let mut shown: String = kept.collect();
    shown.push('…');
    shown
}

/// Marks that are nearer than this share one line to their labels, which then stand in the order of time.
const TOGETHER: f64 = 3.5;

/// Puts labels into rows; `wanted` are places and texts from left to right. Gives the labels, and how many rows they take.
///
/// From right to left each takes the first row in which it ends before what is there begins. So the line from a mark down
/// to its label passes only rows whose labels begin further to the right.
pub fn place(wanted: &[(f64, &str)], least: f64, most: f64) -> (Vec<Label>, usize) {
    let mut begins = [f64::INFINITY; ROWS];
    let mut labels = Vec::with_capacity(wanted.len());
    let mut used = 0;
    for group in wanted.chunk_by(|one, next| next.0 - one.0 < TOGETHER).rev() {
        let mut placed = Vec::with_capacity(group.len());
        for (x, text) in group {
            let text = fit(text, LONGEST);
            let wide = width(&text);
            // At the right edge it stands on the other side.
            let left = x + 4.0 + wide > most && x - 4.0 - wide > least;
            let (begin, end) = if left {
                (x - 4.0 - wide, *x)
            } else {
                (*x, x + 4.0 + wide)
            };
            let row = begins.iter().position(|begins| end + GAP <= *begins);
            if let Some(row) = row {
                begins[row] = begin;
                used = used.max(row + 1);
            }
            placed.push(Label { text, row, left });
        }
        labels.extend(placed.into_iter().rev());
    }
    labels.reverse();
    (labels, used)
}

/// Puts stretches into rows, each into the first that is free where it begins. Gives the row of each, and how many there are.
pub fn pack(extents: impl Iterator<Item = (f64, f64)>) -> (Vec<usize>, usize) {
    let mut ends: Vec<f64> = Vec::new();
    let rows = extents
        .map(|(from, to)| {
            let free = ends.iter().position(|end| *end + GAP <= from);
            let row = free.unwrap_or(ends.len());
            match ends.get_mut(row) {
                Some(end) => *end = to,
                None => ends.push(to),
            }
            row
        })
        .collect();
    (rows, ends.len())
}
