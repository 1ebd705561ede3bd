//! Frees slab blocks in the hardened variant: checks each block, puts it into the quarantine, and
//! moves blocks that leave the quarantine to a magazine.

use core::ptr::{NonNull, null_mut};

use heapdrome_malloc_abi::{MallocAbi, deallocate};
use heapdrome_pages::KeepErrno;
use heapdrome_pages::system::random_word;

use crate::hardened::block::{end, is_another_size, state_or_report};
use crate::hardened::fill::fill_whole;
use crate::heap::quarantine::{GROUP, LongClass, Quarantine, Strays, has_places};
use crate::heap::thread_heap::HeapRef;
use crate::misuse::{Misuse, report};
use crate::process::thread_local::{front, heap_to_free, present_heap, quarantine, set_quarantine};
use crate::process::{Elfmalloc, HEAPS, class_of, overwrites_whole};
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};
use crate::slabs::shape::{Shape, is_long};
use crate::slabs::states::{Long, Short, State, are_known};

/// Freed blocks of threads without a quarantine.
static STRAYS: Strays = Strays::new();

/// Runs the fast path of `free`. Returns false, without any change, if the slow path is required or
/// a check fails. The slow path repeats a failed check and reports the misuse.
///
/// # Safety
///
/// `block` is null or was allocated, and is no longer used.
#[inline(always)]
pub(crate) unsafe fn free_fast(block: *mut u8) -> bool {
    let quarantine = quarantine();
    if quarantine.is_null() {
        return false;
    }
    // SAFETY: a pointer in this thread's slot is null or the thread's own quarantine.
    let Some(class) = (unsafe { (*quarantine).class_at(block.addr()) }) else {
        return false;
    };
    if !has_places(class) {
        return false;
    }
    // SAFETY: the quarantine belongs to this thread, and has places for the class. The map found
    // the address in a slab of the class, so it is not null, and `LongClass::new` selects the kind
    // of its states. The caller no longer uses the block. A block that leaves the quarantine is a
    // free block of the class, and is on no list. `pass_on` follows each full group.
    unsafe {
        let block = NonNull::new_unchecked(block);
        if let Some(long) = LongClass::new(class) {
            if !end_fast::<Long>(block, class) {
                return false;
            }
            let other = (*quarantine).exchange(long, block.as_ptr());
            if !other.is_null() && !front().push(class, other) {
                free_other(other);
            }
        } else {
            if !end_fast::<Short>(block, class) {
                return false;
            }
            if (*quarantine).put(class, block.as_ptr()) {
                pass_on(quarantine, class);
            }
        }
    }
    true
}

/// Marks a block as freed, if a live block begins there and its canaries are intact. Otherwise
/// returns false, without any change.
///
/// # Safety
///
/// The address lies in a slab of `class`, whose states are of kind `S`. If a block begins there,
/// the caller no longer uses it.
#[inline(always)]
unsafe fn end_fast<S: State>(block: NonNull<u8>, class: SizeClass) -> bool {
    let shape = Shape::of(class);
    let Some(state) = S::near(block.addr().get(), shape) else {
        return false;
    };
    let Some(slack) = state.slack() else {
        return false;
    };
    // SAFETY: the state shows that a live block with that slack begins there, and the caller no
    // longer uses it.
    unsafe { end(block, state, shape, slack) }
}

/// Returns whether the block at `address` was allocated with, or last reallocated to, a size other
/// than `size`; false if only the slow path can determine that.
#[inline(always)]
pub(crate) fn has_another_size(address: usize, size: usize) -> bool {
    let class = HEAPS.memory().map.get(address);
    if !has_places(class) {
        return false;
    }
    let shape = Shape::of(class);
    let slack = if is_long(class) {
        Long::near(address, shape).and_then(Long::slack)
    } else {
        Short::near(address, shape).and_then(Short::slack)
    };
    slack.is_some_and(|slack| is_another_size(class, slack, size))
}

/// Starts to fill the next group of `class` in the quarantine. The blocks that this group held move
/// to the magazine of `class`. If the thread has no heap, a clock check is due, or the magazine has
/// no room, they are freed one by one.
///
/// # Safety
///
/// The quarantine belongs to this thread, and a group of `class` is full.
#[inline(never)]
unsafe fn pass_on(quarantine: *mut Quarantine, class: SizeClass) {
    // SAFETY: the blocks are free blocks of the class, which are on no other list after they have
    // left the quarantine. The heap belongs to this thread, and `push_all` checks that the magazine
    // has room.
    unsafe {
        let Some(group) = (*quarantine).next_group(class) else {
            return;
        };
        let Some(heap) = present_heap() else {
            group.into_iter().for_each(|block| free_other(block));
            return;
        };
        let mut group = group;
        let mut blocks = FreeBlocks::new(class, &mut group);
        heap.front.count(GROUP);
        if heap.front.is_due() || !heap.magazine(class).push_all(&mut blocks) {
            group.into_iter().for_each(|block| free_other(block));
        }
    }
}

