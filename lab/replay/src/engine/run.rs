//! The loop that runs a thread's operations.

use std::ptr;

use super::heap::Heap;
use super::stop::{out_of_memory, was_out_of_memory};
use super::touch::touch;
use super::{Replay, check, lane};
use crate::options::Touch;
use crate::program::{PAGE_WORDS, WORD};
use crate::words::{Kind, MAX_SLOTS};

/// Bytes of a thread's first piece.
pub(super) const FIRST_PIECE: u64 = 512;

/// Runs operations up to the thread's end. A malloc and a free take few instructions: the rest is
/// told by a null pointer.
///
/// # Safety
/// `compile` wrote the program, and `next` is where this thread's operations begin. So every slot
/// is within the table, is used by one thread at a time, and holds a block when it is freed.
pub(super) unsafe fn run<H: Heap, const TOUCH: u8>(
    replay: &Replay<'_, H>,
    thread: u32,
    mut next: *const u64,
) {
    let (heap, slots) = (replay.heap, replay.slots);
    // The words of frees count back from here.
    let end = slots.wrapping_add(MAX_SLOTS as usize);
    loop {
        // SAFETY: `next` lies within the program, by this function's contract: an operation that
        // ends a piece leads to another, and none follows the end.
        let word = unsafe {
            let word = next.read();
            next = next.add(1);
            word
        };
        if word as i64 >= 0 {
            let size = word as u32 as usize;
            let block = heap.malloc(size);
            if TOUCH == Touch::Check as u8 {
                // SAFETY: the block is new, and the slot this thread's alone.
                unsafe { check_new(replay, block, (word >> 32) as u32, size) };
            } else if TOUCH != Touch::None as u8 {
                made::<TOUCH>(block, 0, size);
            }
            // SAFETY: the slot is within the table, and this thread's alone.
            unsafe { slots.add((word >> 32) as usize).write(block) };
            continue;
        }
        // SAFETY: the slot is within the table, and this thread's alone.
        let block = unsafe { end.wrapping_offset(word as isize).read() };
        if !block.is_null() {
            if TOUCH == Touch::Check as u8 {
                // SAFETY: the block lives, and the slot is this thread's alone.
                unsafe { check_freed(replay, block, (word as u32) ^ MAX_SLOTS) };
            }
            // SAFETY: the block lives: the slot is written by the call that makes it before.
            unsafe { heap.free(block) };
            continue;
        }
        // SAFETY: `next` follows the first word of an operation.
        next = unsafe { other::<H, TOUCH>(replay, thread, word, next) };
        if next.is_null() {
            return;
        }
    }
}

/// Looks at a new block, and touches it from one byte to another.
#[inline(always)]
fn made<const TOUCH: u8>(block: *mut u8, begin: usize, end: usize) {
    if block.is_null() {
        out_of_memory(end as u64);
    }
    // SAFETY: the allocator gave `end` bytes, of which only this thread knows.
    unsafe { touch::<TOUCH>(block, begin, end) };
}

/// Looks at a new block's address, and fills it.
///
/// # Safety
/// The allocator gave `size` bytes, of which only this thread knows, and the slot is in the tables
/// and this thread's alone.
unsafe fn check_new<H>(replay: &Replay<'_, H>, block: *mut u8, slot: u32, size: usize) {
    if block.is_null() {
        out_of_memory(size as u64);
    }
    check::aligned(block, check::guaranteed(size), size);
    // SAFETY: by this function's contract; a replay that checks has a table of sizes.
    unsafe {
        replay.sizes.add(slot as usize).write(size);
        check::fill(block, slot, size);
    }
}

/// Compares a block that is freed next, and forgets its size.
///
/// # Safety
/// The block of this slot lives, and the slot is in the tables and this thread's alone.
unsafe fn check_freed<H>(replay: &Replay<'_, H>, block: *mut u8, slot: u32) {
    // SAFETY: by this function's contract; a replay that checks has a table of sizes.
    unsafe {
        let size = replay.sizes.add(slot as usize).replace(0);
        check::compare(block, slot, size, size);
    }
}

/// Runs an operation that is neither a short malloc nor a free. Returns where the next one stands;
/// null at the end.
///
/// # Safety
/// As for [`run`]; `next` follows `word`, the first word of an operation.
#[cold]
#[inline(never)]
unsafe fn other<H: Heap, const TOUCH: u8>(
    replay: &Replay<'_, H>,
    thread: u32,
    word: u64,
    next: *const u64,
) -> *const u64 {
    let lanes = replay.lanes;
    let Some(kind) = Kind::of(word) else {
        was_out_of_memory();
    };
    // SAFETY: `compile` gave the operation its fields, and every lane, slot and piece that it names
    // exists; it starts and joins each thread once.
    unsafe {
        match kind {
            Kind::End => return ptr::null(),
            Kind::Jump => return jump(replay, next),
            Kind::Publish => (*lanes.add(thread as usize)).gate.publish(),
            // The compiler removes a call with an address that it knows to be null.
            Kind::FreeNull => replay.heap.free(std::hint::black_box(ptr::null_mut())),
            Kind::Wait => {
                let field = next.read();
                let gate = &(*lanes.add((field >> 32) as usize)).gate;
                gate.wait(field as u32);
                return next.add(1);
            }
            Kind::Until => {
                replay.clock.sleep_until(next.read());
                return next.add(1);
            }
            Kind::Start => {
                lane::start(replay, next.read() as u32);
                return next.add(1);
            }
            Kind::Join => {
                lane::join(replay, next.read() as u32);
                return next.add(1);
            }
            _ => return make::<H, TOUCH>(replay, kind, next),
        }
    }
    next
}

