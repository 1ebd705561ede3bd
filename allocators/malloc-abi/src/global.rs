//! Adapter that makes an allocator the `#[global_allocator]` of a Rust program.

use core::alloc::{GlobalAlloc, Layout};
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use crate::contract::keeping_errno;
use crate::entry::free_sized;
use crate::slow_path::{allocate, allocate_zeroed, reallocate};
use crate::{MIN_ALIGNMENT, MallocAbi};

/// Makes an allocator the `#[global_allocator]` of a Rust program. Also registers its
/// [`start`](crate::MallocAbi::start) and [`stop`](crate::MallocAbi::stop) functions, as
/// [`export!`](crate::export) does for a library. Write `global_allocator!(Allocator);` once, in
/// the program or in a crate that it links.
///
/// Code in other languages in the process still allocates with the C library's `malloc`. A shared
/// library that contains the allocator must stay loaded (`-z nodelete`), because its fork handlers
/// stay registered.
#[macro_export]
macro_rules! global_allocator {
    ($allocator:ty) => {
        const _: () = {
            #[global_allocator]
            static GLOBAL: $crate::exported::Global<$allocator> =
                // SAFETY: the allocator is registered below.
                unsafe { $crate::exported::Global::registered() };
        };
        $crate::register!($allocator);
    };
}

/// Adapter from `MallocAbi` to `GlobalAlloc`. Requests for zero bytes, which `GlobalAlloc` leaves
/// undefined, return blocks with distinct addresses. All functions preserve `errno`, so that
/// dropping a value between a system call and the check of its error does not change the error.
#[derive(Debug)]
pub struct Global<A>(PhantomData<fn() -> A>);

impl<A> Global<A> {
    /// Creates the adapter, which has no state.
    ///
    /// # Safety
    ///
    /// `register!` registers the allocator in the same program. Its `start` registers the fork
    /// handlers, without which a child might find locks held and structures half changed by threads
    /// that do not exist in it.
    #[must_use]
    pub const unsafe fn registered() -> Self {
        Self(PhantomData)
    }
}

fn raw(block: Option<NonNull<u8>>) -> *mut u8 {
    block.map_or(null_mut(), NonNull::as_ptr)
}

#[cold]
#[inline(never)]
fn allocate_slow<A: MallocAbi>(layout: Layout) -> *mut u8 {
    raw(keeping_errno(|| {
        allocate::<A>(layout.size(), layout.align())
    }))
}

// SAFETY: the contract of `MallocAbi` covers that of `GlobalAlloc`, and a layout's size is at most
// `MAX_SIZE`.
unsafe impl<A: MallocAbi> GlobalAlloc for Global<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match A::allocate_aligned_fast(layout.size(), layout.align()) {
            Some(block) => block.as_ptr(),
            None => allocate_slow::<A>(layout),
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MIN_ALIGNMENT {
            let fast = A::allocate_zeroed_fast(layout.size());
            return raw(fast.or_else(|| keeping_errno(|| allocate_zeroed::<A>(layout.size()))));
        }
        let block = allocate_slow::<A>(layout);
        if !block.is_null() {
            // SAFETY: the block is new and has this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the contract of `dealloc`, `block` was allocated with this layout or last
        // reallocated to its size, and the caller no longer uses it.
        unsafe { free_sized::<A>(block.cast(), layout.size(), layout.align()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by the contract of `realloc`, the size rounded up to the alignment is at most
        // MAX_SIZE.
        let wanted = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if wanted.align() <= MIN_ALIGNMENT {
            // SAFETY: by the contract of `realloc`, the block is live, so it is not null. No other
            // thread uses it during the call, and the caller does not use it again unless null is
            // returned.
            return unsafe {
                let block = NonNull::new_unchecked(block);
                let fast = A::reallocate_fast(block, new_size);
                raw(fast.or_else(|| keeping_errno(|| reallocate::<A>(block, new_size))))
            };
        }
        let moved = allocate_slow::<A>(wanted);
        if !moved.is_null() {
            // SAFETY: the blocks are different and have at least the copied size. The old block has
            // this layout, and the caller no longer uses it.
            unsafe {
                block.copy_to_nonoverlapping(moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}
