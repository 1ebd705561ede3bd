//! Simulated operating system. It gets memory from std's allocator, refuses requests on demand, and
//! panics if a caller passes a range that is not reserved.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::system::thread_pointer;
use crate::{Access, Advice, Pages, Placed, Remap};

const PAGE: usize = 4096;
/// Maximum number of bytes for [`Pages::find_room`]. std's allocator reserves all of them and may
/// write to them (Miri's does), whereas Linux only returns an address.
const LARGEST_ROOM: usize = 1 << 30;

/// Memory from one call of std's allocator, with the set of its pages that are still reserved.
#[derive(Debug)]
struct Region {
    memory: NonNull<u8>,
    layout: Layout,
    /// One byte for each page, nonzero if the page is not reserved. Bytes are fast under Miri,
    /// which fills and compares many in one operation.
    released: std::vec::Vec<u8>,
    /// Number of pages that are still reserved.
    reserved: usize,
    /// Whether the region is room for [`Pages::reserve_at`]. Such a region is kept even if no page
    /// of it is reserved.
    is_room: bool,
}

/// Numbers of calls of the functions named below. Calls of `page_size`, `find_room`, `advise` and
/// `processor` are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls of `reserve` and `reserve_at`, whether granted or refused.
    pub reserve: usize,
    /// Calls of `protect`.
    pub protect: usize,
    /// Calls of `purge`.
    pub purge: usize,
    /// Calls of `remap` and `detach`.
    pub remap: usize,
    /// Calls of `release`.
    pub release: usize,
}

#[derive(Debug)]
struct State {
    regions: BTreeMap<usize, Region>,
    limit: usize,
    reserved: usize,
    refuses_access: bool,
    /// Processor of each thread, by [`thread_pointer`].
    processors: BTreeMap<usize, usize>,
    calls: Calls,
}

/// Simulated system, whose memory a test can count, limit and inspect.
#[derive(Debug)]
pub struct Simulated {
    state: Mutex<State>,
}

// SAFETY: any thread may access and free the regions, which are memory of std's allocator.
unsafe impl Send for State {}

impl Simulated {
    /// Creates a system with `limit` bytes of address space.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        let calls = Calls {
            reserve: 0,
            protect: 0,
            purge: 0,
            remap: 0,
            release: 0,
        };
        let state = State {
            regions: BTreeMap::new(),
            limit,
            reserved: 0,
            refuses_access: false,
            processors: BTreeMap::new(),
            calls,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of bytes of address space that are currently reserved.
    #[must_use]
    pub fn reserved(&self) -> usize {
        self.state().reserved
    }

    /// Changes the total address space that the system grants.
    pub fn set_limit(&self, limit: usize) {
        self.state().limit = limit;
    }

    /// Sets whether the system refuses all calls of `protect`, as if a limit on writable memory
    /// were reached.
    pub fn refuse_access(&self, refuse: bool) {
        self.state().refuses_access = refuse;
    }

    /// Sets the processor of the calling thread.
    pub fn set_processor(&self, processor: usize) {
        self.state().processors.insert(thread_pointer(), processor);
    }

    /// Returns the numbers of calls so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.state().calls
    }
}

impl State {
    fn reserve(&mut self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        assert!(
            size > 0 && size.is_multiple_of(PAGE),
            "{size} bytes are no whole pages"
        );
        if size > self.limit.saturating_sub(self.reserved) {
            return None;
        }
        let memory = self.add_region(size, alignment, false)?;
        self.reserved += size;
        Some(memory)
    }

