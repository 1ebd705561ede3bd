//! Parsing of tables of rates or times: named points over numbers of threads.

use heapdrome_schema::Table;

use super::measures::Unit;

/// Head of the column that contains rates.
pub(super) const RATE: &str = "ops/s";
/// Head of the column that contains numbers of threads.
pub(super) const THREADS: &str = "thr";

/// A value with its position and, if known, the ends of its interval or range, or its quartiles.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) place: f64,
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) ends: Option<[f64; 2]>,
}

/// Returns the names of a table's curves, including curves without points; empty for a published
/// table.
pub(super) fn names(table: &Table) -> Vec<String> {
    let found = curves(table).filter(|_| table.published.is_none());
    let found = found.map_or_else(Vec::new, |(curves, _)| curves);
    found.into_iter().map(|(name, _)| name).collect()
}

pub(super) fn column(table: &Table, head: &str) -> Option<usize> {
    table.heads.iter().position(|own| own == head)
}

/// Points by name, and the unit of their values.
pub(super) type Named = (Vec<(String, Vec<Point>)>, Unit);

/// Returns the points of a table over numbers of threads; `None` if the table has no such points.
pub(super) fn curves(table: &Table) -> Option<Named> {
    match (column(table, RATE), column(table, THREADS)) {
        (Some(rate), Some(threads)) => long(table, [rate, threads]),
        (Some(_), None) => None,
        _ => wide(table),
    }
}

/// Parses a figure of a table: a number with commas, or a time. Returns `None` for other text and
/// for figures that are not above 0.
pub(super) fn figure(cell: &str) -> Option<(f64, Unit)> {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let number: f64 = number.replace(',', "").parse().ok()?;
    let (scale, unit) = match unit {
        "" => (1.0, Unit::Number),
        "ns" => (1e-9, Unit::Seconds),
        // Older results contain `us`.
        "µs" | "us" => (1e-6, Unit::Seconds),
        "ms" => (1e-3, Unit::Seconds),
        "s" => (1.0, Unit::Seconds),
        _ => return None,
    };
    (number > 0.0 && number.is_finite()).then_some((number * scale, unit))
}

/// Returns the curves of a table with a row for each name and number of threads; `None` if a row
/// lacks a cell.
fn long(table: &Table, [rate, threads]: [usize; 2]) -> Option<Named> {
    let mut curves: Vec<(String, Vec<Point>)> = Vec::new();
    for row in &table.rows {
        let label = row.get(threads)?.clone();
        let point = figure(row.get(rate)?).zip(label.parse().ok());
        let point = point.map(|((value, _), place)| Point {
            place,
            label,
            value,
            ends: None,
        });
        let row_name = row.first()?;
        match curves.iter_mut().find(|(own, _)| own == row_name) {
            Some((_, points)) => points.extend(point),
            None => curves.push((row_name.clone(), point.into_iter().collect())),
        }
    }
    Some((curves, Unit::Number))
}

/// Returns the curves of a table with a column for each number of threads; `None` if it has no such
/// column, no figures, or figures in several units.
fn wide(table: &Table) -> Option<Named> {
    let count = |head: &String| head.strip_suffix(" thr")?.parse::<f64>().ok();
    let columns = table.heads.iter().enumerate();
    let columns: Vec<(usize, f64)> = columns
        .filter_map(|(place, head)| Some((place, count(head)?)))
        .collect();
    let names = columns.first()?.0;
    let mut units = Vec::new();
    let curves = table.rows.iter().map(|row| {
        let points = columns.iter().filter_map(|(column, place)| {
            let (value, unit) = figure(row.get(*column)?)?;
            units.push(unit);
            Some(Point {
                place: *place,
                label: place.to_string(),
                value,
                ends: None,
            })
        });
        let points = points.collect();
        (row[..names.min(row.len())].join(" "), points)
    });
    let curves = curves.collect();
    let unit = *units.first()?;
    let same = units.iter().all(|one| *one == unit);
    same.then_some((curves, unit))
}
