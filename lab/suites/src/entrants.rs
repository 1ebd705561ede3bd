//! Entrants that race, and one of them beside others.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use heapdrome_schema::{Member, Role, Status, resolution};
use heapdrome_statistics::{Estimate, Interval, Rounds, Rule, geometric_mean, mean, median};

use crate::claim::EVERYONE;
use crate::{Entrant, Suite};

/// An entrant with its name in the registry.
pub(crate) type Available<'a> = (&'a Entrant, &'a str);

/// Probability that any interval of one column of a table does not hold the true figure.
pub const ALPHA: f64 = 0.05;

/// The rule for so many comparisons. Its boundary is computed once: a report asks for the same rule
/// in hundreds of races.
pub fn rule(comparisons: usize) -> Rule {
    static RULES: LazyLock<Mutex<BTreeMap<usize, Rule>>> = LazyLock::new(Mutex::default);
    let mut rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = rules.entry(comparisons);
    let new = || Rule::new(ALPHA, comparisons);
    known.or_insert_with(new).clone()
}

/// The entrants of these names that have an allocator, and the names of those that have none. Of
/// everyone, only those that the document has and that are here.
pub(crate) fn available<'a>(
    suite: &'a Suite,
    names: &[String],
) -> (Vec<Available<'a>>, Vec<String>) {
    let own = |one: &'a Entrant| Some((one, one.allocator.as_deref()?));
    if names.iter().any(|name| name == EVERYONE) {
        let document = suite.entrants.iter().filter(|one| !one.added);
        return (document.filter_map(own).collect(), Vec::new());
    }
    let named = names.iter().filter_map(|name| suite.entrant(name));
    let (here, gone): (Vec<_>, Vec<_>) = named.partition(|one| one.allocator.is_some());
    let gone = gone.iter().map(|one| one.name.clone()).collect();
    (here.into_iter().filter_map(own).collect(), gone)
}

/// Whether an entrant was in a race, whatever came of it.
pub(crate) fn takes_part(member: &Member, entrant: &Available<'_>) -> bool {
    let mut rows = member.result.entrants.iter();
    rows.any(|row| row.allocator == entrant.1)
}

/// The samples of a figure of an allocator in a race, if its row counts.
pub(crate) fn figure_of(member: &Member, allocator: &str, figure: &str) -> Option<Vec<f64>> {
    member.result.row(allocator)?.samples(figure)
}

/// Those of them that lie in the rounds that every entrant ran.
pub(crate) fn first_rounds_of(member: &Member, allocator: &str, figure: &str) -> Option<Vec<f64>> {
    figure_of(member, allocator, figure).map(|samples| member.result.first_rounds(samples))
}

/// Which rounds of a race count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// All that both entrants ran.
    Whole,
    /// Those that every entrant ran.
    First,
}

/// The figure of one allocator over that of another, by the rounds of a race; all others that ran
/// it say what each round was like. `None` where a row does not count, or there are too few rounds.
pub(crate) fn compare(
    member: &Member,
    rule: &Rule,
    [of, to]: [&str; 2],
    figure: &str,
    span: Span,
) -> Option<Estimate> {
    let result = &member.result;
    let rows = result.entrants.iter();
    let counting = rows.filter(|row| row.status == Status::Ok);
    let (rows, samples): (Vec<_>, Vec<Vec<f64>>) = counting
        .filter_map(|row| {
            let samples = row.samples(figure)?;
            let samples = match span {
                Span::Whole => samples,
                Span::First => result.first_rounds(samples),
            };
            Some((row, samples))
        })
        .unzip();
    let place = |role: fn(Role) -> bool, name: &str| {
        let mut rows = rows.iter();
        rows.position(|row| role(row.role) && row.allocator == name)
    };
    let own = |name: &str| place(|role| role != Role::Twin, name);
    let twin = place(|role| role == Role::Twin, &result.baseline);
    let twin = own(&result.baseline).zip(twin).map(<[usize; 2]>::from);
    let samples = samples.iter().map(Vec::as_slice);
    let rounds = Rounds::new(samples, twin, resolution(figure));
    rule.compare_within(&rounds, own(of)?, own(to)?)
}

