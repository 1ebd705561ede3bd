//! Slow paths of any allocator, behind its fork gate. While another thread forks, they allocate
//! from the fallback and defer frees.

use core::ptr::NonNull;

use heapdrome_pages::Linux;
use heapdrome_pages::system::{abort, write_error};

use crate::fallback::Freed;
use crate::fork_gate::Inside;
use crate::{MAX_SIZE, MIN_ALIGNMENT, MallocAbi};

/// Begins a slow path of `A`; returns `None` while another thread forks (see
/// [`ForkGate::enter`](crate::ForkGate::enter)).
#[inline]
pub fn enter<A: MallocAbi>() -> Option<Inside<'static>> {
    A::fork_gate().enter(A::presence())
}

#[cold]
fn allocate_from_fallback<A: MallocAbi>(size: usize, alignment: usize) -> Option<NonNull<u8>> {
    A::fork_gate().fallback().allocate(&Linux, size, alignment)
}

/// Returns a block of at least `size` bytes at a multiple of `alignment`, a power of two; `None` if
/// the size is too large, or if out of memory.
#[inline]
pub fn allocate<A: MallocAbi>(size: usize, alignment: usize) -> Option<NonNull<u8>> {
    if size > MAX_SIZE {
        return None;
    }
    let Some(_inside) = enter::<A>() else {
        return allocate_from_fallback::<A>(size, alignment);
    };
    if alignment <= MIN_ALIGNMENT {
        A::allocate(size)
    } else {
        A::allocate_aligned(size, alignment)
    }
}

/// Returns a block whose first `size` bytes are zero; `None` if out of memory.
#[inline]
pub fn allocate_zeroed<A: MallocAbi>(size: usize) -> Option<NonNull<u8>> {
    if let Some(_inside) = enter::<A>() {
        return A::allocate_zeroed(size);
    }
    let block = allocate_from_fallback::<A>(size, MIN_ALIGNMENT)?;
    // SAFETY: the block is new and has at least `size` bytes.
    unsafe { block.write_bytes(0, size) };
    Some(block)
}

/// Resizes a block as [`MallocAbi::reallocate`] does.
///
/// # Safety
///
/// The conditions of [`MallocAbi::reallocate`] hold, except that the fallback may have allocated
/// the block.
pub unsafe fn reallocate<A: MallocAbi>(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    let kept = A::fork_gate().fallback().usable_size(block.addr().get());
    if kept.is_none()
        && let Some(_inside) = enter::<A>()
    {
        // SAFETY: by this function's contract, the conditions of `MallocAbi::reallocate` hold,
        // because the fallback did not allocate the block.
        return unsafe { A::reallocate(block, size) };
    }
    // SAFETY: the closure runs only for a block that the fallback did not allocate, so this is a
    // live block of the allocator.
    let kept = kept.unwrap_or_else(|| unsafe { A::usable_size(block) });
    let moved = A::allocate_fast(size).or_else(|| allocate::<A>(size, MIN_ALIGNMENT));
    let Some(moved) = moved else {
        return (size <= kept).then_some(block);
    };
    // SAFETY: the blocks are different and have at least the copied size, and the caller no longer
    // uses the old block.
    unsafe {
        moved.copy_from_nonoverlapping(block, kept.min(size));
        if !A::deallocate_fast(block.as_ptr()) {
            deallocate::<A>(block);
        }
    }
    Some(moved)
}

/// Frees a block. While another thread forks, the free is deferred until the fork is over, unless
/// the fallback allocated the block.
///
/// # Safety
///
/// The conditions of [`MallocAbi::deallocate`] hold, except that the fallback may have allocated
/// the block.
#[inline(always)]
pub unsafe fn deallocate<A: MallocAbi>(block: NonNull<u8>) {
    if A::fork_gate().fallback().is_used() && free_fallback::<A>(block) {
        return;
    }
    match enter::<A>() {
        // SAFETY: by this function's contract, the block is live and the caller no longer uses it.
        // The fallback did not allocate it.
        Some(_inside) => unsafe { A::deallocate(block) },
        // SAFETY: the block is a live block of the allocator that the caller no longer uses, so any
        // thread inside the gate may free it.
        None => unsafe { defer::<A>(|block| A::deallocate(block), block) },
    }
}

/// Frees a block that the fallback allocated. Returns false, without any change, for a block of the
/// allocator. Aborts the process if the address lies in the fallback's memory but no live block
/// begins there.
#[cold]
fn free_fallback<A: MallocAbi>(block: NonNull<u8>) -> bool {
    match A::fork_gate().free_fallback(&Linux, block.addr().get()) {
        Freed::Done => true,
        Freed::Elsewhere => false,
        Freed::NotABlock => {
            write_error(A::NAME.as_bytes());
            write_error(b": free of an address at which no live block begins\n");
            abort()
        }
    }
}

/// Returns the usable bytes of a block.
///
/// # Safety
///
/// The conditions of [`MallocAbi::usable_size`] hold, except that the fallback may have allocated
/// the block.
pub unsafe fn usable_size<A: MallocAbi>(block: NonNull<u8>) -> usize {
    let known = A::fork_gate().fallback().usable_size(block.addr().get());
    // SAFETY: the closure runs only for a block that the fallback did not allocate, so this is a
    // live block of the allocator.
    known.unwrap_or_else(|| unsafe { A::usable_size(block) })
}

/// Purges the fallback, calls [`MallocAbi::trim`], and returns its result. While another thread
/// forks, does nothing and returns false.
pub fn trim<A: MallocAbi>(keep: usize) -> bool {
    enter::<A>().is_some_and(|_inside| {
        A::fork_gate().fallback().purge(&Linux);
        A::trim(keep)
    })
}

/// Calls `run` with `subject` once no other thread forks, perhaps in another thread.
///
/// # Safety
///
/// Any thread that has entered the gate of `A` may call `run` once with `subject`.
#[cold]
pub unsafe fn defer<A: MallocAbi>(run: unsafe fn(NonNull<u8>), subject: NonNull<u8>) {
    // SAFETY: this function's contract is that of `ForkGate::defer`.
    unsafe { A::fork_gate().defer(A::presence(), &Linux, run, subject) };
}

/// Calls `end` with the state of an ending thread, once no other thread forks. The thread must
/// already use a shared presence, because another thread may soon own the state.
///
/// # Safety
///
/// Any thread that has entered the gate of `A` may call `end` once with `state`.
/// [`MallocAbi::presence`] returns a shared presence to the calling thread.
pub unsafe fn end_thread<A: MallocAbi>(end: unsafe fn(NonNull<u8>), state: NonNull<u8>) {
    debug_assert!(A::presence().is_shared());
    match enter::<A>() {
        // SAFETY: `end` may be called once with `state`, by this function's contract.
        Some(_inside) => unsafe { end(state) },
        // SAFETY: any thread inside the gate may call `end` once with `state`, by this function's
        // contract.
        None => unsafe { defer::<A>(end, state) },
    }
}
