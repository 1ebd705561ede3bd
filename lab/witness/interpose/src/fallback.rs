//! Behaviour of an entry point if no later library defines its function.
//!
//! A program usually refers to such a function by a weak reference. Without this library, the
//! program would find the function missing. With it, the program finds the entry point, which
//! therefore needs a replacement for the function.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use crate::system;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(pointer: *mut c_void);
    fn memalign(align: usize, size: usize) -> *mut c_void;
}

const ENOMEM: c_int = 12;

/// Returns the address of the replacement for a function.
pub fn for_function(name: &str) -> usize {
    let aligned = name.contains("align_val_t");
    match name.as_bytes() {
        [b'_', b'Z', b'n', ..] if aligned => new_aligned as *const () as usize,
        [b'_', b'Z', b'n', ..] => new as *const () as usize,
        [b'_', b'Z', b'd', ..] => release as *const () as usize,
        b"free_sized" | b"free_aligned_sized" | b"cfree" => release as *const () as usize,
        _ => missing as *const () as usize,
    }
}

unsafe extern "C" fn new(size: usize) -> *mut c_void {
    // SAFETY: malloc has no precondition.
    or_abort(unsafe { malloc(size.max(1)) })
}

unsafe extern "C" fn new_aligned(size: usize, align: usize) -> *mut c_void {
    // SAFETY: callers of aligned `operator new` pass a power of two.
    or_abort(unsafe { memalign(align, size.max(1)) })
}

/// Returns `pointer`, or aborts if it is null. No C++ runtime is loaded that could throw an
/// exception.
fn or_abort(pointer: *mut c_void) -> *mut c_void {
    if pointer.is_null() {
        // SAFETY: abort has no precondition.
        unsafe { system::abort() }
    }
    pointer
}

unsafe extern "C" fn release(pointer: *mut c_void) {
    // SAFETY: the caller passes a block of the allocator that serves malloc, or null.
    unsafe { free(pointer) }
}

unsafe extern "C" fn missing() -> *mut c_void {
    // SAFETY: every thread has an errno.
    unsafe { *system::__errno_location() = ENOMEM };
    null_mut()
}
