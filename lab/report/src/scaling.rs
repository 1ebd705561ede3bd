//! The findings of a sweep: degradation with its intervals, and the knee of each curve.

use heapdrome_schema::{Collection, Factor, Knee, ScalingCurve, ScalingPoint, SweepResult};

use crate::foreign;
use crate::table::Column;
use crate::words::{self, NONE};

/// A table of the degradation for one combination of values of the parameters that the curves do
/// not follow.
pub(crate) struct Scaling {
    pub(crate) heading: String,
    pub(crate) names: Column,
    /// Columns of the table: one for each value except the first, then the knee if it is known and
    /// the table shows it.
    pub(crate) columns: Vec<Column>,
}

/// Function that selects the degradation of a point, or its degradation per processor.
type Pick = fn(&ScalingPoint) -> Option<&Factor>;

/// Returns the tables of a sweep: degradation, and degradation per processor if that differs from
/// the degradation. Names have at most `width` characters.
pub(crate) fn tables(collection: &Collection, width: usize) -> Vec<Scaling> {
    let Some(sweep) = collection.sweep() else {
        return Vec::new();
    };
    let mut tables = Vec::new();
    for others in others(sweep) {
        let curves: Vec<_> = curves(sweep, &others).collect();
        // At the first value every degradation is 1, so only later values count.
        let mut later = curves.iter().flat_map(|curve| curve.points.iter().skip(1));
        if !later.any(|point| point.degradation.is_some()) {
            continue;
        }
        let differ = has_own_processors(&curves);
        let plain: Pick = |point| point.degradation.as_ref();
        let heading = heading(sweep, &curves, &others);
        tables.push(table(&curves, heading, plain, !differ, width));
        if differ {
            let each: Pick = |point| point.per_processor.as_ref();
            let heading = format!("Degradation per processor{}", suffix(&others));
            tables.push(table(&curves, heading, each, true, width));
        }
    }
    tables
}

/// Returns the combinations of values of the parameters that the curves do not follow, in the order
/// of the sweep.
pub(crate) fn others(sweep: &SweepResult) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for curve in &sweep.curves {
        if !all.contains(&curve.others) {
            all.push(curve.others.clone());
        }
    }
    all
}

/// Returns the curves for one combination of values of the other parameters, such as `env:A=1`.
pub(crate) fn curves<'a>(
    sweep: &'a SweepResult,
    others: &'a str,
) -> impl Iterator<Item = &'a ScalingCurve> {
    sweep.curves.iter().filter(move |one| one.others == others)
}

/// Returns whether degradation per processor differs from degradation, because the races had
/// different numbers of processors.
fn has_own_processors(curves: &[&ScalingCurve]) -> bool {
    let mut points = curves.iter().flat_map(|curve| &curve.points);
    points.any(|point| point.degradation != point.per_processor)
}

fn suffix(others: &str) -> String {
    if others.is_empty() {
        String::new()
    } else {
        format!(", {}", foreign::line(others))
    }
}

fn heading(sweep: &SweepResult, curves: &[&ScalingCurve], others: &str) -> String {
    let first = curves.iter().find_map(|curve| curve.points.first());
    let first = first.map_or("", |point| point.value.as_str());
    let start = format!("{}={}", foreign::line(&sweep.along), foreign::line(first));
    let work = foreign::line(&sweep.work);
    format!(
        "Degradation: time over work, relative to {start} (less is better; work: {work}){}",
        suffix(others)
    )
}

fn table(
    curves: &[&ScalingCurve],
    heading: String,
    pick: Pick,
    with_knee: bool,
    width: usize,
) -> Scaling {
    let shown = |curve: &&ScalingCurve| foreign::short_name(&curve.allocator, width);
    let names = Column::text("allocator", curves.iter().map(shown).collect());
    let count = curves.iter().map(|curve| curve.points.len()).max();
    // At the first value every degradation is 1, so the first value has no column.
    let places = 1..count.unwrap_or(0);
    let column = |place: usize| {
        let head = curves.iter().find_map(|curve| curve.points.get(place));
        let head = head.map_or(String::new(), |point| foreign::line(&point.value));
        let cell = |curve: &&ScalingCurve| {
            let factor = curve.points.get(place).and_then(pick);
            factor.map_or(NONE.to_owned(), interval)
        };
        Column::figures(head, curves.iter().map(cell).collect())
    };
    let mut columns: Vec<_> = places.map(column).collect();
    if with_knee && curves.iter().any(|curve| curve.knee.is_some()) {
        let cells = curves.iter().map(|curve| knee(curve)).collect();
        columns.push(Column::figures("knee", cells));
    }
    Scaling {
        heading,
        names,
        columns,
    }
}

/// Formats a factor with its interval, such as `0.98 (0.95 to 1.02)`.
pub(crate) fn interval(factor: &Factor) -> String {
    let Factor { ratio, low, high } = factor;
    format!("{ratio:.2} ({low:.2} to {high:.2})")
}

/// Formats a knee, such as `4`, `2 to 8`, `2 or later` or `beyond 16`.
fn knee(curve: &ScalingCurve) -> String {
    let Some(Knee { certain, possible }) = &curve.knee else {
        return NONE.to_owned();
    };
    let last = curve.points.last().map(|point| &point.value);
    let (certain, possible, last) = (
        foreign::line(certain),
        foreign::line(possible),
        last.map(|last| foreign::line(last)),
    );
    let beyond = last.as_ref() == Some(&possible);
    match (certain == possible, beyond) {
        (true, true) => format!("beyond {possible}"),
        (true, false) => certain,
        (false, true) => format!("{certain} or later"),
        (false, false) => format!("{certain} to {possible}"),
    }
}

/// Returns notes that explain the tables of a sweep.
pub(crate) fn notes(collection: &Collection) -> Vec<String> {
    let Some(sweep) = collection.sweep() else {
        return Vec::new();
    };
    if tables(collection, usize::MAX).is_empty() {
        return Vec::new();
    }
    let rests = match sweep.paired {
        true => {
            "The races took turns round by round, and the intervals are based on the ratios within each round"
        }
        false => {
            "Its intervals cover only the noise within the races; if the speed of the machine drifts \
             from race to race, they are too narrow. The ratios to the baseline above are not affected"
        }
    };
    let mut notes = vec![format!(
        "degradation is the ratio of wall times over the ratio of work. {rests}"
    )];
    if sweep.curves.iter().any(|curve| curve.knee.is_some()) {
        notes.push(format!(
            "the knee is the last value up to which degradation per processor stays within {}; \
             '2 to 8' is certain up to 2 and possible up to 8",
            words::fraction(sweep.share)
        ));
    }
    notes
}
