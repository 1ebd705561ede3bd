//! Allocator of the process: one back-end, and a heap for each thread ([`thread_local`]).

pub mod back_end;
pub(crate) mod background;
pub mod exit_report;
pub mod statistics;
pub(crate) mod thread_local;

use core::marker::PhantomData;
use core::ptr::NonNull;
use heapdrome_pages::atomic::{AtomicBool, Ordering::Relaxed};

use heapdrome_malloc_abi::{
    ForkGate, Form, MIN_ALIGNMENT, MallocAbi, Presence, Report, Statistics, enter, write_report,
};
use heapdrome_pages::Linux;
use heapdrome_pages::system::address_space_limit;

use crate::heap::front::{ENDED, NO_HEAP};
use crate::heap::front_end::Magazines;
use crate::heap::heaps::Heaps;
use crate::heap::local_cache::LocalCache;
use crate::heap::threads::note_cached;
use crate::settings::Settings;
use crate::size_class::{LARGEST, SizeClass, UNIT};
use back_end::{Compiled, move_to};
use exit_report::ExitReport;
use statistics::Snapshot;
use thread_local::{front, heap, present_heap};

pub(crate) static HEAPS: Heaps<Linux> = Heaps::new(Linux);
/// Fork gate of all variants, which share one back-end. Except for `start`, only code inside the
/// gate changes the back-end.
static FORK_GATE: ForkGate = ForkGate::new();
/// Whether arenas record the states of blocks. [`start`] reads it once.
static STATES: AtomicBool = AtomicBool::new(false);
static EXIT_REPORT: ExitReport = ExitReport::none();
/// Whether the hardened variant overwrites freed blocks completely; set before the first block is
/// handed out.
static OVERWRITES_WHOLE: AtomicBool = AtomicBool::new(false);

/// Reads the environment and reserves address space. Only the first call does so.
pub(crate) fn start() {
    // SAFETY: the closure runs once, at the first allocation or in a constructor. Normally no other
    // thread exists by then. A program that loads the library with `dlopen` must not change the
    // environment in another thread meanwhile.
    HEAPS.start(|| unsafe {
        EXIT_REPORT.read_environment();
        let settings = Settings {
            // Relaxed: in the hardened variant, this thread has set the flag, or has read with
            // acquire the secret of a thread that had set it (`canary::wants_secret`).
            states: STATES.load(Relaxed),
            arena: address_space_limit().map_or(Settings::DEFAULT.arena, Settings::arena_within),
            // `thread_local::first_heap` raises this to the number of processors. At most that
            // number of threads run in parallel, so threads that share a shard seldom contend.
            shards: 1,
            ..Settings::from_environment()
        };
        background::want(settings.background);
        // Relaxed: a thread that frees a block received its address from a thread that had already
        // executed this store.
        OVERWRITES_WHOLE.store(settings.overwrite, Relaxed);
        settings
    });
}

/// Registers the fork handlers, which all variants share.
pub(crate) fn register_fork_handlers() {
    FORK_GATE.register::<Elfmalloc>();
}

/// Returns whether the hardened variant overwrites freed blocks completely.
pub(crate) fn overwrites_whole() -> bool {
    // Relaxed: the address of the block to free came from a thread that had executed the store in
    // `start`.
    OVERWRITES_WHOLE.load(Relaxed)
}

/// Makes arenas record the states of blocks. Has no effect once [`start`] has read the flag.
pub(crate) fn want_states() {
    STATES.store(true, Relaxed);
}

/// Returns the class of a live block: from the class map, or from the directory if the map has no
/// class for the address. Returns `NONE` if the address lies neither in a slab nor in the first
/// unit of a large block that is a run.
pub(crate) fn class_of(address: usize) -> SizeClass {
    let class = HEAPS.memory().map.get(address);
    if class != SizeClass::NONE {
        return class;
    }
    let run = HEAPS.memory().run_of(address);
    run.map_or(SizeClass::NONE, |run| run.class())
}

/// Returns whether `realloc` to `size` bytes may leave a block of `usable` bytes in place.
const fn fits(usable: usize, size: usize) -> bool {
    size <= usable && size >= usable / 2
}

/// Returns current statistics. While another thread forks, blocks in the calling thread's coalescer
/// count as live.
#[cold]
pub(crate) fn snapshot() -> Snapshot {
    if let Some(heap) = present_heap()
        && let Some(_inside) = enter::<Elfmalloc>()
    {
        note_cached(&HEAPS, heap);
    }
    Snapshot::of(&HEAPS)
}

/// Writes the requested report, if any.
pub(crate) fn report_at_exit<A: MallocAbi>() {
    if let Some(form) = EXIT_REPORT.form() {
        write_report::<A>(form, EXIT_REPORT.file());
    }
}

/// Allocator with front-end `F`. All front-ends use the single back-end of the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<F>(PhantomData<F>);

/// Default allocator: each thread may cache all blocks that it frees.
pub type Elfmalloc = Allocator<Magazines>;
/// Allocator that caches fewer free blocks ([`LocalCache`]).
pub type ElfmallocL = Allocator<LocalCache>;

