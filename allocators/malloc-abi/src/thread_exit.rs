//! A call when a thread ends.
//!
//! glibc runs the destructors of `pthread_key`s after those of C++ and Rust thread-local variables,
//! in up to four rounds. An allocator's key is among the first that a process makes, so its
//! destructor is among the first that run in a round: those of other keys may still free. The key
//! is therefore armed again once, and the handler runs in the second round. What frees after that
//! must find the allocator's way for threads that have no state of their own.

use core::ffi::c_void;
use core::ptr::NonNull;

use heapdrome_pages::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire},
};
use heapdrome_pages::thread_key::{self, Destructor, Key};

/// The key's number plus this is kept, so that zero can mean that there is none yet.
const MADE: usize = 1;

/// Calls a handler for every armed thread when it ends.
#[derive(Debug)]
pub struct ThreadExit {
    key: AtomicUsize,
    destructor: Destructor,
}

impl ThreadExit {
    /// `destructor` is a function that calls [`ends`](Self::ends) and does what is to be done.
    #[must_use]
    pub const fn new(destructor: Destructor) -> Self {
        Self {
            key: AtomicUsize::new(0),
            destructor,
        }
    }

    /// Arms the calling thread: when it ends, the destructor will be called with `state`.
    ///
    /// This may call `calloc`: the thread's state must be in place before. `false` means that the
    /// process has no key left, or no memory for it, and no call will come.
    pub fn arm<T>(&self, state: NonNull<T>) -> bool {
        self.set(state.as_ptr().cast())
    }

    /// What the destructor does first: the state if the thread really ends now, `None` if the key
    /// has been armed again and the destructor should just return.
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
        // SAFETY: the key was made here and stays; the destructor accepts what is armed.
        self.key()
            .is_some_and(|key| unsafe { thread_key::set(key, word) })
    }

    /// The key, made at the first call.
    fn key(&self) -> Option<Key> {
        // Acquire: pairs with the exchange below; the key exists before its number is seen.
        let known = self.key.load(Acquire);
        if known != 0 {
            return Key::try_from(known - MADE).ok();
        }
        // SAFETY: the destructor accepts what `arm` sets, its lowest bit aside.
        let made = unsafe { thread_key::create(self.destructor) }?;
        // AcqRel: publishes the key, or shows the one of the thread that was faster.
        match self
            .key
            .compare_exchange(0, made as usize + MADE, AcqRel, Acquire)
        {
            Ok(_) => Some(made),
            Err(other) => {
                // SAFETY: nobody else knows the key that was made in vain.
                unsafe { thread_key::delete(made) };
                Key::try_from(other - MADE).ok()
            }
        }
    }
}
