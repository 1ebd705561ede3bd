//! The ranking as a forest plot. Each entrant has a row with its ratio to the baseline and the
//! interval.

use super::canvas::{self, Anchor, BAND, Label, NAMES, NARROW, WIDTH};
use super::coordinate::n;
use super::look::{Look, Ranking};
use super::measures::{Measure, Ratio};
use super::node::{Node, coloured, element, filled};
use super::scale::{Scale, ratio_text};
use super::{Plot, stem};
use crate::entrant::versus;
use crate::foreign;
use crate::words;
use heapdrome_schema::{Role, WALL};

/// Distance between text and the edge of the paper.
const EDGE: f64 = 4.0;

/// Positions of a forest plot's parts.
struct Layout {
    /// The left and the right edge of the plot.
    plot: [f64; 2],
    /// The upper edge of the first row.
    top: f64,
    /// The height of a row.
    row: f64,
    /// Distance from a row's upper edge to its interval.
    middle: f64,
    /// Whether the drawing is for narrow screens, with the names and the figures above the
    /// intervals.
    is_narrow: bool,
}

const WIDE: Layout = Layout {
    plot: [NAMES + 6.0, 470.0],
    top: 48.0,
    row: 26.0,
    middle: 13.0,
    is_narrow: false,
};

const FOR_NARROW_SCREENS: Layout = Layout {
    plot: [16.0, NARROW - 16.0],
    top: 66.0,
    row: 40.0,
    middle: 28.0,
    is_narrow: true,
};

/// The data of a forest plot.
struct Forest<'a> {
    sheet: &'a Ranking<'a>,
    measure: &'a Measure,
    /// The entrants' positions in the ranking by wall time. They are sorted by this plot's figure,
    /// the best first.
    order: Vec<usize>,
    /// The ratios, in the order of `order`.
    ratios: Vec<Option<Ratio>>,
    noise: Option<[f64; 2]>,
    /// Confidence level of the intervals, such as `95%`; `None` if no ratio has an interval.
    level: Option<String>,
}

/// Returns the forest plot of a figure; `None` if fewer than two entrants have a ratio.
pub(super) fn plot(sheet: &Ranking<'_>, measure: &Measure, prefix: &str) -> Option<Plot> {
    let order = measure.order(sheet);
    let ratios = order.iter().map(|place| measure.ratio(sheet, *place));
    let ratios: Vec<Option<Ratio>> = ratios.collect();
    if ratios.iter().flatten().count() < 2 {
        return None;
    }
    let forest = Forest {
        sheet,
        measure,
        level: level(sheet, &ratios),
        order,
        ratios,
        noise: noise(sheet, measure),
    };
    let name = format!("{prefix}ranking-{}", stem(&measure.id));
    Some(Plot {
        drawing: forest.drawn(&name, &WIDE),
        narrow: Some(forest.drawn(&format!("{name}-narrow"), &FOR_NARROW_SCREENS)),
        name,
        caption: forest.caption(),
        has_curves: false,
    })
}

