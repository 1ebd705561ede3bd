//! A single race: its verdict, its evidence, and the command that repeats it.

use heapdrome_schema::{EntrantResult, RaceResult, Role};
use maud::{Markup, html};

use super::drawn::Drawn;
use super::parts::{self, Place};
use crate::conclusion::{Conclusion, others};
use crate::entrant::settings;
use crate::foreign;
use crate::grid::{self, Extent};
use crate::memory;
use crate::plot::{self, Measure, Plot, measures};
use crate::prose;
use crate::reproduce;
use crate::sheet::{Sheet, why_out};
use crate::table::Column;
use crate::terminal::FIGURES;
use crate::words;

/// Returns the heading with the workload or the command of the race.
pub(super) fn heading(result: &RaceResult) -> String {
    let of = match &result.options.workload {
        Some(workload) => foreign::line(workload),
        None => reproduce::for_the_eye(&result.command),
    };
    format!("Allocators raced: {}", foreign::shorten(&of, 120))
}

/// Returns the complete section of a race. `prefix` makes the names of the section's drawings
/// unique in the page.
pub(super) fn section(result: &RaceResult, drawn: Drawn<'_>, place: Place, prefix: &str) -> Markup {
    html! {
        section id={ "result-" (place.number) } data-race {
            (parts::heading(place, &heading(result)))
            (body(result, drawn, place.below(), prefix))
        }
    }
}

/// Returns a race's section without its heading.
pub(super) fn body(result: &RaceResult, drawn: Drawn<'_>, place: Place, prefix: &str) -> Markup {
    let sheet = Sheet::new(result);
    let conclusion = Conclusion::drawn(&sheet);
    let known = measures(&sheet);
    let plots = plot::of_race(result, prefix, drawn.looks);
    let views = Views {
        drawn,
        plots: &plots,
        prefix,
    };
    html! {
        p class="verdict" { (conclusion) }
        @if let Some(reason) = conclusion.reason(&sheet) { (parts::labelled("Why", &format!("{reason}."))) }
        p { (summary(result)) }
        (parts::list(place.below(), "Others", &others(&sheet)))
        @if !sheet.rows.is_empty() {
            @let keys = keys(&sheet, &known);
            (controls(&sheet, &known, prefix, &keys))
            (ranking(&sheet, &known, views, place))
            (samples(&known, views, place))
            (memory_section(&sheet, views, place))
            (time_against_memory(views, place))
        }
        (not_counted(&sheet, place))
        (allocators(&sheet, place))
        (circumstances(&sheet, place))
        (parts::heading(place, "Run it again"))
        (parts::command(&reproduce::command_line(result)))
    }
}

/// Formats the summary, such as `12 rounds. Noise floor: ...`.
fn summary(result: &RaceResult) -> String {
    let rounds = words::count(u64::from(result.rounds), "round");
    format!("{rounds}. Noise floor: {}", prose::noise_floor(result))
}

/// Returns the controls for the metric, the order, and the visible entrants. `keys` are the
/// entrants' sort keys.
fn controls(sheet: &Sheet<'_>, known: &[Measure], prefix: &str, keys: &[String]) -> Markup {
    html! {
        div class="controls" role="group" aria-label="View" {
            label { "Metric " select autocomplete="off" data-control="metric" {
                @for measure in known { option value=(measure.id) { (measure.title) } }
            } }
            label { "Sort by " select autocomplete="off" data-control="sort" {
                @for measure in known { option value=(measure.id) { (measure.title) } }
                option value="name" { "name" }
            } }
            fieldset {
                legend { "Show" }
                @for (place, row) in sheet.rows.iter().enumerate() {
                    label for={ (prefix) "show-" (place) } {
                        input type="checkbox" id={ (prefix) "show-" (place) } checked autocomplete="off"
                            data-control="show" data-entrant=(place) data-keys=[keys.get(place)];
                        " " (foreign::name(&row.entrant.allocator))
                    }
                }
            }
        }
        p class="said" role="status" {}
    }
}

/// The drawings of a race.
#[derive(Clone, Copy)]
struct Views<'a> {
    drawn: Drawn<'a>,
    plots: &'a [Plot],
    /// Prefix of the names of the drawings.
    prefix: &'a str,
}

impl Views<'_> {
    /// Returns the drawing of this name; `None` if there is none. For `panel`, see
    /// [`Drawn::figure`].
    fn figure(self, name: &str, panel: Option<&str>) -> Option<Markup> {
        let is_it = |plot: &&Plot| plot.name.strip_prefix(self.prefix) == Some(name);
        let plot = self.plots.iter().find(is_it)?;
        Some(self.drawn.figure(plot, panel))
    }
}