/// Frees a block that has left the quarantine and was not put into a magazine.
///
/// # Safety
///
/// The block is free, lies in a slab, and is on no list of free blocks.
#[cold]
#[inline(never)]
unsafe fn free_other(block: *mut u8) {
    let _errno = KeepErrno::new();
    // SAFETY: by this function's contract, the block lies in a slab, is on no list, and is not
    // used. `Elfmalloc` counts such a block as live.
    unsafe {
        if !Elfmalloc::deallocate_fast(block)
            && let Some(block) = NonNull::new(block)
        {
            // This code may run on the fast path of `free`, outside the fork gate. `deallocate`
            // enters the gate.
            deallocate::<Elfmalloc>(block);
        }
    }
}

/// Frees a slab block on the slow path. Aborts the process if a check fails.
///
/// # Safety
///
/// The address lies in a slab of `class`, and the caller no longer uses the block.
pub(crate) unsafe fn take_back(block: NonNull<u8>, class: SizeClass) {
    let address = block.addr().get();
    let (state, slack) = state_or_report(address, class);
    // SAFETY: the caller no longer uses the block, which is live and has this state and slack by
    // the check above. `end` marks it as freed. The quarantine belongs to this thread. A block that
    // leaves the quarantine is free, and on no list.
    unsafe {
        if !end(block, state, Shape::of(class), slack) {
            report(Misuse::Overflow(address));
        }
        if overwrites_whole() {
            fill_whole(block, class.size());
        }
        match heap_to_free().and_then(quarantine_of) {
            None => put_among_strays(block),
            Some(quarantine) => {
                let other = detain(quarantine.as_ptr(), class, block.as_ptr());
                if !other.is_null() {
                    free_other(other);
                }
            }
        }
    }
}

/// Adds a freed block to [`STRAYS`]. The block that it replaces goes back to its slab.
///
/// # Safety
///
/// The block is free, lies in a slab, and is on no list of free blocks.
#[cold]
unsafe fn put_among_strays(block: NonNull<u8>) {
    if let Some(other) = NonNull::new(STRAYS.exchange(random_word(), block.as_ptr())) {
        let class = class_of(other.addr().get());
        // SAFETY: a block that leaves `STRAYS` is a free block of a slab, and no other thread can
        // reach it, so it is on no list.
        HEAPS.give_one(None, unsafe { FreeBlock::new(class, other) });
    }
}

/// Puts a freed block into the quarantine. Returns the block that it replaces there, or null. A
/// short block replaces none. If it fills its group, another group leaves through [`pass_on`].
///
/// # Safety
///
/// The quarantine belongs to this thread. The block is a free block of `class`, and is on no list
/// of free blocks.
unsafe fn detain(quarantine: *mut Quarantine, class: SizeClass, block: *mut u8) -> *mut u8 {
    // SAFETY: by this function's contract, the quarantine belongs to this thread, and the block is
    // a free block of `class`. The conditions select the places that serve the class, and `pass_on`
    // follows each full group.
    unsafe {
        if !has_places(class) {
            return (*quarantine).exchange_shared(block);
        }
        if let Some(long) = LongClass::new(class) {
            return (*quarantine).exchange(long, block);
        }
        if (*quarantine).put(class, block) {
            pass_on(quarantine, class);
        }
        null_mut()
    }
}

/// Returns the thread's quarantine, created on demand; `None` if out of memory. Also lets the fast
/// path use it, if the location of the states is known and freed blocks are not overwritten
/// completely.
fn quarantine_of(heap: HeapRef) -> Option<NonNull<Quarantine>> {
    if heap.quarantine.get().is_null() {
        let memory = HEAPS.memory();
        let bytes = size_of::<Quarantine>();
        let place = memory.structures.lock().allocate(&memory.pages, bytes)?;
        // SAFETY: the memory is new, zero, large enough, and sufficiently aligned.
        unsafe {
            let mut quarantine = Quarantine::write(place, random_word());
            quarantine.as_mut().set_map(&memory.map);
            heap.quarantine.set(quarantine.as_ptr());
        }
    }
    let quarantine = heap.quarantine.get();
    if are_known() && !overwrites_whole() {
        set_quarantine(quarantine);
    }
    NonNull::new(quarantine)
}
