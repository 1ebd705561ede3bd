//! Geometric means over races as the parts of a claim.

use heapdrome_schema::Member;
use heapdrome_statistics::{FEWEST_ROUNDS, Interval};

use super::evidence::{Found, Part};
use super::parts::{cannot, in_scope, place};
use crate::Suite;
use crate::claim::{Range, Scope};
use crate::entrants::{Available, available, figure_of, mean_over_least, takes_part};
use crate::figures::missing;

/// Returns the geometric mean of the ratio of an entrant's figure to another's, for each pair of an
/// entrant of `of` and an entrant of `to`. With `least`, returns one mean for each entrant of `of`.
/// In each race, that entrant is compared with the entrant of `to` that has the smallest figure.
pub(super) fn means(
    suite: &Suite,
    members: &[&Member],
    scope: &Scope,
    (figure, range, least): (&str, Range, bool),
    [of, to]: [&Vec<String>; 2],
) -> Found {
    let (of, absent_of) = available(suite, of);
    let (to, absent_to) = available(suite, to);
    if of.is_empty() || to.is_empty() {
        return cannot(&absent_of, &absent_to);
    }
    let members = match in_scope(suite, members, scope) {
        Ok(members) => members,
        Err(found) => return found,
    };
    // An entrant that raced nowhere is no choice for which an interval must allow.
    let raced = |one: &Available<'_>| members.iter().any(|member| takes_part(member, one));
    let to: Vec<Available<'_>> = to.into_iter().filter(raced).collect();
    let rivals: Vec<&[Available<'_>]> = match (least, to.is_empty()) {
        (true, false) => vec![&to],
        _ => to.chunks(1).collect(),
    };
    let pairs = of.iter().flat_map(|one| {
        let others = rivals.iter().filter(|rivals| rivals[0].1 != one.1);
        others.map(move |rivals| (*one, *rivals))
    });
    let pairs: Vec<(Available<'_>, &[Available<'_>])> = pairs.collect();
    let part = |(one, rivals): &(Available<'_>, &[Available<'_>])| {
        let (label, found) = mean(&members, *one, rivals, figure, pairs.len());
        Part {
            label,
            found,
            range,
            unless: None,
        }
    };
    Found::Parts {
        parts: pairs.iter().map(part).collect(),
        absent: absent_of.into_iter().chain(absent_to).collect(),
    }
}

/// Returns one mean with its label, or the reason why there is none. Races in which no rival has a
/// valid row are omitted. The entrant's own row must be valid in every race in which it took part.
fn mean(
    members: &[&Member],
    one: Available<'_>,
    rivals: &[Available<'_>],
    figure: &str,
    comparisons: usize,
) -> (String, Result<Interval, String>) {
    let own: Vec<&Member> = members
        .iter()
        .copied()
        .filter(|it| takes_part(it, &one))
        .collect();
    let whom = match rivals {
        [rival] => rival.0.name.clone(),
        rivals => {
            let names: Vec<&str> = rivals.iter().map(|rival| &rival.0.name[..]).collect();
            format!("the least of {}", names.join(", "))
        }
    };
    let label = format!("{} over {whom}", one.0.name);
    let gone = own
        .iter()
        .find(|race| figure_of(race, one.1, figure).is_none());
    if let Some(race) = gone {
        let why = missing(&race.result, one.1);
        return (
            label,
            Err(format!("{} {why} in {}", one.0.name, place(race))),
        );
    }
    match mean_over_least(&own, one.1, rivals, figure, comparisons) {
        None => (label, Err("no race has both".to_owned())),
        Some(mean) => {
            let few = || format!("fewer than {FEWEST_ROUNDS} rounds give no interval");
            let label = format!("{label} in {} of {} races", mean.races, own.len());
            (label, mean.found.ok_or_else(few))
        }
    }
}
