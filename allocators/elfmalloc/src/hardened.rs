//! The hardened variant: the same allocator behind checks.
//!
//! Which blocks the program has is known out of band and out of reach, and how much of each it asked
//! for ([`checks`](crate::checks)): so is every address at which no such block begins. What follows a
//! block's last byte is a canary, looked at when the block is freed. Freed blocks are filled and stay in a
//! [`Quarantine`]. Blocks above 128 KiB are mappings between guard pages.

use core::ptr::NonNull;

use heapdrome_malloc_abi::{Form, MIN_ALIGNMENT, MallocAbi, Report, Statistics, thread_slot};
use heapdrome_pages::system::random_word;
use heapdrome_pages::{KeepErrno, Pages};

use crate::backend::Backend;
use crate::canary::{guard, is_guarded};
use crate::checks::{
    change, end, find_states, hand_out, hand_out_fast, is_another_size, is_long, is_whole,
    near_state, prepare, slack_of, slack_or_report, state_of,
};
use crate::elfmalloc::{BACKEND, Elfmalloc, class_of, front, heap};
use crate::heap::ThreadHeap;
use crate::large::Large;
use crate::misuse::report;
use crate::quarantine::{GROUP, Quarantine, has_places};
use crate::size_class::{LARGEST, SizeClass};
use crate::slab::Misuse;

thread_slot!(
    /// The calling thread's quarantine: null until the thread has freed a block, and once it has ended.
    QUARANTINE: Quarantine = null, "heapdrome_elfmalloc_quarantine"
);

/// The fast path of `free`; false where that takes the slow path, or where something is wrong, which
/// the slow path finds again and reports. Then nothing has happened.
///
/// # Safety
///
/// `block` is null or was allocated, and is used no more.
#[inline(always)]
unsafe fn free_fast(block: *mut u8) -> bool {
    let quarantine = QUARANTINE::get();
    let address = block.addr();
    let class = BACKEND.map.get(address);
    if quarantine.is_null() || !has_places(class) {
        return false;
    }
    let Some(state) = near_state(address) else {
        return false;
    };
    let Some(slack) = slack_of(state, address, class) else {
        return false;
    };
    // SAFETY: what lies in a slab is not null; the program had the block, and gives it up.
    unsafe {
        let block = NonNull::new_unchecked(block);
        if !is_whole(block, class, slack) {
            return false;
        }
        end(block, state, class);
        keep(quarantine, class, block.as_ptr());
    }
    true
}

/// Puts a freed block into the thread's quarantine.
///
/// # Safety
///
/// The block is a free one of `class`, which has places there.
#[inline(always)]
unsafe fn keep(quarantine: *mut Quarantine, class: SizeClass, block: *mut u8) {
    // SAFETY: the quarantine is this thread's; what leaves it are free blocks of the class.
    unsafe {
        if is_long(class) {
            let other = (*quarantine).exchange(class, block);
            if !other.is_null() && !front().push(class, other) {
                free_other(other);
            }
        } else if (*quarantine).put(class, block) {
            pass_on(quarantine, class);
        }
    }
}

/// Takes a group of blocks that leaves the quarantine to their magazine.
///
/// # Safety
///
/// The quarantine is this thread's, and a group of `class` is full.
#[inline(never)]
unsafe fn pass_on(quarantine: *mut Quarantine, class: SizeClass) {
    // SAFETY: as in `keep`; the heap is this thread's, and room is counted from its magazine's top.
    unsafe {
        let Some(group) = (*quarantine).next_group(class) else {
            return;
        };
        let Some(heap) = heap() else {
            group.into_iter().for_each(|block| free_other(block));
            return;
        };
        let front = &(*heap.as_ptr()).front;
        let magazine = &(*heap.as_ptr()).magazines[class.number()];
        front.count(GROUP);
        if front.is_due() || magazine.length(front, class) + GROUP > usize::from(magazine.capacity)
        {
            group.into_iter().for_each(|block| free_other(block));
            return;
        }
        let top = front.top(class);
        top.cast::<[*mut u8; GROUP]>().write(group);
        front.set_top(class, top.add(GROUP));
    }
}

/// Has the start of a block brought near: what is handed out is looked at, and would else be waited for.
/// Any address will do.
#[inline(always)]
fn will_be_read(block: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches nothing.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_ET0 }>(block.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = block;
}

