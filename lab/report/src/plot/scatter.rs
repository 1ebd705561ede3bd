//! A scatter plot of time against memory. It marks the entrants that no other entrant beats on
//! both.

use super::Plot;
use super::canvas::{self, Anchor, Label, WIDTH};
use super::coordinate::n;
use super::look::Ranking;
use super::measures::{Measure, Ratio, measures};
use super::node::{Node, coloured, element, filled};
use super::palette;
use super::scale::{Scale, ratio_text};
use crate::entrant::PEAK_TREE;
use crate::foreign;
use heapdrome_schema::{PEAK_RSS, WALL};

const HEIGHT: f64 = 460.0;
const ACROSS: [f64; 2] = [64.0, 620.0];
const UP: [f64; 2] = [404.0, 16.0];

/// An entrant with its time and memory.
struct Point {
    place: usize,
    time: Ratio,
    memory: Ratio,
}

/// Returns the scatter plot; `None` if fewer than two entrants have both figures, or the race
/// supports no claim on wall time.
pub(super) fn plot(sheet: &Ranking<'_>, prefix: &str) -> Option<Plot> {
    if !sheet.supports(WALL) {
        return None;
    }
    let (points, memory) = points(sheet)?;
    let best = best(&points);
    let scales = [
        scale(points.iter().map(|point| point.time), ACROSS),
        scale(points.iter().map(|point| point.memory), UP),
    ];
    let names: Vec<_> = best
        .iter()
        .map(|place| name_of(sheet, points[*place].place))
        .collect();
    let caption = format!(
        "Time against memory, both relative to {}; left and down is better. On the line, ringed: {}; \
         by their estimates no other entrant is better on both.",
        sheet.baseline(),
        crate::words::listed(&names),
    );
    let label = Label {
        name: format!("{prefix}time-memory"),
        title: "Time against memory".to_owned(),
        description: caption.clone(),
    };
    let frontier = canvas::ink()
        .with("stroke-dasharray", "5 4")
        .with("d", steps(&points, &best, &scales));
    let drawn = |(point, label): (&Point, [f64; 2])| {
        let is_best = best.iter().any(|b| points[*b].place == point.place);
        draw(sheet, point, is_best, &scales, label)
    };
    let labelled = points.iter().zip(labels(sheet, &points, &scales));
    let body = Node::from([
        axes(sheet, &memory, &scales),
        frontier.into(),
        labelled.map(drawn).collect(),
    ]);
    Some(Plot::new(label, caption, HEIGHT, None, body))
}

fn name_of(sheet: &Ranking<'_>, place: usize) -> String {
    foreign::name(&sheet.rows[place].entrant.allocator)
}

fn points(sheet: &Ranking<'_>) -> Option<(Vec<Point>, Measure)> {
    let known = measures(sheet);
    let time = known.iter().find(|measure| measure.key == WALL)?;
    let of = |key: &str| known.iter().find(|measure| measure.key == key);
    let memory = of(PEAK_RSS).or_else(|| of(PEAK_TREE))?;
    let point = |place| {
        Some(Point {
            place,
            time: time.ratio(sheet, place)?,
            memory: memory.ratio(sheet, place)?,
        })
    };
    let points: Vec<_> = (0..sheet.rows.len()).filter_map(point).collect();
    (points.len() >= 2).then(|| (points, memory.clone()))
}

/// Returns the positions in `points` of the best entrants, the fastest first. An entrant is among
/// the best if no other one is at least as good on both figures and better on one.
fn best(points: &[Point]) -> Vec<usize> {
    let beats = |a: &Point, b: &Point| {
        let [at, am, bt, bm] = [a.time.at, a.memory.at, b.time.at, b.memory.at];
        at <= bt && am <= bm && (at < bt || am < bm)
    };
    let mut best: Vec<usize> = (0..points.len())
        .filter(|place| !points.iter().any(|other| beats(other, &points[*place])))
        .collect();
    best.sort_by(|a, b| points[*a].time.at.total_cmp(&points[*b].time.at));
    best
}

