//! elfmalloc's back-end over simulated pages, and what threads do with it.

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

/// What models ask for: small arenas, no clock, magazines of 14 blocks of [`many`] for ever.
pub const SETTINGS: Settings = Settings {
    arena: 0,
    decay: u64::MAX,
    magazine: 14 * 512 / 4,
    ..Settings::DEFAULT
};

/// A back-end that has not started.
#[must_use]
pub fn new_backend() -> Shared {
    Arc::from(Box::new(Heaps::new(Simulated::new(64 << 20))))
}

/// A back-end that has.
#[must_use]
pub fn backend() -> Shared {
    let backend = new_backend();
    backend.start(|| SETTINGS);
    backend
}

/// A pointer that goes to another thread.
#[derive(Clone, Copy, Debug)]
pub struct Sent<T>(pub T);
// SAFETY: models hand on what any thread may use.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    /// The pointer.
    pub fn get(self) -> T {
        self.0
    }
}

/// A class whose slabs threads have for themselves.
#[must_use]
pub fn small() -> SizeClass {
    SizeClass::of(2048)
}

/// One of whose blocks as many leave a magazine at once as a depot takes.
#[must_use]
pub fn many() -> SizeClass {
    SizeClass::of(512)
}

/// Takes blocks from the slabs that the heap's thread uses.
///
/// # Panics
///
/// Where there are none.
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
/// If one is none.
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
/// If it is none.
pub fn give(backend: &Shared, class: SizeClass, block: *mut u8) {
    give_all(backend, None, class, &mut [block]);
}
