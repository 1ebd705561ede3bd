//! The lists of thread heaps.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::Ordering::Relaxed;

use crate::heap::ThreadHeap;

/// All thread heaps; a lock guards the lists.
#[derive(Debug)]
pub struct Heaps {
    all: *mut ThreadHeap,
    idle: *mut ThreadHeap,
    /// Heaps whose bins threads use.
    hosts: *mut ThreadHeap,
    host_count: usize,
    /// Where `all` began when the locks of all heaps were last taken for a fork.
    held: *mut ThreadHeap,
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
            held: null_mut(),
        }
    }

    /// Adds a new heap, which belongs to the calling thread. It is a host too, while these are fewer than `hosts`.
    pub fn add(&mut self, heap: NonNull<ThreadHeap>, hosts: usize) {
        let place = heap.as_ptr();
        // SAFETY: the heap is the caller's, and heaps live for ever.
        unsafe {
            (*place).next = self.all;
            if self.host_count < hosts {
                (*place).next_host = self.hosts;
                self.hosts = place;
                self.host_count += 1;
            }
        }
        self.all = place;
    }

    /// Gives a thread that begins the host with the fewest guests. True where it had none: its bins are idle.
    ///
    /// # Safety
    ///
    /// The heap is in the list, and the calling thread's.
    pub unsafe fn enter(&mut self, heap: NonNull<ThreadHeap>) -> bool {
        // SAFETY: hosts live for ever, and the lock guards their counts. Relaxed: see the field.
        unsafe {
            let mut best = self.hosts;
            let mut host = best;
            while !host.is_null() && (*best).guests != 0 {
                if (*host).guests < (*best).guests {
                    best = host;
                }
                host = (*host).next_host;
            }
            (*heap.as_ptr()).host.store(best, Relaxed);
            (*best).guests += 1;
            (*best).guests == 1
        }
    }

    /// Takes a thread that ends from its host. True where it was the last: the bins are idle then.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and has entered.
    pub unsafe fn leave(&mut self, heap: NonNull<ThreadHeap>) -> bool {
        // SAFETY: as above.
        unsafe {
            let host = (*heap.as_ptr()).host.load(Relaxed);
            (*host).guests -= 1;
            (*host).guests == 0
        }
    }

    /// In the child of a fork: no host has a guest but that of `own`.
    pub fn forget_guests(&mut self, own: Option<NonNull<ThreadHeap>>) {
        let mut host = self.hosts;
        while !host.is_null() {
            // SAFETY: as above.
            unsafe {
                (*host).guests = 0;
                host = (*host).next_host;
            }
        }
        if let Some(own) = own {
            // SAFETY: as above; the heap has entered before.
            unsafe { (*(*own.as_ptr()).host.load(Relaxed)).guests = 1 };
        }
    }

    /// Forgets which heaps have no thread.
    pub fn forget_idle(&mut self) {
        self.idle = null_mut();
    }

    /// Says which heaps have no thread: a list made with [`ThreadHeap::set_next_idle`].
    pub fn set_idle(&mut self, first: Option<NonNull<ThreadHeap>>) {
        self.idle = first.map_or(null_mut(), NonNull::as_ptr);
    }

    /// Takes a heap that no thread has.
    pub fn take_idle(&mut self) -> Option<NonNull<ThreadHeap>> {
        let heap = NonNull::new(self.idle)?;
        // SAFETY: idle heaps belong to the list.
        self.idle = unsafe { (*heap.as_ptr()).next_idle };
        Some(heap)
    }

    /// Adds a heap that its thread uses no more.
    pub fn put_idle(&mut self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the heap belongs to the list from now on.
        unsafe { (*heap.as_ptr()).next_idle = self.idle };
        self.idle = heap.as_ptr();
    }

    /// Notes which heaps there are when all their locks are taken for a fork.
    pub fn hold(&mut self) {
        self.held = self.all;
    }

    /// The heaps that there were then. One may have been made since: the forking thread may allocate before it lets
    /// go of the locks, and each heap is added before all others.
    #[must_use]
    pub const fn held(&self) -> AllHeaps {
        AllHeaps(self.held)
    }

    /// All heaps. The answer stays right without the lock, but for heaps that are made later.
    #[must_use]
    pub const fn all(&self) -> AllHeaps {
        AllHeaps(self.all)
    }
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

impl Default for Heaps {
    fn default() -> Self {
        Self::new()
    }
}
