//! Runs programs on an implementation of `MallocAbi` over elfmalloc's back-end and simulated pages.
//! Each program gets a new back-end, so that failures can be reproduced. The back-end's invariants
//! are checked at the end.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use heapdrome_conformance::{Program, Subject, execute};
use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::FrontEnd;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::large::allocate_grown;
use heapdrome_elfmalloc::heap::large::allocate_large;
use heapdrome_elfmalloc::heap::large::free_large;
use heapdrome_elfmalloc::heap::maintenance::look_around;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::heap::threads::trim;
use heapdrome_elfmalloc::process::statistics::Snapshot;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::{LARGEST, UNIT};
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlock;
use heapdrome_elfmalloc::units::large::{Large, usable};
use heapdrome_malloc_abi::MallocAbi;
use heapdrome_pages::Simulated;

/// Back-end that all threads currently use.
static CURRENT: AtomicPtr<Heaps<Simulated>> = AtomicPtr::new(std::ptr::null_mut());
/// Held while a program uses the back-end.
static TURN: Mutex<()> = Mutex::new(());
/// Number of requests that failed.
static REFUSED: AtomicUsize = AtomicUsize::new(0);
/// Number of times that threads were moved to another processor.
static MOVES: AtomicUsize = AtomicUsize::new(0);

/// Heap of the thread, detached when the thread ends.
struct Attached(Cell<Option<HeapRef>>);

thread_local! {
    static HEAP: Attached = const { Attached(Cell::new(None)) };
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(heap) = self.0.take() {
            // SAFETY: the heap belongs to this thread, which is ending or has finished its program.
            unsafe { detach(backend(), heap) };
        }
    }
}

fn backend() -> &'static Heaps<Simulated> {
    // SAFETY: `run` sets the pointer before any thread of the program begins, and clears it after
    // all of them have been joined.
    unsafe { &*CURRENT.load(SeqCst) }
}

fn heap() -> Option<HeapRef> {
    HEAP.with(|attached| {
        let heap = attached.0.get().or_else(|| backend().attach());
        attached.0.set(heap);
        heap
    })
}

/// Counts of events in a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Number of requests that failed.
    pub refused: usize,
    /// Number of blocks that a thread gave back to a bin other than its own.
    pub remote_frees: u64,
    /// Number of times that memory was returned to the system.
    pub purges: u64,
}

/// Runs a program over `limit` bytes of address space. This is too little for the default arena and
/// class map, as under strict overcommit. Asserts that all memory was given back at the end.
///
/// # Errors
///
/// The error that [`execute`] found.
///
/// # Panics
///
/// If an invariant does not hold.
pub fn run<F: FrontEnd>(program: &Program, limit: usize, decay: u64) -> Result<Counts, String> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    REFUSED.store(0, SeqCst);
    MOVES.store(0, SeqCst);
    let owned = Box::into_raw(Box::new(Heaps::new(Simulated::new(limit))));
    CURRENT.store(owned, SeqCst);
    backend().start(|| Settings {
        decay,
        // Fewer shards than threads, so that some threads share a shard.
        shards: 2,
        ..Settings::DEFAULT
    });
    let outcome = execute(&Subject::of::<Over<F>>().that_may_refuse(), program);
    HEAP.with(|attached| drop(Attached(Cell::new(attached.0.take()))));
    let counts = outcome.map(|()| {
        backend().check();
        backend().release_kept();
        assert_eq!(backend().shards.slabs(), 0, "all blocks were freed");
        let statistics = Snapshot::of(backend());
        assert_eq!(statistics.all.live, 0, "all blocks were freed");
        Counts {
            refused: REFUSED.load(SeqCst),
            remote_frees: statistics.all.remote_frees,
            purges: statistics.purges,
        }
    });
    CURRENT.store(std::ptr::null_mut(), SeqCst);
    // SAFETY: the box was created above, and all threads of the program have been joined.
    drop(unsafe { Box::from_raw(owned) });
    counts
}

/// Implementation of the trait over the current back-end.
struct Over<F>(PhantomData<F>);

fn class_of(block: NonNull<u8>) -> SizeClass {
    let run = backend().memory().run_of(block.addr().get());
    run.map_or(SizeClass::NONE, |run| run.class())
}

