//! How an allocator looks in every plot of a result: a colour, which colour-blind eyes tell apart
//! as well, and a shape and a pattern of dashes, which carry it on grey paper and where there are
//! more allocators than colours.

use std::ops::Deref;

use heapdrome_schema::{Collection, RaceResult, Role, Saved, Survival, Table};

use super::coordinate::n;
use super::node::{Node, coloured, filled, title};
use super::palette::{COLOURS, INK};
use super::tabled;
use crate::sheet::Sheet;

/// Shapes and patterns of dashes beside those of the baseline.
const OTHERS: usize = 7;
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

/// What ends the name of an experiment's cell that had memory enough.
pub(super) const ALL_FITS: &str = ", all fits";

/// The look of one allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The place among those that are not the baseline; `None` is ink, a disc and a whole line.
    place: Option<usize>,
    /// How many curves of the same allocator stand before this one in a drawing. It moves shape and
    /// dashes.
    again: usize,
}

impl Look {
    /// The baseline's, and that of what has no look of its own.
    pub(crate) const BASELINE: Self = Self {
        place: None,
        again: 0,
    };

    /// That of the rival in this place. Colours, shapes and dashes are gone through side by side;
    /// each round through the dashes moves them by one place. So 70 rivals differ in colour and
    /// shape, and on grey paper 49 in shape and dashes.
    pub(crate) fn rival(place: usize) -> Self {
        Self {
            place: Some(place),
            again: 0,
        }
    }

    /// The place among the colours.
    fn hue(self) -> Option<usize> {
        self.place.map(|place| place % COLOURS.len())
    }

    /// The place among shapes or dashes, which moves by `step` with each round.
    fn among(self, step: usize) -> Option<usize> {
        let place = match (self.place, self.again) {
            (None, 0) => return None,
            (None, again) => again - 1,
            (Some(place), again) => place + again + step * (place / OTHERS),
        };
        Some(place % OTHERS)
    }

    /// The class of a group that gives the colour in a page.
    pub(crate) fn class(self) -> String {
        self.hue()
            .map_or_else(|| "c".to_owned(), |place| format!("c{place}"))
    }

    /// The colour on paper.
    pub(crate) fn colour(self) -> &'static str {
        self.hue().map_or(INK, |place| COLOURS[place])
    }

    /// The pattern of dashes of a curve.
    pub(crate) fn dashes(self) -> &'static str {
        self.among(1).map_or(WHOLE, |place| DASHES[place])
    }

    /// The shape around a point, with what it says when it is pointed at. It stands in a group of
    /// the colour.
    pub(crate) fn marker(self, at: [f64; 2], size: f64, says: Option<&str>) -> Node {
        let shape = filled(self.outline(at, size));
        match says {
            Some(says) => shape.holding(title(says)).into(),
            None => shape.into(),
        }
    }

    /// The shape around a point, hollow.
    pub(crate) fn ring(self, at: [f64; 2], size: f64, says: &str) -> Node {
        coloured(self.outline(at, size))
            .with("stroke-width", "1.8")
            .holding(title(says))
            .into()
    }

    /// The shape by itself, for a key beside a name.
    pub(crate) fn mark(self) -> String {
        self.outline([0.0, 0.0], 5.0)
    }

    /// The path of the shape; `size` is about its half width.
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

/// The corners of each shape: a square, a triangle, a diamond, a triangle on its tip, a cross, a
/// star with four rays, and an hourglass.
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
    /// Of everything in these results: allocators that race by the order in which they were asked
    /// for, then whatever has a curve.
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

    /// What has a curve without having raced.
    fn curves(&mut self, collection: &Collection) {
        self.searches(collection.searches());
        collection.tables.iter().for_each(|table| self.table(table));
        for ccdf in collection.ccdfs() {
            self.learn(who(&ccdf.cell));
        }
    }

    /// Of searches for the least memory. They have no baseline, and the system's allocator is what
    /// others are seen beside there, too.
    pub(super) fn searches(&mut self, searches: &[Survival]) {
        let mut names = searches.iter().map(|one| one.allocator.as_str());
        if self.baseline.is_none() && names.any(|name| name == SYSTEM) {
            self.baseline = Some(SYSTEM.to_owned());
        }
        searches.iter().for_each(|one| self.learn(&one.allocator));
    }

    /// The names of a table.
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

    /// That of this name, or of whom it speaks; where nobody knows either, the baseline's.
    pub(crate) fn get(&self, name: &str) -> Look {
        if self.baseline.as_deref() == Some(name) {
            return Look::BASELINE;
        }
        let place = |name: &str| self.others.iter().position(|other| other == name);
        let place = place(name).or_else(|| place(who(name)));
        place.map_or(Look::BASELINE, Look::rival)
    }

    /// Those of the curves of one drawing: several that speak of one allocator have its colour, and
    /// each a shape and dashes of its own.
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

/// Whom the name of a row or of a curve speaks of, without the circumstances: `lgalloc+touch` of
/// `always: lgalloc+touch`, `mapped` of `regions again, mapped`, `baseline` of
/// `baseline, all fits`.
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
    /// Those of `result`.
    pub(super) fn new(result: &'a RaceResult, looks: &'a Looks) -> Self {
        let sheet = Sheet::new(result);
        Self { sheet, looks }
    }

    /// The look of the entrant in this place.
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
