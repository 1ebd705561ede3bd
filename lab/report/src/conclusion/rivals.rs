//! The rivals of a race, and how each stands beside the baseline on the judged figures.

use heapdrome_record::{Comparison, EntrantResult, Role, Verdict};

use crate::foreign;
use crate::sheet::{CPU, PEAK_RSS, PEAK_TREE, Sheet, WALL, versus};
use crate::words;

/// A ratio whose interval lies within this share of 1 makes no difference that matters.
const NEAR: f64 = 0.02;

/// [`NEAR`] as a percentage.
pub(super) fn near() -> String {
    format!("{:.0}%", 100.0 * NEAR)
}

/// A figure on which a race is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Wall time of the command.
    Wall,
    /// User and system time together.
    Processor,
    /// Peak memory of the largest process, or of the tree where no run has that.
    Memory,
}

impl Figure {
    /// All of them, those that a reader asks for first before the others.
    pub(crate) const ALL: [Self; 3] = [Self::Wall, Self::Processor, Self::Memory];

    /// The figure's name in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall time",
            Self::Processor => "processor time",
            Self::Memory => "peak memory",
        }
    }

    /// The comparison of `entrant` with the baseline on this figure.
    pub(crate) fn versus<'a>(
        self,
        sheet: &Sheet<'_>,
        entrant: &'a EntrantResult,
    ) -> Option<&'a Comparison> {
        match self {
            Self::Wall => versus(entrant, WALL),
            Self::Processor => versus(entrant, CPU),
            Self::Memory => versus(entrant, sheet.peak()),
        }
    }
}

impl Sheet<'_> {
    /// The key of the peak that this race compares.
    pub(crate) fn peak(&self) -> &'static str {
        let has_rss = |rival: &EntrantResult| versus(rival, PEAK_RSS).is_some();
        match self.rivals().any(has_rss) {
            true => PEAK_RSS,
            false => PEAK_TREE,
        }
    }
}

/// How a rival stands beside the baseline on one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Shown to be better.
    Better,
    /// Shown to be worse.
    Worse,
    /// Not shown to differ, and within [`NEAR`] of the baseline.
    Same,
    /// Not shown to differ, and not shown to be near.
    Open,
    /// Not compared.
    Unknown,
}

/// A rival that counts and was compared on a time.
#[derive(Clone, Copy)]
pub(super) struct Rival<'a> {
    pub(super) entrant: &'a EntrantResult,
    compared: [Option<&'a Comparison>; 3],
}

/// The rivals whose times were compared, the fastest first.
pub(super) fn compared<'a>(sheet: &Sheet<'a>) -> Vec<Rival<'a>> {
    let rival = |entrant: &'a EntrantResult| Rival {
        entrant,
        compared: Figure::ALL.map(|figure| figure.versus(sheet, entrant)),
    };
    let timed = |rival: &Rival<'_>| {
        let times = [Figure::Wall, Figure::Processor];
        times.iter().any(|time| rival.on(*time).is_some())
    };
    sheet.rivals().map(rival).filter(timed).collect()
}

impl<'a> Rival<'a> {
    pub(super) fn name(&self) -> String {
        foreign::name(&self.entrant.allocator)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.entrant, other.entrant)
    }

    pub(super) fn on(&self, figure: Figure) -> Option<&'a Comparison> {
        self.compared[figure as usize]
    }

    pub(super) fn ratio(&self, figure: Figure) -> f64 {
        self.on(figure).map_or(f64::INFINITY, |one| one.ratio)
    }

    pub(super) fn standing(&self, figure: Figure) -> Standing {
        let Some(compared) = self.on(figure) else {
            return Standing::Unknown;
        };
        match compared.verdict {
            Verdict::Faster | Verdict::Less => Standing::Better,
            Verdict::Slower | Verdict::More => Standing::Worse,
            Verdict::Undecided if is_near(compared) => Standing::Same,
            Verdict::Undecided => Standing::Open,
        }
    }

    /// Whether no interval of a time reaches further than [`NEAR`] from the baseline.
    pub(super) fn takes_the_same_time(&self) -> bool {
        let times = [Figure::Wall, Figure::Processor];
        let mut known = times.iter().filter_map(|time| self.on(*time));
        known.all(is_near)
    }

    /// Whether the interval of this figure reaches no further than [`NEAR`] from the baseline.
    pub(super) fn is_near(&self, figure: Figure) -> bool {
        self.on(figure).is_some_and(is_near)
    }

    /// Whether it was shown to take more time than the baseline, by as much as matters.
    pub(super) fn is_slower(&self) -> bool {
        let times = [Figure::Wall, Figure::Processor];
        times
            .iter()
            .any(|time| self.standing(*time) == Standing::Worse && !self.is_near(*time))
    }

    /// Whether it was shown to take less of this figure than the other, both compared with the baseline.
    pub(super) fn is_below(&self, other: &Self, figure: Figure) -> bool {
        let both = self.on(figure).zip(other.on(figure));
        both.is_some_and(|(own, other)| own.high < other.low)
    }

    /// Whether neither was shown to take less time than the other.
    pub(super) fn is_as_fast_as(&self, other: &Self) -> bool {
        let times = [Figure::Wall, Figure::Processor];
        times
            .iter()
            .all(|time| !self.is_below(other, *time) && !other.is_below(self, *time))
    }

    /// Whether it is the baseline's allocator with other settings, so that nothing is installed for it.
    pub(super) fn is_setting(&self, sheet: &Sheet<'_>) -> bool {
        let mut rows = sheet.result.entrants.iter();
        let baseline = rows.find(|row| row.role == Role::Baseline);
        baseline.is_some_and(|baseline| {
            self.entrant.library == baseline.library && self.entrant.settings != baseline.settings
        })
    }

    /// The verdict on each figure: `wall time 1.50x faster (1.48 to 1.51), peak memory undecided (0.99 to 1.04)`.
    pub(super) fn figures(&self) -> String {
        let told = Figure::ALL.iter().filter_map(|figure| {
            let compared = self.on(*figure)?;
            let verdict = match self.standing(*figure) {
                Standing::Same => format!("the same within {}", near()),
                Standing::Open => format!("undecided ({})", words::interval(compared)),
                _ => words::comparison(compared, true),
            };
            Some(format!("{} {verdict}", figure.name()))
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

fn is_near(compared: &Comparison) -> bool {
    compared.low >= 1.0 / (1.0 + NEAR) && compared.high <= 1.0 + NEAR
}
