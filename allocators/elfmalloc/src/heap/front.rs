//! The fast path.
//!
//! A magazine is a stack of free blocks of one class. Before its first slot lies null, after its
//! last the word [`FULL`]: the fast path reads the slot that it is about to use, and needs no
//! count.
//!
//! ```text
//!            front.tops[class] --------+
//!                                      v
//!   [ null | block | block | block |      |      |      | FULL ]
//!            slots[0]                                     slots[capacity]
//! ```

use core::cell::Cell;
use core::ptr::{null_mut, without_provenance_mut};

use heapdrome_malloc_abi::Presence;

use crate::size_class::{LARGEST, SMALL, SMALL_CLASSES, SizeClass};
use crate::units::class_map::{ClassMap, Window};

/// What stands behind the last slot of a magazine.
pub const FULL: *mut u8 = without_provenance_mut(1);
/// Entries of a front: classes, and those numbers that no slab serves.
const ENTRIES: usize = 96;
/// After so many frees, a new thread looks at the clock.
pub const FEWEST_TICKS: i32 = 16;
/// The most frees after which a thread looks at the clock.
pub const MOST_TICKS: i32 = 4096;
/// Maximum number of frees between two looks at the clock by a thread that flushes: it may soon
/// fall idle.
pub const MOST_TICKS_GIVING: i32 = 256;

/// Fetches the start of a block ahead, to be written to. Any address will do, and null.
///
/// Whoever gets a block writes to it, and it may lie in the cache of the processor that freed it.
/// `prefetchw` takes that line over at once, where a plain prefetch would share it and the write
/// would have to ask again. The compiler's own intrinsics do not emit it unless told that the
/// processor has it; one that lacks it treats it as a no-operation, but for the first 64-bit ones
/// of Intel (2004), which have no `prefetchw` and would fault.
#[inline(always)]
pub(crate) fn will_be_used(block: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch touches nothing.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) block, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = block;
}

/// A static that threads share. No thread writes to it, its atomics aside.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Shared<T>(pub(crate) T);

// SAFETY: the words are pointers that nobody follows, and the static of this type is never written
// to.
unsafe impl Sync for Shared<[*mut u8; 2]> {}
// SAFETY: the cells in statics of this type are never written to: in their magazines nothing can be
// put, and frees of threads without a heap are not counted there. The presence is atomic.
unsafe impl Sync for Shared<Front> {}

/// A magazine that is empty and full: every use of it takes the slow path.
static NO_SLOTS: Shared<[*mut u8; 2]> = Shared([null_mut(), FULL]);

/// The top of a magazine without slots.
#[must_use]
pub const fn no_slots() -> *mut *mut u8 {
    // SAFETY: the second word of the array.
    unsafe { (&raw const NO_SLOTS.0).cast::<*mut u8>().add(1).cast_mut() }
}

/// The slab that a thread last took blocks of a class from. It may be another's by now, or gone:
/// this says what to keep at hand, and nothing else relies on it.
#[derive(Debug)]
#[repr(C)]
struct Own {
    base: Cell<usize>,
    bytes: Cell<usize>,
}

/// All that the fast path uses of a heap.
#[derive(Debug)]
#[repr(C)]
pub struct Front {
    tops: [Cell<*mut *mut u8>; ENTRIES],
    /// Where the class map is.
    window: Cell<Window>,
    ticks: Cell<i32>,
    /// Whether the thread is on a slow path. A thread that forks reads it.
    presence: Presence,
    /// The class of each 16-byte step to [`SMALL`]: here, since no instruction has to say where it
    /// is then. Never changed.
    small: [SizeClass; SMALL / 16 + 1],
    /// For the front-end that keeps only blocks of these.
    own: [Own; ENTRIES],
}

/// The front of threads without a heap.
pub(crate) static NO_HEAP: Shared<Front> = Shared(Front::of_many());
/// The front of threads that are about to end.
pub(crate) static ENDED: Shared<Front> = Shared(Front::of_many());

