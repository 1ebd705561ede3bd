//! Entrants with measurements of the parts of their memory.

use heapdrome_schema::{AfterIdle, Bytes, EntrantResult, MemoryParts, MemorySample, Nanoseconds};

use crate::races::series;

/// Sets five readings of an entrant's memory, and its memory after an idle period. The first
/// reading has `mib` MiB of anonymous memory, each further one has 1 MiB more, and the idle process
/// has half of `mib`.
pub fn watch_closely(entrant: &mut EntrantResult, mib: u64) {
    let reading = |at: u64, anonymous: u64| MemoryParts {
        at: Nanoseconds(at * 1_000_000_000),
        anonymous: Bytes(anonymous << 20),
        huge: Bytes(anonymous << 19),
        lazily_freed: Bytes(anonymous << 18),
        file: Bytes(3 << 20),
        shared: Bytes(1 << 20),
        swapped: Bytes(2 << 20),
    };
    entrant.memory_timeline = (0..5)
        .map(|at| MemorySample {
            at: Nanoseconds(at * 1_000_000_000),
            anonymous: Bytes((mib + at) << 20),
        })
        .collect();
    let parts = (0..5).map(|at| reading(at, mib + at));
    entrant.memory_parts = parts.collect();
    entrant.memory_parts_method = Some("smaps_rollup".to_owned());
    entrant.peak_tree_bytes = series(((mib + 4) << 20) as f64);
    entrant.average_tree_bytes = series((mib << 20) as f64);
    entrant.after_idle = Some(AfterIdle {
        idle: Nanoseconds(3_000_000_000),
        parts: reading(7, mib / 2),
    });
}