/// Takes a block that has left the quarantine, and that no magazine has room for, to where free blocks are.
///
/// # Safety
///
/// The block is a free one.
#[cold]
#[inline(never)]
unsafe fn free_other(block: *mut u8) {
    let _errno = KeepErrno::new();
    // SAFETY: the block is free, and lies in a slab.
    unsafe {
        if !Elfmalloc::deallocate_fast(block)
            && let Some(block) = NonNull::new(block)
        {
            Elfmalloc::deallocate(block);
        }
    }
}

/// Takes a slab's block back from the program.
///
/// # Safety
///
/// The caller gives the block up.
unsafe fn take_back(block: NonNull<u8>, class: SizeClass) {
    let address = block.addr().get();
    let slack = slack_or_report(address, class);
    // SAFETY: the block was the caller's and is this function's now; what leaves the quarantine is a
    // free block.
    unsafe {
        if !is_whole(block, class, slack) {
            report(Misuse::Overflow(address));
        }
        end(block, state_of(address), class);
        let quarantine = heap().and_then(|heap| BACKEND.quarantine(heap));
        let Some(quarantine) = quarantine else {
            free_other(block.as_ptr());
            return;
        };
        if has_places(class) {
            keep(quarantine.as_ptr(), class, block.as_ptr());
            return;
        }
        let other = (*quarantine.as_ptr()).exchange_shared(block.as_ptr());
        if !other.is_null() {
            free_other(other);
        }
    }
}

impl<P: Pages> Backend<P> {
    /// The thread's quarantine, made if need be; `None` where there is no memory.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    unsafe fn quarantine(&self, heap: NonNull<ThreadHeap>) -> Option<NonNull<Quarantine>> {
        // SAFETY: the heap is this thread's; the memory is new, zero, and aligned to its size or a page.
        unsafe {
            let place = &raw mut (*heap.as_ptr()).quarantine;
            if (*place).is_null() {
                let bytes = size_of::<Quarantine>();
                let memory = self.metadata.lock().allocate(&self.pages, bytes)?;
                *place = Quarantine::write(memory, random_word()).as_ptr();
            }
            QUARANTINE::set(*place);
            NonNull::new(*place)
        }
    }

    /// Gives back what is in the quarantine of a thread that ends.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub unsafe fn empty_quarantine(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the heap is this thread's; blocks in its quarantine lie in slabs.
        unsafe {
            if let Some(mut quarantine) = NonNull::new((*heap.as_ptr()).quarantine) {
                QUARANTINE::set(core::ptr::null_mut());
                quarantine.as_mut().empty(|block| {
                    let class = (*self.slab_of(block.addr())).class;
                    self.give_or_report(self.bin(heap, class), class, &mut [block]);
                });
            }
        }
    }
}

/// A block with its own mapping, between guard pages; or one without, where the system allows for no
/// more mappings or addresses.
fn allocate_guarded(size: usize, alignment: usize) -> Option<Large> {
    let Some(block) = BACKEND.map_guarded(size, alignment) else {
        return BACKEND.allocate_large(size, alignment);
    };
    // SAFETY: the mapping has whole pages.
    unsafe { guard(block, size, BACKEND.pages.page_size()) };
    Some(Large { block, clean: true })
}

/// Takes a guarded block back; false if there is none at `address`.
///
/// # Safety
///
/// The caller gives it up.
unsafe fn free_guarded(block: NonNull<u8>) -> bool {
    let address = block.addr().get();
    let Some(entry) = BACKEND.mapped.lock().find(address) else {
        return false;
    };
    // SAFETY: the block was the caller's.
    unsafe {
        let guarded = entry.block != entry.base;
        if guarded && !is_guarded(block, entry.size, BACKEND.pages.page_size()) {
            report(Misuse::Around(address));
        }
        BACKEND.free_mapped(address)
    }
}

/// The hardened allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hardened;

// SAFETY: blocks are elfmalloc's, of a byte more than asked for, or mappings between guard pages.
unsafe impl MallocAbi for Hardened {
    const NAME: &'static str = "elfmalloc-hardened";

    #[inline(always)]
    fn allocate_fast(size: usize) -> Option<NonNull<u8>> {
        if size >= LARGEST {
            return None;
        }
        // A thread that has no heap yet finds nothing here.
        let class = SizeClass::of(size + 1);
        let front = front();
        let top = front.top(class);
        // SAFETY: before a top there is a slot, or null; the slot holds a free block of the class, whose size is
        // so near to what is wanted that the slack can be said.
        unsafe {
            let block = NonNull::new(*top.sub(1))?;
            if !hand_out_fast(block, class, size) {
                return None;
            }
            front.set_top(class, top.sub(1));
            will_be_read(*top.sub(2));
            Some(block)
        }
    }

