//! How drawings stand in the page: as they are, or packed.
//!
//! A collection has hundreds of drawings of its single races, folded away, which make up most of
//! its page and are much alike. They are packed together, and the page's script puts those of a
//! race in their places when it is opened.

use std::cell::RefCell;

use maud::{Markup, html};

use crate::plot::{Looks, Plot};

/// The drawings of a page that are packed.
#[derive(Debug, Default)]
pub(super) struct Packed(RefCell<Vec<String>>);

impl Packed {
    /// Takes a drawing in; returns its line in [`text`](Self::text).
    fn add(&self, drawing: &Markup) -> usize {
        let mut all = self.0.borrow_mut();
        all.push(drawing.0.replace('\n', " "));
        all.len() - 1
    }

    /// All of them, one a line, if there are any.
    pub(super) fn text(&self) -> Option<String> {
        let all = self.0.borrow();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}

/// How a section of the page is drawn.
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

    /// For a section that is folded away.
    pub(super) fn folded(self) -> Self {
        Self {
            is_folded: true,
            ..self
        }
    }

    /// A drawing with its caption. `panel` names the metric that it belongs to, if it is one of
    /// several that take turns.
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

/// What a drawing shows, in a few words.
pub(super) fn brief(plot: &Plot) -> &str {
    let ends = [": ", "; ", ". "].into_iter();
    let end = ends.filter_map(|end| plot.caption.find(end)).min();
    let brief = &plot.caption[..end.unwrap_or(plot.caption.len())];
    brief.trim_end_matches('.')
}
