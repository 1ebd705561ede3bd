//! Plots of the results of `survive`: the smallest memory limit under each allocator, and the
//! slowdown at multiples of that limit.

use heapdrome_schema::{Bytes, Multiple, Survival};

use super::canvas::{self, Anchor, Label, NAMES, WIDTH};
use super::curves::{Across, Curve, draw};
use super::look::{Look, Looks};
use super::measures::Unit;
use super::node::Node;
use super::scale::{Scale, ratio_text};
use super::tabled::Point;
use super::{Plot, stem};
use crate::foreign;
use crate::survival::KINDS;
use crate::words::NONE;

const PLOT: [f64; 2] = [NAMES + 6.0, 420.0];
const TOP: f64 = 48.0;
const ROW: f64 = 40.0;
/// Vertical positions of the marks in a row: without swap, and with swap.
const LINES: [f64; 2] = [13.0, 28.0];

/// The searches under one allocator: without swap, and with swap.
struct Row<'a> {
    allocator: &'a str,
    searches: [Option<&'a Survival>; 2],
}

impl Row<'_> {
    fn peak(&self) -> Option<u64> {
        let mut peaks = self.searches.iter().flatten().map(|one| one.peak_bytes);
        peaks.find(|peak| *peak > 0)
    }

    /// Returns the smallest limit of one kind of search. `kind` is an index into [`KINDS`].
    fn smallest(&self, kind: usize) -> Option<u64> {
        self.searches[kind]?.smallest_bytes
    }

    /// Formats the smallest limit of one kind of search. `kind` is an index into [`KINDS`].
    fn told(&self, kind: usize) -> String {
        let once = self.searches[kind].is_some_and(Survival::tried_once);
        match self.smallest(kind) {
            None => NONE.to_owned(),
            Some(bytes) if once => format!("{}, one run", Bytes(bytes)),
            Some(bytes) => Bytes(bytes).to_string(),
        }
    }
}

/// Returns one row for each allocator, in the order of the searches.
fn rows(searches: &[Survival]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for one in searches {
        let known = rows.iter().position(|row| row.allocator == one.allocator);
        let place = known.unwrap_or(rows.len());
        if known.is_none() {
            rows.push(Row {
                allocator: &one.allocator,
                searches: [None; 2],
            });
        }
        rows[place].searches[usize::from(one.swap)] = Some(one);
    }
    rows
}

/// Returns the drawings of searches; empty if neither a limit nor a peak is known. Their names
/// begin with `prefix`.
pub(crate) fn plots(searches: &[Survival], prefix: &str, looks: &Looks) -> Vec<Plot> {
    let rows = rows(searches);
    let slower = (0..KINDS.len()).filter_map(|kind| slower_at(&rows, kind, prefix, looks));
    limits(&rows, prefix, looks)
        .into_iter()
        .chain(slower)
        .collect()
}