// SAFETY: blocks come from slabs, runs and mappings that no other code uses. Class sizes are
// multiples of 16 and of the requested alignment, and runs and mappings are aligned as requested.
// `allocate_zeroed` clears every block that does not read as zero, and `reallocate` copies or
// remaps the contents of a block that moves.
unsafe impl<F: Compiled> MallocAbi for Allocator<F> {
    const NAME: &'static str = F::NAME;

    #[inline(always)]
    fn allocate_fast(size: usize) -> Option<NonNull<u8>> {
        NonNull::new(front().allocate(size))
    }

    #[inline(always)]
    fn allocate_aligned_fast(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if alignment <= MIN_ALIGNMENT {
            return Self::allocate_fast(size);
        }
        NonNull::new(front().pop(SizeClass::of_aligned(size, alignment)?))
    }

    fn allocate(size: usize) -> Option<NonNull<u8>> {
        if size <= LARGEST {
            return F::allocate_here(SizeClass::of(size));
        }
        heap();
        Some(back_end::large(size, UNIT)?.block)
    }

    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if let Some(class) = SizeClass::of_aligned(size, alignment) {
            return F::allocate_here(class);
        }
        heap();
        Some(back_end::large(size, alignment)?.block)
    }

    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>> {
        if size <= LARGEST {
            let block = Self::allocate_fast(size).or_else(|| Self::allocate(size))?;
            // SAFETY: the block is new and has at least `size` bytes.
            unsafe { block.as_ptr().write_bytes(0, size) };
            return Some(block);
        }
        heap();
        let large = back_end::large(size, UNIT)?;
        if !large.clean {
            // SAFETY: the large block is new and has at least `size` bytes.
            unsafe { large.block.as_ptr().write_bytes(0, size) };
        }
        Some(large.block)
    }

    #[inline]
    unsafe fn reallocate_fast(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let class = HEAPS.memory().map.get(block.addr().get());
        if !class.is_slab() {
            return None;
        }
        if front().is_misuse(class, block.as_ptr()) {
            back_end::misused(front().top(class), block.as_ptr());
        }
        let usable = class.size();
        if fits(usable, size) || SizeClass::of_aligned(size, 1) == Some(class) {
            return Some(block);
        }
        let to = Self::allocate_fast(size)?;
        // SAFETY: by this function's contract, the block is live, and the caller does not use it
        // again, because the result is another block. Both blocks have at least the copied number
        // of bytes, and `to` is new.
        Some(unsafe { move_to::<F>(to, block, usable.min(size)) })
    }

    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let class = class_of(block.addr().get());
        // SAFETY: by this function's contract, the block is live, no other thread uses it during
        // the call, and the caller does not use it again if the result is another block.
        // `resize_large` gets only blocks outside slabs. New blocks are different from the old one,
        // and both have at least the copied number of bytes.
        unsafe {
            let usable = Self::usable_size(block);
            let to = if class.is_slab() || size <= LARGEST {
                let stays = fits(usable, size) || SizeClass::of_aligned(size, 1) == Some(class);
                if class.is_slab() && stays {
                    return Some(block);
                }
                Self::allocate_fast(size).or_else(|| Self::allocate(size))
            } else {
                let resized = back_end::resize_large(block, size);
                if resized.is_some() {
                    return resized;
                }
                back_end::grown(size)
            };
            match to {
                Some(to) => Some(move_to::<F>(to, block, usable.min(size))),
                None if size > usable => None,
                // There is no memory for a smaller block, so a slab block stays in place. A large
                // block shrinks in place if possible.
                None if class.is_slab() => Some(block),
                None => back_end::resize_large(block, size).or(Some(block)),
            }
        }
    }

    #[inline(always)]
    unsafe fn deallocate_fast(block: *mut u8) -> bool {
        // SAFETY: this function's contract is that of `FrontEnd::free`.
        unsafe { F::free(front(), block) }
    }

    unsafe fn deallocate(block: NonNull<u8>) {
        // SAFETY: this function's contract is that of `deallocate_here`.
        unsafe { F::deallocate_here(block) };
    }

    unsafe fn usable_size(block: NonNull<u8>) -> usize {
        back_end::usable_size(block)
    }

    fn trim(keep: usize) -> bool {
        back_end::trim(keep)
    }

    fn statistics() -> Statistics {
        snapshot().statistics()
    }

    fn report(report: &mut Report<'_>) {
        snapshot().report(Self::NAME, report);
    }

    fn report_form() -> Form {
        EXIT_REPORT.form().unwrap_or_default()
    }

    fn start() {
        start();
        register_fork_handlers();
        // While another thread forks, the gate is closed, and the front-end's preference for huge
        // pages is not applied.
        if let Some(_inside) = enter::<Self>() {
            HEAPS.memory().pool.lock().prefer_huge_pages(F::HUGE_PAGES);
        }
    }

    fn stop() {
        report_at_exit::<Self>();
    }

    #[inline]
    fn fork_gate() -> &'static ForkGate {
        &FORK_GATE
    }

    #[inline]
    fn presence() -> &'static Presence {
        front().presence()
    }

    fn each_presence(visit: &mut dyn FnMut(&Presence)) {
        visit(NO_HEAP.0.presence());
        visit(ENDED.0.presence());
        HEAPS.all().for_each(|heap| visit(heap.presence()));
    }

    fn free_locks_in_child() {
        back_end::free_locks_in_child();
    }

    fn fork_child() {
        back_end::disown_in_child();
    }
}
