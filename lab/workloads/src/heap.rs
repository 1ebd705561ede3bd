//! Heap under test: its interface, and the C library as its implementation.

/// Heap from which a workload allocates its blocks.
pub trait Heap: Sync {
    /// Allocates a block of `size` bytes, or returns null. `alignment` is a power of two, or 0 for
    /// malloc's default.
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8;

    /// Frees a block, on any thread.
    ///
    /// # Safety
    /// `block` came from `allocate` or `reallocate` of this heap with this `size`, has not been
    /// freed since, and is not used afterwards.
    unsafe fn free(&self, block: *mut u8, size: usize);

    /// Changes the size of a block, which may move, and returns it; null if the heap is out of
    /// memory. A null `block` is a request for a new block.
    ///
    /// # Safety
    /// `block` is null, or came from this heap with the size `old` and malloc's default alignment,
    /// has not been freed since, and is not used afterwards unless this function returns null.
    unsafe fn reallocate(&self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        let moved = self.allocate(new, 0);
        if !moved.is_null() && !block.is_null() {
            // SAFETY: by this function's contract `block` is in use and has `old` bytes; `moved` is
            // a new block of `new` bytes, so the two do not overlap.
            unsafe { moved.copy_from_nonoverlapping(block, old.min(new)) };
            // SAFETY: by this function's contract `block` came from this heap with the size `old`
            // and is in use. Because the result is not null, it is not used afterwards.
            unsafe { self.free(block, old) };
        }
        moved
    }

    /// Purges as much of the heap's free memory as possible. Returns false if the heap has no such
    /// function.
    fn trim(&self) -> bool {
        false
    }

    /// Announces that the calling thread will use the heap. Threads that do not start within the
    /// measured part call this before that part begins.
    fn enter(&self) {}

    /// Announces that the calling thread will not use the heap again.
    fn leave(&self) {}
}

/// The C library's interface, which a preloaded allocator may serve.
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
        // SAFETY: by the contract of `Heap::free` the block came from malloc, posix_memalign or
        // realloc, is in use, and is not used afterwards.
        unsafe { libc::free(block.cast()) }
    }

    #[inline]
    unsafe fn reallocate(&self, block: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: by the contract of `Heap::reallocate` the block is null, or came from malloc or
        // realloc, is in use, and is not used afterwards unless the result is null. No caller
        // passes a size of 0.
        unsafe { libc::realloc(block.cast(), new) }.cast()
    }

    fn trim(&self) -> bool {
        let Some(trim) = own_malloc_trim() else {
            return false;
        };
        // SAFETY: `own_malloc_trim` returns only functions of this type, and 0 is a valid amount to
        // keep.
        unsafe { trim(0) };
        true
    }
}

type MallocTrim = unsafe extern "C" fn(libc::size_t) -> libc::c_int;

/// Returns `malloc_trim` of the object that serves malloc. Returns `None` if that object has no
/// such function, because the C library's function would then trim a heap that is not in use.
fn own_malloc_trim() -> Option<MallocTrim> {
    let [malloc, trim] = [c"malloc", c"malloc_trim"].map(|name| {
        // SAFETY: the name ends in a zero byte.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    });
    let own = !trim.is_null() && object_of(trim)? == object_of(malloc)?;
    // SAFETY: a symbol of this name is glibc's function or an allocator's replacement, which has
    // this signature.
    own.then(|| unsafe { std::mem::transmute::<*mut libc::c_void, MallocTrim>(trim) })
}

/// Returns the base address of the object that contains an address.
fn object_of(address: *const libc::c_void) -> Option<usize> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `found` has room for the answer; dladdr accepts any address.
    let known = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: all fields were zeroed, which is a valid value (null pointers), and dladdr may have
    // written valid values over it.
    let found = unsafe { found.assume_init() };
    known.then(|| found.dli_fbase.addr())
}
