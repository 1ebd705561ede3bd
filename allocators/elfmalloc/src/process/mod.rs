//! The allocator of the process: one back-end, and a heap for each thread ([`current`](crate::process::thread_local)).

pub(crate) mod background;
pub mod exit_report;
pub mod statistics;
pub(crate) mod thread_local;

use core::marker::PhantomData;
use core::ptr::NonNull;
use heapdrome_pages::atomic::{AtomicBool, Ordering::Relaxed};

use heapdrome_malloc_abi::{
    ForkGate, Form, MIN_ALIGNMENT, MallocAbi, Presence, Report, Statistics, deallocate, enter,
    write_report,
};
use heapdrome_pages::Linux;
use heapdrome_pages::system::address_space_limit;

use crate::hardened::fill;
use crate::heap::backend::Backend;
use crate::heap::front::{ENDED, Front, NO_HEAP};
use crate::heap::front_end::{FrontEnd, Magazines};
use crate::heap::local_cache::LocalCache;
use crate::misuse::report;
use crate::process::exit_report::ExitReport;
use crate::process::statistics::Snapshot;
use crate::process::thread_local::{front, heap, heap_to_free, present_heap};
use crate::settings::Settings;
use crate::size_class::{LARGEST, SizeClass, UNIT};
use crate::slabs::slab::{Misuse, Slab};

pub(crate) static BACKEND: Backend<Linux> = Backend::new(Linux);
/// Every variant has this gate, since all have one back-end. Only threads inside change the back-end.
static FORK_GATE: ForkGate = ForkGate::new();
/// Whether arenas are to keep states; to be set before the first block.
static STATES: AtomicBool = AtomicBool::new(false);
static EXIT_REPORT: ExitReport = ExitReport::none();

/// Reads the environment and reserves address space, at the first call.
pub(crate) fn start() {
    // SAFETY: until the first thread has allocated there is no other that could change the
    // environment; later the closure is not called.
    BACKEND.start(|| unsafe {
        EXIT_REPORT.read_environment();
        let settings = Settings {
            // Relaxed: set by this thread, or by the one whose secret it found (`canary::wants_secret`), or not at all.
            states: STATES.load(Relaxed),
            arena: address_space_limit().map_or(Settings::DEFAULT.arena, Settings::arena_within),
            // As many as processors, which `current::heap` says: more threads do not run at once, so that they can
            // share slabs and seldom meet.
            hosts: 1,
            ..Settings::from_environment()
        };
        background::want(settings.background);
        fill::want_whole(settings.overwrite);
        settings
    });
}

/// Says that arenas are to keep states. Too late once there is a block.
pub(crate) fn want_states() {
    STATES.store(true, Relaxed);
}

fn allocate_class<F: FrontEnd>(class: SizeClass) -> Option<NonNull<u8>> {
    if let Some(block) = NonNull::new(front().pop(class)) {
        return Some(block);
    }
    let Some(heap) = heap() else {
        // SAFETY: the bin is one for the class.
        return NonNull::new(unsafe { BACKEND.take_one(&BACKEND.bins[class.number()], class) });
    };
    // Here rather than in `free`, which the C library calls under locks that starting a thread takes.
    background::start_if_wanted();
    // Both may have allocated meanwhile, and freed: making the heap arms the thread's exit.
    // SAFETY: the heap is this thread's, and its magazine is empty where nothing comes out of it.
    unsafe {
        let block = (*heap.as_ptr()).front.pop(class);
        NonNull::new(if block.is_null() {
            F::refill(&BACKEND, heap, class)
        } else {
            block
        })
    }
}

/// The class of a live block, wherever it is found.
pub(crate) fn class_of(address: usize) -> SizeClass {
    let class = BACKEND.map.get(address);
    if class != SizeClass::NONE {
        return class;
    }
    let slab: *mut Slab = BACKEND.slab_of(address);
    if slab.is_null() {
        return SizeClass::NONE;
    }
    // SAFETY: the descriptor is committed; it is the block's as long as the block is live.
    unsafe { (*slab).class }
}

/// # Safety
///
/// The block is one of `class` that nobody uses.
unsafe fn free_class<F: FrontEnd>(class: SizeClass, block: *mut u8) {
    let Some(heap) = heap_to_free() else {
        // SAFETY: the caller's promise.
        unsafe { BACKEND.give_or_report(core::ptr::null(), class, &mut [block]) };
        return;
    };
    // SAFETY: the heap is this thread's.
    unsafe {
        if (*heap.as_ptr()).front.is_due() {
            BACKEND.look_around(heap);
        }
        F::put(&BACKEND, heap, class, block);
    }
}

/// # Safety
///
/// `block` is a live block of at least `kept` bytes, which the caller gives up.
unsafe fn move_to<F: FrontEnd>(to: NonNull<u8>, block: NonNull<u8>, kept: usize) -> NonNull<u8> {
    // SAFETY: the blocks are live and different, and both have that many bytes.
    unsafe {
        to.as_ptr().copy_from_nonoverlapping(block.as_ptr(), kept);
        if !Allocator::<F>::deallocate_fast(block.as_ptr()) {
            deallocate::<Allocator<F>>(block);
        }
    }
    to
}

/// True if a block of `usable` bytes may stay where it is when `size` are wanted.
const fn fits(usable: usize, size: usize) -> bool {
    size <= usable && size >= usable / 2
}

