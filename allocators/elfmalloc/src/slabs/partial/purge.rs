//! Purging of free pages in slabs: which blocks are idle, and how slabs leave their bin's lists
//! until the purge is done.

use super::held::{Detached, locked};
use super::{BUCKETS, Slabs};
use crate::slabs::slab::{Drawn, MOST_WORDS, Place, Slab, SlabRef};

/// Minimum number of purgeable bytes that justifies a system call: of one block, or beyond those
/// already purged of a slab in use.
const WORTH: usize = 16 << 10;

/// Copy of a slab's bitmap, with the bits of the free blocks that may be purged.
pub(in crate::slabs) type Bits = [u64; MOST_WORDS];

/// Slabs that are out of their bin's lists to be purged, linked by `next`. Each must return through
/// [`put_back`](Slabs::put_back).
#[must_use]
pub(in crate::slabs) struct ClaimedList(Option<SlabRef>);

impl ClaimedList {
    /// Returns whether the list is empty.
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

/// Slab of a [`ClaimedList`]. Its free blocks stay free until it is put back.
#[must_use]
pub(in crate::slabs) struct Claimed(SlabRef);

impl Claimed {
    /// Returns the first byte of the slab.
    pub(in crate::slabs) fn base(&self) -> *mut u8 {
        self.0.base()
    }
}

impl Slabs {
    /// Takes up to `most` slabs that are due for a purge out of the lists, so that they can be
    /// purged without the lock.
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

    /// Puts back a slab that was claimed from this bin, after its last `purged` free blocks were
    /// purged. Returns the slab if all of its blocks are free by now: it has then left the bin.
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

    /// Returns the free blocks to purge of a slab that was claimed from this bin, and their number.
    pub(in crate::slabs) fn take_due(&mut self, claimed: &Claimed) -> (Bits, u16) {
        let slab = locked(claimed.0);
        let mut bits = [0; MOST_WORDS];
        let words = slab.class().geometry().words();
        for (word, copy) in bits[..words].iter_mut().enumerate() {
            *copy = slab.word(word).get();
        }
        // The blocks that were taken since the look were the lowest ones.
        let count = slab.due.take().min(slab.least.get());
        forget_first(&mut bits[..words], slab.free.get() - count);
        (bits, count)
    }

    /// Looks at slabs until `most` are due, and marks free blocks as due that have been idle since
    /// the last look. Returns the number of slabs that are due.
    pub(in crate::slabs) fn mark_idle(&mut self, most: usize) -> usize {
        let mut due = 0;
        self.each_partial(|slab| {
            if due != most && slab.mark_idle() {
                due += 1;
            }
        });
        due
    }

    /// Looks at all slabs, and marks all free blocks of a slab as due where any may be resident.
    /// Returns the number of slabs that are due.
    pub(in crate::slabs) fn mark_free(&mut self) -> usize {
        let mut due = 0;
        self.each_partial(|slab| due += usize::from(slab.mark_free()));
        due
    }
}

impl Slab {
    /// Looks at a slab. Returns how many blocks were free throughout since the last look, and when
    /// blocks were last taken.
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
    /// slab, or if each is worth a system call. Returns whether any are due.
    fn mark_idle(&self) -> bool {
        let (least, drawn) = self.look();
        // If none was taken since, the program is unlikely to want those that were freed since.
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

    /// Marks all free blocks as due if any may be resident. Returns whether any are due.
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
