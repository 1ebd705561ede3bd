//! Contract between an allocator and the operating system: what it may ask for, and what it owes.

use core::ptr::NonNull;

/// Permitted use of a range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No access: address space only. It counts against the limit on address space, not against the
    /// limit on committed memory.
    None,
    /// Read access.
    Read,
    /// Read and write access.
    ReadWrite,
}

/// Result of a reservation at an address that the caller chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The range is reserved.
    Done,
    /// Another mapping has part of the range.
    Occupied,
    /// The system has no room, or cannot place mappings.
    Refused,
}

/// Advice to the system about huge pages in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Use them as soon as possible.
    HugePages,
    /// Never use them.
    NoHugePages,
}

/// Whether a mapping may move when its size changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remap {
    /// It stays where it is, or the change fails.
    InPlace,
    /// It may move to any address that the system chooses; only the alignment of a page is kept.
    MayMove,
    /// It moves onto this range of a reservation, which has the new size, and replaces it. If that
    /// fails, the range may have been released.
    Onto(NonNull<u8>),
}

/// The operating system's memory, and the processor that a thread is on.
///
/// Every range is given by its start and its size in bytes. Both are multiples of
/// [`page_size`](Self::page_size), the size is not zero, and `start + size` does not overflow:
/// below, *a range* means this. A range *of a reservation* lies wholly in memory that `reserve` or
/// `remap` returned and that has not been released since; it may span several adjacent
/// reservations.
///
/// No function changes `errno`, allocates, or unwinds.
///
/// # Safety
///
/// An implementation returns memory that no other code uses, aligned as requested, zeroed, and with
/// the requested access. It stays so until the owner changes it.
pub unsafe trait Pages: Sync {
    /// Returns the size of a page: a power of two, the same at every call.
    fn page_size(&self) -> usize;

    /// Reserves `size` bytes that begin at a multiple of `alignment` and read as zero.
    ///
    /// A page takes memory only from its first write on. The reservation asks the system to count
    /// only written pages (a strict overcommit policy counts all of a writable one).
    ///
    /// `size` is a multiple of the page size and not zero; `alignment` is a power of two. Returns
    /// `None` if the system lacks address space, committed memory, or mappings.
    fn reserve(&self, size: usize, alignment: usize, access: Access) -> Option<NonNull<u8>>;

    /// Returns the start of a free range at a multiple of `alignment`, at addresses that the system
    /// hands out to other mappings last. Reserves nothing. Returns `None` if the system cannot find
    /// one.
    ///
    /// `size` is a multiple of the page size and not zero; `alignment` is a power of two.
    fn find_room(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        let _ = (size, alignment);
        None
    }

    /// Reserves a range at an address that [`find_room`](Self::find_room) returned, or behind such
    /// a range; otherwise like [`reserve`](Self::reserve). It never replaces an existing mapping.
    fn reserve_at(&self, start: NonNull<u8>, size: usize, access: Access) -> Placed {
        let _ = (start, size, access);
        Placed::Refused
    }

    /// Changes the access to a range. On `false`, the access to parts of it may have changed.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation, and no code relies on accesses that this
    /// forbids.
    unsafe fn protect(&self, start: NonNull<u8>, size: usize, access: Access) -> bool;

    /// Returns the memory behind a range to the system immediately. The range stays reserved, and
    /// reads as zero. On `false`, the contents are undefined, and the memory may or may not have
    /// been returned.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation whose contents no code needs.
    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool;

    /// Advises the system how the range will be used. `false` means that the system refused the
    /// advice, which affects only speed.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation.
    unsafe fn advise(&self, start: NonNull<u8>, size: usize, advice: Advice) -> bool;

    /// Changes the size of a range. The contents move along, and added memory reads as zero. If the
    /// range shrinks, its tail is released. `None` leaves everything as it was.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range that one call of `reserve` or `remap` returned, with one
    /// access and one advice throughout. `new_size` is a multiple of the page size and not zero. If
    /// the result differs from `start`, the old range is released. A range to move onto is unused,
    /// and does not overlap the old one.
    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>>;

    /// Moves the memory behind a range to a reservation of its own, of the same size and access,
    /// without copying. The original range stays reserved and then reads as zero. `None` leaves
    /// everything as it was; a system need not support this.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation with one access throughout, which no other
    /// code uses during the call.
    unsafe fn detach(&self, start: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let _ = (start, size);
        None
    }

    /// Releases a range: addresses and memory. `false` means that the system refused. It may do so
    /// if a mapping would have to be split and the process has reached its limit on mappings. The
    /// range is then unchanged and still the caller's.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation that is no longer used.
    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool;

    /// Returns the number of the processor that the calling thread runs on. By the time the caller
    /// reads it, the thread may run on another one. Returns `None` if the system does not report
    /// it.
    fn processor(&self) -> Option<usize> {
        None
    }
}