/// Returns current statistics. While another thread forks, blocks in the calling thread's coalescer count as live.
pub(crate) fn snapshot() -> Snapshot {
    if let Some(heap) = present_heap()
        && let Some(_inside) = enter::<Elfmalloc>()
    {
        // SAFETY: the heap is this thread's.
        unsafe { BACKEND.note_cached(heap) };
    }
    BACKEND.snapshot()
}

/// Reports what was asked for.
pub(crate) fn report_at_exit<A: MallocAbi>() {
    if let Some(form) = EXIT_REPORT.form() {
        write_report::<A>(form, EXIT_REPORT.file());
    }
}

/// The allocator, with one of its front-ends. All of them use the one back-end of the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<F>(PhantomData<F>);

/// The allocator with magazines.
pub type Elfmalloc = Allocator<Magazines>;
/// The allocator with the thread-local cache.
pub type ElfmallocL = Allocator<LocalCache>;

// SAFETY: blocks come from slabs, runs and mappings that nothing else uses, in classes that are
// multiples of 16 and of the alignment asked for.
unsafe impl<F: FrontEnd> MallocAbi for Allocator<F> {
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
            return allocate_class::<F>(SizeClass::of(size));
        }
        heap();
        Some(BACKEND.allocate_large(size, UNIT)?.block)
    }

    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if let Some(class) = SizeClass::of_aligned(size, alignment) {
            return allocate_class::<F>(class);
        }
        heap();
        Some(BACKEND.allocate_large(size, alignment)?.block)
    }

    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>> {
        if size <= LARGEST {
            let block = Self::allocate_fast(size).or_else(|| Self::allocate(size))?;
            // SAFETY: the block is new and has that many bytes.
            unsafe { block.as_ptr().write_bytes(0, size) };
            return Some(block);
        }
        heap();
        let large = BACKEND.allocate_large(size, UNIT)?;
        if !large.clean {
            // SAFETY: as above.
            unsafe { large.block.as_ptr().write_bytes(0, size) };
        }
        Some(large.block)
    }

    #[inline]
    unsafe fn reallocate_fast(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let class = BACKEND.map.get(block.addr().get());
        if !class.is_slab() {
            return None;
        }
        let usable = class.size();
        if fits(usable, size) || SizeClass::of_aligned(size, 1) == Some(class) {
            return Some(block);
        }
        let to = Self::allocate_fast(size)?;
        // SAFETY: the caller's block, which has that many bytes.
        Some(unsafe { move_to::<F>(to, block, usable.min(size)) })
    }

    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let class = class_of(block.addr().get());
        // SAFETY: the block is live and the caller's.
        unsafe {
            let usable = Self::usable_size(block);
            let to = if class.is_slab() || size <= LARGEST {
                let stays = fits(usable, size) || SizeClass::of_aligned(size, 1) == Some(class);
                if class.is_slab() && stays {
                    return Some(block);
                }
                Self::allocate_fast(size).or_else(|| Self::allocate(size))
            } else {
                let resized = BACKEND.resize(block, size);
                if resized.is_some() {
                    return resized;
                }
                BACKEND.allocate_grown(size)
            };
            match to {
                Some(to) => Some(move_to::<F>(to, block, usable.min(size))),
                None if size > usable => None,
                // There is no memory for a smaller block: this one stays, and what is large of it goes.
                None if class.is_slab() => Some(block),
                None => BACKEND.resize(block, size).or(Some(block)),
            }
        }
    }

    #[inline(always)]
    unsafe fn deallocate_fast(block: *mut u8) -> bool {
        // SAFETY: the caller's promise.
        unsafe { F::free(front(), block) }
    }

    unsafe fn deallocate(block: NonNull<u8>) {
        let address = block.addr().get();
        let class = class_of(address);
        // SAFETY: the caller gives the block up.
        unsafe {
            if class.is_slab() {
                free_class::<F>(class, block.as_ptr());
            } else if class == SizeClass::LARGE {
                if let Err(misuse) = BACKEND.free_large(address) {
                    report(misuse);
                }
            } else if !BACKEND.free_mapped(address) {
                report(Misuse::NotABlock(address));
            }
        }
    }

    unsafe fn usable_size(block: NonNull<u8>) -> usize {
        let address = block.addr().get();
        let class = class_of(address);
        if class.is_slab() {
            return class.size();
        }
        if class == SizeClass::LARGE {
            // SAFETY: the block is live.
            return unsafe { BACKEND.large_usable(address) };
        }
        let mapped = BACKEND.mapped.lock().find(address);
        mapped.map_or(0, |entry| entry.size)
    }

    fn trim(keep: usize) -> bool {
        // SAFETY: the heap is this thread's.
        unsafe { BACKEND.trim(present_heap(), keep) }
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
        FORK_GATE.register::<Elfmalloc>();
        // Only where the library is loaded while another thread forks, nothing is preferred.
        if let Some(_inside) = enter::<Self>() {
            BACKEND.pool.lock().prefer_huge_pages(F::HUGE_PAGES);
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
        for heap in BACKEND.all_heaps() {
            // SAFETY: heaps live for ever, and any thread may use a presence.
            visit(unsafe { &*Front::presence_of(heap.cast()) });
        }
    }

    fn free_locks_in_child() {
        // SAFETY: this thread is the only one; no other was on a slow path when the process forked.
        unsafe { BACKEND.free_locks() };
    }

    fn fork_child() {
        background::forked();
        // SAFETY: there is only this thread.
        unsafe { BACKEND.disown(present_heap()) };
    }
}
