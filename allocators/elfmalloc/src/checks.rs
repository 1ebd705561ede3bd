//! What the hardened variant knows of blocks: their states, their canaries, what they are filled with.

use core::ptr::NonNull;
use heapdrome_pages::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use heapdrome_malloc_abi::MIN_ALIGNMENT;
use heapdrome_pages::system::{abort, random_word};

use crate::elfmalloc::{BACKEND, want_states};
use crate::misuse::report;
use crate::size_class::SizeClass;
use crate::slab::{Misuse, Slab};

/// Blocks of classes up to this size have their slack in one byte of state.
pub(crate) const SHORT: usize = 1024;
/// The most slack that one byte says.
const MOST_SHORT: usize = 254;
/// The state of a block whose slack stands in a word of the state four bytes on.
const LONG: u8 = 255;
/// The longest canary.
const CANARY: usize = 64;
/// Canaries up to this length are written and looked at in one piece.
const WIDE: usize = 16;
/// What freed blocks are filled with.
pub(crate) const FILL: u8 = 0xdb;
/// As many bytes of a block are looked at again before it is handed out again.
const LOOKED_AT: usize = 256;

static KEY: AtomicU64 = AtomicU64::new(0);

/// Does what must be done before the first block.
pub(crate) fn prepare() {
    // Relaxed: any of the values will do, and the first one stays.
    if KEY.load(Relaxed) == 0 {
        want_states();
        let _ = KEY.compare_exchange(0, random_word() | 1, Relaxed, Relaxed);
    }
}

/// The byte that follows the block at `address`; never zero, which is what a string ends with.
#[inline(always)]
pub(crate) fn canary(address: usize) -> u8 {
    let mixed = (address as u64 ^ KEY.load(Relaxed)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8 | 1
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

/// The state of the block that begins at `address`, which lies in a slab.
#[inline(always)]
fn state_of(address: usize) -> &'static AtomicU8 {
    // SAFETY: the state of a slab's memory is committed with it, and stays.
    unsafe { &*state_at(address) }
}

/// The word of slack of a block of more than [`SHORT`] bytes.
fn long_slack_of(address: usize) -> &'static AtomicU32 {
    // SAFETY: such blocks have at least 64 bytes of state, aligned to eight.
    unsafe { &*state_at(address).add(4).cast() }
}

#[inline(always)]
fn state_at(address: usize) -> *const AtomicU8 {
    let state = BACKEND.directory.state_of(address);
    if state.is_null() {
        // Another variant of the allocator was used first in this process, and made arenas without.
        abort();
    }
    state
}

/// How many bytes at the end of the block at `address` the program did not ask for; ends the process if
/// there is no such block. The program no longer has the block then, if it `ends`.
pub(crate) fn slack_of(address: usize, class: SizeClass, ends: bool) -> usize {
    let long = class.size() > SHORT;
    if !address.is_multiple_of(MIN_ALIGNMENT) || (long && !begins(address, class)) {
        report(Misuse::NotABlock(address));
    }
    let state = state_of(address);
    // Relaxed: of two threads that free the same block one gets zero; the blocks themselves are
    // handed on through locks.
    let byte = if ends {
        state.swap(0, Relaxed)
    } else {
        state.load(Relaxed)
    };
    match byte {
        0 => no_block(address, class),
        LONG if long => {
            let word = long_slack_of(address);
            let slack = word.load(Relaxed);
            if ends {
                word.store(0, Relaxed);
            }
            slack as usize
        }
        byte => usize::from(byte),
    }
}

/// Makes a block of which the program asked for `size` bytes the program's. Of a `fresh` one the
/// contents do not matter.
///
/// # Safety
///
/// The block is a slab's, has more than that many bytes, and nobody else has it.
#[inline(always)]
pub(crate) unsafe fn hand_out(block: NonNull<u8>, class: SizeClass, size: usize, fresh: bool) {
    let address = block.addr().get();
    let whole = class.size();
    let mut slack = whole - size;
    if whole > SHORT {
        long_slack_of(address).store(slack as u32, Relaxed);
        state_of(address).store(LONG, Relaxed);
    } else {
        slack = slack.min(MOST_SHORT);
        state_of(address).store(slack as u8, Relaxed);
    }
    // SAFETY: the slack lies in the block, and so do its last 16 bytes.
    unsafe {
        let end = block.as_ptr().add(whole);
        if fresh && slack <= WIDE {
            end.sub(WIDE)
                .cast::<[u8; WIDE]>()
                .write([canary(address); WIDE]);
        } else {
            let start = end.sub(slack);
            start.write_bytes(canary(address), slack.min(CANARY));
        }
    }
}

/// Ends the process if something was written behind the last byte that the program asked for of the
/// block at `address`.
///
/// # Safety
///
/// The `slack` bytes before `end` are the allocator's; the 16 bytes before it can be read, and it is
/// a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn check_canary(address: usize, end: *const u8, slack: usize) {
    let expected = canary(address);
    // SAFETY: the caller's promise.
    let whole = unsafe {
        match slack {
            0 => true,
            1..=WIDE => {
                let found = u128::from_le(end.sub(WIDE).cast::<u128>().read());
                let changed = found ^ u128::from_le_bytes([expected; WIDE]);
                // The last bytes in memory are the highest of the number.
                changed >> (8 * (WIDE - slack)) == 0
            }
            _ => {
                let start = end.sub(slack);
                (0..slack.min(CANARY)).all(|index| start.add(index).read() == expected)
            }
        }
    };
    if !whole {
        report(Misuse::Overflow(address));
    }
}

/// Ends the process if a block was written to since it was freed.
///
/// # Safety
///
/// The block is a free one of `class` that was filled.
pub(crate) unsafe fn check_filled(block: *mut u8, class: SizeClass) {
    let words = block.cast::<u64>();
    for word in 0..class.size().min(LOOKED_AT) / 8 {
        // SAFETY: blocks are aligned to 16, and their sizes are multiples of it.
        if unsafe { words.add(word).read() } != u64::from_ne_bytes([FILL; 8]) {
            report(Misuse::WrittenAfterFree(block.addr()));
        }
    }
}
