//! What the hardened variant knows of blocks: their states, their canaries, what they are filled with.
//!
//! For each 16 bytes of an arena there is a byte of state, out of band. It is zero but where a block
//! begins that the program has. There it says how many bytes at the block's end the program did not
//! ask for, its slack; for long blocks, of more than [`SHORT`] bytes, a word does:
//!
//! ```text
//!  short:  | slack |                                     1 to 254
//!  long:   | 255 | 0 | 0 | 0 | slack, 7 bits a byte |    no byte of it can be taken for the first
//! ```

use core::ptr::NonNull;
use heapdrome_pages::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering::Relaxed};

use heapdrome_malloc_abi::MIN_ALIGNMENT;
use heapdrome_pages::system::{abort, random_word};

use crate::arena::GRAIN;
use crate::elfmalloc::{BACKEND, want_states};
use crate::misuse::report;
use crate::size_class::SizeClass;
use crate::slab::{Misuse, Slab};

/// The largest blocks that are not long.
pub(crate) const SHORT: usize = 1024;
/// The most slack that one byte says.
const MOST_SHORT: usize = 254;
/// The state of a long block.
const LONG: u8 = 255;
/// Bytes of canary behind a block's last byte, or as many as there are.
const CANARY: usize = size_of::<u64>();
/// What freed blocks are filled with.
const FILL: u8 = 0xdb;
/// As many bytes of a block are filled.
const FILLED: usize = 128;
/// As many bytes of a block are looked at again before it is handed out again.
const LOOKED_AT: usize = 64;
/// Blocks are filled and looked at in pieces of this size, the last one again where there are fewer.
const PIECE: usize = size_of::<u128>();
/// As many bytes before and behind a block in a mapping of its own are a canary.
const EDGE: usize = 64;

static KEY: AtomicU64 = AtomicU64::new(0);
/// The states, as if those of address zero were there; null until they are known, and for ever where
/// there are several arenas.
static STATES: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Does what must be done before the first block.
pub(crate) fn prepare() {
    // Relaxed: any of the values will do, and the first one stays.
    if KEY.load(Relaxed) == 0 {
        want_states();
        let _ = KEY.compare_exchange(0, random_word() | 1, Relaxed, Relaxed);
    }
}

/// Remembers where the states are, from a block of a slab. Where the class map knows the block, all
/// slabs lie in one arena.
#[cold]
pub(crate) fn find_states(block: NonNull<u8>) {
    let address = block.addr().get();
    if BACKEND.map.get(address) != SizeClass::NONE {
        let state = BACKEND.directory.state_of(address).cast_mut().cast::<u8>();
        // Relaxed: every thread that stores here stores the same.
        STATES.store(state.wrapping_sub(address / GRAIN), Relaxed);
    }
}

/// The byte that follows the block at `address`, eight times; never zero, which is what a string ends
/// with. All bytes are the same, so that two canaries may overlap.
#[inline(always)]
fn canary(address: usize) -> u64 {
    let mixed = (address as u64).wrapping_mul(KEY.load(Relaxed));
    (mixed >> 56 | 1).wrapping_mul(0x0101_0101_0101_0101)
}

/// Whether a block of `class` begins at `address`, which lies in a slab.
fn begins(address: usize, class: SizeClass) -> bool {
    let slab: *mut Slab = BACKEND.slab_of(address);
    let shape = class.geometry();
    // SAFETY: the address lies in a slab.
    let offset = address - unsafe { (*slab).base.addr() };
    let index = shape.index(offset);
    index * shape.size as usize == offset && index < usize::from(shape.blocks)
}

/// Ends the process: no block that the program has begins at `address`.
#[cold]
fn no_block(address: usize, class: SizeClass) -> ! {
    report(if begins(address, class) {
        Misuse::DoubleFree(address)
    } else {
        Misuse::NotABlock(address)
    })
}

/// The state of what begins at `address`, which lies in a slab.
#[inline(always)]
fn state_at(address: usize) -> *const AtomicU8 {
    let states = STATES.load(Relaxed);
    if states.is_null() {
        return state_in_directory(address);
    }
    states.wrapping_add(address / GRAIN).cast()
}

#[cold]
fn state_in_directory(address: usize) -> *const AtomicU8 {
    let state = BACKEND.directory.state_of(address);
    if state.is_null() {
        // Another variant of the allocator was used first in this process, and made arenas without.
        abort();
    }
    state
}

