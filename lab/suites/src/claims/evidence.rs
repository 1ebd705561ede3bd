//! Verdicts from intervals, and their wording.

use heapdrome_schema::Holds;
use heapdrome_statistics::Interval;

use crate::claim::{HoldsFor, Range, Side};
use crate::tables::interval;

/// Maximum number of a claim's parts that are listed; the rest is only counted.
const TOLD: usize = 3;

/// The evidence on a claim.
pub(super) enum Found {
    /// The comparisons of the claim, and the entrants that are unavailable here.
    Parts {
        parts: Vec<Part>,
        /// Entrants that the claim names but that are unavailable here.
        absent: Vec<String>,
    },
    /// Reason why the claim cannot be tested on this machine.
    Untestable(String),
    /// Cells of the claim that have not been run, in words.
    NotRun(String),
}

/// One comparison of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Description of the comparison, such as its entrants and its race.
    pub label: String,
    /// The interval, or the reason why there is none.
    pub found: Result<Interval, String>,
    /// The range that the claim states.
    pub range: Range,
    /// Second comparison, whose label is its figure. The part is outside only if both comparisons
    /// are outside their ranges.
    pub unless: Option<Box<Self>>,
}

impl Part {
    /// Returns the position of the interval relative to the claim's range; unclear without an
    /// interval. If it lies outside, the second comparison decides, if there is one.
    pub(super) fn side(&self) -> Side {
        let own = match &self.found {
            Ok(found) => self.range.side(found),
            Err(_) => Side::Unclear,
        };
        match &self.unless {
            Some(unless) if own == Side::Outside => unless.side(),
            _ => own,
        }
    }

    /// Returns whether an interval that the verdict needs is missing.
    fn is_unknown(&self) -> bool {
        let Ok(found) = &self.found else {
            return true;
        };
        let is_outside = self.range.side(found) == Side::Outside;
        is_outside && self.unless.as_ref().is_some_and(|one| one.found.is_err())
    }

    /// Returns the distance of the estimate beyond the range, relative to the nearer end, or
    /// absolute if that end is 0. The distance is negative inside the range, and infinite for a
    /// part without an interval.
    fn excess(&self) -> f64 {
        let Ok(found) = &self.found else {
            return f64::INFINITY;
        };
        let beyond = |end: f64, distance: f64| match end == 0.0 {
            true => distance,
            false => distance / end.abs(),
        };
        let low = self.range.low.map(|low| beyond(low, low - found.estimate));
        let high = self
            .range
            .high
            .map(|high| beyond(high, found.estimate - high));
        low.into_iter()
            .chain(high)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// Formats the comparison with its interval.
    pub(super) fn tell(&self) -> String {
        let own = match &self.found {
            Ok(found) => {
                let found = interval(found.estimate, found.low, found.high);
                format!("{} {found}", self.label)
            }
            Err(why) => format!("{}: {why}", self.label),
        };
        match &self.unless {
            Some(unless) => format!("{own}, {}", unless.tell()),
            None => own,
        }
    }
}

/// Returns the verdict on a claim from its parts, with a text on the comparisons that decided it.
/// `absent` are the named entrants that are unavailable here.
pub fn weigh(parts: &[Part], absent: &[String], holds_for: HoldsFor) -> (Holds, String) {
    let of = |side: Side| -> Vec<&Part> {
        let mut of: Vec<&Part> = parts.iter().filter(|part| part.side() == side).collect();
        of.sort_by(|one, other| other.excess().total_cmp(&one.excess()));
        of
    };
    let [inside, outside, unclear] = [Side::Inside, Side::Outside, Side::Unclear].map(of);
    let (holds, telling, wanted) = decide([&inside, &outside, &unclear], holds_for);
    // An absent entrant could overturn the verdict, so the claim cannot be tested. Two verdicts
    // remain: a contradicted claim on all comparisons, and a confirmed claim on at least one
    // comparison.
    let holds = match holds {
        Holds::Held | Holds::NotHeld if !absent.is_empty() && !settled(holds, holds_for) => {
            Holds::CannotBeTested
        }
        holds => holds,
    };
    let mut because = format!("{wanted}: {}", told(telling));
    if parts.is_empty() {
        "nothing to compare".clone_into(&mut because);
    }
    if !absent.is_empty() {
        because = format!("{because}; not available here: {}", absent.join(", "));
    }
    (holds, because)
}

/// Returns whether no further comparison could overturn a verdict.
fn settled(holds: Holds, holds_for: HoldsFor) -> bool {
    matches!(
        (holds, holds_for),
        (Holds::NotHeld, HoldsFor::All | HoldsFor::Uncontradicted) | (Holds::Held, HoldsFor::Some)
    )
}

/// Adjusts a verdict for the cells and entrants in `unrun`, which could have been run but were not.
/// The result is undecided if running them could overturn the verdict.
pub fn without(
    unrun: &[&str],
    holds_for: HoldsFor,
    (holds, because): (Holds, String),
) -> (Holds, String) {
    if unrun.is_empty() {
        return (holds, because);
    }
    let because = format!("{because}; not run: {}", unrun.join(", "));
    match holds {
        Holds::Held | Holds::NotHeld if !settled(holds, holds_for) => (Holds::Undecided, because),
        holds => (holds, because),
    }
}

/// Returns the verdict, the parts that decided it, and a count of parts in words.
fn decide<'a>(
    [inside, outside, unclear]: [&'a Vec<&'a Part>; 3],
    holds_for: HoldsFor,
) -> (Holds, &'a [&'a Part], String) {
    let all = inside.len() + outside.len() + unclear.len();
    let agree = format!("{} of {all} agree", inside.len());
    let mut contradict = format!("{} of {all} contradict", outside.len());
    for (others, what) in [(inside, "agree"), (unclear, "are open")] {
        if !others.is_empty() {
            contradict = format!("{contradict}, {} {what}", others.len());
        }
    }
    let open = format!("{} of {all} are open", unclear.len());
    let untold = unclear.iter().any(|part| part.is_unknown());
    let held = match holds_for {
        HoldsFor::All => inside.len() == all,
        HoldsFor::Uncontradicted => outside.is_empty() && !untold,
        HoldsFor::Most => 2 * inside.len() > all,
        HoldsFor::Some => !inside.is_empty(),
    };
    let not_held = match holds_for {
        HoldsFor::All | HoldsFor::Uncontradicted => !outside.is_empty(),
        HoldsFor::Most => 2 * outside.len() >= all,
        HoldsFor::Some => outside.len() == all,
    };
    match (held, not_held) {
        _ if all == 0 => (Holds::Undecided, unclear, open),
        (true, _) if holds_for == HoldsFor::Uncontradicted => {
            let nearest = if unclear.is_empty() { inside } else { unclear };
            (Holds::Held, nearest, format!("none of {all} contradicts"))
        }
        (true, _) => (Holds::Held, inside, agree),
        (_, true) => (Holds::NotHeld, outside, contradict),
        _ => (Holds::Undecided, unclear, open),
    }
}

