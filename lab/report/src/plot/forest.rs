//! The ranking as a forest plot: one row for each entrant, its ratio to the baseline and the interval.

use heapdrome_record::Role;
use maud::{Markup, html};

use super::canvas::{self, Anchor, BAND, Label, NAMES, WIDTH, n};
use super::look::Look;
use super::measures::{Measure, Ratio};
use super::scale::{Scale, ratio_text};
use super::{Plot, stem};
use crate::sheet::{Sheet, WALL, versus};
use crate::words;

/// Where the plot begins and ends.
const PLOT: [f64; 2] = [NAMES + 6.0, 470.0];
/// The upper edge of the first row.
const TOP: f64 = 48.0;
/// The height of a row.
const ROW: f64 = 26.0;

/// The forest plot of a figure, if at least one rival has it.
pub(super) fn plot(sheet: &Sheet<'_>, measure: &Measure, prefix: &str) -> Option<Plot> {
    let ratios: Vec<Option<Ratio>> = (0..sheet.rows.len())
        .map(|place| measure.ratio(sheet, place))
        .collect();
    if ratios.iter().flatten().count() < 2 {
        return None;
    }
    let noise = noise(sheet, measure);
    let scale = scale(&ratios, noise);
    let name = format!("{prefix}ranking-{}", stem(&measure.id));
    let height = TOP + ROW * sheet.rows.len() as f64 + 8.0;
    let band = noise.map_or(
        "",
        |_| " The grey band is the baseline against itself: noise.",
    );
    let caption = format!(
        "Ranking by {}: ratio to {} with its interval; {}.{band}",
        measure.title,
        sheet.baseline(),
        measure.direction()
    );
    let label = Label {
        name: name.clone(),
        title: format!("Ranking by {}", measure.title),
        description: described(sheet, measure),
    };
    let body = html! {
        (head(sheet, measure, &scale))
        (behind(&scale, noise, height))
        @for (place, ratio) in ratios.iter().enumerate() {
            (canvas::row(place, sheet.look(place), TOP + ROW * place as f64, ROW,
                         &row(sheet, measure, place, ratio.as_ref(), &scale)))
        }
    };
    Some(Plot {
        name,
        caption,
        drawing: canvas::svg(&label, height, Some(TOP), &body),
    })
}

/// The interval of the baseline against itself, for wall time.
fn noise(sheet: &Sheet<'_>, measure: &Measure) -> Option<[f64; 2]> {
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

/// A scale that holds every ratio, and of the intervals as much as leaves the ratios apart.
fn scale(ratios: &[Option<Ratio>], noise: Option<[f64; 2]>) -> Scale {
    let parts = |ratio: &Ratio| {
        let [low, high] = ratio.ends.unwrap_or([ratio.at; 2]);
        [ratio.at, low, high]
    };
    let known = ratios.iter().flatten().map(parts);
    // The noise widens the scale as an interval does, around the baseline's ratio.
    let noise = noise.map(|[low, high]| [1.0, low, high]);
    Scale::logarithmic(
        ratio_range(&known.chain(noise).collect::<Vec<_>>(), 1.03),
        PLOT,
    )
}

/// From where to where a scale goes that holds 1 and every ratio, each given with the ends of its
/// interval, of which as much is shown as leaves the ratios apart.
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

fn head(sheet: &Sheet<'_>, measure: &Measure, scale: &Scale) -> Markup {
    let title = format!(
        "{}, relative to {} (log scale; {})",
        measure.title,
        sheet.baseline(),
        measure.direction()
    );
    let labels = scale.ratio_ticks(40.0).into_iter();
    let labels: Vec<_> = labels
        .map(|tick| ([scale.at(tick), 36.0], ratio_text(tick)))
        .collect();
    html! {
        (canvas::text([NAMES + 6.0, 16.0], Anchor::Start, &title))
        (canvas::faint_all(Anchor::Middle, &labels))
        (canvas::head_axis(PLOT, TOP - 2.0, &ticks(scale)))
        (canvas::faint([WIDTH - 4.0, 36.0], Anchor::End, "ratio (interval)"))
    }
}

/// Where the ticks stand.
fn ticks(scale: &Scale) -> Vec<f64> {
    let ticks = scale.ratio_ticks(40.0).into_iter();
    ticks.map(|tick| scale.at(tick)).collect()
}

/// What all rows stand on: the noise, the grid, and the line of the baseline.
fn behind(scale: &Scale, noise: Option<[f64; 2]>, height: f64) -> Markup {
    let down = |x: f64| [[x, TOP], [x, height]];
    let grid: Vec<_> = ticks(scale).into_iter().map(down).collect();
    html! {
        @if let Some([low, high]) = noise {
            rect class="band" x=(n(scale.at(low))) y=(n(TOP)) width=(n(scale.at(high) - scale.at(low)))
                height=(n(height - TOP)) fill=(BAND) {}
        }
        (canvas::grid(&grid))
        (canvas::axis(&[down(scale.at(1.0))]))
    }
}

fn row(
    sheet: &Sheet<'_>,
    measure: &Measure,
    place: usize,
    ratio: Option<&Ratio>,
    scale: &Scale,
) -> Markup {
    let entrant = sheet.rows[place].entrant;
    let middle = ROW / 2.0;
    let told = told(sheet, measure, place, ratio);
    html! {
        (canvas::row_name(&entrant.allocator, middle + 4.5))
        @if let Some(ratio) = ratio { (whisker(sheet.look(place), ratio, scale, middle)) }
        (canvas::faint([WIDTH - 4.0, middle + 4.0], Anchor::End, &told))
    }
}

/// The interval as a line with the estimate on it; an arrow where the line goes on beyond the paper.
fn whisker(look: Look, ratio: &Ratio, scale: &Scale, middle: f64) -> Markup {
    let arrow = |value: f64, way: f64| {
        let x = scale.at(value);
        let inner = n(x - way * 6.0);
        format!(
            "M{} {}L{} {}L{inner} {}Z",
            n(x),
            n(middle),
            inner,
            n(middle - 4.0),
            n(middle + 4.0)
        )
    };
    let strokes = |[low, high]: [f64; 2]| {
        let within = [low, high].into_iter().filter(|end| scale.holds(*end));
        let caps = within.map(|end| [[scale.at(end), middle - 4.0], [scale.at(end), middle + 4.0]]);
        let whole = [[scale.at(low), middle], [scale.at(high), middle]];
        canvas::strokes(&std::iter::once(whole).chain(caps).collect::<Vec<_>>())
    };
    html! {
        @if let Some(ends) = ratio.ends {
            path d=(strokes(ends)) fill="none" stroke="currentColor" stroke-width="2" {}
            @for (end, way) in [(ends[0], -1.0), (ends[1], 1.0)] {
                @if !scale.holds(end) { path d=(arrow(end, way)) fill="currentColor" {} }
            }
        }
        (look.marker([scale.at(ratio.at), middle], 5.0, None))
    }
}

/// The figure in words, as in the tables.
fn told(sheet: &Sheet<'_>, measure: &Measure, place: usize, ratio: Option<&Ratio>) -> String {
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
        _ => format!("{:.3} (no interval)", ratio.at),
    }
}

/// All rows for a screen reader.
fn described(sheet: &Sheet<'_>, measure: &Measure) -> String {
    let rows = (0..sheet.rows.len()).map(|place| {
        let name = crate::foreign::name(&sheet.rows[place].entrant.allocator);
        let ratio = measure.ratio(sheet, place);
        format!("{name}: {}", told(sheet, measure, place, ratio.as_ref()))
    });
    rows.collect::<Vec<_>>().join("; ")
}
