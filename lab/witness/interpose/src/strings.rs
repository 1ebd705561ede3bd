//! Copies of strings.
//!
//! Some allocators define `strdup` and `strndup` themselves and take the block from functions of
//! their own, where nothing counts it; the C library's take it from malloc. A program would seem to
//! make fewer calls under the former. With these definitions it makes the same calls under every
//! entrant.

use core::ffi::{c_char, c_void};

use crate::system;

unsafe extern "C" {
    // This library's own entry point, which counts.
    fn malloc(size: usize) -> *mut c_void;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strdup(text: *const c_char) -> *mut c_char {
    // SAFETY: the caller gives a string that ends with a zero.
    unsafe { copy(text, system::strlen(text)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strndup(text: *const c_char, most: usize) -> *mut c_char {
    // SAFETY: the caller gives a string that ends with a zero or has at least `most` bytes.
    unsafe { copy(text, system::strnlen(text, most)) }
}

/// Copies the first bytes of a string, and ends the copy with a zero; null where malloc gives
/// nothing.
///
/// # Safety
/// `text` must have `length` bytes.
unsafe fn copy(text: *const c_char, length: usize) -> *mut c_char {
    // SAFETY: malloc has no precondition; `length` is below that of an object in memory.
    let block = unsafe { malloc(length + 1) }.cast::<c_char>();
    if !block.is_null() {
        // SAFETY: the new block has room for `length` bytes and a zero, and is no part of the text.
        unsafe {
            block.copy_from_nonoverlapping(text, length);
            block.add(length).write(0);
        }
    }
    block
}
