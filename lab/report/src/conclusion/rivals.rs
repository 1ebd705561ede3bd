//! The rivals of a race, and their standings against the baseline on the judged figures.

use heapdrome_schema::{
    Better, CPU, Comparison, EntrantResult, PEAK_RSS, Role, Series, Verdict, WALL, spoken,
};

use crate::entrant::{PEAK_TREE, cpu, versus};
use crate::foreign;
use crate::sheet::Sheet;
use crate::words;

/// Margin around 1 within which a ratio does not matter: from `1 / (1 + NEAR)` to `1 + NEAR`.
const NEAR: f64 = 0.02;

/// Formats [`NEAR`] as a percentage.
pub(super) fn near() -> String {
    format!("{:.0}%", 100.0 * NEAR)
}

/// A figure on which a race is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The first judged metric that the command prints.
    Metric,
    /// Wall time of the command.
    Wall,
    /// User and system time together.
    Processor,
    /// Peak memory of the largest process; if no rival was compared on it, peak memory of the
    /// process tree.
    Memory,
}

impl Figure {
    /// All figures, in the order of their importance to a reader.
    pub(super) const ALL: [Self; 4] = [Self::Metric, Self::Wall, Self::Processor, Self::Memory];
    /// The figures that every command has.
    pub(crate) const COMMON: [Self; 3] = [Self::Wall, Self::Processor, Self::Memory];
    /// The figures that measure speed.
    pub(super) const SPEEDS: [Self; 3] = [Self::Metric, Self::Wall, Self::Processor];

    /// Returns the figure's key in the result. The key of `Metric` is empty if the race judges no
    /// metric.
    pub(crate) fn key<'a>(self, sheet: &Sheet<'a>) -> &'a str {
        match self {
            Self::Metric => sheet.judged_metric().unwrap_or_default(),
            Self::Wall => WALL,
            Self::Processor => CPU,
            Self::Memory => sheet.peak(),
        }
    }

    /// Returns the figure's name in a sentence.
    pub(crate) fn name(self, sheet: &Sheet<'_>) -> String {
        match self {
            Self::Memory => spoken(PEAK_RSS).to_owned(),
            figure => foreign::line(spoken(figure.key(sheet))),
        }
    }

    /// Returns the comparison of `entrant` with the baseline on this figure.
    pub(crate) fn versus<'a>(
        self,
        sheet: &Sheet<'_>,
        entrant: &'a EntrantResult,
    ) -> Option<&'a Comparison> {
        versus(entrant, self.key(sheet))
    }

    /// Returns the measurements of `entrant` on this figure.
    pub(crate) fn series(self, sheet: &Sheet<'_>, entrant: &EntrantResult) -> Option<Series> {
        match self {
            Self::Metric => entrant.metrics.get(self.key(sheet)).cloned(),
            Self::Wall => entrant.wall_s.clone(),
            Self::Processor => cpu(entrant),
            Self::Memory if sheet.peak() == PEAK_RSS => entrant.peak_rss_bytes.clone(),
            Self::Memory => entrant.peak_tree_bytes.clone(),
        }
    }

    /// Returns whether verdicts on this figure may determine the conclusion. Memory always may,
    /// because it has its own error probability if it is not judged.
    fn is_judged(self, sheet: &Sheet<'_>) -> bool {
        let judged = &sheet.result.options.judged;
        self == Self::Memory || judged.iter().any(|name| name == self.key(sheet))
    }
}

impl<'a> Sheet<'a> {
    /// Returns the key of the peak memory that this race compares.
    pub(crate) fn peak(&self) -> &'static str {
        let has_rss = |rival: &EntrantResult| versus(rival, PEAK_RSS).is_some();
        match self.rivals().any(has_rss) {
            true => PEAK_RSS,
            false => PEAK_TREE,
        }
    }

    /// Returns the first judged figure that the command prints.
    fn judged_metric(&self) -> Option<&'a str> {
        let common = [WALL, CPU, PEAK_RSS];
        let mut judged = self.result.options.judged.iter().map(String::as_str);
        judged.find(|name| !common.contains(name))
    }

    /// Returns whether a larger value of the judged metric is better.
    fn wants_more(&self) -> bool {
        let metrics = self.result.options.metrics.iter();
        let mut metrics =
            metrics.filter(|metric| Some(metric.name.as_str()) == self.judged_metric());
        metrics.any(|metric| metric.better == Better::Higher)
    }
}

