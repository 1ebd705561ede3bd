//! The comparisons of a claim, and their intervals.
//!
//! A claim is one statement, even if it makes many comparisons. The intervals of these comparisons,
//! or of those in one race with `family = "race"`, are simultaneous with a confidence of 95%, so
//! that a chance deviation in one of many does not contradict the claim.

use heapdrome_schema::{Member, resolution};
use heapdrome_statistics::{Estimate, FEWEST_ROUNDS, Interval, mean_interval, median};

use super::evidence::{Found, Part};
use crate::Suite;
use crate::claim::{EVERYONE, Family, Range, RatioTest, Scope, Sizes, Test};
use crate::entrants::{ALPHA, Available, Span, available, compare, rule, takes_part};
use crate::figures::{missing, of_cell};
use crate::tables::{data_ratio, degradation, pair};

/// A comparison of two entrants in one race, as a part of a claim.
pub(super) struct Compared<'a> {
    /// Registry names of the two entrants.
    pub(super) both: [&'a str; 2],
    pub(super) part: Part,
}

/// Compares the figure of each entrant in `of` with that of each entrant in `to`, race by race.
pub(super) fn ratios(suite: &Suite, members: &[&Member], test: &RatioTest) -> Found {
    let compared = match compared(suite, members, test) {
        Ok(compared) => compared,
        Err(found) => return found,
    };
    let absent = |names| available(suite, names).1;
    Found::Parts {
        parts: compared.into_iter().map(|one| one.part).collect(),
        absent: absent(&test.of)
            .into_iter()
            .chain(absent(&test.to))
            .collect(),
    }
}

/// Compares each entrant of one group with each entrant of another, race by race. If no entrant of
/// a group is available, or no race is in the scope, returns evidence that states this.
pub(super) fn compared<'a>(
    suite: &'a Suite,
    members: &[&Member],
    test: &RatioTest,
) -> Result<Vec<Compared<'a>>, Found> {
    let of_everyone = test.to.iter().any(|name| name == EVERYONE);
    let (of, absent_of) = available(suite, &test.of);
    let (to, absent_to) = available(suite, &test.to);
    if of.is_empty() || to.is_empty() {
        return Err(cannot(&absent_of, &absent_to));
    }
    let mut compared: Vec<(&Member, Available<'_>, Available<'_>)> = Vec::new();
    for member in in_scope(suite, members, &test.scope)? {
        for one in &of {
            let others = to.iter().filter(|other| other.1 != one.1);
            compared.extend(others.map(|other| (member, *one, *other)));
        }
    }
    compared.retain(|(member, one, other)| takes_part(member, one) && takes_part(member, other));
    // If `to` contains `*`, an entrant of `to` without a valid row is omitted. If a named entrant
    // failed, the claim stays open.
    let counts = |member: &Member, one: &Available<'_>| member.result.row(one.1).is_some();
    compared.retain(|(member, _, other)| !of_everyone || counts(member, other));
    let family = |member: &Member| match test.scope.family {
        Family::Claim => compared.len(),
        Family::Race => {
            let own = compared.iter().filter(|one| std::ptr::eq(one.0, member));
            own.count()
        }
    };
    let part = |(member, one, other): &(&Member, Available<'a>, Available<'a>)| {
        let both = [one.1, other.1];
        let found = |figure: &str| {
            for name in both {
                figure_of(member, name, figure)?;
            }
            let rule = rule(family(member));
            within_rounds(compare(member, &rule, both, figure, Span::Whole))
        };
        let unless = test.unless.as_ref().map(|unless| {
            Box::new(Part {
                label: unless.figure.clone(),
                found: found(&unless.figure),
                range: unless.range,
                unless: None,
            })
        });
        let part = Part {
            label: format!("{} over {} in {}", one.0.name, other.0.name, place(member)),
            found: found(&test.figure),
            range: test.range_beside(member, other.1),
            unless,
        };
        Compared { both, part }
    };
    Ok(compared.iter().map(part).collect())
}

impl RatioTest {
    /// Returns the range of the ratio to an allocator's figure in a race. The allowance raises its
    /// upper end.
    fn range_beside(&self, member: &Member, allocator: &str) -> Range {
        let median = || median(&figure_of(member, allocator, &self.figure).ok()?);
        let allowed = self.allowance.zip(median());
        let allowed = allowed.map(|(allowance, median)| 1.0 + allowance / median);
        Range {
            high: self
                .range
                .high
                .map(|high| high.max(allowed.unwrap_or(high))),
            ..self.range
        }
    }
}

