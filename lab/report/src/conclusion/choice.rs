//! The entrant that a race recommends.

use heapdrome_schema::{Bytes, Output, Role, Verdict};

use super::rivals::{Figure, Rival, Standing};
use super::{Advice, Conclusion, is_as_is, sees_time, twin};
use crate::entrant::settings;
use crate::foreign;
use crate::reason::HALF;
use crate::sheet::Sheet;
use crate::words::{self, listed};

/// First of heapdrome's own arguments in a race of a suite.
const SUITE: &str = "suite";

/// The entrant that a race recommends, with alternatives.
pub(super) struct Choice<'a> {
    pub(super) rival: Rival<'a>,
    gain: Figure,
    is_setting: bool,
    /// Other entrants that gain on the same figure, and were not shown to differ from the
    /// recommended one: in memory if the gain is in memory, otherwise in any judged speed. Excludes
    /// entrants that left the race early because they were beaten.
    pub(super) equals: Vec<Rival<'a>>,
    /// Another entrant that gains on the same figure, and was shown to use less memory than the
    /// recommended one.
    pub(super) smaller: Option<Rival<'a>>,
    /// The candidate with the best estimate of the gain, if it is not the recommended one.
    first: Option<Rival<'a>>,
}

/// Returns the recommended entrant: the alternative that [`cheaper`] finds, or else the [`best`] of
/// the [`candidates`]. Returns `None` if there is no candidate.
pub(super) fn choice<'a>(sheet: &Sheet<'_>, rivals: &[Rival<'a>]) -> Option<Choice<'a>> {
    let (gain, good) = candidates(sheet, rivals)?;
    let equals_of = |rival: &Rival<'_>| {
        let equals = good.iter().filter(|one| match gain {
            Figure::Memory => !one.is_below(rival, gain) && !rival.is_below(one, gain),
            _ => one.is_as_fast_as(rival),
        });
        let others = equals.filter(|one| !one.is(rival) && !is_beaten(sheet, one));
        others.copied().collect::<Vec<Rival<'a>>>()
    };
    let best = best(&good, gain)?;
    let rival = cheaper(sheet, &best, &equals_of(&best), gain).unwrap_or(best);
    let ratio =
        |one: &&Rival<'a>, other: &&Rival<'a>| one.ratio(gain).total_cmp(&other.ratio(gain));
    let first = good.iter().min_by(ratio).copied();
    Some(Choice {
        first: first.filter(|first| !first.is(&rival)),
        is_setting: rival.is_setting(sheet),
        equals: equals_of(&rival),
        smaller: smaller(&good, &rival, gain),
        rival,
        gain,
    })
}

/// Returns whether an entrant left the race early because it had been shown to be worse. In a
/// suite, an entrant leaves once its targets are decided, whether it is worse or not.
fn is_beaten(sheet: &Sheet<'_>, rival: &Rival<'_>) -> bool {
    let is_of_suite = sheet.result.asked.first().is_some_and(|word| word == SUITE);
    rival.entrant.decided_after.is_some() && !is_of_suite
}

/// Returns the candidate with the lowest [`Rival::cost`], among those shown to use less memory than
/// the recommended one. Returns `None` if there is none, or if the gain is in memory.
fn smaller<'a>(good: &[Rival<'a>], taken: &Rival<'a>, gain: Figure) -> Option<Rival<'a>> {
    let smaller = good
        .iter()
        .filter(|one| one.is_below(taken, Figure::Memory));
    let least = smaller.min_by(|one, other| one.cost(gain).total_cmp(&other.cost(gain)));
    least.filter(|_| gain != Figure::Memory).copied()
}

/// Returns an alternative to the best entrant: one of its equals that reaches at least [`HALF`] of
/// the best entrant's gain. Returns `None` if the best entrant is a setting. Prefers a setting of
/// the baseline's allocator, because a setting is a smaller change than another library. Otherwise,
/// unless the gain is in memory, chooses the lowest [`Rival::cost`] among equals that were shown to
/// use less memory than the best entrant and have a lower cost.
fn cheaper<'a>(
    sheet: &Sheet<'_>,
    best: &Rival<'a>,
    equals: &[Rival<'a>],
    gain: Figure,
) -> Option<Rival<'a>> {
    if best.is_setting(sheet) {
        return None;
    }
    let equals = || {
        let equals = equals.iter();
        equals.filter(|one| one.share_of_gain(best, gain) >= HALF)
    };
    let settings = equals().filter(|one| one.is_setting(sheet));
    let setting = settings.min_by(|one, other| one.ratio(gain).total_cmp(&other.ratio(gain)));
    let smaller = equals().filter(|one| {
        one.is_below(best, Figure::Memory)
            && gain != Figure::Memory
            && one.cost(gain) < best.cost(gain)
    });
    let smaller = smaller.min_by(|one, other| one.cost(gain).total_cmp(&other.cost(gain)));
    setting.or(smaller).copied()
}

