//! Makes way for growth. Before memory grows, cached memory returns to the pool, which may make the
//! growth unnecessary. After memory has grown, up to the same amount of idle memory returns to the
//! system.

use heapdrome_pages::Pages;
use heapdrome_pages::atomic::Ordering::Relaxed;

use super::Heaps;
use crate::heap::depot::LEAST_KEPT;
use crate::units::amount::Units;
use crate::units::pool::{Pool, Run};

/// Divisor of live memory. Before memory grows, the depots are emptied if together they hold more
/// than live memory divided by this number, and more than [`LEAST_KEPT`].
const WORTH_PART: usize = 16;
/// Divisor of live memory. Caches are emptied for growth again only after live memory has changed
/// by at least its amount divided by this number, and by at least a unit.
const GROWN_PART: usize = 64;

impl<P: Pages> Heaps<P> {
    /// Before memory grows by a run of `units`, gives cached memory back to the pool. This may make
    /// the growth unnecessary. Does nothing if live memory has hardly changed since the last time,
    /// or if the pool has a free dirty run that is long enough; scattered dirty units do not count,
    /// since the pool always has some.
    pub fn before_growth(&self, units: Units) {
        let live = self.memory().live_units();
        // Relaxed: no other memory depends on this number.
        let emptied_at = Units::new(self.emptied_at.load(Relaxed));
        let has_run = |pool: &Pool| pool.has_dirty_run(units);
        if live.abs_diff(emptied_at) < (live / GROWN_PART).max(Units::ONE)
            || has_run(&self.memory().pool.lock())
        {
            return;
        }
        self.emptied_at.store(live.count(), Relaxed);
        self.give_back_until(has_run);
    }

    /// After memory has grown by `run`, returns idle memory to the system: at most as much as the
    /// run may newly make resident.
    pub fn after_growth(&self, run: Run) {
        self.memory().purge_for(run.fresh, Some(run));
    }

    /// Before a new mapping of `units` becomes resident, returns up to the same amount of idle
    /// memory to the system, because the mapped block cannot use that memory.
    pub fn before_mapping(&self, units: Units) {
        self.give_back_until(|pool| pool.excess() >= units);
        self.memory().purge_for(units, None);
    }

    /// Gives empty slabs back to the pool, then empties the depots if they hold many blocks. Stops
    /// as soon as `enough` is true of the pool.
    fn give_back_until(&self, enough: impl Fn(&Pool) -> bool) {
        let done = || enough(&self.memory().pool.lock());
        if done() {
            return;
        }
        self.retire_empties();
        if done() {
            return;
        }
        let held: usize = self.all().map(|heap| heap.depot().lock().bytes()).sum();
        if held > (self.memory().live_bytes() / WORTH_PART).max(LEAST_KEPT) {
            self.release_kept();
        }
    }
}
