//! Allocations and their handles.

use core::ops::Range;
use core::ptr::NonNull;
use std::ptr::with_exposed_provenance_mut;

use heapdrome_pages::{Linux, Pages};

use crate::class::{SizeClass, UNIT};
use crate::error::{AllocError, RangeError};
use crate::purge::purge;
use crate::relocate::relocate;
use crate::{os, pool, thread};

/// Leased region. [`deallocate`] gives it back; a handle that is forgotten keeps its region.
#[derive(Debug)]
#[must_use = "a handle that is dropped keeps its memory for ever"]
pub struct Handle {
    start: NonNull<u8>,
    /// Class of the region; `None` if no memory is needed, for zero elements or elements of no
    /// size.
    class: Option<SizeClass>,
}

// SAFETY: a handle owns its region, and regions belong to no thread.
unsafe impl Send for Handle {}
// SAFETY: a shared handle only returns addresses and sizes, and gives advice that changes no
// contents.
unsafe impl Sync for Handle {}

/// Returns the class for `capacity` elements; `None` if no memory is needed.
#[inline]
fn class_for<T>(capacity: usize) -> Result<Option<SizeClass>, AllocError> {
    if align_of::<T>() > UNIT {
        return Err(AllocError::Alignment(align_of::<T>()));
    }
    let bytes = size_of::<T>()
        .checked_mul(capacity)
        .ok_or(AllocError::TooLarge)?;
    if bytes == 0 {
        return Ok(None);
    }
    SizeClass::of_bytes(bytes)
        .map(Some)
        .ok_or(AllocError::TooLarge)
}

/// Returns the number of elements that a region of the class holds.
#[inline]
fn capacity_of<T>(class: SizeClass) -> usize {
    let size = size_of::<T>().max(1);
    // A shift for the usual sizes, since a division costs as much as the rest of an allocation.
    if size.is_power_of_two() {
        class.bytes() >> size.trailing_zeros()
    } else {
        class.bytes() / size
    }
}

/// Returns start and capacity if no memory is needed.
pub fn nothing<T>() -> (NonNull<T>, usize) {
    (
        NonNull::dangling(),
        if size_of::<T>() == 0 { usize::MAX } else { 0 },
    )
}

/// Allocates memory for `capacity` elements. Returns its start, its actual capacity, and its
/// handle.
///
/// The contents are undefined: those of an earlier user, or zero. The memory is aligned to 2 MiB,
/// or as `T` requires if no memory is needed.
///
/// # Errors
///
/// [`AllocError`] if no class is large enough, or if the system refuses.
#[inline]
pub fn allocate<T>(capacity: usize) -> Result<(NonNull<T>, usize, Handle), AllocError> {
    let Some(class) = class_for::<T>(capacity)? else {
        let (start, capacity) = nothing();
        return Ok((start, capacity, Handle::EMPTY));
    };
    let refused = AllocError::OutOfMemory {
        bytes: class.bytes(),
    };
    let start = thread::take(class).ok_or(refused)?;
    let start = NonNull::new(with_exposed_provenance_mut::<u8>(start)).ok_or(refused)?;
    let handle = Handle {
        start,
        class: Some(class),
    };
    Ok((start.cast(), capacity_of::<T>(class), handle))
}

/// Frees memory, from any thread. It must not be used afterwards; its elements are not dropped.
#[inline]
pub fn deallocate(handle: Handle) {
    if let Some(class) = handle.class {
        thread::put(handle.start.as_ptr().expose_provenance(), class);
    }
}

impl Handle {
    /// Handle of no memory.
    pub(crate) const EMPTY: Self = Self {
        start: NonNull::dangling(),
        class: None,
    };

