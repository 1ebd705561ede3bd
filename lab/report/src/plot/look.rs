//! How an entrant looks in every plot: a colour, a shape and a pattern of dashes, so that neither
//! colour-blind eyes nor grey paper lose it.

use heapdrome_record::Role;
use maud::{Markup, html};

use super::canvas::{INK, n};
use crate::sheet::Sheet;

/// Colours for white paper; each has a contrast of at least three to one with it, and they differ in
/// lightness. After Paul Tol's muted scheme, some darkened.
pub(crate) const COLOURS: [&str; 7] = [
    "#332288", "#c2556a", "#117733", "#aa4499", "#8a7a14", "#2b8a80", "#882255",
];
/// The same for a dark page.
pub(crate) const DARK_COLOURS: [&str; 7] = [
    "#a39bf0", "#f0939f", "#63c27f", "#dd8fd2", "#cfc04f", "#5fcabd", "#e07aa8",
];

const SHAPES: usize = 6;
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "8 3 2 3", "12 4"];

/// The look of one entrant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The place in the list of colours; `None` is ink, for the baseline.
    colour: Option<usize>,
    shape: usize,
    dash: usize,
}

impl Look {
    /// The baseline's.
    pub(crate) const BASELINE: Self = Self {
        colour: None,
        shape: 0,
        dash: 0,
    };

    /// That of the rival in this place. The numbers of colours and shapes have no common divisor, so
    /// that 42 rivals look different.
    pub(crate) fn rival(place: usize) -> Self {
        Self {
            colour: Some(place % COLOURS.len()),
            shape: place % SHAPES,
            dash: place % DASHES.len(),
        }
    }

    /// The class of a group that gives the colour in a page.
    pub(crate) fn class(self) -> String {
        self.colour
            .map_or_else(|| "c".to_owned(), |place| format!("c{place}"))
    }

    /// The colour on paper.
    pub(crate) fn colour(self) -> &'static str {
        self.colour
            .and_then(|place| COLOURS.get(place).copied())
            .unwrap_or(INK)
    }

    /// The pattern of dashes of a curve.
    pub(crate) fn dashes(self) -> &'static str {
        DASHES[self.dash % DASHES.len()]
    }

    /// The shape around a point, with what it says when it is pointed at. It stands in a group of the colour.
    pub(crate) fn marker(self, at: [f64; 2], size: f64, says: Option<&str>) -> Markup {
        html! {
            path d=(self.outline(at, size)) fill="currentColor" {
                @if let Some(says) = says { title { (says) } }
            }
        }
    }

    /// The path of the shape; `size` is about its half width.
    fn outline(self, [x, y]: [f64; 2], size: f64) -> String {
        let polygon = |corners: &[[f64; 2]]| {
            let points: Vec<_> = corners
                .iter()
                .map(|[dx, dy]| format!("{} {}", n(x + dx * size), n(y + dy * size)))
                .collect();
            format!("M{}Z", points.join("L"))
        };
        match self.shape {
            0 => {
                let (r, d) = (n(size), n(2.0 * size));
                format!(
                    "M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z",
                    n(x - size),
                    n(y)
                )
            }
            1 => polygon(&[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]),
            2 => polygon(&[[0.0, -1.1], [1.1, 0.9], [-1.1, 0.9]]),
            3 => polygon(&[[0.0, -1.3], [1.3, 0.0], [0.0, 1.3], [-1.3, 0.0]]),
            4 => polygon(&[[0.0, 1.1], [1.1, -0.9], [-1.1, -0.9]]),
            _ => polygon(&[
                [-0.4, -1.1],
                [0.4, -1.1],
                [0.4, -0.4],
                [1.1, -0.4],
                [1.1, 0.4],
                [0.4, 0.4],
                [0.4, 1.1],
                [-0.4, 1.1],
                [-0.4, 0.4],
                [-1.1, 0.4],
                [-1.1, -0.4],
                [-0.4, -0.4],
            ]),
        }
    }
}

impl Sheet<'_> {
    /// The look of the entrant in this place of the ranking. It follows the order in which entrants
    /// were asked for, so that an entrant looks the same in every race of a collection.
    pub(crate) fn look(&self, place: usize) -> Look {
        let Some(row) = self.rows.get(place) else {
            return Look::BASELINE;
        };
        let rivals = self
            .result
            .entrants
            .iter()
            .filter(|entrant| entrant.role == Role::Rival);
        let mut numbered = rivals.enumerate();
        numbered
            .find(|(_, rival)| std::ptr::eq(*rival, row.entrant))
            .map_or(Look::BASELINE, |(number, _)| Look::rival(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_two_rivals_look_different() {
        let looks: Vec<_> = (0..42).map(Look::rival).collect();
        for (place, look) in looks.iter().enumerate() {
            let same = |other: &Look| (other.colour, other.shape) == (look.colour, look.shape);
            assert!(!looks[..place].iter().any(same), "rival {place}");
        }
    }

    /// The relative luminance of WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let channel = |place: usize| {
            let byte = u8::from_str_radix(&colour[place..place + 2], 16).expect("hexadecimal");
            let part = f64::from(byte) / 255.0;
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn every_colour_stands_out_from_its_paper() {
        for colour in COLOURS {
            assert!(
                1.05 / (luminance(colour) + 0.05) >= 3.0,
                "{colour} on white"
            );
        }
        let dark = luminance("#16191d") + 0.05;
        for colour in DARK_COLOURS {
            assert!((luminance(colour) + 0.05) / dark >= 3.0, "{colour} on dark");
        }
    }
}