/// How much slack the block at `address`, which lies in a slab of `class`, has; `None` if the program
/// has no block there.
#[inline(always)]
pub(crate) fn slack_of(address: usize, class: SizeClass) -> Option<usize> {
    if !address.is_multiple_of(MIN_ALIGNMENT) {
        return None;
    }
    let state = state_at(address);
    // SAFETY: the states of a slab's memory are committed with it, and stay; a long block has at
    // least 64 of them, and begins at a multiple of 128 bytes, eight states, if it is one.
    unsafe {
        // Relaxed: the block itself is handed on through locks, or by the program. Two threads that
        // free it at the same moment may both find it live: the slab's bitmap sees that later.
        let byte = (*state).load(Relaxed);
        if class.size() <= SHORT {
            return (byte != 0).then_some(usize::from(byte));
        }
        if byte != LONG || !state.addr().is_multiple_of(align_of::<AtomicU64>()) {
            return None;
        }
        let slack = (*state.cast::<AtomicU64>()).load(Relaxed) >> 32;
        Some((slack & 0x7f | slack >> 1 & 0x3f80 | slack >> 2 & 0x001f_c000) as usize)
    }
}

/// The same; ends the process if the program has no block there.
pub(crate) fn slack_or_report(address: usize, class: SizeClass) -> usize {
    slack_of(address, class).unwrap_or_else(|| no_block(address, class))
}

/// Says that a block has `slack` bytes at its end.
#[inline(always)]
fn set_slack(address: usize, class: SizeClass, slack: usize) {
    let state = state_at(address);
    // SAFETY: as in `slack_of`.
    unsafe {
        if class.size() <= SHORT {
            (*state).store(slack as u8, Relaxed);
        } else {
            let slack = slack as u64;
            let spread = slack & 0x7f | (slack & 0x3f80) << 1 | (slack & 0x001f_c000) << 2;
            let word = spread << 32 | u64::from(LONG);
            (*state.cast::<AtomicU64>()).store(word, Relaxed);
        }
    }
}

/// Says that the program has the block no more, and overwrites what it had there.
///
/// # Safety
///
/// The block is one of `class`, and nobody uses it.
#[inline(always)]
pub(crate) unsafe fn end(block: NonNull<u8>, class: SizeClass) {
    let state = state_at(block.addr().get());
    // SAFETY: as in `slack_of`; the block is the caller's.
    unsafe {
        if class.size() <= SHORT {
            (*state).store(0, Relaxed);
        } else {
            (*state.cast::<AtomicU64>()).store(0, Relaxed);
        }
        fill(block, class);
    }
}

/// Where the canaries of a block lie. Sizes are random to a branch predictor: none of this branches.
struct Canaries {
    /// The first begins behind the last byte that the program asked for, but not so late that it would
    /// not end within the block.
    first: usize,
    /// The last ends with the block. It may overlap with the first, or be the same.
    last: usize,
    /// How many bits of the first are the program's; none unless it is the last.
    taken: usize,
}

impl Canaries {
    #[inline(always)]
    const fn of(class: SizeClass, slack: usize) -> Self {
        let used = class.size() - slack;
        let last = class.size() - CANARY;
        let first = if used < last { used } else { last };
        Self {
            first,
            last,
            taken: (used - first) * 8,
        }
    }
}

/// Makes a block of which the program asked for `size` bytes the program's.
///
/// # Safety
///
/// The block is a slab's, has more than that many bytes, and nobody else has it.
#[inline(always)]
pub(crate) unsafe fn hand_out(block: NonNull<u8>, class: SizeClass, size: usize) {
    let address = block.addr().get();
    let slack = slack_for(class, size);
    set_slack(address, class, slack);
    let canaries = Canaries::of(class, slack);
    let canary = canary(address);
    // SAFETY: the canaries lie in the block, whose contents do not matter yet.
    unsafe {
        block.add(canaries.first).cast().write_unaligned(canary);
        block.add(canaries.last).cast().write(canary);
    }
}

/// Says that the program now asks for `size` bytes of a block that it has.
///
/// # Safety
///
/// The block is the program's, a slab's, and has more than that many bytes.
pub(crate) unsafe fn change(block: NonNull<u8>, class: SizeClass, size: usize) {
    let address = block.addr().get();
    let slack = slack_for(class, size);
    set_slack(address, class, slack);
    let canaries = Canaries::of(class, slack);
    let free = canaries.first + canaries.taken / 8;
    // SAFETY: these bytes of the block are not the program's.
    unsafe {
        block
            .add(free)
            .write_bytes(canary(address) as u8, class.size() - free)
    };
}