/// Returns the mean of a figure, for each entrant and race.
pub(super) fn figures(
    suite: &Suite,
    members: &[&Member],
    scope: &Scope,
    (figure, range): (&str, Range),
    of: &[String],
) -> Found {
    each(suite, members, scope, of, |count| {
        let confidence = 1.0 - ALPHA / count as f64;
        move |member, allocator| {
            let own = figure_of(member, allocator, figure)?;
            let own = member.result.first_rounds(own);
            let few = || "too few rounds for an interval".to_owned();
            mean_interval(&own, confidence).ok_or_else(few)
        }
    })
    .within(range)
}

/// Returns the ratio of one figure to another of the same entrant, for each entrant and race.
pub(super) fn shares(
    suite: &Suite,
    members: &[&Member],
    scope: &Scope,
    ([figure, whole], range): ([&str; 2], Range),
    of: &[String],
) -> Found {
    each(suite, members, scope, of, |count| {
        let rule = rule(count);
        move |member, allocator| {
            let own = figure_of(member, allocator, figure)?;
            let whole = figure_of(member, allocator, whole)?;
            within_rounds(rule.compare(&own, &whole, resolution(figure)))
        }
    })
    .within(range)
}

/// Returns one part for each entrant and each race in which it took part. `rule` receives the
/// number of parts, and returns the function that computes the interval of one part.
fn each<F>(
    suite: &Suite,
    members: &[&Member],
    scope: &Scope,
    of: &[String],
    rule: impl FnOnce(usize) -> F,
) -> Found
where
    F: Fn(&Member, &str) -> Result<Interval, String>,
{
    let (of, absent) = available(suite, of);
    if of.is_empty() {
        return cannot(&absent, &[]);
    }
    let members = match in_scope(suite, members, scope) {
        Ok(members) => members,
        Err(found) => return found,
    };
    let all = members
        .iter()
        .flat_map(|member| of.iter().map(|one| (*member, *one)));
    let all: Vec<_> = all
        .filter(|(member, one)| takes_part(member, one))
        .collect();
    let find = rule(all.len().max(1));
    let part = |(member, one): &(&Member, Available<'_>)| Part {
        label: format!("{} in {}", one.0.name, place(member)),
        found: find(member, one.1),
        range: Range::default(),
        unless: None,
    };
    Found::Parts {
        parts: all.iter().map(part).collect(),
        absent,
    }
}

/// Returns one part for the degradation of each entrant in `of`.
pub(super) fn degradations(
    suite: &Suite,
    members: &[&Member],
    between: &Sizes,
    range: Range,
    of: &[String],
) -> Found {
    let (of, absent) = available(suite, of);
    if of.is_empty() {
        return cannot(&absent, &[]);
    }
    let Some((both, ratio)) = sized(suite, members, between) else {
        return not_run(&[&between.large, &between.small]);
    };
    let confidence = 1.0 - ALPHA / of.len() as f64;
    let part = |one: &Available<'_>| Part {
        label: format!("degradation of {}", one.0.name),
        found: degradation(both, one.1, ratio, confidence)
            .ok_or_else(|| "it has too few runs in one of the cells".to_owned()),
        range,
        unless: None,
    };
    Found::Parts {
        parts: of.iter().map(part).collect(),
        absent,
    }
}

/// Returns the ratio of the large cell's data to the small cell's.
///
/// The data are counted, so the ratio is exact.
pub(super) fn data_ratios(
    suite: &Suite,
    members: &[&Member],
    between: &Sizes,
    range: Range,
) -> Found {
    let Some((_, ratio)) = sized(suite, members, between) else {
        return not_run(&[&between.large, &between.small]);
    };
    let part = Part {
        label: "size of the data, large over small,".to_owned(),
        found: Ok(Interval {
            estimate: ratio,
            low: ratio,
            high: ratio,
        }),
        range,
        unless: None,
    };
    Found::Parts {
        parts: vec![part],
        absent: Vec::new(),
    }
}

