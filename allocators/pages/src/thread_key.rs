//! Values of threads whose destructor runs when a thread ends: the C library's keys, or in models
//! keys of loom's threads.

use core::ffi::c_void;

#[cfg(modelled)]
pub use crate::atomic::{create_key as create, delete_key as delete, set_key as set};

/// The number of a key.
pub type Key = libc::pthread_key_t;
/// What is called with the value that an ending thread has, if that is not null.
pub type Destructor = unsafe extern "C" fn(*mut c_void);

/// A new key; every thread's value is null. `None` where the process has no key left.
///
/// # Safety
///
/// The destructor may be called with every value that is set.
#[cfg(not(modelled))]
#[must_use]
pub unsafe fn create(destructor: Destructor) -> Option<Key> {
    let mut key = 0;
    // SAFETY: the number is written to the local variable; the caller's promise.
    let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) } != 0;
    (!failed).then_some(key)
}

/// Sets the calling thread's value; false where there is no memory for it. This may call `calloc`.
///
/// # Safety
///
/// The key exists, and its destructor may be called with the value.
#[cfg(not(modelled))]
#[must_use]
pub unsafe fn set(key: Key, value: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_setspecific(key, value) == 0 }
}

/// Takes a key back; its destructor is called no more.
///
/// # Safety
///
/// The key exists, and nobody uses it from now on.
#[cfg(not(modelled))]
pub unsafe fn delete(key: Key) {
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_key_delete(key) };
}
