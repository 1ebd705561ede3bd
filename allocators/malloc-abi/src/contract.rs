//! Contract of an allocator behind the C and C++ ABI.

use core::ptr::NonNull;

use heapdrome_pages::KeepErrno;

use crate::fork_gate::{ForkGate, Presence};
use crate::report::{Form, Report};

/// Minimum alignment of every block, even of a small one. The C ABI promises this alignment for all
/// types.
pub const MIN_ALIGNMENT: usize = 16;

/// Maximum size of a block: differences of pointers into it must fit into an `isize`.
pub const MAX_SIZE: usize = isize::MAX as usize;

/// Statistics of the memory that an allocator holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of live blocks, as far as the allocator counts them.
    pub live: usize,
    /// Bytes of blocks that have their own mapping; part of `live`.
    pub live_mapped: usize,
    /// Number of blocks that have their own mapping.
    pub mapped_blocks: usize,
    /// Bytes of free blocks that are kept for reuse.
    pub free: usize,
    /// Bytes that `trim` could return to the system.
    pub releasable: usize,
    /// Bytes of address space taken from the system.
    pub reserved: usize,
    /// Maximum of `reserved` so far, or an upper bound of it.
    pub peak_reserved: usize,
}

/// Allocator behind the C and C++ ABI.
///
/// The type only names the allocator: all state is in statics. The functions named `..._fast` and
/// `usable_size` must preserve `errno`. For the other functions, the callers in this crate preserve
/// it.
///
/// Sizes are at most [`MAX_SIZE`], except that [`allocate_fast`](Self::allocate_fast),
/// [`allocate_aligned_fast`](Self::allocate_aligned_fast) and
/// [`deallocate_sized_fast`](Self::deallocate_sized_fast) must accept any size. A size may be zero;
/// such a block still has its own address. Alignments are powers of two.
///
/// Any thread may call any function at any time: before constructors have run, after destructors
/// have run, in an ending thread, and in the child of a fork between its handlers. While another
/// thread forks, however, only these functions are called: those named `..._fast`, `usable_size`,
/// `statistics`, `report`, `report_form`, `set_option`, `start`, `stop`, `presence` and
/// `fork_gate`. They change only the calling thread's own state and locks, unless they
/// [`enter`](crate::enter) the gate themselves. The child frees the locks with
/// [`free_locks_in_child`](Self::free_locks_in_child).
///
/// # Safety
///
/// A block that an allocating function returns has at least the requested size, at least the
/// requested alignment, and at least [`MIN_ALIGNMENT`]. It overlaps no other block until it is
/// freed. Blocks of `allocate_zeroed` begin with zeros, resized blocks keep their contents up to
/// the smaller size, and every block has at least its usable size. No function unwinds.
pub unsafe trait MallocAbi {
    /// Name of the allocator, as in `malloc_info` and in messages.
    const NAME: &'static str;

    /// Runs the fast path: returns a block of at least `size` bytes, or `None` if the slow path is
    /// required. Accepts any size. It is inlined into `malloc` and `operator new`, so it should
    /// call no function.
    #[inline(always)]
    #[must_use]
    fn allocate_fast(size: usize) -> Option<NonNull<u8>> {
        let _ = size;
        None
    }

    /// Runs the fast path for blocks at a multiple of `alignment`, a power of two. Returns `None`
    /// if the slow path is required. Accepts any size.
    #[inline(always)]
    #[must_use]
    fn allocate_aligned_fast(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if alignment <= MIN_ALIGNMENT {
            Self::allocate_fast(size)
        } else {
            None
        }
    }

    /// Runs the fast path for blocks whose first `size` bytes are zero. Returns `None` if a slow
    /// path is required.
    #[inline(always)]
    #[must_use]
    fn allocate_zeroed_fast(size: usize) -> Option<NonNull<u8>> {
        let block = Self::allocate_fast(size)?;
        // SAFETY: the block is new and has at least `size` bytes.
        unsafe { block.write_bytes(0, size) };
        Some(block)
    }

    /// Runs the fast path of [`reallocate`](Self::reallocate). Returns `None`, without any change,
    /// if a slow path is required, as for a block of the fallback.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator or of the fallback, and no other thread uses it
    /// during the call. The caller does not use it again if the result is another block.
    #[inline(always)]
    unsafe fn reallocate_fast(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let _ = (block, size);
        None
    }

    /// Returns a block of at least `size` bytes, or `None` if out of memory.
    #[must_use]
    fn allocate(size: usize) -> Option<NonNull<u8>>;

    /// Returns a block of at least `size` bytes at a multiple of `alignment`, a power of two that
    /// may be below [`MIN_ALIGNMENT`]. Returns `None` if out of memory.
    #[must_use]
    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>>;

