//! Keys of thread-local values with a destructor that runs when a thread ends: the C library's, or
//! simulated ones in models.

use core::ffi::c_void;

#[cfg(modelled)]
pub use crate::atomic::{create_key as create, delete_key as delete, set_key as set};

/// Number of a key.
pub type Key = libc::pthread_key_t;
/// Function that is called with an ending thread's value, unless the value is null.
pub type Destructor = unsafe extern "C" fn(*mut c_void);

/// Creates a key with the value null in every thread. Returns `None` if the process has no keys
/// left.
///
/// # Safety
///
/// The destructor may be called with every value that is set for the key.
#[cfg(not(modelled))]
#[must_use]
pub unsafe fn create(destructor: Destructor) -> Option<Key> {
    let mut key = 0;
    // SAFETY: the number is written to the local variable, and the destructor accepts all values,
    // by the contract of this function.
    let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) } != 0;
    (!failed).then_some(key)
}

/// Sets the calling thread's value. Returns false if out of memory. May call `calloc`.
///
/// # Safety
///
/// The key exists, and its destructor may be called with the value.
#[cfg(not(modelled))]
#[must_use]
pub unsafe fn set(key: Key, value: *mut c_void) -> bool {
    // SAFETY: the key exists and its destructor may get the value, by the contract of this
    // function.
    unsafe { libc::pthread_setspecific(key, value) == 0 }
}

/// Deletes a key; its destructor is no longer called.
///
/// # Safety
///
/// The key exists, and no code uses it from now on.
#[cfg(not(modelled))]
pub unsafe fn delete(key: Key) {
    // SAFETY: the key exists and is no longer used, by the contract of this function.
    unsafe { libc::pthread_key_delete(key) };
}