    fn allocate(size: usize) -> Option<NonNull<u8>> {
        Self::allocate_aligned(size, MIN_ALIGNMENT)
    }

    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        prepare();
        let alignment = alignment.max(MIN_ALIGNMENT);
        if size < LARGEST
            && let Some(class) = SizeClass::of_aligned(size + 1, alignment)
        {
            let fast = Elfmalloc::allocate_fast(class.size());
            let block = fast.or_else(|| Elfmalloc::allocate(class.size()))?;
            find_states(block);
            // SAFETY: the block is new, and a slab's.
            unsafe { hand_out(block, class, size) };
            return Some(block);
        }
        heap();
        Some(allocate_guarded(size, alignment)?.block)
    }

    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>> {
        let (block, clean) = if size < LARGEST {
            let block = Self::allocate_fast(size).or_else(|| Self::allocate(size))?;
            (block, false)
        } else {
            prepare();
            heap();
            let large = allocate_guarded(size, MIN_ALIGNMENT)?;
            (large.block, large.clean)
        };
        if !clean {
            // SAFETY: the block is new and has that many bytes.
            unsafe { block.as_ptr().write_bytes(0, size) };
        }
        Some(block)
    }

    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let address = block.addr().get();
        let class = class_of(address);
        // SAFETY: the block is live and the caller's.
        unsafe {
            if class.is_slab() {
                let slack = slack_or_report(address, class);
                if !is_whole(block, class, slack) {
                    report(Misuse::Overflow(address));
                }
                if size < LARGEST && SizeClass::of(size + 1) == class {
                    change(block, class, size);
                    return Some(block);
                }
            }
            let kept = Self::usable_size(block).min(size);
            let to = Self::allocate_fast(size).or_else(|| Self::allocate(size))?;
            to.as_ptr().copy_from_nonoverlapping(block.as_ptr(), kept);
            if !free_fast(block.as_ptr()) {
                Self::deallocate(block);
            }
            Some(to)
        }
    }

    #[inline(always)]
    unsafe fn deallocate_fast(block: *mut u8) -> bool {
        // SAFETY: the caller's promise.
        unsafe { free_fast(block) }
    }

    #[inline(always)]
    unsafe fn deallocate_sized_fast(block: *mut u8, size: usize, alignment: usize) -> bool {
        let _ = alignment;
        let class = BACKEND.map.get(block.addr());
        if has_places(class)
            && let Some(state) = near_state(block.addr())
            && let Some(slack) = slack_of(state, block.addr(), class)
            && is_another_size(class, slack, size)
        {
            report(Misuse::OtherSize(block.addr()));
        }
        // SAFETY: the caller's promise.
        unsafe { free_fast(block) }
    }

    unsafe fn deallocate(block: NonNull<u8>) {
        let address = block.addr().get();
        let class = class_of(address);
        // SAFETY: the caller gives the block up.
        unsafe {
            if class.is_slab() {
                take_back(block, class);
            } else if class == SizeClass::LARGE || !free_guarded(block) {
                Elfmalloc::deallocate(block);
            }
        }
    }

    unsafe fn usable_size(block: NonNull<u8>) -> usize {
        let address = block.addr().get();
        let class = class_of(address);
        if class.is_slab() {
            return class.size() - slack_or_report(address, class);
        }
        if class == SizeClass::LARGE {
            // SAFETY: the caller's promise.
            return unsafe { Elfmalloc::usable_size(block) };
        }
        let Some(entry) = BACKEND.mapped.lock().find(address) else {
            report(Misuse::NotABlock(address))
        };
        entry.size
    }

    fn trim(keep: usize) -> bool {
        Elfmalloc::trim(keep)
    }

    fn statistics() -> Statistics {
        Elfmalloc::statistics()
    }

    fn report(report: &mut Report<'_>) {
        crate::elfmalloc::snapshot().report(Self::NAME, report);
    }

    fn report_form() -> Form {
        Elfmalloc::report_form()
    }

    fn start() {
        prepare();
        Elfmalloc::start();
    }

    fn stop() {
        crate::elfmalloc::report_at_exit::<Self>();
    }

    fn fork_prepare() {
        Elfmalloc::fork_prepare();
    }

    fn fork_parent() {
        Elfmalloc::fork_parent();
    }

    fn fork_child() {
        Elfmalloc::fork_child();
    }
}