impl Forest<'_> {
    fn caption(&self) -> String {
        let level = self.level.as_ref();
        let with = level.map_or_else(String::new, |level| format!(" with its {level} interval"));
        let band = match self.noise {
            Some(_) => " The grey band is the baseline against itself: noise.",
            None => "",
        };
        format!(
            "Ranking by {}: ratio to {}{with}; {}.{band}",
            self.measure.title,
            self.sheet.baseline(),
            self.measure.direction()
        )
    }

    fn drawn(&self, name: &str, layout: &Layout) -> Node {
        let scale = scale(&self.ratios, self.noise, layout);
        let height = layout.top + layout.row * self.ratios.len() as f64 + 8.0;
        let label = Label {
            name: name.to_owned(),
            title: format!("Ranking by {}", self.measure.title),
            description: self.described(),
        };
        let row = |(line, (place, ratio)): (usize, (&usize, &Option<Ratio>))| {
            let body = self.row(*place, ratio.as_ref(), &scale, layout);
            let top = layout.top + layout.row * line as f64;
            canvas::row(*place, self.sheet.look(*place), top, layout.row, body)
        };
        let rows = self.order.iter().zip(&self.ratios).enumerate();
        let body = Node::from([
            self.head(&scale, layout),
            behind(&scale, self.noise, [layout.top, height]),
            rows.map(row).collect(),
        ]);
        match layout.is_narrow {
            true => canvas::narrow(&label, height, layout.top, body),
            false => canvas::svg(&label, height, Some(layout.top), body),
        }
    }

    fn head(&self, scale: &Scale, layout: &Layout) -> Node {
        let (title, baseline) = (&self.measure.title, self.sheet.baseline());
        let to = format!(
            "relative to {baseline} (log scale; {})",
            self.measure.direction()
        );
        let up = layout.top - 12.0;
        let labels = scale.ratio_ticks(40.0).into_iter();
        let labels: Vec<_> = labels
            .map(|tick| ([scale.at(tick), up], ratio_text(tick)))
            .collect();
        let titles = match layout.is_narrow {
            true => [
                canvas::text([EDGE, 16.0], Anchor::Start, title),
                canvas::faint([EDGE, 34.0], Anchor::Start, &to),
            ],
            false => [
                canvas::text(
                    [layout.plot[0], 16.0],
                    Anchor::Start,
                    &format!("{title}, {to}"),
                ),
                self.key(up),
            ],
        };
        let told = || canvas::faint([WIDTH - EDGE, up], Anchor::End, "ratio (interval)");
        Node::from([
            titles.into(),
            canvas::faint_all(Anchor::Middle, &labels),
            canvas::head_axis(layout.plot, layout.top - 2.0, &ticks(scale)),
            (!layout.is_narrow).then(told).into(),
        ])
    }

    /// Returns the legend of bars and band. It is part of the drawing, because a file has no
    /// caption.
    fn key(&self, up: f64) -> Node {
        let bars = |level: &String| {
            canvas::faint(
                [EDGE, 16.0],
                Anchor::Start,
                &format!("bars: {level} intervals"),
            )
        };
        let band = |_| canvas::faint([EDGE, up], Anchor::Start, "grey band: noise");
        Node::from([
            self.level.as_ref().map(bars).into(),
            self.noise.map(band).into(),
        ])
    }

    fn row(&self, place: usize, ratio: Option<&Ratio>, scale: &Scale, layout: &Layout) -> Node {
        let name = &self.sheet.rows[place].entrant.allocator;
        let middle = layout.middle;
        let told = told(self.sheet, self.measure, place, ratio);
        let whisker = ratio.map(|ratio| whisker(self.sheet.look(place), ratio, scale, middle));
        let whisker = Node::from(whisker);
        match layout.is_narrow {
            true => Node::from([
                canvas::text([EDGE, 14.0], Anchor::Start, &foreign::short_name(name, 19)),
                canvas::faint([NARROW - EDGE, 14.0], Anchor::End, &told),
                whisker,
            ]),
            false => Node::from([
                canvas::row_name(name, middle + 4.5),
                whisker,
                canvas::faint([WIDTH - EDGE, middle + 4.0], Anchor::End, &told),
            ]),
        }
    }

    /// Describes all rows for a screen reader.
    fn described(&self) -> String {
        let rows = self.order.iter().zip(&self.ratios);
        let rows = rows.map(|(place, ratio)| {
            let name = foreign::name(&self.sheet.rows[*place].entrant.allocator);
            let told = told(self.sheet, self.measure, *place, ratio.as_ref());
            format!("{name}: {told}")
        });
        rows.collect::<Vec<_>>().join("; ")
    }
}

/// Returns the interval of the baseline's twin against the baseline; `None` if it is unknown, or
/// the figure is not wall time.
fn noise(sheet: &Ranking<'_>, measure: &Measure) -> Option<[f64; 2]> {
    let floor = sheet
        .result
        .noise_floor
        .as_ref()
        .filter(|_| measure.key == WALL)?;
    let ends = [floor.baseline_again.low, floor.baseline_again.high];
    ends.iter()
        .all(|end| end.is_finite() && *end > 0.0)
        .then_some(ends)
}

/// Returns the confidence level of the intervals; `None` if no ratio has an interval.
fn level(sheet: &Ranking<'_>, ratios: &[Option<Ratio>]) -> Option<String> {
    let mut ratios = ratios.iter().flatten();
    let any = ratios.any(|ratio| ratio.ends.is_some());
    any.then(|| format!("{}%", ratio_text(100.0 * (1.0 - sheet.result.alpha))))
}