fn scale(ratios: impl Iterator<Item = Ratio> + Clone, paper: [f64; 2]) -> Scale {
    let low = ratios
        .clone()
        .fold(1.0, |low: f64, ratio| low.min(ratio.at));
    let high = ratios
        .clone()
        .fold(1.0, |high: f64, ratio| high.max(ratio.at));
    let room = (high / low).max(1.5);
    let ends = ratios.filter_map(|ratio| ratio.ends);
    let [lowest, highest] = ends.fold([low, high], |[l, h], [a, b]| [l.min(a), h.max(b)]);
    let [low, high] = [lowest.max(low / room), highest.min(high * room)];
    let margin = (high / low).powf(0.06).max(1.01);
    Scale::logarithmic([low / margin, high * margin], paper)
}

fn axes(sheet: &Ranking<'_>, memory: &Measure, [x, y]: &[Scale; 2]) -> Node {
    let baseline = foreign::short_name(&sheet.result.baseline, 19);
    let relative = format!("relative to {baseline} (log scale; lower is better)");
    let middle = (UP[0] + UP[1]) / 2.0;
    let (columns, lines) = (x.ratio_ticks(44.0), y.ratio_ticks(28.0));
    let at = |scale: &Scale, ticks: &[f64]| -> Vec<f64> {
        ticks.iter().map(|tick| scale.at(*tick)).collect()
    };
    let below = |tick: &f64| {
        let at = [x.at(*tick), UP[0] + 17.0];
        canvas::faint(at, Anchor::Middle, &ratio_text(*tick))
    };
    let beside = |tick: &f64| {
        let at = [ACROSS[0] - 6.0, y.at(*tick) + 4.0];
        canvas::faint(at, Anchor::End, &ratio_text(*tick))
    };
    let across = [(ACROSS[0] + ACROSS[1]) / 2.0, HEIGHT - 14.0];
    let up = format!("{} {relative}", memory.title);
    let up = element("g")
        .with(
            "transform",
            format!("translate(16 {}) rotate(-90)", n(middle)),
        )
        .holding(canvas::text([0.0, 0.0], Anchor::Middle, &up));
    Node::from([
        canvas::frame([ACROSS, UP], &at(x, &columns), &at(y, &lines)),
        columns.iter().map(below).collect(),
        lines.iter().map(beside).collect(),
        canvas::text(across, Anchor::Middle, &format!("wall time {relative}")),
        up.into(),
    ])
}

/// Returns the frontier as steps between the best points.
fn steps(points: &[Point], best: &[usize], [x, y]: &[Scale; 2]) -> String {
    let mut path = String::new();
    for place in best {
        let point = &points[*place];
        let (px, py) = (n(x.at(point.time.at)), n(y.at(point.memory.at)));
        if path.is_empty() {
            path = format!("M{px} {}V{py}", n(UP[1]));
        } else {
            path.push_str(&format!("H{px}V{py}"));
        }
    }
    format!("{path}H{}", n(ACROSS[1]))
}

fn draw(
    sheet: &Ranking<'_>,
    point: &Point,
    best: bool,
    [x, y]: &[Scale; 2],
    label: [f64; 2],
) -> Node {
    let look = sheet.look(point.place);
    let (px, py) = (x.at(point.time.at), y.at(point.memory.at));
    let ring = best.then(|| {
        let ring = element("circle").with("class", "axis");
        let ring = ring.with("cx", n(px)).with("cy", n(py)).with("r", "10");
        let ring = ring.in_file("fill", "none");
        ring.in_file("stroke", palette::INK).into()
    });
    let name = foreign::short_name(&sheet.rows[point.place].entrant.allocator, 19);
    canvas::group("point ", look)
        .with("data-entrant", point.place.to_string())
        .holding(Node::from([
            intervals(point, [x, y]),
            ring.into(),
            look.marker([px, py], 5.5, None),
            canvas::text(label, Anchor::Start, &name),
        ]))
        .into()
}

/// Returns the intervals of a point as lines. An arrow shows that a line continues beyond the
/// paper.
fn intervals(point: &Point, [x, y]: [&Scale; 2]) -> Node {
    let (px, py) = (x.at(point.time.at), y.at(point.memory.at));
    let times = point.time.ends.map(|ends| ends.map(|end| [x.at(end), py]));
    let sizes = point
        .memory
        .ends
        .map(|ends| ends.map(|end| [px, y.at(end)]));
    let lines: Vec<canvas::Line> = times.into_iter().chain(sizes).collect();
    // Directions of the arrows at intervals that continue outside the paper: left and right for
    // times, down and up for memory.
    let ways = [[[-1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, -1.0]]];
    let ratios = [(x, point.time.ends, times), (y, point.memory.ends, sizes)];
    let mut arrows = String::new();
    for ((scale, ends, line), ways) in ratios.into_iter().zip(ways) {
        for (place, end) in ends.into_iter().flatten().enumerate() {
            if let Some(line) = line.filter(|_| !scale.holds(end)) {
                arrows.push_str(&canvas::arrow(line[place], ways[place]));
            }
        }
    }
    let line = || coloured(canvas::strokes(&lines)).with("stroke-opacity", "0.55");
    let line = (!lines.is_empty()).then(|| line().into());
    let heads = (!arrows.is_empty()).then(|| filled(arrows).into());
    Node::from([line.into(), heads.into()])
}

