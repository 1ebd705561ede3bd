//! Runs the operations of a thread.

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

/// Number of operations of a group.
const GROUP: usize = 4;

/// Runs a thread's operations to their end, in groups. The highest bits of a group's words show
/// which operations are frees. One jump leads to the code for this order of mallocs and frees. In a
/// random order of calls, the processor thus mispredicts one jump per group, not one per operation.
///
/// A malloc and a free take few instructions. All other operations have a null pointer in their
/// slot, which ends the group.
///
/// # Safety
/// `compile` wrote the program, and `next` is the address of this thread's next operation. So every
/// slot is within the table, is used by one thread at a time, and holds a live block when it is
/// freed. `TOUCH` is the discriminant of the replay's `touch`.
pub(super) unsafe fn run<H: Heap, const TOUCH: u8>(
    replay: &Replay<'_, H>,
    thread: u32,
    mut next: *const u64,
) {
    let slots = replay.slots;
    // The words of frees are negative offsets from this address.
    let end = slots.wrapping_add(MAX_SLOTS as usize);
    // Runs the operations of a group in the given order, and continues after the group. An
    // operation of another kind ends the group: the loop continues after that operation.
    macro_rules! group {
        ($($place:literal $free:literal)*) => {{
            $(
                // SAFETY: the conditions of `run` hold. Each earlier operation of the group took
                // one word, so this word is the first of an operation of this thread. `frees` has
                // read its highest bit, which is `$free`. `slots` and `end` are the addresses that
                // `short` requires.
                let done = unsafe {
                    let word = next.add($place).read();
                    short::<H, TOUCH, $free>(replay, [slots, end], word)
                };
                if !done {
                    // SAFETY: the word begins an operation of this thread, and this function's
                    // conditions hold. `short` has rejected the word: it is neither a short malloc
                    // nor a free, or it frees a block that was never allocated. In the latter case
                    // `other` ends the process.
                    next = unsafe { other::<H, TOUCH>(replay, thread, next.add($place)) };
                    if next.is_null() {
                        return;
                    }
                    continue;
                }
            )*
            // SAFETY: all four operations took one word, and none of them ends the program, so
            // another operation follows.
            next = unsafe { next.add(GROUP) };
        }};
    }
    loop {
        // SAFETY: `next` lies within the program, by this function's contract: an operation that
        // ends a piece leads to another, and none follows the end. The table of threads follows the
        // last piece and begins on a page of its own, so a whole group is readable.
        match unsafe { frees(next.cast()) } {
            0b0000 => group!(0 false 1 false 2 false 3 false),
            0b0001 => group!(0 true 1 false 2 false 3 false),
            0b0010 => group!(0 false 1 true 2 false 3 false),
            0b0011 => group!(0 true 1 true 2 false 3 false),
            0b0100 => group!(0 false 1 false 2 true 3 false),
            0b0101 => group!(0 true 1 false 2 true 3 false),
            0b0110 => group!(0 false 1 true 2 true 3 false),
            0b0111 => group!(0 true 1 true 2 true 3 false),
            0b1000 => group!(0 false 1 false 2 false 3 true),
            0b1001 => group!(0 true 1 false 2 false 3 true),
            0b1010 => group!(0 false 1 true 2 false 3 true),
            0b1011 => group!(0 true 1 true 2 false 3 true),
            0b1100 => group!(0 false 1 false 2 true 3 true),
            0b1101 => group!(0 true 1 false 2 true 3 true),
            0b1110 => group!(0 false 1 true 2 true 3 true),
            _ => group!(0 true 1 true 2 true 3 true),
        }
    }
}

/// Returns the highest bit of each word of a group. The lowest bit of the result belongs to the
/// first word.
///
/// # Safety
/// A group of words is readable at the address.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn frees(words: *const f64) -> u32 {
    use std::arch::x86_64::{_mm_loadu_pd, _mm_movemask_pd};
    // SAFETY: the four words are readable, by this function's contract, and every x86-64 has these
    // instructions.
    let [low, high] = unsafe {
        [words, words.add(GROUP / 2)]
            .map(|half| _mm_movemask_pd(_mm_loadu_pd(half)).cast_unsigned())
    };
    // The processor returns two bits for each half.
    (low & 3) | (high & 3) << (GROUP / 2)
}

