//! Slab blocks of the hardened variant: checks and updates of their states and canaries when they
//! are handed out, resized or freed.

use core::ptr::NonNull;
use heapdrome_pages::Pages;

use crate::hardened::canary;
use crate::hardened::fill::{fill, is_filled, is_filled_or_purged};
use crate::misuse::{Misuse, report};
use crate::process::{HEAPS, want_states};
use crate::size_class::SizeClass;
use crate::slabs::shape::{Shape, is_long};
use crate::slabs::states::{Any, MOST_SHORT, State};

/// Enables block states and draws the secret of canaries, unless that has been done. Must be called
/// before the first block is allocated.
pub(crate) fn prepare() {
    if canary::wants_secret() {
        want_states();
        canary::draw_secret();
    }
}

/// Returns whether a block of `class` begins at `address`, which lies in a slab.
fn begins(address: usize, class: SizeClass) -> bool {
    let run = HEAPS.memory().run_of(address);
    let offset = run.map(|run| address.wrapping_sub(run.base().addr()));
    offset.is_some_and(|offset| class.geometry().block_at(offset).is_some())
}

/// Aborts the process because no live block begins at `address`: reports a double free or an
/// invalid free.
#[cold]
fn no_block(address: usize, class: SizeClass) -> ! {
    report(if begins(address, class) {
        Misuse::DoubleFree(address)
    } else {
        Misuse::NotABlock(address)
    })
}

/// Returns the state and the slack of the block at `address`, which lies in a slab of `class`.
/// Aborts the process if no live block begins there.
pub(crate) fn state_or_report(address: usize, class: SizeClass) -> (Any, usize) {
    let state = Any::find(HEAPS.memory().directory(), address, Shape::of(class));
    let found = state.and_then(|state| Some((state, state.slack()?)));
    found.unwrap_or_else(|| no_block(address, class))
}

/// Returns the slack of the block at `address`, which lies in a slab of `class`. Aborts the process
/// if no live block begins there.
pub(crate) fn slack_or_report(address: usize, class: SizeClass) -> usize {
    state_or_report(address, class).1
}

/// Marks a block as freed, and fills its start. Returns false, without any change, if one of its
/// canaries was overwritten.
///
/// # Safety
///
/// The block has this `shape` and `slack` bytes of slack, and `state` is its state. The caller no
/// longer uses the block.
#[inline(always)]
pub(crate) unsafe fn end<S: State>(
    block: NonNull<u8>,
    state: S,
    shape: &Shape,
    slack: usize,
) -> bool {
    // SAFETY: by this function's contract, the block has this shape and slack, and the caller no
    // longer uses it. The size of every shape is a multiple of 16.
    unsafe {
        if !canary::is_whole(block, shape.size(), slack) {
            return false;
        }
        state.set_freed();
        fill(block, shape);
    }
    true
}

/// Hands out a block for `size` bytes. Returns false, without any change, if the slow path is
/// required or if a check fails.
///
/// # Safety
///
/// The block lies in a slab of `class`, the smallest class with more than `size` bytes, and is
/// free. Its state is of kind `S`.
#[inline(always)]
pub(crate) unsafe fn hand_out_fast<S: State>(
    block: NonNull<u8>,
    class: SizeClass,
    size: usize,
) -> bool {
    let shape = Shape::of(class);
    let slack = shape.size() - size;
    // SAFETY: by this function's contract, the block lies in a slab of this shape, and is free. It
    // is aligned to 16 bytes, and its size is a multiple of 16, as in every slab.
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

/// Hands out a block for `size` bytes. Aborts the process if the block was written to after it was
/// freed, if no block can begin at its address, or if its arena has no states.
///
/// # Safety
///
/// The block lies in a slab of `class`, has more than `size` bytes, and is free.
pub(crate) unsafe fn hand_out(block: NonNull<u8>, class: SizeClass, size: usize) {
    let address = block.addr().get();
    let Some(state) = Any::find(HEAPS.memory().directory(), address, Shape::of(class)) else {
        report(Misuse::NotABlock(address));
    };
    let slack = slack_for(class, size);
    // SAFETY: by this function's contract, the block is free, so no other code uses it, and has
    // more than `size` bytes. It is aligned to 16 bytes, and its size is a multiple of 16, as in
    // every slab.
    unsafe {
        let page = HEAPS.memory().pages.page_size();
        if state.is_freed() && !is_filled_or_purged(block, class.size(), page) {
            report(Misuse::WrittenAfterFree(address));
        }
        state.set_slack(slack);
        canary::write(block, class.size(), slack);
    }
}

/// Records that a live block now has `size` requested bytes, and rewrites its canaries.
///
/// # Safety
///
/// The block belongs to the program, lies in a slab of `class`, and has more than `size` bytes.
/// `state` is the state of the block.
pub(crate) unsafe fn change(block: NonNull<u8>, state: Any, class: SizeClass, size: usize) {
    let slack = slack_for(class, size);
    state.set_slack(slack);
    // SAFETY: by this function's contract, the block belongs to the program and lies in a slab, so
    // it is aligned to 16 bytes and its size is a multiple of 16.
    unsafe { canary::rewrite(block, class.size(), slack) };
}

/// Returns the slack to record for a block of `size` requested bytes. A short block may have more
/// slack than one byte can record, if the program requested an alignment above the size, or shrank
/// the block when out of memory. The maximum is then recorded.
const fn slack_for(class: SizeClass, size: usize) -> usize {
    let slack = class.size() - size;
    if slack > MOST_SHORT && !is_long(class) {
        MOST_SHORT
    } else {
        slack
    }
}

/// Returns whether a block with this recorded slack was allocated with, or last reallocated to, a
/// size other than `size`. Size 0 counts as size 1. If a short block has the maximum recorded
/// slack, every size that leaves at least that slack counts as equal.
pub(crate) const fn is_another_size(class: SizeClass, slack: usize, size: usize) -> bool {
    let size = if size == 0 { 1 } else { size };
    size >= class.size() || slack_for(class, size) != slack
}
