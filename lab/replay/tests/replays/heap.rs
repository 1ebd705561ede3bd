//! A heap that knows its live blocks.

use std::collections::HashMap;
use std::sync::Mutex;

use heapdrome_replay::{Heap, Libc};

/// The C library's heap, with a record of its blocks.
#[derive(Default)]
pub struct Recorder {
    live: Mutex<HashMap<usize, usize>>,
    /// Number of calls with an address that belonged to no live block.
    strange: Mutex<usize>,
}

impl Recorder {
    /// Frees the live blocks. Returns their sizes, and the number of calls with an address that
    /// belonged to no live block.
    pub fn finish(self) -> (Vec<usize>, usize) {
        let live = self.live.into_inner().expect("no thread panicked");
        let mut sizes: Vec<_> = live.values().copied().collect();
        sizes.sort_unstable();
        for address in live.into_keys() {
            let block = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the block came from `Libc` and is live, and nothing uses it any longer.
            unsafe { Libc.free(block) };
        }
        (
            sizes,
            self.strange.into_inner().expect("no thread panicked"),
        )
    }

    fn made(&self, block: *mut u8, size: usize) -> *mut u8 {
        let mut live = self.live.lock().expect("no thread panicked");
        live.insert(block.expose_provenance(), size);
        block
    }

    /// Removes a block, and returns whether it was live. Counts the call in `strange` if it was
    /// not.
    fn freed(&self, block: *mut u8) -> bool {
        let mut live = self.live.lock().expect("no thread panicked");
        let lived = live.remove(&block.addr()).is_some();
        if !lived {
            *self.strange.lock().expect("no thread panicked") += 1;
        }
        lived
    }
}

// SAFETY: `Libc` makes all blocks. It frees or resizes each at most once, because the block leaves
// the record of live blocks first.
unsafe impl Heap for Recorder {
    fn malloc(&self, size: usize) -> *mut u8 {
        self.made(Libc.malloc(size), size)
    }

    fn calloc(&self, size: usize) -> *mut u8 {
        self.made(Libc.calloc(size), size)
    }

    fn aligned(&self, alignment: usize, size: usize) -> *mut u8 {
        let block = Libc.aligned(alignment, size);
        assert!(block.addr().is_multiple_of(alignment));
        self.made(block, size)
    }

    fn aligned_alloc(&self, alignment: usize, size: usize) -> *mut u8 {
        self.made(Libc.aligned_alloc(alignment, size), size)
    }

    unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8 {
        match self.freed(block) {
            // SAFETY: the block came from `Libc` and was live. By this function's contract it is
            // not used again.
            true => self.made(unsafe { Libc.realloc(block, size) }, size),
            false => self.malloc(size),
        }
    }

    unsafe fn free(&self, block: *mut u8) {
        if !block.is_null() && self.freed(block) {
            // SAFETY: the block came from `Libc` and was live. By this function's contract it is
            // not used again.
            unsafe { Libc.free(block) };
        }
    }
}
