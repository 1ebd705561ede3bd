//! Every sample as a dot, by round, so that drifts and outliers are visible.

use super::canvas::{self, Anchor, Label, NAMES, WIDTH};
use super::coordinate::n;
use super::look::Ranking;
use super::measures::{Measure, Values};
use super::node::{Node, element, title};
use super::scale::Scale;
use super::{Plot, stem};

/// The left and the right edge of the plot.
const PLOT: [f64; 2] = [NAMES + 50.0, 555.0];
const TOP: f64 = 48.0;
const ROW: f64 = 54.0;
/// Vertical range of the samples in a row: the coordinates of the smallest and the largest value.
const HEIGHTS: [f64; 2] = [ROW - 8.0, 8.0];
/// Maximum ratio of a drawn sample to the median, or of the median to the sample. Dots further away
/// are placed on the edge of the row.
const FARTHEST: f64 = 2.0;

/// Returns the plot of a figure's samples; `None` if no entrant has two of them.
pub(super) fn plot(sheet: &Ranking<'_>, measure: &Measure, prefix: &str) -> Option<Plot> {
    let rounds = known(measure).map(|values| values.samples.len());
    let rounds = rounds.max().filter(|rounds| *rounds >= 2)?;
    let low = parts(measure).fold(0.99, f64::min).max(1.0 / FARTHEST);
    let high = parts(measure).fold(1.01, f64::max).min(FARTHEST);
    let across = Scale::linear([1.0, rounds as f64], [PLOT[0] + 6.0, PLOT[1] - 6.0]);
    let label = Label {
        name: format!("{prefix}samples-{}", stem(&measure.id)),
        title: format!("Samples of {}", measure.title),
        description: described(sheet, measure),
    };
    let row = |(line, place): (usize, usize)| {
        let values = measure.values.get(place).and_then(Option::as_ref);
        let body = row(sheet, measure, place, values, &across, [low, high]);
        canvas::row(place, sheet.look(place), TOP + ROW * line as f64, ROW, body)
    };
    let order = measure.order(sheet).into_iter().enumerate();
    let body = Node::from([
        head(measure, &across),
        behind(sheet.rows.len(), [low, high]),
        order.map(row).collect(),
    ]);
    let height = TOP + ROW * sheet.rows.len() as f64 + 8.0;
    let caption = caption(measure, [low, high]);
    Some(Plot::new(label, caption, height, Some(TOP), body))
}

/// Returns the values that can be drawn relative to their median.
fn known(measure: &Measure) -> impl Iterator<Item = &Values> {
    let values = measure.values.iter().flatten();
    values.filter(|values| values.median > 0.0)
}

/// Returns all samples, each divided by the median of its entrant.
fn parts(measure: &Measure) -> impl Iterator<Item = f64> {
    let parts = known(measure).flat_map(|v| v.samples.iter().map(|sample| sample / v.median));
    parts.filter(|part| part.is_finite())
}

/// Returns the caption. It omits absent series.
fn caption(measure: &Measure, [low, high]: [f64; 2]) -> String {
    let far = match known(measure).any(|values| !values.outliers.is_empty()) {
        true => "; hollow dots are outliers",
        false => "",
    };
    let beyond = match parts(measure).any(|part| !(low..=high).contains(&part)) {
        true => "; triangles lie beyond the row",
        false => "",
    };
    format!(
        "Every sample of {} by round. Each row spans {} of its own median, the dashed line{far}{beyond}.",
        measure.title,
        span(low, high),
    )
}

fn percent(part: f64) -> String {
    format!("{:+.0}%", (part - 1.0) * 100.0).replace('-', "\u{2212}")
}

fn span(low: f64, high: f64) -> String {
    format!("{} to {}", percent(low), percent(high))
}

fn head(measure: &Measure, across: &Scale) -> Node {
    let what = format!("{} relative to its median, by round", measure.title);
    let mut ticks = across.round_ticks(8.0);
    ticks.retain(|tick| tick.fract() == 0.0);
    let places: Vec<f64> = ticks.iter().map(|tick| across.at(*tick)).collect();
    let labels = ticks.iter().zip(&places);
    let labels: Vec<_> = labels.map(|(tick, at)| ([*at, 36.0], n(*tick))).collect();
    Node::from([
        canvas::text([PLOT[0], 16.0], Anchor::Start, &what),
        canvas::faint_all(Anchor::Middle, &labels),
        canvas::head_axis(PLOT, TOP - 2.0, &places),
        canvas::faint([PLOT[0] - 8.0, 36.0], Anchor::End, "round"),
        canvas::faint([WIDTH - 4.0, 36.0], Anchor::End, "median"),
    ])
}