/// Returns the first race of the large cell and that of the small cell, with the ratio of their
/// data; `None` if a cell has no race or its size is unknown.
pub(super) fn sized<'a>(
    suite: &Suite,
    members: &[&'a Member],
    between: &Sizes,
) -> Option<([&'a Member; 2], f64)> {
    let both = pair(suite, [&between.large, &between.small], members)?;
    Some((both, data_ratio(suite, both, &between.size)?))
}

/// Returns the races in a claim's scope. If there are none, returns evidence that the cells were
/// not run, or that the claim cannot be tested because no race has one of its values.
pub(super) fn in_scope<'a>(
    suite: &Suite,
    members: &[&'a Member],
    scope: &Scope,
) -> Result<Vec<&'a Member>, Found> {
    let cells = scope.cells.iter();
    let run: Vec<&Member> = cells
        .flat_map(|cell| of_cell(members, &suite.name, cell))
        .collect();
    if run.is_empty() {
        let names: Vec<&str> = scope.cells.iter().map(String::as_str).collect();
        return Err(not_run(&names));
    }
    if scope.at.is_empty() {
        return Ok(run);
    }
    let fits = |member: &&Member| member.swept.is_some_and(|value| scope.at.contains(&value));
    let found: Vec<&Member> = run.into_iter().filter(fits).collect();
    if found.is_empty() {
        let values: Vec<String> = scope.at.iter().map(u64::to_string).collect();
        return Err(Found::Untestable(format!(
            "it refers to {} {}, which were not run here",
            values.join(", "),
            parameter(suite, scope)
        )));
    }
    Ok(found)
}

/// Lists the values of the sweep to which the claim refers but for which its cells have no race.
pub(super) fn left_out(suite: &Suite, members: &[&Member], scope: &Scope) -> Option<String> {
    let cells = scope.cells.iter();
    let run: Vec<Option<u64>> = cells
        .flat_map(|cell| of_cell(members, &suite.name, cell))
        .map(|member| member.swept)
        .collect();
    let values: Vec<String> = scope
        .at
        .iter()
        .filter(|value| !run.contains(&Some(**value)))
        .map(u64::to_string)
        .collect();
    (!values.is_empty()).then(|| format!("{} {}", values.join(", "), parameter(suite, scope)))
}

/// Returns the claim's cells that were not run, and its named entrants that are available but raced
/// in none of its cells.
pub(super) fn unrun<'a>(suite: &'a Suite, members: &[&Member], test: &'a Test) -> Vec<&'a str> {
    let Some(scope) = test.scope() else {
        return Vec::new();
    };
    let runs = |cell: &String| of_cell(members, &suite.name, cell);
    let cells = scope.cells.iter().filter(|cell| runs(cell).is_empty());
    let run: Vec<&Member> = scope.cells.iter().flat_map(runs).collect();
    let (named, _) = available(
        suite,
        &test.entrants().into_iter().cloned().collect::<Vec<_>>(),
    );
    let out = named
        .into_iter()
        .filter(|entrant| !run.iter().any(|it| takes_part(it, entrant)));
    let names = out.map(|(entrant, _)| entrant.name.as_str());
    cells.map(String::as_str).chain(names).collect()
}

/// Returns the parameter that the cells of a claim sweep.
fn parameter<'a>(suite: &'a Suite, scope: &Scope) -> &'a str {
    let mut cells = scope.cells.iter();
    let sweep = cells.find_map(|cell| suite.cell(cell)?.sweep.as_ref());
    sweep.map_or("", |sweep| &sweep.parameter)
}

fn not_run(cells: &[&str]) -> Found {
    Found::NotRun(format!("not run: {}", cells.join(", ")))
}

pub(super) fn cannot(absent: &[String], more: &[String]) -> Found {
    let names: Vec<&str> = absent.iter().chain(more).map(String::as_str).collect();
    Found::Untestable(format!("not available here: {}", names.join(", ")))
}

fn figure_of(member: &Member, allocator: &str, figure: &str) -> Result<Vec<f64>, String> {
    let row = member.result.row(allocator);
    let found = row.and_then(|row| row.samples(figure));
    found.ok_or_else(|| format!("{allocator} {}", missing(&member.result, allocator)))
}

/// Returns the interval of an estimate that pairs the rounds of one race.
///
/// # Errors
/// When `found` is `None`, because there are too few rounds. The error describes this in words.
pub fn within_rounds(found: Option<Estimate>) -> Result<Interval, String> {
    let few = || format!("fewer than {FEWEST_ROUNDS} rounds give no interval");
    let found = found.ok_or_else(few)?;
    Ok(Interval {
        estimate: found.ratio,
        low: found.low,
        high: found.high,
    })
}

/// Returns the name of a member's cell without the suite, with the swept value if there is one.
pub(super) fn place(member: &Member) -> String {
    let cell = member.cell.split_once('/').map_or("", |(_, cell)| cell);
    match member.swept {
        Some(value) => format!("{cell} at {value}"),
        None => cell.to_owned(),
    }
}

impl Found {
    /// Sets the range of every part.
    fn within(mut self, range: Range) -> Self {
        if let Self::Parts { parts, .. } = &mut self {
            for part in parts {
                part.range = range;
            }
        }
        self
    }
}
