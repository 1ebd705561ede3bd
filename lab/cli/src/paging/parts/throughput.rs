//! Regions taken and returned.

use std::time::Duration;

use heapdrome_paging::{
    Cell, Job, Limit, Throughput, Variant, kept_table, pair_table, published_table,
    throughput_table,
};
use heapdrome_record::Table;

use super::Part;
use crate::paging::holding::Holding;

const PART: &str = "throughput";

/// The document's throughput benchmark at these numbers of threads; blocks are also taken from each
/// of `rivals`.
pub fn throughput(
    threads: &[usize],
    rivals: &[Holding],
    limit: Option<Limit>,
    warm_up: Duration,
    seconds: Duration,
) -> Part {
    let cell = |name: &str, threads: usize, variant: Variant| {
        let job = Job::Throughput(Throughput {
            variant,
            threads,
            warm_up,
            seconds,
        });
        Cell::new(PART, format!("{name} x {threads}"), job, limit)
    };
    let mut cells = Vec::new();
    for count in threads {
        cells.extend(Variant::ALL.map(|variant| cell(variant.name(), *count, variant)));
        for rival in rivals {
            let touching = format!("{}+touch", rival.name);
            let both = [
                cell(&rival.name, *count, Variant::Sysalloc),
                cell(&touching, *count, Variant::SysallocTouch),
            ];
            cells.extend(both.map(|cell| rival.with(cell)));
        }
    }
    Part::new(cells, 0, Box::new(tables))
}

fn tables(cells: &[Cell]) -> Vec<Table> {
    let title = "Regions of 2 MiB, taken and returned; the warm-up is not counted";
    let cells: Vec<&Cell> = cells.iter().collect();
    let pairs = "Time of one operation without the clock, by threads";
    let kept = "One operation with a write to each page, over the same writes to a region that is kept, by \
                threads";
    let published = "One pair of lgalloc's over one of the published crate's, by threads";
    let mut all = throughput_table(title, &cells);
    all.notes.push(
        "sysalloc and the allocators by name: aligned to a page, as in the document's program; malloc: without \
         an alignment"
            .to_owned(),
    );
    vec![
        all,
        pair_table(pairs, &cells),
        published_table(published, &cells),
        kept_table(kept, &cells),
    ]
}
