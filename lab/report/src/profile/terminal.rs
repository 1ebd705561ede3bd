//! A profile on the terminal: the conclusions first.

use heapdrome_profile::{Level, Point, Profile};
use heapdrome_schema::{Bytes, MemorySample};

use super::facts::{self, facts, since_start};
use super::requested::{self, Of};
use super::{code, notes, tables};
use crate::foreign;
use crate::reproduce;
use crate::sparkline::Scales;
use crate::table::{self, Column};
use crate::terminal::{Page, Terminal};
use crate::{Exporter, ReportError};

/// Maximum number of steps of a histogram.
const STEPS: usize = 10;

/// Maximum width of a line of bars, in characters.
const SPARKLINE: usize = 60;

impl Exporter<Profile> for Terminal {
    fn export(&self, profile: &Profile) -> Result<Vec<u8>, ReportError> {
        let mut page = Page::new(*self);
        title(&mut page, profile);
        for fact in facts(profile) {
            page.fact(fact.heading, &fact.text);
        }
        over_time(&mut page, profile);
        by_stack(&mut page, profile);
        let sizes = match profile.processes.len() {
            0 | 1 => "Blocks by size",
            _ => "Blocks by size; the peak is that of the largest process",
        };
        let sections = [
            (sizes, tables::sizes(profile, STEPS)),
            (
                "Freed blocks by lifetime",
                tables::lifetimes(profile, STEPS),
            ),
            (tables::calls_heading(profile), tables::functions(profile)),
            ("Rounding up to size classes", tables::size_classes(profile)),
        ];
        let has_calls = profile.all.counts.calls() > 0;
        for (heading, columns) in sections.iter().filter(|_| has_calls) {
            section(&mut page, heading, columns);
        }
        if profile.processes.len() > 1 {
            section(
                &mut page,
                "Processes, the largest first",
                &tables::processes(profile),
            );
        }
        page.list("Notes", notes::notes(profile));
        Ok(page.text.into_bytes())
    }
}

fn title(page: &mut Page, profile: &Profile) {
    let time = heapdrome_schema::Nanoseconds(facts::duration(profile));
    let state = format!("profile of {time}");
    let command = reproduce::for_the_eye(&profile.recording.command);
    let command = match command.as_str() {
        "" => "unknown command".to_owned(),
        _ => foreign::shorten(&command, page.width.saturating_sub(state.len() + 2)),
    };
    let command = page.paint.strong(&command);
    page.line(&format!("{command}, {state}"));
    page.text.push('\n');
}

/// Widths of a column of functions or stacks, in the order in which they are tried.
const WIDTHS: [usize; 5] = [100, 70, 50, 34, 22];

/// Shows the functions and stacks that requested the blocks.
fn by_stack(page: &mut Page, profile: &Profile) {
    if !profile.has_stacks() {
        return;
    }
    let stacks = code::stacks(profile);
    let functions = |width: usize| requested::functions(profile, &stacks, width.min(40));
    fitting(
        page,
        "Blocks by the function that requested them",
        &functions,
    );
    let growing = |width| requested::growing(profile, width);
    fitting(page, "Stacks whose live bytes only grow", &growing);
    for of in Of::ALL {
        let columns = |width| requested::stacks(&stacks, of, width);
        fitting(page, of.heading(), &columns);
    }
}

/// Shows a table whose texts are as wide as the terminal allows.
fn fitting(page: &mut Page, heading: &str, columns: &dyn Fn(usize) -> Vec<Column>) {
    let choices = WIDTHS.map(columns);
    if table::rows(&choices[0]) == 0 {
        return;
    }
    page.heading(heading);
    let (_, lines) = table::first_that_fits(choices.into_iter(), page.width, page.paint);
    lines.iter().for_each(|line| page.line(line));
}

fn section(page: &mut Page, heading: &str, columns: &[Column]) {
    if table::rows(columns) == 0 {
        return;
    }
    page.heading(heading);
    // If the terminal is too narrow for the table, omit the bars.
    let narrow: Vec<Column> = columns
        .iter()
        .filter(|column| !column.head.is_empty())
        .cloned()
        .collect();
    let choices = [columns.to_vec(), narrow];
    let (_, lines) = table::first_that_fits(choices.into_iter(), page.width, page.paint);
    lines.iter().for_each(|line| page.line(line));
}

/// Shows a line of bars for live memory and one for resident memory, on the same scale.
fn over_time(page: &mut Page, profile: &Profile) {
    let live = samples(profile, |point| Some(point.bytes));
    let resident = samples(profile, |point| point.resident);
    let both = [&live[..], &resident[..]];
    let width = SPARKLINE.min(page.width.saturating_sub(24));
    let Some(scales) = Scales::of(both.into_iter(), width) else {
        return;
    };
    page.heading("Memory over time");
    for (name, samples) in [("live", &live), ("resident", &resident)] {
        let most = samples.iter().map(|sample| sample.anonymous).max();
        let Some(most) = most.filter(|most| *most > Bytes(0)) else {
            continue;
        };
        let line = scales.line(samples);
        page.line(&format!("{name:>8}  {line:<width$}  {most}"));
    }
}

/// Returns two samples for each point: its maximum at its beginning, and its last amount at its
/// end.
fn samples(profile: &Profile, of: fn(&Point) -> Option<Level>) -> Vec<MemorySample> {
    let timeline = &profile.all.timeline;
    let sample = |time: u64, bytes: u64| MemorySample {
        at: since_start(profile, time),
        anonymous: Bytes(bytes),
    };
    let points = timeline.points.iter();
    let known = points.filter_map(|point| Some((point.time, of(point)?)));
    known
        .flat_map(|(time, level)| {
            let end = (time + (timeline.width - 1)).min(profile.all.span[1]);
            [sample(time, level.most), sample(end, level.last)]
        })
        .collect()
}
