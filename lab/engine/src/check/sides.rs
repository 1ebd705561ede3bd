//! Sides of 1 on which the ratios of pairs of entrants lie, in a program and in its replay.

use heapdrome_schema::{Agreement, FidelityCheck, Property};
use heapdrome_statistics::{Estimate, Shown};

use super::order::side;

/// Pair of entrants, with the ratio of the first to the second.
type Pair = ([usize; 2], Estimate);

/// Pairs of entrants that differ in the program by an amount that matters, grouped by the replay's
/// result.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sides {
    /// Number of pairs whose interval in the replay lies on the program's side of 1.
    same: usize,
    /// Pairs whose interval in the replay lies on the other side of 1, or that the replay lacks.
    wrong: Vec<String>,
    /// Pairs whose interval in the replay contains 1.
    open: Vec<String>,
}

impl Sides {
    pub(super) fn of(program: &[Pair], replay: &[Pair], names: &[&str]) -> Self {
        let mut sides = Self::default();
        for (pair, own) in program {
            let expected = side(own);
            if expected == Shown::Nothing {
                continue;
            }
            let theirs = replay.iter().find(|(other, _)| other == pair);
            let theirs = theirs.map(|(_, found)| found);
            let [one, other] = pair.map(|place| names[place]);
            let ratio = theirs.map_or_else(
                || "not measured".to_owned(),
                |found| format!("{:.2}", found.ratio),
            );
            let told = format!("{one}/{other} {:.2} but {ratio}", own.ratio);
            match theirs.map(Estimate::shown) {
                Some(Shown::Nothing) => sides.open.push(told),
                Some(shown) if shown == expected => sides.same += 1,
                _ => sides.wrong.push(told),
            }
        }
        sides
    }

    /// Returns the agreement between the program and its replay in `property`. `compared` is the
    /// number of pairs that were compared in the program.
    pub(super) fn check(&self, property: Property, compared: usize) -> FidelityCheck {
        let differ = self.same + self.wrong.len() + self.open.len();
        let mut replay = format!("{} of {differ} on the same side", self.same);
        if !self.open.is_empty() {
            replay.push_str(&format!(", {} not decided", self.open.len()));
        }
        FidelityCheck {
            property,
            agreement: match [self.wrong.len(), self.same, self.open.len()] {
                [0, 0, 0] => Agreement::NothingToCompare,
                [0, 0, _] => Agreement::NotDecided,
                [0, ..] => Agreement::Within,
                _ => Agreement::Miss,
            },
            program: format!("{differ} of {compared} pairs differ"),
            replay,
            found: self.found(),
            limit: "not on the other side of 1".to_owned(),
        }
    }

    fn found(&self) -> String {
        let open = format!("not decided: {}", self.open.join("; "));
        match (self.wrong.is_empty(), self.open.is_empty()) {
            (true, true) if self.same == 0 => "no difference that matters".to_owned(),
            (true, true) => "same sides".to_owned(),
            (true, false) => open,
            (false, true) => self.wrong.join("; "),
            (false, false) => format!("{}; {open}", self.wrong.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["a", "b"];

    /// Compares one pair, given its interval in the program and its interval in the replay.
    fn compared(program: [f64; 2], replay: Option<[f64; 2]>) -> FidelityCheck {
        let pair = |[low, high]: [f64; 2]| {
            let found = Estimate {
                ratio: f64::midpoint(low, high),
                low,
                high,
                rounds: 10,
                deviation: 0.01,
                floor: 0.0,
            };
            ([0, 1], found)
        };
        let replay: Vec<_> = replay.map(pair).into_iter().collect();
        Sides::of(&[pair(program)], &replay, &NAMES).check(Property::WallTime, 1)
    }

    #[test]
    fn a_difference_that_does_not_matter_is_not_compared() {
        for program in [[1.002, 1.004], [0.985, 0.995], [0.9, 1.3]] {
            let check = compared(program, Some([0.5, 0.6]));
            assert_eq!(check.agreement, Agreement::NothingToCompare, "{program:?}");
            assert_eq!(check.program, "0 of 1 pairs differ");
        }
    }

    #[test]
    fn only_an_interval_on_the_other_side_is_a_miss() {
        let agreement = |replay| compared([1.1, 1.3], replay).agreement;
        assert_eq!(agreement(Some([1.001, 1.1])), Agreement::Within);
        assert_eq!(agreement(Some([0.9, 0.99])), Agreement::Miss);
        assert_eq!(agreement(None), Agreement::Miss);
        let open = compared([1.1, 1.3], Some([0.9, 1.05]));
        assert_eq!(open.agreement, Agreement::NotDecided);
        assert_eq!(open.replay, "0 of 1 on the same side, 1 not decided");
        assert_eq!(open.found, "not decided: a/b 1.20 but 0.98");
    }
}
