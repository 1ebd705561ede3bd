//! Fast paths of `malloc` and `free`.
//!
//! A magazine is a stack of free blocks of one class. Null precedes its first slot, and the word
//! [`FULL`] follows its last slot. The fast path reads the slot that it is about to use, so it
//! needs no count.
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

use crate::heap::multiples::{Multiples, by_number};
use crate::size_class::{LARGEST, SMALL, SMALL_CLASSES, SizeClass};
use crate::units::class_map::{ClassMap, Window};

/// Word behind the last slot of a magazine.
pub const FULL: *mut u8 = without_provenance_mut(1);
/// Number of entries in a front. Exceeds every class number, including those of [`SizeClass::NONE`]
/// and [`SizeClass::LARGE`].
const ENTRIES: usize = 96;
/// Number of frees and refilled blocks after which a new thread first checks the clock.
pub const FEWEST_TICKS: i32 = 16;
/// Maximum number of frees and refilled blocks between two clock checks.
pub const MOST_TICKS: i32 = 4096;
/// Maximum number of frees and refilled blocks between two clock checks while blocks leave the
/// thread's heap. Lower than [`MOST_TICKS`], because such a thread may soon be idle.
pub const MOST_TICKS_GIVING: i32 = 256;

const MULTIPLES: [Multiples; ENTRIES] = by_number();

/// Prefetches the start of a block for writing. Accepts any address, including null.
///
/// The program is about to write to the block, which may lie in the cache of the processor that
/// freed it. `prefetchw` requests the cache line for writing. A plain prefetch would only share the
/// line, and the write would have to request it again. The compiler's intrinsics emit `prefetchw`
/// only if that target feature is enabled. Processors without the feature treat the instruction as
/// a no-op, except the first 64-bit ones of Intel (2004), which would fault.
#[inline(always)]
pub(crate) fn will_be_used(block: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch changes no memory, and does not fault on any address.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) block, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = block;
}

/// Static that threads share. Threads write only to its atomics.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Shared<T>(pub(crate) T);

// SAFETY: no code dereferences the two pointers, and the only static of this type is never written
// to.
unsafe impl Sync for Shared<[*mut u8; 2]> {}
// SAFETY: no code writes to the cells in statics of this type: no block fits into their magazines,
// and frees of threads without a heap are not counted. The presence is atomic.
unsafe impl Sync for Shared<Front> {}

/// Magazine that is both empty and full, so that every push and pop takes the slow path.
static NO_SLOTS: Shared<[*mut u8; 2]> = Shared([null_mut(), FULL]);

/// Returns the top of a magazine without slots.
#[must_use]
pub const fn no_slots() -> *mut *mut u8 {
    // SAFETY: the array has two words, so the pointer stays within it.
    unsafe { (&raw const NO_SLOTS.0).cast::<*mut u8>().add(1).cast_mut() }
}

const _: () = assert!(SizeClass::LARGE.number() < ENTRIES);

/// Table with an entry for each class number.
#[derive(Debug)]
#[repr(transparent)]
struct ByClass<T>([T; ENTRIES]);

impl<T> ByClass<T> {
    /// Returns the entry of `class`.
    #[inline(always)]
    fn of(&self, class: SizeClass) -> &T {
        // SAFETY: no class has a larger number than `LARGE`, which is below ENTRIES.
        unsafe { self.0.get_unchecked(class.number()) }
    }
}

/// Slab from which a thread's last refill of a class took blocks. Only decides which blocks to
/// cache, so it need not be current: the slab may have moved to another thread, or back to the
/// pool.
#[derive(Debug)]
#[repr(C)]
struct Own {
    base: Cell<usize>,
    bytes: Cell<usize>,
}

/// Part of a heap that the fast path uses.
#[derive(Debug)]
#[repr(C)]
pub struct Front {
    tops: ByClass<Cell<*mut *mut u8>>,
    /// Location of the class map.
    window: Cell<Window>,
    ticks: Cell<i32>,
    /// Whether the thread is on a slow path. Threads that fork read this.
    presence: Presence,
    /// Class of each 16-byte step up to [`SMALL`]. Stored in the front, so that the fast path need
    /// not load the address of a table. Never changed.
    small: [SizeClass; SMALL / 16 + 1],
    /// Test for the addresses at which blocks of each class can begin. Stored in the front, so that
    /// the fast path need not load the address of a table. Never changed.
    multiples: ByClass<Multiples>,
    /// Slab of the last refill of each class. Only the front-end `LocalCache` sets it, and caches
    /// only blocks of these slabs.
    own: ByClass<Own>,
}

