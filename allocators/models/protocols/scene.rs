//! elfmalloc's back-end over simulated pages, and operations of threads on it.

use std::ptr::null_mut;
use std::sync::Arc;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::slabs::bin::ClassBin;
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlocks;
use heapdrome_pages::Simulated;

/// Heaps that the threads of a model share.
pub type Shared = Arc<Heaps<Simulated>>;

/// Settings of models: small arenas, no clock, magazines with at most 14 blocks of [`many`].
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

/// Pointer that is sent to another thread.
#[derive(Clone, Copy, Debug)]
pub struct Sent<T>(pub T);
// SAFETY: models send only pointers that any thread may use.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    /// Returns the pointer.
    pub fn get(self) -> T {
        self.0
    }
}

/// Returns a class whose slabs threads have for themselves.
#[must_use]
pub fn small() -> SizeClass {
    SizeClass::of(2048)
}

/// Returns a class of whose blocks a magazine gives up as many in one batch as a depot takes.
#[must_use]
pub fn many() -> SizeClass {
    SizeClass::of(512)
}

/// Takes blocks from the slabs that the heap's thread uses.
///
/// # Panics
///
/// If there are none.
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
/// If one is no block in use.
pub fn give_all(
    backend: &Shared,
    home: Option<ClassBin<'_>>,
    class: SizeClass,
    blocks: &mut [*mut u8],
) {
    // SAFETY: models give up what they took.
    let blocks = unsafe { FreeBlocks::new(class, blocks) };
    assert!(backend.shards.give(home, blocks).is_ok());
}

/// Gives a block back to its slab, as a thread without a heap does.
///
/// # Panics
///
/// If it is no block in use.
pub fn give(backend: &Shared, class: SizeClass, block: *mut u8) {
    give_all(backend, None, class, &mut [block]);
}
