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

    /// Asks the heap to give back to the system what it can; whether it is a heap that can be
    /// asked.
    fn trim(&self) -> bool {
        false
    }

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
    fn trim(&self) -> bool {
        let Some(trim) = own_malloc_trim() else {
            return false;
        };
        // SAFETY: `own_malloc_trim` gives the function of this type that malloc's object exports.
        unsafe { trim(0) };
        true
    }
}

type MallocTrim = unsafe extern "C" fn(libc::size_t) -> libc::c_int;

/// `malloc_trim` of the object that serves malloc. The C library's trims a heap that nobody uses
/// where another allocator is preloaded that has none; that one is not meant.
fn own_malloc_trim() -> Option<MallocTrim> {
    let [malloc, trim] = [c"malloc", c"malloc_trim"].map(|name| {
        // SAFETY: the name ends in a zero byte.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    });
    let own = !trim.is_null() && object_of(trim)? == object_of(malloc)?;
    // SAFETY: a symbol of this name is glibc's function or one that an allocator puts in its place,
    // which programs call by this type.
    own.then(|| unsafe { std::mem::transmute::<*mut libc::c_void, MallocTrim>(trim) })
}

/// Where the object is mapped that an address belongs to.
fn object_of(address: *const libc::c_void) -> Option<usize> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `found` is a place for the answer; any address may be asked for.
    let known = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: zero bytes are a value of it, null pointers, and dladdr wrote the rest.
    let found = unsafe { found.assume_init() };
    known.then(|| found.dli_fbase.addr())
}
