//! Vector whose elements lie in a region.

use core::ops::{Deref, DerefMut, Range};
use core::ptr::NonNull;
use core::{fmt, mem, slice};

use crate::error::{AllocError, RangeError};
use crate::handle::{Handle, allocate, deallocate, nothing};

/// Growable vector with its elements in its own region.
///
/// It works like `Vec`, except that it returns an error when out of memory.
pub struct LargeVec<T> {
    start: NonNull<T>,
    capacity: usize,
    length: usize,
    handle: Handle,
}

// SAFETY: a vector owns its elements and its region, and regions are not tied to a thread.
unsafe impl<T: Send> Send for LargeVec<T> {}
// SAFETY: a shared vector gives only shared access to its elements.
unsafe impl<T: Sync> Sync for LargeVec<T> {}

impl<T> LargeVec<T> {
    /// Creates an empty vector without a region.
    #[must_use]
    pub fn new() -> Self {
        let (start, capacity) = nothing();
        Self {
            start,
            capacity,
            length: 0,
            handle: Handle::EMPTY,
        }
    }

    /// Creates an empty vector with room for at least `capacity` elements.
    ///
    /// # Errors
    ///
    /// The errors of [`allocate`].
    pub fn with_capacity(capacity: usize) -> Result<Self, AllocError> {
        let (start, capacity, handle) = allocate::<T>(capacity)?;
        Ok(Self {
            start,
            capacity,
            length: 0,
            handle,
        })
    }