    fn add_region(&mut self, size: usize, alignment: usize, is_room: bool) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(size, alignment.max(PAGE)).ok()?;
        // SAFETY: the size is not zero: `reserve` checks this, and callers of `find_room` ensure
        // it.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        self.regions.insert(
            memory.addr().get(),
            Region {
                memory,
                layout,
                released: std::vec![u8::from(is_room); size / PAGE],
                reserved: if is_room { 0 } else { size / PAGE },
                is_room,
            },
        );
        Some(memory)
    }

    fn reserve_at(&mut self, start: NonNull<u8>, size: usize) -> Placed {
        if size > self.limit.saturating_sub(self.reserved) {
            return Placed::Refused;
        }
        let at = start.addr().get();
        let Some((&base, region)) = self.regions.range_mut(..=at).next_back() else {
            return Placed::Refused;
        };
        let (first, last) = ((at - base) / PAGE, (at - base + size) / PAGE);
        let Some(released) = region
            .released
            .get_mut(first..last)
            .filter(|_| region.is_room)
        else {
            return Placed::Refused;
        };
        if released.contains(&0) {
            return Placed::Occupied;
        }
        released.fill(0);
        region.reserved += last - first;
        // SAFETY: the pages lie in the region, and were not reserved, so no code uses them.
        unsafe {
            region
                .memory
                .add(first * PAGE)
                .write_bytes(0, (last - first) * PAGE)
        };
        self.reserved += size;
        Placed::Done
    }

    /// Calls `each` for every region that overlaps the range, with the index of the range's first
    /// page in that region and the index behind its last page.
    ///
    /// # Panics
    ///
    /// If the range does not consist of whole pages, is empty, overflows, or is not wholly
    /// reserved.
    fn parts(
        &mut self,
        start: NonNull<u8>,
        size: usize,
        mut each: impl FnMut(&mut Region, usize, usize),
    ) {
        let mut at = start.addr().get();
        assert!(
            at.is_multiple_of(PAGE) && size > 0 && size.is_multiple_of(PAGE),
            "no whole pages"
        );
        let end = at.checked_add(size).expect("the range overflows");
        while at < end {
            let found = self.regions.range_mut(..=at).next_back();
            let (&base, region) = found.expect("the range was never reserved");
            let region_end = base + region.layout.size();
            assert!(at < region_end, "the range leaves what was reserved");
            let stop = end.min(region_end);
            let (first, last) = ((at - base) / PAGE, (stop - base) / PAGE);
            let none = std::vec![0; last - first];
            assert!(region.released[first..last] == none, "released already");
            each(region, first, last);
            at = stop;
        }
    }

    fn zero(&mut self, start: NonNull<u8>, size: usize) {
        self.parts(start, size, |region, first, last| {
            // SAFETY: the pages lie in the region, whose contents the caller no longer needs.
            unsafe {
                region
                    .memory
                    .add(first * PAGE)
                    .write_bytes(0, (last - first) * PAGE)
            };
        });
    }

    fn release(&mut self, start: NonNull<u8>, size: usize) {
        let mut emptied = std::vec::Vec::new();
        self.parts(start, size, |region, first, last| {
            region.released[first..last].fill(1);
            region.reserved -= last - first;
            if region.reserved == 0 && !region.is_room {
                emptied.push(region.memory.addr().get());
            }
        });
        self.reserved -= size;
        for base in emptied {
            if let Some(region) = self.regions.remove(&base) {
                // SAFETY: the memory came from alloc_zeroed with this layout, and all of its pages
                // are released.
                unsafe { dealloc(region.memory.as_ptr(), region.layout) };
            }
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for region in self.regions.values() {
            // SAFETY: the memory came from alloc_zeroed with this layout, and tests do not use a
            // system's memory after they drop the system.
            unsafe { dealloc(region.memory.as_ptr(), region.layout) };
        }
    }
}

// SAFETY: std's allocator returns new, zeroed, aligned and writable memory, which is kept until it
// is released.
unsafe impl Pages for Simulated {
    fn page_size(&self) -> usize {
        PAGE
    }

    fn reserve(&self, size: usize, alignment: usize, _access: Access) -> Option<NonNull<u8>> {
        let mut state = self.state();
        state.calls.reserve += 1;
        state.reserve(size, alignment)
    }

    fn find_room(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if size > LARGEST_ROOM {
            return None;
        }
        self.state().add_region(size, alignment, true)
    }

    fn reserve_at(&self, start: NonNull<u8>, size: usize, _access: Access) -> Placed {
        let mut state = self.state();
        state.calls.reserve += 1;
        state.reserve_at(start, size)
    }

    unsafe fn protect(&self, start: NonNull<u8>, size: usize, _access: Access) -> bool {
        let mut state = self.state();
        state.calls.protect += 1;
        state.parts(start, size, |_, _, _| ());
        !state.refuses_access
    }

    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool {
        let mut state = self.state();
        state.calls.purge += 1;
        state.zero(start, size);
        true
    }

    unsafe fn advise(&self, start: NonNull<u8>, size: usize, _advice: Advice) -> bool {
        self.state().parts(start, size, |_, _, _| ());
        true
    }

    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>> {
        let mut state = self.state();
        state.calls.remap += 1;
        state.parts(start, size, |_, _, _| ());
        if let Remap::Onto(target) = how {
            state.parts(target, new_size, |_, _, _| ());
            state.zero(target, new_size);
            // SAFETY: both ranges are reserved in this system, and the target does not overlap the
            // old range.
            unsafe { target.copy_from_nonoverlapping(start, size.min(new_size)) };
            state.release(start, size);
            return Some(target);
        }
        if new_size <= size {
            if new_size < size {
                // SAFETY: the offset `new_size` lies within the range.
                let tail = unsafe { start.add(new_size) };
                state.release(tail, size - new_size);
            }
            return Some(start);
        }
        if how == Remap::InPlace {
            return None;
        }
        let moved = state.reserve(new_size, PAGE)?;
        // SAFETY: both ranges are reserved in this system. The new range is larger, and overlaps no
        // old range.
        unsafe { moved.copy_from_nonoverlapping(start, size) };
        state.release(start, size);
        Some(moved)
    }

    unsafe fn detach(&self, start: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let mut state = self.state();
        state.calls.remap += 1;
        state.parts(start, size, |_, _, _| ());
        let moved = state.reserve(size, PAGE)?;
        // SAFETY: both ranges are reserved in this system, and a new range overlaps no old range.
        unsafe { moved.copy_from_nonoverlapping(start, size) };
        state.zero(start, size);
        Some(moved)
    }

    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool {
        let mut state = self.state();
        state.calls.release += 1;
        state.release(start, size);
        true
    }

    fn processor(&self) -> Option<usize> {
        self.state().processors.get(&thread_pointer()).copied()
    }
}
