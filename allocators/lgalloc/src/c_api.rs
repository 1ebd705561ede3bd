//! The interface for C; `include/heapdrome_lgalloc.h` declares it.
//!
//! A [`Handle`] gives nothing back when it is dropped, so that one is made and dropped in each
//! call.

use core::ffi::c_int;
use core::ops::Range;
use core::ptr::NonNull;

use crate::error::{AllocError, RangeError};
use crate::handle::{Handle, allocate, deallocate};

/// A region, as C sees a handle.
#[derive(Debug)]
#[repr(C)]
pub struct HeapdromeRegion {
    start: *mut u8,
    bytes: usize,
}

/// # Safety
///
/// The region is one that this interface returned and has not taken back.
unsafe fn handle(region: &HeapdromeRegion) -> Option<Handle> {
    let start = NonNull::new(region.start)?;
    // SAFETY: the caller's promise.
    Some(unsafe { Handle::from_parts(start, region.bytes) })
}

fn number(error: AllocError) -> c_int {
    match error {
        AllocError::Alignment(_) => libc::EINVAL,
        AllocError::TooLarge | AllocError::OutOfMemory { .. } => libc::ENOMEM,
    }
}

/// Allocates at least `bytes`; returns 0, or an error number and leaves `region` alone.
///
/// # Safety
///
/// `region` is valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_allocate(
    bytes: usize,
    region: *mut HeapdromeRegion,
) -> c_int {
    match allocate::<u8>(bytes.max(1)) {
        Ok((start, bytes, _)) => {
            // SAFETY: the caller's promise.
            unsafe {
                region.write(HeapdromeRegion {
                    start: start.as_ptr(),
                    bytes,
                })
            };
            0
        }
        Err(error) => number(error),
    }
}

/// Takes a region back. One whose start is NULL is ignored.
///
/// # Safety
///
/// The region is one that this interface returned and has not taken back, and nobody uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_deallocate(region: HeapdromeRegion) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { handle(&region) } {
        deallocate(handle);
    }
}

/// Makes a region hold at least `bytes`, contents kept; it may move. Returns 0, or an error number
/// and leaves everything as it was.
///
/// # Safety
///
/// As for `heapdrome_lgalloc_deallocate`; `region` is valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_resize(
    region: *mut HeapdromeRegion,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(mut handle) = (unsafe { handle(&*region) }) else {
        return libc::EINVAL;
    };
    let result = handle.resize::<u8>(bytes.max(1));
    match result {
        Ok((start, bytes)) => {
            // SAFETY: the caller's promise.
            unsafe {
                region.write(HeapdromeRegion {
                    start: start.as_ptr(),
                    bytes,
                })
            };
            0
        }
        Err(error) => number(error),
    }
}

/// Does something about bytes `offset` to `offset + length` of a region; returns 0 or an error
/// number.
///
/// # Safety
///
/// The region is one that this interface returned and has not taken back.
unsafe fn with_range(
    region: &HeapdromeRegion,
    offset: usize,
    length: usize,
    act: impl FnOnce(&mut Handle, Range<usize>) -> Result<(), RangeError>,
) -> c_int {
    // SAFETY: the caller's promise; a handle gives nothing back when it is dropped.
    let Some(mut handle) = (unsafe { handle(region) }) else {
        return libc::EINVAL;
    };
    let Some(end) = offset.checked_add(length) else {
        return libc::ERANGE;
    };
    match act(&mut handle, offset..end) {
        Ok(()) => 0,
        Err(RangeError::OutOfBounds { .. }) => libc::ERANGE,
        Err(RangeError::Refused(number)) => number,
    }
}

/// Asks for bytes `offset` to `offset + length` to be brought into memory. Returns 0 or an error
/// number.
///
/// # Safety
///
/// As for `heapdrome_lgalloc_deallocate`, but the region may be in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_prefetch(
    region: HeapdromeRegion,
    offset: usize,
    length: usize,
) -> c_int {
    let prefetch = |handle: &mut Handle, range| handle.prefetch_hint::<u8>(range);
    // SAFETY: the caller's promise.
    unsafe { with_range(&region, offset, length, prefetch) }
}

/// Drops the contents of the pages that lie wholly in bytes `offset` to `offset + length`. Returns
/// 0 or an error number.
///
/// # Safety
///
/// As for `heapdrome_lgalloc_deallocate`, but only those bytes must not be in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_purge(
    region: HeapdromeRegion,
    offset: usize,
    length: usize,
) -> c_int {
    let purge = |handle: &mut Handle, range| handle.purge::<u8>(range);
    // SAFETY: the caller's promise.
    unsafe { with_range(&region, offset, length, purge) }
}
