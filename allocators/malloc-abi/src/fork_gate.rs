//! Keeps threads out of an allocator while one of them forks, without making them wait.
//!
//! The child of a fork gets a copy of the allocator's structures, and only one thread. So no thread
//! may be changing them at the moment of the copy. Holding the allocator's locks across the fork
//! would ensure that, but it deadlocks: the C library's `fork` runs its handlers first and then
//! waits for locks of its own, such as that of the list of streams. Their holder may wait for a
//! thread that allocates.
//!
//! Instead, a thread marks in a word, its [`Presence`], that it is on a slow path, and then checks
//! whether the gate is closed. The forking thread closes the gate, and then waits until no thread
//! is on a slow path. Either the thread sees the closed gate, or the forking thread sees the
//! thread: both store first and load afterwards, with a full barrier between. On each slow path
//! that would cost an instruction of 20 cycles. Where the system can, the forking thread instead
//! makes all threads pass a barrier after it has closed the gate. A thread that finds the gate
//! closed does not wait: the [`Fallback`] serves it, and the blocks that it frees are kept until
//! the fork is over. Threads on slow paths wait only for one another, so the forking thread waits
//! only briefly.
//!
//! Functions that only read may run while the gate is closed, even under locks: the child frees all
//! locks.

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

/// Number of times that the forking thread checks a word before it sleeps; in models once, since
/// every check is a step.
const LOOKS: usize = if cfg!(modelled) { 1 } else { 256 };

