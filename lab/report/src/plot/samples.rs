//! Every sample as a dot by its round, so that drift and outliers are seen.

use maud::{Markup, html};

use super::canvas::{self, Anchor, Label, NAMES, WIDTH, n};
use super::measures::{Measure, Values};
use super::scale::Scale;
use super::{Plot, stem};
use crate::sheet::Sheet;

/// Where the plot begins and ends.
const PLOT: [f64; 2] = [NAMES + 50.0, 555.0];
const TOP: f64 = 48.0;
const ROW: f64 = 54.0;
/// Dots further from their median than this factor are put on the edge of the row.
const FARTHEST: f64 = 2.0;

/// The samples of a figure, if any entrant has two of them.
pub(super) fn plot(sheet: &Sheet<'_>, measure: &Measure, prefix: &str) -> Option<Plot> {
    let known = || {
        measure
            .values
            .iter()
            .flatten()
            .filter(|values| values.median > 0.0)
    };
    let rounds = known()
        .map(|values| values.samples.len())
        .max()
        .unwrap_or(0);
    if rounds < 2 {
        return None;
    }
    let parts = || known().flat_map(|v| v.samples.iter().map(|sample| sample / v.median));
    let finite = || parts().filter(|part| part.is_finite());
    let low = finite().fold(0.99, f64::min).max(1.0 / FARTHEST);
    let high = finite().fold(1.01, f64::max).min(FARTHEST);
    let across = Scale::linear([1.0, rounds as f64], [PLOT[0] + 6.0, PLOT[1] - 6.0]);
    let name = format!("{prefix}samples-{}", stem(&measure.id));
    let caption = format!(
        "Every sample of {} by round. Each row spans {} of its own median, the dashed line; hollow \
         dots lie far from the rest, triangles beyond the row.",
        measure.title,
        span(low, high),
    );
    let label = Label {
        name: name.clone(),
        title: format!("Samples of {}", measure.title),
        description: described(sheet, measure),
    };
    let body = html! {
        (head(measure, &across))
        @for (place, values) in measure.values.iter().enumerate() {
            (canvas::row(place, TOP + ROW * place as f64, ROW,
                         &row(sheet, measure, place, values.as_ref(), &across, [low, high])))
        }
    };
    let height = TOP + ROW * sheet.rows.len() as f64 + 8.0;
    Some(Plot {
        name,
        caption,
        drawing: canvas::svg(&label, height, Some(TOP), &body),
    })
}

fn percent(part: f64) -> String {
    format!("{:+.0}%", (part - 1.0) * 100.0).replace('-', "\u{2212}")
}

fn span(low: f64, high: f64) -> String {
    format!("{} to {}", percent(low), percent(high))
}

fn head(measure: &Measure, across: &Scale) -> Markup {
    let title = format!("{} relative to its median, by round", measure.title);
    html! {
        (canvas::text([PLOT[0], 16.0], Anchor::Start, &title))
        @for tick in across.round_ticks(8.0) {
            @if tick.fract() == 0.0 {
                (canvas::faint([across.at(tick), 36.0], Anchor::Middle, &n(tick)))
                (canvas::axis([across.at(tick), 40.0], [across.at(tick), TOP - 2.0]))
            }
        }
        (canvas::axis([PLOT[0], TOP - 2.0], [PLOT[1], TOP - 2.0]))
        (canvas::faint([PLOT[0] - 8.0, 36.0], Anchor::End, "round"))
        (canvas::faint([WIDTH - 4.0, 36.0], Anchor::End, "median"))
    }
}

fn row(
    sheet: &Sheet<'_>,
    measure: &Measure,
    place: usize,
    values: Option<&Values>,
    across: &Scale,
    span: [f64; 2],
) -> Markup {
    let up = Scale::linear(span, [ROW - 8.0, 8.0]);
    let middle = up.at(1.0);
    let name = &sheet.rows[place].entrant.allocator;
    html! {
        (canvas::grid([PLOT[0], ROW], [PLOT[1], ROW]))
        (canvas::row_name(name, ROW / 2.0 + 4.5))
        (canvas::faint([PLOT[0] - 6.0, 14.0], Anchor::End, &percent(span[1])))
        (canvas::faint([PLOT[0] - 6.0, ROW - 5.0], Anchor::End, &percent(span[0])))
        line class="axis" x1=(n(PLOT[0])) x2=(n(PLOT[1])) y1=(n(middle)) y2=(n(middle))
            stroke=(canvas::INK) stroke-dasharray="3 3" stroke-opacity="0.6" {}
        @match values.filter(|values| values.median > 0.0) {
            Some(values) => {
                (dots(sheet, measure, place, values, [across, &up]))
                (canvas::faint([WIDTH - 4.0, ROW / 2.0 + 4.0], Anchor::End,
                               &measure.unit.tell(values.median)))
            }
            None => { (canvas::faint([PLOT[0] + 6.0, ROW / 2.0 + 4.0], Anchor::Start, "no samples")) }
        }
    }
}

fn dots(
    sheet: &Sheet<'_>,
    measure: &Measure,
    place: usize,
    values: &Values,
    [across, up]: [&Scale; 2],
) -> Markup {
    let look = sheet.look(place);
    let samples = values.samples.iter().enumerate();
    html! {
        @for (round, sample) in samples.filter(|(_, sample)| sample.is_finite()) {
            @let part = sample / values.median;
            @let x = across.at(round as f64 + 1.0);
            @let says = format!("round {}: {}", round + 1, measure.unit.tell(*sample));
            @if up.holds(part) {
                @if values.outliers.contains(&round) {
                    circle class={ (look.class()) " line" } cx=(n(x)) cy=(n(up.at(part))) r="3"
                        fill="none" stroke=(look.colour()) stroke-width="1.5" { title { (says) } }
                } @else {
                    circle class={ (look.class()) " area" } cx=(n(x)) cy=(n(up.at(part))) r="2.5"
                        fill=(look.colour()) { title { (says) } }
                }
            } @else {
                @let way = if part > 1.0 { 1.0 } else { -1.0 };
                @let y = up.at(part);
                path class={ (look.class()) " line" } fill="none" stroke=(look.colour())
                    d={ "M" (n(x - 4.0)) " " (n(y + way * 3.0)) "L" (n(x)) " " (n(y - way * 4.0))
                        "L" (n(x + 4.0)) " " (n(y + way * 3.0)) "Z" } { title { (says) } }
            }
        }
    }
}

fn described(sheet: &Sheet<'_>, measure: &Measure) -> String {
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
