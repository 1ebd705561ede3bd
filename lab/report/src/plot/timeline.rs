//! Memory over the time of a run, one row for each entrant on common scales.

use std::fmt::Write;

use heapdrome_record::MemorySample;
use maud::{Markup, html};

use super::Plot;
use super::canvas::{self, Anchor, Label, NAMES, WIDTH, n};
use super::measures::Unit;
use super::scale::Scale;
use crate::sheet::Sheet;

const PLOT: [f64; 2] = [NAMES + 62.0, 545.0];
const TOP: f64 = 48.0;
const ROW: f64 = 70.0;
/// What was read; the description of the tree's peak says how.
const WHAT: &str = "anonymous memory of the process tree";

/// The timelines, if any entrant has one.
pub(super) fn plot(sheet: &Sheet<'_>, prefix: &str) -> Option<Plot> {
    let lines = || {
        sheet
            .rows
            .iter()
            .map(|row| row.entrant.memory_timeline.as_slice())
    };
    let longest = lines()
        .flatten()
        .map(|sample| sample.at.as_seconds())
        .fold(0.0, f64::max);
    let highest = lines()
        .flatten()
        .map(|sample| sample.anonymous.as_f64())
        .fold(0.0, f64::max);
    if longest <= 0.0 || highest <= 0.0 {
        return None;
    }
    let across = Scale::linear([0.0, longest], PLOT);
    let up = Scale::linear([0.0, highest], [ROW - 8.0, 10.0]);
    let name = format!("{prefix}memory-timeline");
    let label = Label {
        name: name.clone(),
        title: "Memory over time".to_owned(),
        description: described(sheet),
    };
    let body = html! {
        (head(&across))
        @for (place, row) in sheet.rows.iter().enumerate() {
            @let body = self::row(sheet, place, &row.entrant.memory_timeline, [&across, &up], highest);
            (canvas::row(place, TOP + ROW * place as f64, ROW, &body))
        }
    };
    let height = TOP + ROW * sheet.rows.len() as f64 + 8.0;
    Some(Plot {
        name,
        caption: format!(
            "Memory over time: {WHAT}, in one run that was not timed. All rows have the same scales."
        ),
        drawing: canvas::svg(&label, height, Some(TOP), &body),
    })
}

fn head(across: &Scale) -> Markup {
    html! {
        (canvas::text([PLOT[0], 16.0], Anchor::Start, WHAT))
        @for tick in across.round_ticks(6.0) {
            (canvas::faint([across.at(tick), 36.0], Anchor::Middle, &time(tick)))
            (canvas::axis([across.at(tick), 40.0], [across.at(tick), TOP - 2.0]))
        }
        (canvas::axis([PLOT[0], TOP - 2.0], [PLOT[1], TOP - 2.0]))
        (canvas::faint([PLOT[0] - 14.0, 36.0], Anchor::End, "time"))
        (canvas::faint([WIDTH - 4.0, 36.0], Anchor::End, "highest"))
    }
}

/// A time on the axis.
fn time(seconds: f64) -> String {
    if seconds == 0.0 {
        "0".to_owned()
    } else {
        Unit::Seconds.tell(seconds)
    }
}

fn row(
    sheet: &Sheet<'_>,
    place: usize,
    samples: &[MemorySample],
    [across, up]: [&Scale; 2],
    highest: f64,
) -> Markup {
    let look = sheet.look(place);
    let peak = samples.iter().map(|sample| sample.anonymous).max();
    html! {
        (canvas::row_name(&sheet.rows[place].entrant.allocator, ROW / 2.0 + 4.5))
        (canvas::grid([PLOT[0], up.at(highest)], [PLOT[1], up.at(highest)]))
        (canvas::axis([PLOT[0], up.at(0.0)], [PLOT[1], up.at(0.0)]))
        (canvas::faint([PLOT[0] - 6.0, up.at(highest) + 4.0], Anchor::End, &Unit::Bytes.tell(highest)))
        (canvas::faint([PLOT[0] - 6.0, up.at(0.0) + 4.0], Anchor::End, "0"))
        @match peak {
            Some(peak) => {
                @let path = path(samples, across, up);
                @let ends = ends(samples, across, up);
                path class={ (look.class()) " area" } d={ (path) (ends) } fill=(look.colour())
                    fill-opacity="0.2" {}
                path class={ (look.class()) " line" } d=(path) fill="none" stroke=(look.colour())
                    stroke-width="1.5" {}
                (canvas::faint([WIDTH - 4.0, ROW / 2.0 + 4.0], Anchor::End, &peak.to_string()))
            }
            None => { (canvas::faint([PLOT[0] + 6.0, ROW / 2.0], Anchor::Start, "not watched")) }
        }
    }
}

/// The curve.
fn path(samples: &[MemorySample], across: &Scale, up: &Scale) -> String {
    let mut path = String::new();
    for sample in samples {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let x = n(across.at(sample.at.as_seconds()));
        let _ = write!(path, "{start}{x} {}", n(up.at(sample.anonymous.as_f64())));
    }
    path
}

/// The way back along the axis.
fn ends(samples: &[MemorySample], across: &Scale, up: &Scale) -> String {
    let at = |sample: Option<&MemorySample>| {
        n(across.at(sample.map_or(0.0, |sample| sample.at.as_seconds())))
    };
    let floor = n(up.at(0.0));
    format!(
        "L{} {floor}L{} {floor}Z",
        at(samples.last()),
        at(samples.first())
    )
}

fn described(sheet: &Sheet<'_>) -> String {
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
