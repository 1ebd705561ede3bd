//! What the forking thread does between the handlers, over simulated pages.

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::backend::Backend;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_pages::Simulated;

#[test]
fn locks_of_a_heap_that_was_made_meanwhile_are_left_to_who_holds_them() {
    let backend = Backend::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 0,
        ..Settings::DEFAULT
    });
    let class = SizeClass::of(64);
    let before = backend.attach().expect("there is memory");
    backend.hold_all();
    // A handler of another library allocates, in a thread that never did.
    let heap = backend.attach().expect("there is memory");
    // SAFETY: heaps live for ever, and bins may be used by any thread.
    let (bin, old) = unsafe { (backend.bin(heap, class), backend.bin(before, class)) };
    let other = bin.try_lock();
    assert!(other.is_some() && old.try_lock().is_none());
    // SAFETY: this thread took the locks, and no guard of those is alive.
    unsafe { backend.release_all() };
    assert!(bin.try_lock().is_none(), "it was taken from its holder");
    assert!(old.try_lock().is_some());
    drop(other);
    backend.check();
}
