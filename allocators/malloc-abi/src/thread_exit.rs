//! Destructor of an allocator's per-thread state, which is called when a thread ends.
//!
//! glibc runs the destructors of `pthread_key`s after those of C++ and Rust thread-local variables,
//! in up to four rounds. An allocator's key is among the first that a process creates. So its
//! destructor is among the first in a round, and destructors of other keys may still free. The key
//! is therefore armed again once, and the handler runs in the second round. If the thread frees
//! blocks later, it does so without its own state.

use core::ffi::c_void;
use core::ptr::NonNull;

use heapdrome_pages::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire},
};
use heapdrome_pages::thread_key::{self, Destructor, Key};

/// Offset of the stored key number, so that zero means that no key exists yet.
const MADE: usize = 1;

/// Handler that is called for every armed thread when it ends.
#[derive(Debug)]
pub struct ThreadExit {
    key: AtomicUsize,
    destructor: Destructor,
}

impl ThreadExit {
    /// Creates a handler. `destructor` must call [`ends`](Self::ends) first, and do its work only
    /// if `ends` returns a state.
    #[must_use]
    pub const fn new(destructor: Destructor) -> Self {
        Self {
            key: AtomicUsize::new(0),
            destructor,
        }
    }

    /// Arms the calling thread, so that the destructor is called with `state` when the thread ends.
    ///
    /// May call `calloc`, so the thread's state must already be set. Returns false, and the
    /// destructor will not be called, if the process has no key left or is out of memory.
    pub fn arm<T>(&self, state: NonNull<T>) -> bool {
        self.set(state.as_ptr().cast())
    }

    /// Begins a call of the destructor. Returns the state in the second round; in the first round,
    /// arms the key again and returns `None`, and the destructor must return at once. If the key
    /// cannot be armed again, returns the state in the first round.
    ///
    /// # Safety
    ///
    /// The destructor was called with `word`.
    pub unsafe fn ends<T>(&self, word: *mut c_void) -> Option<NonNull<T>> {
        const { assert!(align_of::<T>() > 1, "the lowest bit marks the second round") };
        if word.addr() & 1 == 0 && self.set(word.map_addr(|address| address | 1)) {
            return None;
        }
        NonNull::new(word.map_addr(|address| address & !1).cast())
    }

    fn set(&self, word: *mut c_void) -> bool {
        // SAFETY: the key was created by this handler and is never deleted. The destructor accepts
        // every armed value.
        self.key()
            .is_some_and(|key| unsafe { thread_key::set(key, word) })
    }

    /// Returns the key, created at the first call.
    fn key(&self) -> Option<Key> {
        // Acquire: pairs with the exchange below, so that a thread that sees the number also sees
        // the new key.
        let known = self.key.load(Acquire);
        if known != 0 {
            return Key::try_from(known - MADE).ok();
        }
        // SAFETY: every value set for this key is a state passed to `arm`, with or without its
        // lowest bit set. By the contract of `new`, the destructor passes it to `ends`, which
        // accepts both.
        let made = unsafe { thread_key::create(self.destructor) }?;
        // AcqRel: on success, publishes the key. Acquire: on failure, this thread sees the key that
        // another thread has created in the meantime.
        match self
            .key
            .compare_exchange(0, made as usize + MADE, AcqRel, Acquire)
        {
            Ok(_) => Some(made),
            Err(other) => {
                // SAFETY: no other code knows the superfluous key.
                unsafe { thread_key::delete(made) };
                Key::try_from(other - MADE).ok()
            }
        }
    }
}
