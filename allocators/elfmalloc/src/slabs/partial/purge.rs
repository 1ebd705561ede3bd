//! Selects the free blocks of slabs to purge, and removes their slabs from the bin's lists during
//! the purge.

use super::held::{Detached, locked};
use super::{BUCKETS, Slabs};
use crate::slabs::slab::{Drawn, MOST_WORDS, Place, Slab, SlabRef};

/// Minimum number of idle bytes, without those already purged, that justifies purging a slab from
/// which blocks were taken since the last scan. In other slabs, one such byte suffices. In both
/// cases, if blocks are smaller than this, at least half of the slab's blocks must be idle.
const WORTH: usize = 16 << 10;

/// Copy of a slab's bitmap in which only the bits of blocks to purge are set.
pub(in crate::slabs) type Bits = [u64; MOST_WORDS];

/// List, linked by `next`, of slabs that are out of their bin's lists during a purge. Each slab
/// must go back with [`put_back`](Slabs::put_back).
#[must_use]
pub(in crate::slabs) struct ClaimedList(Option<SlabRef>);

impl ClaimedList {
    pub(in crate::slabs) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Iterator for ClaimedList {
    type Item = Claimed;

    fn next(&mut self) -> Option<Claimed> {
        let slab = self.0?;
        self.0 = locked(slab).next.get();
        Some(Claimed(slab))
    }
}

/// Slab taken from a [`ClaimedList`]. Its free blocks stay free until it is put back.
#[must_use]
pub(in crate::slabs) struct Claimed(SlabRef);

impl Claimed {
    /// Returns the first byte of the slab.
    pub(in crate::slabs) fn base(&self) -> *mut u8 {
        self.0.base()
    }
}

impl Slabs {
    /// Claims up to `most` slabs that are due for a purge: removes them from the lists, so that
    /// they can be purged without the bin's lock.
    pub(in crate::slabs) fn claim(&mut self, most: usize) -> ClaimedList {
        let mut claimed = None;
        let mut left = most;
        if let Some(slab) = self.active.take_if(|slab| locked(*slab).due.get() != 0) {
            self.link(slab);
        }
        for bucket in 0..BUCKETS {
            let mut next = self.buckets[bucket];
            while let Some(slab) = next
                && left != 0
            {
                let held = locked(slab);
                next = held.next.get();
                if held.due.get() != 0 {
                    self.unlink(slab);
                    held.place.set(Place::Claimed);
                    held.next.set(claimed);
                    claimed = Some(slab);
                    left -= 1;
                }
            }
        }
        ClaimedList(claimed)
    }

    /// Puts back a slab that was claimed from this bin. Its `purged` free blocks at the highest
    /// addresses have been purged. If all of its blocks are free by now, removes it from the bin
    /// and returns it.
    pub(in crate::slabs) fn put_back(&mut self, claimed: Claimed, purged: u16) -> Option<Detached> {
        let slab = locked(claimed.0);
        slab.purged.set(purged);
        if slab.drawn.get() == Drawn::BeforeLook {
            slab.drawn.set(Drawn::NotSincePurge);
        }
        if !slab.is_empty() {
            self.link(claimed.0);
            return None;
        }
        Some(self.let_go(claimed.0))
    }

    /// Returns the bits of the free blocks to purge, and their number, for a claimed slab of this
    /// bin.
    pub(in crate::slabs) fn take_due(&mut self, claimed: &Claimed) -> (Bits, u16) {
        let slab = locked(claimed.0);
        let mut bits = [0; MOST_WORDS];
        let words = slab.class().geometry().words();
        for (word, copy) in bits[..words].iter_mut().enumerate() {
            *copy = slab.word(word).get();
        }
        // Blocks that were taken since the last scan had the lowest addresses, so the idle blocks
        // are the free blocks at the highest addresses.
        let count = slab.due.take().min(slab.least.get());
        forget_first(&mut bits[..words], slab.free.get() - count);
        (bits, count)
    }

    /// Marks the free blocks that have been idle since the last scan as due, slab by slab, until
    /// `most` slabs are due. Returns the number of slabs that are due.
    pub(in crate::slabs) fn mark_idle(&mut self, most: usize) -> usize {
        let mut due = 0;
        self.each_partial(|slab| {
            if due != most && slab.mark_idle() {
                due += 1;
            }
        });
        due
    }

    /// Marks all free blocks as due in every slab that may have resident free blocks. Returns the
    /// number of slabs that are due.
    pub(in crate::slabs) fn mark_free(&mut self) -> usize {
        let mut due = 0;
        self.each_partial(|slab| due += usize::from(slab.mark_free()));
        due
    }
}

impl Slab {
    /// Begins a new scan of the slab. Returns the number of blocks that have been free since the
    /// last scan, and when blocks were last taken.
    fn look(&self) -> (u16, Drawn) {
        let least = self.least.replace(self.free.get());
        self.purged.set(self.purged.get().min(least));
        self.due.set(0);
        let drawn = self.drawn.get();
        if drawn == Drawn::SinceLook {
            self.drawn.set(Drawn::BeforeLook);
        }
        (least, drawn)
    }

    /// Marks the idle free blocks as due: those that have been free since the last scan or, if no
    /// block was taken since then, all. Marks none if too few blocks are idle, or if too few idle
    /// blocks may be resident, to justify the system calls. Returns whether blocks are due.
    fn mark_idle(&self) -> bool {
        let (least, drawn) = self.look();
        // If no block was taken since the last scan, the program is unlikely to need the blocks
        // that were freed since, so these count as idle.
        let (idle, purged, enough) = match drawn {
            Drawn::SinceLook => (least, self.purged.get(), WORTH),
            Drawn::BeforeLook => (self.free.get(), 0, 1),
            Drawn::NotSincePurge => (self.free.get(), self.purged.get(), 1),
        };
        let (size, blocks) = (self.class().size(), self.class().geometry().blocks);
        if idle == 0 || (size < WORTH && usize::from(idle) * 2 < usize::from(blocks)) {
            return false;
        }
        let more = usize::from(idle - purged) * size;
        if more >= enough {
            self.due.set(idle);
        }
        self.due.get() != 0
    }

    /// Marks all free blocks as due if any may be resident. Returns whether blocks are due.
    fn mark_free(&self) -> bool {
        let (_, drawn) = self.look();
        if drawn != Drawn::NotSincePurge || self.purged.get() != self.free.get() {
            self.due.set(self.free.get());
        }
        self.due.get() != 0
    }
}

/// Clears `count` set bits, the lowest first.
fn forget_first(bits: &mut [u64], count: u16) {
    let mut left = u32::from(count);
    for word in bits {
        while left != 0 && *word != 0 {
            let ones = word.count_ones();
            if ones <= left {
                *word = 0;
                left -= ones;
            } else {
                *word &= *word - 1;
                left -= 1;
            }
        }
    }
}
