//! The hardened variant: the same allocator behind checks.
//!
//! For each 16 bytes of an arena there is a byte of state, out of band and out of reach: not zero where
//! a block begins that the program has, and then how much of the block it did not ask for. So a block
//! that is free, wherever it is kept, is known to be, and so is every address at which none begins.
//! What follows a block's last byte is a canary, looked at when the block is freed. Freed blocks are
//! filled and stay in a [`Quarantine`]. Blocks above 128 KiB are mappings between guard pages.

use core::ptr::NonNull;

use heapdrome_malloc_abi::{Form, MIN_ALIGNMENT, MallocAbi, Report, Statistics};
use heapdrome_pages::Pages;
use heapdrome_pages::system::random_word;

use crate::backend::Backend;
use crate::checks::{FILL, SHORT, canary, check_canary, check_filled, hand_out, prepare, slack_of};
use crate::elfmalloc::{BACKEND, Elfmalloc, class_of, heap};
use crate::heap::ThreadHeap;
use crate::large::Large;
use crate::misuse::report;
use crate::quarantine::Quarantine;
use crate::size_class::{LARGEST, SizeClass};
use crate::slab::Misuse;

/// Takes a slab's block back from the program.
///
/// # Safety
///
/// The caller gives the block up.
unsafe fn take_back(block: NonNull<u8>, class: SizeClass) {
    let address = block.addr().get();
    let slack = slack_of(address, class, true);
    // SAFETY: the block was the caller's and is this function's now; what leaves the quarantine is a
    // free block that was filled.
    unsafe {
        let place = block.as_ptr();
        check_canary(address, place.add(class.size()), slack);
        place.write_bytes(FILL, class.size());
        let other = match heap() {
            Some(heap) => BACKEND.exchange(heap, class, place),
            None => place,
        };
        if let Some(other) = NonNull::new(other) {
            check_filled(other.as_ptr(), class_of(other.addr().get()));
            if !Elfmalloc::deallocate_fast(other.as_ptr()) {
                Elfmalloc::deallocate(other);
            }
        }
    }
}

impl<P: Pages> Backend<P> {
    /// Puts a freed block into the thread's quarantine; returns one that leaves it, or null.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    unsafe fn exchange(
        &self,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        block: *mut u8,
    ) -> *mut u8 {
        // SAFETY: the heap is this thread's, and so is its quarantine.
        unsafe {
            let place = &raw mut (*heap.as_ptr()).quarantine;
            if (*place).is_null() {
                let bytes = size_of::<Quarantine>();
                let memory = self.metadata.lock().allocate(&self.pages, bytes);
                let Some(memory) = memory else { return block };
                let quarantine: *mut Quarantine = memory.as_ptr().cast();
                quarantine.write(Quarantine::new(random_word()));
                *place = quarantine;
            }
            (**place).exchange(class.size(), block)
        }
    }

    /// Gives back what is in a thread's quarantine.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub unsafe fn empty_quarantine(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the heap is this thread's; blocks in its quarantine lie in slabs.
        unsafe {
            if let Some(mut quarantine) = NonNull::new((*heap.as_ptr()).quarantine) {
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
    let slack = size.next_multiple_of(MIN_ALIGNMENT) - size;
    // SAFETY: the mapping has whole pages.
    unsafe {
        let end = block.as_ptr().add(size);
        end.write_bytes(canary(block.addr().get()), slack);
    }
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
        if entry.block != entry.base {
            let slack = entry.size.next_multiple_of(MIN_ALIGNMENT) - entry.size;
            check_canary(address, block.as_ptr().add(entry.size + slack), slack);
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
        if size >= SHORT {
            return None;
        }
        // A thread that has no heap yet finds nothing here.
        let block = Elfmalloc::allocate_fast(size + 1)?;
        // SAFETY: the block is new, and a slab's.
        unsafe { hand_out(block, SizeClass::of(size + 1), size, true) };
        Some(block)
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
            // SAFETY: the block is new, and a slab's.
            unsafe { hand_out(block, class, size, true) };
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
                let slack = slack_of(address, class, false);
                check_canary(address, block.as_ptr().add(class.size()), slack);
                if size < LARGEST && SizeClass::of(size + 1) == class {
                    hand_out(block, class, size, false);
                    return Some(block);
                }
            }
            let kept = Self::usable_size(block).min(size);
            let to = Self::allocate_fast(size).or_else(|| Self::allocate(size))?;
            to.as_ptr().copy_from_nonoverlapping(block.as_ptr(), kept);
            Self::deallocate(block);
            Some(to)
        }
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
            return class.size() - slack_of(address, class, false);
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
