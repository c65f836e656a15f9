//! Draws a [`Picture`] as SVG that stands in a page and takes its colours from the page's style.
//!
//! Nothing is drawn over a label. Labels hang below their lane's bar in rows, the rightmost in the first row, so that
//! the line from a mark to its label crosses no other label. What has no room keeps its mark, which tells all on pointing.

mod axis;
mod rows;

use std::fmt::Write as _;

use crate::check::picture::{Bar, Lane, LaneOf, Mark, MarkKind, Picture, Stretch};
use crate::report::text::visible;

use axis::{Axis, ms};
use rows::{Label, place};

/// Width of a drawing, in its own units, which are pixels at full size.
pub const WIDTH: f64 = 1080.0;
/// Where time begins: left of it stand the lanes' names.
const LEFT: f64 = 176.0;
/// Where time ends: right of it is room for the last labels.
const RIGHT: f64 = WIDTH - 84.0;
/// Height of the axis above the lanes.
const HEAD: f64 = 30.0;
/// Height of a bar.
const BAR: f64 = 12.0;
/// Height of a row of labels.
const ROW: f64 = 14.0;
/// Room above and below what is in a lane.
const PAD: f64 = 7.0;

/// A lane with where it lies.
struct Place<'p> {
    lane: &'p Lane,
    top: f64,
    height: f64,
    /// Middle of the bar.
    middle: f64,
    /// Marks with their labels, by time.
    marks: Vec<(&'p Mark, Label)>,
    /// Calls with the row of each.
    calls: Vec<(&'p Stretch, usize)>,
}

/// The picture as an `svg` element. `id` is unique in the page; it names the title for those who do not see.
pub fn draw(picture: &Picture, id: &str) -> String {
    let axis = Axis::of(picture, LEFT, RIGHT);
    let mut y = HEAD;
    let mut places = Vec::new();
    for lane in &picture.lanes {
        let place = lay_out(lane, &axis, y);
        y += place.height;
        places.push(place);
    }
    let height = y + 4.0;
    let mut svg = Svg::default();
    let title = summary(picture);
    svg.put(format_args!(
        r#"<svg class="picture" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-labelledby="{id}"><title id="{id}">{}</title>"#,
        escape(&title)
    ));
    ground(&mut svg, picture, &axis, &places, height);
    for place in &places {
        arrows(&mut svg, &axis, &places, place);
    }
    for place in &places {
        draw_lane(&mut svg, &axis, place);
    }
    svg.put(format_args!("</svg>"));
    svg.0
}

/// Collects text; writing to it cannot fail.
#[derive(Default)]
struct Svg(String);

impl Svg {
    fn put(&mut self, what: std::fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(what);
    }
}

/// A text for an element or an attribute.
pub fn escape(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

fn summary(picture: &Picture) -> String {
    let processes = picture.lanes.iter().filter(|lane| lane.bar.is_some());
    let survivors: Vec<&str> = picture
        .lanes
        .iter()
        .filter(|lane| lane.bar.as_ref().is_some_and(|bar| bar.survives))
        .map(|lane| lane.name.as_str())
        .collect();
    let survivors = if survivors.is_empty() {
        String::new()
    } else {
        format!("; alive at the end: {}", survivors.join(", "))
    };
    format!(
        "Timeline of {}: {} processes{survivors}",
        ms(picture.end_ns),
        processes.count()
    )
}

fn lay_out<'p>(lane: &'p Lane, axis: &Axis, top: f64) -> Place<'p> {
    let mut y = top + PAD;
    let mut calls = Vec::new();
    if !lane.calls.is_empty() {
        // A call's name stands in its stretch, or behind it when it is short.
        let extents = lane.calls.iter().map(|call| {
            let from = axis.x(call.from_ns);
            let to = call.to_ns.map_or(RIGHT, |to| axis.x(to));
            (from, to.max(from + rows::width(&call.label) + 10.0))
        });
        let (rows, count) = rows::pack(extents);
        calls = lane.calls.iter().zip(rows).collect();
        y += count as f64 * (ROW + 2.0);
    }
    // Where nothing but calls stands, the name stands beside the first.
    let only_calls = lane.bar.is_none() && lane.marks.is_empty() && !lane.calls.is_empty();
    let middle = if only_calls {
        top + PAD + ROW / 2.0
    } else {
        y += BAR;
        y - BAR / 2.0
    };
    let mut sorted: Vec<&Mark> = lane.marks.iter().collect();
    sorted.sort_by_key(|mark| mark.at_ns);
    let wanted: Vec<(f64, &str)> = sorted
        .iter()
        .map(|mark| (axis.x(mark.at_ns), mark.label.as_str()))
        .collect();
    let (labels, rows) = place(&wanted, LEFT, WIDTH - 4.0);
    y += rows as f64 * ROW;
    Place {
        lane,
        top,
        height: y + PAD - top,
        middle,
        marks: sorted.into_iter().zip(labels).collect(),
        calls,
    }
}

