//! elfmalloc's back-end over simulated pages, and what threads do with it.

use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::backend::Backend;
use heapdrome_elfmalloc::heap::front::ThreadHeap;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_pages::Simulated;

/// A back-end that the threads of a model share.
pub type Shared = Arc<Backend<Simulated>>;

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
    Arc::from(Box::new(Backend::new(Simulated::new(64 << 20))))
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
pub fn take(
    backend: &Shared,
    heap: NonNull<ThreadHeap>,
    class: SizeClass,
    count: usize,
) -> Vec<*mut u8> {
    let mut slots: Vec<*mut u8> = vec![null_mut(); count];
    let mut taken = 0;
    while taken < count {
        // SAFETY: the heap is the model's, the bin one for the class, and the slots suffice.
        let more = unsafe {
            let bin = backend.bin(heap, class);
            backend.take(bin, class, slots.as_mut_ptr().add(taken), count - taken)
        };
        assert_ne!(more, 0, "there is memory");
        taken += more;
    }
    slots
}

/// Gives a block back to its slab, as a thread without a heap does.
///
/// # Panics
///
/// If it is none.
pub fn give(backend: &Shared, class: SizeClass, block: *mut u8) {
    // SAFETY: models give up what they took.
    assert_eq!(unsafe { backend.give(null(), class, &mut [block]) }, Ok(()));
}
