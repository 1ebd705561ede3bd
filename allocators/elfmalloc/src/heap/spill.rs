//! Between magazines and slabs: what a magazine cannot hold goes to the thread's depot, and what that
//! should not hold goes to the slabs.

use core::ptr::NonNull;
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::{Lock, Pages};

use crate::heap::backend::Backend;
use crate::heap::depot::{CHUNK_BYTES, Chunks, Depot};
use crate::heap::front::ThreadHeap;
use crate::size_class::{FIRST_SHARED, SizeClass, UNIT};
use crate::slabs::bin::Slabs;

/// Chunks of all depots together may take this part of what lives.
const CHUNKS_PART: usize = 64;
/// A thread's depot may have so many in any case.
const LEAST_CHUNKS: usize = 8;
/// The blocks in all depots together may be this part of what lives.
const BLOCKS_PART: usize = 4;
/// The blocks in a thread's depot may be so many bytes in any case.
const LEAST_BYTES: usize = 64 << 10;
/// Fewer blocks go to the slabs at once.
const LEAST: usize = 7;
/// Before memory grows, depots are emptied that hold more than this part of what lives,
const WORTH_PART: usize = 16;
/// and more than so many bytes,
const WORTH_BYTES: usize = 64 << 10;
/// if memory has grown by this part, and at all, since that was last done.
const GROWN_PART: usize = 64;
const LEAST_GROWN: usize = 1;

/// The depot of a heap.
///
/// # Safety
///
/// The heap is one.
unsafe fn depot_of<'a>(heap: NonNull<ThreadHeap>) -> &'a Lock<Depot> {
    // SAFETY: heaps live for ever, and depots may be used by any thread.
    unsafe { &(*heap.as_ptr()).depot }
}

impl<P: Pages> Backend<P> {
    /// Finds a place for blocks that leave a magazine, the last of which were freed last.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's; the blocks are of `class`, and nobody uses them.
    pub(crate) unsafe fn spill(
        &self,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        blocks: &mut [*mut u8],
    ) {
        let mut kept = 0;
        // SAFETY: the caller's promise.
        unsafe {
            if class.number() < FIRST_SHARED && blocks.len() >= LEAST {
                let mut depot = depot_of(heap).lock();
                if self.has_room(&depot, class, blocks.len()) {
                    kept = depot.push(class, blocks, &self.metadata, &self.pages);
                }
            }
            if kept != blocks.len() {
                self.give_or_report(self.bin(heap, class), class, &mut blocks[kept..]);
            }
        }
    }

    /// Whether a depot may take so many blocks more.
    fn has_room(&self, depot: &Depot, class: SizeClass, blocks: usize) -> bool {
        let bytes = blocks * class.size();
        // Relaxed: numbers that stand alone.
        let threads = self.threads.load(Relaxed).max(1);
        let live = self.live.load(Relaxed) * UNIT / threads;
        let chunks = (live / CHUNKS_PART / CHUNK_BYTES).max(LEAST_CHUNKS);
        (depot.chunks() < chunks || blocks <= depot.room(class))
            && depot.bytes() + bytes <= (live / BLOCKS_PART).max(LEAST_BYTES)
    }

    /// Takes up to `want` blocks from the thread's depot; none only where none is there.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and `slots` has room for `want` pointers, at least one.
    pub(crate) unsafe fn take_back(
        &self,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        slots: *mut *mut u8,
        want: usize,
    ) -> usize {
        if class.number() >= FIRST_SHARED {
            return 0;
        }
        // SAFETY: the caller's promise.
        unsafe { depot_of(heap).lock().pop(class, slots, want) }
    }

    /// Gives all blocks in all depots back.
    pub fn empty_depots(&self) {
        for heap in self.all_heaps() {
            // SAFETY: the heap is one, and what leaves its depot is nobody's.
            unsafe { self.empty_depot(heap) };
        }
    }

    /// Gives all blocks in a depot back.
    ///
    /// # Safety
    ///
    /// The heap is one.
    pub(crate) unsafe fn empty_depot(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the caller's promise.
        unsafe {
            let chunks = depot_of(heap).lock().take_all();
            self.release_chunks(heap, chunks);
        }
    }

    /// Gives back what has lain in depots, untouched, since this was last called.
    pub fn empty_idle_depots(&self) {
        for heap in self.all_heaps() {
            // SAFETY: as in `empty_depots`.
            unsafe {
                let chunks = depot_of(heap).lock().take_idle();
                if !chunks.is_empty() {
                    self.release_chunks(heap, chunks);
                    // What has become empty by it has been idle as long.
                    self.retire_empties(ThreadHeap::bins_of(heap), Slabs::take_empties);
                }
            }
        }
    }

    /// # Safety
    ///
    /// The heap is one.
    unsafe fn release_chunks(&self, heap: NonNull<ThreadHeap>, chunks: Chunks) {
        // SAFETY: the caller's promise. Whoever calls may run anywhere: the blocks are the heap's.
        let bins = unsafe { ThreadHeap::bins_of(heap) };
        chunks.empty(&self.metadata, |class, blocks| {
            // SAFETY: blocks in a depot are free blocks of their class, a small one.
            unsafe { self.give_or_report(&raw const bins[class.number()], class, blocks) };
        });
    }

    /// Gives back all that lies in depots, and all empty slabs.
    pub(crate) fn release_kept(&self) {
        self.empty_depots();
        self.retire_all_empties(Slabs::take_empties);
    }

    /// To be called before memory grows by some units: gives empty slabs back, and what lies in depots if
    /// that is much. Slabs that become empty by it may serve instead.
    pub(crate) fn before_growth(&self, units: usize) {
        // Relaxed: numbers that stand alone.
        let live = self.live.load(Relaxed);
        let emptied_at = self.emptied_at.load(Relaxed);
        if live.abs_diff(emptied_at) < (live / GROWN_PART).max(LEAST_GROWN)
            || self.pool.lock().dirty >= units
        {
            return;
        }
        self.emptied_at.store(live, Relaxed);
        self.retire_all_empties(Slabs::take_empties);
        if self.pool.lock().dirty >= units {
            return;
        }
        let held: usize = self
            .all_heaps()
            // SAFETY: the heaps are such.
            .map(|heap| unsafe { depot_of(heap) }.lock().bytes())
            .sum();
        if held > (live * UNIT / WORTH_PART).max(WORTH_BYTES) {
            self.release_kept();
        }
    }
}