/// Returns a scale that contains every ratio. It contains the intervals only as far as the ratios
/// remain distinguishable.
fn scale(ratios: &[Option<Ratio>], noise: Option<[f64; 2]>, layout: &Layout) -> Scale {
    let parts = |ratio: &Ratio| {
        let [low, high] = ratio.ends.unwrap_or([ratio.at; 2]);
        [ratio.at, low, high]
    };
    let known = ratios.iter().flatten().map(parts);
    // The noise extends the scale like an interval around the baseline's ratio.
    let noise = noise.map(|[low, high]| [1.0, low, high]);
    Scale::logarithmic(
        ratio_range(&known.chain(noise).collect::<Vec<_>>(), 1.03),
        layout.plot,
    )
}

/// Returns the ends of a scale that contains 1 and every ratio. Each of `ratios` is a ratio with
/// the ends of its interval. The scale contains the intervals only as far as the ratios remain
/// distinguishable. `margin` is the factor that extends the scale on both sides.
pub(crate) fn ratio_range(ratios: &[[f64; 3]], margin: f64) -> [f64; 2] {
    let known = || ratios.iter();
    let low = known().fold(1.0, |low: f64, [at, _, _]| low.min(*at));
    let high = known().fold(1.0, |high: f64, [at, _, _]| high.max(*at));
    let [lowest, highest] = known().fold([low, high], |[l, h], [_, a, b]| [l.min(*a), h.max(*b)]);
    let room = (high / low).max(2.0);
    [
        lowest.max(low / room) / margin,
        highest.min(high * room) * margin,
    ]
}

/// Returns the positions of the ticks.
fn ticks(scale: &Scale) -> Vec<f64> {
    let ticks = scale.ratio_ticks(40.0).into_iter();
    ticks.map(|tick| scale.at(tick)).collect()
}

/// Returns the background behind all rows: the noise, the grid, and the line of the baseline.
fn behind(scale: &Scale, noise: Option<[f64; 2]>, [top, height]: [f64; 2]) -> Node {
    let down = |x: f64| [[x, top], [x, height]];
    let grid: Vec<_> = ticks(scale).into_iter().map(down).collect();
    let band = |[low, high]: [f64; 2]| {
        let band = element("rect").with("class", "band");
        let band = band.with("x", n(scale.at(low))).with("y", n(top));
        band.with("width", n(scale.at(high) - scale.at(low)))
            .with("height", n(height - top))
            .with("fill", BAND)
            .into()
    };
    Node::from([
        noise.map(band).into(),
        canvas::grid(&grid),
        canvas::axis(&[down(scale.at(1.0))]),
    ])
}

/// Returns the interval as a line, with a mark at the estimate. An arrow shows that the line
/// continues beyond the paper.
fn whisker(look: Look, ratio: &Ratio, scale: &Scale, middle: f64) -> Node {
    let strokes = |[low, high]: [f64; 2]| {
        let within = [low, high].into_iter().filter(|end| scale.holds(*end));
        let caps = within.map(|end| [[scale.at(end), middle - 4.0], [scale.at(end), middle + 4.0]]);
        let whole = [[scale.at(low), middle], [scale.at(high), middle]];
        canvas::strokes(&std::iter::once(whole).chain(caps).collect::<Vec<_>>())
    };
    let arrow = |(end, way): (f64, f64)| {
        let head = canvas::arrow([scale.at(end), middle], [way, 0.0]);
        (!scale.holds(end)).then(|| filled(head).into())
    };
    let interval = |ends: [f64; 2]| {
        let line = coloured(strokes(ends)).with("stroke-width", "2");
        let ends = [(ends[0], -1.0), (ends[1], 1.0)];
        Node::from([line.into(), ends.into_iter().filter_map(arrow).collect()])
    };
    Node::from([
        ratio.ends.map(interval).into(),
        look.marker([scale.at(ratio.at), middle], 5.0, None),
    ])
}

/// Formats the ratio of a row in the words of the tables; for the baseline, formats its own value.
fn told(sheet: &Ranking<'_>, measure: &Measure, place: usize, ratio: Option<&Ratio>) -> String {
    let entrant = sheet.rows[place].entrant;
    let Some(ratio) = ratio else {
        return words::NONE.to_owned();
    };
    if entrant.role == Role::Baseline {
        let own = measure.values[place]
            .as_ref()
            .map(|values| measure.unit.tell(values.median));
        return own.map_or_else(String::new, |own| format!("1 = {own}"));
    }
    match versus(entrant, &measure.key) {
        Some(compared) if ratio.ends.is_some() => words::plain_ratio(compared),
        _ => format!("{} (no interval)", words::bare_ratio(ratio.at)),
    }
}
