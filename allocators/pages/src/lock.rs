//! A lock for allocators: one word, no allocation, and it survives a fork.
//!
//! Around a fork every lock is held, so that the child finds no structure half changed. Handlers of
//! other libraries run in between and may allocate, in whatever order they were registered: the
//! forking thread therefore passes through locks that it holds for the fork.

use crate::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

#[cfg(modelled)]
use crate::atomic::note_use;
use crate::futex::{wait, wake_one};
use crate::system::thread_pointer;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody may sleep on it.
const AWAITED: u32 = 2;

/// How often a thread looks again before it sleeps; in models once, since every look is a step.
const LOOKS: usize = if cfg!(modelled) { 1 } else { 64 };

/// The thread that forks and holds every lock, or zero.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// Says that the calling thread holds all locks for a fork.
pub fn fork_begins() {
    // Relaxed: only this thread compares the value with its own.
    FORKING.store(thread_pointer(), Relaxed);
}

/// Says that the calling thread, in the parent or in the child, is about to let go of those locks.
pub fn fork_ended() {
    // Relaxed: as above.
    FORKING.store(0, Relaxed);
}

/// A value that one thread at a time may use.
#[derive(Debug)]
pub struct Lock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time use the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until the lock is free, and takes it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire: pairs with the release in `unlock`, so that the last holder's changes are seen.
        let taken = self
            .state
            .compare_exchange(FREE, HELD, Acquire, Relaxed)
            .is_ok();
        // A guard that is made in vain would let go of another thread's lock when it is dropped.
        taken.then(|| self.guard(true))
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self) -> Guard<'_, T> {
        if FORKING.load(Relaxed) == thread_pointer() {
            return self.guard(false);
        }
        self.acquire_slowly();
        self.guard(true)
    }

    #[inline]
    fn guard(&self, owned: bool) -> Guard<'_, T> {
        #[cfg(modelled)]
        note_use(&self.state);
        Guard { lock: self, owned }
    }

    fn acquire_slowly(&self) {
        for _ in 0..LOOKS {
            if self.state.load(Relaxed) == FREE
                // Acquire: as in `try_lock`.
                && self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
            {
                return;
            }
            core::hint::spin_loop();
        }
        // Acquire: as in `try_lock`.
        while self.state.swap(AWAITED, Acquire) != FREE {
            wait(&self.state, AWAITED, None);
        }
    }

    #[inline]
    fn unlock(&self) {
        // Release: pairs with the acquire of the next holder.
        if self.state.swap(FREE, Release) == AWAITED {
            wake_one(&self.state);
        }
    }

    /// Takes the lock and keeps it over a fork. Between [`fork_begins`] and [`fork_ended`] the
    /// calling thread may still `lock` it.
    pub fn hold_for_fork(&self) {
        if self
            .state
            .compare_exchange(FREE, HELD, Acquire, Relaxed)
            .is_err()
        {
            self.acquire_slowly();
        }
    }

    /// Lets go of a lock held by [`hold_for_fork`](Self::hold_for_fork), in the parent or in the
    /// child. Waiters of the parent do not exist in the child: waking nobody is harmless.
    ///
    /// # Safety
    ///
    /// The calling thread, or in a child the thread that it is a copy of, holds the lock for a fork,
    /// and no guard of it is alive.
    pub unsafe fn release_after_fork(&self) {
        self.unlock();
    }

    /// The value, without the lock.
    pub fn as_ptr(&self) -> *mut T {
        #[cfg(modelled)]
        note_use(&self.state);
        self.value.get()
    }
}

/// The right to use the value of a [`Lock`].
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// False where the forking thread passed through a lock that it holds anyway.
    owned: bool,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard's thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard's thread holds the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.owned {
            self.lock.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_attempt_leaves_the_lock_with_its_holder() {
        let lock = Lock::new(());
        let guard = lock.try_lock();
        assert!(guard.is_some());
        assert!(lock.try_lock().is_none());
        assert!(
            lock.try_lock().is_none(),
            "the first refusal let go of the lock"
        );
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
}