/// Front of threads without a heap.
pub(crate) static NO_HEAP: Shared<Front> = Shared(Front::of_many());
/// Front of threads that are ending.
pub(crate) static ENDED: Shared<Front> = Shared(Front::of_many());

impl Front {
    /// Creates a front that takes the slow path until its magazines and the class map are set.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tops: ByClass([const { Cell::new(no_slots()) }; ENTRIES]),
            window: Cell::new(Window::NONE),
            ticks: Cell::new(FEWEST_TICKS),
            presence: Presence::of_one(),
            small: SMALL_CLASSES,
            multiples: ByClass(MULTIPLES),
            own: ByClass(
                [const {
                    Own {
                        base: Cell::new(0),
                        bytes: Cell::new(0),
                    }
                }; ENTRIES],
            ),
        }
    }

    /// Writes a [new](Self::new) front to `place`, part by part: a thread's first allocation may
    /// run in a signal handler whose stack is too small for a whole front.
    ///
    /// # Safety
    ///
    /// `place` is aligned, large enough, and used by no other code.
    pub(super) unsafe fn write(place: *mut Self) {
        // SAFETY: by this function's contract, the place is aligned and large enough, and no other
        // code uses it.
        unsafe {
            for class in 0..ENTRIES {
                (&raw mut (*place).tops.0[class]).write(Cell::new(no_slots()));
                (&raw mut (*place).own.0[class].base).write(Cell::new(0));
                (&raw mut (*place).own.0[class].bytes).write(Cell::new(0));
            }
            (&raw mut (*place).window).write(Cell::new(Window::NONE));
            (&raw mut (*place).ticks).write(Cell::new(FEWEST_TICKS));
            (&raw mut (*place).presence).write(Presence::of_one());
            (&raw mut (*place).small).write(SMALL_CLASSES);
            (&raw mut (*place).multiples).write(ByClass(MULTIPLES));
        }
    }

    /// Creates a front that always takes the slow path and that any number of threads may share.
    const fn of_many() -> Self {
        Self {
            presence: Presence::of_many(),
            ..Self::new()
        }
    }

    /// Returns the presence, which shows whether a thread of this front is on a slow path.
    #[inline(always)]
    pub(crate) const fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Sets the location of the class map, so that frees can take the fast path.
    pub(crate) fn set_map(&self, map: &ClassMap) {
        self.window.set(map.window());
    }

    /// Returns the top of the magazine of `class`: the slot for the next pushed block, or the
    /// [`FULL`] behind the last slot.
    #[inline(always)]
    #[must_use]
    pub fn top(&self, class: SizeClass) -> *mut *mut u8 {
        self.tops.of(class).get()
    }

    /// Sets the top of the magazine of `class`.
    ///
    /// # Safety
    ///
    /// `top` is a slot of a magazine of `class`, or the [`FULL`] behind its last slot. All slots
    /// before it hold free blocks of the class. The calling thread owns this front.
    #[inline(always)]
    pub unsafe fn set_top(&self, class: SizeClass, top: *mut *mut u8) {
        self.tops.of(class).set(top);
    }

    /// Returns whether a clock check is due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.ticks.get() < 0
    }

    /// Counts frees on the slow path, or the blocks of a refill, towards the next clock check.
    pub fn count(&self, blocks: usize) {
        self.ticks
            .set(self.ticks.get().saturating_sub(blocks as i32));
    }

    /// Records the slab of the last refill of `class`, which begins at `base` and has `bytes`
    /// bytes. Zero bytes mean no slab.
    pub fn set_own(&self, class: SizeClass, base: usize, bytes: usize) {
        let own = self.own.of(class);
        own.base.set(base);
        own.bytes.set(bytes);
    }

    /// Returns whether `address` lies in the slab of the thread's last refill of `class`.
    #[inline(always)]
    #[must_use]
    pub fn owns(&self, class: SizeClass, address: usize) -> bool {
        let own = self.own.of(class);
        address.wrapping_sub(own.base.get()) < own.bytes.get()
    }

    /// Sets the number of frees and refilled blocks until the next clock check.
    pub fn set_ticks(&self, ticks: i32) {
        self.ticks.set(ticks);
    }

    /// Lowers the number of frees and refilled blocks until the next clock check to at most `most`.
    pub fn limit_ticks(&self, most: i32) {
        self.ticks.set(self.ticks.get().min(most));
    }

    /// Returns the class of blocks of `size` bytes, at most [`SMALL`]. The compiler omits the
    /// bounds check, because every caller has compared the size.
    #[inline(always)]
    pub(crate) fn class_of_small(&self, size: usize) -> SizeClass {
        self.small[(size + 15) >> 4]
    }

    /// Returns a block of at least `size` bytes; null if the slow path is required.
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

    /// Pops a block of `class`; null if its magazine is empty.
    #[inline(always)]
    pub(crate) fn pop(&self, class: SizeClass) -> *mut u8 {
        let top = self.top(class);
        // SAFETY: the word before a top is a slot, or the null before the first slot.
        let block = unsafe { *top.sub(1) };
        if !block.is_null() {
            // SAFETY: the slot before the top held a block, so the word before that is another slot
            // or the null. This thread owns the front, because the magazines of shared fronts are
            // empty.
            unsafe {
                will_be_used(*top.sub(2));
                self.set_top(class, top.sub(1));
            }
        }
        block
    }

    /// Returns whether a free of `block` by this thread can only be misuse: the block is the
    /// topmost in the thread's magazine of the class, or no block of the class can begin there.
    /// Returns false for every live block, but also for some double frees and invalid frees.
    #[inline(always)]
    #[must_use]
    pub fn is_misuse(&self, class: SizeClass, block: *mut u8) -> bool {
        // SAFETY: the word before a top is a slot, or the null before the first slot.
        let last = || unsafe { *self.top(class).sub(1) };
        !self.multiples.of(class).may_begin_at(block.addr()) || last() == block
    }

    /// Pushes a block onto the magazine of its class. Returns false, without freeing the block, if
    /// the slow path is required. The slow path also reports misuse.
    ///
    /// # Safety
    ///
    /// `block` is null or was allocated, and is no longer used.
    #[inline(always)]
    #[must_use]
    pub unsafe fn free(&self, block: *mut u8) -> bool {
        let Some(class) = self.window.get().find(block.addr()) else {
            return false;
        };
        // SAFETY: the block is no longer used, by this function's contract. The map returned its
        // class, or a class without a magazine.
        !self.is_misuse(class, block) && unsafe { self.push(class, block) }
    }

    /// Frees a block if it lies in the slab of the thread's last refill of its class. Returns
    /// false, without freeing the block, if it lies elsewhere or if the slow path is required.
    ///
    /// # Safety
    ///
    /// `block` is null or was allocated, and is no longer used.
    #[inline(always)]
    #[must_use]
    pub unsafe fn free_own(&self, block: *mut u8) -> bool {
        let Some(class) = self.window.get().find(block.addr()) else {
            return false;
        };
        // SAFETY: the block is no longer used, by this function's contract, and the map returned
        // its class.
        self.owns(class, block.addr()) && unsafe { self.push(class, block) }
    }

    /// Pushes a block onto the magazine of `class`; returns false if the slow path is required.
    ///
    /// # Safety
    ///
    /// `block` is a free block of `class`, or `class` has no magazine.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, class: SizeClass, block: *mut u8) -> bool {
        let top = self.top(class);
        // SAFETY: a top points to a slot, or to the FULL behind the last slot.
        if unsafe { *top } == FULL {
            return false;
        }
        let ticks = self.ticks.get() - 1;
        self.ticks.set(ticks);
        if ticks < 0 {
            return false;
        }
        // SAFETY: the top is a slot and not FULL, so another slot or FULL follows it. Only this
        // thread uses the slots. By this function's contract, the block is a free block of the
        // class.
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
