//! Slabs that leave their bin: empty ones for the pool, partial ones of ended threads for others.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::size_class::SizeClass;
use crate::slabs::bin::{Bin, Slabs};
use crate::slabs::slab::Slab;

impl<P: Pages> Backend<P> {
    /// Gives empty slabs back to the pool, a list linked by `next`.
    ///
    /// # Safety
    ///
    /// They belong to no bin, and nobody else knows them.
    pub unsafe fn retire(&self, empties: *mut Slab) {
        let mut slab = empties;
        while !slab.is_null() {
            // SAFETY: the slab is this thread's.
            let next = unsafe { (*slab).next };
            // SAFETY: as above.
            unsafe { self.retire_one(slab) };
            slab = next;
        }
        if !empties.is_null() {
            self.tick();
        }
    }

    /// Gives empty slabs back to the pool, which `take` takes out of their bins.
    pub(crate) fn retire_empties(&self, bins: &[Bin], take: impl Fn(&mut Slabs) -> *mut Slab) {
        for bin in bins {
            // Whoever holds the lock uses the slabs.
            let Some(mut slabs) = bin.try_lock() else {
                continue;
            };
            let empties = take(&mut slabs);
            drop(slabs);
            // SAFETY: the slabs left their bin, and are this thread's.
            unsafe { self.retire(empties) };
        }
    }

    /// The same of all hosts.
    pub(crate) fn retire_all_empties(&self, take: impl Fn(&mut Slabs) -> *mut Slab) {
        for host in self.all_hosts() {
            // SAFETY: heaps live for ever, and bins may be used by any thread.
            self.retire_empties(unsafe { &(*host.as_ptr()).bins }, &take);
        }
    }

    unsafe fn retire_one(&self, slab: *mut Slab) {
        // SAFETY: the slab is this thread's until the pool has it; then the descriptors say that
        // nothing is there.
        unsafe {
            let class = (*slab).class;
            let units = (*slab).units as usize;
            let base = NonNull::new_unchecked((*slab).base);
            self.free_bitmap(Slab::external_bits(slab), class);
            self.map.set(base, units, SizeClass::NONE);
            for unit in 0..units {
                (*slab.add(unit)).head_distance = 0;
                (*slab.add(unit)).class = SizeClass::NONE;
            }
            self.with_pool(|pool| pool.free(base.as_ptr(), units, true));
        }
    }

    /// Empties those bins of a host that are nobody's.
    pub(crate) fn evacuate_all(&self, bins: &[Bin]) {
        for (number, bin) in bins.iter().enumerate().skip(1) {
            if bin.lock().slabs != 0 {
                // SAFETY: the bins of a host have the numbers of their classes.
                unsafe { self.evacuate(bin, SizeClass::from_number(number as u8)) };
            }
        }
    }

    /// Moves the partial slabs of a bin that is nobody's to where others find them, and gives the empty
    /// ones back to the pool.
    ///
    /// # Safety
    ///
    /// `bin` is one for `class`.
    pub unsafe fn evacuate(&self, bin: &Bin, class: SizeClass) {
        let common = &self.bins[class.number()];
        let mut source = bin.lock();
        // Meanwhile a thread may have begun that has it.
        if !source.idle {
            return;
        }
        let empties = source.take_empties();
        // A thread's bin before the common one: nobody takes them in the other order.
        let mut target = common.lock();
        loop {
            let slab = source.surrender();
            if slab.is_null() {
                break;
            }
            // SAFETY: the slab belongs to no bin, and both locks are held.
            unsafe { target.adopt(common, slab) };
        }
        drop(target);
        drop(source);
        // SAFETY: the empty slabs left their bin, and are this thread's.
        unsafe { self.retire(empties) };
    }
}