fn told(parts: &[&Part]) -> String {
    let told: Vec<String> = parts.iter().take(TOLD).map(|part| part.tell()).collect();
    let more = match parts.len().checked_sub(TOLD) {
        Some(more) if more > 0 => format!("; and {more} more"),
        _ => String::new(),
    };
    format!("{}{more}", told.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(low: f64, high: f64) -> Part {
        let found = Interval {
            estimate: f64::midpoint(low, high),
            low,
            high,
        };
        Part {
            label: "a over b".to_owned(),
            found: Ok(found),
            range: Range {
                low: Some(1.0),
                high: Some(2.0),
            },
            unless: None,
        }
    }

    fn verdict(parts: &[Part], holds_for: HoldsFor) -> Holds {
        weigh(parts, &[], holds_for).0
    }

    #[test]
    fn all_most_and_some_differ_where_they_should() {
        let inside = || part(1.1, 1.9);
        let outside = || part(2.1, 2.2);
        let unclear = || part(0.9, 1.1);
        for (parts, expected) in [
            (vec![inside(), inside()], [Holds::Held; 3]),
            (vec![outside(), outside()], [Holds::NotHeld; 3]),
            (vec![unclear(), unclear()], [Holds::Undecided; 3]),
            (
                vec![inside(), inside(), outside()],
                [Holds::NotHeld, Holds::Held, Holds::Held],
            ),
            (
                vec![inside(), unclear(), unclear()],
                [Holds::Undecided, Holds::Undecided, Holds::Held],
            ),
            (
                vec![outside(), outside(), unclear()],
                [Holds::NotHeld, Holds::NotHeld, Holds::Undecided],
            ),
        ] {
            let found = [HoldsFor::All, HoldsFor::Most, HoldsFor::Some];
            assert_eq!(found.map(|holds_for| verdict(&parts, holds_for)), expected);
        }
    }

    #[test]
    fn whoever_is_absent_keeps_a_claim_on_all_from_holding_and_not_from_failing() {
        let absent = ["llalloc".to_owned()];
        let (holds, because) = weigh(&[part(1.1, 1.2)], &absent, HoldsFor::All);
        assert_eq!(holds, Holds::CannotBeTested);
        assert!(because.contains("not available here: llalloc"), "{because}");
        let (holds, _) = weigh(&[part(3.0, 4.0)], &absent, HoldsFor::All);
        assert_eq!(holds, Holds::NotHeld);
        for (found, holds_for, expected) in [
            (part(1.1, 1.2), HoldsFor::Most, Holds::CannotBeTested),
            (part(3.0, 4.0), HoldsFor::Most, Holds::CannotBeTested),
            (part(1.1, 1.2), HoldsFor::Some, Holds::Held),
            (part(3.0, 4.0), HoldsFor::Some, Holds::CannotBeTested),
        ] {
            assert_eq!(weigh(&[found], &absent, holds_for).0, expected);
        }
    }

    #[test]
    fn figures_that_decide_are_told_and_many_are_counted() {
        let parts: Vec<Part> = (0..5).map(|_| part(3.0, 5.0)).collect();
        let (_, because) = weigh(&parts, &[], HoldsFor::All);
        assert!(because.starts_with("5 of 5 contradict: a over b 4.000 (3.000 to 5.000)"));
        assert!(because.ends_with("; and 2 more"), "{because}");
        assert_eq!(weigh(&[], &[], HoldsFor::All).0, Holds::Undecided);
    }

    /// A comparison whose second ratio is missing neither contradicts nor confirms.
    #[test]
    fn a_missing_second_ratio_leaves_a_claim_undecided() {
        let with = |unless: Part| Part {
            unless: Some(Box::new(unless)),
            ..part(3.0, 4.0)
        };
        let missing = Part {
            found: Err("no figure".to_owned()),
            ..part(0.0, 0.0)
        };
        for (unless, expected) in [
            (part(3.0, 4.0), Holds::NotHeld),
            (part(1.1, 1.2), Holds::Held),
            (missing, Holds::Undecided),
        ] {
            let found = verdict(&[with(unless)], HoldsFor::Uncontradicted);
            assert_eq!(found, expected);
        }
    }
}
