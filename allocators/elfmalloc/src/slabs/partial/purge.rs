//! Slabs of which free pages are purged: what of them is idle, and how they are out of their bin's
//! lists meanwhile.

use super::held::{Detached, locked};
use super::{BUCKETS, Slabs};
use crate::slabs::slab::{Drawn, MOST_WORDS, Place, Slab, SlabRef};

/// Minimum number of purgeable bytes that justifies a call of the system: of one block, or more
/// than were purged of a slab in use.
const WORTH: usize = 16 << 10;

/// A copy of a slab's bitmap, with those of the free blocks that may be purged.
pub(in crate::slabs) type Bits = [u64; MOST_WORDS];

/// Slabs that are out of their bin's lists to be purged, linked by `next`. Each must come back by
/// [`put_back`](Slabs::put_back).
#[must_use]
pub(in crate::slabs) struct ClaimedList(Option<SlabRef>);

impl ClaimedList {
    /// Whether there are none.
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

/// One of them. Blocks of it that are free stay so until it is back.
#[must_use]
pub(in crate::slabs) struct Claimed(SlabRef);

impl Claimed {
    /// First byte of the slab.
    pub(in crate::slabs) fn base(&self) -> *mut u8 {
        self.0.base()
    }
}

impl Slabs {
    /// Takes up to `most` slabs that are due for a purge out of the lists, so that this can be done
    /// without the lock.
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

    /// Puts a slab back that was claimed from this bin, of which the last `purged` free blocks were
    /// purged. Returns it if all of its blocks have come back since: then it has left the bin.
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

    /// Returns the free blocks that are to be purged of a slab that was claimed from this bin, and
    /// how many they are.
    pub(in crate::slabs) fn take_due(&mut self, claimed: &Claimed) -> (Bits, u16) {
        let slab = locked(claimed.0);
        let mut bits = [0; MOST_WORDS];
        let words = slab.class().geometry().words();
        for (word, copy) in bits[..words].iter_mut().enumerate() {
            *copy = slab.word(word).get();
        }
        // What was taken since the look was of the first ones.
        let count = slab.due.take().min(slab.least.get());
        forget_first(&mut bits[..words], slab.free.get() - count);
        (bits, count)
    }

    /// Looks at slabs until `most` are due, and marks those free blocks as due that have been idle
    /// since that was last done. Returns how many slabs are.
    pub(in crate::slabs) fn mark_idle(&mut self, most: usize) -> usize {
        let mut due = 0;
        self.each_partial(|slab| {
            if due != most && slab.mark_idle() {
                due += 1;
            }
        });
        due
    }

    /// Looks at all slabs, and marks all free blocks as due of those where any may be resident.
    /// Returns how many slabs are.
    pub(in crate::slabs) fn mark_free(&mut self) -> usize {
        let mut due = 0;
        self.each_partial(|slab| due += usize::from(slab.mark_free()));
        due
    }
}

impl Slab {
    /// Looks at a slab: how many blocks were free all the time since that was last done, and when
    /// any was taken.
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

    /// Marks free blocks as due that have been idle since the last look, if they are half of the
    /// slab, or worth it one by one. True if it did.
    fn mark_idle(&self) -> bool {
        let (least, drawn) = self.look();
        // Where none was taken, nobody is likely to want what came back since.
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

    /// Marks all free blocks as due if any may be resident. True if it did.
    fn mark_free(&self) -> bool {
        let (_, drawn) = self.look();
        if drawn != Drawn::NotSincePurge || self.purged.get() != self.free.get() {
            self.due.set(self.free.get());
        }
        self.due.get() != 0
    }
}

/// Clears so many set bits, the lowest first.
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
