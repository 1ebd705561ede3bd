//! Keys for thread-local values, like the C library's.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

use loom::cell::UnsafeCell;

use crate::thread_number;

type Destructor = unsafe extern "C" fn(*mut c_void);

/// Maximum number of rounds in which the destructors of an ending thread are called if they set
/// values again; as in glibc.
const ROUNDS: usize = 4;

#[derive(Default)]
struct Keys {
    /// Destructors by key; `None` if the key was deleted. The model fails if a key's creation is
    /// not ordered before its use.
    destructors: Vec<Rc<UnsafeCell<Option<Destructor>>>>,
    /// Values by thread and key.
    values: HashMap<(usize, usize), *mut c_void>,
}

thread_local! {
    static KEYS: RefCell<Keys> = RefCell::default();
}

pub(crate) fn forget_all() {
    KEYS.set(Keys::default());
}

fn destructor(key: usize) -> Option<Destructor> {
    let cell = KEYS.with_borrow(|keys| keys.destructors[key].clone());
    // SAFETY: the model fails if another thread changes the destructor at the same time.
    cell.with(|destructor| unsafe { *destructor })
}

/// Creates a key like `pthread_key_create`.
///
/// # Safety
///
/// The destructor may be called with every value that is set for the key.
#[must_use]
pub unsafe fn create_key(destructor: Destructor) -> Option<c_uint> {
    KEYS.with_borrow_mut(|keys| {
        let cell = Rc::new(UnsafeCell::new(Some(destructor)));
        keys.destructors.push(cell);
        c_uint::try_from(keys.destructors.len() - 1).ok()
    })
}

/// Sets a value like `pthread_setspecific`.
///
/// # Safety
///
/// The destructor of the key may be called with the value.
///
/// # Panics
///
/// If the key was deleted.
#[must_use]
pub unsafe fn set_key(key: c_uint, value: *mut c_void) -> bool {
    let key = key as usize;
    assert!(destructor(key).is_some(), "the key was deleted");
    KEYS.with_borrow_mut(|keys| keys.values.insert((thread_number(), key), value));
    true
}

/// Deletes a key like `pthread_key_delete`.
///
/// # Safety
///
/// No code uses the key from now on.
pub unsafe fn delete_key(key: c_uint) {
    let cell = KEYS.with_borrow(|keys| keys.destructors[key as usize].clone());
    // SAFETY: the model fails if another thread uses the destructor at the same time.
    cell.with_mut(|destructor| unsafe { *destructor = None });
}

/// Returns the number of keys that were not deleted.
#[must_use]
pub fn keys() -> usize {
    let made = KEYS.with_borrow(|keys| keys.destructors.len());
    (0..made).filter(|&key| destructor(key).is_some()).count()
}

/// Calls the destructors of the calling thread's values in rounds, as the C library does when the
/// thread ends.
pub fn end_of_thread() {
    let thread = thread_number();
    for _ in 0..ROUNDS {
        let made = KEYS.with_borrow(|keys| keys.destructors.len());
        for key in 0..made {
            let value = KEYS.with_borrow_mut(|keys| keys.values.remove(&(thread, key)));
            let value = value.unwrap_or(null_mut());
            if !value.is_null()
                && let Some(destructor) = destructor(key)
            {
                // SAFETY: the value was set for this key, so its destructor may be called with it.
                unsafe { destructor(value) };
            }
        }
    }
}
