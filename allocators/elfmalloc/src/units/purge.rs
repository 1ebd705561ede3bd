//! Purges units: returns their memory to the system.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::units::amount::Units;
use crate::units::arena::LARGEST_RUN;
use crate::units::memory::Memory;
use crate::units::pool::{Pool, Run, Taken};

/// Number of idle units that neither the end of an epoch nor growth purges.
const KEPT: Units = Units::filled_by(256 << 10);
/// Number of live units up to which only [`KEPT`] units may stay idle at the end of an epoch,
/// because a small heap can fault them in again quickly. A larger heap may keep a share of the live
/// units beyond this number idle.
const SMALL_HEAP: Units = Units::filled_by(32 << 20);

impl Pool {
    /// Starts another epoch. Returns the number of units to purge because they were idle throughout
    /// the last epoch. Also returns the number of units among them that may be purged even if they
    /// are parts of huge pages.
    pub fn end_epoch(&mut self) -> (Units, Units) {
        if cfg!(debug_assertions) {
            self.check();
        }
        let idle = self.dirty_low;
        self.dirty_low = self.dirty;
        let beyond = self.live.saturating_sub(SMALL_HEAP);
        let kept = KEPT.max(beyond / 32);
        let parts = KEPT.max(beyond / 16);
        (idle.saturating_sub(kept), idle.saturating_sub(parts))
    }

    /// Returns the maximum number of dirty units that may be purged when memory grows.
    pub fn excess(&self) -> Units {
        self.dirty.saturating_sub(KEPT.max(self.live / 8))
    }
}

impl<P: Pages> Memory<P> {
    /// Runs `action`, which gives idle blocks back. The units that it frees count as idle since the
    /// start of the epoch.
    pub fn as_idle(&self, action: impl FnOnce()) {
        let before = self.pool.lock().dirty;
        action();
        let mut pool = self.pool.lock();
        let more = pool.dirty.saturating_sub(before);
        pool.dirty_low = (pool.dirty_low + more).min(pool.dirty);
    }

    /// Purges up to `most` dirty units, but no parts of huge pages. Returns the number of purged
    /// units.
    pub fn purge_units(&self, most: Units) -> Units {
        self.purge_by(most, Pool::take_dirty)
    }

    /// Purges up to `most` dirty units, including parts of huge pages. Returns the number of purged
    /// units.
    pub fn purge_any_units(&self, most: Units) -> Units {
        self.purge_by(most, |pool, most| pool.take_any_dirty(most, &(0..0)))
    }

    /// Purges up to `units` idle units, to compensate for the same number of units that become
    /// resident. `run` is the run of those units, if they form one. Always keeps some idle units.
    pub fn purge_for(&self, units: Units, run: Option<Run>) {
        if units == Units::NONE {
            return;
        }
        let (spared, excess) = {
            let pool = self.pool.lock();
            // Units in the huge pages of the run count as dirty, but may become resident only with
            // the run, so do not purge them.
            let (spared, own) = run.map_or((0..0, Units::NONE), |run| pool.huge_pages_of(&run));
            (spared, pool.excess().saturating_sub(own))
        };
        let most = units.min(excess);
        if most != Units::NONE {
            self.purge_by(most, |pool, most| pool.take_any_dirty(most, &spared));
        }
    }

    #[cold]
    fn purge_by(&self, most: Units, take: impl Fn(&mut Pool, Units) -> Option<Taken>) -> Units {
        let mut done = Units::NONE;
        while done < most {
            let taken = take(
                &mut self.pool.lock(),
                Units::new(LARGEST_RUN).min(most - done),
            );
            let Some((base, units)) = taken else { break };
            // SAFETY: the units are out of the pool, and no code needs their contents.
            let clean = unsafe { self.purge(base, units.bytes()) };
            self.pool.lock().put_purged(base, units, clean);
            if !clean {
                break;
            }
            done += units;
        }
        done
    }

    /// Returns whole pages to the system, and counts them for the statistics. Returns whether the
    /// system took them; if so, they read as zero.
    ///
    /// # Safety
    ///
    /// The pages belong to an arena, and no code needs their contents.
    pub unsafe fn purge(&self, start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: by this function's contract, the pages belong to an arena, and no code needs
        // their contents.
        let done = unsafe { self.pages.purge(start, bytes) };
        if done {
            self.count_purge(bytes);
        }
        done
    }
}
