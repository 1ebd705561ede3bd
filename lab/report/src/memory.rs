//! The memory of the process trees and its parts, from the untimed runs.

use heapdrome_schema::{Bytes, EntrantResult, MemoryParts};

use crate::foreign;
use crate::prose;
use crate::sheet::Sheet;
use crate::sparkline::Scales;
use crate::table::Column;
use crate::words::{self, NONE};

/// Heading of the table.
pub(crate) const HEADING: &str = "Memory of the process tree (untimed runs)";
/// Name of a workload's figure for its peak of requested bytes.
pub(crate) const REQUESTED: &str = "peak_requested_bytes";
/// Name of a workload's figure for its peak of resident memory.
const RESIDENT: &str = "peak_resident_bytes";

/// Name of the figure for the average memory of the process tree.
const AVERAGE: &str = "average_tree_bytes";

/// Minimum amount of memory that justifies a remark.
const LEAST: Bytes = Bytes(1 << 20);

/// Minimum ratio of the largest reading of a tree's parts to the tree's peak at which the reading
/// represents the peak.
const NEAR_PEAK: f64 = 0.8;

/// Returns the parts of the memory at its largest reading; `None` if there is no reading, or none
/// came near the peak, for example in a run that ends after a few readings.
pub(crate) fn at_most(entrant: &EntrantResult) -> Option<&MemoryParts> {
    largest(entrant).filter(|parts| {
        let peak = entrant.peak_tree_bytes.as_ref();
        let held = (parts.anonymous + parts.swapped).as_f64();
        peak.is_none_or(|peak| held >= NEAR_PEAK * peak.median)
    })
}

fn largest(entrant: &EntrantResult) -> Option<&MemoryParts> {
    let parts = entrant.memory_parts.iter();
    parts.max_by_key(|parts| parts.resident() + parts.swapped)
}

/// Returns the peak of a workload's requested bytes; `None` if the workload does not report it.
pub(crate) fn requested(sheet: &Sheet<'_>, entrant: &EntrantResult) -> Option<f64> {
    figure(sheet, entrant, REQUESTED)
}

fn figure(sheet: &Sheet<'_>, entrant: &EntrantResult, name: &str) -> Option<f64> {
    let series = entrant
        .metrics
        .get(name)
        .filter(|_| sheet.is_figure(name))?;
    Some(series.median).filter(|median| median.is_finite() && *median > 0.0)
}

/// Returns the names, of at most `name` characters, and a column for each figure that any entrant
/// has. There are no columns if only the peaks are known. The first column is a sparkline of the
/// memory over time, `sparkline` characters wide; zero omits it.
pub(crate) fn table(sheet: &Sheet<'_>, name: usize, sparkline: usize) -> (Column, Vec<Column>) {
    let names = cells(sheet, |entrant| {
        foreign::short_name(&entrant.allocator, name)
    });
    let figures = |head: &str, tell: &dyn Fn(&EntrantResult) -> String| {
        Column::figures(head, cells(sheet, tell))
    };
    let part = |head: &str, of: fn(&MemoryParts) -> Bytes| {
        figures(head, &|entrant| amount(at_most(entrant).map(of)))
    };
    let mut columns = Vec::new();
    if !sheet.rows.iter().any(|row| is_watched(row.entrant)) {
        return (Column::text("\nallocator", names), columns);
    }
    columns.extend(over_time(sheet, sparkline));
    columns.extend([
        figures("\npeak", &|e| words::bytes(e.peak_tree_bytes.as_ref())),
        figures("\naverage", &|e| {
            words::bytes(e.average_tree_bytes.as_ref())
        }),
        figures("after\nidle", &|entrant| {
            let parts = entrant.after_idle.map(|rest| rest.parts);
            parts.map_or_else(|| NONE.to_owned(), |parts| parts.anonymous.to_string())
        }),
        part("in huge\npages", |parts| parts.huge),
        part("lazily\nfreed", |parts| parts.lazily_freed),
        part("\nfiles", |parts| parts.file),
        part("\nshared", |parts| parts.shared),
        part("swapped\nout", |parts| parts.swapped),
        figures("requested\npeak", &|entrant| {
            amount(requested(sheet, entrant).map(|bytes| Bytes(bytes.round() as u64)))
        }),
        figures("resident per\nrequested", &|entrant| {
            fragmentation(sheet, entrant)
        }),
    ]);
    columns.retain(Column::says_anything);
    let mut names = Column::text("\nallocator", names);
    if columns.iter().all(|column| column.head.starts_with('\n')) {
        for column in columns.iter_mut().chain([&mut names]) {
            column.head.remove(0);
        }
    }
    (names, columns)
}

/// Returns whether the entrant's memory over time or its average is known. Peaks alone do not
/// count, because other tables show them.
fn is_watched(entrant: &EntrantResult) -> bool {
    !entrant.memory_timeline.is_empty() || entrant.average_tree_bytes.is_some()
}

fn cells(sheet: &Sheet<'_>, tell: impl Fn(&EntrantResult) -> String) -> Vec<String> {
    sheet.rows.iter().map(|row| tell(row.entrant)).collect()
}

