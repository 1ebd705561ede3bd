//! What the hardened variant knows of blocks: their states; and what is done with a block when it is handed
//! out and when it is freed.
//!
//! For each 16 bytes of an arena there is a byte of state, out of band. It is zero where no block begins
//! that the program ever had. Where the program has one, the state says how many bytes at the block's end
//! it did not ask for, the slack; for long blocks, of more than [`SHORT`] bytes, a word does. Where the
//! program had one, it says that the block was filled then.
//!
//! ```text
//!  short:  | slack |                         1 to 253
//!  long:   | 255 | 0 | 0 | 0 | slack, 32 bits |
//!  freed:  | 254 |                           a whole word for long blocks
//! ```

use core::ptr::NonNull;
use heapdrome_pages::Pages;
use heapdrome_pages::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering::Relaxed};

use heapdrome_pages::system::abort;

use crate::arena::GRAIN;
use crate::canary;
use crate::elfmalloc::{BACKEND, want_states};
use crate::fill::{Shape, fill, is_filled, is_filled_or_purged};
use crate::misuse::report;
use crate::size_class::SizeClass;
use crate::slab::{Misuse, Slab};

/// The largest blocks that are not long.
pub(crate) const SHORT: usize = 1024;
/// The most slack that one byte says.
const MOST_SHORT: usize = 253;
/// The state of a block that was freed and filled.
const FREED: u8 = 254;
/// The state of a long block.
const LONG: u8 = 255;

/// The states, as if those of address zero were there; null until they are known, and for ever where
/// there are several arenas.
static STATES: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Where the state of what begins at an address lies.
pub(crate) type State = NonNull<AtomicU8>;

/// Does what must be done before the first block.
pub(crate) fn prepare() {
    if canary::wants_secret() {
        want_states();
        canary::draw_secret();
    }
}