impl Front {
    /// A front whose every use takes the slow path.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tops: [const { Cell::new(no_slots()) }; ENTRIES],
            window: Cell::new(Window::NONE),
            ticks: Cell::new(FEWEST_TICKS),
            presence: Presence::of_one(),
            small: SMALL_CLASSES,
            own: [const {
                Own {
                    base: Cell::new(0),
                    bytes: Cell::new(0),
                }
            }; ENTRIES],
        }
    }

    /// Another front whose every use takes the slow path, for any number of threads.
    const fn of_many() -> Self {
        Self {
            presence: Presence::of_many(),
            ..Self::new()
        }
    }

    /// Whether the thread, or one of the threads, is on a slow path.
    #[inline(always)]
    pub(crate) const fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Says where the class map is, so that frees can take the fast path.
    pub(crate) fn set_map(&self, map: &ClassMap) {
        self.window.set(map.window());
    }

    /// Where the next block of `class` would be put.
    #[inline(always)]
    #[must_use]
    pub fn top(&self, class: SizeClass) -> *mut *mut u8 {
        debug_assert!(class.number() < ENTRIES);
        // SAFETY: numbers of classes are below ENTRIES.
        unsafe { self.tops.get_unchecked(class.number()) }.get()
    }

    /// Sets the top.
    ///
    /// # Safety
    ///
    /// `top` is a slot of a magazine of `class`, or the [`FULL`] behind its last; the slots before
    /// it hold blocks of the class that nobody uses, down to the null before the first; and the
    /// thread whose front this is calls.
    #[inline(always)]
    pub unsafe fn set_top(&self, class: SizeClass, top: *mut *mut u8) {
        debug_assert!(class.number() < ENTRIES);
        // SAFETY: as above.
        unsafe { self.tops.get_unchecked(class.number()) }.set(top);
    }

    /// Whether it is time to look at the clock.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.ticks.get() < 0
    }

    /// Counts frees that took the slow path, or blocks of a refill.
    pub fn count(&self, blocks: usize) {
        self.ticks
            .set(self.ticks.get().saturating_sub(blocks as i32));
    }

    /// Says which slab the thread takes blocks of `class` from: `bytes` from `base` on; none of
    /// them means none.
    pub fn set_own(&self, class: SizeClass, base: usize, bytes: usize) {
        let own = &self.own[class.number()];
        own.base.set(base);
        own.bytes.set(bytes);
    }

    /// Whether `address` lies in the slab that the thread last took blocks of `class` from.
    #[inline(always)]
    #[must_use]
    pub fn owns(&self, class: SizeClass, address: usize) -> bool {
        debug_assert!(class.number() < ENTRIES);
        // SAFETY: numbers of classes are below ENTRIES.
        let own = unsafe { self.own.get_unchecked(class.number()) };
        address.wrapping_sub(own.base.get()) < own.bytes.get()
    }

    /// Says after how many frees the clock is to be looked at again.
    pub fn set_ticks(&self, ticks: i32) {
        self.ticks.set(ticks);
    }

    /// Says after how many frees it is to be at the latest.
    pub fn limit_ticks(&self, most: i32) {
        self.ticks.set(self.ticks.get().min(most));
    }

    /// The class of blocks of `size` bytes, at most [`SMALL`].
    #[inline(always)]
    pub(crate) fn class_of_small(&self, size: usize) -> SizeClass {
        debug_assert!(size <= SMALL);
        // SAFETY: the size is at most SMALL.
        unsafe { *self.small.get_unchecked((size + 15) >> 4) }
    }

    /// A block of at least `size` bytes; null where that takes the slow path.
    #[inline(always)]
    #[must_use]
    pub fn allocate(&self, size: usize) -> *mut u8 {
        if size <= SMALL {
            return self.pop(self.class_of_small(size));
        }
        if size <= LARGEST {
            return self.pop(SizeClass::of(size));
        }
        null_mut()
    }

    /// A block of `class`; null where its magazine is empty.
    #[inline(always)]
    pub(crate) fn pop(&self, class: SizeClass) -> *mut u8 {
        let top = self.top(class);
        // SAFETY: before a top there is always a slot, or the null before the first.
        let block = unsafe { *top.sub(1) };
        if !block.is_null() {
            // SAFETY: the slot before the top held a block, so that before it there is another, or
            // the null.
            unsafe {
                will_be_used(*top.sub(2));
                self.set_top(class, top.sub(1));
            }
        }
        block
    }

    /// Puts a block into the magazine of its class; false where that takes the slow path, and then
    /// nothing has happened.
    ///
    /// # Safety
    ///
    /// `block` is null or was allocated, and is used no more.
    #[inline(always)]
    #[must_use]
    pub unsafe fn free(&self, block: *mut u8) -> bool {
        let Some(class) = self.window.get().find(block.addr()) else {
            return false;
        };
        // SAFETY: the caller's promise, and the map's.
        unsafe { self.push(class, block) }
    }

    /// Frees a block of the thread's own slab of its class; returns false for every other block.
    ///
    /// # Safety
    ///
    /// As for [`free`](Self::free).
    #[inline(always)]
    #[must_use]
    pub unsafe fn free_own(&self, block: *mut u8) -> bool {
        let Some(class) = self.window.get().find(block.addr()) else {
            return false;
        };
        // SAFETY: as above.
        self.owns(class, block.addr()) && unsafe { self.push(class, block) }
    }

    /// # Safety
    ///
    /// `block` is one of `class` that nobody uses, or `class` has no magazine.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, class: SizeClass, block: *mut u8) -> bool {
        let top = self.top(class);
        // SAFETY: a top points to a slot, or to the FULL behind the last.
        if unsafe { *top } == FULL {
            return false;
        }
        let ticks = self.ticks.get() - 1;
        self.ticks.set(ticks);
        if ticks < 0 {
            return false;
        }
        // SAFETY: the slot is free, and this thread's; behind a slot there is another, or the FULL.
        unsafe {
            *top = block;
            self.set_top(class, top.add(1));
        }
        true
    }
}

impl Default for Front {
    fn default() -> Self {
        Self::new()
    }
}
