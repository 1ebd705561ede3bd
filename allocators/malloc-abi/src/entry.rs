//! The C functions, for any allocator. `export!` gives them their names.
//!
//! The functions that are inlined into entry points are short; each ends with a call of the same
//! shape as its own, which the compiler makes a jump, so that the fast path needs no stack frame.

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

/// What a C function returns for what an allocator returned.
#[inline]
fn or_errno(block: Option<NonNull<u8>>) -> *mut c_void {
    match block {
        Some(block) => block.as_ptr().cast(),
        None => out_of_memory(),
    }
}

/// `malloc`.
#[inline(always)]
pub fn malloc<A: MallocAbi>(size: usize) -> *mut c_void {
    match A::allocate_fast(size) {
        Some(block) => block.as_ptr().cast(),
        None => malloc_slow::<A>(size),
    }
}

#[cold]
#[inline(never)]
extern "C" fn malloc_slow<A: MallocAbi>(size: usize) -> *mut c_void {
    keeping_errno_unless_null(|| allocate::<A>(size, MIN_ALIGNMENT))
}

/// Calls `body` with `errno` put back, then sets it if there is no block.
#[inline]
fn keeping_errno_unless_null(body: impl FnOnce() -> Option<NonNull<u8>>) -> *mut c_void {
    or_errno(keeping_errno(body))
}

/// `free`.
///
/// # Safety
///
/// As for C's `free`.
#[inline(always)]
pub unsafe fn free<A: MallocAbi>(block: *mut c_void) {
    // SAFETY: the caller gives up null or a live block.
    unsafe {
        if !A::deallocate_fast(block.cast()) {
            free_slow::<A>(block);
        }
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn free_slow<A: MallocAbi>(block: *mut c_void) {
    let Some(block) = NonNull::new(block.cast()) else {
        return;
    };
    // SAFETY: the block is live, and the caller gives it up.
    keeping_errno(|| unsafe { deallocate::<A>(block) });
}

/// `free_sized`, and with an alignment `free_aligned_sized`.
///
/// # Safety
///
/// As for C's `free`; size and alignment are those that the block was allocated with.
#[inline(always)]
pub unsafe fn free_sized<A: MallocAbi>(block: *mut c_void, size: usize, alignment: usize) {
    // SAFETY: the caller gives up null or a live block.
    unsafe {
        if !A::deallocate_sized_fast(block.cast(), size, alignment.max(MIN_ALIGNMENT)) {
            free_slow::<A>(block);
        }
    }
}

/// `calloc`.
pub fn calloc<A: MallocAbi>(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(size) if size <= MAX_SIZE => match A::allocate_zeroed_fast(size) {
            Some(block) => block.as_ptr().cast(),
            None => keeping_errno_unless_null(|| allocate_zeroed::<A>(size)),
        },
        _ => out_of_memory(),
    }
}

/// `realloc`. As in glibc, a block that is reallocated to nothing is freed, and null returned.
///
/// # Safety
///
/// As for C's `realloc`.
pub unsafe fn realloc<A: MallocAbi>(block: *mut c_void, size: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else {
        return malloc::<A>(size);
    };
    if size == 0 {
        // SAFETY: the caller gives up a live block.
        unsafe { free::<A>(block) };
        return null_mut();
    }
    if size > MAX_SIZE {
        return out_of_memory();
    }
    // SAFETY: the block is live; the caller forgets it unless null is returned.
    match unsafe { A::reallocate_fast(old, size) } {
        Some(block) => block.as_ptr().cast(),
        // SAFETY: as above.
        None => keeping_errno_unless_null(|| unsafe { reallocate::<A>(old, size) }),
    }
}

/// `reallocarray`.
///
/// # Safety
///
/// As for C's `realloc`.
pub unsafe fn reallocarray<A: MallocAbi>(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(size) => unsafe { realloc::<A>(block, size) },
        None => out_of_memory(),
    }
}

/// `memalign`. As in glibc, an alignment that is no power of two counts as the next one. The
/// largest power of two is valid, but no block can have it.
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

/// `aligned_alloc`. The standard calls it undefined or an error where the alignment is no power of
/// two; it is an error here. The size need be no multiple of it.
pub fn aligned_alloc<A: MallocAbi>(alignment: usize, size: usize) -> *mut c_void {
    if alignment.is_power_of_two() {
        return memalign::<A>(alignment, size);
    }
    set_errno(libc::EINVAL);
    null_mut()
}

/// `posix_memalign`: its result is the error, `errno` stays as it is, and `place` is written only
/// on success.
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
        // SAFETY: the caller's promise.
        unsafe { place.write(block.as_ptr().cast()) };
        return 0;
    }
    match keeping_errno(|| possible.then(|| allocate::<A>(size, alignment)).flatten()) {
        Some(block) => {
            // SAFETY: the caller's promise.
            unsafe { place.write(block.as_ptr().cast()) };
            0
        }
        None => libc::ENOMEM,
    }
}

fn page_size() -> usize {
    heapdrome_pages::Pages::page_size(&heapdrome_pages::Linux)
}

/// `valloc`.
pub fn valloc<A: MallocAbi>(size: usize) -> *mut c_void {
    memalign::<A>(page_size(), size)
}

/// `pvalloc`: whole pages, at least one.
pub fn pvalloc<A: MallocAbi>(size: usize) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(page_size()) {
        Some(size) => memalign::<A>(page_size(), size),
        None => out_of_memory(),
    }
}

/// `malloc_usable_size`.
///
/// # Safety
///
/// `block` is null or a live block.
pub unsafe fn malloc_usable_size<A: MallocAbi>(block: *mut c_void) -> usize {
    match NonNull::new(block.cast::<u8>()) {
        // SAFETY: the caller's promise.
        Some(block) => unsafe { usable_size::<A>(block) },
        None => 0,
    }
}
