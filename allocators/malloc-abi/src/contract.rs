//! What an allocator provides.

use core::ptr::NonNull;

use heapdrome_pages::KeepErrno;

use crate::fork_gate::{ForkGate, Presence};
use crate::report::{Form, Report};

/// Every block is aligned to this, whatever its size, as the C ABI promises for any type.
pub const MIN_ALIGNMENT: usize = 16;

/// No block is larger: differences of pointers into it must fit.
pub const MAX_SIZE: usize = isize::MAX as usize;

/// What an allocator holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// In blocks that the program holds, as far as the allocator counts them.
    pub live: usize,
    /// In blocks that have their own mapping; part of `live`.
    pub live_mapped: usize,
    /// How many blocks have their own mapping.
    pub mapped_blocks: usize,
    /// In free blocks that wait to be allocated again.
    pub free: usize,
    /// What `trim` could give back to the system.
    pub releasable: usize,
    /// Of address space taken from the system.
    pub reserved: usize,
    /// The most of address space ever taken from the system at once.
    pub peak_reserved: usize,
}

/// An allocator behind the C and C++ ABI.
///
/// The type only names the allocator: all state is in statics. None of the functions sets or keeps
/// `errno`, except that [`deallocate_fast`](Self::deallocate_fast) must leave it alone; the
/// exported functions see to it.
///
/// Sizes may be zero (every block has its own address all the same) and are at most [`MAX_SIZE`],
/// but for [`allocate_fast`](Self::allocate_fast), which gets whatever the program asked for.
/// Alignments are powers of two.
///
/// Any function may be called at any moment by any thread: before constructors have run, after
/// destructors, in a thread that is about to end, in the child of a fork between its handlers.
/// While another thread forks, though, only the functions named `..._fast`, `usable_size`,
/// `statistics` and `report` are called. They change nothing but what belongs to the calling
/// thread, and locks, which [`free_locks_in_child`](Self::free_locks_in_child) frees.
///
/// # Safety
///
/// A block that an allocating function returns is aligned as asked, at least to [`MIN_ALIGNMENT`],
/// has at least the size asked for, overlaps no other block, and stays so until it is given back.
/// No function unwinds.
pub unsafe trait MallocAbi {
    /// The allocator's name, as it stands in `malloc_info` and in messages.
    const NAME: &'static str;

    /// The fast path: a block of at least `size` bytes, any size, or `None` for whatever takes more
    /// than a few instructions. It is inlined into `malloc` and `operator new`, so it should call
    /// nothing.
    #[inline(always)]
    #[must_use]
    fn allocate_fast(size: usize) -> Option<NonNull<u8>> {
        let _ = size;
        None
    }

    /// The fast path for blocks at a multiple of `alignment`, a power of two; `None` for whatever
    /// takes more than a few instructions.
    #[inline(always)]
    #[must_use]
    fn allocate_aligned_fast(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if alignment <= MIN_ALIGNMENT {
            Self::allocate_fast(size)
        } else {
            None
        }
    }

    /// The fast path for blocks whose first `size` bytes are zero; `None` for whatever takes a slow
    /// path.
    #[inline(always)]
    #[must_use]
    fn allocate_zeroed_fast(size: usize) -> Option<NonNull<u8>> {
        let block = Self::allocate_fast(size)?;
        // SAFETY: the block is new and has that many bytes.
        unsafe { block.write_bytes(0, size) };
        Some(block)
    }

    /// The fast path of [`reallocate`](Self::reallocate), which may be given any live block, also
    /// one that the fallback allocated. `None` for whatever takes a slow path, and then nothing has
    /// happened.
    ///
    /// # Safety
    ///
    /// `block` is a live block; if the result is another, it is so no longer.
    #[inline(always)]
    unsafe fn reallocate_fast(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let _ = (block, size);
        None
    }

    /// A block of at least `size` bytes, or `None` where there is no memory.
    #[must_use]
    fn allocate(size: usize) -> Option<NonNull<u8>>;

    /// A block of at least `size` bytes at a multiple of `alignment`, which may be below
    /// [`MIN_ALIGNMENT`].
    #[must_use]
    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>>;

    /// A block of at least `size` bytes, of which the first `size` are zero.
    #[must_use]
    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>>;

