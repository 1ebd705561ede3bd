//! A burst: many regions are taken, and then all of them are returned.

use heapdrome_schema::{Burst, Bytes, Experiment, Holder, Job, Limit, PagingCell as Cell, Table};

use crate::tables::burst_table;
use crate::words::size;

/// Number of threads that take regions in a burst.
const THREADS: usize = 8;
/// Number of bytes that each thread takes in regions of each size. The total exceeds the memory
/// that lgalloc may keep.
const EACH: Bytes = Bytes::from_mib(32);

/// Returns the cells that measure the memory kept after a burst by heapdrome's lgalloc and by the
/// published crate.
#[must_use]
pub fn burst(limit: Option<Limit>) -> Vec<Cell> {
    let cell = |holder: Holder| {
        let job = Job::Burst(Burst {
            holder,
            threads: THREADS,
            each: EACH,
        });
        Cell::new(Experiment::Burst, holder.name(), job, limit)
    };
    [Holder::Lgalloc, Holder::Published].map(cell).into()
}

pub fn tables(cells: &[&Cell]) -> Vec<Table> {
    let each = cells.iter().find_map(|cell| match &cell.job {
        Job::Burst(job) => Some(job.each),
        _ => None,
    });
    let title = format!(
        "Memory that stays resident after a burst, {} of each size from 2M to 32M in each thread",
        size(each.unwrap_or(EACH))
    );
    vec![burst_table(&title, cells)]
}
