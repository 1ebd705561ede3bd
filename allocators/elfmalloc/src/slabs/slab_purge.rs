//! Slabs of which free pages are purged: what of them is idle, and how they are out of their bin's lists meanwhile.

use core::mem::{replace, take};
use core::ptr::null_mut;

use crate::size_class::SizeClass;
use crate::slabs::bin::{BUCKETS, Slabs};
use crate::slabs::slab::{Drawn, MOST_WORDS, Place, Slab};

/// So many bytes of free blocks are worth a call: a block that has as many, or as many more of a slab in use.
const WORTH: usize = 16 << 10;

/// A copy of a slab's bitmap, with those of the free blocks that may be purged.
pub(crate) type Bits = [u64; MOST_WORDS];

impl Slabs {
    /// Takes up to `most` slabs that are due for a purge out of the lists, so that this can be done without
    /// the lock. Returns them linked by `next`; each must come back by [`put_back`](Self::put_back).
    pub fn claim(&mut self, most: usize) -> *mut Slab {
        let mut claimed = null_mut();
        let mut left = most;
        // SAFETY: the lock is held, and what is in the lists are this bin's slabs; what follows one is read
        // before it leaves its list.
        unsafe {
            if !self.active.is_null() && (*self.active).due != 0 {
                self.link(self.active);
                self.active = null_mut();
            }
            for bucket in 0..BUCKETS {
                let mut slab = self.buckets[bucket];
                while !slab.is_null() && left != 0 {
                    let next = (*slab).next;
                    if (*slab).due != 0 {
                        self.unlink(slab);
                        (*slab).place = Place::Claimed;
                        (*slab).next = claimed;
                        claimed = slab;
                        left -= 1;
                    }
                    slab = next;
                }
            }
        }
        claimed
    }

    /// Puts a claimed slab back, of which the last `purged` free blocks were purged. True if all of its blocks have come
    /// back since: then it has left the bin.
    ///
    /// # Safety
    ///
    /// The slab was claimed from this bin, and has not been put back since.
    pub unsafe fn put_back(&mut self, slab: *mut Slab, purged: u16) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            (*slab).purged = purged;
            if (*slab).drawn == Drawn::BeforeLook {
                (*slab).drawn = Drawn::NotSincePurge;
            }
            if (*slab).free != (*slab).class.geometry().blocks {
                self.link(slab);
                return false;
            }
            (*slab).place = Place::Nowhere;
            (*slab).settled = 0;
        }
        self.slabs -= 1;
        true
    }
}

impl Slab {
    /// Looks at a slab: how many blocks were free all the time since that was last done, and when any was taken.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the slab's bin.
    unsafe fn look(slab: *mut Self) -> (u16, Drawn) {
        // SAFETY: the lock makes the descriptor the caller's.
        unsafe {
            let least = replace(&mut (*slab).least, (*slab).free);
            (*slab).purged = (*slab).purged.min(least);
            (*slab).due = 0;
            let drawn = (*slab).drawn;
            if drawn == Drawn::SinceLook {
                (*slab).drawn = Drawn::BeforeLook;
            }
            (least, drawn)
        }
    }

    /// Looks at a slab of `class`, and marks those free blocks as due that have been idle since that was last done, if they
    /// are half of the slab, or worth it one by one. True if it did.
    ///
    /// # Safety
    ///
    /// As for [`look`](Self::look).
    pub(crate) unsafe fn mark_idle(slab: *mut Self, class: SizeClass) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let (least, drawn) = Self::look(slab);
            // Where none was taken, nobody is likely to want what came back since.
            let (idle, purged, enough) = match drawn {
                Drawn::SinceLook => (least, (*slab).purged, WORTH),
                Drawn::BeforeLook => ((*slab).free, 0, 1),
                Drawn::NotSincePurge => ((*slab).free, (*slab).purged, 1),
            };
            let blocks = usize::from(class.geometry().blocks);
            if idle == 0 || (class.size() < WORTH && usize::from(idle) * 2 < blocks) {
                return false;
            }
            let more = usize::from(idle - purged) * class.size();
            if more >= enough {
                (*slab).due = idle;
            }
            (*slab).due != 0
        }
    }

    /// Looks at a slab, and marks all free blocks as due if any may be resident. True if it did.
    ///
    /// # Safety
    ///
    /// As for [`look`](Self::look).
    pub(crate) unsafe fn mark_free(slab: *mut Self) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let (_, drawn) = Self::look(slab);
            if drawn != Drawn::NotSincePurge || (*slab).purged != (*slab).free {
                (*slab).due = (*slab).free;
            }
            (*slab).due != 0
        }
    }

    /// The free blocks that are to be purged of a claimed slab, and how many they are.
    ///
    /// # Safety
    ///
    /// As for [`look`](Self::look).
    pub(crate) unsafe fn take_due(slab: *mut Self) -> (Bits, u16) {
        let mut bits = [0; MOST_WORDS];
        // SAFETY: the bitmap has as many words as the class wants.
        unsafe {
            let words = (*slab).class.geometry().words();
            for (word, copy) in bits[..words].iter_mut().enumerate() {
                *copy = *(*slab).bits.add(word);
            }
            // What was taken since the look was of the first ones.
            let count = take(&mut (*slab).due).min((*slab).least);
            forget_first(&mut bits[..words], (*slab).free - count);
            (bits, count)
        }
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
