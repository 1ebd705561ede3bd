//! Entrants of a race, and comparisons between them.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use heapdrome_schema::{Member, Role, Status, resolution};
use heapdrome_statistics::{Estimate, Interval, Rounds, Rule, geometric_mean, mean, median};

use crate::claim::EVERYONE;
use crate::{Entrant, Suite};

/// An entrant, with its name in the registry.
pub(crate) type Available<'a> = (&'a Entrant, &'a str);

/// Maximum probability that at least one interval of a family excludes the true figure. A family
/// is, for example, the intervals of one claim, or those of one figure of a race in a table.
pub const ALPHA: f64 = 0.05;

/// Returns the decision rule for this number of simultaneous comparisons. Each rule is computed
/// only once, because a report needs the same rule for hundreds of races.
pub fn rule(comparisons: usize) -> Rule {
    static RULES: LazyLock<Mutex<BTreeMap<usize, Rule>>> = LazyLock::new(Mutex::default);
    let mut rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = rules.entry(comparisons);
    let new = || Rule::new(ALPHA, comparisons);
    known.or_insert_with(new).clone()
}

/// Returns the named entrants that have an allocator, and the names of the entrants that have none.
/// `*` stands for the document's entrants that are available.
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

/// Returns whether an entrant took part in a race, even if it failed.
pub(crate) fn takes_part(member: &Member, entrant: &Available<'_>) -> bool {
    let mut rows = member.result.entrants.iter();
    rows.any(|row| row.allocator == entrant.1)
}

/// Returns the samples of an allocator's figure in a race, if its row is valid and has the figure.
pub(crate) fn figure_of(member: &Member, allocator: &str, figure: &str) -> Option<Vec<f64>> {
    member.result.row(allocator)?.samples(figure)
}

/// Returns the samples of an allocator's figure in the rounds that every entrant ran, if its row is
/// valid and has the figure.
pub(crate) fn first_rounds_of(member: &Member, allocator: &str, figure: &str) -> Option<Vec<f64>> {
    figure_of(member, allocator, figure).map(|samples| member.result.first_rounds(samples))
}

/// Rounds of a race that a comparison uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// All rounds that both entrants ran.
    Whole,
    /// The rounds that every entrant ran.
    First,
}

/// Returns the ratio of one allocator's figure to another's, compared within the rounds of a race.
/// All other entrants help to estimate the effect of each round. Returns `None` if a row is invalid
/// or lacks the figure, or there are too few rounds.
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

/// The ratio of one allocator's figure to another's, within the rounds of one race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    /// Entrant with which the allocator is compared.
    pub(crate) other: Available<'a>,
    /// Ratio of the two figures' means, which exists for any number of rounds.
    pub(crate) bare: f64,
    /// The ratio with its interval, if there are enough rounds.
    pub(crate) found: Option<Estimate>,
}

impl Pair<'_> {
    /// Returns the interval, if one exists.
    pub(crate) fn interval(&self) -> Option<Interval> {
        self.found.map(|found| Interval {
            estimate: found.ratio,
            low: found.low,
            high: found.high,
        })
    }
}

/// Compares an allocator with each other allocator of `to` that has a valid row with the figure.
/// Returns an empty list if the allocator itself has no such row. The intervals are simultaneous.
pub(crate) fn pairs<'a>(
    member: &Member,
    of: &str,
    to: &[Available<'a>],
    figure: &str,
) -> Vec<Pair<'a>> {
    pairs_within(Span::Whole, member, of, to, figure)
}

/// Compares an allocator with each of `to`, in the rounds of `span`.
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

/// Returns the entrant of `to` with the smallest median of a figure in the rounds that every
/// entrant ran; `None` if no valid row has the figure.
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

/// Geometric mean over races of the ratio of one allocator's figure to another's.
pub(crate) struct Mean {
    /// Geometric mean, over the races, of the ratio of the two figures' means.
    pub(crate) bare: f64,
    /// The mean with its interval, if every race has enough rounds.
    pub(crate) found: Option<Interval>,
    /// The number of races with both figures.
    pub(crate) races: usize,
}

/// Returns the geometric mean over `members` of the ratio of an allocator's figure to the smallest
/// figure of `to` in each race.
///
/// The interval is one of `comparisons` simultaneous intervals, and corrects for the choice among
/// `to`. It is valid for a single look, so it uses only the rounds that every entrant ran. Returns
/// `None` if no race has both figures.
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
