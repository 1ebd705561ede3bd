//! The entrant that a race recommends.

use heapdrome_schema::{Bytes, Output, Role};

use super::rivals::{Figure, Rival, Standing};
use super::{Advice, Conclusion, is_as_is, sees_time, twin};
use crate::entrant::settings;
use crate::sheet::Sheet;
use crate::words::{self, listed};

/// An entrant to take.
pub(super) struct Choice<'a> {
    pub(super) rival: Rival<'a>,
    gain: Figure,
    is_setting: bool,
    /// Those that reach the same.
    pub(super) equals: Vec<Rival<'a>>,
}

/// Who to take: the fastest of those shown to be faster, else the smallest of those shown to be smaller. Where the
/// baseline's allocator reaches the same by a setting, that is the cheaper change.
pub(super) fn choice<'a>(sheet: &Sheet<'_>, rivals: &[Rival<'a>]) -> Option<Choice<'a>> {
    let (gain, good) = candidates(sheet, rivals)?;
    let best = best(&good, gain)?;
    let reaches_it = |one: &Rival<'_>| match gain {
        Figure::Memory => !best.is_below(one, gain),
        _ => one.is_as_fast_as(&best),
    };
    let mut equals: Vec<Rival<'a>> = good.iter().filter(|one| reaches_it(one)).copied().collect();
    let settings = equals.iter().filter(|one| one.is_setting(sheet));
    let setting = settings.min_by(|one, other| one.ratio(gain).total_cmp(&other.ratio(gain)));
    let rival = setting.copied().unwrap_or(best);
    equals.retain(|one| !one.is(&rival));
    Some(Choice {
        is_setting: rival.is_setting(sheet),
        rival,
        gain,
        equals,
    })
}

/// Those that the baseline does not beat and that were shown to be better by as much as matters, and the figure on
/// which they were.
fn candidates<'a>(sheet: &Sheet<'_>, rivals: &[Rival<'a>]) -> Option<(Figure, Vec<Rival<'a>>)> {
    let is_good = |one: &Rival<'_>, gain: Figure| {
        let gains = one.standing(gain) == Standing::Better && one.entrant.proof.is_some();
        gains
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

/// The least on `gain`; of those whose wall time was not shown to be longer than its, the one with the least processor
/// time where that was shown to be less.
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
            why: format!("Against {baseline}: {}{equals}.", self.rival.figures(sheet)),
            sure: self.sure(sheet),
        }
    }

    /// `mimalloc2`; of a setting, what to set.
    fn named(&self) -> String {
        let name = self.rival.name();
        match self.is_setting && !self.rival.entrant.settings.is_empty() {
            true => format!("{name} (set {})", settings(self.rival.entrant)),
            false => name,
        }
    }

    /// The price on other figures: ` if 12% more memory (1.4 MiB) is acceptable`.
    fn price(&self, sheet: &Sheet<'_>) -> String {
        let costs = |figure: Figure| self.rival.standing(figure) == Standing::Worse;
        let mut prices = Vec::new();
        if let Some(compared) = self.rival.on(Figure::Processor)
            && costs(Figure::Processor)
        {
            prices.push(format!(
                "{}x the processor time",
                words::two_decimals(compared.ratio)
            ));
        }
        if let Some(compared) = self.rival.on(Figure::Memory)
            && costs(Figure::Memory)
        {
            let absolute = more_memory(sheet, compared.ratio);
            let absolute = absolute.map_or_else(String::new, |more| format!(" ({more})"));
            let more = words::comparison(compared, false);
            prices.push(format!("{more} memory{absolute}"));
        }
        match prices.len() {
            0 => String::new(),
            1 => format!(" if {} is acceptable", prices[0]),
            _ => format!(" if {} are acceptable", listed(&prices)),
        }
    }

    /// Who reaches the same, and who of them takes less memory.
    fn told_of_equals(&self) -> String {
        let names: Vec<String> = self.equals.iter().map(Rival::name).collect();
        if names.is_empty() {
            return String::new();
        }
        let verb = if names.len() == 1 { "was" } else { "were" };
        let worse = match self.gain {
            Figure::Memory => "to take more",
            _ => "to be slower",
        };
        let told = format!("; {} {verb} not shown {worse} than that", listed(&names));
        let smaller = self
            .equals
            .iter()
            .filter(|one| one.is_below(&self.rival, Figure::Memory));
        let smaller: Vec<String> = smaller.map(Rival::name).collect();
        match smaller.len() {
            0 => told,
            1 => format!("{told}, and {} takes less memory", smaller[0]),
            _ => format!("{told}, and {} take less memory", listed(&smaller)),
        }
    }

    fn sure(&self, sheet: &Sheet<'_>) -> String {
        let rounds = words::count(u64::from(sheet.result.rounds), "round");
        let alpha = sheet.result.alpha;
        let sure = match alpha > 0.0 && alpha < 1.0 {
            true => format!(
                "This is {} sure after {rounds}",
                words::fraction(1.0 - alpha)
            ),
            false => format!("This rests on {rounds}"),
        };
        let doubts = self.doubts(sheet);
        match doubts.is_empty() {
            true => format!("{sure}."),
            false => format!("{sure}, but {}.", listed(&doubts)),
        }
    }

    /// Reasons for care before taking it.
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
                "its lead is near the least that this race could show, so that the true one may be smaller"
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
            doubts.push(format!("{share} of the processor time did not run on it"));
        }
        if !row.known_faults.is_empty() {
            let faults = words::count(row.known_faults.len() as u64, "known fault");
            let name = self.rival.name();
            doubts.push(format!(
                "{name} has {faults} (heapdrome allocators show {name})"
            ));
        }
        doubts
    }
}

/// How many bytes a share more than the baseline's peak is, where that is known.
fn more_memory(sheet: &Sheet<'_>, ratio: f64) -> Option<Bytes> {
    let mut rows = sheet.rows.iter().map(|row| row.entrant);
    let baseline = rows.find(|row| row.role == Role::Baseline)?;
    let peak = Figure::Memory.series(sheet, baseline)?.median;
    Some(Bytes((peak * (ratio - 1.0)) as u64))
}
