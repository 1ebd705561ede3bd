//! Contract between an allocator and the operating system.

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
    /// Another mapping occupies at least part of the range.
    Occupied,
    /// The system lacks address space, committed memory or mappings, or cannot place mappings at
    /// given addresses.
    Refused,
}

/// Advice to the system about huge pages in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Use huge pages as soon as possible.
    HugePages,
    /// Never use huge pages.
    NoHugePages,
}

/// Whether a mapping may move when its size changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remap {
    /// The mapping must not move. The call fails if the mapping cannot grow where it is.
    InPlace,
    /// The mapping may move to any multiple of the page size.
    MayMove,
    /// The mapping moves to this address and replaces the range there, which is part of a
    /// reservation and has the new size. If the call fails, that range may have been released.
    Onto(NonNull<u8>),
}

/// Services of the operating system for memory, and for the processor of a thread.
///
/// Every range is given by its start and its size in bytes. Both are multiples of
/// [`page_size`](Self::page_size), the size is not zero, and `start + size` does not overflow.
/// Below, this is called *a range*. A range *of a reservation* lies wholly in memory that
/// `reserve`, `reserve_at`, `remap` or `detach` reserved and that has not been released since; it
/// may span several adjacent reservations.
///
/// No function changes `errno`, calls the allocator that uses it, or unwinds.
///
/// # Safety
///
/// An implementation returns memory that no other code uses, aligned as requested, zeroed, and with
/// the requested access. It keeps these properties until the owner changes them.
pub unsafe trait Pages: Sync {
    /// Returns the size of a page: a power of two, the same at every call.
    fn page_size(&self) -> usize;

    /// Reserves `size` bytes that begin at a multiple of `alignment` and read as zero.
    ///
    /// The system allocates memory for a page at the first write. The reservation asks the system
    /// not to count the pages against the limit on committed memory. A strict overcommit policy
    /// counts all writable pages nevertheless.
    ///
    /// `size` is a multiple of the page size and not zero; `alignment` is a power of two. Returns
    /// `None` if the system lacks address space, committed memory, or mappings.
    fn reserve(&self, size: usize, alignment: usize, access: Access) -> Option<NonNull<u8>>;

    /// Returns the start of a range that is probably free, at a multiple of `alignment`, and at
    /// addresses that the system uses last for other mappings. Does not reserve the range. Returns
    /// `None` if the system cannot propose such a range.
    ///
    /// `size` is a multiple of the page size and not zero; `alignment` is a power of two.
    fn find_room(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        let _ = (size, alignment);
        None
    }

    /// Reserves a range at an address that [`find_room`](Self::find_room) returned, or at a higher
    /// address in the range that it found. Never replaces an existing mapping. Otherwise like
    /// [`reserve`](Self::reserve).
    fn reserve_at(&self, start: NonNull<u8>, size: usize, access: Access) -> Placed {
        let _ = (start, size, access);
        Placed::Refused
    }

    /// Changes the access to a range. Returns `false` if the system refuses; the access to parts of
    /// the range may then have changed.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation, and no code relies on accesses that this
    /// call forbids.
    unsafe fn protect(&self, start: NonNull<u8>, size: usize, access: Access) -> bool;

    /// Returns the memory behind a range to the system immediately. The range stays reserved, and
    /// reads as zero. Returns `false` if the system refuses; the contents are then undefined, and
    /// parts of the memory may have been returned.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation whose contents no code needs.
    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool;

    /// Advises the system how a range will be used. Returns `false` if the system refuses the
    /// advice, which affects only speed.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation.
    unsafe fn advise(&self, start: NonNull<u8>, size: usize, advice: Advice) -> bool;

    /// Changes the size of a range, and moves it as `how` permits. Returns the new start. The
    /// contents are kept up to the smaller size, and added memory reads as zero. Addresses of the
    /// old range that the new range does not include are released.
    ///
    /// Returns `None` if the system refuses. The old range is then unchanged, but [`Remap::Onto`]
    /// may have released its target and the tail of a range that was to shrink.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range that one call of `reserve`, `remap` or `detach` returned,
    /// with the same access and advice throughout. `new_size` is a multiple of the page size and
    /// not zero. No code uses the addresses that the call releases: the tail of a range that
    /// shrinks, and the whole old range if it moves. The target of [`Remap::Onto`] has `new_size`
    /// bytes, is a range of a reservation, is unused, and does not overlap the old range.
    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>>;

    /// Moves the memory behind a range to a new reservation of the same size and access, and
    /// returns the start of that reservation. Linux does not copy the memory. The original range
    /// stays reserved, and reads as zero afterwards. Returns `None`, without any change, if the
    /// system refuses or does not support this.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation with the same access throughout. No other
    /// code uses the range during the call.
    unsafe fn detach(&self, start: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let _ = (start, size);
        None
    }

    /// Releases the addresses and memory of a range. Returns `false` if the system refuses: this
    /// can happen if a mapping would have to be split and the process has reached its limit on
    /// mappings. The range is then unchanged and still belongs to the caller.
    ///
    /// # Safety
    ///
    /// `start` and `size` are a range of a reservation that is no longer used.
    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool;

    /// Returns the number of the calling thread's processor; `None` if the system does not report
    /// it. The thread may move to another processor at any time.
    fn processor(&self) -> Option<usize> {
        None
    }
}
