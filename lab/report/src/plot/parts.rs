//! The parts of each entrant's memory: a stacked bar for its peak, and another for its memory after
//! an idle period.

use heapdrome_schema::{Bytes, EntrantResult, MemoryParts};

use super::Plot;
use super::canvas::{self, Anchor, BAND, Label, NAMES, WIDTH};
use super::coordinate::n;
use super::look::Ranking;
use super::node::{Node, element, title};
use super::palette::INK;
use super::scale::Scale;
use crate::foreign;
use crate::memory;

const PLOT: [f64; 2] = [NAMES + 52.0, 555.0];
const TOP: f64 = 74.0;
/// Height of a bar.
const BAR: f64 = 15.0;
/// Height of a row with one bar.
const ROW: f64 = 28.0;
/// Height that each further bar adds to a row.
const MORE: f64 = 20.0;

/// A segment of a bar. Segments differ in lightness, dashes and outline, so that they are
/// distinguishable in any colour and on grey paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Anonymous,
    Huge,
    LazilyFreed,
    File,
    Swapped,
}

const PARTS: [(Part, &str); 5] = [
    (Part::Anonymous, "anonymous"),
    (Part::Huge, "in huge pages"),
    (Part::LazilyFreed, "lazily freed"),
    (Part::File, "files, shared"),
    (Part::Swapped, "swapped out"),
];

impl Part {
    /// Returns the number of bytes of this part. Pages that are both lazily freed and huge count as
    /// lazily freed, because the kernel does not report them separately.
    fn of(self, parts: &MemoryParts) -> u64 {
        let lazily = parts.lazily_freed.0.min(parts.anonymous.0);
        let huge = parts.huge.0.min(parts.anonymous.0 - lazily);
        match self {
            Self::Anonymous => parts.anonymous.0 - lazily - huge,
            Self::Huge => huge,
            Self::LazilyFreed => lazily,
            Self::File => (parts.file + parts.shared).0,
            Self::Swapped => parts.swapped.0,
        }
    }

    /// Draws the segment. The segment must be placed in a group of the entrant's colour.
    fn draw(self, [x, width]: [f64; 2], y: f64, says: &str) -> Node {
        let colour = "currentColor";
        let class = (self == Self::File).then_some("band");
        let bar = element("rect").with_some("class", class);
        let bar = bar.with("x", n(x)).with("y", n(y));
        let bar = bar.with("width", n(width)).with("height", n(BAR));
        let bar = match self {
            Self::Anonymous => bar.with("fill", colour),
            Self::Huge => bar.with("fill", colour).with("fill-opacity", "0.55"),
            Self::LazilyFreed => bar
                .with("fill", colour)
                .with("fill-opacity", "0.12")
                .with("stroke", colour)
                .with("stroke-dasharray", "3 2"),
            Self::File => bar.with("fill", BAND),
            Self::Swapped => bar
                .with("fill", "none")
                .with("stroke", colour)
                .with("stroke-width", "1.5"),
        };
        bar.holding(title(says)).into()
    }
}

struct Bar<'a> {
    name: &'static str,
    parts: &'a MemoryParts,
}

fn bars(entrant: &EntrantResult) -> Vec<Bar<'_>> {
    let most = memory::at_most(entrant).map(|parts| Bar {
        name: "most",
        parts,
    });
    let rest = entrant.after_idle.as_ref().map(|rest| Bar {
        name: "idle",
        parts: &rest.parts,
    });
    most.into_iter().chain(rest).collect()
}

/// Returns the sum of all parts, swapped memory included.
fn whole(parts: &MemoryParts) -> Bytes {
    parts.resident() + parts.swapped
}

/// Returns the plot of all entrants' bars; `None` if no entrant has a bar, or all amounts are zero.
pub(super) fn plot(sheet: &Ranking<'_>, prefix: &str) -> Option<Plot> {
    let entrants = || sheet.rows.iter().map(|row| row.entrant);
    let widest = entrants()
        .flat_map(bars)
        .map(|bar| whole(bar.parts).as_f64())
        .chain(entrants().filter_map(|entrant| memory::requested(sheet, entrant)))
        .fold(0.0, f64::max);
    if !entrants().any(|entrant| !bars(entrant).is_empty()) || widest <= 0.0 {
        return None;
    }
    let scale = Scale::linear([0.0, widest], PLOT);
    let idle = entrants().any(|entrant| entrant.after_idle.is_some());
    let height = ROW + if idle { MORE } else { 0.0 };
    let label = Label {
        name: format!("{prefix}memory-parts"),
        title: "Parts of the memory".to_owned(),
        description: described(sheet),
    };
    let row = |place: usize| {
        let top = TOP + height * place as f64;
        canvas::row(
            place,
            sheet.look(place),
            top,
            height,
            row(sheet, place, &scale),
        )
    };
    let rows = sheet.rows.len();
    let body = Node::from([head(&scale), (0..rows).map(row).collect()]);
    let whole = TOP + height * rows as f64 + 8.0;
    Some(Plot::new(
        label,
        caption(sheet, idle),
        whole,
        Some(TOP),
        body,
    ))
}