    /// Returns a block whose first `size` bytes are zero, or `None` if out of memory.
    #[must_use]
    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>>;

    /// Resizes a block to at least `size` bytes, and moves it if necessary. Keeps the contents up
    /// to the smaller size. The result is aligned to [`MIN_ALIGNMENT`]. Returns `None`, with the
    /// block unchanged, if out of memory. Must succeed if `size` is at most the usable size.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator, and no other thread uses it during the call. The
    /// caller does not use it again if the result is another block.
    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>>;

    /// Runs the fast path of `free`. Returns true if no work is left. Returns false, without any
    /// change, if the slow path is required, as for a block of the fallback. For null, it may
    /// return either. It is inlined into `free` and `operator delete`.
    ///
    /// # Safety
    ///
    /// `block` is null, or a live block of this allocator or of the fallback that the caller no
    /// longer uses.
    #[inline(always)]
    unsafe fn deallocate_fast(block: *mut u8) -> bool {
        block.is_null()
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator that the caller no longer uses.
    unsafe fn deallocate(block: NonNull<u8>);

    /// Runs the fast path for freeing a block of known size and alignment; otherwise like
    /// [`deallocate_fast`](Self::deallocate_fast).
    ///
    /// # Safety
    ///
    /// `block` is null, or a live block of this allocator or of the fallback that the caller no
    /// longer uses. It was allocated with `size` and `alignment`, or was last reallocated to
    /// `size`. An alignment below [`MIN_ALIGNMENT`], or none, is passed as `MIN_ALIGNMENT`.
    #[inline(always)]
    unsafe fn deallocate_sized_fast(block: *mut u8, size: usize, alignment: usize) -> bool {
        let _ = (size, alignment);
        // SAFETY: this function's contract includes that of `deallocate_fast`.
        unsafe { Self::deallocate_fast(block) }
    }

    /// Returns the number of bytes of the block that the program may use: at least the requested
    /// size.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator.
    unsafe fn usable_size(block: NonNull<u8>) -> usize;

    /// Returns free memory to the system, except about `keep` bytes. Returns whether the system got
    /// any memory. Called by [`trim`](crate::trim), which does nothing while another thread forks.
    fn trim(keep: usize) -> bool {
        let _ = keep;
        false
    }

    /// Returns the current statistics of the allocator.
    #[must_use]
    fn statistics() -> Statistics {
        Statistics::default()
    }

    /// Writes a complete report; by default a report of [`statistics`](Self::statistics). Must not
    /// allocate.
    fn report(report: &mut Report<'_>) {
        report.begin(Self::NAME);
        report.statistics(&Self::statistics());
        report.end();
    }

    /// Returns the form in which `malloc_stats` reports.
    #[must_use]
    fn report_form() -> Form {
        Form::Text
    }

    /// Sets an option of `mallopt`. Returns whether the allocator accepts the option. Options are
    /// only hints; the default accepts all of them and does nothing.
    fn set_option(option: i32, value: i32) -> bool {
        let _ = (option, value);
        true
    }

    /// Runs once, among the constructors of the library or the program. The program may have
    /// allocated blocks before. An allocator that needs fork handlers registers them here and at
    /// its first allocation, with [`ForkGate::register`].
    fn start() {}

    /// Runs once, among the destructors of the library or the program, when the process calls
    /// `exit`. The program may allocate and free blocks afterwards.
    fn stop() {}

    /// Returns the gate that keeps threads off the allocator's slow paths while another thread
    /// forks. Allocators that share structures share the gate. All allocators that keep the default
    /// share one gate.
    #[must_use]
    fn fork_gate() -> &'static ForkGate {
        static GATE: ForkGate = ForkGate::new();
        &GATE
    }

    /// Returns the calling thread's presence on slow paths, or a shared presence if the thread has
    /// none of its own.
    #[must_use]
    fn presence() -> &'static Presence {
        &OF_ALL
    }

    /// Calls `visit` with every presence, first with the shared presences.
    fn each_presence(visit: &mut dyn FnMut(&Presence)) {
        visit(&OF_ALL);
    }

    /// Unlocks every lock of the allocator. Called first in the child of a fork, because a thread
    /// of the parent may have held a lock in order to read. The calling thread is the only one.
    fn free_locks_in_child() {}

    /// Takes over the state of the parent's other threads. Called last in the child of a fork. None
    /// of these threads was on a slow path when the process forked.
    fn fork_child() {}
}

/// Presence of all threads, for allocators without a presence for each thread.
static OF_ALL: Presence = Presence::of_many();

/// Calls `body`, and restores `errno` afterwards.
#[inline]
pub(crate) fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    let _errno = KeepErrno::new();
    body()
}
