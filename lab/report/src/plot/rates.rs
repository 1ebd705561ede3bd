//! Plots of tables of rates or times: curves over numbers of threads, or a dot for each row with
//! its range over the rounds.

use heapdrome_schema::Table;

use super::canvas::{self, Anchor, Label, WIDTH};
use super::curves::{Across, Curve, draw};
use super::look::{Look, Looks};
use super::measures::Unit;
use super::node::{Node, coloured};
use super::scale::Scale;
use super::tabled::{Named, RATE, THREADS, column, curves, figure};
use super::{Plot, stem};
use crate::foreign;
use crate::words;

/// Head of the column that contains ranges.
const RANGE: &str = "range";

const PLOT: [f64; 2] = [236.0, 480.0];
/// Maximum number of letters of a name.
const LETTERS: usize = 32;
/// Maximum number of characters of the title line above the drawing.
const LONGEST_LINE: usize = 84;
const TOP: f64 = 66.0;
const ROW: f64 = 24.0;

/// Returns the drawing of a measured table; `None` if the table was published, or contains no rates
/// or times that can be drawn. The drawing's name begins with `prefix`.
pub(crate) fn plot(table: &Table, prefix: &str, looks: &Looks) -> Option<Plot> {
    if table.published.is_some() {
        return None;
    }
    let title = foreign::line(&table.title);
    let name = format!("{prefix}{}", stem(&title));
    let curves = curves(table).and_then(|found| over_threads(found, &title, &name, looks));
    let rate = column(table, RATE);
    // A table with only one number of threads has no curves, and is drawn as dots without ranges.
    let range = column(table, RANGE).filter(|_| column(table, THREADS).is_none());
    curves.or_else(|| dots(table, rate?, range, (&title, &name), looks))
}

fn over_threads((curves, unit): Named, title: &str, name: &str, looks: &Looks) -> Option<Plot> {
    let points = curves.iter().flat_map(|(_, points)| points);
    let mut ticks: Vec<(f64, String)> = points
        .map(|point| (point.place, point.label.clone()))
        .collect();
    ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
    ticks.dedup_by(|one, other| one.0 == other.0);
    let on = Across {
        stem: name.to_owned(),
        name: title.to_owned(),
        parameter: "threads".to_owned(),
        by_logarithm: ticks.iter().all(|(place, _)| *place > 0.0),
        ticks,
    };
    let names: Vec<&str> = curves.iter().map(|(name, _)| name.as_str()).collect();
    let looks = looks.of_names(&names);
    let curves = curves.into_iter().zip(looks);
    let curves = curves.map(|((name, points), look)| Curve { name, look, points });
    let curves: Vec<Curve> = curves.collect();
    let (told, note) = match unit {
        Unit::Seconds => ("time of one operation", "lower is better"),
        _ => (
            "operations per second",
            "medians of the rounds; higher is better",
        ),
    };
    draw(&on, &curves, ("threads", unit, told), note)
}

/// Joins the cells that precede the rate, without the number of threads.
fn named(table: &Table, row: &[String], rate: usize) -> String {
    let cells = table.heads.iter().zip(row).take(rate.max(1));
    let names = cells.filter(|(head, _)| head.as_str() != THREADS);
    let names: Vec<&str> = names.map(|(_, cell)| cell.as_str()).collect();
    names.join(" ")
}

/// One row of [`dots`].
struct Row {
    name: String,
    value: f64,
    ends: Option<[f64; 2]>,
}

/// Returns a drawing with a dot for each row of a table; `None` if fewer than two rows have a rate.
/// If the ranges are known, each dot is on a line from the minimum to the maximum over the rounds.
fn dots(
    table: &Table,
    rate: usize,
    range: Option<usize>,
    (title, name): (&str, &str),
    looks: &Looks,
) -> Option<Plot> {
    let rows = rows(table, rate, range);
    if rows.len() < 2 {
        return None;
    }
    let scale = scale(&rows);
    let label = Label {
        name: name.to_owned(),
        title: title.to_owned(),
        description: described(&rows),
    };
    let height = TOP + ROW * rows.len() as f64 + 8.0;
    let drawn = |(place, row): (usize, &Row)| {
        dot(
            row,
            looks.get(&row.name),
            &scale,
            TOP + ROW * (place as f64 + 0.5),
        )
    };
    let body = Node::from([
        head(title, &scale, height),
        rows.iter().enumerate().map(drawn).collect(),
    ]);
    let line = match range {
        Some(_) => "; the line goes from the lowest to the highest of the rounds",
        None => "",
    };
    let caption =
        format!("{title}: operations per second, medians of the rounds (higher is better{line}).");
    Some(Plot::new(label, caption, height, None, body))
}

fn rows(table: &Table, rate: usize, range: Option<usize>) -> Vec<Row> {
    let row = |row: &Vec<String>| {
        let ends = range.and_then(|range| row.get(range)?.split_once(" to "));
        let ends = ends.and_then(|(low, high)| Some([figure(low)?.0, figure(high)?.0]));
        Some(Row {
            name: named(table, row, rate),
            value: figure(row.get(rate)?)?.0,
            ends,
        })
    };
    table.rows.iter().filter_map(row).collect()
}

/// Returns a scale that contains all rates and ranges.
fn scale(rows: &[Row]) -> Scale {
    let known = || {
        let ends = rows.iter().map(|row| row.ends.unwrap_or([row.value; 2]));
        ends.flatten()
    };
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(0.0, f64::max);
    Scale::logarithmic([low / 1.15, high * 1.15], PLOT)
}