fn take<F: FrontEnd>(class: SizeClass) -> Option<NonNull<u8>> {
    let Some(heap) = heap() else {
        return or_refused(NonNull::new(backend().take_without_heap(class)));
    };
    let block = heap.magazine(class).pop();
    if block.is_null() {
        return or_refused(NonNull::new(F::refill(backend(), heap, class)));
    }
    NonNull::new(block)
}

fn take_large(size: usize, alignment: usize) -> Option<Large> {
    or_refused(allocate_large(backend(), size, alignment))
}

/// Counts a request that failed.
fn or_refused<T>(taken: Option<T>) -> Option<T> {
    if taken.is_none() {
        REFUSED.fetch_add(1, SeqCst);
    }
    taken
}

// SAFETY: blocks come from slabs, runs and mappings of the current back-end, which no other code
// uses. Class sizes are multiples of 16 and of the requested alignment. `allocate_zeroed` clears
// every block that does not read as zero, and a block that moves is copied or remapped.
unsafe impl<F: FrontEnd> MallocAbi for Over<F> {
    const NAME: &'static str = F::NAME;

    fn allocate(size: usize) -> Option<NonNull<u8>> {
        if size <= LARGEST {
            return take::<F>(SizeClass::of(size));
        }
        Some(take_large(size, UNIT)?.block)
    }

    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        match SizeClass::of_aligned(size, alignment) {
            Some(class) => take::<F>(class),
            None => Some(take_large(size, alignment)?.block),
        }
    }

    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>> {
        let (block, clean) = if size <= LARGEST {
            (take::<F>(SizeClass::of(size))?, false)
        } else {
            let large = take_large(size, UNIT)?;
            (large.block, large.clean)
        };
        if !clean {
            // SAFETY: the block is new and has at least `size` bytes.
            unsafe { block.write_bytes(0, size) };
        }
        Some(block)
    }

    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: by this function's contract, the block is live, and the caller does not use it
        // again if the result is another block. New blocks are different from it, and both have at
        // least the copied number of bytes.
        unsafe {
            let class = class_of(block);
            if !class.is_slab()
                && size > LARGEST
                && let Some(resized) = backend().mapped.resize(backend().memory(), block, size)
            {
                return Some(resized);
            }
            let grown = (class == SizeClass::LARGE && size > LARGEST)
                .then(|| allocate_grown(backend(), size));
            let to = grown.flatten().or_else(|| Self::allocate(size))?;
            to.copy_from_nonoverlapping(block, Self::usable_size(block).min(size));
            Self::deallocate(block);
            Some(to)
        }
    }

    unsafe fn deallocate(block: NonNull<u8>) {
        let address = block.addr().get();
        let class = class_of(block);
        // SAFETY: by this function's contract, the block is live, so it is on no list of free
        // blocks, and the caller no longer uses it. If it lies in a slab, `class_of` returned the
        // slab's class. The heap belongs to this thread.
        unsafe {
            if class == SizeClass::LARGE {
                assert_eq!(free_large(backend(), address), Ok(()));
            } else if !class.is_slab() {
                assert!(
                    backend().mapped.free(&backend().memory().pages, address),
                    "{address:#x} is no block"
                );
            } else if let Some(heap) = heap() {
                if !F::free(&heap.front, block.as_ptr()) {
                    if heap.front.is_due() {
                        look_around(backend(), heap);
                    }
                    F::put(backend(), heap, FreeBlock::new(class, block));
                }
            } else {
                backend().give_one(None, FreeBlock::new(class, block));
            }
        }
    }

    unsafe fn usable_size(block: NonNull<u8>) -> usize {
        let address = block.addr().get();
        let class = class_of(block);
        if class.is_slab() {
            return class.size();
        }
        if class == SizeClass::LARGE {
            return usable(backend().memory(), address).unwrap_or(0);
        }
        let mapped = backend().mapped.find(address);
        mapped.map_or(0, |entry| entry.size)
    }

    fn trim(keep: usize) -> bool {
        // Each trim moves the thread to another processor, and thereby perhaps to another shard.
        let processor = MOVES.fetch_add(1, SeqCst);
        backend().memory().pages.set_processor(processor);
        let heap = HEAP.with(|attached| attached.0.get());
        trim(backend(), heap, keep)
    }
}
