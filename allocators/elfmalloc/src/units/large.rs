//! Large blocks that are runs of units.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::misuse::Misuse;
use crate::size_class::{SizeClass, UNIT, UNIT_SHIFT};
use crate::units::amount::Units;
use crate::units::arena::LARGEST_RUN;
use crate::units::descriptor::DescriptorRef;
use crate::units::memory::Memory;
use crate::units::pool::{Pool, Run};

/// New large block.
#[derive(Clone, Copy, Debug)]
pub struct Large {
    /// Start of the block.
    pub block: NonNull<u8>,
    /// Whether the block reads as zero.
    pub clean: bool,
}

/// Turns a new run into one block.
pub fn start_large<P: Pages>(memory: &Memory<P>, run: Run) -> Large {
    run.descriptor.set(run.base, run.units, SizeClass::LARGE);
    memory.map.set(run.base, Units::ONE, SizeClass::LARGE);
    Large {
        block: run.base,
        clean: run.clean,
    }
}

/// Returns whether a block of `units` with this alignment is small enough that a new arena may be
/// created for it.
#[must_use]
pub const fn fits_in_run(units: Units, alignment: usize) -> bool {
    units.count() <= LARGEST_RUN && alignment <= LARGEST_RUN << UNIT_SHIFT
}

/// Returns the usable bytes of the large block that begins at `address`, if any.
pub fn usable<P: Pages>(memory: &Memory<P>, address: usize) -> Option<usize> {
    Some(large_at(memory, address)?.units().bytes())
}

/// Returns the descriptor of the large block that begins at `address`, if any.
pub(super) fn large_at<P: Pages>(memory: &Memory<P>, address: usize) -> Option<DescriptorRef> {
    let run = memory.run_of(address)?;
    (run.class() == SizeClass::LARGE && run.base().addr() == address).then_some(run)
}

/// Frees a large block that is a run.
///
/// # Errors
///
/// No large block begins at `address`.
///
/// # Safety
///
/// If there is such a block, the caller no longer uses it.
pub unsafe fn free_large<P: Pages>(memory: &Memory<P>, address: usize) -> Result<(), Misuse> {
    let run = large_at(memory, address);
    let Some((run, base)) = run.and_then(|run| Some((run, NonNull::new(run.base())?))) else {
        return Err(Misuse::NotABlock(address));
    };
    let units = run.units();
    forget(memory, run, base);
    // SAFETY: the units belong to the block, which the caller no longer uses, by this function's
    // contract.
    memory.with_pool(|pool| unsafe { pool.free(base.as_ptr(), units, true) });
    Ok(())
}

/// Removes the large block that begins at `base`, with descriptor `run`, from the class map and the
/// descriptors.
pub(super) fn forget<P: Pages>(memory: &Memory<P>, run: DescriptorRef, base: NonNull<u8>) {
    memory.map.set(base, Units::ONE, SizeClass::NONE);
    run.clear();
}

/// Resizes a large block in place. Returns false, without any change, if the block cannot grow, or
/// if no large block begins at `block`.
///
/// # Safety
///
/// If a large block begins at `block`, it belongs to the caller, who no longer uses bytes after the
/// first `size`.
pub unsafe fn resize_large<P: Pages>(memory: &Memory<P>, block: NonNull<u8>, size: usize) -> bool {
    let Some(bytes) = size.max(1).checked_next_multiple_of(UNIT) else {
        return false;
    };
    let Some(run) = large_at(memory, block.addr().get()) else {
        return false;
    };
    let (wanted, units) = (Units::filled_by(bytes), run.units());
    if wanted < units {
        run.set_units(wanted);
        // SAFETY: the tail lies in the block, and the caller no longer uses it, by this function's
        // contract.
        unsafe {
            let tail = block.as_ptr().add(wanted.bytes());
            memory.with_pool(|pool| pool.free(tail, units - wanted, true));
        }
        return true;
    }
    if wanted == units {
        return true;
    }
    let extend = |pool: &mut Pool| pool.extend(block.as_ptr(), units, wanted);
    if wanted.count() > LARGEST_RUN || !memory.with_pool(extend) {
        return false;
    }
    run.set_units(wanted);
    true
}
