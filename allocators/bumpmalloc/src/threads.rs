//! Heaps of threads that come and go, and forks.

use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Access, Linux, Lock, Pages};

use crate::chunk::Chunk;
use crate::heap::{Heap, current};
use crate::pool::POOL;

/// The heap of threads that have ended but still allocate, in destructors that run late. Any thread
/// may use it under its lock; its chunks have no owner.
static ENDED_THREADS: Lock<()> = Lock::new(());
static HEAP_OF_ENDED: Heap = Heap::new();

/// All heaps.
struct Registry {
    first: *mut Heap,
    /// Those whose thread has ended.
    free: *mut Heap,
    /// Room for new ones.
    room: Option<NonNull<Heap>>,
    room_count: usize,
}

// SAFETY: heaps are never freed, and those in the registry's lists are used under its lock.
unsafe impl Send for Registry {}

static REGISTRY: Lock<Registry> = Lock::new(Registry {
    first: null_mut(),
    free: null_mut(),
    room: None,
    room_count: 0,
});

/// Whether this is the heap of ended threads.
pub fn is_of_ended_threads(heap: &Heap) -> bool {
    core::ptr::eq(heap, &raw const HEAP_OF_ENDED)
}

/// Calls `visit` with every heap. The registry is not locked meanwhile: `visit` may wait for a
/// thread that wants it.
pub fn each_heap(mut visit: impl FnMut(&Heap)) {
    let mut next = REGISTRY.lock().first;
    while let Some(heap) = NonNull::new(next) {
        // SAFETY: heaps are never freed, and the link is written once, before the heap is listed.
        let heap = unsafe { heap.as_ref() };
        visit(heap);
        next = heap.next.get();
    }
}

/// Calls `body` with the heap of ended threads, locked.
pub fn with_heap_of_ended<T>(body: impl FnOnce(&Heap) -> Option<T>) -> Option<T> {
    let _held = ENDED_THREADS.lock();
    body(&HEAP_OF_ENDED)
}

/// Takes a heap without chunk or thread.
pub fn take_heap() -> Option<NonNull<Heap>> {
    REGISTRY.lock().take()
}

impl Registry {
    /// A heap without chunk or thread.
    fn take(&mut self) -> Option<NonNull<Heap>> {
        if let Some(heap) = NonNull::new(self.free) {
            // SAFETY: heaps are never freed, and the link is used under this lock.
            self.free = unsafe { heap.as_ref() }.next_free.replace(null_mut());
            return Some(heap);
        }
        let heap = self.take_room()?;
        // SAFETY: the room is this heap's from now on.
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
        // SAFETY: within the mapping, or just behind it.
        self.room = Some(unsafe { heap.add(1) });
        Some(heap)
    }

    /// Calls `visit` with every heap until it returns something.
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

/// A dead chunk of any thread's heap, where there is no memory otherwise.
pub fn take_dead_chunk() -> Option<NonNull<Chunk>> {
    REGISTRY.lock().find(|heap| {
        let mut retired = heap.retired.lock();
        let all = retired.length();
        retired.pop_dead(all)
    })
}

/// Gives the memory of dead chunks back to the system, but for about `keep` bytes.
pub fn trim(keep: usize) -> bool {
    collect();
    POOL.lock().purge(keep)
}

/// Gives the address space of dead and of new chunks back to the system. True if any was given
/// back.
pub fn release_chunks() -> bool {
    collect();
    POOL.lock().release()
}

/// Moves all dead chunks to the pool.
fn collect() {
    while let Some(dead) = take_dead_chunk() {
        POOL.lock().keep(dead);
    }
}

/// Gives up the heap of a thread that has ended.
///
/// # Safety
///
/// No thread uses the heap, and it is in no list of free ones.
pub unsafe fn give_up_heap(heap: NonNull<Heap>) {
    // SAFETY: the caller's promise.
    unsafe {
        give_up_chunks(heap.as_ref());
        let mut registry = REGISTRY.lock();
        heap.as_ref().next_free.set(registry.free);
        registry.free = heap.as_ptr();
    }
}

/// Leaves all chunks of a heap to whoever frees their last blocks.
///
/// # Safety
///
/// The heap is the calling thread's, which allocates and frees by it no more.
unsafe fn give_up_chunks(heap: &Heap) {
    // SAFETY: the caller's promise; what was uninstalled is retired.
    unsafe {
        if let Some(chunk) = heap.uninstall() {
            give_up(chunk);
        }
        give_up_retired(heap);
    }
}

/// Leaves the full chunks of a heap to whoever frees their last blocks.
///
/// # Safety
///
/// The heap is the calling thread's, which frees by it no more, or of no thread that there is.
unsafe fn give_up_retired(heap: &Heap) {
    while let Some(chunk) = heap.retired.lock().pop() {
        // SAFETY: what was in the list is retired, and the caller's now.
        unsafe { give_up(chunk) };
    }
}

/// Leaves a chunk to whoever frees its last block, or keeps it for the next thread if that was
/// done.
///
/// # Safety
///
/// The chunk is retired and in no list, and its owner, if it has one, counts frees there no more.
pub unsafe fn give_up(chunk: NonNull<Chunk>) {
    // SAFETY: the caller's promise.
    if unsafe { chunk.as_ref() }.disown() {
        POOL.lock().keep(chunk);
    }
}

/// In the child of a fork: frees all locks. A thread of the parent may have held one to read what
/// it guards.
///
/// # Safety
///
/// There is only the calling thread, which has no guard of a lock.
pub unsafe fn free_locks() {
    // SAFETY: the caller's promise.
    unsafe {
        POOL.free_in_child();
        HEAP_OF_ENDED.retired.free_in_child();
        REGISTRY.free_in_child();
        ENDED_THREADS.free_in_child();
        each_heap(|heap| heap.retired.free_in_child());
    }
}

/// In the child of a fork: disowns the full chunks of threads that do not exist there, so that the
/// last free in each takes it. Chunks in which such threads were allocating stay theirs: a thread
/// may have been between two steps. No thread allocates there again.
///
/// # Safety
///
/// There is only the calling thread.
pub unsafe fn give_up_after_fork() {
    let own = current();
    REGISTRY.lock().find(|heap| -> Option<()> {
        if !core::ptr::eq(heap, own) {
            // SAFETY: the thread that had the heap, if it has one, does not exist here.
            unsafe { give_up_retired(heap) };
        }
        None
    });
}
