//! Statistics of the process and of each class: live, cached, dirty and mapped bytes, and counts of
//! events. Only slow paths update them.
//!
//! For the calling thread, the number of blocks in magazines is exact. For any other thread it is
//! the number that its slow paths last recorded: blocks that it freed since then count as live, and
//! blocks that it allocated since then count as cached.

use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_malloc_abi::{Report, Statistics, Table};
use heapdrome_pages::Pages;

use crate::heap::heaps::Heaps;
use crate::size_class::{CLASSES, SizeClass};
use crate::slabs::partial::Slabs;
use crate::units::amount::Units;

const COLUMNS: Table<'static> = Table {
    name: "classes",
    row: "class",
    columns: &[
        "size",
        "live",
        "cached",
        "dirty",
        "mapped",
        "refills",
        "remote_frees",
    ],
};

/// Statistics of one class, in bytes and events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStatistics {
    /// Bytes of live blocks.
    pub live: usize,
    /// Bytes of free blocks in magazines and depots.
    pub cached: usize,
    /// Bytes of free blocks in slabs. Their pages may be resident.
    pub dirty: usize,
    /// Bytes of slabs.
    pub mapped: usize,
    /// Number of times that threads took blocks from bins.
    pub refills: u64,
    /// Number of blocks that threads gave back to bins other than their own.
    pub remote_frees: u64,
}

impl ClassStatistics {
    fn add_bin(&mut self, slabs: &Slabs, class: SizeClass) {
        let shape = class.geometry();
        let count = slabs.slabs as usize;
        let free = slabs.free_blocks();
        self.dirty += free * class.size();
        self.live += (count * usize::from(shape.blocks) - free) * class.size();
        self.mapped += count * Units::of_slab(class).bytes();
        self.refills += slabs.refills;
        self.remote_frees += slabs.remote_frees;
    }

    fn add(&mut self, other: &Self) {
        self.live += other.live;
        self.cached += other.cached;
        self.dirty += other.dirty;
        self.mapped += other.mapped;
        self.refills += other.refills;
        self.remote_frees += other.remote_frees;
    }
}

/// Statistics of the process. Other threads may allocate while the statistics are gathered, so the
/// numbers may describe different moments.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Statistics of each class.
    pub classes: [ClassStatistics; CLASSES + 1],
    /// Sum over all classes.
    pub all: ClassStatistics,
    /// Bytes of large blocks that are runs of units.
    pub large: usize,
    /// Bytes of blocks with their own mapping.
    pub mapped_blocks: usize,
    /// Number of blocks that have their own mapping.
    pub mapped_count: usize,
    /// Bytes of free units that may be resident.
    pub idle: usize,
    /// Bytes of the committed units of all arenas, and of blocks with their own mapping.
    pub mapped: usize,
    /// Upper bound of the maximum of `mapped` so far: the maximum for units, plus that for blocks
    /// with their own mapping.
    pub peak_mapped: usize,
    /// Number of times that memory was returned to the system.
    pub purges: u64,
    /// Number of bytes that were returned to the system.
    pub purged: u64,
}

impl Snapshot {
    /// Gathers the current statistics. The caller must first record the blocks in its own magazines
    /// ([`note_cached`](crate::heap::threads::note_cached)).
    #[must_use]
    #[cold]
    pub fn of<P: Pages>(heaps: &Heaps<P>) -> Self {
        let mut classes = count_classes(heaps);
        let mut all = ClassStatistics::default();
        for class in &mut classes {
            // Blocks may have moved between the two counts, so `cached` may exceed `live`.
            class.cached = class.cached.min(class.live);
            class.live -= class.cached;
            all.add(class);
        }
        let (mapped_blocks, peak_blocks, mapped_count) = {
            let mapped = heaps.mapped.table.lock();
            (mapped.bytes, mapped.peak, mapped.count())
        };
        let memory = heaps.memory();
        let pool = memory.pool.lock();
        let committed = pool.committed.bytes();
        let (purges, purged) = memory.purges();
        Self {
            classes,
            all,
            large: pool.live.bytes().saturating_sub(all.mapped),
            mapped_blocks,
            mapped_count,
            idle: pool.dirty.bytes(),
            mapped: committed + mapped_blocks,
            peak_mapped: pool.peak.max(pool.committed).bytes() + peak_blocks,
            purges,
            purged,
        }
    }

    /// Returns the statistics that every allocator reports.
    #[must_use]
    #[cold]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            live: self.all.live + self.large + self.mapped_blocks,
            live_mapped: self.mapped_blocks,
            mapped_blocks: self.mapped_count,
            free: self.all.cached + self.all.dirty + self.idle,
            releasable: self.idle,
            reserved: self.mapped,
            peak_reserved: self.peak_mapped,
        }
    }

    /// Writes the statistics of the process, and those of each class that was ever refilled, to
    /// `report`.
    #[cold]
    pub fn report(&self, name: &str, report: &mut Report<'_>) {
        report.begin(name);
        report.statistics(&self.statistics());
        report.value("large", self.large);
        report.value("cached", self.all.cached);
        report.value("dirty", self.all.dirty + self.idle);
        report.value("mapped", self.mapped);
        report.value("refills", self.all.refills as usize);
        report.value("remote_frees", self.all.remote_frees as usize);
        report.value("purges", self.purges as usize);
        report.value("purged", self.purged as usize);
        report.begin_table(&COLUMNS);
        for (number, class) in self.classes.iter().enumerate().skip(1) {
            if class.refills == 0 {
                continue;
            }
            let values = [
                SizeClass::from_number(number as u8).size(),
                class.live,
                class.cached,
                class.dirty,
                class.mapped,
                class.refills as usize,
                class.remote_frees as usize,
            ];
            report.row(&COLUMNS, &values);
        }
        report.end_table(&COLUMNS);
        report.end();
    }
}

/// Counts the blocks of each class in bins, depots and magazines. Blocks in depots and magazines
/// also count as live.
#[cold]
fn count_classes<P: Pages>(heaps: &Heaps<P>) -> [ClassStatistics; CLASSES + 1] {
    let mut classes = [ClassStatistics::default(); CLASSES + 1];
    heaps.shards.each_bin(|bin| {
        let class = bin.class();
        classes[class.number()].add_bin(&bin.lock(), class);
    });
    for heap in heaps.all() {
        let depot = heap.depot().lock();
        for (number, count) in heap.cached().iter().enumerate().skip(1) {
            let class = SizeClass::from_number(number as u8);
            // Relaxed: no other memory depends on this number.
            let count = usize::from(count.load(Relaxed)) + depot.count(class);
            classes[number].cached += count * class.size();
        }
    }
    classes
}
