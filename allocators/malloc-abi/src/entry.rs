//! C functions for any allocator. `export!` gives them their names.
//!
//! The functions that are inlined into entry points are short. Each ends with a call to a slow path
//! with some of its own arguments. The compiler turns this call into a jump, so that the fast path
//! needs no stack frame.

use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null_mut};

use crate::contract::keeping_errno;
use crate::slow_path::{allocate, allocate_zeroed, deallocate, reallocate, usable_size};
use crate::{MAX_SIZE, MIN_ALIGNMENT, MallocAbi};

/// Sets `errno` to ENOMEM and returns null.
#[cold]
#[inline(never)]
pub fn out_of_memory() -> *mut c_void {
    set_errno(libc::ENOMEM);
    null_mut()
}

fn set_errno(code: c_int) {
    // SAFETY: the address is the calling thread's own errno.
    unsafe { *libc::__errno_location() = code };
}

/// Converts the result of an allocator to that of a C function: for `None`, sets `errno` to ENOMEM
/// and returns null.
#[inline]
fn or_errno(block: Option<NonNull<u8>>) -> *mut c_void {
    match block {
        Some(block) => block.as_ptr().cast(),
        None => out_of_memory(),
    }
}

/// Implements `malloc`.
#[inline(always)]
pub fn malloc<A: MallocAbi>(size: usize) -> *mut c_void {
    match A::allocate_fast(size) {
        Some(block) => block.as_ptr().cast(),
        None => malloc_slow::<A>(size),
    }
}

// This function and `free_slow` are cold, but every process runs them. So they have a section of
// their own: otherwise the compiler would place them among cold functions that few processes run.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.slow")]
extern "C" fn malloc_slow<A: MallocAbi>(size: usize) -> *mut c_void {
    keeping_errno_unless_null(|| allocate::<A>(size, MIN_ALIGNMENT))
}

/// Calls `body` and restores `errno`. If `body` returns `None`, sets `errno` to ENOMEM and returns
/// null.
#[inline]
fn keeping_errno_unless_null(body: impl FnOnce() -> Option<NonNull<u8>>) -> *mut c_void {
    or_errno(keeping_errno(body))
}

/// Implements `free`.
///
/// # Safety
///
/// The conditions of C's `free` hold.
#[inline(always)]
pub unsafe fn free<A: MallocAbi>(block: *mut c_void) {
    // SAFETY: by this function's contract, `block` is null, or a live block that the caller no
    // longer uses.
    unsafe {
        if !A::deallocate_fast(block.cast()) {
            free_slow::<A>(block);
        }
    }
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.slow")]
unsafe extern "C" fn free_slow<A: MallocAbi>(block: *mut c_void) {
    let Some(block) = NonNull::new(block.cast()) else {
        return;
    };
    // SAFETY: by the contracts of `free` and `free_sized`, the block is live and the caller no
    // longer uses it.
    keeping_errno(|| unsafe { deallocate::<A>(block) });
}

/// Implements `free_sized` if `alignment` is zero, and `free_aligned_sized` otherwise. Zero stands
/// for an unknown alignment of at most [`MIN_ALIGNMENT`].
///
/// # Safety
///
/// The conditions of C's `free` hold. The block was allocated with this size and alignment, or was
/// last reallocated to this size.
#[inline(always)]
pub unsafe fn free_sized<A: MallocAbi>(block: *mut c_void, size: usize, alignment: usize) {
    // SAFETY: by this function's contract, `block` is null, or a live block that the caller no
    // longer uses. It was allocated with this size and alignment, or was last reallocated to this
    // size.
    unsafe {
        if !A::deallocate_sized_fast(block.cast(), size, alignment.max(MIN_ALIGNMENT)) {
            free_slow::<A>(block);
        }
    }
}

/// Implements `calloc`.
pub fn calloc<A: MallocAbi>(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(size) if size <= MAX_SIZE => match A::allocate_zeroed_fast(size) {
            Some(block) => block.as_ptr().cast(),
            None => keeping_errno_unless_null(|| allocate_zeroed::<A>(size)),
        },
        _ => out_of_memory(),
    }
}

