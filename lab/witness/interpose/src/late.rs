//! Finds the objects that were loaded after the program's start, in a forked child.
//!
//! `dl_iterate_phdr` takes a lock of the loader that glibc does not reset in a child. If another
//! thread of the parent held that lock, the child would deadlock. So the child follows the loader's
//! list itself, while it has only one thread.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::kernel;
use crate::system::{self, LinkMap, ObjectInfo, ProgramHeader, Visit};

const MAGIC: [u8; 4] = *b"\x7fELF";

/// The last object of the loader's list when this library's constructor ran. It is never unloaded,
/// unless an earlier constructor loaded it.
static LAST: AtomicPtr<LinkMap> = AtomicPtr::new(null_mut());

/// The header of a 64-bit ELF file, up to the number of program headers.
#[repr(C)]
struct FileHeader {
    magic: [u8; 4],
    rest: [u8; 28],
    program_headers: u64,
    section_headers: u64,
    flags: u32,
    size: u16,
    program_header_size: u16,
    program_header_count: u16,
}

/// Stores in `LAST` the last object that was loaded with the program.
pub fn begin() {
    // SAFETY: the loader fills its list before constructors run. The code assumes that threads of
    // earlier constructors do not load or unload objects now.
    unsafe {
        let mut last = system::_r_debug.objects;
        while !last.is_null() && !(*last).next.is_null() {
            last = (*last).next;
        }
        LAST.store(last, Ordering::Release);
    }
}

/// Returns whether any object that was loaded after the program's start is still loaded.
pub fn any() -> bool {
    let last = LAST.load(Ordering::Acquire);
    // SAFETY: `LAST` stays in the list, if no earlier constructor loaded it. Only a forked child
    // with one thread calls this function, so no other thread changes the list.
    !last.is_null() && !unsafe { (*last).next }.is_null()
}

/// Calls `visit` for each object that was loaded after the program's start, until it returns a
/// value other than 0.
///
/// # Safety
/// The process has one thread, and `data` has the type that `visit` expects.
pub unsafe fn each(visit: Visit, data: *mut c_void) {
    let mut object = LAST.load(Ordering::Acquire);
    // SAFETY: `LAST` stays in the list, if no earlier constructor loaded it. The process has one
    // thread, so no other thread changes the list. By contract `data` has the type that `visit`
    // expects. The list may contain an object that a thread of the parent had already unmapped and
    // was about to remove; `describe` skips it.
    unsafe {
        while !object.is_null() {
            object = (*object).next;
            let found = object.as_ref().and_then(|object| describe(object));
            if found.is_some_and(|found| visit(&raw const found, size_of_val(&found), data) != 0) {
                return;
            }
        }
    }
}

/// Describes an object as `dl_iterate_phdr` would. Returns `None` if its first page is not mapped,
/// or does not contain the file's header.
///
/// # Safety
/// The process has one thread.
unsafe fn describe(object: &LinkMap) -> Option<ObjectInfo> {
    let header = object.base as *const FileHeader;
    if object.base == 0 || !kernel::is_mapped(object.base) {
        return None;
    }
    // SAFETY: the page is mapped, and stays mapped because the process has one thread. The loader
    // maps objects as readable.
    let header = unsafe { &*header };
    (header.magic == MAGIC).then(|| ObjectInfo {
        base: object.base,
        name: object.name,
        headers: object.base.wrapping_add(header.program_headers as usize) as *const ProgramHeader,
        header_count: header.program_header_count,
    })
}