/// One allocator's figure over another's, within the rounds of one race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    /// The other one.
    pub(crate) other: Available<'a>,
    /// The ratio of the means, whatever the number of rounds.
    pub(crate) bare: f64,
    /// The ratio with its interval, where there are rounds enough.
    pub(crate) found: Option<Estimate>,
}

impl Pair<'_> {
    /// The interval, where there is one.
    pub(crate) fn interval(&self) -> Option<Interval> {
        self.found.map(|found| Interval {
            estimate: found.ratio,
            low: found.low,
            high: found.high,
        })
    }
}

/// An allocator beside each of `to` whose row counts; their intervals hold together.
pub(crate) fn pairs<'a>(
    member: &Member,
    of: &str,
    to: &[Available<'a>],
    figure: &str,
) -> Vec<Pair<'a>> {
    pairs_within(Span::Whole, member, of, to, figure)
}

/// As [`pairs`], by the rounds of `span`.
fn pairs_within<'a>(
    span: Span,
    member: &Member,
    of: &str,
    to: &[Available<'a>],
    figure: &str,
) -> Vec<Pair<'a>> {
    let samples = match span {
        Span::Whole => figure_of,
        Span::First => first_rounds_of,
    };
    let Some(own) = samples(member, of, figure) else {
        return Vec::new();
    };
    let others = to.iter().filter(|other| other.1 != of);
    let others: Vec<_> = others
        .filter_map(|other| Some((*other, samples(member, other.1, figure)?)))
        .collect();
    let rule = rule(others.len());
    let pair = |(other, theirs): (Available<'a>, Vec<f64>)| {
        Some(Pair {
            other,
            bare: mean(&own)? / mean(&theirs)?,
            found: compare(member, &rule, [of, other.1], figure, span),
        })
    };
    others.into_iter().filter_map(pair).collect()
}

/// Whichever of `to` has the least of a figure in a race, by the median.
pub(crate) fn least<'a>(
    member: &Member,
    to: &[Available<'a>],
    figure: &str,
) -> Option<Available<'a>> {
    let middle = |entrant: &Available<'a>| {
        let own = first_rounds_of(member, entrant.1, figure)?;
        Some((median(&own)?, *entrant))
    };
    let found = to.iter().filter_map(middle);
    let least = found.min_by(|one, other| one.0.total_cmp(&other.0));
    least.map(|(_, entrant)| entrant)
}

/// One allocator's figure over others', as a geometric mean over races.
pub(crate) struct Mean {
    /// The mean of the bare ratios.
    pub(crate) bare: f64,
    /// The mean with its interval, where every race has rounds enough.
    pub(crate) found: Option<Interval>,
    /// The races that both have.
    pub(crate) races: usize,
}

/// The geometric mean over `members` of an allocator's figure over that of whichever one of `to`
/// has the least of it in each race. The interval is one of `comparisons` that hold together, and
/// as many again as there are to choose from. It is for one look, so that it rests on the rounds
/// that every entrant ran. `None` where no race has both.
pub(crate) fn mean_over_least(
    members: &[&Member],
    of: &str,
    to: &[Available<'_>],
    figure: &str,
    comparisons: usize,
) -> Option<Mean> {
    let pair = |member: &&Member| {
        let chosen = least(member, to, figure)?;
        pairs_within(Span::First, member, of, &[chosen], figure)
            .first()
            .copied()
    };
    let found: Vec<Pair<'_>> = members.iter().filter_map(pair).collect();
    let logs: Vec<f64> = found.iter().map(|pair| pair.bare.ln()).collect();
    let estimates: Option<Vec<Estimate>> = found.iter().map(|pair| pair.found).collect();
    let choices = (comparisons.max(1) * to.len().max(1)) as f64;
    Some(Mean {
        bare: mean(&logs)?.exp(),
        found: estimates.and_then(|all| geometric_mean(&all, 1.0 - ALPHA / choices)),
        races: found.len(),
    })
}