/// Formats an amount. Zero and an unknown amount become a dash.
fn amount(bytes: Option<Bytes>) -> String {
    let some = bytes.filter(|bytes| *bytes > Bytes(0));
    some.map_or_else(|| NONE.to_owned(), |bytes| bytes.to_string())
}

fn over_time(sheet: &Sheet<'_>, width: usize) -> Option<Column> {
    let timelines = sheet
        .rows
        .iter()
        .map(|row| row.entrant.memory_timeline.as_slice());
    let scales = Scales::of(timelines, width.max(1)).filter(|_| width > 0)?;
    let lines = cells(sheet, |entrant| scales.line(&entrant.memory_timeline));
    Some(Column::text("\nover time", lines))
}

/// Formats the ratio of the peaks of resident and requested memory, which is the allocator's
/// overhead.
fn fragmentation(sheet: &Sheet<'_>, entrant: &EntrantResult) -> String {
    let resident = figure(sheet, entrant, RESIDENT);
    let both = resident.zip(requested(sheet, entrant));
    both.map_or_else(
        || NONE.to_owned(),
        |(resident, requested)| format!("{:.2}", resident / requested),
    )
}

/// Returns remarks on the entrants whose resident memory overstates or understates the memory held,
/// on missing figures, and on the idle time.
pub(crate) fn remarks(sheet: &Sheet<'_>) -> Vec<String> {
    let of_all = |tell: fn(&EntrantResult) -> Option<String>| {
        let told = sheet.rows.iter().filter_map(|row| {
            let name = foreign::name(&row.entrant.allocator);
            Some(format!("{} under {name}", tell(row.entrant)?))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| words::listed(&told))
    };
    let overstated = of_all(overstated).map(|amounts| {
        format!(
            "resident memory is overstated: up to {amounts} was freed with MADV_FREE and stays only \
             until the system needs it"
        )
    });
    let hidden = of_all(hidden)
        .map(|amounts| format!("resident memory excludes swapped pages: up to {amounts}"));
    let remarks = overstated.into_iter().chain(hidden);
    remarks
        .chain(missed(sheet))
        .chain(idleness(sheet))
        .chain(refused(sheet))
        .collect()
}

/// Names the figures that the engine left out because the speed of a replay supports no claim on
/// them.
fn refused(sheet: &Sheet<'_>) -> Option<String> {
    let replay = sheet.result.options.replay.as_ref();
    let replay = replay.filter(|replay| !replay.supports(AVERAGE))?;
    Some(format!(
        "memory over time, its average and idle memory are not shown: a replay at speed {} supports \
         no claim on them",
        replay.speed
    ))
}

/// Lists the entrants whose parts are omitted because no reading came near the peak.
fn missed(sheet: &Sheet<'_>) -> Option<String> {
    let rows = sheet.rows.iter().map(|row| row.entrant);
    let missed = rows.filter(|entrant| largest(entrant).is_some() && at_most(entrant).is_none());
    let names: Vec<String> = missed
        .map(|entrant| foreign::name(&entrant.allocator))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "parts of memory are not shown for {}: no reading reached 80% of the peak, because \
             the run was too short or the peak too brief",
            words::listed(&names)
        )
    })
}

fn readings(entrant: &EntrantResult) -> impl Iterator<Item = &MemoryParts> {
    let rest = entrant.after_idle.as_ref().map(|rest| &rest.parts);
    entrant.memory_parts.iter().chain(rest)
}

/// Returns the amount of resident memory that the entrant freed with `MADV_FREE`, if it is large
/// enough for a remark.
fn overstated(entrant: &EntrantResult) -> Option<String> {
    let parts = readings(entrant).max_by_key(|parts| parts.lazily_freed)?;
    let resident = parts.resident();
    let counts = parts.lazily_freed >= LEAST && parts.lazily_freed.0 * 50 >= resident.0;
    counts.then(|| format!("{} of {resident}", parts.lazily_freed))
}

/// Returns the amount of swapped memory, which is held but not resident, if it is large enough for
/// a remark.
fn hidden(entrant: &EntrantResult) -> Option<String> {
    let parts = readings(entrant).max_by_key(|parts| parts.swapped)?;
    let resident = parts.resident();
    (parts.swapped >= LEAST).then(|| format!("{} beside {resident} resident", parts.swapped))
}

/// Explains the term "after idle" for this race; `None` if no idle memory was measured.
fn idleness(sheet: &Sheet<'_>) -> Option<String> {
    let idle = sheet.rows.iter().filter_map(|row| row.entrant.after_idle);
    let shortest = idle.map(|rest| rest.idle).min_by_key(|idle| idle.0)?;
    let whose = match sheet.result.options.server {
        Some(_) => "the server was left alone after its load",
        None => "every thread of the tree was idle: the longest such time of the run",
    };
    Some(format!(
        "after idle: anonymous memory after at least {shortest} in which {whose}"
    ))
}

/// Describes how memory was measured: the peaks, then the parts.
pub(crate) fn methods(sheet: &Sheet<'_>) -> Vec<String> {
    let mut parts = sheet
        .rows
        .iter()
        .filter_map(|row| row.entrant.memory_parts_method.as_deref());
    let parts = parts
        .next()
        .map(|method| format!("parts of memory: {}", foreign::line(method)));
    let mut methods = prose::methods(sheet.result);
    methods.extend(parts);
    methods
}
