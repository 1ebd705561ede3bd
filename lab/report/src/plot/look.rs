//! How an allocator looks in every plot of a result: a colour, a shape and a pattern of dashes, so that
//! neither colour-blind eyes nor grey paper lose it.

use heapdrome_record::{Collection, RaceResult, Role, Saved, Table};
use maud::{Markup, html};

use super::canvas::{INK, n};
use super::{rates, survival};
use crate::sheet::Sheet;

/// Colours for white paper; each has a contrast of at least three to one with it, and they differ in
/// lightness. After Paul Tol's muted scheme, some darkened, its indigo made lighter than ink.
pub(crate) const COLOURS: [&str; 7] = [
    "#2f62b8", "#c2556a", "#117733", "#aa4499", "#8a7a14", "#2b8a80", "#882255",
];
/// The same for a dark page.
pub(crate) const DARK_COLOURS: [&str; 7] = [
    "#86acf2", "#f0939f", "#63c27f", "#dd8fd2", "#cfc04f", "#5fcabd", "#e07aa8",
];

/// Shapes and patterns of dashes beside those of the baseline, as many as there are colours.
const OTHERS: usize = COLOURS.len();
/// The allocator that is the baseline where nothing else is said.
const SYSTEM: &str = "system";
/// The baseline's line is whole.
const WHOLE: &str = "none";
const DASHES: [&str; OTHERS] = [
    "9 3",
    "2 3",
    "9 3 2 3",
    "4 4",
    "16 4",
    "9 3 2 3 2 3",
    "16 3 4 3",
];

/// The look of one allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The place among those that are not the baseline; `None` is ink, a disc and a whole line.
    place: Option<usize>,
}

impl Look {
    /// The baseline's, and that of what has no look of its own.
    pub(crate) const BASELINE: Self = Self { place: None };

    /// That of the rival in this place. Each round through the colours moves the shapes by one place and
    /// the dashes by two, so that 49 rivals differ in colour and shape, and on grey paper in shape and
    /// dashes.
    pub(crate) fn rival(place: usize) -> Self {
        Self { place: Some(place) }
    }

    /// The place in a list, which moves by `step` with each round through the colours.
    fn among(self, step: usize) -> Option<usize> {
        let place = self.place?;
        Some((place + step * (place / OTHERS)) % OTHERS)
    }

    /// The class of a group that gives the colour in a page.
    pub(crate) fn class(self) -> String {
        self.among(0)
            .map_or_else(|| "c".to_owned(), |place| format!("c{place}"))
    }

    /// The colour on paper.
    pub(crate) fn colour(self) -> &'static str {
        self.among(0).map_or(INK, |place| COLOURS[place])
    }

    /// The pattern of dashes of a curve.
    pub(crate) fn dashes(self) -> &'static str {
        self.among(2).map_or(WHOLE, |place| DASHES[place])
    }

    /// The shape around a point, with what it says when it is pointed at. It stands in a group of the colour.
    pub(crate) fn marker(self, at: [f64; 2], size: f64, says: Option<&str>) -> Markup {
        html! {
            path d=(self.outline(at, size)) fill="currentColor" {
                @if let Some(says) = says { title { (says) } }
            }
        }
    }

    /// The same, hollow.
    pub(crate) fn ring(self, at: [f64; 2], size: f64, says: &str) -> Markup {
        html! {
            path d=(self.outline(at, size)) fill="none" stroke="currentColor" stroke-width="1.8" {
                title { (says) }
            }
        }
    }

    /// The shape by itself, for a key beside a name.
    pub(crate) fn mark(self) -> String {
        self.outline([0.0, 0.0], 5.0)
    }

    /// The path of the shape; `size` is about its half width.
    fn outline(self, [x, y]: [f64; 2], size: f64) -> String {
        let Some(shape) = self.among(1) else {
            let (r, d) = (n(size), n(2.0 * size));
            return format!(
                "M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z",
                n(x - size),
                n(y)
            );
        };
        let points: Vec<_> = SHAPES[shape]
            .iter()
            .map(|[dx, dy]| format!("{} {}", n(x + dx * size), n(y + dy * size)))
            .collect();
        format!("M{}Z", points.join("L"))
    }
}