fn ranking(sheet: &Sheet<'_>, known: &[Measure], views: Views<'_>, place: Place) -> Markup {
    let (names, figures) = grid::figures(sheet, usize::MAX);
    let figures: Vec<_> = std::iter::once(names).chain(figures).collect();
    html! {
        (parts::heading(place, "Ranking"))
        @for measure in known {
            @if let Some(figure) = views.figure(&format!("ranking-{}", measure.id), Some(&measure.id)) {
                (figure)
            }
        }
        (parts::ranking("Ranking", &grid::main_table(sheet, Extent::WHOLE)))
        @if figures.len() > 1 { (parts::ranking(FIGURES, &figures)) }
        @for metric in sheet.metrics() {
            (parts::ranking(&grid::metric_heading(sheet, &metric),
                            &grid::metric_table(sheet, &metric, usize::MAX)))
        }
        (parts::list(place.below(), "Comparisons in full", &prose::in_full(sheet, Extent::WHOLE)))
        @if !sheet.notes.is_empty() {
            (parts::heading(place.below(), "Notes"))
            ol { @for note in &sheet.notes { li { (note) } } }
            @for more in grid::more_marks(sheet) { p { (more) } }
        }
    }
}

/// Returns the sort keys of each row, such as `wall:0.930000 memory:1.200000`. Smaller keys are
/// better.
fn keys(sheet: &Sheet<'_>, known: &[Measure]) -> Vec<String> {
    let key = |place: usize, measure: &Measure| {
        let sorted = measure.sort_key(sheet, place)?;
        Some(format!("{}:{sorted:.6}", measure.id))
    };
    let keys = |place| {
        let parts = known.iter().filter_map(|measure| key(place, measure));
        parts.collect::<Vec<_>>().join(" ")
    };
    (0..sheet.rows.len()).map(keys).collect()
}

fn samples(known: &[Measure], views: Views<'_>, place: Place) -> Markup {
    let figure =
        |measure: &Measure| views.figure(&format!("samples-{}", measure.id), Some(&measure.id));
    let found: Vec<Markup> = known.iter().filter_map(figure).collect();
    html! {
        @if !found.is_empty() {
            (parts::heading(place, "Every sample"))
            @for figure in found { (figure) }
        }
    }
}

/// Returns the section on the parts of the memory and its change over time.
fn memory_section(sheet: &Sheet<'_>, views: Views<'_>, place: Place) -> Markup {
    let figures: Vec<Markup> = ["memory-parts", "memory-timeline"]
        .into_iter()
        .filter_map(|name| views.figure(name, None))
        .collect();
    let (names, columns) = memory::table(sheet, usize::MAX, 0);
    let columns: Vec<_> = std::iter::once(names).chain(columns).collect();
    html! {
        @if columns.len() > 1 || !figures.is_empty() {
            (parts::heading(place, "Memory"))
            @for figure in figures { (figure) }
            @if columns.len() > 1 { (parts::ranking(memory::HEADING, &columns)) }
            (parts::list(place.below(), "How to read it", &memory::remarks(sheet)))
        }
    }
}

fn time_against_memory(views: Views<'_>, place: Place) -> Markup {
    html! {
        @if let Some(figure) = views.figure("time-memory", None) {
            (parts::heading(place, "Time against memory"))
            (figure)
        }
    }
}

fn not_counted(sheet: &Sheet<'_>, place: Place) -> Markup {
    html! {
        @if !sheet.out.is_empty() {
            (parts::heading(place, "Not counted"))
            @for entrant in &sheet.out {
                @let (headline, details) = why_out(entrant);
                p { b { (foreign::name(&entrant.allocator)) } ": " (headline) }
                @if !details.is_empty() { pre tabindex="0" { (details.join("\n")) } }
            }
        }
    }
}

/// Describes each allocator, with the proof that it served `malloc`.
fn allocators(sheet: &Sheet<'_>, place: Place) -> Markup {
    let rows = || {
        sheet
            .result
            .entrants
            .iter()
            .filter(|entrant| entrant.role != Role::Twin)
    };
    let column = |head: &str, tell: &dyn Fn(&EntrantResult) -> String| {
        let known = |text: String| {
            if text.is_empty() {
                words::NONE.to_owned()
            } else {
                text
            }
        };
        Column::text(head, rows().map(|entrant| known(tell(entrant))).collect())
    };
    let more = [
        column("settings", &settings),
        column("preloaded", &|entrant| {
            let path = entrant.library.as_ref().map(|path| path.to_string_lossy());
            foreign::line(&path.unwrap_or_default())
        }),
        column("SHA-256", &|entrant| {
            foreign::line(entrant.sha256.as_deref().unwrap_or_default())
        }),
        column("known faults", &|entrant| {
            foreign::line(&entrant.known_faults.join("; "))
        }),
    ];
    let mut columns = grid::proof_table(sheet, usize::MAX, true);
    columns.extend(more.into_iter().filter(Column::says_anything));
    html! {
        (parts::heading(place, "Allocators and proof"))
        (parts::table("Each allocator, the library that served malloc, and notes", &columns))
    }
}

fn circumstances(sheet: &Sheet<'_>, place: Place) -> Markup {
    let result = sheet.result;
    html! {
        (parts::heading(place, "Machine and measurement"))
        (parts::labelled("Machine", &prose::machine(&result.machine)))
        (parts::labelled("Noise floor", &prose::noise_floor(result)))
        (parts::labelled("Race", &prose::race(result)))
        (parts::list(place.below(), "Warnings and remarks", &prose::remarks(result)))
        (parts::list(place.below(), "Measured", &memory::methods(sheet)))
        (parts::labelled("Command", &reproduce::for_the_eye(&result.command)))
    }
}
