//! Conditions such as `--fail-if 'elfmalloc wall > 2%'`: parsing, checking against the results, and
//! judging.

mod possible;

use std::collections::BTreeSet;

use heapdrome_schema::{
    COMMON_FIGURES, Change, Changes, Factor, Judged, Outcome, RacePair, RaceResult,
};

use super::changes::counting;
use super::pairs::{Pair, Pairs};
use crate::failure::Failure;
use heapdrome_schema::nearest_or_all;

/// Word that stands for every rival. If the baseline fails in the new race, that failure also
/// confirms a condition with this word, because no time can be judged without a baseline.
const ANY: &str = "any";

/// Short names of figures, each with the name in a result.
const SHORT: [(&str, &str); 7] = [
    ("wall", "wall_s"),
    ("cpu", "cpu_s"),
    ("user", "user_s"),
    ("system", "system_s"),
    ("peak_rss", "peak_rss_bytes"),
    ("peak_tree", "peak_tree_bytes"),
    ("operations", "operations_per_cpu_s"),
];

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    More,
    Less,
}

/// A condition under which a comparison fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    allocator: String,
    figure: String,
    way: Way,
    /// Ratio of new to old beyond which the condition holds.
    beyond: f64,
}

impl Condition {
    /// Parses a condition such as `elfmalloc wall > 2%`.
    ///
    /// # Errors
    /// When the text is not a condition, or the condition would hold without any change or could
    /// never hold.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let told = |why: &str| {
            Failure::Usage(format!(
                "--fail-if '{text}': {why}; write it as 'elfmalloc wall > 2%' or 'any operations < -5%'"
            ))
        };
        let (left, way, right) = match (text.split_once('>'), text.split_once('<')) {
            (Some((left, right)), None) => (left, Way::More, right),
            (None, Some((left, right))) => (left, Way::Less, right),
            _ => return Err(told("it needs one > or <")),
        };
        let number = right.trim().strip_suffix('%');
        let number = number.ok_or_else(|| told("it must end in a percentage"))?;
        let percent: f64 = number
            .trim()
            .parse()
            .ok()
            .filter(|percent: &f64| percent.is_finite())
            .ok_or_else(|| told(&format!("'{}' is not a number", number.trim())))?;
        match way {
            Way::More if percent < 0.0 => {
                return Err(told("> does not take a negative percentage"));
            }
            Way::Less if percent > 0.0 => {
                return Err(told(
                    "< takes a negative percentage, such as < -5% for a fall",
                ));
            }
            Way::Less if percent <= -100.0 => {
                return Err(told("nothing can fall by 100% or more"));
            }
            _ => {}
        }
        let (allocator, figure) = left
            .trim()
            .rsplit_once(char::is_whitespace)
            .ok_or_else(|| told("it needs an allocator and a figure"))?;
        Ok(Self {
            text: text.trim().to_owned(),
            allocator: allocator.trim().to_owned(),
            figure: long_name(figure).to_owned(),
            way,
            beyond: 1.0 + percent / 100.0,
        })
    }

    /// Checks that both results contain the condition's allocator, and that its figure is a common
    /// one or a metric in both. Also checks that some ratio, or a failure in the new result, could
    /// confirm the condition. Returns the condition.
    ///
    /// # Errors
    /// When a result lacks the allocator or the figure; the message suggests the most similar name.
    /// Also when nothing could confirm the condition.
    pub fn checked(self, pairs: &Pairs<'_>, same_machine: bool) -> Result<Self, Failure> {
        let unknown = |what: &str, name: &str, known: &BTreeSet<String>| {
            Failure::Usage(format!(
                "--fail-if '{}': no such {what} in both results: {name} ({})",
                self.text,
                nearest_or_all(name, known.iter().map(String::as_str))
            ))
        };
        let (allocators, figures) = known(pairs);
        if self.allocator != ANY && !allocators.contains(&self.allocator) {
            return Err(unknown("allocator", &self.allocator, &allocators));
        }
        if !figures.contains(&self.figure) {
            let short = figures.iter().map(|figure| short_name(figure).to_owned());
            return Err(unknown("figure", &self.figure, &short.collect()));
        }
        match self.why_impossible(pairs, same_machine) {
            None => Ok(self),
            Some(why) => Err(Failure::Usage(format!(
                "--fail-if '{}': nothing could confirm it: {why}",
                self.text
            ))),
        }
    }

    /// Judges the condition. Returns the most serious outcome over all races and allocators, with
    /// its reasons.
    pub fn judge(&self, changes: &Changes, pairs: &Pairs<'_>) -> Judged {
        let mut found = self.lost(pairs);
        for (pair, compared) in pairs.pairs.iter().zip(&changes.pairs) {
            let place = compared.cell.as_ref();
            let place = place.map_or(String::new(), |cell| format!(", {cell}"));
            for name in self.failing(pair) {
                let told =
                    format!("{name}{place}: it counted in the old race and fails in the new");
                found.push((Outcome::Confirmed, told));
            }
            let own = compared
                .changes
                .iter()
                .filter(|change| self.means(change, compared));
            for change in own {
                let counting = counting(change, changes.same_machine);
                let outcome = self.outcome(&counting);
                found.push((
                    outcome,
                    format!("{}{place}: {}", change.allocator, told(&counting)),
                ));
            }
        }
        let worst = found.iter().map(|(outcome, _)| *outcome).min_by_key(rank);
        let outcome = worst.unwrap_or(Outcome::Undecided);
        let because = found.into_iter().filter(|(one, _)| *one == outcome);
        let because = because.map(|(_, told)| told).collect();
        Judged {
            condition: self.text.clone(),
            outcome,
            because,
        }
    }

    fn means(&self, change: &Change, pair: &RacePair) -> bool {
        let rival = pair.baseline.as_ref() != Some(&change.allocator);
        change.figure == self.figure
            && (change.allocator == self.allocator || self.allocator == ANY && rival)
    }

    /// Returns a confirmed outcome for each race that has no rounds in the new result, if the
    /// condition's allocator is `any` or has a valid row in the old race.
    fn lost(&self, pairs: &Pairs<'_>) -> Vec<(Outcome, String)> {
        let counted =
            |old: &RaceResult| self.allocator == ANY || old.row(&self.allocator).is_some();
        let lost = pairs.lost.iter().filter(|lost| counted(lost.old));
        let told = |cell: &str| format!("{cell}: it has no complete round in the new result");
        lost.map(|lost| (Outcome::Confirmed, told(&lost.cell)))
            .collect()
    }

    /// Returns the condition's allocators that have a valid row in the old race and fail in the new
    /// one.
    fn failing(&self, pair: &Pair<'_>) -> Vec<String> {
        let meant = |name: &str| name == self.allocator || self.allocator == ANY;
        let out = pair.not_compared().into_iter().map(|(name, _)| name);
        out.filter(|name| meant(name) && pair.fails_now(name))
            .collect()
    }

    /// Returns the outcome for the factors that count: confirmed if all intervals lie beyond the
    /// threshold, ruled out if none extends beyond it, otherwise undecided.
    fn outcome(&self, counting: &[Factor]) -> Outcome {
        let beyond = |factor: &Factor| match self.way {
            Way::More => factor.low > self.beyond,
            Way::Less => factor.high < self.beyond,
        };
        let before = |factor: &Factor| match self.way {
            Way::More => factor.high <= self.beyond,
            Way::Less => factor.low >= self.beyond,
        };
        match counting {
            [] => Outcome::Undecided,
            all if all.iter().all(beyond) => Outcome::Confirmed,
            all if all.iter().all(before) => Outcome::RuledOut,
            _ => Outcome::Undecided,
        }
    }
}

