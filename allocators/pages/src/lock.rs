//! Lock for allocators: it allocates nothing, and can be held across a fork.
//!
//! While a lock is held for a fork, the forking thread may still take it with [`Lock::lock`],
//! because other libraries' fork handlers run in that thread and may allocate. Each lock records
//! separately whether it is held for a fork, because a process may have several allocators, each
//! with its own handlers.

use crate::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

#[cfg(modelled)]
use crate::atomic::note_use;
use crate::futex::{wait, wake_one};
use crate::system::thread_pointer;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// State of a lock that is held, and for which another thread may be sleeping.
const AWAITED: u32 = 2;

/// Number of times that a thread spins on a held lock before it may sleep. Models spin once,
/// because every check of the lock is a step.
const LOOKS: usize = if cfg!(modelled) { 1 } else { 64 };

/// Lock around a value, which only one thread at a time may use.
#[derive(Debug)]
pub struct Lock<T> {
    state: AtomicU32,
    /// [`thread_pointer`] of the thread that holds the lock for a fork and has no guard; zero
    /// otherwise.
    forking: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: at most one guard is alive at a time, and threads can share a guard only if `T` is
// `Sync`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// Creates a free lock.
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            forking: AtomicUsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until the lock is free, and takes it. In the thread that holds the lock for a fork,
    /// returns a guard immediately.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    /// Takes the lock if it is free. Otherwise returns `None`, even in the thread that holds it for
    /// a fork.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire: pairs with the release in `unlock`, so that this thread sees the last holder's
        // changes.
        let taken = self
            .state
            .compare_exchange(FREE, HELD, Acquire, Relaxed)
            .is_ok();
        // Create no guard on failure: dropping it would release the other thread's lock.
        taken.then(|| self.guard(0))
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self) -> Guard<'_, T> {
        let thread = thread_pointer();
        // A thread finds its own number only if it holds the lock for a fork itself. Acquire: pairs
        // with the release in `Guard::drop`, because another thread may have dropped the last
        // guard.
        if self.forking.load(Acquire) == thread {
            // Relaxed: every other thread compares this word only with its own number, which is
            // never zero.
            self.forking.store(0, Relaxed);
            return self.guard(thread);
        }
        self.acquire_slowly();
        self.guard(0)
    }

    #[inline]
    fn guard(&self, forking: usize) -> Guard<'_, T> {
        #[cfg(modelled)]
        note_use(&self.state);
        Guard {
            lock: self,
            forking,
            value: PhantomData,
        }
    }

    fn acquire_slowly(&self) {
        for _ in 0..LOOKS {
            if self.state.load(Relaxed) == FREE
                // Acquire: pairs with the release in `unlock`.
                && self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
            {
                return;
            }
            core::hint::spin_loop();
        }
        // Acquire: pairs with the release in `unlock`.
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

    /// Takes the lock and keeps it across a fork. The calling thread may still call `lock`, with
    /// one guard at a time; all other threads wait.
    pub fn hold_for_fork(&self) {
        if self
            .state
            .compare_exchange(FREE, HELD, Acquire, Relaxed)
            .is_err()
        {
            self.acquire_slowly();
        }
        // Relaxed: every other thread compares this word only with its own number, which differs
        // from this thread's.
        self.forking.store(thread_pointer(), Relaxed);
    }

    /// Releases a lock that [`hold_for_fork`](Self::hold_for_fork) took, in the parent or in the
    /// child. The child has no waiters, and a wakeup without waiters is harmless.
    ///
    /// # Safety
    ///
    /// The calling thread holds the lock for a fork, or it is, in the child, the copy of the thread
    /// that held it. No guard of the lock is alive.
    pub unsafe fn release_after_fork(&self) {
        // Relaxed: every other thread compares this word only with its own number, which is never
        // zero.
        self.forking.store(0, Relaxed);
        self.unlock();
    }

    /// Unlocks the lock in the child of a fork, because a thread of the parent may have held it.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one and has no guard of the lock. No thread of the parent was
    /// changing the value.
    pub unsafe fn free_in_child(&self) {
        // Relaxed: there is no other thread.
        self.forking.store(0, Relaxed);
        self.state.store(FREE, Relaxed);
    }

    /// Returns a pointer to the value, without taking the lock.
    pub fn as_ptr(&self) -> *mut T {
        #[cfg(modelled)]
        note_use(&self.state);
        self.value.get()
    }
}