/// The standing of a rival against the baseline on one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Shown to be better, and not shown to be within [`NEAR`] of the baseline.
    Better,
    /// Shown to be worse, and not shown to be within [`NEAR`] of the baseline.
    Worse,
    /// Shown to be within [`NEAR`] of the baseline, so that even a shown difference does not
    /// matter.
    Same,
    /// Neither shown to differ nor shown to be within [`NEAR`] of the baseline.
    Open,
    /// Not judged, or not compared.
    Unknown,
}

/// A rival with a valid row and a comparison of a judged speed, or of memory if time is not judged.
#[derive(Clone, Copy)]
pub(super) struct Rival<'a> {
    pub(super) entrant: &'a EntrantResult,
    compared: [Option<&'a Comparison>; 4],
    judged: [bool; 4],
    /// Whether a larger value of the metric is better.
    wants_more: bool,
}

/// Returns the rivals whose speeds were compared, the fastest first. If the race is a replay that
/// supports no claim on time, returns those whose memory was compared.
pub(super) fn compared<'a>(sheet: &Sheet<'a>) -> Vec<Rival<'a>> {
    let judged = Figure::ALL.map(|figure| figure.is_judged(sheet));
    let rival = |entrant: &'a EntrantResult| Rival {
        entrant,
        compared: Figure::ALL.map(|figure| figure.versus(sheet, entrant)),
        judged,
        wants_more: sheet.wants_more(),
    };
    let rivals = sheet.rivals().map(rival);
    rivals
        .filter(|rival| {
            let timeless = rival.on(Figure::Wall).map(|wall| wall.verdict);
            let by_memory = timeless == Some(Verdict::NotJudged);
            rival.speeds().next().is_some() || by_memory && rival.deciding(Figure::Memory).is_some()
        })
        .collect()
}

