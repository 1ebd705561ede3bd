//! The page of a profile.

use heapdrome_profile::{ProcessProfile, Profile};
use heapdrome_schema::{Bytes, Nanoseconds};
use maud::{Markup, html};

use super::document;
use super::drawn::{Drawn, Packed};
use super::parts::{self, Place};
use crate::ReportError;
use crate::foreign;
use crate::plot::{Histogram, Looks, OverTime, Plot, flame};
use crate::profile::requested::{self, Of};
use crate::profile::{code, facts, notes, tables};
use crate::reproduce;
use crate::table::{self, Column};

/// Script that zooms the flame graph.
const FLAME: &str = include_str!("flame.js");

/// Maximum number of processes that have drawings of their own.
const DRAWN: usize = 6;

/// Makes the page of a profile: one HTML file without references to other files.
///
/// # Errors
/// Currently none. The return type is that of the other exporters.
pub fn profile_page(profile: &Profile) -> Result<Vec<u8>, ReportError> {
    let command = reproduce::for_the_eye(&profile.recording.command);
    let command = match command.as_str() {
        "" => "unknown command",
        known => known,
    };
    let (looks, packed) = (Looks::default(), Packed::default());
    let drawn = Drawn::new(&looks, &packed);
    let place = Place {
        number: 0,
        level: 2,
    };
    let body = html! {
        main {
            h1 { "Profile of " (command) }
            (conclusions(profile))
            (over_time(profile, drawn, place))
            (by_stack(profile, drawn, place))
            (histograms(profile, drawn, place))
            @if profile.processes.len() > 1 {
                (parts::heading(place, "Processes"))
                (one_table("The processes with the highest peaks", &tables::processes(profile)))
            }
            (parts::heading(place, "Figures"))
            (one_table(tables::calls_heading(profile), &tables::functions(profile)))
            (one_table("Rounding up to size classes", &tables::size_classes(profile)))
            (parts::list(place, "Notes", &notes::notes(profile)))
            (parts::heading(place, "Recording"))
            p { (recording(profile)) }
        }
    };
    let title = format!("{command}: heapdrome profile");
    let script = profile.has_stacks().then_some(FLAME);
    Ok(document(&title, &body, script))
}

fn conclusions(profile: &Profile) -> Markup {
    let is_first = |heading: &str| matches!(heading, "Incomplete" | "Sampled" | "Memory");
    let facts = facts::facts(profile);
    html! {
        @for fact in &facts {
            @if is_first(fact.heading) {
                p class="verdict" { b { (fact.heading) } ": " (fact.text) }
            } @else {
                (parts::labelled(fact.heading, &fact.text))
            }
        }
    }
}

fn over_time(profile: &Profile, drawn: Drawn<'_>, place: Place) -> Markup {
    let of = |name: &str, caption: &str, timeline| OverTime {
        name: name.to_owned(),
        caption: caption.to_owned(),
        timeline,
        span: profile.all.span,
    };
    let all = &profile.all.timeline;
    let memory = "Memory over time: the area is what the program had requested and not freed, the line its \
                  anonymous resident memory. Peaks are drawn at the beginning of the interval in which they lie.";
    let calls = match profile.sampling().is_whole() {
        true => "Calls of allocation functions per second.",
        false => "Calls that returned a block per second, as estimated.",
    };
    let plots = [
        of("memory", memory, all).memory(),
        of("blocks", "Live blocks over time.", all).blocks(),
        of("calls", calls, all).calls(),
    ];
    html! {
        (parts::heading(place, "Over time"))
        @for plot in plots.iter().flatten() { (drawn.figure(plot, None)) }
        @for plot in of_processes(profile) { (drawn.figure(&plot, None)) }
    }
}

/// Maximum length of the text of a stack, in characters.
const STACK: usize = 400;

