//! Allocator under test: a table of functions.

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use heapdrome_malloc_abi::{MallocAbi, exported};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type PosixMemalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void);
type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
type Trim = unsafe extern "C" fn(usize) -> c_int;

/// Functions that operation programs call.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub(crate) malloc: Malloc,
    pub(crate) calloc: Calloc,
    pub(crate) realloc: Realloc,
    pub(crate) posix_memalign: PosixMemalign,
    pub(crate) free: Free,
    pub(crate) malloc_usable_size: UsableSize,
    pub(crate) malloc_trim: Trim,
    /// Whether the allocator may run out of memory, so that null is a valid result.
    pub(crate) refuses: bool,
}

impl Subject {
    /// Returns the allocator of this process: the C library's, or a preloaded library's.
    ///
    /// # Errors
    ///
    /// If a function is missing.
    pub fn of_process() -> Result<Self, String> {
        // SAFETY: the default scope is a valid handle for dlsym.
        unsafe { Self::look_up(libc::RTLD_DEFAULT) }
    }

    /// Loads a library and never unloads it. The process keeps its own allocator.
    ///
    /// # Errors
    ///
    /// If the library cannot be loaded, or a function is missing.
    pub fn load(library: &Path) -> Result<Self, String> {
        let path = CString::new(library.as_os_str().as_bytes())
            .map_err(|_| format!("{}: a path has no zero bytes", library.display()))?;
        // SAFETY: the path is NUL-terminated. The library's constructors run; a user who tests a
        // library must trust them.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: dlerror returns null or a string that lives until the next call.
            let why = unsafe {
                let error = libc::dlerror();
                if error.is_null() {
                    c"unknown"
                } else {
                    CStr::from_ptr(error)
                }
            };
            return Err(format!(
                "cannot load the library: {}",
                why.to_string_lossy()
            ));
        }
        // SAFETY: the handle is valid and never closed.
        unsafe { Self::look_up(handle) }
    }

    /// Looks up the functions in a library.
    ///
    /// # Safety
    ///
    /// The handle is valid.
    unsafe fn look_up(handle: *mut c_void) -> Result<Self, String> {
        let find = |name: &CStr| {
            // SAFETY: the handle is valid, by this function's contract, and the name is
            // NUL-terminated.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            let missing = || format!("the library has no function {}", name.to_string_lossy());
            (!found.is_null()).then_some(found).ok_or_else(missing)
        };
        // SAFETY: functions with these names have these types in the C standard or in glibc.
        unsafe {
            Ok(Self {
                malloc: transmute::<*mut c_void, Malloc>(find(c"malloc")?),
                calloc: transmute::<*mut c_void, Calloc>(find(c"calloc")?),
                realloc: transmute::<*mut c_void, Realloc>(find(c"realloc")?),
                posix_memalign: transmute::<*mut c_void, PosixMemalign>(find(c"posix_memalign")?),
                free: transmute::<*mut c_void, Free>(find(c"free")?),
                malloc_usable_size: transmute::<*mut c_void, UsableSize>(find(
                    c"malloc_usable_size",
                )?),
                malloc_trim: transmute::<*mut c_void, Trim>(find(c"malloc_trim")?),
                refuses: false,
            })
        }
    }

    /// Returns the functions of an implementation of `MallocAbi`, which need not be exported.
    #[must_use]
    pub fn of<A: MallocAbi>() -> Self {
        Self {
            malloc: malloc::<A>,
            calloc: calloc::<A>,
            realloc: realloc::<A>,
            posix_memalign: posix_memalign::<A>,
            free: free::<A>,
            malloc_usable_size: malloc_usable_size::<A>,
            malloc_trim: malloc_trim::<A>,
            refuses: false,
        }
    }

    /// Returns this subject for tests with scarce memory: functions may return null, and a block
    /// must be unchanged after a failed `realloc`.
    #[must_use]
    pub const fn that_may_refuse(self) -> Self {
        Self {
            refuses: true,
            ..self
        }
    }
}

extern "C" fn malloc<A: MallocAbi>(size: usize) -> *mut c_void {
    exported::malloc::<A>(size)
}

extern "C" fn calloc<A: MallocAbi>(count: usize, size: usize) -> *mut c_void {
    exported::calloc::<A>(count, size)
}

unsafe extern "C" fn realloc<A: MallocAbi>(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: this function's contract is that of realloc.
    unsafe { exported::realloc::<A>(block, size) }
}

unsafe extern "C" fn posix_memalign<A: MallocAbi>(
    place: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    // SAFETY: this function's contract is that of posix_memalign.
    unsafe { exported::posix_memalign::<A>(place, alignment, size) }
}

unsafe extern "C" fn free<A: MallocAbi>(block: *mut c_void) {
    // SAFETY: this function's contract is that of free.
    unsafe { exported::free::<A>(block) }
}

unsafe extern "C" fn malloc_usable_size<A: MallocAbi>(block: *mut c_void) -> usize {
    // SAFETY: this function's contract is that of malloc_usable_size.
    unsafe { exported::malloc_usable_size::<A>(block) }
}

extern "C" fn malloc_trim<A: MallocAbi>(keep: usize) -> c_int {
    exported::malloc_trim::<A>(keep)
}
