//! Sections on collections: a suite with its claims and tables, a sweep with its curves, or an
//! experiment or a search with its drawings and tables.

use heapdrome_schema::{Collection, Member, Table};
use maud::{Markup, html};

use super::drawn::{self, Drawn};
use super::parts::{self, Place};
use super::race;
use crate::collection as suite;
use crate::foreign;
use crate::plot::{self, Plot};
use crate::prose;
use crate::reproduce;
use crate::scaling;
use crate::sweep;
use crate::words;

/// Returns the title of a sweep, or the headline of another collection.
pub(super) fn heading(collection: &Collection) -> String {
    match collection.scale() {
        Some(scale) => suite::headline(collection, scale),
        None => sweep::title(collection),
    }
}

/// Returns the complete section of a collection.
pub(super) fn section(collection: &Collection, drawn: Drawn<'_>, place: Place) -> Markup {
    let inner = place.below();
    let prefix = format!("r{}-", place.number);
    html! {
        section id={ "result-" (place.number) } {
            (parts::heading(place, &heading(collection)))
            p class="verdict" { (verdict(collection)) }
            (curves(collection, drawn, inner, &prefix))
            // The number keeps the names unique in a page, even if two kinds of times have similar
            // names.
            @let numbered = |place: usize| format!("{prefix}ccdf-{:02}-", place + 1);
            @let exceeded = plot::ccdfs(collection, numbered, drawn.looks);
            (drawings("How often a time was exceeded", &exceeded, drawn, inner))
            @let searches = plot::searches(collection.searches(), &prefix, drawn.looks);
            (drawings("Limits", &searches, drawn, inner))
            @if collection.scale().is_some() {
                (tables(collection, drawn, inner, &prefix))
            } @else { (figures(collection, inner)) }
            (parts::list(inner, "Not raced", &suite::absent(collection)))
            @let out: Vec<String> = suite::not_counted(collection).iter().map(|l| l.join("; ")).collect();
            (parts::list(inner, "Not counted", &out))
            (parts::list(inner, "Factor", &suite::factors(collection)))
            @if !collection.races.is_empty() { (races(collection, drawn, place)) }
            (parts::heading(inner, "Machine"))
            p { (prose::machine(&collection.machine)) }
            (parts::list(inner.below(), "Warnings and remarks", &prose::remarks_of_collection(collection)))
            (parts::heading(inner, "Run it again"))
            (parts::command(&reproduce::collection_line(collection)))
        }
    }
}

/// Returns the findings in a few sentences, such as the verdicts on the claims of a suite, or the
/// leader of a sweep.
pub(super) fn verdict(collection: &Collection) -> String {
    if collection.scale().is_none() {
        return sweep::verdict(collection);
    }
    if let Some(checked) = suite::checked(collection) {
        return checked;
    }
    if suite::speaks_of_a_document(collection) {
        let told = suite::Kind::of(collection).into_iter();
        let told = told.map(|kind| format!("{}: {}", kind.title(), kind.tally(&collection.claims)));
        return told.collect::<Vec<_>>().join(" ");
    }
    if !collection.misuse().is_empty() {
        return suite::misused(collection);
    }
    if let Some(survived) = suite::survived(collection) {
        return survived;
    }
    let told = match (collection.ccdfs().is_empty(), collection.tables.is_empty()) {
        (false, _) => {
            "An experiment without a race: the curves show how often a time was exceeded, the \
             tables compare the figures."
        }
        (true, false) => "An experiment without a race: the tables show the results.",
        (true, true) => "No race is complete, so there is no verdict.",
    };
    told.to_owned()
}

/// Draws a curve for each allocator over every parameter that was swept.
fn curves(collection: &Collection, drawn: Drawn<'_>, place: Place, prefix: &str) -> Markup {
    let groups = plot::groups(collection);
    html! {
        @if !groups.is_empty() {
            (parts::heading(place, "Curves"))
            (hideable("Curves", &html! {
                @for group in &groups {
                    (parts::heading(place.below(), &group.name))
                    @for plot in plot::of_group(group, prefix, drawn.looks) { (drawn.figure(&plot, None)) }
                }
            }))
        }
    }
}