fn described(rows: &[Row]) -> String {
    let told = rows.iter();
    let told = told.map(|row| format!("{}: {}", foreign::line(&row.name), told_of(row)));
    told.collect::<Vec<_>>().join("; ")
}

fn head(title: &str, scale: &Scale, height: f64) -> Node {
    let ticks = scale.ratio_ticks(44.0);
    let places: Vec<f64> = ticks.iter().map(|tick| scale.at(*tick)).collect();
    let grid: Vec<_> = places.iter().map(|x| [[*x, TOP], [*x, height]]).collect();
    let label = |(tick, x): (&f64, &f64)| {
        canvas::faint([*x, TOP - 12.0], Anchor::Middle, &Unit::Number.tell(*tick))
    };
    let what = "operations per second (log scale; higher is better)";
    Node::from([
        canvas::faint(
            [4.0, 14.0],
            Anchor::Start,
            &foreign::shorten(title, LONGEST_LINE),
        ),
        canvas::text([PLOT[0], 34.0], Anchor::Start, what),
        ticks.iter().zip(&places).map(label).collect(),
        canvas::grid(&grid),
        canvas::head_axis(PLOT, TOP - 2.0, &places),
    ])
}

fn dot(row: &Row, look: Look, scale: &Scale, y: f64) -> Node {
    let line = |ends: [f64; 2]| {
        let line = ends.map(|end| [scale.at(end), y]);
        let line = coloured(canvas::strokes(&[line]));
        line.with("stroke-width", "2").into()
    };
    let name = foreign::short_name(&row.name, LETTERS);
    let marks = Node::from([
        row.ends.map(line).into(),
        look.marker([scale.at(row.value), y], 4.5, None),
    ]);
    Node::from([
        canvas::text([PLOT[0] - 14.0, y + 4.5], Anchor::End, &name),
        canvas::group("", look).holding(marks).into(),
        canvas::faint([WIDTH - 4.0, y + 4.0], Anchor::End, &told_of(row)),
    ])
}

/// Formats the rate, and its range over the rounds.
fn told_of(row: &Row) -> String {
    let rate = words::short_number(row.value);
    match row.ends {
        None => rate,
        Some([low, high]) => format!(
            "{rate} ({} to {})",
            words::short_number(low),
            words::short_number(high)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tabled::names;
    use super::*;

    fn table(heads: &[&str], rows: &[&[&str]]) -> Table {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Table {
            title: "a table".to_owned(),
            heads: words(heads),
            rows: rows.iter().map(|row| words(row)).collect(),
            ..Table::default()
        }
    }

    #[test]
    fn figures_are_read_with_their_units() {
        assert_eq!(figure("1,959,338"), Some((1_959_338.0, Unit::Number)));
        let (time, unit) = figure("15.5 us").expect("a time");
        assert!((time - 15.5e-6).abs() < 1e-12 && unit == Unit::Seconds);
        assert_eq!(figure("15.5 µs"), figure("15.5 us"));
        assert_eq!(["-", "3 of 4", "1.50 KiB", "0"].map(figure), [None; 4]);
    }

    #[test]
    fn tables_of_rates_are_drawn_and_others_are_not() {
        let long = table(
            &["benchmark", "thr", "ops/s"],
            &[&["a", "1", "10"], &["a", "2", "20"], &["b", "1", "-"]],
        );
        let plot = |table: &Table| plot(table, "table-", &Looks::default());
        let drawn = plot(&long).expect("a curve");
        assert_eq!(drawn.name, "table-a-table-threads");
        assert_eq!(names(&long), ["a", "b"]);
        let wide = table(&["RAM", "1 thr", "4 thr"], &[&["512M", "10 ns", "40 ns"]]);
        assert!(plot(&wide).is_some());
        let rows = table(
            &["RAM", "ops/s", "range"],
            &[&["512M", "10", "9 to 11"], &["256M", "5", "-"]],
        );
        let drawn = plot(&rows).expect("dots");
        let text = drawn.text();
        assert!(text.contains("512M: 10 (9 to 11)"), "{text}");
        let published = Table {
            published: Some("a document".to_owned()),
            ..rows.clone()
        };
        assert!(plot(&published).is_none());
        assert!(plot(&table(&["metric", "here"], &[&["p50", "10 us"]])).is_none());
    }

    #[test]
    fn a_row_looks_as_whom_it_speaks_of_looks_in_other_tables() {
        let heads = ["benchmark", "thr", "ops/s"];
        let rates = table(
            &heads,
            &[
                &["jemalloc", "1", "10"],
                &["mine+touch", "1", "9"],
                &["mine+touch", "2", "19"],
            ],
        );
        let settings = table(
            &heads,
            &[
                &["always: mine+touch", "1", "10"],
                &["never: mine+touch", "1", "9"],
            ],
        );
        let mut looks = Looks::default();
        looks.table(&settings);
        looks.table(&rates);
        let colour = format!("color=\"{}\"", looks.get("mine+touch").colour());
        let drawn = |table: &Table| plot(table, "", &looks).expect("a drawing").text();
        assert_eq!(drawn(&settings).matches(&colour).count(), 2);
        assert_eq!(drawn(&rates).matches(&colour).count(), 1);
    }
}
