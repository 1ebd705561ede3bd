//! The claim that an allocator catches more kinds of misuse than others.
//!
//! Each kind was committed once under each allocator, so these are counts without intervals.

use heapdrome_schema::{Holds, MisuseRun};

use crate::Suite;
use crate::entrants::{Available, available};
use crate::misuse::{Caught, caught};

/// Returns the verdict on the claim that each entrant of `of` catches more kinds than each of `to`,
/// with the counts.
pub(super) fn judge(
    suite: &Suite,
    runs: &[MisuseRun],
    [of, to]: [&Vec<String>; 2],
) -> (Holds, String) {
    let (of, absent_of) = available(suite, of);
    let (to, absent_to) = available(suite, to);
    let absent: Vec<String> = absent_of.into_iter().chain(absent_to).collect();
    let count = |one: &Available<'_>| (one.0.name.clone(), caught(runs, one.1));
    let of: Vec<(String, Option<Caught>)> = of.iter().map(count).collect();
    let to: Vec<(String, Option<Caught>)> = to.iter().map(count).collect();
    let own: Vec<&Caught> = of.iter().filter_map(|(_, found)| found.as_ref()).collect();
    let others: Vec<&Caught> = to.iter().filter_map(|(_, found)| found.as_ref()).collect();
    let fails = |one: &&Caught| others.iter().any(|other| one.all() <= other.all());
    let tried = own.len() == of.len() && others.len() == to.len();
    let holds = match (own.iter().any(fails), absent.is_empty()) {
        (true, _) => Holds::NotHeld,
        (false, false) => Holds::CannotBeTested,
        (false, true) if tried => Holds::Held,
        (false, true) => Holds::Undecided,
    };
    let tell = |(name, found): &(String, Option<Caught>)| match found {
        None => format!("{name} was not tried"),
        Some(found) => format!("{name} {found}"),
    };
    let mut told: Vec<String> = of.iter().chain(&to).map(tell).collect();
    if !absent.is_empty() {
        told.push(format!("not available here: {}", absent.join(", ")));
    }
    (holds, told.join("; "))
}
