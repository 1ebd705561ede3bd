//! Back-end over simulated pages whose arenas are small from the start.

use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_pages::Simulated;

/// Returns a new back-end that can reserve at most `limit` bytes.
pub fn backend(limit: usize) -> Heaps<Simulated> {
    let backend = Heaps::new(Simulated::new(limit));
    backend.start(|| Settings {
        arena: 0,
        ..Settings::DEFAULT
    });
    backend
}