/// Returns the drawing of the smallest limits, with one row for each allocator; `None` if neither a
/// limit nor a peak is known.
fn limits(rows: &[Row<'_>], prefix: &str, looks: &Looks) -> Option<Plot> {
    let of = |row: &Row<'_>| [row.peak(), row.smallest(0), row.smallest(1)];
    let known = || rows.iter().flat_map(of).flatten().map(|bytes| bytes as f64);
    let low = known().reduce(f64::min)?;
    let high = known().fold(low, f64::max);
    let scale = Scale::logarithmic([low / 1.15, high * 1.15], PLOT);
    let height = TOP + ROW * rows.len() as f64 + 8.0;
    let label = Label {
        name: format!("{prefix}survive-limits"),
        title: "Smallest memory limit under which the command finishes".to_owned(),
        description: described(rows),
    };
    let drawn = |(place, row): (usize, &Row<'_>)| {
        let look = looks.get(row.allocator);
        let top = TOP + ROW * place as f64;
        canvas::row(place, look, top, ROW, marks(row, look, &scale))
    };
    let body = Node::from([
        head(&scale, height),
        rows.iter().enumerate().map(drawn).collect(),
    ]);
    Some(Plot::new(label, caption(rows), height, None, body))
}

fn caption(rows: &[Row<'_>]) -> String {
    let mut caption = "Smallest memory limit under which the command finishes (less is better): the full mark \
                       is without swap, the hollow one with it, the stroke the peak without a limit."
        .to_owned();
    let mut searches = rows.iter().flat_map(|row| row.searches).flatten();
    if searches.any(Survival::tried_once) {
        caption.push_str(" Under a limit with one run, another run might not finish.");
    }
    caption
}

fn head(scale: &Scale, height: f64) -> Node {
    let ticks = ticks(scale);
    let places: Vec<f64> = ticks.iter().map(|(x, _)| *x).collect();
    let grid: Vec<_> = places.iter().map(|x| [[*x, TOP], [*x, height]]).collect();
    let what = "memory limit (log scale; less is better)";
    let label = |(x, told): &(f64, String)| canvas::faint([*x, 36.0], Anchor::Middle, told);
    Node::from([
        canvas::text([PLOT[0], 16.0], Anchor::Start, what),
        ticks.iter().map(label).collect(),
        canvas::grid(&grid),
        canvas::head_axis(PLOT, TOP - 2.0, &places),
    ])
}

/// Returns round amounts in one unit, each with its position and text.
fn ticks(scale: &Scale) -> Vec<(f64, String)> {
    let own = Bytes::UNITS
        .into_iter()
        .find(|(unit, _)| scale.start() >= *unit);
    let (unit, name) = own.unwrap_or((1.0, "B"));
    let ends = [scale.start() / unit, scale.end() / unit];
    let in_units = Scale::logarithmic(ends, PLOT).ratio_ticks(52.0).into_iter();
    in_units
        .map(|tick| {
            (
                scale.at(tick * unit),
                format!("{} {name}", ratio_text(tick)),
            )
        })
        .collect()
}

/// Returns the name, the peak and the limits of one allocator. They must be placed in a group that
/// sets the colour.
fn marks(row: &Row<'_>, look: Look, scale: &Scale) -> Node {
    let at = |bytes: u64| scale.at(bytes as f64);
    let peak = row.peak().map(at);
    let peak = peak.map(|x| [[x, LINES[0] - 7.0], [x, LINES[1] + 7.0]]);
    let limit = |(kind, called): (usize, &&str)| {
        let says = format!("{called}: {}", row.told(kind));
        let mark = row.smallest(kind).map(|bytes| {
            let at = [at(bytes), LINES[kind]];
            match kind {
                0 => look.marker(at, 5.0, Some(&says)),
                _ => look.ring(at, 5.0, &says),
            }
        });
        let told = canvas::faint([WIDTH - 4.0, LINES[kind] + 4.0], Anchor::End, &says);
        Node::from([mark.into(), told])
    };
    Node::from([
        canvas::row_name(row.allocator, ROW / 2.0 + 4.5),
        peak.map(|line| canvas::axis(&[line])).into(),
        KINDS.iter().enumerate().map(limit).collect(),
    ])
}

fn described(rows: &[Row<'_>]) -> String {
    let told = rows.iter().map(|row| {
        let limits = [0, 1].map(|kind| format!("{} {}", row.told(kind), KINDS[kind]));
        let name = foreign::name(row.allocator);
        let peak = row.peak();
        let peak = peak.map_or_else(|| NONE.to_owned(), |bytes| Bytes(bytes).to_string());
        format!("{name}: {}, peak {peak}", limits.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Returns the drawing of the slowdown at multiples of the smallest limit; `None` if no allocator
/// has two points.
fn slower_at(rows: &[Row<'_>], kind: usize, prefix: &str, looks: &Looks) -> Option<Plot> {
    let curves: Vec<Curve> = rows
        .iter()
        .map(|row| Curve {
            name: row.allocator.to_owned(),
            look: looks.get(row.allocator),
            points: row.searches[kind].map_or_else(Vec::new, points),
        })
        .collect();
    let points = curves.iter().flat_map(|curve| &curve.points);
    let mut ticks: Vec<_> = points
        .map(|point| (point.place, point.label.clone()))
        .collect();
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    ticks.dedup();
    let on = Across {
        stem: format!("{prefix}survive-{}", stem(KINDS[kind])),
        name: "survive".to_owned(),
        parameter: "limit, in multiples of the allocator's smallest".to_owned(),
        ticks,
        by_logarithm: false,
    };
    let title = format!("times slower {}, 1 = without a limit", KINDS[kind]);
    let what = ("slower", Unit::Number, title.as_str());
    let note = "medians of the runs, and from the fastest to the slowest; lower is better";
    draw(&on, &curves, what, note)
}

/// Returns the slowdown at each multiple of the smallest limit, omitting multiples with too few
/// runs or without a slowdown.
fn points(search: &Survival) -> Vec<Point> {
    let shown = search
        .at
        .iter()
        .filter(|at| search.shows_slowdown(&at.trial));
    let point = |at: &Multiple| {
        Some(Point {
            place: at.times,
            label: format!("{}x", at.times),
            value: at.slower?,
            ends: at.range,
        })
    };
    shown.filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::Trial;

    /// Returns a search with this number of runs at each limit, and this slowdown at each multiple.
    fn search(name: &str, swap: bool, smallest: u64, runs: usize, slower: &[f64]) -> Survival {
        let trial = |limit_bytes: u64| Trial {
            limit_bytes,
            wall_s: vec![1.0; runs],
            failure: None,
            limit_hits: 0,
            oom_kills: 0,
        };
        let at = [1.0, 1.5, 2.0].into_iter().zip(slower);
        let at = at.map(|(times, slower)| Multiple {
            times,
            trial: trial((smallest as f64 * times) as u64),
            slower: Some(*slower),
            range: Some([slower * 0.9, slower * 1.2]),
        });
        Survival {
            allocator: name.to_owned(),
            swap,
            peak_bytes: 20 << 20,
            unlimited_s: vec![1.0; runs],
            smallest_bytes: Some(smallest),
            at: at.collect(),
            trials: vec![trial(smallest)],
            ..Survival::default()
        }
    }

    fn names(drawn: &[Plot]) -> Vec<&str> {
        drawn.iter().map(|plot| plot.name.as_str()).collect()
    }

    #[test]
    fn limits_and_what_they_cost_are_drawn() {
        let searches = [
            search("system", false, 10 << 20, 3, &[1.6, 1.25, 0.7]),
            search("system", true, 9 << 20, 3, &[1.1, 0.9, 0.4]),
            search("mine", true, 960 << 10, 3, &[0.9, 0.95, 0.98]),
        ];
        let drawn = plots(&searches, "r1-", &Looks::default());
        let expected = [
            "r1-survive-limits",
            "r1-survive-without-swap-slower",
            "r1-survive-with-swap-slower",
        ];
        assert_eq!(names(&drawn), expected);
        let limits = drawn[0].text();
        assert!(limits.contains("with swap: 960 KiB<") && !limits.contains("one run"));
        assert!(limits.contains("mine: - without swap, 960 KiB with swap, peak 20.0 MiB"));
        let slower = drawn[2].text();
        assert!(
            slower.contains("mine at 2x: 0.98 (0.88 to 1.18)"),
            "{slower}"
        );
        let whiskers = slower.matches("stroke-width=\"1.2\"").count();
        assert_eq!(whiskers, 6, "each point on the range of its runs");
    }

    /// A search with one run per limit may stop at a limit under which another run would fail. The
    /// drawing therefore marks the limit with `one run`. A slowdown needs at least three runs per
    /// limit.
    #[test]
    fn limits_that_were_tried_once_say_so_and_show_no_slowdown() {
        let searches = [
            search("system", false, 10 << 20, 1, &[1.6, 1.25, 0.7]),
            search("system", true, 9 << 20, 2, &[1.6, 1.25, 0.7]),
        ];
        let drawn = plots(&searches, "", &Looks::default());
        assert_eq!(names(&drawn), ["survive-limits"]);
        let limits = drawn[0].text();
        assert!(
            limits.contains("without swap: 10.0 MiB, one run<"),
            "{limits}"
        );
        assert!(limits.contains("with swap: 9.00 MiB<"), "{limits}");
        assert!(drawn[0].caption.contains("one run"));
    }

    /// A multiple at which a run failed has no point. Results of older versions have no ranges, so
    /// their points have no strokes.
    #[test]
    fn a_limit_under_which_a_run_failed_leaves_a_gap() {
        let mut one = search("system", false, 10 << 20, 3, &[1.6, 1.25, 0.7]);
        one.at[1].trial.failure = Some("killed".to_owned());
        (one.at[1].slower, one.at[1].range) = (None, None);
        (one.at[0].range, one.at[2].range) = (None, None);
        let drawn = plots(&[one], "", &Looks::default());
        let slower = drawn[1].text();
        assert!(slower.contains("1.60 at 1x, 0.70 at 2x"), "{slower}");
        assert!(!slower.contains("stroke-width=\"1.2\""));
    }

    /// Without races, the system's allocator has the baseline's look.
    #[test]
    fn the_system_looks_like_a_baseline() {
        let both = ["mine", "system"].map(|name| search(name, false, 1 << 20, 3, &[]));
        let mut looks = Looks::default();
        looks.searches(&both);
        assert_eq!(looks.get("system"), Look::BASELINE);
        assert_eq!(looks.get("mine"), Look::rival(0));
    }

    #[test]
    fn where_nothing_is_known_nothing_is_drawn() {
        let none = Survival {
            allocator: "bad".to_owned(),
            ..Survival::default()
        };
        assert!(plots(&[none], "", &Looks::default()).is_empty());
        assert!(plots(&[], "", &Looks::default()).is_empty());
    }
}
