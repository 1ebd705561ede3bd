//! elfmalloc's back-end over simulated pages, and operations with which threads take blocks and
//! give them back.

use std::ptr::null_mut;
use std::sync::Arc;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::slabs::bin::ClassBin;
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlocks;
use heapdrome_pages::Simulated;

/// Back-end that the threads of a model share.
pub type Shared = Arc<Heaps<Simulated>>;

/// Settings of models: small arenas, no decay, and magazines with at most 14 blocks of the class
/// [`many`].
pub const SETTINGS: Settings = Settings {
    arena: 0,
    decay: u64::MAX,
    magazine: 14 * 512 / 4,
    ..Settings::DEFAULT
};

/// Returns a back-end that has not started.
#[must_use]
pub fn new_backend() -> Shared {
    Arc::from(Box::new(Heaps::new(Simulated::new(64 << 20))))
}

/// Returns a back-end that has started.
#[must_use]
pub fn backend() -> Shared {
    let backend = new_backend();
    backend.start(|| SETTINGS);
    backend
}

/// Pointer or handle that is sent to another thread.
#[derive(Clone, Copy, Debug)]
pub struct Sent<T>(pub T);
// SAFETY: models send only pointers that any thread may use, and handles of heaps that only one
// thread uses at a time.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    /// Returns the pointer or handle.
    pub fn get(self) -> T {
        self.0
    }
}

/// Returns a small class, for which each shard has its own slabs.
#[must_use]
pub fn small() -> SizeClass {
    SizeClass::of(2048)
}

/// Returns a small class whose magazines are flushed to depots in batches.
#[must_use]
pub fn many() -> SizeClass {
    SizeClass::of(512)
}

/// Takes blocks from the bin of the heap's thread.
///
/// # Panics
///
/// If out of memory.
#[must_use]
pub fn take(backend: &Shared, heap: HeapRef, class: SizeClass, count: usize) -> Vec<*mut u8> {
    let mut slots: Vec<*mut u8> = vec![null_mut(); count];
    let mut taken = 0;
    while taken < count {
        let more = backend.take(backend.bin(heap, class), &mut slots[taken..]);
        assert_ne!(more, 0, "there is memory");
        taken += more;
    }
    slots
}

/// Gives blocks back to their slabs.
///
/// # Panics
///
/// If a pointer is not an allocated block.
pub fn give_all(
    backend: &Shared,
    home: Option<ClassBin<'_>>,
    class: SizeClass,
    blocks: &mut [*mut u8],
) {
    // SAFETY: callers pass allocated blocks of `class`, which are on no list of free blocks and
    // which the model no longer uses.
    let blocks = unsafe { FreeBlocks::new(class, blocks) };
    assert!(backend.shards.give(home, blocks).is_ok());
}

/// Gives a block back to its slab, as a thread without a heap does.
///
/// # Panics
///
/// If `block` is not an allocated block.
pub fn give(backend: &Shared, class: SizeClass, block: *mut u8) {
    give_all(backend, None, class, &mut [block]);
}
