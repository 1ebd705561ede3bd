//! Implementation of [`Pages`] with Linux system calls.

#[cfg(not(any(miri, sanitized)))]
use core::ptr::with_exposed_provenance_mut;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(not(miri))]
use crate::Placed;
use crate::{Access, Advice, KeepErrno, Pages, Remap};

/// Memory of this process, mapped by Linux.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);

fn protection(access: Access) -> libc::c_int {
    match access {
        Access::None => libc::PROT_NONE,
        Access::Read => libc::PROT_READ,
        Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
    }
}

/// Flags for new, private memory. `MAP_NORESERVE` asks the system not to count the memory against
/// the limit on committed memory.
const ANONYMOUS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

fn map(size: usize, access: Access) -> Option<NonNull<u8>> {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice replaces no other
    // mapping.
    let start = unsafe { libc::mmap(null_mut(), size, protection(access), ANONYMOUS, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    NonNull::new(start.cast())
}

/// Unmaps `size` bytes; `size` may be zero. Returns false if the kernel refuses.
///
/// # Safety
///
/// The caller mapped the range, and does not use it.
unsafe fn unmap(start: *mut u8, size: usize) -> bool {
    // SAFETY: by this function's contract, the caller mapped the range, and does not use it.
    size == 0 || unsafe { libc::munmap(start.cast(), size) } == 0
}

/// Maps more than necessary, and unmaps the parts before and behind the aligned range.
fn map_aligned(size: usize, alignment: usize, page: usize, access: Access) -> Option<NonNull<u8>> {
    let whole = size.checked_add(alignment - page)?;
    let start = map(whole, access)?.as_ptr();
    let head = start.align_offset(alignment);
    // SAFETY: head is at most alignment - page, so head + size lies within the new mapping, which
    // no code uses yet. If the kernel refuses to unmap an edge, only address space is lost.
    unsafe {
        unmap(start, head);
        unmap(start.add(head + size), whole - head - size);
        NonNull::new(start.add(head))
    }
}

// SAFETY: memory comes from anonymous private mappings that no other code uses: zeroed, aligned by
// `reserve`, and with the requested access. The kernel keeps them until their owner changes them.
unsafe impl Pages for Linux {
    #[inline]
    fn page_size(&self) -> usize {
        // Relaxed: every thread computes the same value, and no other memory depends on it.
        let known = PAGE_SIZE.load(Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: no precondition. `sysconf` returns the same number, but its code lies on pages of
        // the C library that few programs use, and would become resident.
        let asked = unsafe { libc::getauxval(libc::AT_PAGESZ) };
        let size = usize::try_from(asked)
            .ok()
            .filter(|size| size.is_power_of_two());
        let size = size.unwrap_or(4096);
        PAGE_SIZE.store(size, Relaxed);
        size
    }

    fn reserve(&self, size: usize, alignment: usize, access: Access) -> Option<NonNull<u8>> {
        let _errno = KeepErrno::new();
        let page = self.page_size();
        debug_assert!(size != 0 && size.is_multiple_of(page) && alignment.is_power_of_two());
        let start = map(size, access)?;
        if start.as_ptr().align_offset(alignment) == 0 {
            return Some(start);
        }
        // SAFETY: the mapping was made above and is unused.
        unsafe { unmap(start.as_ptr(), size) };
        map_aligned(size, alignment, page, access)
    }

    /// Returns about half the address of a new mapping, without checking that the range is free.
    /// The kernel places mappings from the highest address downward, or from a third of the address
    /// space upward. In either case, with addresses of 47 bits or more, it reaches the returned
    /// address only after tens of terabytes. An emulator may begin at the lowest address; then the
    /// result lies above the new mapping.
    ///
    /// Does not work with ThreadSanitizer, which keeps its shadow memory at these addresses and
    /// ends the program.
    #[cfg(not(any(miri, sanitized)))]
    fn find_room(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        let _errno = KeepErrno::new();
        let page = self.page_size();
        let highest = map(page, Access::None)?;
        // SAFETY: the page was mapped above and is unused.
        unsafe { unmap(highest.as_ptr(), page) };
        let here = highest.addr().get();
        let start = if here / 4 > size {
            here / 2
        } else {
            here.checked_add(size)?
        };
        NonNull::new(with_exposed_provenance_mut(start & !(alignment - 1)))
    }

    #[cfg(not(miri))]
    fn reserve_at(&self, start: NonNull<u8>, size: usize, access: Access) -> Placed {
        let _errno = KeepErrno::new();
        let flags = ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let place = start.as_ptr().cast();
        // SAFETY: the flags forbid replacing another mapping.
        let found = unsafe { libc::mmap(place, size, protection(access), flags, -1, 0) };
        if found == place {
            return Placed::Done;
        }
        if found == libc::MAP_FAILED {
            // SAFETY: the address is the calling thread's own errno.
            let occupied = unsafe { *libc::__errno_location() } == libc::EEXIST;
            return if occupied {
                Placed::Occupied
            } else {
                Placed::Refused
            };
        }
        // Before Linux 4.17, the address is only a hint. SAFETY: the mapping was made above and is
        // unused.
        unsafe { unmap(found.cast(), size) };
        Placed::Refused
    }

    unsafe fn protect(&self, start: NonNull<u8>, size: usize, access: Access) -> bool {
        let _errno = KeepErrno::new();
        // SAFETY: by this function's contract, this is a range of a reservation, and no code relies
        // on accesses that this call forbids.
        unsafe { libc::mprotect(start.as_ptr().cast(), size, protection(access)) == 0 }
    }

    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool {
        let _errno = KeepErrno::new();
        // SAFETY: by this function's contract, this is a range of a reservation whose contents no
        // code needs.
        unsafe { libc::madvise(start.as_ptr().cast(), size, libc::MADV_DONTNEED) == 0 }
    }

    unsafe fn advise(&self, start: NonNull<u8>, size: usize, advice: Advice) -> bool {
        let _errno = KeepErrno::new();
        let advice = match advice {
            Advice::HugePages => libc::MADV_HUGEPAGE,
            Advice::NoHugePages => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: advice on huge pages changes no contents.
        unsafe { libc::madvise(start.as_ptr().cast(), size, advice) == 0 }
    }

    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>> {
        let _errno = KeepErrno::new();
        let (flags, target) = match how {
            Remap::InPlace => (0, null_mut()),
            Remap::MayMove => (libc::MREMAP_MAYMOVE, null_mut()),
            Remap::Onto(target) => (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, target.as_ptr()),
        };
        // SAFETY: by this function's contract, one earlier call returned this range, and no code
        // uses addresses that this call releases. The target is an unused range of a reservation.
        // Without MREMAP_FIXED the kernel ignores the target.
        let moved = unsafe { libc::mremap(start.as_ptr().cast(), size, new_size, flags, target) };
        if moved == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(moved.cast())
    }

    unsafe fn detach(&self, start: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let _errno = KeepErrno::new();
        // Supported by Linux 5.7 and later; older kernels refuse.
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
        // SAFETY: by this function's contract, this is a range of a reservation, and no other code
        // uses it during the call.
        let moved = unsafe { libc::mremap(start.as_ptr().cast(), size, size, flags) };
        if moved == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(moved.cast())
    }

    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool {
        let _errno = KeepErrno::new();
        // SAFETY: by this function's contract, this is a range of a reservation that is no longer
        // used.
        unsafe { unmap(start.as_ptr(), size) }
    }

    #[cfg(not(miri))]
    #[inline]
    fn processor(&self) -> Option<usize> {
        crate::system::processor()
    }
}