/// Returns the sections on the stacks that requested the blocks.
fn by_stack(profile: &Profile, drawn: Drawn<'_>, place: Place) -> Markup {
    if !profile.has_stacks() {
        return html! {};
    }
    let stacks = code::stacks(profile);
    let caption = "Bytes at the peak by stack. Each function stands below its caller, and its width shows the bytes \
                   requested in it and in the functions that it called. A function that calls itself is drawn \
                   once. Click a function to zoom in, and the first row to show everything. The narrowest \
                   functions are left out.";
    let bytes = stacks
        .iter()
        .map(|one| (&one.names[..], one.of.at_peak.bytes));
    let plot = flame(["flame", "Bytes at the peak by stack"], caption, bytes);
    html! {
        (parts::heading(place, "Requested by"))
        @if let Some(plot) = &plot { (drawn.figure(plot, None)) }
        (one_table("Blocks by the function that requested them",
            &requested::functions(profile, &stacks, STACK)))
        (one_table("Stacks whose live bytes only grow", &requested::growing(profile, STACK)))
        @for of in Of::ALL { (one_table(of.heading(), &requested::stacks(&stacks, of, STACK))) }
    }
}

/// Returns a drawing of the memory of each of the largest processes; empty if the program had only
/// one process.
fn of_processes(profile: &Profile) -> Vec<Plot> {
    let mut processes: Vec<&ProcessProfile> = profile.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.peak.live.bytes));
    if processes.len() < 2 {
        return Vec::new();
    }
    let plot = |process: &&ProcessProfile| {
        let over_time = OverTime {
            name: format!("memory-{}", process.number),
            caption: format!(
                "Memory over time: {}.",
                crate::profile::process_name(process)
            ),
            timeline: &process.timeline,
            span: profile.all.span,
        };
        over_time.memory()
    };
    processes.iter().take(DRAWN).filter_map(plot).collect()
}

fn histograms(profile: &Profile, drawn: Drawn<'_>, place: Place) -> Markup {
    let counts = &profile.all.counts;
    let bytes = |bytes: u64| Bytes(bytes).to_string();
    let sizes = Histogram {
        name: "sizes".to_owned(),
        title: "Blocks by size",
        caption: "Blocks by size. A resized block counts again.".to_owned(),
        quantity: "size",
        digits: &counts.sizes,
    };
    let lifetimes = Histogram {
        name: "lifetimes".to_owned(),
        title: "Freed blocks by lifetime",
        caption: "Freed blocks by lifetime: the time from the call that made a block to the call that freed it."
            .to_owned(),
        quantity: "lifetime",
        digits: &counts.lived_time,
    };
    let in_bytes = Histogram {
        name: "lifetimes-in-bytes".to_owned(),
        title: "Freed blocks by bytes requested meanwhile",
        caption: "Freed blocks by bytes requested meanwhile: the bytes that the process requested during the life of a block."
            .to_owned(),
        quantity: "bytes requested meanwhile",
        digits: &counts.lived_bytes,
    };
    let sizes = sizes.plot(bytes);
    let lifetimes = [
        lifetimes.plot(|time| Nanoseconds(time).to_string()),
        in_bytes.plot(bytes),
    ];
    html! {
        (parts::heading(place, "Sizes"))
        @if let Some(plot) = &sizes { (drawn.figure(plot, None)) }
        (one_table("Blocks by size", &without_bars(tables::sizes(profile, tables::ALL))))
        (parts::heading(place, "Lifetimes"))
        @for plot in lifetimes.iter().flatten() { (drawn.figure(plot, None)) }
        (one_table("Freed blocks by lifetime", &without_bars(tables::lifetimes(profile, tables::ALL))))
        (one_table("Freed blocks by bytes requested meanwhile",
            &without_bars(tables::lifetimes_in_bytes(profile))))
    }
}

/// Returns the columns with headings. Columns without headings contain bars, which a drawing
/// replaces on the page.
fn without_bars(mut columns: Vec<Column>) -> Vec<Column> {
    columns.retain(|column| !column.head.is_empty());
    columns
}

fn one_table(caption: &str, columns: &[Column]) -> Markup {
    html! { @if table::rows(columns) > 0 { (parts::table(caption, columns)) } }
}

/// Returns a sentence on the version of the recorder and the allocators that served malloc.
fn recording(profile: &Profile) -> String {
    let processes = profile
        .processes
        .iter()
        .filter_map(|one| one.process.as_ref());
    let mut served: Vec<String> = processes.map(|one| foreign::name(&one.allocator)).collect();
    served.sort();
    served.dedup();
    served.retain(|name| !name.is_empty());
    let heapdrome = foreign::line(&profile.recording.heapdrome);
    match served.len() {
        0 => format!("Recorded by heapdrome {heapdrome}."),
        _ => format!(
            "Recorded by heapdrome {heapdrome}; malloc was served by {}.",
            crate::words::listed(&served)
        ),
    }
}
