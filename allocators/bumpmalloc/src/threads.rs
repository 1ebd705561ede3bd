//! Heaps of threads that start and end, and forks.

use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Access, Linux, Lock, Pages};

use crate::chunk::Chunk;
use crate::heap::{Heap, current};
use crate::pool::POOL;

/// Lock of [`HEAP_OF_ENDED`], the heap of ending threads that still allocate in late destructors.
/// Such a thread allocates from that heap only while it holds this lock. The heap's chunks have no
/// owner.
static ENDED_THREADS: Lock<()> = Lock::new(());
static HEAP_OF_ENDED: Heap = Heap::new();

/// Heaps of threads, heaps without a thread, and memory for new heaps.
struct Registry {
    first: *mut Heap,
    /// Heaps whose thread has ended.
    free: *mut Heap,
    /// Mapped memory for new heaps.
    room: Option<NonNull<Heap>>,
    room_count: usize,
}

// SAFETY: heaps are never freed, and the registry's lock guards its lists.
unsafe impl Send for Registry {}

static REGISTRY: Lock<Registry> = Lock::new(Registry {
    first: null_mut(),
    free: null_mut(),
    room: None,
    room_count: 0,
});

/// Returns whether this is the heap of ended threads.
pub fn is_of_ended_threads(heap: &Heap) -> bool {
    core::ptr::eq(heap, &raw const HEAP_OF_ENDED)
}

/// Calls `visit` with every heap in the registry. Does not hold the registry's lock during the
/// calls, because `visit` may wait for a thread that needs the lock.
pub fn each_heap(mut visit: impl FnMut(&Heap)) {
    let mut next = REGISTRY.lock().first;
    while let Some(heap) = NonNull::new(next) {
        // SAFETY: heaps are never freed, and `next` is written only before the heap is listed.
        let heap = unsafe { heap.as_ref() };
        visit(heap);
        next = heap.next.get();
    }
}

/// Calls `body` with the heap of ended threads, while holding its lock.
pub fn with_heap_of_ended<T>(body: impl FnOnce(&Heap) -> Option<T>) -> Option<T> {
    let _held = ENDED_THREADS.lock();
    body(&HEAP_OF_ENDED)
}

/// Returns a heap without a chunk or thread: an unused one, or a new one.
pub fn take_heap() -> Option<NonNull<Heap>> {
    REGISTRY.lock().take()
}

impl Registry {
    /// Returns a heap without a chunk or thread: an unused one, or a new one.
    fn take(&mut self) -> Option<NonNull<Heap>> {
        if let Some(heap) = NonNull::new(self.free) {
            // SAFETY: heaps are never freed, and the registry's lock, which the caller holds,
            // guards the link.
            self.free = unsafe { heap.as_ref() }.next_free.replace(null_mut());
            return Some(heap);
        }
        let heap = self.take_room()?;
        // SAFETY: the room was just taken from the registry, so no other code uses it.
        unsafe {
            heap.write(Heap::new());
            heap.as_ref().next.set(self.first);
        }
        self.first = heap.as_ptr();
        Some(heap)
    }

    fn take_room(&mut self) -> Option<NonNull<Heap>> {
        if self.room_count == 0 {
            let size = Linux.page_size().max(4096);
            self.room = Some(
                Linux
                    .reserve(size, align_of::<Heap>(), Access::ReadWrite)?
                    .cast(),
            );
            self.room_count = size / size_of::<Heap>();
        }
        let heap = self.room?;
        self.room_count -= 1;
        // SAFETY: the result lies within the mapping, or at its end.
        self.room = Some(unsafe { heap.add(1) });
        Some(heap)
    }

    /// Calls `visit` with one heap after the other until `visit` returns a value.
    fn find<T>(&self, mut visit: impl FnMut(&Heap) -> Option<T>) -> Option<T> {
        let mut next = self.first;
        while let Some(heap) = NonNull::new(next) {
            // SAFETY: heaps are never freed.
            let heap = unsafe { heap.as_ref() };
            let found = visit(heap);
            if found.is_some() {
                return found;
            }
            next = heap.next.get();
        }
        None
    }
}

