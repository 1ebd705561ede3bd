//! The look of an allocator in every plot of a result. The colours suit colour-blind readers, too.
//! Shapes and dashes identify allocators on grey paper, or if there are more allocators than
//! colours.

use std::ops::Deref;

use heapdrome_schema::{Collection, RaceResult, Role, Saved, Survival, Table};

use super::coordinate::n;
use super::node::{Node, coloured, filled, title};
use super::palette::{COLOURS, INK};
use super::tabled;
use crate::sheet::Sheet;

/// Number of shapes, and number of dash patterns, in addition to the baseline's.
const OTHERS: usize = 7;
/// Name of the default baseline.
const SYSTEM: &str = "system";
/// The dash pattern of the baseline: a solid line.
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

/// Suffix of the name of an experiment's cell if its working set fits in memory.
pub(super) const ALL_FITS: &str = ", all fits";

/// The look of one allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Position among the rivals. `None` stands for the main colour, a disc, and a solid line.
    place: Option<usize>,
    /// Number of earlier curves of this allocator in the drawing. This number changes the shape and
    /// the dashes.
    again: usize,
}

impl Look {
    /// Look of the baseline, and of names without their own look.
    pub(crate) const BASELINE: Self = Self {
        place: None,
        again: 0,
    };

    /// Returns the look of the rival at this position. Colours, shapes and dashes advance together;
    /// each cycle through the dashes shifts the dashes by one position. Thus 70 rivals differ in
    /// colour and shape, and 49 differ in shape and dashes on grey paper.
    pub(crate) fn rival(place: usize) -> Self {
        Self {
            place: Some(place),
            again: 0,
        }
    }

    /// Returns the position among the colours; `None` for the main colour.
    fn hue(self) -> Option<usize> {
        self.place.map(|place| place % COLOURS.len())
    }

    /// Returns the position among shapes or dashes; `None` for those of the baseline. With each
    /// cycle, the position shifts by `step`.
    fn among(self, step: usize) -> Option<usize> {
        let place = match (self.place, self.again) {
            (None, 0) => return None,
            (None, again) => again - 1,
            (Some(place), again) => place + again + step * (place / OTHERS),
        };
        Some(place % OTHERS)
    }

    /// Returns the CSS class of a group, which sets the colour in a page.
    pub(crate) fn class(self) -> String {
        self.hue()
            .map_or_else(|| "c".to_owned(), |place| format!("c{place}"))
    }

    /// Returns the colour on white paper.
    pub(crate) fn colour(self) -> &'static str {
        self.hue().map_or(INK, |place| COLOURS[place])
    }

    /// Returns the dash pattern of a curve.
    pub(crate) fn dashes(self) -> &'static str {
        self.among(1).map_or(WHOLE, |place| DASHES[place])
    }

    /// Returns the shape around a point, with a tooltip if `says` has a text. The shape must be
    /// placed in a group that sets the colour.
    pub(crate) fn marker(self, at: [f64; 2], size: f64, says: Option<&str>) -> Node {
        let shape = filled(self.outline(at, size));
        match says {
            Some(says) => shape.holding(title(says)).into(),
            None => shape.into(),
        }
    }

    /// Returns the hollow shape around a point, with the tooltip `says`.
    pub(crate) fn ring(self, at: [f64; 2], size: f64, says: &str) -> Node {
        coloured(self.outline(at, size))
            .with("stroke-width", "1.8")
            .holding(title(says))
            .into()
    }

    /// Returns the path of the shape around the origin, for use next to a name in a legend.
    pub(crate) fn mark(self) -> String {
        self.outline([0.0, 0.0], 5.0)
    }

    /// Returns the path of the shape. `size` is about half its width.
    fn outline(self, [x, y]: [f64; 2], size: f64) -> String {
        let Some(shape) = self.among(0) else {
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

/// Corners of each shape: a square, a triangle, a diamond, an inverted triangle, a cross, a star
/// with four rays, and an hourglass.
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

/// The looks of all names. A name has the same colour in every drawing of a page and of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    /// Name of the first race's baseline. Without races, `system` if the results contain searches
    /// for its memory limits.
    baseline: Option<String>,
    /// The other names. Their positions determine their looks.
    others: Vec<String>,
}

impl Looks {
    /// Assigns looks to all names in these results: first to the allocators that race, baselines
    /// before rivals, then to other names of curves.
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

    fn race(&mut self, race: &RaceResult, role: Role) {
        for entrant in race.entrants.iter().filter(|one| one.role == role) {
            if role == Role::Baseline && self.baseline.is_none() {
                self.baseline = Some(entrant.allocator.clone());
            }
            self.learn(&entrant.allocator);
        }
    }

    /// Adds the names of the curves of searches, tables and distributions.
    fn curves(&mut self, collection: &Collection) {
        self.searches(collection.searches());
        collection.tables.iter().for_each(|table| self.table(table));
        for ccdf in collection.ccdfs() {
            self.learn(who(&ccdf.cell));
        }
    }

    /// Adds the allocators of searches for the least memory. If there is no baseline and the
    /// system's allocator was searched, that allocator gets the baseline's look.
    pub(super) fn searches(&mut self, searches: &[Survival]) {
        let mut names = searches.iter().map(|one| one.allocator.as_str());
        if self.baseline.is_none() && names.any(|name| name == SYSTEM) {
            self.baseline = Some(SYSTEM.to_owned());
        }
        searches.iter().for_each(|one| self.learn(&one.allocator));
    }

    /// Adds the names of a table.
    pub(super) fn table(&mut self, table: &Table) {
        for name in tabled::names(table) {
            self.learn(who(&name));
        }
    }

    fn learn(&mut self, name: &str) {
        let is_baseline = self.baseline.as_deref() == Some(name);
        if !is_baseline && !self.others.iter().any(|other| other == name) {
            self.others.push(name.to_owned());
        }
    }

    /// Returns the look of this name. An unknown name has the look of the allocator that it
    /// contains, or else the look of the baseline.
    pub(crate) fn get(&self, name: &str) -> Look {
        if self.baseline.as_deref() == Some(name) {
            return Look::BASELINE;
        }
        let place = |name: &str| self.others.iter().position(|other| other == name);
        let place = place(name).or_else(|| place(who(name)));
        place.map_or(Look::BASELINE, Look::rival)
    }

    /// Returns the looks of the curves of one drawing. Curves of one allocator have the same
    /// colour, and differ in shape and dashes.
    pub(super) fn of_names(&self, names: &[&str]) -> Vec<Look> {
        let look = |(place, name): (usize, &&str)| {
            let before = names[..place].iter();
            let again = before.filter(|other| who(other) == who(name)).count();
            Look {
                again,
                ..self.get(name)
            }
        };
        names.iter().enumerate().map(look).collect()
    }
}

/// Returns the allocator or the variant in the name of a row or curve, without conditions:
/// `lgalloc+touch` from `always: lgalloc+touch`, `mapped` from `regions again, mapped`, `baseline`
/// from `baseline, all fits`.
fn who(name: &str) -> &str {
    let name = name.strip_suffix(ALL_FITS).unwrap_or(name);
    let name = name.rsplit_once(": ").map_or(name, |(_, who)| who);
    name.rsplit_once(", ").map_or(name, |(_, who)| who)
}

/// The entrants of a race, each with its look.
pub(super) struct Ranking<'a> {
    sheet: Sheet<'a>,
    looks: &'a Looks,
}