fn told(counting: &[Factor]) -> String {
    let one = |factor: &Factor| {
        // A factor of 10 or more is easier to read than a percentage.
        let percent = |ratio: f64| match ratio {
            ratio if ratio >= 10.0 => format!("{ratio:.0} times as much"),
            ratio => format!("{:+.1}%", 100.0 * (ratio - 1.0)),
        };
        let [low, high] = [factor.low, factor.high].map(percent);
        format!("{} ({low} to {high})", percent(factor.ratio))
    };
    match counting {
        [] => "no valid interval: fewer than five rounds in one of the races, or a time without a \
               baseline for comparison"
            .to_owned(),
        [one_alone] => one(one_alone),
        [itself, beside, ..] => format!(
            "{} itself, {} beside the baseline",
            one(itself),
            one(beside)
        ),
    }
}

/// Returns the rank of an outcome; the most serious outcome ranks first.
fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Confirmed => 0,
        Outcome::Undecided => 1,
        Outcome::RuledOut => 2,
    }
}

/// Returns the names of the allocators and figures that a condition may contain.
fn known(pairs: &Pairs<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut allocators = BTreeSet::new();
    let mut figures: BTreeSet<String> = COMMON_FIGURES.map(str::to_owned).into();
    for pair in &pairs.pairs {
        for both in pair.compared(true) {
            allocators.insert(both.new.allocator.clone());
            let metrics = both.new.metrics.keys();
            figures.extend(
                metrics
                    .filter(|name| both.old.metrics.contains_key(*name))
                    .cloned(),
            );
        }
        let out = pair.not_compared().into_iter().map(|(name, _)| name);
        allocators.extend(out.filter(|name| pair.fails_now(name)));
    }
    (allocators, figures)
}

