//! Much taken at once, and all of it returned.

use heapdrome_paging::{Burst, Cell, Holder, Job, Limit, burst_table, size};

use super::Part;

/// How many threads.
const THREADS: usize = 8;
/// Bytes of each of five sizes in each thread: in all more than lgalloc may keep.
const EACH: u64 = 32 << 20;

/// What heapdrome's lgalloc and the published crate keep in memory then.
pub fn burst(limit: Option<Limit>) -> Part {
    const PART: &str = "burst";
    let cell = |holder: Holder| {
        let job = Job::Burst(Burst {
            holder,
            threads: THREADS,
            each: EACH,
        });
        Cell::new(PART, holder.name(), job, limit)
    };
    let cells = [Holder::Lgalloc, Holder::Published].map(cell);
    Part::new(
        cells.into(),
        0,
        Box::new(|cells| {
            let title = format!(
                "What stays in memory after a burst, {} of each size from 2M to 32M in each thread",
                size(EACH)
            );
            vec![burst_table(&title, &cells.iter().collect::<Vec<_>>())]
        }),
    )
}