/// Access to the value of a [`Lock`] until the guard is dropped. Like a `&mut T`, a guard may be
/// shared with other threads only if the value may:
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// let lock = heapdrome_pages::Lock::new(AtomicU32::new(1));
/// let guard = lock.lock();
/// std::thread::scope(|scope| scope.spawn(|| guard.store(2, Relaxed)).join().is_ok());
/// ```
///
/// ```compile_fail
/// let lock = heapdrome_pages::Lock::new(std::cell::Cell::new(1));
/// let guard = lock.lock();
/// std::thread::scope(|scope| scope.spawn(|| guard.set(2)).join().is_ok());
/// ```
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// [`thread_pointer`] of the thread that took this guard if it also holds the lock for a fork;
    /// zero otherwise.
    forking: usize,
    value: PhantomData<&'a mut T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while this guard is alive, it is the only guard of the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: while this guard is alive, it is the only guard of the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.forking == 0 {
            self.lock.unlock();
        } else {
            // Release: pairs with the acquire in `lock_contended`, so that the forking thread sees
            // the changes of a guard that another thread drops.
            self.lock.forking.store(self.forking, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    /// Waits until another thread has marked the lock as awaited, as it does before it sleeps, or
    /// until `passed` is set.
    fn until_awaited<T>(lock: &Lock<T>, passed: &AtomicBool) {
        while lock.state.load(Relaxed) != AWAITED && !passed.load(SeqCst) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_forking_thread_passes_and_others_wait() {
        let lock = Lock::new(1);
        let entered = AtomicBool::new(false);
        lock.hold_for_fork();
        assert!(lock.try_lock().is_none());
        *lock.lock() += 1;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                *lock.lock() += 1;
                entered.store(true, SeqCst);
            });
            until_awaited(&lock, &entered);
            assert!(!entered.load(SeqCst));
            // SAFETY: this thread took the lock for a fork above, and no guard is alive.
            unsafe { lock.release_after_fork() };
        });
        assert_eq!(*lock.lock(), 3);
    }

    // This happens if two allocators of one process have fork handlers, and an allocation runs
    // between these handlers.
    #[test]
    fn the_forking_thread_waits_for_a_lock_that_another_holds() {
        let (held, other) = (Lock::new(()), Lock::new(1));
        let (taken, passed) = (AtomicBool::new(false), AtomicBool::new(false));
        held.hold_for_fork();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut value = other.lock();
                taken.store(true, SeqCst);
                until_awaited(&other, &passed);
                *value = 2;
            });
            while !taken.load(SeqCst) {
                std::thread::yield_now();
            }
            let found = *other.lock();
            passed.store(true, SeqCst);
            assert_eq!(found, 2);
        });
        // SAFETY: this thread took the lock for a fork above, and no guard is alive.
        unsafe { held.release_after_fork() };
    }

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

    #[test]
    fn the_forking_thread_has_one_guard_at_a_time() {
        let lock = Lock::new(());
        lock.hold_for_fork();
        for _ in 0..2 {
            let guard = lock.lock();
            assert_eq!(lock.forking.load(Relaxed), 0, "another lock() would pass");
            drop(guard);
            assert_eq!(lock.forking.load(Relaxed), thread_pointer());
        }
        // SAFETY: this thread took the lock for a fork above, and no guard is alive.
        unsafe { lock.release_after_fork() };
        assert_eq!(lock.forking.load(Relaxed), 0);
        assert!(lock.try_lock().is_some());
    }
}
