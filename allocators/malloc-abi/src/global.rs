//! The allocator as a Rust program's `#[global_allocator]`.

use core::alloc::{GlobalAlloc, Layout};
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use crate::{MIN_ALIGNMENT, MallocAbi};

/// `#[global_allocator] static GLOBAL: Global<Allocator> = Global::new();`
#[derive(Debug)]
pub struct Global<A>(PhantomData<fn() -> A>);

impl<A> Global<A> {
    /// The adapter; it has no state.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<A> Default for Global<A> {
    fn default() -> Self {
        Self::new()
    }
}

fn raw(block: Option<NonNull<u8>>) -> *mut u8 {
    block.map_or(null_mut(), NonNull::as_ptr)
}

// SAFETY: MallocAbi promises blocks as GlobalAlloc wants them; a layout's size is at most MAX_SIZE.
unsafe impl<A: MallocAbi> GlobalAlloc for Global<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > MIN_ALIGNMENT {
            return raw(A::allocate_aligned(layout.size(), layout.align()));
        }
        raw(A::allocate_fast(layout.size()).or_else(|| A::allocate(layout.size())))
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MIN_ALIGNMENT {
            return raw(A::allocate_zeroed(layout.size()));
        }
        let block = A::allocate_aligned(layout.size(), layout.align());
        if let Some(block) = block {
            // SAFETY: the block is new and has this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        raw(block)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let alignment = layout.align().max(MIN_ALIGNMENT);
        // SAFETY: the caller gives up a block that alloc returned for this layout: it is not null.
        unsafe {
            if !A::deallocate_sized_fast(block, layout.size(), alignment) {
                A::deallocate(NonNull::new_unchecked(block));
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= MIN_ALIGNMENT {
            // SAFETY: the block is a live one, not null; new_size is at most MAX_SIZE.
            return unsafe { raw(A::reallocate(NonNull::new_unchecked(block), new_size)) };
        }
        let moved = raw(A::allocate_aligned(new_size, layout.align()));
        if !moved.is_null() {
            // SAFETY: the blocks are different ones of at least these sizes; the caller gives up the
            // old one.
            unsafe {
                block.copy_to_nonoverlapping(moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}