/// Returns the highest bit of each word of a group. The lowest bit of the result belongs to the
/// first word.
///
/// # Safety
/// A group of words is readable at the address.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn frees(words: *const f64) -> u32 {
    // SAFETY: the words are readable, by this function's contract.
    let words = unsafe { words.cast::<[u64; GROUP]>().read() };
    let bit = |bits, (place, word)| bits | ((word >> 63) as u32) << place;
    words.into_iter().enumerate().fold(0, bit)
}

/// Runs a malloc or a free. Returns false if the word belongs to another operation, or frees a
/// block that was not made. Both addresses are arguments, so that they stay in registers.
///
/// # Safety
/// The conditions of [`run`] hold. `word` is the first of an operation, and negative if `FREE`.
/// `slots` is the start of the table, and `end` the address [`MAX_SLOTS`] entries after it.
#[inline(always)]
unsafe fn short<H: Heap, const TOUCH: u8, const FREE: bool>(
    replay: &Replay<'_, H>,
    [slots, end]: [*mut *mut u8; 2],
    word: u64,
) -> bool {
    let heap = replay.heap;
    if !FREE {
        let size = word as u32 as usize;
        let block = heap.malloc(size);
        if TOUCH == Touch::Check as u8 {
            // SAFETY: the block is null, or new with `size` bytes. The slot is within the tables,
            // only this thread uses it, and this replay checks contents.
            unsafe { check_new(replay, block, (word >> 32) as u32, size) };
        } else if TOUCH != Touch::None as u8 {
            made::<TOUCH>(block, 0, size);
        }
        // SAFETY: the slot is within the table, and only this thread uses it.
        unsafe { slots.add((word >> 32) as usize).write(block) };
        return true;
    }
    // SAFETY: the slot is within the table, and only this thread uses it.
    let block = unsafe { end.wrapping_offset(word as isize).read() };
    if block.is_null() {
        return false;
    }
    if TOUCH == Touch::Check as u8 {
        // SAFETY: the block is the live one of this slot, which is within the tables. Only this
        // thread uses the slot, and this replay checks contents.
        unsafe { check_freed(replay, block, (word as u32) ^ MAX_SLOTS) };
    }
    // SAFETY: the block is live, because the call that made it wrote the slot before. No operation
    // uses the block after its free.
    unsafe { heap.free(block) };
    true
}

/// Checks that a new block is not null, and touches a range of its bytes.
#[inline(always)]
fn made<const TOUCH: u8>(block: *mut u8, begin: usize, end: usize) {
    if block.is_null() {
        out_of_memory(end as u64);
    }
    // SAFETY: both callers pass a block that the allocator just returned for at least `end` bytes,
    // which no other thread knows.
    unsafe { touch::<TOUCH>(block, begin, end) };
}

/// Checks the alignment of a new block, and fills the block with its pattern.
///
/// # Safety
/// `block` is null, or has `size` bytes, which no other thread knows. The slot is within the
/// tables, and only this thread uses it. The replay checks contents ([`Touch::Check`]).
unsafe fn check_new<H>(replay: &Replay<'_, H>, block: *mut u8, slot: u32, size: usize) {
    if block.is_null() {
        out_of_memory(size as u64);
    }
    check::aligned(block, check::guaranteed(size), size);
    // SAFETY: the block and the slot are as this function requires. A replay that checks contents
    // has a table of sizes.
    unsafe {
        replay.sizes.add(slot as usize).write(size);
        check::fill(block, slot, size);
    }
}

/// Before a block is freed, compares its content with its pattern, and clears its size.
///
/// # Safety
/// `block` is the live block of this slot. The slot is within the tables, and only this thread uses
/// it. The replay checks contents ([`Touch::Check`]).
unsafe fn check_freed<H>(replay: &Replay<'_, H>, block: *mut u8, slot: u32) {
    // SAFETY: the block and the slot are as this function requires. A replay that checks contents
    // has a table of sizes, and has filled each block of that table with its pattern.
    unsafe {
        let size = replay.sizes.add(slot as usize).replace(0);
        check::compare(block, slot, size, size);
    }
}

