//! Lists of heaps: one of all heaps, and three of the heaps without a thread.

use crate::heap::thread_heap::{AnyHeap, HeapRef};

/// List of all heaps, and lists of the heaps without a thread. A lock guards them.
#[derive(Debug)]
pub struct HeapList {
    all: Option<AnyHeap>,
    /// Heaps without a thread and without blocks.
    empty: Option<AnyHeap>,
    /// Heaps whose threads ended in this epoch, with blocks in their magazines.
    kept: Option<AnyHeap>,
    /// Heaps whose threads ended in an earlier epoch, with blocks in their magazines.
    kept_longer: Option<AnyHeap>,
    /// Number of heaps without a thread that have blocks.
    kept_count: usize,
}

// SAFETY: any thread may use the links of the listed heaps while it holds the lock of the lists.
unsafe impl Send for HeapList {}

impl HeapList {
    /// Creates empty lists.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            all: None,
            empty: None,
            kept: None,
            kept_longer: None,
            kept_count: 0,
        }
    }

    /// Adds a new heap, which is in no list.
    pub(super) fn add(&mut self, heap: AnyHeap) {
        heap.heap().next.set(self.all);
        self.all = Some(heap);
    }

    /// Removes and returns a heap without a thread, if possible one with blocks.
    pub(super) fn take(&mut self) -> Option<HeapRef> {
        pop(&mut self.kept)
            .or_else(|| pop(&mut self.kept_longer))
            .inspect(|_| self.kept_count -= 1)
            .or_else(|| pop(&mut self.empty))
    }

    /// Adds a heap that no thread uses to the lists of heaps without a thread. `has_blocks` is
    /// whether the heap's magazines kept their blocks. The heap stays in the list of all heaps.
    pub(super) fn put(&mut self, heap: HeapRef, has_blocks: bool) {
        if has_blocks {
            self.kept_count += 1;
            push(&mut self.kept, heap.as_any());
        } else {
            push(&mut self.empty, heap.as_any());
        }
    }

    /// Returns the number of heaps without a thread that have blocks.
    pub(super) const fn kept(&self) -> usize {
        self.kept_count
    }

    /// Removes and returns a heap that has blocks and whose thread ended before the last call of
    /// [`age_kept`](Self::age_kept), or at any time if `any` is true.
    pub(super) fn take_kept(&mut self, any: bool) -> Option<HeapRef> {
        let list = if any && self.kept_longer.is_none() {
            &mut self.kept
        } else {
            &mut self.kept_longer
        };
        pop(list).inspect(|_| self.kept_count -= 1)
    }

    /// Begins an epoch: the heaps whose threads ended in the epoch before it now count as kept
    /// longer.
    pub(super) fn age_kept(&mut self) {
        while let Some(heap) = pop(&mut self.kept) {
            push(&mut self.kept_longer, heap.as_any());
        }
    }

    /// In the child of a fork, makes the heaps of the parent's other threads available to new
    /// threads: calls `forget` with every heap except `own` and the kept heaps, and lists it as
    /// empty. `own` is the heap of the calling thread, if it has one.
    pub(super) fn disown(&mut self, own: Option<AnyHeap>, mut forget: impl FnMut(AnyHeap)) {
        self.empty = None;
        let lists = [self.kept, self.kept_longer];
        let is_kept = |heap| lists.iter().any(|list| contains(*list, heap));
        for heap in self
            .all()
            .filter(|heap| Some(*heap) != own && !is_kept(*heap))
        {
            forget(heap);
            push(&mut self.empty, heap);
        }
    }

    /// Returns all heaps. The result stays valid without the lock, but lacks heaps that are added
    /// later.
    #[must_use]
    pub const fn all(&self) -> AllHeaps {
        AllHeaps(self.all)
    }
}

/// Adds a heap to a list of heaps without a thread.
fn push(list: &mut Option<AnyHeap>, heap: AnyHeap) {
    heap.heap().next_idle.set(list.replace(heap));
}

/// Removes a heap from a list of heaps without a thread. From now on it belongs to the caller.
fn pop(list: &mut Option<AnyHeap>) -> Option<HeapRef> {
    let heap = (*list)?;
    *list = heap.heap().next_idle.get();
    // SAFETY: no thread uses a heap in these lists. The caller holds the lists' lock and has
    // unlinked the heap, so no other thread can take it.
    Some(unsafe { heap.of_this_thread() })
}

/// Returns whether a heap is in a list of heaps without a thread.
fn contains(list: Option<AnyHeap>, heap: AnyHeap) -> bool {
    core::iter::successors(list, |heap| heap.heap().next_idle.get()).any(|other| other == heap)
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