/// Returns the caption. It omits absent series.
fn caption(sheet: &Ranking<'_>, idle: bool) -> String {
    let after = if idle { ", and after idling" } else { "" };
    let requested = |row: &crate::sheet::Row<'_>| memory::requested(sheet, row.entrant).is_some();
    let stroke = match sheet.rows.iter().any(requested) {
        true => " The bold stroke is the workload's peak of requested memory.",
        false => "",
    };
    format!("Parts of the process tree's memory at its peak{after}, in an untimed run.{stroke}")
}

fn head(scale: &Scale) -> Node {
    let across = (WIDTH - 24.0) / PARTS.len() as f64;
    let key = |(place, (part, name)): (usize, &(Part, &str))| {
        let x = 12.0 + across * place as f64;
        let name_beside = canvas::faint([x + 24.0, 20.0], Anchor::Start, name);
        Node::from([part.draw([x, 18.0], 8.0, name), name_beside])
    };
    let ticks = ticks(scale);
    let label = |tick: &f64| canvas::faint([scale.at(*tick), 62.0], Anchor::Middle, &told(*tick));
    let places: Vec<f64> = ticks.iter().map(|tick| scale.at(*tick)).collect();
    Node::from([
        PARTS.iter().enumerate().map(key).collect(),
        ticks.iter().map(label).collect(),
        canvas::head_axis(PLOT, TOP - 2.0, &places),
        canvas::text([PLOT[0], 44.0], Anchor::Start, "memory of the process tree"),
        canvas::faint([WIDTH - 4.0, 62.0], Anchor::End, "resident"),
    ])
}

/// Returns ticks at round amounts, in the largest unit that the end of the scale reaches.
fn ticks(scale: &Scale) -> Vec<f64> {
    let units = [1_u64 << 30, 1 << 20, 1 << 10].map(|unit| unit as f64);
    let unit = units.into_iter().find(|unit| scale.end() >= *unit);
    let unit = unit.unwrap_or(1.0);
    let end = scale.end() / unit;
    let in_units = Scale::linear([0.0, end], [0.0, end]).round_ticks(5.0);
    in_units.into_iter().map(|tick| tick * unit).collect()
}

fn told(bytes: f64) -> String {
    if bytes == 0.0 {
        "0".to_owned()
    } else {
        Bytes(bytes.round() as u64).to_string()
    }
}

fn row(sheet: &Ranking<'_>, place: usize, scale: &Scale) -> Node {
    let entrant = sheet.rows[place].entrant;
    let bars = bars(entrant);
    let drawn = |(number, bar): (usize, &Bar<'_>)| {
        let y = 6.0 + MORE * number as f64;
        let resident = bar.parts.resident().to_string();
        let requested = memory::requested(sheet, entrant).filter(|_| number == 0);
        Node::from([
            canvas::faint([PLOT[0] - 6.0, y + 12.0], Anchor::End, bar.name),
            segments(bar.parts, scale, y),
            canvas::faint([WIDTH - 4.0, y + 12.0], Anchor::End, &resident),
            requested.map(|bytes| stroke(bytes, scale, y)).into(),
        ])
    };
    let unwatched = || canvas::faint([PLOT[0] + 6.0, 18.0], Anchor::Start, "not watched");
    Node::from([
        canvas::row_name(&entrant.allocator, 18.0),
        bars.iter().enumerate().map(drawn).collect(),
        bars.is_empty().then(unwatched).into(),
    ])
}

/// Returns the mark at the workload's peak of requested memory.
fn stroke(requested: f64, scale: &Scale, y: f64) -> Node {
    let x = n(scale.at(requested));
    let line = element("line").with("class", "axis");
    let line = line.with("x1", x.clone()).with("x2", x);
    line.with("y1", n(y - 4.0))
        .with("y2", n(y + BAR + 4.0))
        .with("stroke", INK)
        .with("stroke-width", "3")
        .holding(title(&format!("requested: {}", told(requested))))
        .into()
}

fn segments(parts: &MemoryParts, scale: &Scale, y: f64) -> Node {
    let mut before = 0;
    let mut drawn = Vec::new();
    for (part, name) in PARTS {
        let size = part.of(parts);
        let (from, to) = (scale.at(before as f64), scale.at((before + size) as f64));
        if to - from >= 0.1 {
            drawn.push(part.draw([from, to - from], y, &format!("{name}: {}", Bytes(size))));
        }
        before += size;
    }
    Node::Several(drawn)
}

fn described(sheet: &Ranking<'_>) -> String {
    let mut rows = Vec::new();
    for row in &sheet.rows {
        for bar in bars(row.entrant) {
            let known = PARTS.iter().map(|(part, name)| (part.of(bar.parts), name));
            let parts = known
                .filter(|(size, _)| *size > 0)
                .map(|(size, name)| format!("{} {name}", Bytes(size)));
            rows.push(format!(
                "{}, {}: {}",
                foreign::name(&row.entrant.allocator),
                bar.name,
                parts.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    rows.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let parts = MemoryParts {
            anonymous: Bytes(100),
            huge: Bytes(70),
            lazily_freed: Bytes(50),
            file: Bytes(9),
            shared: Bytes(1),
            swapped: Bytes(5),
            ..MemoryParts::default()
        };
        let sizes = PARTS.map(|(part, _)| part.of(&parts));
        assert_eq!(sizes, [0, 50, 50, 10, 5]);
        assert_eq!(sizes.iter().sum::<u64>(), whole(&parts).0);
    }
}