/// Whether a class is one of long blocks.
#[inline(always)]
pub(crate) const fn is_long(class: SizeClass) -> bool {
    class.number() > SizeClass::of(SHORT).number()
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

/// The state of what begins at `address`, which lies in a slab; `None` where it takes longer to find.
#[inline(always)]
pub(crate) fn near_state(address: usize) -> Option<State> {
    let states = NonNull::new(STATES.load(Relaxed))?;
    // SAFETY: the states of a slab's memory lie that far behind, and are not at null.
    unsafe { Some(NonNull::new_unchecked(states.as_ptr().wrapping_add(address / GRAIN)).cast()) }
}

/// The same, wherever it is.
pub(crate) fn state_of(address: usize) -> State {
    let found = || NonNull::new(BACKEND.directory.state_of(address).cast_mut());
    // Where there are none, another variant of the allocator was used first in this process, and made
    // arenas without.
    near_state(address)
        .or_else(found)
        .unwrap_or_else(|| abort())
}

/// How much slack the block at `address`, which lies in a slab of `class`, has; `None` if the program
/// has no block there.
#[inline(always)]
pub(crate) fn slack_of(state: State, address: usize, class: SizeClass) -> Option<usize> {
    // SAFETY: the states of a slab's memory are committed with it, and stay; a long block has at
    // least 64 of them, and begins at a multiple of 128 bytes, eight states, if it is one.
    unsafe {
        // Relaxed: the block itself is handed on through locks, or by the program. Two threads that
        // free it at the same moment may both find it live: the slab's bitmap sees that later.
        if !is_long(class) {
            let byte = state.as_ref().load(Relaxed);
            let live = address.is_multiple_of(GRAIN) && byte.wrapping_sub(1) < FREED - 1;
            return live.then_some(usize::from(byte));
        }
        if !address.is_multiple_of(GRAIN * size_of::<u64>()) {
            return None;
        }
        let word = state.cast::<AtomicU64>().as_ref().load(Relaxed);
        (word as u32 == u32::from(LONG)).then_some((word >> 32) as usize)
    }
}

/// The same; ends the process if the program has no block there.
pub(crate) fn slack_or_report(address: usize, class: SizeClass) -> usize {
    slack_of(state_of(address), address, class).unwrap_or_else(|| no_block(address, class))
}

/// Says that the program has a block, and that it has `slack` bytes at its end.
///
/// # Safety
///
/// The state is that of a block of `class`.
#[inline(always)]
unsafe fn set_slack(state: State, class: SizeClass, slack: usize) {
    // SAFETY: as in `slack_of`.
    unsafe {
        if is_long(class) {
            let word = (slack as u64) << 32 | u64::from(LONG);
            state.cast::<AtomicU64>().as_ref().store(word, Relaxed);
        } else {
            state.as_ref().store(slack as u8, Relaxed);
        }
    }
}

/// Says that the program has a block no more, and overwrites what it had there.
///
/// # Safety
///
/// The block is one of `class`, the state is its own, and nobody uses it.
#[inline(always)]
pub(crate) unsafe fn end(block: NonNull<u8>, state: State, class: SizeClass) {
    // SAFETY: as in `slack_of`; the block is the caller's.
    unsafe {
        if is_long(class) {
            let word = u64::from(FREED);
            state.cast::<AtomicU64>().as_ref().store(word, Relaxed);
        } else {
            state.as_ref().store(FREED, Relaxed);
        }
        fill(block, Shape::of(class));
    }
}

/// Makes a block of which the program asked for `size` bytes the program's; false if that is not
/// done in a few instructions, or must not be, and then nothing has happened.
///
/// # Safety
///
/// The block is a slab's, of `class`, the smallest that has more than that many bytes, and nobody has it.
#[inline(always)]
pub(crate) unsafe fn hand_out_fast(block: NonNull<u8>, class: SizeClass, size: usize) -> bool {
    let shape = Shape::of(class);
    let slack = shape.size() - size;
    let Some(state) = near_state(block.addr().get()) else {
        return false;
    };
    // SAFETY: as in `slack_of`; the block is the caller's.
    unsafe {
        if state.as_ref().load(Relaxed) == FREED && !is_filled(block, shape) {
            return false;
        }
        set_slack(state, class, slack);
        canary::write(block, shape.size(), slack);
    }
    true
}

/// Makes a block of which the program asked for `size` bytes the program's. Ends the process if somebody
/// wrote to it since it was freed.
///
/// # Safety
///
/// The block is a slab's, of `class`, has more than that many bytes, and nobody has it.
pub(crate) unsafe fn hand_out(block: NonNull<u8>, class: SizeClass, size: usize) {
    let address = block.addr().get();
    let state = state_of(address);
    let slack = slack_for(class, size);
    // SAFETY: as above.
    unsafe {
        let page = BACKEND.pages.page_size();
        if state.as_ref().load(Relaxed) == FREED && !is_filled_or_purged(block, class.size(), page)
        {
            report(Misuse::WrittenAfterFree(address));
        }
        set_slack(state, class, slack);
        canary::write(block, class.size(), slack);
    }
}

/// Says that the program now asks for `size` bytes of a block that it has.
///
/// # Safety
///
/// The block is the program's, a slab's, of `class`, and has more than that many bytes.
pub(crate) unsafe fn change(block: NonNull<u8>, class: SizeClass, size: usize) {
    let slack = slack_for(class, size);
    // SAFETY: the caller's promise.
    unsafe {
        set_slack(state_of(block.addr().get()), class, slack);
        canary::rewrite(block, class.size(), slack);
    }
}

/// How much slack is said and guarded. Short blocks have more than one byte says where they were aligned to
/// more than their size.
const fn slack_for(class: SizeClass, size: usize) -> usize {
    let slack = class.size() - size;
    if slack > MOST_SHORT && !is_long(class) {
        MOST_SHORT
    } else {
        slack
    }
}

/// Whether a block with this slack was allocated with another size. Of much slack a short block knows
/// only that.
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
    // SAFETY: the caller's promise.
    unsafe { canary::is_whole(block, Shape::of(class).size(), slack) }
}