/// The corners of each shape: a square, a triangle, a diamond, a triangle on its tip, a cross, a star with
/// four rays, and an hourglass.
const SHAPES: [&[[f64; 2]]; OTHERS] = [
    &[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
    &[[0.0, -1.1], [1.1, 0.9], [-1.1, 0.9]],
    &[[0.0, -1.3], [1.3, 0.0], [0.0, 1.3], [-1.3, 0.0]],
    &[[0.0, 1.1], [1.1, -0.9], [-1.1, -0.9]],
    &[
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
    ],
    &[
        [-1.1, -1.1],
        [0.0, -0.4],
        [1.1, -1.1],
        [0.4, 0.0],
        [1.1, 1.1],
        [0.0, 0.4],
        [-1.1, 1.1],
        [-0.4, 0.0],
    ],
    &[[-1.1, -1.1], [1.1, -1.1], [-1.1, 1.1], [1.1, 1.1]],
];

/// Who has which look. A name looks the same in every drawing of a page and of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    /// The baseline of the first race.
    baseline: Option<String>,
    /// The others, by their places.
    others: Vec<String>,
}

impl Looks {
    /// Of everything in these results: allocators that race by the order in which they were asked for, then
    /// whatever has a curve.
    pub(crate) fn of<'a>(results: impl IntoIterator<Item = &'a Saved>) -> Self {
        let mut looks = Self::default();
        let results: Vec<&Saved> = results.into_iter().collect();
        for role in [Role::Baseline, Role::Rival] {
            for saved in &results {
                match saved {
                    Saved::Race(race) => looks.race(race, role),
                    Saved::Collection(all) => {
                        let races = all.races.iter();
                        races.for_each(|member| looks.race(&member.result, role));
                    }
                }
            }
        }
        for saved in results {
            if let Saved::Collection(collection) = saved {
                looks.curves(collection);
            }
        }
        looks
    }

    /// Of one race.
    pub(crate) fn of_race(race: &RaceResult) -> Self {
        let mut looks = Self::default();
        looks.race(race, Role::Baseline);
        looks.race(race, Role::Rival);
        looks
    }

    fn race(&mut self, race: &RaceResult, role: Role) {
        for entrant in race.entrants.iter().filter(|one| one.role == role) {
            if role == Role::Baseline && self.baseline.is_none() {
                self.baseline = Some(entrant.allocator.clone());
            }
            self.learn(&entrant.allocator);
        }
    }

    /// What has a curve without having raced.
    fn curves(&mut self, collection: &Collection) {
        for ccdf in &collection.ccdfs {
            self.learn(&ccdf.cell);
        }
        collection.tables.iter().for_each(|table| self.table(table));
    }

    /// The names of a table. A search for the least memory has no baseline, and the system's allocator is
    /// what others are seen beside there, too.
    pub(super) fn table(&mut self, table: &Table) {
        let searched = survival::names(table);
        if self.baseline.is_none() && searched.iter().any(|name| name == SYSTEM) {
            self.baseline = Some(SYSTEM.to_owned());
        }
        for name in rates::names(table).iter().chain(&searched) {
            self.learn(name);
        }
    }

    fn learn(&mut self, name: &str) {
        let is_baseline = self.baseline.as_deref() == Some(name);
        if !is_baseline && !self.others.iter().any(|other| other == name) {
            self.others.push(name.to_owned());
        }
    }

    /// That of this name; of one that nobody knows, the baseline's.
    pub(crate) fn get(&self, name: &str) -> Look {
        let place = self.others.iter().position(|other| other == name);
        place.map_or(Look::BASELINE, Look::rival)
    }
}

impl Sheet<'_> {
    /// The look of the entrant in this place of the ranking.
    pub(crate) fn look(&self, place: usize) -> Look {
        let row = self.rows.get(place);
        row.map_or(Look::BASELINE, |row| self.looks.get(&row.entrant.allocator))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn eight_look_different_in_colour_in_shape_and_in_dashes() {
        let looks = || std::iter::once(Look::BASELINE).chain((0..OTHERS).map(Look::rival));
        for differ in [
            looks().map(|look| look.colour().to_owned()).collect(),
            looks().map(Look::mark).collect(),
            looks().map(|look| look.dashes().to_owned()).collect(),
        ] {
            let differ: HashSet<String> = differ;
            assert_eq!(differ.len(), 8, "{differ:?}");
        }
    }

    #[test]
    fn fifty_look_different_on_paper_of_any_colour() {
        let looks = || std::iter::once(Look::BASELINE).chain((0..49).map(Look::rival));
        let coloured: HashSet<_> = looks().map(|look| (look.colour(), look.mark())).collect();
        let grey: HashSet<_> = looks().map(|look| (look.dashes(), look.mark())).collect();
        assert_eq!([coloured.len(), grey.len()], [50, 50]);
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
