//! Allocation functions that serve the blocks of a replay.

use std::ffi::c_void;
use std::ptr;

/// The allocation functions that a replay calls. Those that return a block return null when out of
/// memory.
///
/// # Safety
/// A returned block that is not null has at least the requested size, overlaps no other live block,
/// and may be read and written from any thread until it is freed or resized. `calloc` returns
/// zeroed memory, and `realloc` keeps the contents up to the smaller of the two sizes.
pub unsafe trait Heap: Sync {
    /// Allocates as malloc does.
    fn malloc(&self, size: usize) -> *mut u8;

    /// Allocates as calloc does for one element of `size` bytes.
    fn calloc(&self, size: usize) -> *mut u8;

    /// Allocates as posix_memalign does.
    fn aligned(&self, alignment: usize, size: usize) -> *mut u8;

    /// Allocates as aligned_alloc does.
    fn aligned_alloc(&self, alignment: usize, size: usize) -> *mut u8;

    /// Resizes as realloc does.
    ///
    /// # Safety
    /// `block` is null, or came from this heap and was not freed. If the result is not null, or
    /// `size` is 0, `block` is not used again.
    unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8;

    /// Frees as free does.
    ///
    /// # Safety
    /// `block` is null, or came from this heap and was not freed; it is not used again.
    unsafe fn free(&self, block: *mut u8);
}

/// The C library's interface, which a preloaded allocator serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Libc;

// SAFETY: this is the contract of the C library's functions, which an allocator that replaces them
// must keep as well.
unsafe impl Heap for Libc {
    #[inline(always)]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: malloc accepts every size.
        unsafe { libc::malloc(size) }.cast()
    }

    fn calloc(&self, size: usize) -> *mut u8 {
        // SAFETY: calloc accepts every size.
        unsafe { libc::calloc(1, size) }.cast()
    }

    fn aligned(&self, alignment: usize, size: usize) -> *mut u8 {
        let mut block: *mut c_void = ptr::null_mut();
        // SAFETY: `block` is a place for a pointer; posix_memalign checks the alignment itself.
        match unsafe { libc::posix_memalign(&raw mut block, alignment, size) } {
            0 => block.cast(),
            _ => ptr::null_mut(),
        }
    }

    fn aligned_alloc(&self, alignment: usize, size: usize) -> *mut u8 {
        // SAFETY: aligned_alloc checks the alignment itself.
        unsafe { libc::aligned_alloc(alignment, size) }.cast()
    }

    unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: by this function's contract the block is null, or came from the same allocator,
        // is live, and is not used again once it is freed.
        unsafe { libc::realloc(block.cast(), size) }.cast()
    }

    #[inline(always)]
    unsafe fn free(&self, block: *mut u8) {
        // SAFETY: by this function's contract the block is null, or came from the same allocator,
        // is live, and is not used again.
        unsafe { libc::free(block.cast()) }
    }
}
