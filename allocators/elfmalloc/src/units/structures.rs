//! Memory for structures: heaps, and the bitmaps of slabs.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::size_class::{SizeClass, UNIT, UNIT_SHIFT};

impl<P: Pages> Backend<P> {
    /// Zero memory for a structure without which no block can be served. Where the system has no more for
    /// structures, since blocks had it all, a unit that no block has any more serves for good.
    pub(crate) fn structure(&self, bytes: usize) -> Option<NonNull<u8>> {
        let found = self.metadata.lock().allocate(&self.pages, bytes);
        if found.is_some() {
            return found;
        }
        let run = self.allocate_run(bytes.div_ceil(UNIT), UNIT)?;
        let lent = run.units << UNIT_SHIFT;
        // SAFETY: the run is new and this function's; its descriptor and its class say that no block is there.
        unsafe {
            if !run.clean {
                run.base.as_ptr().write_bytes(0, lent);
            }
            let mut metadata = self.metadata.lock();
            // Two threads may come here at once: what is left of the first one's unit is lost then.
            metadata.add(run.base, lent);
            metadata.allocate(&self.pages, bytes)
        }
    }

    /// Gives back the bitmap of a slab that is no more, or that never came to be; null where it had none.
    pub(crate) fn free_bitmap(&self, external: *mut u64, class: SizeClass) {
        if let Some(words) = NonNull::new(external) {
            // SAFETY: the words were allocated with this size for a slab that is no more.
            unsafe {
                self.metadata
                    .lock()
                    .free(words.cast(), class.geometry().words() * 8)
            };
        }
    }
}
