//! What `survive` found, drawn: the smallest memory limit under each allocator, and how many times slower
//! the command is at that limit and with more.

use heapdrome_record::Table;
use maud::{Markup, html};

use super::canvas::{self, Anchor, Label, NAMES, WIDTH};
use super::curves::{Across, Curve, Point, draw};
use super::look::{Look, Looks};
use super::measures::Unit;
use super::rates::figure;
use super::scale::{Scale, ratio_text};
use super::{Plot, stem};
use crate::foreign;
use crate::words::NONE;

/// The heads of the table that is drawn.
const HEADS: [&str; 10] = [
    "allocator",
    "peak",
    "no swap",
    "at 1x",
    "at 1.5x",
    "at 2x",
    "with swap",
    "at 1x",
    "at 1.5x",
    "at 2x",
];
/// The column of the peak.
const PEAK: usize = 1;
/// The columns of the smallest limits, and what each is called; those of the multiples follow.
const LIMITS: [(usize, &str); 2] = [(2, "without swap"), (6, "with swap")];
/// Multiples of the smallest limit.
const MULTIPLES: [(f64, &str); 3] = [(1.0, "1x"), (1.5, "1.5x"), (2.0, "2x")];

const PLOT: [f64; 2] = [NAMES + 6.0, 452.0];
const TOP: f64 = 48.0;
const ROW: f64 = 40.0;
/// Where the marks of a row stand in it, without swap and with it.
const LINES: [f64; 2] = [13.0, 28.0];

/// Whether a table is the one that `survive` begins with.
pub(crate) fn is_survival(table: &Table) -> bool {
    table.heads == HEADS
}

/// The allocators of such a table.
pub(super) fn names(table: &Table) -> Vec<String> {
    let rows = table.rows.iter().filter(|_| is_survival(table));
    rows.filter_map(|row| row.first().cloned()).collect()
}

/// The drawings of such a table, their names after `prefix`; none of another.
pub(super) fn plots(table: &Table, prefix: &str, looks: &Looks) -> Vec<Plot> {
    if !is_survival(table) {
        return Vec::new();
    }
    let slower = LIMITS.iter();
    let slower =
        slower.filter_map(|(column, kind)| slower_at(table, (*column, kind), prefix, looks));
    limits(table, prefix, looks)
        .into_iter()
        .chain(slower)
        .collect()
}

fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or(NONE, String::as_str)
}

fn value(row: &[String], column: usize) -> Option<f64> {
    figure(cell(row, column)).map(|(value, _)| value)
}

/// The smallest limits, a row for each allocator.
fn limits(table: &Table, prefix: &str, looks: &Looks) -> Option<Plot> {
    let columns = [PEAK, LIMITS[0].0, LIMITS[1].0];
    let known = || {
        let rows = table.rows.iter();
        rows.flat_map(|row| columns.map(|column| value(row, column)))
            .flatten()
    };
    let low = known().reduce(f64::min)?;
    let high = known().fold(low, f64::max);
    let scale = Scale::logarithmic([low / 1.15, high * 1.15], PLOT);
    let name = format!("{prefix}survive-limits");
    let height = TOP + ROW * table.rows.len() as f64 + 8.0;
    let label = Label {
        name: name.clone(),
        title: "Smallest memory limit under which the command finishes".to_owned(),
        description: described(table),
    };
    let body = html! {
        (head(&scale, height))
        @for (place, row) in table.rows.iter().enumerate() {
            @let look = looks.get(cell(row, 0));
            (canvas::row(place, look, TOP + ROW * place as f64, ROW, &marks(row, look, &scale)))
        }
    };
    let caption = "Smallest memory limit under which the command finishes (less is better): the full mark \
                   is without swap, the hollow one with it, the stroke the peak without a limit.";
    Some(Plot {
        name,
        caption: caption.to_owned(),
        narrow: None,
        drawing: canvas::svg(&label, height, None, &body),
    })
}

fn head(scale: &Scale, height: f64) -> Markup {
    let ticks = ticks(scale);
    let places: Vec<f64> = ticks.iter().map(|(x, _)| *x).collect();
    let grid: Vec<_> = places.iter().map(|x| [[*x, TOP], [*x, height]]).collect();
    html! {
        (canvas::text([PLOT[0], 16.0], Anchor::Start, "memory limit (log scale; less is better)"))
        @for (x, told) in &ticks { (canvas::faint([*x, 36.0], Anchor::Middle, told)) }
        (canvas::grid(&grid))
        (canvas::head_axis(PLOT, TOP - 2.0, &places))
    }
}

