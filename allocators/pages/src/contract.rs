//! What an allocator may ask of the operating system, and what it owes.

use core::ptr::NonNull;

/// What may be done with a range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: address space only. It counts against the limit on address space, not against the
    /// limit on committed memory.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
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

/// What the system may do about huge pages in a range.
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
    /// It may move to wherever the system likes; only the alignment of a page is kept.
    MayMove,
    /// It moves onto this range of a reservation, of the new size, which it replaces. If that
    /// fails, the range may have been released.
    Onto(NonNull<u8>),
}

/// The operating system's memory, and the processor that a thread is on.
///
/// Every range is given by its start and its size in bytes. Both are multiples of
/// [`page_size`](Self::page_size), the size is not zero, and `start + size` does not overflow: this
/// is meant by *a range* below. A range *of a reservation* lies wholly in memory that `reserve` or
/// `remap` returned and that `release` has not taken back since; it may span several reservations
/// that touch one another.
///
/// No function changes `errno`, allocates, or unwinds.
///
/// # Safety
///
/// An implementation returns memory that nothing else uses, aligned as asked, zero, and accessible
/// as asked, and keeps it so until the owner changes it.
pub unsafe trait Pages: Sync {
    /// The size of a page: a power of two, the same at every call.
    fn page_size(&self) -> usize;

    /// Reserves `size` bytes that begin at a multiple of `alignment` and read as zero.
    ///
    /// Memory stands behind a page only from its first write on. The reservation asks the system to
    /// count no more than what is written (a strict overcommit policy counts all of a writable
    /// one).
    ///
    /// `size` is a multiple of the page size and not zero; `alignment` is a power of two. `None`
    /// means that the system has no such room: address space, committed memory, or mappings.
    fn reserve(&self, size: usize, alignment: usize, access: Access) -> Option<NonNull<u8>>;

    /// Returns the start of a range that is free now, at a multiple of `alignment`, and that the
    /// system gives to others last. Nothing is reserved. `None` if the system cannot tell.
    ///
    /// `size` is a multiple of the page size and not zero; `alignment` is a power of two.
    fn find_room(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        let _ = (size, alignment);
        None
    }

    /// Reserves a range at an address that [`find_room`](Self::find_room) found, or behind such a
    /// range; otherwise as [`reserve`](Self::reserve). It never replaces what is mapped there.
    fn reserve_at(&self, start: NonNull<u8>, size: usize, access: Access) -> Placed {
        let _ = (start, size, access);
        Placed::Refused
    }

    /// Changes what may be done with a range. On `false` parts of it may have changed.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation, and nobody relies on accesses that this
    /// forbids.
    unsafe fn protect(&self, start: NonNull<u8>, size: usize, access: Access) -> bool;

    /// Gives the memory behind a range back to the system at once. The range stays reserved, and
    /// reads as zero. On `false` the contents are undefined, and memory may or may not have gone
    /// back.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation whose contents nobody needs.
    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool;

    /// Says how the range will be used. `false` means that the system would not hear of it, which
    /// changes nothing but speed.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation.
    unsafe fn advise(&self, start: NonNull<u8>, size: usize, advice: Advice) -> bool;

    /// Changes the size of a range; the contents move along, and what is added reads as zero. Where
    /// it shrinks, the tail is released. `None` leaves everything as it was.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range that one call of `reserve` or `remap` returned, with one
    /// access and one advice throughout, and `new_size` is a multiple of the page size and not
    /// zero. If the result differs from `start`, the old range is released. A range to move onto is
    /// unused, and no part of the old one.
    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>>;

    /// Moves the memory behind a range to a reservation of its own, of the same size and access,
    /// without copying. The range itself stays reserved and reads as zero afterwards. `None` leaves
    /// everything as it was; a system need not be able to do this.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation with one access throughout, which nobody
    /// uses meanwhile.
    unsafe fn detach(&self, start: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let _ = (start, size);
        None
    }

    /// Gives a range back: addresses and memory. `false` means that the system refused, as it may
    /// where a mapping would be split and the process has no mapping left; the range is then
    /// unchanged and still the caller's.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation that nobody uses any more.
    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool;

    /// The number of the processor that the calling thread runs on; it may be on another by the
    /// time the caller reads it. `None` where the system does not say.
    fn processor(&self) -> Option<usize> {
        None
    }
}
