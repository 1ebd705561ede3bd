//! Tables of one allocator against its rivals.

use heapdrome_schema::Member;
use heapdrome_statistics::Interval;

use super::sweep::{failures, name};
use super::{NONE, Parts, interval, number};
use crate::Suite;
use crate::claim::{Range, Side};
use crate::entrants::{
    Available, Mean, Pair, available, figure_of, mean_over_least, pairs, takes_part,
};
use crate::figures::{missing, of_cell};
use crate::table_plan::Against;

impl Against {
    /// Returns the allocator itself, its rivals, and the races of the plan in which it took part;
    /// `None` if the allocator is unavailable.
    fn cast<'a>(&'a self, suite: &'a Suite, members: &[&'a Member]) -> Option<Cast<'a>> {
        let (of, _) = available(suite, std::slice::from_ref(&self.of));
        let of = *of.first()?;
        let (mut to, _) = available(suite, &self.to);
        to.retain(|one| one.1 != of.1);
        let cells = self.cells.iter();
        let races = cells.flat_map(|cell| of_cell(members, &suite.name, cell));
        let races = races.filter(|race| takes_part(race, &of)).collect();
        Some(Cast { of, to, races })
    }

    /// Returns the position of a ratio's interval relative to the limit; unclear without an
    /// interval or a limit.
    fn side(&self, found: Option<&Interval>) -> Side {
        let range = Range {
            low: None,
            high: self.below,
        };
        match (self.below, found) {
            (Some(_), Some(found)) => range.side(found),
            _ => Side::Unclear,
        }
    }

    /// Formats a ratio. If there are a limit and an interval, adds the position of the interval
    /// relative to the limit.
    fn tell(&self, pair: &Pair<'_>) -> String {
        let text = ratio(pair);
        match pair.interval().filter(|_| self.below.is_some()) {
            None => text,
            Some(found) => format!("{text} {}", word(self.side(Some(&found)))),
        }
    }
}

/// Formats a ratio, with its interval if it has one.
fn ratio(pair: &Pair<'_>) -> String {
    match pair.interval() {
        None => number(pair.bare),
        Some(found) => interval(found.estimate, found.low, found.high),
    }
}

fn word(side: Side) -> &'static str {
    match side {
        Side::Inside => "reached",
        Side::Outside => "missed",
        Side::Unclear => "undecided",
    }
}

struct Cast<'a> {
    of: Available<'a>,
    to: Vec<Available<'a>>,
    races: Vec<&'a Member>,
}

/// Makes the table of ratios, with one row for each rival and one column for each race.
pub(super) fn ratios(suite: &Suite, plan: &Against, members: &[&Member]) -> Option<Parts> {
    let cast = plan.cast(suite, members)?;
    let compare = |race: &&Member| pairs(race, cast.of.1, &cast.to, &plan.figure);
    let compared: Vec<Vec<Pair<'_>>> = cast.races.iter().map(compare).collect();
    let row = |rival: &Available<'_>| {
        let of_rival = |pairs: &Vec<Pair<'_>>| {
            let own = pairs.iter().find(|pair| pair.other.1 == rival.1);
            own.map(|pair| plan.tell(pair))
        };
        let cells: Vec<Option<String>> = compared.iter().map(of_rival).collect();
        let any = cells.iter().any(Option::is_some);
        let cells = cells
            .into_iter()
            .map(|cell| cell.unwrap_or(NONE.to_owned()));
        any.then(|| std::iter::once(rival.0.label()).chain(cells).collect())
    };
    let rows = cast.to.iter().filter_map(row).collect();
    let heads = std::iter::once(format!("{} over", cast.of.0.name));
    let heads = heads.chain(cast.races.iter().map(|race| name(race)));
    Some((heads.collect(), rows, failures(suite, &cast.races)))
}

/// Makes the table of standings, with one row for each race: the rival against which the allocator
/// does worst, and the numbers of rivals for which the target is reached and missed.
pub(super) fn standing(suite: &Suite, plan: &Against, members: &[&Member]) -> Option<Parts> {
    let cast = plan.cast(suite, members)?;
    let heads = [
        "race",
        "worst against",
        "ratio",
        "reached",
        "missed",
        "verdict",
    ];
    let rows = cast
        .races
        .iter()
        .filter_map(|race| stands(plan, &cast, race));
    let own = |race: &&&Member| figure_of(race, cast.of.1, &plan.figure).is_none();
    let gone = cast.races.iter().filter(own).map(|race| {
        let why = missing(&race.result, cast.of.1);
        format!("{} {why} in {}", cast.of.0.label(), name(race))
    });
    let heads = heads.map(str::to_owned).to_vec();
    Some((heads, rows.collect(), gone.collect()))
}

/// Returns the standing of the allocator in a race. The target is reached if it is reached for all
/// rivals, and missed if it is missed for any rival. Returns `None` if there is no rival to compare
/// with.
fn stands(plan: &Against, cast: &Cast<'_>, race: &Member) -> Option<Vec<String>> {
    let compared = pairs(race, cast.of.1, &cast.to, &plan.figure);
    let by_ratio = |one: &&Pair<'_>, other: &&Pair<'_>| one.bare.total_cmp(&other.bare);
    let worst = compared.iter().max_by(by_ratio)?;
    let sides = compared
        .iter()
        .map(|pair| plan.side(pair.interval().as_ref()));
    let sides: Vec<Side> = sides.collect();
    let count = |side| sides.iter().filter(|one| **one == side).count();
    let [reached, missed] = [Side::Inside, Side::Outside].map(count);
    let whole = match (reached == sides.len(), missed) {
        (true, _) => Side::Inside,
        (false, 0) => Side::Unclear,
        _ => Side::Outside,
    };
    Some(vec![
        name(race),
        worst.other.0.label(),
        ratio(worst),
        format!("{reached} of {}", sides.len()),
        missed.to_string(),
        word(whole).to_owned(),
    ])
}

/// Makes the table of geometric means over all races, with one row for each rival. With `least`,
/// the last row compares the allocator with the rival that has the smallest figure in each race,
/// and the target applies to this row.
pub(super) fn means(suite: &Suite, plan: &Against, members: &[&Member]) -> Option<Parts> {
    let cast = plan.cast(suite, members)?;
    let mean = |to: &[Available<'_>], comparisons: usize| {
        mean_over_least(&cast.races, cast.of.1, to, &plan.figure, comparisons)
    };
    let row = |label: String, mean: Mean, aimed_at: bool| {
        let mark = match plan.below.filter(|_| aimed_at) {
            Some(_) => word(plan.side(mean.found.as_ref())),
            None => NONE,
        };
        let text = match mean.found {
            None => number(mean.bare),
            Some(found) => interval(found.estimate, found.low, found.high),
        };
        vec![label, text, mean.races.to_string(), mark.to_owned()]
    };
    let each = |rival: &Available<'_>| {
        let found = mean(std::slice::from_ref(rival), cast.to.len())?;
        Some(row(rival.0.label(), found, !plan.least))
    };
    let mut rows: Vec<_> = cast.to.iter().filter_map(each).collect();
    if let Some(found) = mean(&cast.to, 1).filter(|_| plan.least) {
        rows.push(row(
            "the least of these in each race".to_owned(),
            found,
            true,
        ));
    }
    let over = format!("{} over", cast.of.0.name);
    let heads = [&over[..], "geometric mean", "races", "target"].map(str::to_owned);
    Some((heads.to_vec(), rows, Vec::new()))
}
