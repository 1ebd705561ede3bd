//! Interface for C, declared in `include/heapdrome_lgalloc.h`.
//!
//! Dropping a [`Handle`] does not deallocate its region, so each call creates a handle and drops
//! it.

use core::ffi::c_int;
use core::ops::Range;
use core::ptr::NonNull;

use crate::error::{AllocError, RangeError};
use crate::handle::{Handle, allocate, deallocate};

/// Region, as declared in the C header.
#[derive(Debug)]
#[repr(C)]
pub struct HeapdromeRegion {
    start: *mut u8,
    bytes: usize,
}

/// Returns the handle of a region; `None` if its start is null.
///
/// # Safety
///
/// The region's start is null, or this interface returned the region and it has not been
/// deallocated.
unsafe fn handle(region: &HeapdromeRegion) -> Option<Handle> {
    let start = NonNull::new(region.start)?;
    // SAFETY: this interface returned the region, by this function's contract. Each call drops its
    // handle. Calls for one region that run at the same time only prefetch or purge, because the
    // contracts of all other calls exclude any use of the region.
    Some(unsafe { Handle::from_parts(start, region.bytes) })
}

fn number(error: AllocError) -> c_int {
    match error {
        AllocError::Alignment(_) => libc::EINVAL,
        AllocError::TooLarge | AllocError::OutOfMemory { .. } => libc::ENOMEM,
    }
}

/// Allocates a region of at least `bytes`. Returns 0 on success. On failure, returns an error
/// number and does not write to `region`.
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
            // SAFETY: `region` is valid for writing, by this function's contract.
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

/// Deallocates a region. Does nothing if its start is NULL.
///
/// # Safety
///
/// The region's start is null, or this interface returned the region, it has not been deallocated,
/// and no code uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_deallocate(region: HeapdromeRegion) {
    // SAFETY: this function's contract includes that of `handle`.
    if let Some(handle) = unsafe { handle(&region) } {
        deallocate(handle);
    }
}

/// Resizes a region to at least `bytes`, and keeps the contents that fit. The region may move.
/// Returns 0 on success. On failure, returns an error number, and the region is unchanged.
///
/// # Safety
///
/// The conditions of `heapdrome_lgalloc_deallocate` hold; `region` is valid for reading and
/// writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_resize(
    region: *mut HeapdromeRegion,
    bytes: usize,
) -> c_int {
    // SAFETY: by this function's contract, `region` is valid for reading, and the region meets the
    // conditions of `handle`.
    let Some(mut handle) = (unsafe { handle(&*region) }) else {
        return libc::EINVAL;
    };
    let result = handle.resize::<u8>(bytes.max(1));
    match result {
        Ok((start, bytes)) => {
            // SAFETY: `region` is valid for writing, by this function's contract.
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

/// Calls `act` with a handle and the byte range from `offset` to `offset + length`. Returns 0 or an
/// error number.
///
/// # Safety
///
/// The region's start is null, or this interface returned the region and it has not been
/// deallocated.
unsafe fn with_range(
    region: &HeapdromeRegion,
    offset: usize,
    length: usize,
    act: impl FnOnce(&mut Handle, Range<usize>) -> Result<(), RangeError>,
) -> c_int {
    // SAFETY: this function's contract is that of `handle`.
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

/// Requests that the system read bytes `offset` to `offset + length` into memory. Returns 0 or an
/// error number.
///
/// # Safety
///
/// The conditions of `heapdrome_lgalloc_deallocate` hold, except that the region may be in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_prefetch(
    region: HeapdromeRegion,
    offset: usize,
    length: usize,
) -> c_int {
    let prefetch = |handle: &mut Handle, range| handle.prefetch_hint::<u8>(range);
    // SAFETY: this function's contract includes that of `with_range`.
    unsafe { with_range(&region, offset, length, prefetch) }
}

/// Drops the contents of the pages that lie wholly in bytes `offset` to `offset + length`. Returns
/// 0 or an error number.
///
/// # Safety
///
/// The conditions of `heapdrome_lgalloc_deallocate` hold, except that bytes outside the range may
/// be in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_purge(
    region: HeapdromeRegion,
    offset: usize,
    length: usize,
) -> c_int {
    let purge = |handle: &mut Handle, range| handle.purge::<u8>(range);
    // SAFETY: this function's contract includes that of `with_range`.
    unsafe { with_range(&region, offset, length, purge) }
}
