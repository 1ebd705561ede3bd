//! A heap whose calls cost almost nothing, so that a run on it shows the cost of the workload
//! itself.
//!
//! Each thread keeps a list of free blocks for every size class, and allocates the block that was
//! freed last. Classes are 16 bytes apart up to `FINE`, and 64 KiB apart above. Fresh blocks are
//! cut from memory that was written in advance, so that no page fault happens while this memory
//! lasts. Blocks are never purged, coalesced or split. A freed block goes to the list of the thread
//! that frees it. Full batches move on to other threads, with one atomic exchange per batch, so
//! that a producer does not run dry while its consumer hoards.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::array::{Array, Zeroed};
use crate::{Failure, Heap};

/// Maximum size with lists in steps of 16 bytes.
const FINE: usize = 1 << 20;
/// Maximum size of a block. Sizes above [`FINE`] have lists in steps of 64 KiB.
const COARSE: usize = 1 << 30;
const BEYOND_FINE: usize = FINE + 1;
const FINE_CLASSES: usize = FINE / 16 + 1;
const CLASSES: usize = FINE_CLASSES + (COARSE >> 16);
/// Size of a batch that moves between threads, in bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// Granularity, in bytes, at which a thread reserves memory for its fresh blocks.
const CHUNK: usize = 4 << 20;

/// Free block. Only the first block of a batch uses the second word.
struct Node {
    next: *mut Node,
    next_batch: *mut Node,
}

/// One thread's free blocks of one size class.
#[derive(Clone, Copy)]
struct List {
    /// The block that was freed last.
    head: *mut Node,
    /// Number of blocks that were pushed since the list was last refilled or put aside, minus those
    /// that were taken; at least 0.
    count: usize,
    /// A full batch, or null.
    full: *mut Node,
    /// Batches taken from other threads.
    taken: *mut Node,
}

// SAFETY: null pointers and a zero count are an empty list.
unsafe impl Zeroed for List {}

/// One thread's free blocks, and the memory from which it cuts fresh ones.
struct Cache {
    lists: Array<List>,
    next: usize,
    end: usize,
}

/// State that the threads share. It lives until the process ends, because its blocks may be in use
/// until then.
struct Shared {
    first: usize,
    length: usize,
    touched: usize,
    used: AtomicUsize,
    batches: Box<[AtomicPtr<Node>]>,
    idle: Mutex<Vec<&'static mut Cache>>,
}

/// Heap whose calls cost almost nothing. Its memory stays reserved until the process ends.
#[derive(Clone, Copy)]
pub struct Lifo {
    shared: &'static Shared,
}

// SAFETY: the raw pointers in the idle caches lead to free blocks, which belong to the thread that
// takes the cache from the mutex.
unsafe impl Sync for Shared {}

thread_local! {
    /// Address of a heap's shared state, and this thread's cache for that heap.
    static OWN: Cell<(*const Shared, *mut Cache)> = const { Cell::new((ptr::null(), ptr::null_mut())) };
}

impl Lifo {
    /// Creates a heap, and writes to every page of its first `bytes` bytes, rounded up to chunks.
    /// Also reserves eight times that size, whose pages become resident on first use.
    ///
    /// # Errors
    /// Returns a failure if the system is out of memory.
    pub fn new(bytes: u64) -> Result<Self, Failure> {
        let lack = Failure::Bookkeeping {
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        };
        let touched = usize::try_from(bytes).map_err(|_| lack.clone())?;
        let touched = touched.next_multiple_of(CHUNK);
        let length = touched.checked_mul(9).ok_or_else(|| lack.clone())?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new private mapping does not affect existing memory.
        let first = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
        if first == libc::MAP_FAILED {
            return Err(lack);
        }
        let first = first.cast::<u8>();
        for place in (0..touched).step_by(4096) {
            // SAFETY: `place` is inside the new mapping, which no other code uses yet.
            unsafe { first.add(place).write_volatile(0) };
        }
        let shared = Box::new(Shared {
            first: first.expose_provenance(),
            length,
            touched,
            used: AtomicUsize::new(0),
            batches: (0..CLASSES).map(|_| AtomicPtr::default()).collect(),
            idle: Mutex::new(Vec::new()),
        });
        Ok(Self {
            shared: Box::leak(shared),
        })
    }

    /// Returns the number of bytes that threads have reserved to cut blocks from, including
    /// reservations that failed.
    pub fn used_bytes(&self) -> u64 {
        // Relaxed: the count is read after the threads have ended.
        self.shared.used.load(Ordering::Relaxed) as u64
    }

    /// Returns the number of bytes that were written before the heap was used.
    pub fn touched_bytes(&self) -> u64 {
        self.shared.touched as u64
    }

