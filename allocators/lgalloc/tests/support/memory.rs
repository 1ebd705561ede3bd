//! Resident memory of the process, and bursts that fill it.

use heapdrome_lgalloc::{UNIT, allocate, deallocate};

use crate::support::touch;

/// Returns the resident memory of the process in bytes. `statm` would be cheaper, but is imprecise
/// on many processors.
pub fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("procfs");
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let number = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    number.expect("a number of kilobytes") * 1024
}

/// Allocates `megabytes` in regions of the smallest class, writes to every page, and frees all of
/// them.
pub fn burst(megabytes: usize) {
    let regions: Vec<_> = (0..megabytes / 2)
        .map(|_| allocate::<u8>(UNIT).expect("memory"))
        .collect();
    for (start, capacity, _) in &regions {
        touch(start.as_ptr(), *capacity);
    }
    regions
        .into_iter()
        .for_each(|(_, _, handle)| deallocate(handle));
}