/// Returns the position of each name: the first free position of several near its point, or a
/// position next to the point if none is free.
fn labels(sheet: &Ranking<'_>, points: &[Point], [x, y]: &[Scale; 2]) -> Vec<[f64; 2]> {
    let centres: Vec<[f64; 2]> = points
        .iter()
        .map(|point| [x.at(point.time.at), y.at(point.memory.at)])
        .collect();
    let mut taken: Vec<[f64; 4]> = centres
        .iter()
        .map(|[x, y]| [x - 7.0, y - 7.0, x + 7.0, y + 7.0])
        .collect();
    let mut places = Vec::new();
    for (point, [px, py]) in points.iter().zip(centres) {
        let name = foreign::short_name(&sheet.rows[point.place].entrant.allocator, 19);
        // Approximate width of the name, in units of the drawing.
        let width = name.chars().count() as f64 * 7.0;
        let mut choices = Vec::new();
        for lines in 0..6 {
            let shift = f64::from(lines) * 14.0;
            for dy in [-8.0 - shift, 17.0 + shift] {
                choices.extend([[px + 9.0, py + dy], [px - 9.0 - width, py + dy]]);
            }
        }
        let frame = |[x, y]: [f64; 2]| [x, y - 11.0, x + width, y + 3.0];
        let free = |place: &[f64; 2]| {
            let [l, t, r, b] = frame(*place);
            let inside = l >= ACROSS[0] && r <= WIDTH && t >= 0.0 && b <= UP[0];
            inside
                && !taken
                    .iter()
                    .any(|o| l < o[2] && r > o[0] && t < o[3] && b > o[1])
        };
        let place = choices
            .iter()
            .copied()
            .find(free)
            .unwrap_or([px + 13.0, py + 4.5]);
        taken.push(frame(place));
        places.push(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::node::Target;
    use super::*;

    fn point(place: usize, time: f64, memory: f64) -> Point {
        let ratio = |at| Ratio { at, ends: None };
        Point {
            place,
            time: ratio(time),
            memory: ratio(memory),
        }
    }

    #[test]
    fn the_frontier_holds_those_that_none_beats_on_both() {
        let points = [
            point(0, 1.0, 1.0),
            point(1, 0.9, 1.2),
            point(2, 0.95, 1.3),
            point(3, 1.1, 0.8),
        ];
        assert_eq!(
            best(&points),
            [1, 0, 3],
            "the third is slower and larger than the second"
        );
    }

    #[test]
    fn an_interval_that_goes_on_beyond_the_paper_has_an_arrow() {
        let scales = [
            Scale::logarithmic([0.5, 2.0], ACROSS),
            Scale::logarithmic([0.5, 2.0], UP),
        ];
        let mut wide = point(0, 1.0, 1.0);
        let drawn = |point: &Point| intervals(point, [&scales[0], &scales[1]]).text(Target::File);
        wide.time.ends = Some([0.9, 1.1]);
        assert_eq!(drawn(&wide).matches("fill=\"currentColor\"").count(), 0);
        wide.time.ends = Some([0.9, 9.0]);
        wide.memory.ends = Some([0.1, 9.0]);
        let arrows = drawn(&wide);
        assert_eq!(arrows.matches('Z').count(), 3, "{arrows}");
        // Two of the three arrows point to the right edge and to the upper edge.
        assert!(
            arrows.contains("M620 210") && arrows.contains("M342 16"),
            "{arrows}"
        );
    }

    #[test]
    fn equals_are_both_on_it() {
        assert_eq!(best(&[point(0, 1.0, 1.0), point(1, 1.0, 1.0)]), [0, 1]);
    }
}