impl<'a> Rival<'a> {
    pub(super) fn name(&self) -> String {
        foreign::name(&self.entrant.allocator)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.entrant, other.entrant)
    }

    /// Returns the comparison on a figure, whether judged or not.
    pub(super) fn on(&self, figure: Figure) -> Option<&'a Comparison> {
        self.compared[figure as usize]
    }

    /// Returns the comparison on a figure if its verdict may determine the conclusion: the figure
    /// must be judged, and a replay's speed must support a claim on it.
    fn deciding(&self, figure: Figure) -> Option<&'a Comparison> {
        let judged = |one: &&Comparison| one.verdict != Verdict::NotJudged;
        let known = self.on(figure).filter(judged);
        known.filter(|_| self.judged[figure as usize])
    }

    /// Returns the judged speeds that have a comparison.
    fn speeds(&self) -> impl Iterator<Item = Figure> {
        let known = |figure: &Figure| self.deciding(*figure).is_some();
        Figure::SPEEDS.into_iter().filter(known)
    }

    /// Returns the estimate and the ends of a judged figure's interval, inverted if necessary so
    /// that less is better.
    fn turned(&self, figure: Figure) -> Option<[f64; 3]> {
        let compared = self.deciding(figure)?;
        let Comparison {
            ratio, low, high, ..
        } = *compared;
        Some(match figure == Figure::Metric && self.wants_more {
            true => [1.0 / ratio, 1.0 / high, 1.0 / low],
            false => [ratio, low, high],
        })
    }

    /// Returns the ratio of a judged figure, inverted if necessary so that less is better; infinite
    /// if the ratio is unknown.
    pub(super) fn ratio(&self, figure: Figure) -> f64 {
        self.turned(figure)
            .map_or(f64::INFINITY, |[ratio, ..]| ratio)
    }

    pub(super) fn standing(&self, figure: Figure) -> Standing {
        match self.deciding(figure) {
            None => Standing::Unknown,
            Some(compared) if is_near(compared) => Standing::Same,
            Some(compared) if compared.verdict == Verdict::Undecided => Standing::Open,
            Some(_) if self.is_better(figure) => Standing::Better,
            Some(_) => Standing::Worse,
        }
    }

    /// Returns whether the rival was shown to be better on a judged figure by enough to matter: the
    /// estimate lies beyond [`NEAR`].
    pub(super) fn gains(&self, figure: Figure) -> bool {
        self.standing(figure) == Standing::Better && self.ratio(figure) <= 1.0 / (1.0 + NEAR)
    }

    /// Returns the ratio of this rival's estimated gain to the other's.
    pub(super) fn share_of_gain(&self, other: &Self, figure: Figure) -> f64 {
        (1.0 - self.ratio(figure)) / (1.0 - other.ratio(figure))
    }

    /// Returns the product of the ratios of a speed and of memory. It is the relative cost of a
    /// program if time and memory are both paid for.
    pub(super) fn cost(&self, speed: Figure) -> f64 {
        self.ratio(speed) * self.ratio(Figure::Memory)
    }

    /// Returns whether the rival was shown to be better on a judged figure, even if only slightly.
    pub(super) fn is_better(&self, figure: Figure) -> bool {
        let known = self.deciding(figure);
        let turned = figure == Figure::Metric && self.wants_more;
        known.is_some_and(|compared| match compared.verdict {
            Verdict::Faster => true,
            Verdict::Less => !turned,
            Verdict::More => turned,
            Verdict::Slower | Verdict::Undecided | Verdict::NotJudged => false,
        })
    }

    /// Returns whether the intervals of all judged speeds lie within [`NEAR`] of the baseline.
    pub(super) fn is_as_fast_as_the_baseline(&self) -> bool {
        self.speeds()
            .all(|speed| self.standing(speed) == Standing::Same)
    }

    /// Returns whether the rival was shown to be slower than the baseline on a judged speed, and
    /// not shown to be within [`NEAR`] of it.
    pub(super) fn is_slower(&self) -> bool {
        self.speeds()
            .any(|speed| self.standing(speed) == Standing::Worse)
    }

    /// Returns whether this rival was shown to be lower than the other on this figure: its interval
    /// against the baseline lies wholly below the other's.
    pub(super) fn is_below(&self, other: &Self, figure: Figure) -> bool {
        let both = self.turned(figure).zip(other.turned(figure));
        both.is_some_and(|([_, _, high], [_, low, _])| high < low)
    }

    /// Returns whether neither rival was shown to be faster than the other on a judged speed.
    pub(super) fn is_as_fast_as(&self, other: &Self) -> bool {
        let mut speeds = self.speeds();
        speeds.all(|speed| !self.is_below(other, speed) && !other.is_below(self, speed))
    }

    /// Returns whether the rival is the baseline's allocator with other settings, so that no
    /// library needs to be installed.
    pub(super) fn is_setting(&self, sheet: &Sheet<'_>) -> bool {
        let mut rows = sheet.result.entrants.iter();
        let baseline = rows.find(|row| row.role == Role::Baseline);
        baseline.is_some_and(|baseline| {
            self.entrant.library == baseline.library && self.entrant.settings != baseline.settings
        })
    }

    /// Formats the verdict on each figure, such as `wall time 33% less (32 to 34), peak memory
    /// undecided (0.99 to 1.04)`. Wall and processor time are combined if their verdicts
    /// read the same.
    pub(super) fn figures(&self, sheet: &Sheet<'_>) -> String {
        self.figures_of(sheet, &Figure::ALL)
    }

    /// Formats the verdict on each of these figures, as [`Rival::figures`] does. Omits figures
    /// without a comparison, and those on which a replay supports no claim.
    pub(super) fn figures_of(&self, sheet: &Sheet<'_>, figures: &[Figure]) -> String {
        let verdict = |figure: Figure| {
            let judged = |one: &&Comparison| one.verdict != Verdict::NotJudged;
            let compared = self.on(figure).filter(judged)?;
            Some(match compared.verdict {
                Verdict::Undecided if is_near(compared) => format!("the same within {}", near()),
                Verdict::Undecided => format!("undecided ({})", words::interval(compared)),
                _ => words::comparison(compared, true),
            })
        };
        let wall = verdict(Figure::Wall);
        let together = wall.is_some() && wall == verdict(Figure::Processor);
        let told = figures.iter().filter_map(|figure| {
            let name = match figure {
                Figure::Processor if together => return None,
                Figure::Wall if together => "wall and processor time".to_owned(),
                figure => figure.name(sheet),
            };
            Some(format!("{name} {}", verdict(*figure)?))
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

fn is_near(compared: &Comparison) -> bool {
    compared.low >= 1.0 / (1.0 + NEAR) && compared.high <= 1.0 + NEAR
}
