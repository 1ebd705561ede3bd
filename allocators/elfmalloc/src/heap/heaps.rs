//! The lists of thread heaps.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::Ordering::{Relaxed, Release};

use crate::heap::front::ThreadHeap;

/// All thread heaps; a lock guards the lists.
#[derive(Debug)]
pub struct Heaps {
    all: *mut ThreadHeap,
    idle: *mut ThreadHeap,
    /// Heaps that may have guests.
    hosts: *mut ThreadHeap,
    host_count: usize,
}

// SAFETY: heaps may be listed by any thread under the lock.
unsafe impl Send for Heaps {}

impl Heaps {
    /// No heaps.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            all: null_mut(),
            idle: null_mut(),
            hosts: null_mut(),
            host_count: 0,
        }
    }

    /// Adds a new heap.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, lives for ever, and is in no list.
    pub unsafe fn add(&mut self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the caller's promise.
        unsafe { (*heap.as_ptr()).next = self.all };
        self.all = heap.as_ptr();
    }

    /// Gives a thread that begins a host: its own heap if that may be one and is nobody's, else the one with the fewest
    /// guests. There are at most `hosts`, which are at least one. True where the host had no guest: its bins count as idle.
    ///
    /// # Safety
    ///
    /// The heap is in the list, and the calling thread's.
    pub unsafe fn enter(&mut self, heap: NonNull<ThreadHeap>, hosts: usize) -> bool {
        // SAFETY: heaps live for ever, and their links are written under the lock. Relaxed: the lock orders the counts.
        unsafe {
            let own = heap.as_ptr();
            if self.host_count < hosts && !(*own).is_host.swap(true, Relaxed) {
                (*own).next_host = self.hosts;
                self.hosts = own;
                self.host_count += 1;
            }
            let is_free = (*own).is_host.load(Relaxed) && guests_of(own) == 0;
            let host = if is_free { own } else { self.emptiest() };
            // Release: pairs with the acquire of `ThreadHeap::host_of`.
            (*own).host.store(host, Release);
            (*host).guests.fetch_add(1, Relaxed) == 0
        }
    }

    /// How many hosts there are.
    #[must_use]
    pub const fn host_count(&self) -> usize {
        self.host_count
    }

    /// The host with the fewest guests, the oldest of them: the first thread of a process waits for others, as a rule.
    fn emptiest(&self) -> *mut ThreadHeap {
        let mut best = self.hosts;
        for host in self.hosts().map(NonNull::as_ptr) {
            if guests_of(best) == 0 {
                break;
            }
            if guests_of(host) <= guests_of(best) {
                best = host;
            }
        }
        best
    }

    /// Whether the thread of `heap` would have fewer neighbours elsewhere.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and has entered.
    #[must_use]
    pub unsafe fn has_emptier_host(&self, heap: NonNull<ThreadHeap>) -> bool {
        // SAFETY: the caller's promise.
        let host = unsafe { ThreadHeap::host_of(heap) };
        guests_of(host.as_ptr()) > guests_of(self.emptiest()) + 1
    }

    /// Takes a thread that ends from its host. True where it was the last: the bins count as idle then.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and has entered.
    pub unsafe fn leave(&mut self, heap: NonNull<ThreadHeap>) -> bool {
        // SAFETY: heaps live for ever. Relaxed: as above.
        unsafe {
            (*(*heap.as_ptr()).host.load(Relaxed))
                .guests
                .fetch_sub(1, Relaxed)
                == 1
        }
    }

    /// In the child of a fork: no host has a guest but that of `own`.
    pub(crate) fn forget_guests(&mut self, own: Option<NonNull<ThreadHeap>>) {
        for host in self.hosts() {
            // SAFETY: heaps live for ever. Relaxed: as above.
            unsafe { (*host.as_ptr()).guests.store(0, Relaxed) };
        }
        if let Some(own) = own {
            // SAFETY: as above; the heap has entered before.
            unsafe {
                (*(*own.as_ptr()).host.load(Relaxed))
                    .guests
                    .store(1, Relaxed)
            };
        }
    }

    /// Says which heaps have no thread: those from `first` on that are linked by their `next_idle`.
    pub(crate) const fn set_idle(&mut self, first: *mut ThreadHeap) {
        self.idle = first;
    }

    /// Takes a heap that no thread has.
    pub fn take_idle(&mut self) -> Option<NonNull<ThreadHeap>> {
        let heap = NonNull::new(self.idle)?;
        // SAFETY: idle heaps belong to the list.
        self.idle = unsafe { (*heap.as_ptr()).next_idle };
        Some(heap)
    }

    /// Adds a heap that its thread uses no more.
    ///
    /// # Safety
    ///
    /// The heap is in the list of all, in no other, and nobody's.
    pub unsafe fn put_idle(&mut self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the heap belongs to the list from now on.
        unsafe { (*heap.as_ptr()).next_idle = self.idle };
        self.idle = heap.as_ptr();
    }

    /// All heaps. The answer stays right without the lock, but for heaps that are made later.
    #[must_use]
    pub const fn all(&self) -> AllHeaps {
        AllHeaps(self.all)
    }

    /// All hosts. The same holds for them: a heap that has become one stays one.
    #[must_use]
    pub const fn hosts(&self) -> Hosts {
        Hosts(self.hosts)
    }
}

/// How many threads are guests of `host`; it may be late.
pub(crate) fn guests_of(host: *const ThreadHeap) -> usize {
    // SAFETY: a pointer to a heap is to one for ever. Relaxed: the lock orders it, or nothing depends on it.
    unsafe { (*host).guests.load(Relaxed) }
}

/// All heaps that there were at some moment.
#[derive(Clone, Copy, Debug)]
pub struct AllHeaps(*mut ThreadHeap);

impl Iterator for AllHeaps {
    type Item = NonNull<ThreadHeap>;

    fn next(&mut self) -> Option<Self::Item> {
        let here = NonNull::new(self.0)?;
        // SAFETY: heaps live for ever, and the link is written once, before the heap is listed.
        self.0 = unsafe { (*here.as_ptr()).next };
        Some(here)
    }
}

/// The heaps that were hosts at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Hosts(*mut ThreadHeap);

impl Iterator for Hosts {
    type Item = NonNull<ThreadHeap>;

    fn next(&mut self) -> Option<Self::Item> {
        let here = NonNull::new(self.0)?;
        // SAFETY: as above.
        self.0 = unsafe { (*here.as_ptr()).next_host };
        Some(here)
    }
}

impl Default for Heaps {
    fn default() -> Self {
        Self::new()
    }
}