/// Number of calls on slow paths: nested ones of one thread, or those of all threads that have no
/// state of their own.
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

    /// Creates the presence of any number of threads.
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

    /// Forgets threads that do not exist in the child of a fork.
    pub fn reset(&self) {
        // Relaxed: there is no other thread.
        self.count.store(0, Relaxed);
    }

    /// Waits until the thread is on no slow path. It sleeps for a millisecond at a time, so that a
    /// thread that leaves need not check for waiters.
    fn wait(&self) {
        let mut looks = 0;
        loop {
            // SeqCst: follows the store that closed the gate, as the load in `enter` follows that
            // of the presence. Acquire: pairs with the release in `Inside::drop`, so that the slow
            // path's effects are seen.
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

/// A call deferred until the gate opens.
#[derive(Debug)]
struct Deferred {
    next: *mut Deferred,
    run: unsafe fn(NonNull<u8>),
    subject: NonNull<u8>,
}

/// Gate of one allocator.
#[derive(Debug)]
#[repr(align(64))]
pub struct ForkGate {
    /// The thread that forks, by its [`thread_pointer`]; zero while the gate is open.
    forking: AtomicUsize,
    /// Whether a thread that forks makes all others pass a barrier.
    has_barrier: AtomicBool,
    /// All other state has a cache line of its own: every slow path reads the words above.
    rest: Rest,
}

#[derive(Debug)]
#[repr(align(64))]
struct Rest {
    /// Held by the thread that forks.
    turn: Lock<()>,
    /// Number of nested forks in progress, which handlers of the thread's fork started.
    nested: AtomicUsize,
    /// Calls deferred until the gate opens.
    deferred: AtomicPtr<Deferred>,
    fallback: Fallback,
    /// Whether handlers were registered with the C library.
    registered: AtomicBool,
}

/// Proof that the calling thread may change the allocator's structures, until it is dropped.
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

    /// Registers the barrier of all threads. Returns true for the first caller.
    pub fn is_first_to_register(&self) -> bool {
        let registered = &self.rest.registered;
        // Relaxed: later callers need nothing from the first. A fork before the registration is
        // unprotected.
        let first = !registered.load(Relaxed) && !registered.swap(true, Relaxed);
        if first {
            // SeqCst: a thread that relies on the barrier checks the gate later, and a thread that
            // closed the gate without a barrier checked this flag before.
            self.has_barrier.store(register_barrier(), SeqCst);
        }
        first
    }

    /// Returns the fallback, which serves blocks while the gate is closed.
    #[inline]
    pub const fn fallback(&self) -> &Fallback {
        &self.rest.fallback
    }

    /// Frees a block that the fallback allocated.
    pub fn free_fallback(&self, pages: &impl Pages, address: usize) -> Freed {
        // Relaxed: a hint.
        let forking = self.forking.load(Relaxed) != 0;
        self.rest.fallback.free(pages, address, forking)
    }

    /// Begins a slow path; returns `None` while another thread forks. `presence` is the calling
    /// thread's, or one that it shares.
    #[inline]
    pub fn enter<'a>(&'a self, presence: &'a Presence) -> Option<Inside<'a>> {
        let count = &presence.count;
        if presence.is_shared {
            // Refused threads must not keep the forking thread waiting. Relaxed: checked again
            // below.
            let forking = self.forking.load(Relaxed);
            if forking != 0 && forking != thread_pointer() {
                return None;
            }
            count.fetch_add(1, SeqCst);
            fence_in_models();
        } else {
            // Relaxed: only this thread changes it.
            let nested = count.load(Relaxed);
            if nested != 0 {
                count.store(nested + 1, Relaxed);
                return Some(Inside(presence));
            }
            if self.has_barrier.load(SeqCst) {
                count.store(1, Relaxed);
                // The barrier by the thread that forks orders the two accesses in the processor.
                compiler_fence(SeqCst);
            } else {
                // An exchange, since a fence takes twice as long.
                count.swap(1, SeqCst);
                fence_in_models();
            }
        }
        let inside = Inside(presence);
        // SeqCst: follows the store of the presence (see the module), and the store in `open` for a
        // thread that comes after a fork.
        let forking = self.forking.load(SeqCst);
        (forking == 0 || forking == thread_pointer()).then_some(inside)
    }

    /// Closes the gate and waits until no other thread is on a slow path. The caller itself may be
    /// on one, if a signal handler forks; `own` is its presence. `each` visits all presences, those
    /// that threads share first, since a thread with a shared one may be about to get its own. A
    /// caller on a slow path with a shared presence waits for ever.
    pub fn close(&self, own: &Presence, each: impl FnOnce(&mut dyn FnMut(&Presence))) {
        let thread = thread_pointer();
        // Relaxed: only this thread stores its number, and changes the count meanwhile.
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
            // A filter of system calls was installed since. A processor completes a store long
            // before a nap ends.
            nap(&AtomicU32::new(0), 0, 1);
        }
        each(&mut |presence| {
            if presence.is_shared || !core::ptr::eq(own, presence) {
                presence.wait();
            }
        });
    }

    /// Opens the gate in the parent, after the fork, and runs the deferred calls.
    ///
    /// # Safety
    ///
    /// The calling thread closed the gate.
    pub unsafe fn open(&self, own: &Presence, pages: &impl Pages) {
        // Relaxed: only this thread stores its own number. If a handler of another fork forked, the
        // gate is already open in the child of that fork.
        if self.forking.load(Relaxed) != thread_pointer() {
            return;
        }
        let nested = self.rest.nested.load(Relaxed);
        if nested != 0 {
            self.rest.nested.store(nested - 1, Relaxed);
            return;
        }
        // Runs while the gate is closed for all others: forks in quick succession leave no other
        // time.
        self.run_deferred(own, pages);
        self.rest.fallback.purge(pages);
        // SeqCst: a thread that defers a call checks the gate afterwards, as this thread checks the
        // deferred calls afterwards.
        self.forking.store(0, SeqCst);
        fence_in_models();
        // SAFETY: this thread closed the gate, so it holds the lock; no guard is alive.
        unsafe { self.rest.turn.release_after_fork() };
        self.run_deferred(own, pages);
    }

    /// Opens the gate in the child, where `each` visits the presences of all threads of the parent.
    /// The allocator's locks must be free.
    ///
    /// # Safety
    ///
    /// The calling thread is the copy of the one that closed the gate.
    pub unsafe fn open_in_child(
        &self,
        own: &Presence,
        pages: &impl Pages,
        each: impl FnOnce(&mut dyn FnMut(&Presence)),
    ) {
        each(&mut |presence| {
            // A signal handler that forks returns to the slow path that it interrupted.
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
        // SAFETY: the original of this thread holds the lock for the fork; no guard is alive.
        unsafe { self.rest.turn.release_after_fork() };
        self.run_deferred(own, pages);
    }

    /// Calls `run` with `subject` when no thread forks: now, or in the thread that forks. Without
    /// memory to record the call, it is dropped.
    ///
    /// # Safety
    ///
    /// `run` may be called once with `subject`, by any thread inside.
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
            // SAFETY: the memory is this thread's until the exchange.
            unsafe { place.write(Deferred { next, run, subject }) };
            // SeqCst: precedes the check of the gate below. Release: pairs with the swap in
            // `run_deferred`.
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
        // If the forking thread has checked before, it has also opened the gate before.
        if self.forking.load(SeqCst) == 0 {
            self.run_deferred(own, pages);
        }
    }

    /// Runs the deferred calls, unless another thread forks, which will run them.
    fn run_deferred(&self, own: &Presence, pages: &impl Pages) {
        // SeqCst: follows the store that opened the gate.
        if self.rest.deferred.load(SeqCst).is_null() {
            return;
        }
        let Some(_inside) = self.enter(own) else {
            return;
        };
        // AcqRel: pairs with the release in `defer`, so that each record is seen.
        let mut next = self.rest.deferred.swap(null_mut(), AcqRel);
        while let Some(place) = NonNull::new(next) {
            // SAFETY: the swap made the list this thread's, which is inside; the memory came from
            // the fallback.
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

/// Adds a fence in models: loom orders sequentially consistent fences, but no single accesses.
#[inline]
fn fence_in_models() {
    if cfg!(modelled) {
        fence(SeqCst);
    }
}

#[cfg(test)]
#[path = "fork_gate/tests.rs"]
mod tests;