/// Runs an operation that makes a block. Returns where the next one stands.
///
/// # Safety
/// As for [`run`]; `next` is where the fields of an operation of this kind begin.
unsafe fn make<H: Heap, const TOUCH: u8>(
    replay: &Replay<'_, H>,
    kind: Kind,
    mut next: *const u64,
) -> *const u64 {
    let mut field = || {
        // SAFETY: the operation has the fields that are read below, by this function's contract.
        unsafe {
            let field = next.read();
            next = next.add(1);
            field
        }
    };
    let first = field();
    let size = match kind {
        Kind::ShortCalloc | Kind::ShortResize => u64::from(first as u32),
        _ => field(),
    } as usize;
    // SAFETY: the slot is within the table, and this thread's alone.
    let slot = unsafe { replay.slots.add((first >> 32) as usize) };
    // The logarithm is below 64 where the operation has one.
    let alignment = 1_usize << (first % 64);
    let heap = replay.heap;
    let (block, kept, written) = match kind {
        Kind::Calloc | Kind::ShortCalloc => (heap.calloc(size), 0, size),
        Kind::Aligned => (heap.aligned(alignment, size), 0, size),
        Kind::AlignedAlloc => (heap.aligned_alloc(alignment, size), 0, size),
        Kind::Resize | Kind::ShortResize => {
            let (before, written) = (field() as usize, field() as usize);
            // SAFETY: the slot holds the block that is resized, or null if a call failed unseen.
            let block = unsafe { heap.realloc(slot.read(), size) };
            (block, before, written)
        }
        _ => (heap.malloc(size), 0, size),
    };
    let end = match TOUCH == Touch::Pages as u8 {
        true => written,
        false => size,
    };
    match TOUCH == Touch::Check as u8 {
        // SAFETY: the block is new, or resized from one that had `kept` bytes.
        true => unsafe { check_made(replay, kind, block, first, (kept, size)) },
        false => made::<TOUCH>(block, kept, end),
    }
    // SAFETY: as above.
    unsafe { slot.write(block) };
    next
}

/// Compares the promises of the call that made a block, and fills the block. `first` is the first
/// field of its operation; a resize kept the content of `kept` bytes.
///
/// # Safety
/// The allocator gave `size` bytes, of which only this thread knows, and the slot is in the tables
/// and this thread's alone.
unsafe fn check_made<H>(
    replay: &Replay<'_, H>,
    kind: Kind,
    block: *mut u8,
    first: u64,
    (kept, size): (usize, usize),
) {
    let slot = (first >> 32) as u32;
    if block.is_null() {
        out_of_memory(size as u64);
    }
    // SAFETY: by this function's contract. What a resize keeps lies in the block.
    unsafe {
        match kind {
            Kind::Calloc | Kind::ShortCalloc => check::zeroed(block, size),
            Kind::Aligned | Kind::AlignedAlloc => check::aligned(block, 1 << (first % 64), size),
            Kind::Resize | Kind::ShortResize => {
                check::compare(block, slot, kept, kept.min(size));
            }
            _ => {}
        }
        check_new(replay, block, slot, size);
    }
}

/// Goes on in the next piece of a thread's operations, and leaves the memory of this one.
///
/// # Safety
/// As for [`run`]; `next` is where the fields of a jump begin.
unsafe fn jump<H>(replay: &Replay<'_, H>, next: *const u64) -> *const u64 {
    let program = &replay.program;
    let base = program.place().cast::<u64>().cast_const();
    // SAFETY: a jump has three fields, by this function's contract.
    let [goal, bytes, piece] = unsafe { next.cast::<[u64; 3]>().read() };
    // SAFETY: both lie in the program's mapping.
    let words = unsafe { next.add(3).offset_from(base) } as u64 - piece;
    replay.held.load(program, goal * WORD, bytes);
    // Small pieces share their pages with those of other threads.
    if words > PAGE_WORDS {
        program.release(piece * WORD, words * WORD);
        replay.held.shrink(words * WORD);
    }
    // SAFETY: `compile` put the next piece there.
    unsafe { base.add(goal as usize) }
}