/// Runs an operation that is neither a short malloc nor a free. Returns the address of the next
/// operation, or null at the end of the thread. Ends the process if the word frees a block that an
/// earlier call failed to make.
///
/// # Safety
/// The conditions of [`run`] hold, and the operation begins at `at`.
#[cold]
#[inline(never)]
unsafe fn other<H: Heap, const TOUCH: u8>(
    replay: &Replay<'_, H>,
    thread: u32,
    at: *const u64,
) -> *const u64 {
    let lanes = replay.lanes;
    // SAFETY: the operation has a first word.
    let (word, next) = unsafe { (at.read(), at.add(1)) };
    let Some(kind) = Kind::of(word) else {
        was_out_of_memory();
    };
    // SAFETY: the conditions of `run` hold, so `compile` wrote the fields of the operation. Every
    // lane, slot and piece that they name exists. Only the first thread starts and joins threads.
    // It does so once for each, before the replay ends.
    unsafe {
        match kind {
            Kind::End => return ptr::null(),
            Kind::Jump => return jump(replay, next),
            Kind::Publish => (*lanes.add(thread as usize)).gate.publish(),
            // `black_box`, because the compiler removes a call with an address that it knows to be
            // null.
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

/// Runs an operation that makes a block. Returns the address of the next operation.
///
/// # Safety
/// The conditions of [`run`] hold, and the fields of an operation of this kind begin at `next`.
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
    // SAFETY: the slot is within the table, and only this thread uses it.
    let slot = unsafe { replay.slots.add((first >> 32) as usize) };
    // The logarithm is below 64 if the operation has one.
    let alignment = 1_usize << (first % 64);
    let heap = replay.heap;
    let (block, kept, written) = match kind {
        Kind::Calloc | Kind::ShortCalloc => (heap.calloc(size), 0, size),
        Kind::Aligned => (heap.aligned(alignment, size), 0, size),
        Kind::AlignedAlloc => (heap.aligned_alloc(alignment, size), 0, size),
        Kind::Resize | Kind::ShortResize => {
            let (before, written) = (field() as usize, field() as usize);
            // SAFETY: the slot holds the block that is resized, or null if an earlier call failed
            // unnoticed. The slot is overwritten below, so the old block is not used again.
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
        // SAFETY: the call of this kind returned the block, which is null or has `size` bytes that
        // no other thread knows. A resized block had `kept` bytes before. The slot is within the
        // tables, only this thread uses it, and this replay checks contents.
        true => unsafe { check_made(replay, kind, block, first, (kept, size)) },
        false => made::<TOUCH>(block, kept, end),
    }
    // SAFETY: the slot is within the table, and only this thread uses it.
    unsafe { slot.write(block) };
    next
}

/// Checks the alignment and the content that the call guarantees for a new block, and fills the
/// block. `first` is the first field of the operation. `kept` is the size of the block before a
/// resize.
///
/// # Safety
/// `block` came from a call of this kind. It is null, or has `size` bytes, which no other thread
/// knows. The slot is within the tables, and only this thread uses it. The replay checks contents
/// ([`Touch::Check`]).
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
    // SAFETY: the block and the slot are as this function requires. The block of a calloc came from
    // calloc. The bytes that a resize kept lie within the block, and were filled when it had `kept`
    // bytes.
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

/// Returns the address of a thread's next piece. Loads that piece, and releases the memory of the
/// finished one.
///
/// # Safety
/// The conditions of [`run`] hold, and the fields of a jump begin at `next`.
unsafe fn jump<H>(replay: &Replay<'_, H>, next: *const u64) -> *const u64 {
    let program = &replay.program;
    let base = program.place().cast::<u64>().cast_const();
    // SAFETY: a jump has three fields, by this function's contract.
    let [goal, bytes, piece] = unsafe { next.cast::<[u64; 3]>().read() };
    // SAFETY: both addresses lie in the program's mapping, a whole number of words apart.
    let words = unsafe { next.add(3).offset_from(base) } as u64 - piece;
    replay.held.load(program, goal * WORD, bytes);
    // Small pieces share their pages with pieces of other threads, so their pages are not released.
    if words > PAGE_WORDS {
        program.release(piece * WORD, words * WORD);
        replay.held.shrink(words * WORD);
    }
    // SAFETY: `compile` wrote the next piece at this offset.
    unsafe { base.add(goal as usize) }
}
