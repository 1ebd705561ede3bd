//! Tables of one allocator against its rivals.

use heapdrome_record::Member;
use heapdrome_statistics::Interval;

use super::sweep::{failures, name};
use super::{NONE, Parts, interval, number};
use crate::claims::{Range, Side};
use crate::figures::of_cell;
use crate::racers::{Mean, Pair, Racer, mean_over_least, pairs, racers, takes_part};
use crate::{Against, Suite};

impl Against {
    /// The allocator itself, its rivals, and the races.
    fn cast<'a>(&'a self, suite: &'a Suite, members: &[&'a Member]) -> Option<Cast<'a>> {
        let (of, _) = racers(suite, std::slice::from_ref(&self.of));
        let of = *of.first()?;
        let (mut to, _) = racers(suite, &self.to);
        to.retain(|one| one.1 != of.1);
        let cells = self.cells.iter();
        let races = cells.flat_map(|cell| of_cell(members, &suite.name, cell));
        let races = races.filter(|race| takes_part(race, &of)).collect();
        Some(Cast { of, to, races })
    }

    /// Whether an interval is where it is to be, in a word.
    fn mark(&self, found: &Interval) -> Option<&'static str> {
        let range = Range {
            low: None,
            high: Some(self.below?),
        };
        Some(word(range.side(found)))
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
    of: Racer<'a>,
    to: Vec<Racer<'a>>,
    races: Vec<&'a Member>,
}

/// Rivals against races: the ratio to each.
pub(super) fn ratios(suite: &Suite, plan: &Against, members: &[&Member]) -> Option<Parts> {
    let cast = plan.cast(suite, members)?;
    let compare = |race: &&Member| pairs(race, cast.of.1, &cast.to, &plan.figure);
    let compared: Vec<Vec<Pair<'_>>> = cast.races.iter().map(compare).collect();
    let cell = |pair: &Pair<'_>| match pair.interval() {
        None => number(pair.bare),
        Some(found) => {
            let text = interval(found.estimate, found.low, found.high);
            plan.mark(&found)
                .map_or(text.clone(), |mark| format!("{text} {mark}"))
        }
    };
    let row = |rival: &Racer<'_>| {
        let of_rival = |pairs: &Vec<Pair<'_>>| {
            let own = pairs.iter().find(|pair| pair.other.1 == rival.1);
            own.map(cell)
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

/// Races against how the allocator stands in each: the rival that it does worst against, and how
/// many it has reached.
pub(super) fn standing(suite: &Suite, plan: &Against, members: &[&Member]) -> Option<Parts> {
    let cast = plan.cast(suite, members)?;
    let heads = ["race", "does worst against", "ratio", "reached", "missed"];
    let heads = heads.into_iter().chain(["undecided", "race as a whole"]);
    let row = |race: &&Member| {
        let compared = pairs(race, cast.of.1, &cast.to, &plan.figure);
        let worst = compared
            .iter()
            .max_by(|one, other| one.bare.total_cmp(&other.bare))?;
        let marks: Vec<&str> = compared
            .iter()
            .map(|pair| pair.interval().and_then(|found| plan.mark(&found)))
            .map(|mark| mark.unwrap_or(word(Side::Unclear)))
            .collect();
        let count = |mark| marks.iter().filter(|one| **one == mark).count();
        let [reached, missed, open] = ["reached", "missed", "undecided"].map(count);
        let whole = match (reached == marks.len(), missed) {
            (true, _) => Side::Inside,
            (false, 0) => Side::Unclear,
            _ => Side::Outside,
        };
        let ratio = match worst.interval() {
            Some(found) => interval(found.estimate, found.low, found.high),
            None => number(worst.bare),
        };
        Some(vec![
            name(race),
            worst.other.0.label(),
            ratio,
            reached.to_string(),
            missed.to_string(),
            open.to_string(),
            word(whole).to_owned(),
        ])
    };
    let rows = cast.races.iter().filter_map(row).collect();
    Some((heads.map(str::to_owned).collect(), rows, Vec::new()))
}

/// Rivals against the geometric mean of the ratio to each over all races; then, where it is asked
/// for, that to whichever of them has the least in each race, which the target is about then.
pub(super) fn means(suite: &Suite, plan: &Against, members: &[&Member]) -> Option<Parts> {
    let cast = plan.cast(suite, members)?;
    let mean = |to: &[Racer<'_>], comparisons: usize| {
        mean_over_least(&cast.races, cast.of.1, to, &plan.figure, comparisons)
    };
    let row = |label: String, found: Mean, aimed_at: bool| {
        let (text, mark) = match found.found {
            None => (number(found.bare), None),
            Some(found) => (
                interval(found.estimate, found.low, found.high),
                plan.mark(&found).filter(|_| aimed_at),
            ),
        };
        let races = found.races.to_string();
        vec![label, text, races, mark.unwrap_or(NONE).to_owned()]
    };
    let each = |rival: &Racer<'_>| {
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
