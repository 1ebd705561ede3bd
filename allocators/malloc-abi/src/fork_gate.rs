//! Fork gate: keeps threads out of an allocator while one of them forks, without making them wait.
//!
//! The child of a fork gets a copy of the allocator's structures, and only one thread. So no thread
//! may be changing the structures when they are copied. Holding the allocator's locks across the
//! fork would ensure that, but can deadlock: the C library's `fork` runs its handlers first and
//! then waits for its own locks, such as that of the list of streams. The holder of such a lock may
//! be waiting for a thread that allocates.
//!
//! Instead, a thread marks in a word, its [`Presence`], that it is on a slow path, and then checks
//! whether the gate is closed. The forking thread closes the gate, and then waits until no thread
//! is on a slow path. Either the thread sees the closed gate, or the forking thread sees the
//! thread's mark: both first store and then load, with a full barrier in between. That barrier
//! would cost each slow path an instruction of 20 cycles. If the system supports it, the forking
//! thread instead makes all threads pass a barrier after it has closed the gate. A thread that
//! finds the gate closed does not wait: it allocates from the [`Fallback`], and its frees are
//! deferred until the fork is over. Threads on slow paths wait only for one another, so the forking
//! thread waits only briefly.
//!
//! Functions that only read may run while the gate is closed, and may hold locks, because the child
//! frees all locks.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::compiler_fence;
use heapdrome_pages::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Relaxed, Release, SeqCst},
    fence,
};
use heapdrome_pages::system::{barrier_in_all_threads, register_barrier, thread_pointer};
use heapdrome_pages::{Lock, Pages, nap};

use crate::fallback::{Fallback, Freed};

/// Number of times that the forking thread checks a presence before it sleeps. Models check once,
/// because every check is a step.
const LOOKS: usize = if cfg!(modelled) { 1 } else { 256 };

/// Number of slow paths in progress: nested slow paths of one thread, or the slow paths of all
/// threads that share the presence.
#[derive(Debug)]
pub struct Presence {
    count: AtomicU32,
    is_shared: bool,
}

impl Presence {
    /// Creates the presence of one thread, which is on no slow path.
    #[must_use]
    pub const fn of_one() -> Self {
        Self {
            count: AtomicU32::new(0),
            is_shared: false,
        }
    }

    /// Creates a presence that any number of threads may share.
    #[must_use]
    pub const fn of_many() -> Self {
        Self {
            count: AtomicU32::new(0),
            is_shared: true,
        }
    }

    /// Returns whether threads share this presence.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Resets the count in the child of a fork. The threads whose slow paths were counted do not
    /// exist in the child.
    pub fn reset(&self) {
        // Relaxed: there is no other thread.
        self.count.store(0, Relaxed);
    }

    /// Waits until no slow path is in progress. Sleeps for a millisecond at a time, so that a
    /// thread that leaves a slow path need not check for waiters.
    fn wait(&self) {
        let mut looks = 0;
        loop {
            // SeqCst: orders this load after the store that closed the gate, as the module's header
            // explains. It is also an acquire, which pairs with the release in `Inside::drop`, so
            // that this thread sees the slow path's effects.
            let count = self.count.load(SeqCst);
            if count == 0 {
                return;
            }
            looks += 1;
            if looks < LOOKS {
                core::hint::spin_loop();
            } else {
                nap(&self.count, count, 1);
            }
        }
    }
}

/// Call that is deferred until the gate opens.
#[derive(Debug)]
struct Deferred {
    next: *mut Deferred,
    run: unsafe fn(NonNull<u8>),
    subject: NonNull<u8>,
}

/// Fork gate of one allocator, or of several that share their structures.
#[derive(Debug)]
#[repr(align(64))]
pub struct ForkGate {
    /// [`thread_pointer`] of the forking thread; zero while the gate is open.
    forking: AtomicUsize,
    /// Whether the forking thread makes all others pass a barrier.
    has_barrier: AtomicBool,
    /// All other state, on a separate cache line, because every slow path reads the fields above.
    rest: Rest,
}

#[derive(Debug)]
#[repr(align(64))]
struct Rest {
    /// Held by the forking thread.
    turn: Lock<()>,
    /// Number of nested forks in progress, which fork handlers of the forking thread have started.
    nested: AtomicUsize,
    /// Calls deferred until the gate opens.
    deferred: AtomicPtr<Deferred>,
    fallback: Fallback,
    /// Whether a thread has begun to register the fork handlers.
    registered: AtomicBool,
}

/// Proof that the calling thread is on a slow path, and may change the allocator's structures until
/// this value is dropped.
#[derive(Debug)]
pub struct Inside<'a>(&'a Presence);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        let count = &self.0.count;
        // Release: pairs with the load in `Presence::wait`.
        if self.0.is_shared {
            count.fetch_sub(1, Release);
        } else {
            count.store(count.load(Relaxed) - 1, Release);
        }
    }
}

