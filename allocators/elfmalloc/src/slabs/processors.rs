//! Which host serves a processor.
//!
//! Where threads are more than hosts, two guests of one host may run at once, on two processors. Each would wait for
//! the other at the locks of its bins, and be handed blocks that lie in the other's cache. So threads then use the bins
//! of their processor's host, whosever guests they are.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::heap::front::ThreadHeap;
use crate::heap::heaps::{Hosts, guests_of};

/// Processors that are told apart. Where there are more, several share a host. In models and under Miri few: every look
/// at one is a step there, or every use of the back-end a look at each.
const PROCESSORS: usize = if cfg!(any(modelled, miri)) { 4 } else { 256 };

/// By processor: the host that serves it; null for one that no thread was seen on.
#[derive(Debug)]
pub struct Processors([AtomicPtr<ThreadHeap>; PROCESSORS]);

impl Processors {
    /// No processor has been seen.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicPtr::new(null_mut()) }; PROCESSORS])
    }

    fn host_of(&self, processor: usize) -> *mut ThreadHeap {
        // Acquire: pairs with the release in `serve`, since the host may be younger than the caller's heap.
        self.0[processor % PROCESSORS].load(Acquire)
    }

    /// Gives a processor the host that serves the fewest. Whoever calls holds the lock of the lists of heaps.
    fn serve(&self, processor: usize, hosts: Hosts) {
        let fewest = hosts
            .map(NonNull::as_ptr)
            .min_by_key(|host| self.served_by(*host));
        if let Some(host) = fewest {
            // Release: pairs with the acquire in `host_of`.
            self.0[processor % PROCESSORS].store(host, Release);
        }
    }

    /// There is one host more: processors get theirs anew. Whoever calls holds the lock of the lists of heaps.
    pub(crate) fn forget(&self) {
        for entry in &self.0 {
            // Relaxed: no host is named. Pages that nobody wrote to are not to become resident by it.
            if !entry.load(Relaxed).is_null() {
                entry.store(null_mut(), Relaxed);
            }
        }
    }

    fn served_by(&self, host: *mut ThreadHeap) -> usize {
        // Relaxed: the lock orders it.
        let serves = |entry: &&AtomicPtr<_>| entry.load(Relaxed) == host;
        self.0.iter().filter(serves).count()
    }
}

impl Default for Processors {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Pages> Backend<P> {
    /// The host whose bins a thread uses now: where threads are more than hosts, that of the processor that it runs
    /// on, if it has guests; else its own.
    ///
    /// # Safety
    ///
    /// The heap is one.
    #[inline]
    pub unsafe fn host_of(&self, heap: NonNull<ThreadHeap>) -> NonNull<ThreadHeap> {
        // SAFETY: the caller's promise; a heap's host is never null.
        let own = unsafe { ThreadHeap::host_of(heap) };
        if !self.threads_outnumber_hosts() {
            return own;
        }
        self.pages
            .processor()
            .and_then(|processor| self.host_of_processor(processor))
            .unwrap_or(own)
    }

    /// The host that serves a processor; `None` where it has no guests, or another thread is at the lists of heaps.
    fn host_of_processor(&self, processor: usize) -> Option<NonNull<ThreadHeap>> {
        let mut host = self.processors.host_of(processor);
        if host.is_null() {
            let heaps = self.heaps.try_lock()?;
            // Another thread may have done so meanwhile: served twice, a processor would count for both hosts, and might
            // leave one of them without any for good.
            if self.processors.host_of(processor).is_null() {
                self.processors.serve(processor, heaps.hosts());
            }
            drop(heaps);
            host = self.processors.host_of(processor);
        }
        // The bins of a host without guests are left by all: what it has goes where others find it.
        NonNull::new(host).filter(|host| guests_of(host.as_ptr()) != 0)
    }
}
