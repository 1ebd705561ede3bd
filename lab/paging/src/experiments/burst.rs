//! Much taken at once, and all of it returned.

use heapdrome_record::{Burst, Bytes, Experiment, Holder, Job, Limit, PagingCell as Cell, Table};

use crate::tables::burst_table;
use crate::words::size;

/// How many threads.
const THREADS: usize = 8;
/// How much of each of five sizes in each thread: in all more than lgalloc may keep.
const EACH: Bytes = Bytes::from_mib(32);

/// What heapdrome's lgalloc and the published crate keep in memory then.
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
        "What stays in memory after a burst, {} of each size from 2M to 32M in each thread",
        size(each.unwrap_or(EACH))
    );
    vec![burst_table(&title, cells)]
}