fn long_name(figure: &str) -> &str {
    let known = SHORT.iter().find(|(short, _)| *short == figure);
    known.map_or(figure, |(_, long)| long)
}

fn short_name(figure: &str) -> &str {
    let known = SHORT.iter().find(|(_, long)| *long == figure);
    known.map_or(figure, |(short, _)| short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Condition {
        Condition::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_condition_is_read() {
        let one = parse("elfmalloc wall > 2%");
        assert_eq!(
            (one.allocator.as_str(), one.figure.as_str()),
            ("elfmalloc", "wall_s")
        );
        assert!((one.beyond - 1.02).abs() < 1e-12 && one.way == Way::More);
        let other = parse("  ./my lib.so  operations<-5 % ");
        assert_eq!(other.allocator, "./my lib.so");
        assert_eq!(other.figure, "operations_per_cpu_s");
        assert!((other.beyond - 0.95).abs() < 1e-12 && other.way == Way::Less);
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for wrong in [
            "",
            "elfmalloc",
            "elfmalloc wall",
            "elfmalloc wall > ",
            "elfmalloc wall > 2",
            "elfmalloc wall > x%",
            "wall > 2%",
            "a wall > 1% < 2%",
            "a wall > -2%",
            "a wall < 2%",
            "a wall < -100%",
            "a wall > nan%",
            "a wall > inf%",
        ] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_lies_wholly_beyond_is_confirmed() {
        let factor = |low, high| Factor {
            ratio: f64::midpoint(low, high),
            low,
            high,
        };
        let more = parse("a wall > 2%");
        assert_eq!(more.outcome(&[factor(1.03, 1.05)]), Outcome::Confirmed);
        assert_eq!(
            more.outcome(&[factor(1.03, 1.05), factor(1.01, 1.05)]),
            Outcome::Undecided
        );
        assert_eq!(
            more.outcome(&[factor(0.97, 1.01), factor(0.9, 1.0)]),
            Outcome::RuledOut
        );
        assert_eq!(more.outcome(&[]), Outcome::Undecided);
        let less = parse("a rps < -5%");
        assert_eq!(less.outcome(&[factor(0.90, 0.94)]), Outcome::Confirmed);
        assert_eq!(less.outcome(&[factor(0.94, 0.96)]), Outcome::Undecided);
        assert_eq!(less.outcome(&[factor(0.99, 1.2)]), Outcome::RuledOut);
    }
}
