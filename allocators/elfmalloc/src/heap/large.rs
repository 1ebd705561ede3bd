//! Allocation and freeing of large blocks. Cached memory is given back before memory grows.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::heap::heaps::Heaps;
use crate::misuse::Misuse;
use crate::size_class::UNIT;
use crate::units::amount::Units;
use crate::units::large::{self, Large};
use crate::units::mapped_blocks::GROWS_BY_REMAP;

/// Allocates a block of at least `size` bytes at a multiple of `alignment`. Works for any size, but
/// is meant for sizes above the largest class.
pub fn allocate_large<P: Pages>(heaps: &Heaps<P>, size: usize, alignment: usize) -> Option<Large> {
    let units = Units::filled_by(size.max(1).checked_next_multiple_of(UNIT)?);
    let fits = large::fits_in_run(units, alignment);
    if fits && let Some(large) = allocate_in_run(heaps, units, alignment) {
        return Some(large);
    }
    if let Some(large) = heaps.mapped.map(heaps.memory(), size, alignment) {
        heaps.before_mapping(units);
        return Some(large);
    }
    // The system refused a mapping, but an arena may have enough free units once cached memory is
    // given back. Skip this if the arenas were tried above, or if none is large enough.
    let possible = !fits && heaps.memory().pool.lock().may_hold(units);
    possible
        .then(|| allocate_in_run(heaps, units, alignment))
        .flatten()
}

fn allocate_in_run<P: Pages>(heaps: &Heaps<P>, units: Units, alignment: usize) -> Option<Large> {
    let (memory, alignment) = (heaps.memory(), alignment.max(UNIT));
    heaps.before_growth(units);
    let run = memory.allocate_run(units, alignment).or_else(|| {
        heaps.release_kept();
        memory.allocate_run(units, alignment)
    })?;
    if run.fresh != Units::NONE {
        heaps.before_growth(run.fresh);
        heaps.after_growth(run);
    }
    Some(large::start_large(memory, run))
}

/// Allocates a block to replace a block that could not grow in place. From [`GROWS_BY_REMAP`] bytes
/// on, prefers a block with its own mapping. Returns `None` if out of memory.
pub fn allocate_grown<P: Pages>(heaps: &Heaps<P>, size: usize) -> Option<NonNull<u8>> {
    let own = if size >= GROWS_BY_REMAP {
        heaps.mapped.map(heaps.memory(), size, 1)
    } else {
        None
    };
    own.or_else(|| allocate_large(heaps, size, 1))
        .map(|large| large.block)
}

/// Frees a large block that is a run of units.
///
/// # Errors
///
/// No such block begins at `address`.
///
/// # Safety
///
/// If there is such a block, the caller no longer uses it.
pub unsafe fn free_large<P: Pages>(heaps: &Heaps<P>, address: usize) -> Result<(), Misuse> {
    // SAFETY: this function's contract is that of `large::free_large`.
    unsafe { large::free_large(heaps.memory(), address)? };
    heaps.tick();
    Ok(())
}
