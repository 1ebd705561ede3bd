//! Purging of units: returns their memory to the system.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::units::amount::Units;
use crate::units::arena::LARGEST_RUN;
use crate::units::memory::Memory;
use crate::units::pool::{Pool, Run, Taken};

/// Number of idle units that are always kept: 256 KiB.
const KEPT: Units = Units::filled_by(256 << 10);
/// Number of live units above which a part of the excess is kept idle, 32 MiB. What a smaller heap
/// would keep is soon faulted in again.
const SMALL_HEAP: Units = Units::filled_by(32 << 20);

impl Pool {
    /// Starts another epoch. Returns how many units to purge because they were idle throughout the
    /// last one, and how many of them may be parts of huge pages.
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
}

impl<P: Pages> Memory<P> {
    /// Runs `action`, which gives back blocks that have been idle for long. Units that it frees
    /// count as idle since the start of the epoch.
    pub fn as_idle(&self, action: impl FnOnce()) {
        let before = self.pool.lock().dirty;
        action();
        let mut pool = self.pool.lock();
        let more = pool.dirty.saturating_sub(before);
        pool.dirty_low = (pool.dirty_low + more).min(pool.dirty);
    }

    /// Purges up to `most` dirty units, but no parts of huge pages. Returns how many.
    pub fn purge_units(&self, most: Units) -> Units {
        self.purge_by(most, Pool::take_dirty)
    }

    /// Purges up to `most` dirty units, including parts of huge pages. Returns how many.
    pub fn purge_any_units(&self, most: Units) -> Units {
        self.purge_by(most, |pool, most| pool.take_any_dirty(most, &(0..0)))
    }

    /// Purges idle units, which were too scattered to serve, as `units` others become resident:
    /// those of `run`, if they are one. Keeps some idle units.
    pub fn purge_for(&self, units: Units, run: Option<Run>) {
        if units == Units::NONE {
            return;
        }
        let (spared, excess) = {
            let pool = self.pool.lock();
            // Units in a huge page of the run count as dirty because they are about to become
            // resident. They are not resident yet.
            let (spared, own) = run.map_or((0..0, Units::NONE), |run| pool.huge_pages_of(&run));
            let kept = KEPT.max(pool.live / 8);
            (spared, pool.dirty.saturating_sub(own + kept))
        };
        self.purge_by(units.min(excess), |pool, most| {
            pool.take_any_dirty(most, &spared)
        });
    }

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

    /// Returns whole pages to the system, and counts them. Returns whether they went: they read as
    /// zero then.
    ///
    /// # Safety
    ///
    /// The pages belong to an arena, and no code needs their contents.
    pub unsafe fn purge(&self, start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: the pages belong to the arena, and no code needs their contents.
        let done = unsafe { self.pages.purge(start, bytes) };
        if done {
            self.count_purge(bytes);
        }
        done
    }
}
