//! The global allocator of the workload's binary.
//!
//! Every request goes to the C library, so that a preloaded allocator can serve the request.

#[cfg(not(feature = "stats"))]
use std::alloc::System;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::io::Write;

#[cfg(feature = "stats")]
use crate::stats::INNER;

#[cfg(not(feature = "stats"))]
static INNER: System = System;

/// The system's allocator with two additions. When out of memory, it prints one line and ends the
/// process with status 1, where Rust would abort. Each thread counts the bytes that it has
/// requested and not freed, and `gen-data` reads this count. A call costs only a few instructions
/// more than a call of the system's allocator.
#[derive(Debug)]
pub struct Allocator;

thread_local! {
    /// Bytes that this thread requested, minus those that it freed. The cell has no destructor and
    /// a constant initial value, so that its use never allocates.
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

impl Allocator {
    /// Returns the bytes that this thread requested, minus those that it freed.
    pub(crate) fn live() -> i64 {
        LIVE.with(Cell::get)
    }
}

#[inline]
fn count(change: i64) {
    LIVE.with(|live| live.set(live.get() + change));
}

// SAFETY: every call is forwarded unchanged to `INNER`, which upholds the contract of
// `GlobalAlloc`. The result is returned unless it is null, and then the process ends.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller passes a layout whose size is not zero, as `INNER` requires.
        or_end(unsafe { INNER.alloc(layout) }, layout.size(), layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller passes a layout whose size is not zero, as `INNER` requires.
        or_end(unsafe { INNER.alloc_zeroed(layout) }, layout.size(), layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller passes a block of this allocator with its layout, and `INNER` serves
        // all blocks.
        unsafe { INNER.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller passes a block of this allocator with its layout, and `INNER` serves
        // all blocks. The caller also ensures that `size` is not zero and does not overflow `isize`
        // when rounded up.
        or_end(unsafe { INNER.realloc(block, layout, size) }, size, layout)
    }
}

#[inline]
fn or_end(block: *mut u8, size: usize, layout: Layout) -> *mut u8 {
    if block.is_null() {
        end(size, layout.align());
    }
    block
}

/// Prints the failed request and ends the process, without allocating.
#[cold]
fn end(size: usize, alignment: usize) -> ! {
    let mut line = [0_u8; 160];
    let room = line.len();
    let mut rest = line.as_mut_slice();
    // The buffer has room for the longest possible line, so the write cannot fail.
    let _ = writeln!(
        rest,
        "heapdrome-catalog: the allocator failed: it returned null for {size} bytes aligned to \
         {alignment}"
    );
    let length = room - rest.len();
    // SAFETY: the first `length` bytes of `line` are readable, because `length` is at most its
    // length. `_exit` has no preconditions; unlike `exit`, it runs no code that could allocate.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length);
        libc::_exit(1)
    }
}