    /// Returns the number of elements that fit without growing the region.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    fn resize_to(&mut self, capacity: usize) -> Result<(), AllocError> {
        (self.start, self.capacity) = self.handle.resize::<T>(capacity)?;
        Ok(())
    }

    /// Makes room for `additional` more elements. If the capacity is too small, at least doubles
    /// it.
    ///
    /// # Errors
    ///
    /// The errors of [`allocate`]. On an error, the vector is unchanged.
    pub fn reserve(&mut self, additional: usize) -> Result<(), AllocError> {
        let wanted = self
            .length
            .checked_add(additional)
            .ok_or(AllocError::TooLarge)?;
        if wanted <= self.capacity {
            return Ok(());
        }
        self.resize_to(wanted)
    }

    /// Adds an element at the end.
    ///
    /// # Errors
    ///
    /// The errors of [`allocate`]. On an error, the element is dropped.
    #[inline]
    pub fn push(&mut self, element: T) -> Result<(), AllocError> {
        if self.length == self.capacity {
            self.reserve(1)?;
        }
        // SAFETY: the length is below the capacity, so the place lies in the region and holds no
        // element.
        unsafe { self.start.add(self.length).write(element) };
        self.length += 1;
        Ok(())
    }

    /// Removes the last element and returns it.
    pub fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: the place holds the last element, which the length no longer counts.
        Some(unsafe { self.start.add(self.length).read() })
    }

    /// Removes an element and returns it; the last element takes its place.
    ///
    /// # Panics
    ///
    /// If `index` is not below the length.
    pub fn swap_remove(&mut self, index: usize) -> T {
        let last = self.length.checked_sub(1);
        let last = last.expect("an empty vector has no element to remove");
        self.swap(index, last);
        self.length = last;
        // SAFETY: the place holds the last element, which the length no longer counts.
        unsafe { self.start.add(last).read() }
    }

    /// Resizes the vector to `length` elements: adds clones of `element`, or drops the last
    /// elements.
    ///
    /// # Errors
    ///
    /// The errors of [`allocate`]. On an error, the vector is unchanged.
    pub fn resize(&mut self, length: usize, element: T) -> Result<(), AllocError>
    where
        T: Clone,
    {
        let missing = length.saturating_sub(self.length);
        self.reserve(missing)?;
        self.truncate(length);
        self.extend(core::iter::repeat_n(element, missing))
    }

    /// Converts the vector into one that does not drop its elements, with the same region.
    pub(crate) fn without_drops(self) -> LargeVec<mem::ManuallyDrop<T>> {
        let mut this = mem::ManuallyDrop::new(self);
        LargeVec {
            start: this.start.cast(),
            capacity: this.capacity,
            length: this.length,
            handle: mem::replace(&mut this.handle, Handle::EMPTY),
        }
    }

    /// Adds every element of an iterator.
    ///
    /// # Errors
    ///
    /// The errors of [`allocate`]. On an error, the elements that were already added stay in the
    /// vector.
    pub fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) -> Result<(), AllocError> {
        let elements = elements.into_iter();
        self.reserve(elements.size_hint().0)?;
        for element in elements {
            self.push(element)?;
        }
        Ok(())
    }

    /// Adds clones of a slice's elements.
    ///
    /// # Errors
    ///
    /// The errors of [`allocate`]. On an error, the vector is unchanged.
    pub fn extend_from_slice(&mut self, elements: &[T]) -> Result<(), AllocError>
    where
        T: Clone,
    {
        self.reserve(elements.len())?;
        // SAFETY: `reserve` made room behind the existing elements.
        let end = unsafe { self.start.add(self.length) };
        // The added elements are counted separately, so that the compiler can copy plain elements
        // in one operation. If a clone panics, the guard still counts the elements added so far.
        let mut added = Added(&mut self.length, 0);
        for element in elements {
            // SAFETY: `reserve` made room for all elements, so the place lies in the region.
            unsafe { end.add(added.1).write(element.clone()) };
            added.1 += 1;
        }
        Ok(())
    }

    /// Drops the elements from `length` on.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        let dropped = self.length - length;
        // The length is set first, so that if a drop panics, no element is dropped twice.
        self.length = length;
        // SAFETY: the places hold elements, which the length no longer counts, so no other code
        // uses or drops them.
        unsafe {
            let tail = slice::from_raw_parts_mut(self.start.add(length).as_ptr(), dropped);
            core::ptr::drop_in_place(tail);
        }
    }

    /// Drops all elements and keeps the region.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Shrinks the region to the smallest class that holds the elements. Frees the region of an
    /// empty vector.
    ///
    /// # Errors
    ///
    /// Never returns an error today, because shrinking happens in place.
    pub fn shrink_to_fit(&mut self) -> Result<(), AllocError> {
        self.resize_to(self.length)
    }

    /// Returns the memory behind the elements to the system, but keeps the capacity. This memory
    /// may hold contents of an earlier user or of removed elements.
    ///
    /// # Errors
    ///
    /// The errors of [`Handle::purge`].
    pub fn purge_spare(&mut self) -> Result<(), RangeError> {
        // Computed in bytes, because the end of a region may be too small for an element.
        let first = self.length * size_of::<T>();
        self.handle.purge::<u8>(first..self.handle.bytes())
    }

    /// Requests that the system read elements into memory; see [`Handle::prefetch_hint`].
    ///
    /// # Errors
    ///
    /// The errors of [`Handle::prefetch_hint`]. A range beyond the vector's length is out of
    /// bounds.
    pub fn prefetch_hint(&self, range: Range<usize>) -> Result<(), RangeError> {
        if range.end > self.length {
            let length = self.length.saturating_mul(size_of::<T>());
            return Err(RangeError::OutOfBounds { length });
        }
        self.handle.prefetch_hint::<T>(range)
    }
}

impl<T> Default for LargeVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for LargeVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the first `length` places hold elements.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T> DerefMut for LargeVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `length` places hold elements, and the vector is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: fmt::Debug> fmt::Debug for LargeVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Guard that adds a number of elements to a length when it is dropped, even if a clone panics.
struct Added<'a>(&'a mut usize, usize);

impl Drop for Added<'_> {
    fn drop(&mut self) {
        *self.0 += self.1;
    }
}

/// Guard that frees a region when it is dropped, even if an element's drop panics.
struct Back<'a>(&'a mut Handle);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        deallocate(mem::replace(self.0, Handle::EMPTY));
    }
}

impl<T> Drop for LargeVec<T> {
    fn drop(&mut self) {
        let elements = core::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.length);
        let _back = Back(&mut self.handle);
        // SAFETY: the first `length` places hold elements, and the vector is no longer used.
        unsafe { core::ptr::drop_in_place(elements) };
    }
}
