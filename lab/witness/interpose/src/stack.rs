//! Takes the stack of a call: copies its memory into a ring of the calling thread, so that the
//! collector can unwind it. Nothing here allocates.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::control;
use crate::extent::{self, Extent};
use crate::own::is_sandboxed;
use crate::ring::Ring;
use crate::rings;
use crate::stack_ring::{HEADER_BYTES, MAX_COPY, StackRing, bytes_of, seal, skip};
use crate::stack_rings;
use crate::thread::thread;
use crate::waiting::wait_until;

/// Registers of a caller after the call has returned.
#[derive(Clone, Copy)]
pub struct Registers {
    /// The address to which the call returns.
    pub return_address: usize,
    /// The stack pointer after the return.
    pub stack_pointer: usize,
    pub frame_pointer: usize,
}

/// Copies the stack of the caller with these registers. Returns the copy's place in the thread's
/// ring of stacks; `None` if recording is over, there is no memory for a ring, or a sandbox
/// prevents the copy.
pub fn take(registers: Registers) -> Option<u64> {
    let entries = rings::current()?;
    let ring = stack_rings::of(entries)?;
    let pointer = registers.stack_pointer;
    let own = own_stack(pointer);
    if own.is_none() && is_sandboxed() {
        // Copying another stack needs a system call, which may be forbidden.
        control::stack_left_out();
        return None;
    }
    let most = MAX_COPY as usize;
    let length = match own {
        Some(own) => (own.high - pointer).min(most) & !(WORD - 1),
        None => most,
    };
    let place = reserve(entries, ring, length as u64)?;
    let header = ring.header(place);
    // SAFETY: the reserved room continues after the header.
    let target = unsafe { core::ptr::from_ref(header).add(1) }
        .cast_mut()
        .cast::<u8>();
    let copied = if own.is_some() {
        // SAFETY: the source is in this thread's own stack, and the target is the reserved room in
        // the ring, so they do not overlap. The collector reads the target only after it has seen
        // the seal.
        unsafe { target.copy_from_nonoverlapping(pointer as *const u8, length) };
        length
    } else {
        // SAFETY: the target is reserved, and has room for `length` bytes.
        unsafe { extent::copy_carefully(pointer, target, length) }
    };
    let store = |word: &AtomicU64, value: usize| {
        word.store(value as u64, Ordering::Relaxed);
    };
    store(&header.room, bytes_of(length as u64) as usize);
    store(&header.length, copied);
    store(&header.return_address, registers.return_address);
    store(&header.stack_pointer, pointer);
    store(&header.frame_pointer, registers.frame_pointer);
    // Release: pairs with the collector's acquire of the seal, so the collector sees the whole
    // copy.
    header.seal.store(seal(place), Ordering::Release);
    Some(place)
}

const WORD: usize = size_of::<usize>();

/// Returns the calling thread's own stack. Returns `None` if the thread runs on another stack, or
/// its own stack is not known.
fn own_stack(pointer: usize) -> Option<Extent> {
    let thread = thread();
    if thread.stack.get().may_have(pointer) && !is_sandboxed() {
        let local = (&raw const *thread) as usize;
        if let Some(found) = extent::find(pointer, local) {
            thread.stack.set(found);
        } else if thread.stack.get().high == 0 {
            // The stack was not found. This value prevents another search.
            thread.stack.set(Extent { low: 1, high: 1 });
        }
    }
    thread
        .stack
        .get()
        .has(pointer)
        .then_some(thread.stack.get())
}

/// Reserves room for a copy and waits until the room is free. Returns its place; `None` if
/// recording is over.
fn reserve(entries: &Ring, ring: &StackRing, length: u64) -> Option<u64> {
    let (place, skipped) = ring.reserve(length);
    let end = place + bytes_of(length);
    if let Some(skipped) = skipped {
        wait_for(entries, ring, skipped + HEADER_BYTES)?;
        // Release: pairs with the collector's acquire of the seal.
        ring.header(skipped)
            .seal
            .store(skip(skipped), Ordering::Release);
    }
    wait_for(entries, ring, end)?;
    Some(place)
}

fn wait_for(entries: &Ring, ring: &StackRing, end: u64) -> Option<()> {
    (end <= ring.limit() || wait_until(entries, &|| end <= ring.limit())).then_some(())
}
