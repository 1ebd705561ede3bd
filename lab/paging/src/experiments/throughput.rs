//! Benchmark of taking and returning regions.

use std::time::Duration;

use heapdrome_schema::{Experiment, Job, Limit, PagingCell as Cell, Table, Throughput, Variant};

use super::Holding;
use crate::tables::{kept_table, pair_table, published_table, throughput_table};

/// Returns the cells of the document's throughput benchmark with these numbers of threads. Further
/// cells take blocks from each of `rivals`.
#[must_use]
pub fn throughput(
    threads: &[usize],
    rivals: &[Holding],
    limit: Option<Limit>,
    warm_up: Duration,
    seconds: Duration,
) -> Vec<Cell> {
    let own = Holding::default();
    let cell = |holding: &Holding, name: &str, threads: usize, variant: Variant| {
        let job = Job::Throughput(Throughput {
            variant,
            threads,
            warm_up,
            seconds,
        });
        let name = format!("{name} x {threads}");
        holding.cell(0, Experiment::Throughput, &name, job, limit)
    };
    let mut cells = Vec::new();
    for count in threads {
        cells.extend(Variant::ALL.map(|variant| cell(&own, variant.name(), *count, variant)));
        for rival in rivals {
            let touching = format!("{}+touch", rival.name());
            cells.extend([
                cell(rival, rival.name(), *count, Variant::Sysalloc),
                cell(rival, &touching, *count, Variant::SysallocTouch),
            ]);
        }
    }
    cells
}

pub fn tables(cells: &[&Cell]) -> Vec<Table> {
    let title = "Regions of 2 MiB, taken and returned; the warm-up is not counted";
    let pairs = "Time of one operation without the clock, by threads";
    let kept = "One operation with a write to each page, over the same writes to a region that is kept, by \
                threads";
    let published = "One pair of lgalloc's over one of the published crate's, by threads";
    let mut all = throughput_table(title, cells);
    all.notes.push(
        "sysalloc and the allocators by name: aligned to a page, as in the document's program; malloc: without \
         an alignment"
            .to_owned(),
    );
    vec![
        all,
        pair_table(pairs, cells),
        published_table(published, cells),
        kept_table(kept, cells),
    ]
}