/// Returns the first figure on which an eligible entrant was shown to be better by enough to
/// matter, and all eligible entrants that gain on it; `None` if there is none.
///
/// An entrant is eligible only if the result has its proof: the counts of processes and calls that
/// it served. For a gain in processor time, it must not have been shown to be slower in wall time,
/// and for a gain in memory, in any judged speed. If the race could show only large differences in
/// time, an entrant that gains in memory must also have been shown to be as fast as the baseline,
/// in all judged speeds or in processor time.
fn candidates<'a>(sheet: &Sheet<'_>, rivals: &[Rival<'a>]) -> Option<(Figure, Vec<Rival<'a>>)> {
    let is_good = |one: &Rival<'_>, gain: Figure| {
        one.gains(gain)
            && one.entrant.proof.is_some()
            && match gain {
                Figure::Metric | Figure::Wall => true,
                Figure::Processor => one.standing(Figure::Wall) != Standing::Worse,
                Figure::Memory => {
                    !one.is_slower()
                        && (sees_time(sheet)
                            || one.is_as_fast_as_the_baseline()
                            || one.standing(Figure::Processor) == Standing::Same)
                }
            }
    };
    let good = |gain: Figure| {
        let good: Vec<_> = rivals
            .iter()
            .filter(|one| is_good(one, gain))
            .copied()
            .collect();
        (!good.is_empty()).then_some((gain, good))
    };
    Figure::ALL.into_iter().find_map(good)
}

/// Returns the best candidate on `gain`. For wall time, prefers another candidate that was shown to
/// take less processor time and was not shown to take more wall time.
fn best<'a>(good: &[Rival<'a>], gain: Figure) -> Option<Rival<'a>> {
    let least =
        |one: &&Rival<'a>, other: &&Rival<'a>| one.ratio(gain).total_cmp(&other.ratio(gain));
    let first = *good.iter().min_by(least)?;
    if gain != Figure::Wall {
        return Some(first);
    }
    let time = Figure::Processor;
    let below = good
        .iter()
        .filter(|one| !first.is_below(one, Figure::Wall) && one.is_below(&first, time));
    let cheaper = below.min_by(|one, other| one.ratio(time).total_cmp(&other.ratio(time)));
    Some(cheaper.copied().unwrap_or(first))
}