/// Implements `realloc`. As in glibc, size zero frees a block that is not null, and returns null.
///
/// # Safety
///
/// The conditions of C's `realloc` hold.
pub unsafe fn realloc<A: MallocAbi>(block: *mut c_void, size: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else {
        return malloc::<A>(size);
    };
    if size == 0 {
        // SAFETY: `block` is live, by the contract of this function, and the caller does not use it
        // again.
        unsafe { free::<A>(block) };
        return null_mut();
    }
    if size > MAX_SIZE {
        return out_of_memory();
    }
    // SAFETY: by this function's contract, the block is live, no other thread uses it during the
    // call, and the caller does not use it again unless null is returned.
    match unsafe { A::reallocate_fast(old, size) } {
        Some(block) => block.as_ptr().cast(),
        // SAFETY: by this function's contract, the block is live, no other thread uses it during
        // the call, and the caller does not use it again unless null is returned.
        None => keeping_errno_unless_null(|| unsafe { reallocate::<A>(old, size) }),
    }
}

/// Implements `reallocarray`.
///
/// # Safety
///
/// The conditions of C's `realloc` hold.
pub unsafe fn reallocarray<A: MallocAbi>(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: this function's contract is that of `realloc`.
        Some(size) => unsafe { realloc::<A>(block, size) },
        None => out_of_memory(),
    }
}

/// Implements `memalign`. As in glibc, rounds an alignment up to a power of two. If no power of two
/// is large enough, sets `errno` to EINVAL. Alignments above half of [`MAX_SIZE`] are valid, but no
/// block can have them, so `errno` is ENOMEM.
pub fn memalign<A: MallocAbi>(alignment: usize, size: usize) -> *mut c_void {
    match alignment.checked_next_power_of_two() {
        Some(alignment) if alignment <= MAX_SIZE / 2 => {
            match A::allocate_aligned_fast(size, alignment) {
                Some(block) => block.as_ptr().cast(),
                None => keeping_errno_unless_null(|| allocate::<A>(size, alignment)),
            }
        }
        Some(_) => out_of_memory(),
        None => {
            set_errno(libc::EINVAL);
            null_mut()
        }
    }
}

/// Implements `aligned_alloc`. An alignment that is not a power of two is an error (EINVAL); C11
/// left the behaviour undefined. The size need not be a multiple of the alignment.
pub fn aligned_alloc<A: MallocAbi>(alignment: usize, size: usize) -> *mut c_void {
    if alignment.is_power_of_two() {
        return memalign::<A>(alignment, size);
    }
    set_errno(libc::EINVAL);
    null_mut()
}

/// Implements `posix_memalign`. Returns zero or the error number, and does not change `errno`.
/// Writes to `place` only on success.
///
/// # Safety
///
/// `place` may be written to.
pub unsafe fn posix_memalign<A: MallocAbi>(
    place: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let possible = alignment <= MAX_SIZE / 2;
    if possible && let Some(block) = A::allocate_aligned_fast(size, alignment) {
        // SAFETY: `place` may be written to, by this function's contract.
        unsafe { place.write(block.as_ptr().cast()) };
        return 0;
    }
    match keeping_errno(|| possible.then(|| allocate::<A>(size, alignment)).flatten()) {
        Some(block) => {
            // SAFETY: `place` may be written to, by this function's contract.
            unsafe { place.write(block.as_ptr().cast()) };
            0
        }
        None => libc::ENOMEM,
    }
}

fn page_size() -> usize {
    heapdrome_pages::Pages::page_size(&heapdrome_pages::Linux)
}

/// Implements `valloc`.
pub fn valloc<A: MallocAbi>(size: usize) -> *mut c_void {
    memalign::<A>(page_size(), size)
}

/// Implements `pvalloc`: allocates at least one page, in whole pages.
pub fn pvalloc<A: MallocAbi>(size: usize) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(page_size()) {
        Some(size) => memalign::<A>(page_size(), size),
        None => out_of_memory(),
    }
}

/// Implements `malloc_usable_size`.
///
/// # Safety
///
/// `block` is null or a live block.
pub unsafe fn malloc_usable_size<A: MallocAbi>(block: *mut c_void) -> usize {
    match NonNull::new(block.cast::<u8>()) {
        // SAFETY: the block is live, by this function's contract.
        Some(block) => unsafe { usable_size::<A>(block) },
        None => 0,
    }
}
