//! Keys of threads' values, as the C library has them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

use loom::cell::UnsafeCell;

use crate::thread_number;

type Destructor = unsafe extern "C" fn(*mut c_void);

/// How often the destructors of a thread that ends are called, where they set values again; as in
/// glibc.
const ROUNDS: usize = 4;

#[derive(Default)]
struct Keys {
    /// By number; none where the key is no more. loom ends the model where a thread uses a key
    /// without having learned in order that it was made.
    destructors: Vec<Rc<UnsafeCell<Option<Destructor>>>>,
    /// By thread and key.
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
    // SAFETY: loom ends the model where somebody changes it at the same time.
    cell.with(|destructor| unsafe { *destructor })
}

/// As `pthread_key_create`.
///
/// # Safety
///
/// The destructor may be called with every value that is set.
#[must_use]
pub unsafe fn create_key(destructor: Destructor) -> Option<c_uint> {
    KEYS.with_borrow_mut(|keys| {
        let cell = Rc::new(UnsafeCell::new(Some(destructor)));
        keys.destructors.push(cell);
        c_uint::try_from(keys.destructors.len() - 1).ok()
    })
}

/// As `pthread_setspecific`.
///
/// # Safety
///
/// The destructor of the key may be called with the value.
///
/// # Panics
///
/// If the key is no more.
#[must_use]
pub unsafe fn set_key(key: c_uint, value: *mut c_void) -> bool {
    let key = key as usize;
    assert!(destructor(key).is_some(), "the key is no more");
    KEYS.with_borrow_mut(|keys| keys.values.insert((thread_number(), key), value));
    true
}

/// As `pthread_key_delete`.
///
/// # Safety
///
/// Nobody uses the key from now on.
pub unsafe fn delete_key(key: c_uint) {
    let cell = KEYS.with_borrow(|keys| keys.destructors[key as usize].clone());
    // SAFETY: loom ends the model where somebody uses it at the same time.
    cell.with_mut(|destructor| unsafe { *destructor = None });
}

/// How many keys there are.
#[must_use]
pub fn keys() -> usize {
    let made = KEYS.with_borrow(|keys| keys.destructors.len());
    (0..made).filter(|&key| destructor(key).is_some()).count()
}

/// What the C library does when the calling thread ends: calls the destructors of its values, in
/// rounds.
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
                // SAFETY: the value was set for this key.
                unsafe { destructor(value) };
            }
        }
    }
}