impl<'a> Choice<'a> {
    pub(super) fn conclusion(&self, sheet: &Sheet<'_>) -> Conclusion<'a> {
        let baseline = sheet.baseline();
        let equals = self.told_of_equals();
        Conclusion {
            advice: Advice::Take {
                entrant: self.rival.entrant,
                gain: self.gain,
                is_setting: self.is_setting,
            },
            what: match is_as_is(self.rival.entrant) {
                true => format!("Stay with {}, as the command runs today.", self.named()),
                false => format!("Take {}{}.", self.named(), self.price(sheet)),
            },
            why: format!(
                "{}{equals}Compared with {baseline}: {}.",
                self.preference(),
                self.rival.figures(sheet)
            ),
            sure: self.sure(sheet),
        }
    }

    /// Returns the entrant's name, such as `mimalloc2`. For a setting, the variables to set follow.
    fn named(&self) -> String {
        let name = self.rival.name();
        match self.is_setting && !self.rival.entrant.settings.is_empty() {
            true => format!("{name} (set {})", settings(self.rival.entrant)),
            false => name,
        }
    }

    /// Formats the entrant's cost on other figures and the alternative, such as ` if 12% more
    /// memory (1.4 MiB) is acceptable; else stay with system`. Empty if no cost was shown.
    fn price(&self, sheet: &Sheet<'_>) -> String {
        let costs = |figure: Figure| self.rival.standing(figure) == Standing::Worse;
        let mut prices = Vec::new();
        if let Some(compared) = self.rival.on(Figure::Processor)
            && costs(Figure::Processor)
        {
            let more = words::bare_comparison(compared, false);
            prices.push(format!("{more} processor time"));
        }
        if let Some(compared) = self.rival.on(Figure::Memory)
            && costs(Figure::Memory)
        {
            let absolute = more_memory(sheet, compared.ratio);
            let absolute = absolute.map_or_else(String::new, |more| format!(" ({more})"));
            let more = words::bare_comparison(compared, false);
            prices.push(format!("{more} memory{absolute}"));
        }
        let verb = match prices.len() {
            0 => return String::new(),
            1 => "is",
            _ => "are",
        };
        let smaller = self.smaller.filter(|_| costs(Figure::Memory));
        let otherwise = match &smaller {
            Some(one) => format!("take {} ({})", one.name(), self.told_of_smaller(sheet, one)),
            None => format!("stay with {}", sheet.baseline()),
        };
        format!(
            " if {} {verb} acceptable; else {otherwise}",
            listed(&prices)
        )
    }

    /// Formats the comparison of `one` with the baseline, such as `8.2% less wall time, 3.1% more
    /// memory`.
    fn told_of_smaller(&self, sheet: &Sheet<'_>, one: &Rival<'_>) -> String {
        let told = |figure: Figure, name: &str| {
            let compared = one.on(figure)?;
            let shown = compared.verdict != Verdict::Undecided;
            shown.then(|| format!("{} {name}", words::bare_comparison(compared, false)))
        };
        let gain = told(self.gain, &self.gain.name(sheet));
        let told = gain.into_iter().chain(told(Figure::Memory, "memory"));
        told.collect::<Vec<_>>().join(", ")
    }

    /// Lists the entrants that were not shown to differ from the recommended one, and states which
    /// of them take less or more memory.
    fn told_of_equals(&self) -> String {
        let names = |those: &dyn Fn(&Rival<'_>) -> bool| {
            let those = self.equals.iter().filter(|one| those(one));
            those.map(Rival::name).collect::<Vec<String>>()
        };
        let all = names(&|_| true);
        if all.is_empty() {
            return String::new();
        }
        let rival = &self.rival;
        let memory = [
            (
                names(&|one| one.is_below(rival, Figure::Memory)),
                "less memory",
            ),
            (
                names(&|one| rival.is_below(one, Figure::Memory)),
                "more memory",
            ),
        ];
        let take = |those: &[String]| if those.len() == 1 { "takes" } else { "take" };
        let told = memory.iter().filter(|(those, _)| !those.is_empty());
        let told = told.map(|(those, what)| match those.len() == all.len() {
            true => format!(", but {} {what}", take(those)),
            false => format!("; {} {} {what}", listed(those), take(those)),
        });
        let figure = match self.gain {
            Figure::Memory => "memory",
            _ => "speed",
        };
        let were = if all.len() == 1 { "was" } else { "were" };
        format!(
            "{} {were} not shown to differ from {} in {figure}{}. ",
            listed(&all),
            self.rival.name(),
            told.collect::<String>()
        )
    }

    /// Formats the reason for not recommending the entrant with the best estimate, such as `Unlike
    /// a, the first in the table, b needs no other library. ` Empty if the recommended entrant has
    /// the best estimate. Also empty if the reason is memory, because the sentence on equals states
    /// that reason.
    fn preference(&self) -> String {
        let Some(first) = &self.first else {
            return String::new();
        };
        let why = if self.is_setting {
            "needs no other library"
        } else if self.rival.is_below(first, Figure::Processor) {
            "was shown to take less processor time"
        } else {
            return String::new();
        };
        let lead = match self.gain {
            Figure::Wall => "the first in the table",
            _ => "which has the better estimate",
        };
        let name = self.rival.name();
        format!("Unlike {}, {lead}, {name} {why}. ", first.name())
    }

    fn sure(&self, sheet: &Sheet<'_>) -> String {
        let rounds = words::count(u64::from(sheet.result.rounds), "round");
        let alpha = sheet.result.alpha;
        let sure = match alpha > 0.0 && alpha < 1.0 {
            true => format!(
                "Confidence: {} after {rounds}",
                words::fraction(1.0 - alpha)
            ),
            false => format!("Based on {rounds}"),
        };
        let doubts = self.doubts(sheet);
        let sure = match doubts.is_empty() {
            true => format!("{sure}."),
            false => format!("{sure}, but {}.", listed(&doubts)),
        };
        format!("{sure}{}", self.faults())
    }

    /// Returns the caveats about the recommended entrant.
    fn doubts(&self, sheet: &Sheet<'_>) -> Vec<String> {
        let row = self.rival.entrant;
        let baseline = sheet.baseline();
        let mut doubts: Vec<String> = twin(sheet).into_iter().collect();
        let noise = sheet.result.noise_floor.as_ref();
        let lead = self.rival.on(Figure::Wall).map(|wall| 1.0 - wall.ratio);
        if self.gain == Figure::Wall
            && noise.is_some_and(|noise| lead < Some(noise.smallest_difference))
        {
            doubts.push(
                "its lead is near the smallest detectable difference, so the true lead may be smaller"
                    .to_owned(),
            );
        }
        if row.output == Output::Different {
            doubts.push(format!("its output differs from that under {baseline}"));
        }
        let unserved = row.proof.iter().flat_map(|proof| &proof.unserved);
        let elsewhere: f64 = unserved.map(|one| one.cpu_share).sum();
        if elsewhere > 0.0 {
            let share = words::fraction(elsewhere);
            doubts.push(format!(
                "{share} of the processor time ran in programs that it did not serve"
            ));
        }
        doubts
    }

    /// Formats the known faults of the entrant that this command may trigger; empty if there are
    /// none. If there are several, names only the first and states their number.
    fn faults(&self) -> String {
        let name = self.rival.name();
        match self.rival.entrant.known_faults.as_slice() {
            [] => String::new(),
            [only] => format!(" A known fault of {name}: {}.", foreign::line(only)),
            [first, ..] => format!(
                " {name} has {} known faults (heapdrome allocators show {name}), such as: {}.",
                self.rival.entrant.known_faults.len(),
                foreign::line(first)
            ),
        }
    }
}

/// Converts a ratio to the baseline's peak into additional bytes; `None` if the peak is unknown.
fn more_memory(sheet: &Sheet<'_>, ratio: f64) -> Option<Bytes> {
    let mut rows = sheet.rows.iter().map(|row| row.entrant);
    let baseline = rows.find(|row| row.role == Role::Baseline)?;
    let peak = Figure::Memory.series(sheet, baseline)?.median;
    Some(Bytes((peak * (ratio - 1.0)) as u64))
}
