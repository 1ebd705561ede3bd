//! The allocator as a Rust program's `#[global_allocator]`.

use core::alloc::{GlobalAlloc, Layout};
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use crate::contract::keeping_errno;
use crate::entry::free_sized;
use crate::slow_path::{allocate, allocate_zeroed, reallocate};
use crate::{MIN_ALIGNMENT, MallocAbi};

/// Makes an allocator the `#[global_allocator]` of a Rust program. Runs its
/// [`start`](crate::MallocAbi::start), [`stop`](crate::MallocAbi::stop) and fork handlers with the
/// program, as [`export!`](crate::export) does with a library. Write
/// `global_allocator!(Allocator);` once among the items of the program, or of a crate that it
/// links.
///
/// Code in other languages in the process still allocates with the C library's `malloc`. A shared
/// library that contains the allocator must stay loaded (`-z nodelete`), as the handlers do.
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

/// Adapter that the compiler calls. Blocks are as `MallocAbi` promises them. Blocks of no bytes,
/// which `GlobalAlloc` leaves undefined, have addresses of their own. `errno` is preserved, so that
/// a value dropped between a system call and the check of its error does not change it.
#[derive(Debug)]
pub struct Global<A>(PhantomData<fn() -> A>);

impl<A> Global<A> {
    /// Returns the adapter; it has no state.
    ///
    /// # Safety
    ///
    /// The allocator is registered in the same program by `register!`. Without its fork handlers, a
    /// child might find locks held, and structures half changed, by threads that it does not have.
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

// SAFETY: MallocAbi promises blocks as GlobalAlloc requires; a layout's size is at most MAX_SIZE.
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
        // SAFETY: the caller gives up a block that alloc returned for this layout.
        unsafe { free_sized::<A>(block.cast(), layout.size(), layout.align()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by the contract of `realloc`, the size rounded up to the alignment is at most
        // MAX_SIZE.
        let wanted = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if wanted.align() <= MIN_ALIGNMENT {
            // SAFETY: the block is live, so it is not null.
            return unsafe {
                let block = NonNull::new_unchecked(block);
                let fast = A::reallocate_fast(block, new_size);
                raw(fast.or_else(|| keeping_errno(|| reallocate::<A>(block, new_size))))
            };
        }
        let moved = allocate_slow::<A>(wanted);
        if !moved.is_null() {
            // SAFETY: the blocks are different ones of at least these sizes; the caller gives up
            // the old one.
            unsafe {
                block.copy_to_nonoverlapping(moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}
