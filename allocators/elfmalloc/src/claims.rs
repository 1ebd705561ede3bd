//! Slabs that are out of their bin's lists while their free pages are purged.

use core::ptr::null_mut;

use crate::bin::{BUCKETS, Slabs};
use crate::slab::{DUE, Place, Slab};

impl Slabs {
    /// Takes up to `most` slabs that are due for a purge out of the lists, so that this can be done without
    /// the lock. Returns them linked by `next`; each must come back by [`put_back`](Self::put_back).
    pub fn claim(&mut self, most: usize) -> *mut Slab {
        let mut claimed = null_mut();
        let mut left = most;
        // SAFETY: the lock is held, and what is in the lists are this bin's slabs; what follows one is read
        // before it leaves its list.
        unsafe {
            if !self.active.is_null() && (*self.active).purged == DUE {
                self.link(self.active);
                self.active = null_mut();
            }
            for bucket in 0..BUCKETS {
                let mut slab = self.buckets[bucket];
                while !slab.is_null() && left != 0 {
                    let next = (*slab).next;
                    if (*slab).purged == DUE {
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

    /// Puts a claimed slab back, of which `purged` free blocks were there when it was purged. True if all of
    /// them have come back since: then it has left the bin.
    ///
    /// # Safety
    ///
    /// The slab was claimed from this bin, and has not been put back since.
    pub unsafe fn put_back(&mut self, slab: *mut Slab, purged: u16) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            (*slab).purged = purged;
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