/// Returns the background of each row: its lower edge, its median, and the labels of its range.
fn behind(rows: usize, [low, high]: [f64; 2]) -> Node {
    let tops = || (0..rows).map(|place| TOP + ROW * place as f64);
    let across = |y: f64| [[PLOT[0], y], [PLOT[1], y]];
    let middle = Scale::linear([low, high], HEIGHTS).at(1.0);
    let edges: Vec<_> = tops().map(|top| across(top + ROW)).collect();
    let medians: Vec<_> = tops().map(|top| across(top + middle)).collect();
    let told =
        tops().flat_map(|top| [(top + 14.0, percent(high)), (top + ROW - 5.0, percent(low))]);
    let told: Vec<_> = told.map(|(y, told)| ([PLOT[0] - 6.0, y], told)).collect();
    let dashed = canvas::ink()
        .with("stroke-dasharray", "3 3")
        .with("stroke-opacity", "0.6")
        .with("d", canvas::strokes(&medians));
    Node::from([
        canvas::grid(&edges),
        dashed.into(),
        canvas::faint_all(Anchor::End, &told),
    ])
}

fn row(
    sheet: &Ranking<'_>,
    measure: &Measure,
    place: usize,
    values: Option<&Values>,
    across: &Scale,
    span: [f64; 2],
) -> Node {
    let up = Scale::linear(span, HEIGHTS);
    let name = &sheet.rows[place].entrant.allocator;
    let middle = ROW / 2.0 + 4.0;
    let drawn = match values.filter(|values| values.median > 0.0) {
        Some(values) => {
            let median = measure.unit.tell(values.median);
            Node::from([
                dots(measure, values, [across, &up]),
                canvas::faint([WIDTH - 4.0, middle], Anchor::End, &median),
            ])
        }
        None => canvas::faint([PLOT[0] + 6.0, middle], Anchor::Start, "no samples"),
    };
    Node::from([canvas::row_name(name, ROW / 2.0 + 4.5), drawn])
}

/// Returns the samples of a row. Each dot is a line of nearly no length with round ends. Such a
/// line takes less text than a circle, which matters because a page has thousands of dots.
fn dots(measure: &Measure, values: &Values, [across, up]: [&Scale; 2]) -> Node {
    let finite = values.samples.iter().enumerate();
    let finite = finite.filter(|(_, sample)| sample.is_finite());
    let odd = |(round, sample): &(usize, &f64)| {
        values.outliers.contains(round) || !up.holds(*sample / values.median)
    };
    let (odd, usual): (Vec<_>, Vec<_>) = finite.partition(odd);
    let at =
        |round: usize, sample: f64| [across.at(round as f64 + 1.0), up.at(sample / values.median)];
    let says = |round, sample| format!("round {}: {}", round + 1, measure.unit.tell(sample));
    let path = |d: String, round: usize, sample: f64| {
        let path = element("path").with("d", d);
        path.holding(title(&says(round, sample))).into()
    };
    let dot = |(round, sample): &(usize, &f64)| {
        let [x, y] = at(*round, **sample);
        path(format!("M{} {}h.1", n(x), n(y)), *round, **sample)
    };
    let mark = |(round, sample): &(usize, &f64)| {
        let outline = outline(at(*round, **sample), **sample / values.median, up);
        path(outline, *round, **sample)
    };
    let dots = element("g")
        .with("stroke", "currentColor")
        .with("stroke-width", "5")
        .with("stroke-linecap", "round")
        .holding(usual.iter().map(dot).collect::<Node>());
    let marks = (!odd.is_empty()).then(|| {
        let group = element("g").with("fill", "none");
        let group = group
            .with("stroke", "currentColor")
            .with("stroke-width", "1.5");
        group.holding(odd.iter().map(mark).collect::<Node>()).into()
    });
    Node::from([dots.into(), marks.into()])
}

/// Returns a ring around an outlier. For a sample beyond the row, returns a triangle that points
/// outwards.
fn outline([x, y]: [f64; 2], part: f64, up: &Scale) -> String {
    if up.holds(part) {
        return format!("M{} {}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z", n(x - 3.0), n(y));
    }
    let way = if part > 1.0 { 1.0 } else { -1.0 };
    let (foot, tip) = (n(y + way * 3.0), n(y - way * 4.0));
    format!(
        "M{} {foot}L{} {tip}L{} {foot}Z",
        n(x - 4.0),
        n(x),
        n(x + 4.0)
    )
}

fn described(sheet: &Ranking<'_>, measure: &Measure) -> String {
    let rows = measure
        .values
        .iter()
        .zip(&sheet.rows)
        .filter_map(|(values, row)| {
            let values = values.as_ref()?;
            let finite = || {
                values
                    .samples
                    .iter()
                    .copied()
                    .filter(|sample| sample.is_finite())
            };
            let tell = |value| measure.unit.tell(value);
            Some(format!(
                "{}: {} samples from {} to {}, median {}",
                crate::foreign::name(&row.entrant.allocator),
                values.samples.len(),
                tell(finite().fold(f64::INFINITY, f64::min)),
                tell(finite().fold(f64::NEG_INFINITY, f64::max)),
                tell(values.median),
            ))
        });
    rows.collect::<Vec<_>>().join("; ")
}
