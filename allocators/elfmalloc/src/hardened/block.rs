//! What the hardened variant does with a block when it is handed out and when it is freed.

use core::ptr::NonNull;
use heapdrome_pages::Pages;

use crate::hardened::canary;
use crate::hardened::fill::{fill, is_filled, is_filled_or_purged};
use crate::misuse::{Misuse, report};
use crate::process::{HEAPS, want_states};
use crate::size_class::SizeClass;
use crate::slabs::shape::{Shape, is_long};
use crate::slabs::states::{Any, MOST_SHORT, State};

/// Does what must be done before the first block.
pub(crate) fn prepare() {
    if canary::wants_secret() {
        want_states();
        canary::draw_secret();
    }
}

/// Whether a block of `class` begins at `address`, which lies in a slab.
fn begins(address: usize, class: SizeClass) -> bool {
    let run = HEAPS.memory().run_of(address);
    let offset = run.map(|run| address.wrapping_sub(run.base().addr()));
    offset.is_some_and(|offset| class.geometry().block_at(offset).is_some())
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

/// The state of the block at `address`, which lies in a slab of `class`, and how much slack it has;
/// ends the process if the program has no block there.
pub(crate) fn state_or_report(address: usize, class: SizeClass) -> (Any, usize) {
    let state = Any::find(HEAPS.memory().directory(), address, Shape::of(class));
    let found = state.and_then(|state| Some((state, state.slack()?)));
    found.unwrap_or_else(|| no_block(address, class))
}

/// How much slack that block has.
pub(crate) fn slack_or_report(address: usize, class: SizeClass) -> usize {
    state_or_report(address, class).1
}

/// Says that the program has a block no more, and overwrites what it had there. False if something
/// was written behind the last byte that the program asked for, or before the block that follows,
/// and then nothing has happened.
///
/// # Safety
///
/// The block is one of this shape with `slack` bytes of slack, the state is its own, and the caller
/// gives it up.
#[inline(always)]
pub(crate) unsafe fn end<S: State>(
    block: NonNull<u8>,
    state: S,
    shape: &Shape,
    slack: usize,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if !canary::is_whole(block, shape.size(), slack) {
            return false;
        }
        state.set_freed();
        fill(block, shape);
    }
    true
}

/// Makes a block of which the program asked for `size` bytes the program's; false if that is not
/// done in a few instructions, or must not be, and then nothing has happened.
///
/// # Safety
///
/// The block is a slab's, of `class`, the smallest that has more than that many bytes, and nobody
/// has it. Its state is of that kind.
#[inline(always)]
pub(crate) unsafe fn hand_out_fast<S: State>(
    block: NonNull<u8>,
    class: SizeClass,
    size: usize,
) -> bool {
    let shape = Shape::of(class);
    let slack = shape.size() - size;
    // SAFETY: the block is one of a slab, and the caller's.
    unsafe {
        let Some(state) = S::of_block(block, shape) else {
            return false;
        };
        if state.is_freed() && !is_filled(block, shape) {
            return false;
        }
        state.set_slack(slack);
        canary::write(block, shape.size(), slack);
    }
    true
}

/// Makes a block of which the program asked for `size` bytes the program's. Ends the process if
/// somebody wrote to it since it was freed.
///
/// # Safety
///
/// The block is a slab's, of `class`, has more than that many bytes, and nobody has it.
pub(crate) unsafe fn hand_out(block: NonNull<u8>, class: SizeClass, size: usize) {
    let address = block.addr().get();
    let Some(state) = Any::find(HEAPS.memory().directory(), address, Shape::of(class)) else {
        report(Misuse::NotABlock(address));
    };
    let slack = slack_for(class, size);
    // SAFETY: the block is the caller's.
    unsafe {
        let page = HEAPS.memory().pages.page_size();
        if state.is_freed() && !is_filled_or_purged(block, class.size(), page) {
            report(Misuse::WrittenAfterFree(address));
        }
        state.set_slack(slack);
        canary::write(block, class.size(), slack);
    }
}

/// Says that the program now asks for `size` bytes of a block that it has.
///
/// # Safety
///
/// The block is the program's, a slab's, of `class`, and has more than that many bytes; the state
/// is its own.
pub(crate) unsafe fn change(block: NonNull<u8>, state: Any, class: SizeClass, size: usize) {
    let slack = slack_for(class, size);
    state.set_slack(slack);
    // SAFETY: the caller's promise.
    unsafe { canary::rewrite(block, class.size(), slack) };
}

/// How much slack is said and guarded. Short blocks have more than one byte says where they were
/// aligned to more than their size.
const fn slack_for(class: SizeClass, size: usize) -> usize {
    let slack = class.size() - size;
    if slack > MOST_SHORT && !is_long(class) {
        MOST_SHORT
    } else {
        slack
    }
}

/// Whether a block with this slack was allocated with another size; a size of zero counts as one.
/// Of much slack a short block knows only that.
pub(crate) const fn is_another_size(class: SizeClass, slack: usize, size: usize) -> bool {
    let size = if size == 0 { 1 } else { size };
    size >= class.size() || slack_for(class, size) != slack
}