/// Round amounts in one unit, and where they stand.
fn ticks(scale: &Scale) -> Vec<(f64, String)> {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let units = units.map(|(power, name)| ((1_u64 << power) as f64, name));
    let own = units.into_iter().find(|(unit, _)| scale.start() >= *unit);
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

/// The marks of one allocator, in a group of its colour.
fn marks(row: &[String], look: Look, scale: &Scale) -> Markup {
    let at = |column: usize| value(row, column).map(|bytes| scale.at(bytes));
    let peak = at(PEAK).map(|x| [[x, LINES[0] - 7.0], [x, LINES[1] + 7.0]]);
    html! {
        (canvas::row_name(cell(row, 0), ROW / 2.0 + 4.5))
        @if let Some(line) = peak { (canvas::axis(&[line])) }
        @for (place, (column, kind)) in LIMITS.iter().enumerate() {
            @let says = format!("{kind}: {}", cell(row, *column));
            @if let Some(x) = at(*column) {
                @match place {
                    0 => (look.marker([x, LINES[place]], 5.0, Some(&says))),
                    _ => (look.ring([x, LINES[place]], 5.0, &says)),
                }
            }
            (canvas::faint([WIDTH - 4.0, LINES[place] + 4.0], Anchor::End, &says))
        }
    }
}

fn described(table: &Table) -> String {
    let told = table.rows.iter().map(|row| {
        let limits = LIMITS.map(|(column, kind)| format!("{} {kind}", cell(row, column)));
        let name = foreign::name(cell(row, 0));
        format!("{name}: {}, peak {}", limits.join(", "), cell(row, PEAK))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// How many times slower the command is at the smallest limit, and at its multiples.
fn slower_at(
    table: &Table,
    (column, kind): (usize, &str),
    prefix: &str,
    looks: &Looks,
) -> Option<Plot> {
    let on = Across {
        stem: format!("{prefix}survive-{}", stem(kind)),
        name: "survive".to_owned(),
        parameter: "limit, in multiples of the allocator's smallest".to_owned(),
        ticks: MULTIPLES
            .map(|(times, told)| (times, told.to_owned()))
            .to_vec(),
        by_logarithm: false,
    };
    let curve = |row: &Vec<String>| {
        let multiples = MULTIPLES.iter().enumerate();
        let point = |(place, (times, told)): (usize, &(f64, &str))| {
            Some(Point {
                place: *times,
                label: (*told).to_owned(),
                value: value(row, column + 1 + place)?,
                ends: None,
            })
        };
        Curve {
            name: cell(row, 0).to_owned(),
            look: looks.get(cell(row, 0)),
            points: multiples.filter_map(point).collect(),
        }
    };
    let curves: Vec<Curve> = table.rows.iter().map(curve).collect();
    let title = format!("times slower {kind}, 1 = without a limit");
    let what = ("slower", Unit::Number, title.as_str());
    draw(
        &on,
        &curves,
        what,
        "medians of the runs, whose ranges are in the table of every limit; lower is better",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 10]]) -> Table {
        let words = |words: &[&str; 10]| words.map(str::to_owned).to_vec();
        Table {
            heads: words(&HEADS),
            rows: rows.iter().map(words).collect(),
            ..Table::default()
        }
    }

    #[test]
    fn limits_and_what_they_cost_are_drawn() {
        let both = table(&[
            [
                "system", "10.3 MiB", "10.3 MiB", "1.59", "1.25", "0.67", "8.88 MiB", "1.06",
                "0.86", "0.43",
            ],
            [
                "mine", "21.6 MiB", "-", "-", "-", "-", "960 KiB", "0.92", "-", "0.98",
            ],
        ]);
        let looks = Looks::default();
        let drawn = plots(&both, "table-", &looks);
        let names: Vec<&str> = drawn.iter().map(|plot| plot.name.as_str()).collect();
        let expected = [
            "table-survive-limits",
            "table-survive-without-swap-slower",
            "table-survive-with-swap-slower",
        ];
        assert_eq!(names, expected);
        assert!(drawn[0].drawing.0.contains("with swap: 960 KiB"));
        assert!(drawn[2].drawing.0.contains("mine at 2x: 0.98"));
    }

    /// As it is on a page with races.
    #[test]
    fn the_system_looks_like_a_baseline() {
        let both = table(&[
            ["mine", "2 MiB", "1 MiB", "-", "-", "-", "-", "-", "-", "-"],
            [
                "system", "2 MiB", "1 MiB", "-", "-", "-", "-", "-", "-", "-",
            ],
        ]);
        let mut looks = Looks::default();
        looks.table(&both);
        assert_eq!(looks.get("system"), Look::BASELINE);
        assert_eq!(looks.get("mine"), Look::rival(0));
    }

    #[test]
    fn where_nothing_is_known_nothing_is_drawn() {
        let none = table(&[["bad", "-", "-", "-", "-", "-", "-", "-", "-", "-"]]);
        assert!(plots(&none, "", &Looks::default()).is_empty());
        let other = Table {
            heads: vec!["allocator".to_owned()],
            ..none
        };
        assert!(!is_survival(&other) && plots(&other, "", &Looks::default()).is_empty());
    }
}
