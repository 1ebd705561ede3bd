//! Memory over the time of a run. Each entrant has a row; all rows share the scales.

use std::fmt::Write;

use heapdrome_schema::{EntrantResult, MemoryParts};

use super::Plot;
use super::canvas::{self, Anchor, Label, NAMES, WIDTH};
use super::coordinate::n;
use super::look::Ranking;
use super::measures::Unit;
use super::node::{Node, coloured, element, filled, title};
use super::palette;
use super::scale::Scale;
use super::thin::visible;
use crate::memory;

const PLOT: [f64; 2] = [NAMES + 62.0, 545.0];
const TOP: f64 = 48.0;
const ROW: f64 = 70.0;
/// Name of the plotted quantity, for the axis and the caption.
const WHAT: &str = "anonymous memory of the process tree";

/// Time of a reading in seconds, and its amount in bytes.
type Reading = [f64; 2];

/// The series of an entrant.
struct Lines {
    anonymous: Vec<Reading>,
    resident: Vec<Reading>,
    requested: Option<f64>,
    idle: Option<Reading>,
}

impl Lines {
    fn of(sheet: &Ranking<'_>, entrant: &EntrantResult) -> Self {
        let anonymous = entrant.memory_timeline.iter();
        let parts = entrant.memory_parts.iter();
        let resident = |parts: &MemoryParts| [parts.at.as_seconds(), parts.resident().as_f64()];
        Self {
            anonymous: anonymous
                .map(|sample| [sample.at.as_seconds(), sample.anonymous.as_f64()])
                .collect(),
            resident: parts.map(resident).collect(),
            requested: memory::requested(sheet, entrant),
            idle: entrant
                .after_idle
                .map(|rest| [rest.parts.at.as_seconds(), rest.parts.anonymous.as_f64()]),
        }
    }

    fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.anonymous
            .iter()
            .chain(&self.resident)
            .chain(&self.idle)
    }
}

/// Returns the timelines; `None` if no reading is above 0, or no time passed.
pub(super) fn plot(sheet: &Ranking<'_>, prefix: &str) -> Option<Plot> {
    let all: Vec<Lines> = sheet
        .rows
        .iter()
        .map(|row| Lines::of(sheet, row.entrant))
        .collect();
    let readings = || all.iter().flat_map(Lines::readings);
    let requested = all.iter().filter_map(|lines| lines.requested);
    let longest = readings().map(|[at, _]| *at).fold(0.0, f64::max);
    let highest = readings().map(|[_, bytes]| *bytes);
    let highest = highest.chain(requested).fold(0.0, f64::max);
    if longest <= 0.0 || !readings().any(|[_, bytes]| *bytes > 0.0) {
        return None;
    }
    let across = Scale::linear([0.0, longest], PLOT);
    let up = Scale::linear([0.0, highest], [ROW - 8.0, 10.0]);
    let label = Label {
        name: format!("{prefix}memory-timeline"),
        title: "Memory over time".to_owned(),
        description: described(sheet),
    };
    let row = |(place, lines): (usize, &Lines)| {
        let body = row(sheet, place, lines, [&across, &up]);
        canvas::row(
            place,
            sheet.look(place),
            TOP + ROW * place as f64,
            ROW,
            body,
        )
    };
    let body = Node::from([
        head(&across),
        behind(all.len(), &up),
        all.iter().enumerate().map(row).collect(),
    ]);
    let height = TOP + ROW * sheet.rows.len() as f64 + 8.0;
    Some(Plot::new(label, caption(&all), height, Some(TOP), body))
}

/// Returns the caption. It omits absent series.
fn caption(all: &[Lines]) -> String {
    let mut told = format!("Memory over time: the area is {WHAT}, in one untimed run.");
    let more = [
        (
            all.iter().any(|lines| !lines.resident.is_empty()),
            " The dotted line is all resident memory, including files.",
        ),
        (
            all.iter().any(|lines| lines.requested.is_some()),
            " The dashed line is the workload's peak of requested memory.",
        ),
        (
            all.iter().any(|lines| lines.idle.is_some()),
            " The ring is the memory after idling.",
        ),
    ];
    for (_, sentence) in more.iter().filter(|(there, _)| *there) {
        told.push_str(sentence);
    }
    told + " All rows have the same scales."
}

fn head(across: &Scale) -> Node {
    let ticks = across.round_ticks(6.0);
    let places: Vec<f64> = ticks.iter().map(|tick| across.at(*tick)).collect();
    let label = |tick: &f64| canvas::faint([across.at(*tick), 36.0], Anchor::Middle, &time(*tick));
    Node::from([
        canvas::text([PLOT[0], 16.0], Anchor::Start, WHAT),
        ticks.iter().map(label).collect(),
        canvas::head_axis(PLOT, TOP - 2.0, &places),
        canvas::faint([PLOT[0] - 14.0, 36.0], Anchor::End, "time"),
        canvas::faint([WIDTH - 4.0, 36.0], Anchor::End, "highest"),
    ])
}