    /// Returns the bytes of the region.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.class.map_or(0, SizeClass::bytes)
    }

    /// Returns the start of the region.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Creates the handle of a region from its [`start`](Self::start) and [`bytes`](Self::bytes).
    ///
    /// # Safety
    ///
    /// They come from a handle that was forgotten, and no other handle was made from them since.
    pub unsafe fn from_parts(start: NonNull<u8>, bytes: usize) -> Self {
        let class = if bytes == 0 {
            None
        } else {
            SizeClass::of_bytes(bytes)
        };
        Self { start, class }
    }

    /// Resizes the region for `capacity` elements and keeps the contents. A region grows in place
    /// as long as its neighbours are free. Otherwise its pages move to a larger one (`mremap`),
    /// without being read or copied. It shrinks in place.
    ///
    /// Returns the new start and capacity; pointers into the old region are then invalid.
    ///
    /// The process is aborted in one case that no caller could handle: the system refuses to move
    /// pages after it has unmapped the larger region, which then cannot be mapped again.
    ///
    /// # Errors
    ///
    /// Those of [`allocate`]; everything is then as it was.
    pub fn resize<T>(&mut self, capacity: usize) -> Result<(NonNull<T>, usize), AllocError> {
        let wanted = class_for::<T>(capacity)?;
        match (self.class, wanted) {
            (Some(class), Some(wanted)) if wanted > class => self.grow(class, wanted)?,
            (Some(class), Some(wanted)) if wanted < class => self.shrink(class, wanted),
            (Some(_), Some(_)) | (None, None) => {}
            (None, Some(_)) => *self = allocate::<T>(capacity)?.2,
            (Some(_), None) => deallocate(core::mem::replace(self, Self::EMPTY)),
        }
        Ok(match self.class {
            Some(class) => (self.start.cast(), capacity_of::<T>(class)),
            None => nothing(),
        })
    }

    fn grow(&mut self, class: SizeClass, wanted: SizeClass) -> Result<(), AllocError> {
        let start = self.start.as_ptr().expose_provenance();
        if pool::extend(start, class, wanted) {
            thread::count_change(class, wanted);
        } else {
            let refused = AllocError::OutOfMemory {
                bytes: wanted.bytes(),
            };
            let target = thread::take(wanted).ok_or(refused)?;
            let target = NonNull::new(with_exposed_provenance_mut::<u8>(target)).ok_or(refused)?;
            // SAFETY: both regions are this handle's; the new one is larger; they do not overlap.
            unsafe { relocate(self.start, target, class.bytes()) };
            thread::put_clean(start, class);
            self.start = target;
        }
        self.class = Some(wanted);
        Ok(())
    }

    fn shrink(&mut self, class: SizeClass, wanted: SizeClass) {
        let start = self.start.as_ptr().expose_provenance();
        thread::put_rest(start, class, wanted);
        self.class = Some(wanted);
    }

    /// Returns the range of a range of elements, in bytes from the start.
    fn bytes_of<T>(&self, range: &Range<usize>) -> Result<Range<usize>, RangeError> {
        let length = self.bytes();
        let outside = RangeError::OutOfBounds { length };
        let size = size_of::<T>();
        let first = range.start.checked_mul(size).ok_or(outside)?;
        let end = range.end.checked_mul(size).ok_or(outside)?;
        if range.start > range.end || end > length {
            return Err(outside);
        }
        Ok(first..end)
    }

    /// Asks the system to bring elements into memory that may be in swap, without waiting for them.
    /// It asks for whole pages, from the one with the first byte to the one with the last.
    ///
    /// # Errors
    ///
    /// [`RangeError`] if the range does not lie in the region, or the system refuses.
    pub fn prefetch_hint<T>(&self, range: Range<usize>) -> Result<(), RangeError> {
        let bytes = self.bytes_of::<T>(&range)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let page = Linux.page_size();
        let first = bytes.start & !(page - 1);
        // A region consists of whole pages, so rounding up stays inside and does not overflow.
        let end = bytes.end.next_multiple_of(page);
        let start = self.start.as_ptr().addr() + first;
        os::will_need(start, end - first).map_err(RangeError::Refused)
    }

    /// Drops the contents of elements that are no longer needed: their memory is returned to the
    /// system immediately. Only pages that lie wholly in the range are dropped; they read as zero
    /// afterwards.
    ///
    /// A recycled region keeps the contents of its previous user, also in memory. A user that needs
    /// less than the region holds can drop the rest with this function.
    ///
    /// # Errors
    ///
    /// [`RangeError`] if the range does not lie in the region, or the system refuses, as it does
    /// for memory that is locked.
    pub fn purge<T>(&mut self, range: Range<usize>) -> Result<(), RangeError> {
        let bytes = self.bytes_of::<T>(&range)?;
        let page = Linux.page_size();
        // The end of a region is a multiple of a page, so this does not overflow.
        let first = bytes.start.next_multiple_of(page);
        let end = bytes.end & !(page - 1);
        let start = self.start.as_ptr().expose_provenance();
        if first >= end || purge(start + first, end - first) {
            return Ok(());
        }
        // The range is mapped and consists of pages. madvise(2) names no other reason for a
        // refusal.
        Err(RangeError::Refused(libc::EINVAL))
    }
}
