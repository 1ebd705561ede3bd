//! Defines functions that copy strings.
//!
//! Some allocators define `strdup` and `strndup`, and take the block from internal functions, whose
//! calls are not counted. The C library's versions take the block from malloc. So a program would
//! seem to make fewer calls under those allocators. With these definitions it makes the same calls
//! under every entrant.

use core::ffi::{c_char, c_void};

use crate::system;

unsafe extern "C" {
    // This library's entry point, which counts the call.
    fn malloc(size: usize) -> *mut c_void;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strdup(text: *const c_char) -> *mut c_char {
    // SAFETY: the caller passes a string that ends with a zero.
    unsafe { copy(text, system::strlen(text)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strndup(text: *const c_char, most: usize) -> *mut c_char {
    // SAFETY: the caller passes a string that ends with a zero, or has at least `most` bytes.
    unsafe { copy(text, system::strnlen(text, most)) }
}

/// Copies the first bytes of a string, and ends the copy with a zero. Returns null if malloc does.
///
/// # Safety
/// `text` points to at least `length` readable bytes.
unsafe fn copy(text: *const c_char, length: usize) -> *mut c_char {
    // SAFETY: malloc has no precondition, and `length + 1` cannot overflow, since the text is in
    // memory.
    let block = unsafe { malloc(length + 1) }.cast::<c_char>();
    if !block.is_null() {
        // SAFETY: the new block has room for `length` bytes and a zero, and does not overlap the
        // text.
        unsafe {
            block.copy_from_nonoverlapping(text, length);
            block.add(length).write(0);
        }
    }
    block
}
