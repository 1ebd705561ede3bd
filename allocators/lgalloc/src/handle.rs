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

/// Owner of an allocated region. Only [`deallocate`], or a resize to zero elements, frees the
/// region. Dropping the handle leaks it.
#[derive(Debug)]
#[must_use = "a handle that is dropped keeps its memory for ever"]
pub struct Handle {
    start: NonNull<u8>,
    /// Class of the region; `None` for zero elements or zero-sized elements, which need no memory.
    class: Option<SizeClass>,
}

// SAFETY: a handle owns its region, and regions are not tied to a thread.
unsafe impl Send for Handle {}
// SAFETY: through a shared handle, callers only read addresses and sizes, and give advice that
// changes no contents.
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

/// Returns the number of elements that fit into a region of the class.
#[inline]
fn capacity_of<T>(class: SizeClass) -> usize {
    let size = size_of::<T>().max(1);
    // Use a shift for powers of two, because a division costs as much as the rest of an allocation.
    if size.is_power_of_two() {
        class.bytes() >> size.trailing_zeros()
    } else {
        class.bytes() / size
    }
}

/// Returns the start and capacity of an allocation that needs no memory.
pub fn nothing<T>() -> (NonNull<T>, usize) {
    (
        NonNull::dangling(),
        if size_of::<T>() == 0 { usize::MAX } else { 0 },
    )
}

/// Allocates memory for `capacity` elements. Returns its start, its actual capacity, and its
/// handle.
///
/// The contents are undefined: they may be zero, or those of an earlier user. The memory is aligned
/// to 2 MiB; if no memory is needed, the start is aligned only as `T` requires.
///
/// ```
/// use heapdrome_lgalloc::{allocate, deallocate};
///
/// let (start, capacity, handle) = allocate::<u64>(300_000)?;
/// assert_eq!(capacity, 512 * 1024);
/// // SAFETY: the region holds `capacity` elements, and only this code uses it.
/// unsafe { start.as_ptr().write(7) };
/// deallocate(handle);
/// # Ok::<(), heapdrome_lgalloc::AllocError>(())
/// ```
///
/// # Errors
///
/// [`AllocError`] if no class is large enough, if `T` is aligned to more than 2 MiB, or if the
/// system refuses the memory.
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

/// Frees a region. Any thread may call this. The memory must not be used afterwards. Does not drop
/// elements.
#[inline]
pub fn deallocate(handle: Handle) {
    if let Some(class) = handle.class {
        thread::put(handle.start.as_ptr().expose_provenance(), class);
    }
}

impl Handle {
    /// Handle without a region.
    pub(crate) const EMPTY: Self = Self {
        start: NonNull::dangling(),
        class: None,
    };

    /// Returns the size of the region in bytes; zero if there is no region.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.class.map_or(0, SizeClass::bytes)
    }

    /// Returns the start of the region; dangling if there is no region.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Creates the handle of a region from its [`start`](Self::start) and [`bytes`](Self::bytes).
    ///
    /// # Safety
    ///
    /// The values come from a handle that was dropped or forgotten. No other handle of the region
    /// exists, except while all handles of the region only prefetch or purge.
    pub unsafe fn from_parts(start: NonNull<u8>, bytes: usize) -> Self {
        let class = if bytes == 0 {
            None
        } else {
            SizeClass::of_bytes(bytes)
        };
        Self { start, class }
    }

    /// Resizes the region for `capacity` elements, and keeps the contents that fit. A region grows
    /// in place if it begins a buddy block of the new size, and the rest of this block is free and
    /// has no contents. Otherwise its pages move to a larger region (`mremap`), without a copy if
    /// possible. A region shrinks in place. A resize to zero elements frees it.
    ///
    /// Returns the new start and capacity. Pointers into the old region are invalid afterwards.
    ///
    /// Aborts the process in one case: the system has unmapped the larger region, then refuses to
    /// move the pages, and the region cannot be mapped again.
    ///
    /// # Errors
    ///
    /// The errors of [`allocate`]. On an error, the region is unchanged.
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
            // SAFETY: this function owns both regions, the new one is larger, and they do not
            // overlap. Regions begin at multiples of 2 MiB, and a class has 2 MiB times a power of
            // two.
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

    /// Converts a range of elements to a range of bytes.
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

    /// Requests that the system read elements from swap into memory, and does not wait for them.
    /// Rounds the range outwards to whole pages.
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

    /// Drops the contents of elements, and returns their memory to the system immediately. Affects
    /// only pages that lie wholly in the range; they read as zero afterwards.
    ///
    /// A recycled region still has the resident contents of its previous user. A user that needs
    /// only part of the region can drop the rest with this function.
    ///
    /// # Errors
    ///
    /// [`RangeError`] if the range does not lie in the region, or if the system refuses, for
    /// example because the memory is locked.
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
        // The range is mapped and page-aligned, so EINVAL is the only possible error of madvise(2).
        Err(RangeError::Refused(libc::EINVAL))
    }
}