impl<'a> Ranking<'a> {
    pub(super) fn new(result: &'a RaceResult, looks: &'a Looks) -> Self {
        let sheet = Sheet::new(result);
        Self { sheet, looks }
    }

    /// Returns the look of the entrant at this position in the ranking.
    pub(super) fn look(&self, place: usize) -> Look {
        let row = self.sheet.rows.get(place);
        row.map_or(Look::BASELINE, |row| self.looks.get(&row.entrant.allocator))
    }
}

impl<'a> Deref for Ranking<'a> {
    type Target = Sheet<'a>;

    fn deref(&self) -> &Sheet<'a> {
        &self.sheet
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn looks(rivals: usize) -> impl Iterator<Item = Look> {
        std::iter::once(Look::BASELINE).chain((0..rivals).map(Look::rival))
    }

    #[test]
    fn shapes_and_dashes_of_eight_and_colours_of_eleven_differ() {
        let marks: HashSet<_> = looks(7).map(Look::mark).collect();
        let dashes: HashSet<_> = looks(7).map(Look::dashes).collect();
        let colours: HashSet<_> = looks(10).map(Look::colour).collect();
        assert_eq!([marks.len(), dashes.len(), colours.len()], [8, 8, 11]);
    }

    #[test]
    fn fifty_look_different_on_paper_of_any_colour() {
        let coloured: HashSet<_> = looks(70).map(|look| (look.colour(), look.mark())).collect();
        let grey: HashSet<_> = looks(49).map(|look| (look.dashes(), look.mark())).collect();
        assert_eq!([coloured.len(), grey.len()], [71, 50]);
    }

    #[test]
    fn a_name_looks_as_whom_it_speaks_of() {
        let mut known = Looks::default();
        known.learn("jemalloc");
        known.learn("mine+touch");
        for name in [
            "mine+touch",
            "always: mine+touch",
            "again, mine+touch, all fits",
        ] {
            assert_eq!(known.get(name), Look::rival(1), "{name}");
        }
        assert_eq!(known.get("512M 1:8"), Look::BASELINE);
        let settings = [
            "always: jemalloc",
            "never: jemalloc",
            "512M 1:8",
            "1G, 512M 1:8",
        ];
        let looks = known.of_names(&settings);
        let colours: HashSet<_> = looks.iter().map(|look| look.colour()).collect();
        let all: HashSet<_> = looks
            .iter()
            .map(|look| (look.colour(), look.mark()))
            .collect();
        assert_eq!([colours.len(), all.len()], [2, 4], "{looks:?}");
    }
}
