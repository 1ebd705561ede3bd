//! The evaluation of a collection's cells: tables, distributions for plots, claims and targets. It
//! depends only on stored results and the number of processors, so a resumed result is evaluated as
//! a whole.

use heapdrome_schema::{Ccdf, CcdfPoint, Collection, Experiment, PagingCell as Cell, Purpose};

use crate::experiments::tables;
use crate::tables::counters_table;
use crate::{claims, targets};

/// Maximum number of distinguishable curves in one plot.
const MOST_CURVES: usize = 20;

/// Recomputes the tables, the curves and the verdicts of a paging collection. Does nothing to any
/// other collection. `processors` is the number of processors available to tests. If it is `None`,
/// the document's claims are not tested.
pub fn evaluate(collection: &mut Collection, processors: Option<usize>) {
    let Purpose::Paging {
        cells,
        time,
        ccdfs: exceeded,
        ..
    } = &mut collection.purpose
    else {
        return;
    };
    let mut cells: Vec<&Cell> = cells.iter().collect();
    cells.sort_by_key(|cell| cell.part);
    let mut judged = processors.map_or_else(Vec::new, |count| claims(&cells, count));
    judged.extend(targets(&cells));
    let mut made = tables(&cells);
    let mut counters = counters_table("Counters of each cell: medians of rounds", &cells);
    if let Some(time) = time {
        let minutes = time.as_seconds() / 60.0;
        counters
            .notes
            .push(format!("measured in {minutes:.1} minutes"));
    }
    made.push(counters);
    *exceeded = ccdfs(&cells);
    collection.claims = judged;
    collection.tables = made;
}

/// Returns the curves of each experiment, for every kind of time that it measured. Omits a kind
/// with too many curves for one plot.
fn ccdfs(cells: &[&Cell]) -> Vec<Ccdf> {
    let mut kinds: Vec<(Experiment, &String)> = Vec::new();
    for cell in cells {
        let known = cell.sound().flat_map(|report| report.distributions.keys());
        for kind in known {
            if !kinds.contains(&(cell.part, kind)) {
                kinds.push((cell.part, kind));
            }
        }
    }
    let group = |(part, kind): &(Experiment, &String)| -> Vec<Ccdf> {
        let own = cells.iter().filter(|cell| cell.part == *part);
        own.filter_map(|cell| ccdf(kind, cell)).collect()
    };
    let groups = kinds.iter().map(group);
    groups
        .filter(|group| group.len() <= MOST_CURVES)
        .flatten()
        .collect()
}

fn ccdf(kind: &str, cell: &Cell) -> Option<Ccdf> {
    let times = cell.distribution(kind);
    let point = |point: heapdrome_schema::Point| CcdfPoint {
        time: point.time,
        above: point.share,
    };
    (times.count() > 0).then(|| Ccdf {
        kind: format!("{}: {kind}", cell.part),
        cell: cell.name.clone(),
        count: times.count(),
        points: times.ccdf().into_iter().map(point).collect(),
    })
}
