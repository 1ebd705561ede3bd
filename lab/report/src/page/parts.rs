//! Building blocks of the sections of the page.

use maud::{Markup, html};

use crate::foreign;
use crate::table::{self, Cell, Column};

/// Position of a result in the page, and the level of a heading in the result's section.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) number: usize,
    /// Level of the heading; 1 is the highest.
    pub(super) level: u8,
}

impl Place {
    /// Returns the place with its heading one level lower.
    pub(super) fn below(self) -> Self {
        Self {
            level: self.level + 1,
            ..self
        }
    }
}

/// Returns a heading at the level of `place`.
pub(super) fn heading(place: Place, text: &str) -> Markup {
    html! {
        @match place.level {
            0 | 1 => { h1 { (text) } }
            2 => { h2 { (text) } }
            3 => { h3 { (text) } }
            4 => { h4 { (text) } }
            _ => { h5 { (text) } }
        }
    }
}

/// Returns a paragraph that begins with a label; empty if there is no text.
pub(super) fn labelled(label: &str, text: &str) -> Markup {
    html! { @if !text.is_empty() { p { b { (label) } ": " (text) } } }
}

/// Returns a heading and a list; empty if the list has no entries.
pub(super) fn list(place: Place, label: &str, entries: &[String]) -> Markup {
    html! {
        @if !entries.is_empty() {
            (heading(place, label))
            ul { @for entry in entries { li { (entry) } } }
        }
    }
}

/// Returns an element with a command to copy.
pub(super) fn command(words: &[String]) -> Markup {
    html! { pre tabindex="0" { code { (words.join(" ")) } } }
}

/// Returns a table. If it is wider than the page, the reader can scroll it on its own.
pub(super) fn table(caption: &str, columns: &[Column]) -> Markup {
    rows(caption, columns, false)
}

/// Returns a table with one row for each entrant of the ranking, in the order of the ranking.
pub(super) fn ranking(caption: &str, columns: &[Column]) -> Markup {
    rows(caption, columns, true)
}

fn rows(caption: &str, columns: &[Column], ranked: bool) -> Markup {
    let count = table::rows(columns);
    let cell = |column: &Column, place: usize| column.at(place).text;
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for column in columns { th scope="col" class=[class(column)] {
                    (foreign::line(&column.head))
                } } } }
                tbody {
                    @for place in 0..count {
                        tr data-entrant=[ranked.then_some(place)] {
                            @for (number, column) in columns.iter().enumerate() {
                                @if number == 0 {
                                    th scope="row" { (cell(column, place)) }
                                } @else {
                                    td class=[class(column)] { (cell(column, place)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn class(column: &Column) -> Option<&'static str> {
    let long = |cell: &Cell| cell.text.chars().count() > 60;
    match column.right {
        true => Some("figure"),
        false => column.cells.iter().any(long).then_some("wide"),
    }
}