/// Removes and returns a dead chunk from the full chunks of any heap in the registry, if there is
/// one.
pub fn take_dead_chunk() -> Option<NonNull<Chunk>> {
    REGISTRY.lock().find(|heap| {
        let mut retired = heap.retired.lock();
        let all = retired.length();
        retired.pop_dead(all)
    })
}

/// Purges dead chunks, except at most `keep` bytes. Returns whether any memory was purged.
pub fn trim(keep: usize) -> bool {
    collect();
    POOL.lock().purge(keep)
}

/// Releases the address space of dead chunks and of new chunks. Returns whether chunks were
/// released.
pub fn release_chunks() -> bool {
    collect();
    POOL.lock().release()
}

/// Moves all dead chunks from the heaps' lists of retired chunks to the pool.
fn collect() {
    while let Some(dead) = take_dead_chunk() {
        POOL.lock().keep(dead);
    }
}

/// Makes the heap of an ended thread available to new threads, and gives up its chunks.
///
/// # Safety
///
/// No thread uses the heap, and it is not in the list of free heaps.
pub unsafe fn give_up_heap(heap: NonNull<Heap>) {
    // SAFETY: no thread uses the heap, by this function's contract, so it belongs to this thread
    // for now, which does not allocate or free through it. The registry's lock guards `next_free`.
    unsafe {
        give_up_chunks(heap.as_ref());
        let mut registry = REGISTRY.lock();
        heap.as_ref().next_free.set(registry.free);
        registry.free = heap.as_ptr();
    }
}

/// Gives up each chunk of a heap to the thread that frees the chunk's last block.
///
/// # Safety
///
/// The heap belongs to the calling thread, which no longer allocates or frees through it.
unsafe fn give_up_chunks(heap: &Heap) {
    // SAFETY: by this function's contract, the heap belongs to the calling thread, which no longer
    // frees through it. The uninstalled chunk is retired and in no list.
    unsafe {
        if let Some(chunk) = heap.uninstall() {
            give_up(chunk);
        }
        give_up_retired(heap);
    }
}

/// Gives up each full chunk of a heap to the thread that frees the chunk's last block.
///
/// # Safety
///
/// The heap belongs to the calling thread, which no longer frees through it, or its thread does not
/// exist.
unsafe fn give_up_retired(heap: &Heap) {
    while let Some(chunk) = heap.retired.lock().pop() {
        // SAFETY: a chunk from this list is retired, and is now in no list. By this function's
        // contract, its owner no longer counts frees in it.
        unsafe { give_up(chunk) };
    }
}

/// Gives up a chunk: the thread that frees its last block gets it. If all of its blocks are already
/// free, the chunk goes to the pool.
///
/// # Safety
///
/// The chunk is retired and in no list. Its owner, if any, no longer counts frees in it.
pub unsafe fn give_up(chunk: NonNull<Chunk>) {
    // SAFETY: the chunk is retired, by this function's contract, and retired chunks are mapped.
    if unsafe { chunk.as_ref() }.disown() {
        POOL.lock().keep(chunk);
    }
}

/// Unlocks all locks in the child of a fork. At the fork no other thread was on a slow path, so a
/// thread that held a lock only read the guarded data.
///
/// # Safety
///
/// The calling thread is the only one, and has no guard of these locks. No other thread of the
/// parent was on a slow path.
pub unsafe fn free_locks() {
    // SAFETY: by this function's contract, the calling thread is the only one, and has no guard of
    // these locks. No other thread was on a slow path, so none was changing the guarded values.
    unsafe {
        POOL.free_in_child();
        HEAP_OF_ENDED.retired.free_in_child();
        REGISTRY.free_in_child();
        ENDED_THREADS.free_in_child();
        each_heap(|heap| heap.retired.free_in_child());
    }
}

/// In the child of a fork, gives up the full chunks of threads that do not exist there. A thread's
/// current chunk keeps its owner, because the thread may have been in the middle of an allocation.
/// No thread allocates in that chunk again.
///
/// # Safety
///
/// The calling thread is the only one.
pub unsafe fn give_up_after_fork() {
    let own = current();
    REGISTRY.lock().find(|heap| -> Option<()> {
        if !core::ptr::eq(heap, own) {
            // SAFETY: the heap's thread, if it had one, does not exist in this process.
            unsafe { give_up_retired(heap) };
        }
        None
    });
}