impl ForkGate {
    /// Creates an open gate.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            forking: AtomicUsize::new(0),
            has_barrier: AtomicBool::new(false),
            rest: Rest {
                turn: Lock::new(()),
                nested: AtomicUsize::new(0),
                deferred: AtomicPtr::new(null_mut()),
                fallback: Fallback::new(),
                registered: AtomicBool::new(false),
            },
        }
    }

    /// Returns true for the first caller, after registering the process for barriers in all
    /// threads.
    pub fn is_first_to_register(&self) -> bool {
        let registered = &self.rest.registered;
        // Relaxed: later callers do not depend on the first caller's effects. A fork before the
        // registration is not protected.
        let first = !registered.load(Relaxed) && !registered.swap(true, Relaxed);
        if first {
            // SeqCst: a thread that sees this flag checks the gate afterwards, and a forking thread
            // that did not see the flag closed the gate before. So the first thread finds the gate
            // closed.
            self.has_barrier.store(register_barrier(), SeqCst);
        }
        first
    }

    /// Returns the fallback, which allocates blocks while the gate is closed.
    #[inline]
    pub const fn fallback(&self) -> &Fallback {
        &self.rest.fallback
    }

    /// Frees the block at `address`, if the fallback allocated it.
    #[cold]
    pub fn free_fallback(&self, pages: &impl Pages, address: usize) -> Freed {
        // Relaxed: only decides whether an empty chunk is purged now or later.
        let forking = self.forking.load(Relaxed) != 0;
        self.rest.fallback.free(pages, address, forking)
    }

    /// Begins a slow path; returns `None` while another thread forks. If the thread has its own
    /// presence, a slow path that is nested in another one begins even then. `presence` is the
    /// calling thread's own or shared presence.
    #[inline]
    pub fn enter<'a>(&'a self, presence: &'a Presence) -> Option<Inside<'a>> {
        let count = &presence.count;
        if presence.is_shared {
            // Check the gate before raising a shared count: the forking thread waits until that
            // count is zero, and threads that cannot enter must not prolong the wait. Relaxed:
            // checked again below.
            let forking = self.forking.load(Relaxed);
            if forking != 0 && forking != thread_pointer() {
                return None;
            }
            count.fetch_add(1, SeqCst);
            fence_in_models();
        } else {
            // Relaxed: only this thread changes its own count.
            let nested = count.load(Relaxed);
            if nested != 0 {
                count.store(nested + 1, Relaxed);
                return Some(Inside(presence));
            }
            if self.has_barrier.load(SeqCst) {
                count.store(1, Relaxed);
                // The forking thread's barrier orders the two accesses in the processor.
                compiler_fence(SeqCst);
            } else {
                // Use an atomic exchange, because a store and a fence take twice as long.
                count.swap(1, SeqCst);
                fence_in_models();
            }
        }
        let inside = Inside(presence);
        // SeqCst: orders this load after the read-modify-write of the presence; after a plain
        // store, the forking thread's barrier does. If the fork is over, pairs with the store in
        // `open`.
        let forking = self.forking.load(SeqCst);
        (forking == 0 || forking == thread_pointer()).then_some(inside)
    }

    /// Closes the gate and waits until no other thread is on a slow path. If the caller has already
    /// closed the gate, only counts the nested fork. The caller itself may be on a slow path, if a
    /// signal handler forks; `own` is its presence. `each` visits all presences, with shared ones
    /// first, because a thread with a shared presence may be about to get its own. A caller that is
    /// on a slow path with a shared presence deadlocks.
    #[cold]
    pub fn close(&self, own: &Presence, each: impl FnOnce(&mut dyn FnMut(&Presence))) {
        let thread = thread_pointer();
        // Relaxed: only this thread stores its own number, and only the forking thread changes
        // `nested`.
        if self.forking.load(Relaxed) == thread {
            self.rest
                .nested
                .store(self.rest.nested.load(Relaxed) + 1, Relaxed);
            return;
        }
        self.rest.turn.hold_for_fork();
        self.forking.store(thread, SeqCst);
        fence_in_models();
        if self.has_barrier.load(SeqCst) && !barrier_in_all_threads() {
            // The barrier was registered, but a seccomp filter installed since then forbids it.
            // Sleep instead: processors complete their stores long before a nap ends.
            nap(&AtomicU32::new(0), 0, 1);
        }
        each(&mut |presence| {
            if presence.is_shared || !core::ptr::eq(own, presence) {
                presence.wait();
            }
        });
    }

    /// Opens the gate in the parent, after the fork, and runs the deferred calls. After a nested
    /// fork, only counts down.
    ///
    /// # Safety
    ///
    /// The calling thread closed the gate, or it is, in a child, the copy of the thread that did.
    #[cold]
    pub unsafe fn open(&self, own: &Presence, pages: &impl Pages) {
        // Relaxed: only this thread stores its own number. If the number differs, this process is
        // the child of a fork that a fork handler made, and its gate is already open.
        if self.forking.load(Relaxed) != thread_pointer() {
            return;
        }
        let nested = self.rest.nested.load(Relaxed);
        if nested != 0 {
            self.rest.nested.store(nested - 1, Relaxed);
            return;
        }
        // Run the deferred calls before the gate opens, because with forks in quick succession it
        // may never stay open.
        self.run_deferred(own, pages);
        self.rest.fallback.purge(pages);
        // SeqCst: a thread that defers a call then checks the gate, and this thread checks for
        // deferred calls after this store. So at least one of them sees the other's store.
        self.forking.store(0, SeqCst);
        fence_in_models();
        // SAFETY: this thread closed the gate, so it holds the lock, and no guard is alive.
        unsafe { self.rest.turn.release_after_fork() };
        self.run_deferred(own, pages);
    }

    /// Opens the gate in the child of a fork. `each` visits the presences of all threads of the
    /// parent. The allocator's locks must be free.
    ///
    /// # Safety
    ///
    /// The calling thread is the copy of the thread that closed the gate.
    #[cold]
    pub unsafe fn open_in_child(
        &self,
        own: &Presence,
        pages: &impl Pages,
        each: impl FnOnce(&mut dyn FnMut(&Presence)),
    ) {
        each(&mut |presence| {
            // Keep the own presence: if a signal handler forked, the thread returns to the slow
            // path that it interrupted.
            if presence.is_shared || !core::ptr::eq(own, presence) {
                presence.reset();
            }
        });
        self.rest.fallback.restore_in_child();
        // Relaxed: there is no other thread.
        if self.has_barrier.load(Relaxed) {
            self.has_barrier.store(register_barrier(), Relaxed);
        }
        // Relaxed: there is no other thread.
        self.rest.nested.store(0, Relaxed);
        self.forking.store(0, Relaxed);
        // SAFETY: this thread is the copy of the thread that holds the lock for the fork, and no
        // guard is alive.
        unsafe { self.rest.turn.release_after_fork() };
        self.run_deferred(own, pages);
    }

    /// Calls `run` with `subject` once no other thread forks: now, or later in another thread. If
    /// out of memory for the record, the call is lost. `own` is the calling thread's own or shared
    /// presence.
    ///
    /// # Safety
    ///
    /// Any thread that holds an [`Inside`] may call `run` once with `subject`.
    #[cold]
    pub unsafe fn defer(
        &self,
        own: &Presence,
        pages: &impl Pages,
        run: unsafe fn(NonNull<u8>),
        subject: NonNull<u8>,
    ) {
        let size = size_of::<Deferred>();
        let Some(place) = self
            .rest
            .fallback
            .allocate(pages, size, align_of::<Deferred>())
        else {
            return;
        };
        let place = place.cast::<Deferred>();
        let mut next = self.rest.deferred.load(Relaxed);
        loop {
            // SAFETY: the memory has the size and alignment of a record, and belongs to this thread
            // until the exchange.
            unsafe { place.write(Deferred { next, run, subject }) };
            // SeqCst: precedes the check of the gate below. It is also a release, which pairs with
            // the swap in `run_deferred`.
            match self
                .rest
                .deferred
                .compare_exchange(next, place.as_ptr(), SeqCst, Relaxed)
            {
                Ok(_) => break,
                Err(other) => next = other,
            }
        }
        fence_in_models();
        // If the forking thread last checked for deferred calls before this call was added, it had
        // already opened the gate. This thread must then run the call.
        if self.forking.load(SeqCst) == 0 {
            self.run_deferred(own, pages);
        }
    }

    /// Runs the deferred calls. If another thread forks, leaves them to that thread.
    #[cold]
    fn run_deferred(&self, own: &Presence, pages: &impl Pages) {
        // SeqCst: after `open` has opened the gate, this load follows that store, and `defer` adds
        // its call before it checks the gate. So one of the two threads sees the other's store. The
        // other callers need no ordering here.
        if self.rest.deferred.load(SeqCst).is_null() {
            return;
        }
        let Some(_inside) = self.enter(own) else {
            return;
        };
        // AcqRel: the acquire pairs with the release in `defer`, so that this thread sees each
        // record.
        let mut next = self.rest.deferred.swap(null_mut(), AcqRel);
        while let Some(place) = NonNull::new(next) {
            // SAFETY: since the swap, the list belongs to this thread, which is inside the gate and
            // so may run each call once. The fallback allocated the memory.
            unsafe {
                let deferred = place.read();
                next = deferred.next;
                self.free_fallback(pages, place.addr().get());
                (deferred.run)(deferred.subject);
            }
        }
    }
}

impl Default for ForkGate {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds a fence in models, because loom orders only SeqCst fences, not SeqCst accesses.
#[inline]
fn fence_in_models() {
    if cfg!(modelled) {
        fence(SeqCst);
    }
}

#[cfg(test)]
#[path = "fork_gate/tests.rs"]
mod tests;