#[inline(always)]
const fn slack_for(class: SizeClass, size: usize) -> usize {
    let slack = class.size() - size;
    if class.size() <= SHORT && slack > MOST_SHORT {
        MOST_SHORT
    } else {
        slack
    }
}

/// Whether a block with this slack was allocated with another size. Of much slack a short block knows
/// only that.
#[inline(always)]
pub(crate) const fn is_another_size(class: SizeClass, slack: usize, size: usize) -> bool {
    size >= class.size() || slack_for(class, size) != slack
}

/// Whether nothing was written behind the last byte that the program asked for, nor before the block
/// that follows.
///
/// # Safety
///
/// The block is one of `class`.
#[inline(always)]
pub(crate) unsafe fn is_whole(block: NonNull<u8>, class: SizeClass, slack: usize) -> bool {
    let canaries = Canaries::of(class, slack);
    let expected = canary(block.addr().get());
    // SAFETY: both places lie in the block.
    let found = |place| unsafe { block.add(place).cast::<u64>().read_unaligned() };
    let changed = (found(canaries.first) ^ expected) | (found(canaries.last) ^ expected);
    // The program's bytes are the first in memory.
    u64::from_le(changed) >> canaries.taken == 0
}

/// Overwrites what the program had in a block, up to [`FILLED`] bytes of it.
///
/// # Safety
///
/// The block is one of `class`, and nobody uses it.
#[inline(always)]
unsafe fn fill(block: NonNull<u8>, class: SizeClass) {
    let last = class.size() - PIECE;
    for piece in 0..FILLED / PIECE {
        // SAFETY: blocks are aligned to 16, and their sizes are multiples of it.
        unsafe {
            let place = block.add((piece * PIECE).min(last));
            place.cast().write([FILL; PIECE]);
        }
    }
}

/// Whether nothing was written to the first [`LOOKED_AT`] bytes of a block since it was filled.
///
/// # Safety
///
/// The block is one of `class`, filled, and nobody uses it.
#[inline(always)]
pub(crate) unsafe fn is_filled(block: NonNull<u8>, class: SizeClass) -> bool {
    let last = class.size() - PIECE;
    let mut changed = 0;
    for piece in 0..LOOKED_AT / PIECE {
        // SAFETY: blocks are aligned to 16, and their sizes are multiples of it.
        let found = unsafe {
            let place = block.add((piece * PIECE).min(last));
            place.cast::<u128>().read()
        };
        changed |= found ^ u128::from_ne_bytes([FILL; PIECE]);
    }
    changed == 0
}

/// The canary around a block that has a mapping of its own: what lies before it, back to the page
/// that cannot be touched, and behind it.
struct Edges {
    before: usize,
    behind: usize,
}

impl Edges {
    fn of(address: usize, size: usize, page: usize) -> Self {
        Self {
            before: (address % page).min(EDGE),
            behind: ((address + size).next_multiple_of(page) - (address + size)).min(EDGE),
        }
    }
}

/// Writes the canary around a block.
///
/// # Safety
///
/// The block has `size` bytes in whole pages of its own.
pub(crate) unsafe fn guard(block: NonNull<u8>, size: usize, page: usize) {
    let edges = Edges::of(block.addr().get(), size, page);
    let byte = canary(block.addr().get()) as u8;
    // SAFETY: the edges lie in the block's first and last page.
    unsafe {
        let start = block.sub(edges.before);
        start.write_bytes(byte, edges.before);
        block.add(size).write_bytes(byte, edges.behind);
    }
}

/// Whether nothing was written there since.
///
/// # Safety
///
/// As for [`guard`].
pub(crate) unsafe fn is_guarded(block: NonNull<u8>, size: usize, page: usize) -> bool {
    let edges = Edges::of(block.addr().get(), size, page);
    let byte = canary(block.addr().get()) as u8;
    // SAFETY: the edges lie in the block's first and last page.
    unsafe {
        let start = block.sub(edges.before);
        let end = block.add(size);
        (0..edges.before).all(|index| start.add(index).read() == byte)
            && (0..edges.behind).all(|index| end.add(index).read() == byte)
    }
}
