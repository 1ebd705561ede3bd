//! Lists of all heaps and of unused heaps.

use crate::heap::thread_heap::AnyHeap;

/// Lists of all heaps and of unused heaps, guarded by a lock.
#[derive(Debug)]
pub struct HeapList {
    all: Option<AnyHeap>,
    idle: Option<AnyHeap>,
}

// SAFETY: any thread may use the links of the listed heaps while it holds the lock of the lists.
unsafe impl Send for HeapList {}

impl HeapList {
    /// Creates empty lists.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            all: None,
            idle: None,
        }
    }

    /// Adds a new heap, which is in no list.
    pub(super) fn add(&mut self, heap: AnyHeap) {
        heap.heap().next.set(self.all);
        self.all = Some(heap);
    }

    /// Removes and returns a heap from the list of unused heaps.
    pub(super) fn take_idle(&mut self) -> Option<AnyHeap> {
        let heap = self.idle?;
        self.idle = heap.heap().next_idle.get();
        Some(heap)
    }

    /// Adds a heap to the list of unused heaps. It stays in the list of all heaps.
    pub(super) fn put_idle(&mut self, heap: AnyHeap) {
        heap.heap().next_idle.set(self.idle);
        self.idle = Some(heap);
    }

    /// In the child of a fork, passes every heap except `own` to `forget`, and marks it as unused.
    pub(super) fn disown(&mut self, own: Option<AnyHeap>, mut forget: impl FnMut(AnyHeap)) {
        self.idle = None;
        for heap in self.all().filter(|heap| Some(*heap) != own) {
            forget(heap);
            self.put_idle(heap);
        }
    }

    /// Returns all heaps. The result stays valid without the lock, but lacks heaps that are added
    /// later.
    #[must_use]
    pub const fn all(&self) -> AllHeaps {
        AllHeaps(self.all)
    }
}

impl Default for HeapList {
    fn default() -> Self {
        Self::new()
    }
}

/// Iterator over all heaps that existed at some moment.
#[derive(Clone, Copy, Debug)]
pub struct AllHeaps(Option<AnyHeap>);

impl Iterator for AllHeaps {
    type Item = AnyHeap;

    fn next(&mut self) -> Option<AnyHeap> {
        let here = self.0?;
        self.0 = here.heap().next.get();
        Some(here)
    }
}