    /// Applies `act` to this thread's cache. Returns `None` if the thread has none and the system
    /// is out of memory for one.
    #[inline]
    fn with_cache<R>(&self, act: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        let (owner, cache) = OWN.get();
        let cache = match ptr::eq(owner, self.shared) {
            true => cache,
            false => self.adopt()?,
        };
        // SAFETY: a cache lives as long as the process. It is either in one thread's `OWN` or in
        // the list of idle caches, so no other thread uses it. `act` does not call this function
        // again.
        Some(act(unsafe { &mut *cache }))
    }

    /// Gives this thread a cache: one of an earlier thread if there is one, otherwise a new one.
    #[cold]
    fn adopt(&self) -> Option<*mut Cache> {
        let idle = locked(&self.shared.idle).pop();
        let cache: *mut Cache = match idle {
            Some(cache) => cache,
            None => Box::leak(Box::new(Cache {
                lists: Array::new(CLASSES).ok()?,
                next: 0,
                end: 0,
            })),
        };
        give_back(OWN.replace((self.shared, cache)));
        Some(cache)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a cache to its heap's list of idle caches.
fn give_back((owner, cache): (*const Shared, *mut Cache)) {
    if !owner.is_null() {
        // SAFETY: the heap and the cache live as long as the process, and this thread no longer
        // uses the cache.
        let (owner, cache) = unsafe { (&*owner, &mut *cache) };
        locked(&owner.idle).push(cache);
    }
}

/// Returns the index of the list for a size; `None` if no list has such large blocks.
#[inline]
fn class(size: usize) -> Option<usize> {
    match size {
        0..=FINE => Some(size.max(1).div_ceil(16)),
        BEYOND_FINE..=COARSE => Some(FINE_CLASSES + ((size - 1) >> 16)),
        _ => None,
    }
}

/// Returns the size of the blocks in a list.
#[inline]
fn bytes_of(class: usize) -> usize {
    match class < FINE_CLASSES {
        true => class * 16,
        false => (class - FINE_CLASSES + 1) << 16,
    }
}

#[inline]
fn batch_of(class: usize) -> usize {
    (BATCH_BYTES / bytes_of(class)).max(1)
}

impl Cache {
    /// Takes a free block from this thread's list, or else from this thread's spare batch or a
    /// batch that another thread has passed on. Returns null if there is none.
    #[inline]
    fn take(&mut self, class: usize, shared: &Shared) -> *mut Node {
        let list = &mut self.lists[class];
        if list.head.is_null() {
            list.refill(&shared.batches[class]);
        }
        let node = list.head;
        if !node.is_null() {
            // SAFETY: a node in a list is a free block that only this thread can reach.
            list.head = unsafe { (*node).next };
            list.count = list.count.saturating_sub(1);
        }
        node
    }

    /// Pushes a block onto its list.
    ///
    /// # Safety
    /// `node` is a free block of this class, which no other code uses or can reach.
    #[inline]
    unsafe fn give(&mut self, class: usize, node: *mut Node, shared: &Shared) {
        let list = &mut self.lists[class];
        // SAFETY: by this function's contract the block is free, and no other code uses it. Every
        // class has at least 16 bytes, aligned to 16.
        unsafe { (*node).next = list.head };
        list.head = node;
        list.count += 1;
        if list.count >= batch_of(class) {
            list.put_aside(&shared.batches[class]);
        }
    }

    /// Cuts a fresh block, or returns null if all memory is used up.
    fn cut(&mut self, bytes: usize, alignment: usize, shared: &Shared) -> *mut u8 {
        let mut place = self.next.next_multiple_of(alignment.max(16));
        if place + bytes > self.end {
            let whole = (bytes + alignment).next_multiple_of(CHUNK);
            // Relaxed: the addition gives each thread a different part, and needs no other order.
            let used = shared.used.fetch_add(whole, Ordering::Relaxed);
            if used.saturating_add(whole) > shared.length {
                return ptr::null_mut();
            }
            self.end = shared.first + used + whole;
            place = (shared.first + used).next_multiple_of(alignment.max(16));
        }
        self.next = place + bytes;
        ptr::with_exposed_provenance_mut(place)
    }
}

impl List {
    /// Refills the list from this thread's spare batch, or else from a batch that a thread has
    /// passed on, if there is one.
    #[cold]
    fn refill(&mut self, batches: &AtomicPtr<Node>) {
        self.head = std::mem::replace(&mut self.full, ptr::null_mut());
        if self.head.is_null() {
            if self.taken.is_null() {
                // Acquire: pairs with the release in `put_aside`, so that the nodes of the batches
                // are visible. Taking all batches in one exchange avoids the ABA problem.
                self.taken = batches.swap(ptr::null_mut(), Ordering::Acquire);
            }
            self.head = self.taken;
            if !self.taken.is_null() {
                // SAFETY: a batch that was taken belongs to this thread.
                self.taken = unsafe { (*self.taken).next_batch };
            }
        }
        self.count = 0;
    }

    /// Stores a full list as this thread's spare batch, and passes the previous spare on to other
    /// threads.
    #[cold]
    fn put_aside(&mut self, batches: &AtomicPtr<Node>) {
        let batch = std::mem::replace(&mut self.full, self.head);
        self.head = ptr::null_mut();
        self.count = 0;
        if batch.is_null() {
            return;
        }
        // Relaxed: the head's target is not read here, and the exchange below checks that the head
        // is still current.
        let mut first = batches.load(Ordering::Relaxed);
        loop {
            // SAFETY: the batch belongs to this thread until the exchange succeeds.
            unsafe { (*batch).next_batch = first };
            // Release: pairs with the acquire in `refill`.
            match batches.compare_exchange_weak(first, batch, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}

impl Heap for Lifo {
    #[inline]
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8 {
        let allocate = |class| {
            self.with_cache(|cache| {
                let node = cache.take(class, self.shared);
                if !node.is_null() && (alignment <= 16 || node.addr().is_multiple_of(alignment)) {
                    return node.cast();
                }
                if !node.is_null() {
                    // SAFETY: the node was just taken from the list of this class, so it is a free
                    // block of this class that only this thread can reach.
                    unsafe { cache.give(class, node, self.shared) };
                }
                cache.cut(bytes_of(class), alignment, self.shared)
            })
        };
        class(size).and_then(allocate).unwrap_or(ptr::null_mut())
    }

    #[inline]
    unsafe fn free(&self, block: *mut u8, size: usize) {
        if let Some(class) = class(size) {
            // SAFETY: by the contract of `Heap::free` the block came from this heap with this size,
            // and is not used afterwards. So it is a free block of the size's class.
            self.with_cache(|cache| unsafe { cache.give(class, block.cast(), self.shared) });
        }
    }

    fn enter(&self) {
        self.with_cache(|_| ());
    }

    fn leave(&self) {
        give_back(OWN.replace((ptr::null(), ptr::null_mut())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_came_back_last_is_given_out_first() {
        let heap = Lifo::new(1 << 20).unwrap();
        let blocks: Vec<_> = (0..3).map(|_| heap.allocate(100, 0)).collect();
        for block in &blocks {
            // SAFETY: the block was allocated above with this size, and is not used afterwards.
            unsafe { heap.free(*block, 100) };
        }
        let again: Vec<_> = (0..3).map(|_| heap.allocate(112, 0)).collect();
        let reversed: Vec<_> = blocks.iter().rev().copied().collect();
        assert_eq!(again, reversed);
        heap.leave();
    }

    #[test]
    fn blocks_do_not_overlap_whatever_their_size() {
        let heap = Lifo::new(1 << 20).unwrap();
        let mut spans = Vec::new();
        for size in [1, 8, 16, 17, 4096, FINE, FINE + 1, (2 << 20) + 5] {
            for alignment in [0, 64, 4096] {
                let block = heap.allocate(size, alignment);
                assert!(!block.is_null() && block.addr().is_multiple_of(alignment.max(16)));
                spans.push((block.addr(), block.addr() + size));
            }
        }
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert!(heap.allocate(COARSE + 1, 0).is_null());
        heap.leave();
    }

    #[test]
    fn memory_that_is_used_up_ends_in_null() {
        let heap = Lifo::new(1).unwrap();
        let given = (0..100).take_while(|_| !heap.allocate(FINE, 0).is_null());
        let given = given.count();
        assert!((18..=36).contains(&given), "{given}");
        heap.leave();
    }

    /// Blocks that one thread frees return to the other thread, which allocates them again.
    #[test]
    fn freed_blocks_find_their_way_back() {
        let heap = Lifo::new(1 << 20).unwrap();
        let (send, receive) = std::sync::mpsc::sync_channel::<usize>(100);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for address in receive {
                    // SAFETY: the other thread allocated the block with this size and no longer
                    // uses the block.
                    unsafe { heap.free(ptr::with_exposed_provenance_mut(address), 64) };
                }
                heap.leave();
            });
            for _ in 0..1_000_000 {
                send.send(heap.allocate(64, 0).expose_provenance()).unwrap();
            }
            drop(send);
        });
        heap.leave();
        assert!(heap.used_bytes() <= 16 << 20, "{}", heap.used_bytes());
    }
}