fn time(seconds: f64) -> String {
    if seconds == 0.0 {
        "0".to_owned()
    } else {
        Unit::Seconds.tell(seconds)
    }
}

/// Returns the background of each row: the axis, a line at the highest value of all rows, and the
/// labels of both.
fn behind(rows: usize, up: &Scale) -> Node {
    let tops = || (0..rows).map(|place| TOP + ROW * place as f64);
    let highest = up.end();
    let lines = |value: f64| -> Vec<canvas::Line> {
        let places = tops().map(|top| top + up.at(value));
        places.map(|y| [[PLOT[0], y], [PLOT[1], y]]).collect()
    };
    let told = tops().flat_map(|top| {
        [
            (top, highest, Unit::Bytes.tell(highest)),
            (top, 0.0, "0".to_owned()),
        ]
    });
    let told: Vec<_> = told
        .map(|(top, value, told)| ([PLOT[0] - 6.0, top + up.at(value) + 4.0], told))
        .collect();
    Node::from([
        canvas::grid(&lines(highest)),
        canvas::axis(&lines(0.0)),
        canvas::faint_all(Anchor::End, &told),
    ])
}

fn row(sheet: &Ranking<'_>, place: usize, lines: &Lines, [across, up]: [&Scale; 2]) -> Node {
    let peak = lines.anonymous.iter().map(|[_, bytes]| *bytes);
    let peak = peak.reduce(f64::max);
    let name = canvas::row_name(&sheet.rows[place].entrant.allocator, ROW / 2.0 + 4.5);
    let Some(peak) = peak else {
        let unwatched = canvas::faint([PLOT[0] + 6.0, ROW / 2.0], Anchor::Start, "not watched");
        return Node::from([name, unwatched]);
    };
    let area = filled(area(&lines.anonymous, across, up))
        .with("fill-opacity", "0.2")
        .with("stroke", "currentColor")
        .with("stroke-width", "1.5");
    let highest = Unit::Bytes.tell(peak);
    Node::from([
        name,
        area.into(),
        beside(lines, [across, up]),
        canvas::faint([WIDTH - 4.0, ROW / 2.0 + 4.0], Anchor::End, &highest),
    ])
}

/// Returns the marks of all series except the anonymous memory: two lines and a ring.
fn beside(lines: &Lines, [across, up]: [&Scale; 2]) -> Node {
    let resident = (!lines.resident.is_empty()).then(|| {
        let line = coloured(curve(&places(&lines.resident, across, up)));
        line.with("stroke-dasharray", "1 3").into()
    });
    let says = |what: &str, bytes: f64| title(&format!("{what}: {}", Unit::Bytes.tell(bytes)));
    let requested = lines.requested.map(|bytes| {
        let line = element("path").with("class", "axis").with("fill", "none");
        line.with("d", canvas::strokes(&[PLOT.map(|x| [x, up.at(bytes)])]))
            .with("stroke", palette::INK)
            .with("stroke-dasharray", "6 4")
            .holding(says("requested", bytes))
            .into()
    });
    let idle = lines.idle.map(|[at, bytes]| {
        let ring = element("circle").with("cx", n(across.at(at)));
        let ring = ring.with("cy", n(up.at(bytes))).with("r", "4");
        ring.with("fill", "none")
            .with("stroke", "currentColor")
            .with("stroke-width", "2")
            .holding(says("after idling", bytes))
            .into()
    });
    Node::from([resident.into(), requested.into(), idle.into()])
}

/// Returns the positions of readings on paper. Omits readings that make no visible difference.
fn places(readings: &[Reading], across: &Scale, up: &Scale) -> Vec<[f64; 2]> {
    let at = readings.iter();
    let at: Vec<_> = at
        .map(|[at, bytes]| [across.at(*at), up.at(*bytes)])
        .collect();
    visible(&at)
}

/// Returns the curve through these positions.
fn curve(places: &[[f64; 2]]) -> String {
    let mut path = String::new();
    for [x, y] in places {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{start}{} {}", n(*x), n(*y));
    }
    path
}

/// Returns the area below the curve. Its outline has no line along the axis.
fn area(readings: &[Reading], across: &Scale, up: &Scale) -> String {
    let mut places = places(readings, across, up);
    let feet = [places.first(), places.last()].map(|end| end.map(|[x, _]| [*x, up.at(0.0)]));
    if let [Some(first), Some(last)] = feet {
        places.insert(0, first);
        places.push(last);
    }
    curve(&places)
}

fn described(sheet: &Ranking<'_>) -> String {
    let rows = sheet.rows.iter().filter_map(|row| {
        let samples = &row.entrant.memory_timeline;
        let highest = samples.iter().max_by_key(|sample| sample.anonymous)?;
        let last = samples.last()?;
        Some(format!(
            "{}: highest {} at {}, {} at the end after {}",
            crate::foreign::name(&row.entrant.allocator),
            highest.anonymous,
            highest.at,
            last.anonymous,
            last.at,
        ))
    });
    rows.collect::<Vec<_>>().join("; ")
}