/// Returns drawings whose curves the reader can hide by name.
fn hideable(label: &str, drawings: &Markup) -> Markup {
    html! {
        div data-curves {
            // The script adds a check box for each name that has a curve.
            div class="controls" role="group" aria-label=(label) {
                fieldset { legend { "Show" } }
            }
            p class="said" role="status" {}
            (drawings)
        }
    }
}

/// Returns a drawing. If it has curves, the reader can hide them by name.
fn drawing(plot: &Plot, drawn: Drawn<'_>) -> Markup {
    let figure = drawn.figure(plot, None);
    match plot.has_curves {
        true => hideable(drawn::brief(plot), &figure),
        false => figure,
    }
}

/// Returns drawings under a heading. Each drawing with curves has its own check boxes.
fn drawings(heading: &str, plots: &[Plot], drawn: Drawn<'_>, place: Place) -> Markup {
    html! {
        @if !plots.is_empty() {
            (parts::heading(place, heading))
            @for plot in plots { (drawing(plot, drawn)) }
        }
    }
}

fn tables(collection: &Collection, drawn: Drawn<'_>, place: Place, prefix: &str) -> Markup {
    html! {
        @if !collection.claims.is_empty() {
            @for kind in suite::Kind::of(collection) {
                (parts::heading(place, kind.heading()))
                (parts::table(kind.title(), &suite::claims(collection, kind)))
            }
        }
        (parts::heading(place, "Tables"))
        @for (number, table) in collection.tables.iter().enumerate() {
            (one_table(table))
            @let prefix = format!("{prefix}table-{:02}-", number + 1);
            @if let Some(plot) = plot::of_table(table, &prefix, drawn.looks) { (drawing(&plot, drawn)) }
        }
        @if !collection.races.is_empty() { (parts::table("Races", &suite::races(collection))) }
    }
}

fn one_table(table: &Table) -> Markup {
    html! {
        (parts::table(&suite::title(table), &suite::columns(table, usize::MAX)))
        @if !table.notes.is_empty() {
            ul { @for note in &table.notes { li { (foreign::line(note)) } } }
        }
    }
}

/// Returns the tables of a sweep, one for each figure, and those of its scaling.
fn figures(collection: &Collection, place: Place) -> Markup {
    html! {
        (parts::heading(place, "Figures"))
        @for figure in &sweep::FOLLOWED {
            @if let Some((names, columns)) = sweep::summary(collection, figure, usize::MAX) {
                @let columns: Vec<_> = std::iter::once(names).chain(columns).collect();
                (parts::table(&sweep::heading(collection, figure), &columns))
            }
        }
        @for table in scaling::tables(collection, usize::MAX) {
            @let columns: Vec<_> = std::iter::once(table.names).chain(table.columns).collect();
            (parts::table(&table.heading, &columns))
        }
        (parts::list(place.below(), "Definition of degradation", &scaling::notes(collection)))
        (parts::list(place.below(), "Processors", &sweep::placements(collection)))
    }
}

/// Returns the sections of all races, folded.
fn races(collection: &Collection, drawn: Drawn<'_>, place: Place) -> Markup {
    let inner = place.below();
    html! {
        @if !collection.races.is_empty() { (parts::heading(inner, "Each race")) }
        @for (number, race) in collection.races.iter().enumerate() {
            @let prefix = format!("r{}-{}", place.number, plot::member_prefix(number, &race.cell));
            details data-race {
                summary { (summary(race)) }
                (race::body(&race.result, drawn.folded(), inner.below(), &prefix))
            }
        }
    }
}

fn summary(race: &Member) -> String {
    let rounds = words::count(u64::from(race.result.rounds), "round");
    format!("{}, {rounds}", suite::place(race))
}
