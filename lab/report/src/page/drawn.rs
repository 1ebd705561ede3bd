//! Embedding of drawings in the page, either directly or packed.
//!
//! A collection may have hundreds of drawings of its single races, which make up most of the page.
//! They resemble each other and are hidden until the reader opens a race, so they are packed
//! together. When the reader opens a race, the page's script inserts its drawings.

use std::cell::RefCell;

use maud::{Markup, html};

use crate::plot::{Looks, Plot};

/// The packed drawings of a page.
#[derive(Debug, Default)]
pub(super) struct Packed(RefCell<Vec<String>>);

impl Packed {
    /// Adds a drawing, and returns the number of its line in [`text`](Self::text), counted from 0.
    fn add(&self, drawing: &Markup) -> usize {
        let mut all = self.0.borrow_mut();
        all.push(drawing.0.replace('\n', " "));
        all.len() - 1
    }

    /// Returns all drawings, one on each line; `None` if there are none.
    pub(super) fn text(&self) -> Option<String> {
        let all = self.0.borrow();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}

/// Context for the drawings of a section.
#[derive(Clone, Copy)]
pub(super) struct Drawn<'a> {
    pub(super) looks: &'a Looks,
    packed: &'a Packed,
    is_folded: bool,
}

impl<'a> Drawn<'a> {
    pub(super) fn new(looks: &'a Looks, packed: &'a Packed) -> Self {
        Self {
            looks,
            packed,
            is_folded: false,
        }
    }

    /// Returns the context for a folded section.
    pub(super) fn folded(self) -> Self {
        Self {
            is_folded: true,
            ..self
        }
    }

    /// Returns a drawing with its caption. If the page shows only one of several metrics at a time,
    /// `panel` is the metric of this drawing.
    pub(super) fn figure(self, plot: &Plot, panel: Option<&str>) -> Markup {
        let drawing = plot.in_page();
        let line = self.is_folded.then(|| self.packed.add(&drawing));
        html! {
            figure class=[panel.map(|_| "panel")] data-metric=[panel] {
                div class="scroll" tabindex="0" role="region" aria-label=(brief(plot)) data-drawing=[line] {
                    @if line.is_none() { (drawing) }
                }
                figcaption { (plot.caption) }
            }
        }
    }
}

/// Returns the first part of a drawing's caption, which is a short description.
pub(super) fn brief(plot: &Plot) -> &str {
    let ends = [": ", "; ", ". "].into_iter();
    let end = ends.filter_map(|end| plot.caption.find(end)).min();
    let brief = &plot.caption[..end.unwrap_or(plot.caption.len())];
    brief.trim_end_matches('.')
}