    /// Makes a block at least `size` bytes large, moving it if need be; the contents are kept up to
    /// the smaller size. The result is aligned to [`MIN_ALIGNMENT`]. `None` leaves the block as it
    /// was; it is no answer to a size that is no larger than the usable one.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator; if the result is another, it is so no more.
    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>>;

    /// The fast path of `free`, which may be given null: true if the block has been given back,
    /// false if nothing was done and [`deallocate`](Self::deallocate) must be called, unless the
    /// block is null. It is inlined into `free` and `operator delete`.
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of this allocator, which the caller gives up.
    #[inline(always)]
    unsafe fn deallocate_fast(block: *mut u8) -> bool {
        block.is_null()
    }

    /// Gives a block back.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator, which the caller gives up.
    unsafe fn deallocate(block: NonNull<u8>);

    /// The fast path of giving back a block whose size and alignment the caller knows; otherwise as
    /// [`deallocate_fast`](Self::deallocate_fast).
    ///
    /// # Safety
    ///
    /// As for [`deallocate_fast`](Self::deallocate_fast); and the block was allocated with `size`
    /// and `alignment` (where `operator new` and `malloc` mean [`MIN_ALIGNMENT`]), or was last
    /// reallocated to `size`.
    #[inline(always)]
    unsafe fn deallocate_sized_fast(block: *mut u8, size: usize, alignment: usize) -> bool {
        let _ = (size, alignment);
        // SAFETY: the caller's promise is the stronger one.
        unsafe { Self::deallocate_fast(block) }
    }

    /// How many bytes of the block the program may use: at least what it asked for.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator.
    unsafe fn usable_size(block: NonNull<u8>) -> usize;

    /// Gives free memory back to the system and keeps about `keep` bytes. True if any went back.
    /// Programs call [`trim`](crate::trim), which does nothing while another thread forks.
    fn trim(keep: usize) -> bool {
        let _ = keep;
        false
    }

    /// What the allocator holds now.
    #[must_use]
    fn statistics() -> Statistics {
        Statistics::default()
    }

    /// Writes down what the allocator holds: the whole of a report, of which the default has what
    /// [`statistics`](Self::statistics) says. It must not allocate.
    fn report(report: &mut Report<'_>) {
        report.begin(Self::NAME);
        report.statistics(&Self::statistics());
        report.end();
    }

    /// How `malloc_stats` writes its report.
    #[must_use]
    fn report_form() -> Form {
        Form::Text
    }

    /// Sets an option of `mallopt`; true if it was understood. Options are hints that this ABI has
    /// from glibc; the default accepts every one of them and does nothing.
    fn set_option(option: i32, value: i32) -> bool {
        let _ = (option, value);
        true
    }

    /// Runs once, when the constructors of the library or the program run; blocks may have been
    /// allocated before.
    fn start() {}

    /// Runs once, among the same one's destructors, when the process calls `exit`; blocks may be
    /// allocated and freed afterwards.
    fn stop() {}

    /// The gate that keeps threads out of the allocator while one of them forks. Allocators that
    /// share structures share it.
    #[must_use]
    fn fork_gate() -> &'static ForkGate {
        static GATE: ForkGate = ForkGate::new();
        &GATE
    }

    /// The calling thread's presence on slow paths, or one that it shares while it has no state of
    /// its own.
    #[must_use]
    fn presence() -> &'static Presence {
        &OF_ALL
    }

    /// Calls `visit` with every presence, those that threads share first.
    fn each_presence(visit: &mut dyn FnMut(&Presence)) {
        visit(&OF_ALL);
    }

    /// Runs first after a fork in the child, which has this one thread: frees every lock, since a
    /// thread of the parent may have held it to read.
    fn free_locks_in_child() {}

    /// Runs last after a fork in the child: takes over what other threads of the parent had. No
    /// thread was in the midst of a slow path.
    fn fork_child() {}
}

/// The presence of all threads, where an allocator knows none of each.
static OF_ALL: Presence = Presence::of_many();

/// Calls `body` with `errno` put back afterwards.
#[inline]
pub(crate) fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    let _errno = KeepErrno::new();
    body()
}