/// What lies below everything: lanes, stalls, the axis and its breaks.
fn ground(svg: &mut Svg, picture: &Picture, axis: &Axis, places: &[Place<'_>], height: f64) {
    for place in places {
        let top = place.top;
        svg.put(format_args!(
            r#"<path class="rule" d="M0 {top:.1}H{WIDTH}"/>"#
        ));
    }
    for stall in &picture.stalls {
        let (from, to) = (axis.x(stall.from_ns), axis.x(stall.to_ns));
        let width = (to - from).max(2.0);
        let tall = height - HEAD;
        svg.put(format_args!(
            r#"<rect class="stall" x="{from:.1}" y="{HEAD}" width="{width:.1}" height="{tall:.1}"><title>the machine stalled for {}</title></rect>"#,
            ms(stall.to_ns - stall.from_ns)
        ));
    }
    for (x, label) in axis.ticks() {
        svg.put(format_args!(
            r#"<path class="grid" d="M{x:.1} {HEAD}V{height:.1}"/><text class="tick" x="{x:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#,
            HEAD - 10.0
        ));
    }
    for gap in axis.breaks() {
        let (x, width) = (gap.x, gap.width);
        let (top, tall) = (HEAD - 4.0, height - HEAD + 4.0);
        let middle = x + width / 2.0;
        svg.put(format_args!(
            r#"<rect class="break" x="{x:.1}" y="{top}" width="{width:.1}" height="{tall:.1}"><title>nothing happened for {skipped}</title></rect><text class="skip" x="{middle:.1}" y="{:.1}" text-anchor="middle">{skipped}</text>"#,
            HEAD - 10.0,
            skipped = ms(gap.ns)
        ));
    }
}

/// Lines from where a mark came from, such as the sender of a signal.
fn arrows(svg: &mut Svg, axis: &Axis, places: &[Place<'_>], to: &Place<'_>) {
    for (mark, _) in &to.marks {
        let Some(from) = mark.from.and_then(|from| places.get(from)) else {
            continue;
        };
        let x = axis.x(mark.at_ns);
        svg.put(format_args!(
            r#"<path class="from {}" d="M{x:.1} {:.1}V{:.1}"/>"#,
            class(mark.kind),
            from.middle,
            to.middle
        ));
    }
}

fn draw_lane(svg: &mut Svg, axis: &Axis, place: &Place<'_>) {
    name(svg, place);
    for (call, row) in &place.calls {
        draw_call(svg, axis, place, call, *row);
    }
    if let Some(bar) = &place.lane.bar {
        draw_bar(svg, axis, place, bar);
    } else if !place.marks.is_empty() {
        let middle = place.middle;
        svg.put(format_args!(
            r#"<path class="thread" d="M{LEFT} {middle:.1}H{RIGHT}"/>"#
        ));
    }
    for (mark, label) in &place.marks {
        draw_mark(svg, axis.x(mark.at_ns), place, mark, label);
    }
}

fn name(svg: &mut Svg, place: &Place<'_>) {
    let lane = place.lane;
    let indent = f64::from(lane.depth.min(5)) * 12.0;
    let pid = lane.pid.map_or(String::new(), |pid| format!("{pid}"));
    let room = LEFT - 22.0 - indent - rows::width(&pid);
    // Names are a little larger and bold.
    let shown = rows::fit(&lane.name, room / 1.2);
    let baseline = place.middle + 4.0;
    let whole = match lane.of {
        LaneOf::Runner => "the runner: the steps of the scenario".to_owned(),
        LaneOf::Claims => "the claims: what the subject said".to_owned(),
        LaneOf::Subject => format!("subject {}, process {pid}", lane.name),
        LaneOf::Child => format!("child {}, process {pid}", lane.name),
        LaneOf::Descendant => format!("descendant {}, process {pid}", lane.name),
        LaneOf::Other => format!("process {pid}, {}, seen by the kernel alone", lane.name),
    };
    svg.put(format_args!(
        r#"<g><title>{}</title><text class="name" x="{:.1}" y="{baseline:.1}">{}</text><text class="pid" x="{:.1}" y="{baseline:.1}" text-anchor="end">{pid}</text></g>"#,
        escape(&whole),
        4.0 + indent,
        escape(&shown),
        LEFT - 12.0
    ));
}

fn draw_call(svg: &mut Svg, axis: &Axis, place: &Place<'_>, call: &Stretch, row: usize) {
    let from = axis.x(call.from_ns);
    let open = call.to_ns.is_none();
    let to = call.to_ns.map_or(RIGHT, |to| axis.x(to));
    let width = (to - from).max(2.0);
    let y = place.top + PAD + row as f64 * (ROW + 2.0);
    let class = if open { "call open" } else { "call" };
    let label = rows::fit(&call.label, 200.0);
    let inside = rows::width(&label) + 10.0 <= width;
    let (x, text) = if inside {
        (from + 5.0, "calltext")
    } else {
        (to.max(from + 2.0) + 5.0, "label")
    };
    let times = match call.to_ns {
        Some(to) => format!(
            "{} to {}, {}",
            ms(call.from_ns),
            ms(to),
            ms(to - call.from_ns)
        ),
        None => format!("since {}", ms(call.from_ns)),
    };
    svg.put(format_args!(
        r#"<g><title>{}, {times}</title><rect class="{class}" x="{from:.1}" y="{y:.1}" width="{width:.1}" height="{ROW}" rx="3"/><text class="{text}" x="{x:.1}" y="{:.1}">{}</text></g>"#,
        escape(&call.text),
        y + 10.5,
        escape(&label)
    ));
}

fn draw_bar(svg: &mut Svg, axis: &Axis, place: &Place<'_>, bar: &Bar) {
    let from = axis.x(bar.from_ns);
    // What is still alive runs out of the picture.
    let to = if bar.survives {
        WIDTH
    } else {
        axis.x(bar.to_ns)
    };
    let width = (to - from).max(2.0);
    let y = place.middle - BAR / 2.0;
    let class = match place.lane.of {
        _ if bar.survives => "bar survives",
        LaneOf::Subject => "bar subject",
        LaneOf::Child => "bar child",
        LaneOf::Descendant => "bar descendant",
        LaneOf::Runner | LaneOf::Claims | LaneOf::Other => "bar other",
    };
    let ended = match (&bar.ended, bar.survives) {
        (_, true) => ", alive at the end".to_owned(),
        (Some(how), false) => format!(", {how}"),
        (None, false) => String::new(),
    };
    svg.put(format_args!(
        r#"<rect class="{class}" x="{from:.1}" y="{y:.1}" width="{width:.1}" height="{BAR}" rx="3"><title>{}: {} to {}{}</title></rect>"#,
        escape(&place.lane.name),
        ms(bar.from_ns),
        ms(bar.to_ns),
        escape(&ended)
    ));
    if bar.survives {
        svg.put(format_args!(
            r#"<text class="alive" x="{:.1}" y="{:.1}" text-anchor="end">still alive</text>"#,
            WIDTH - 6.0,
            place.middle + 3.8
        ));
    }
}

fn class(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Step => "step",
        MarkKind::Record => "record",
        MarkKind::Signal => "signal",
        MarkKind::Pipe => "pipe",
        MarkKind::End => "end",
        MarkKind::Wrong => "wrong",
    }
}

fn draw_mark(svg: &mut Svg, x: f64, place: &Place<'_>, mark: &Mark, label: &Label) {
    let y = place.middle;
    let class = class(mark.kind);
    svg.put(format_args!(
        r#"<g class="mark {class}"><title>{}, {}</title>"#,
        escape(&mark.text),
        ms(mark.at_ns)
    ));
    if let Some(row) = label.row {
        let baseline = y + BAR / 2.0 + row as f64 * ROW + 11.0;
        let (at, anchor) = if label.left {
            (x - 4.0, "end")
        } else {
            (x + 4.0, "start")
        };
        svg.put(format_args!(
            r#"<path class="lead" d="M{x:.1} {y:.1}V{:.1}"/><text class="label" x="{at:.1}" y="{baseline:.1}" text-anchor="{anchor}">{}</text>"#,
            baseline + 1.0,
            escape(&label.text)
        ));
    }
    // A shape for each sort, so that none is known by its colour alone.
    let shape = match mark.kind {
        MarkKind::Step => format!("M{x:.1} {:.1}v12", y - 6.0),
        MarkKind::Record => format!("M{:.1} {y:.1}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", x - 3.0),
        MarkKind::Signal => format!("M{:.1} {:.1}h9l-4.5 9z", x - 4.5, y - 5.0),
        MarkKind::Pipe => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        MarkKind::End => format!("M{x:.1} {:.1}v14m-4 -7h4", y - 7.0),
        MarkKind::Wrong => format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, y - 4.0),
    };
    svg.put(format_args!(
        r#"<path class="hit" d="M{:.1} {:.1}h12v14h-12z"/><path class="glyph" d="{shape}"/></g>"#,
        x - 6.0,
        y - 7.0
    ));
}

#[cfg(test)]
mod tests;
