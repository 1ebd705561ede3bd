//! Where blocks come from.

/// Gives and takes back blocks of memory.
pub trait Heap: Sync {
    /// A block of `size` bytes, or null. `alignment` is 0 for what malloc gives, or a power of two.
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8;

    /// Takes a block back; any thread may bring it.
    ///
    /// # Safety
    /// `block` came from `allocate` of this heap with this `size`, has not been freed since, and is
    /// not used afterwards.
    unsafe fn free(&self, block: *mut u8, size: usize);

    /// A thread will use the heap from now on; called before anything is measured.
    fn enter(&self) {}

    /// The calling thread will not use the heap again.
    fn leave(&self) {}
}

/// The C library's interface, which a preloaded allocator serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Libc;

impl Heap for Libc {
    #[inline]
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8 {
        if alignment == 0 {
            // SAFETY: malloc may be called with any size.
            return unsafe { libc::malloc(size) }.cast();
        }
        let mut block = std::ptr::null_mut();
        // SAFETY: `block` is a place for a pointer; posix_memalign checks the alignment itself.
        let error = unsafe { libc::posix_memalign(&raw mut block, alignment, size) };
        match error {
            0 => block.cast(),
            _ => std::ptr::null_mut(),
        }
    }

    #[inline]
    unsafe fn free(&self, block: *mut u8, _size: usize) {
        // SAFETY: the caller brings a block that malloc or posix_memalign gave.
        unsafe { libc::free(block.cast()) }
    }
}
