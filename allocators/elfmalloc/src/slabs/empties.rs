//! Empty slabs that a bin keeps, on their way out of it.

use core::ptr::null_mut;

use crate::slabs::bin::{EMPTY, Slabs};
use crate::slabs::slab::{Place, Slab};

impl Slabs {
    /// Takes all empty slabs out of the bin: a list linked by `next`.
    pub fn take_empties(&mut self) -> *mut Slab {
        self.take_some(self.empties)
    }

    /// The same with those that nothing was taken from since this was last called.
    pub fn take_idle_empties(&mut self) -> *mut Slab {
        let taken = self.take_some(self.low);
        self.low = self.empties;
        taken
    }

    fn take_some(&mut self, count: u32) -> *mut Slab {
        let mut taken = null_mut();
        for _ in 0..count {
            let slab = self.buckets[EMPTY];
            // SAFETY: what is in the lists are this bin's slabs, and its lock is held.
            unsafe {
                self.unlink(slab);
                (*slab).place = Place::Nowhere;
                (*slab).settled = 0;
                (*slab).next = taken;
            }
            self.slabs -= 1;
            taken = slab;
        }
        taken
    }
}
