//! Vector in large memory.

use core::ops::{Deref, DerefMut, Range};
use core::ptr::NonNull;
use core::{fmt, mem, slice};

use crate::error::{AllocError, RangeError};
use crate::handle::{Handle, allocate, deallocate, nothing};

/// Growing vector whose elements lie in a region of its own: no `ManuallyDrop`, no raw parts.
///
/// It works like `Vec`, except that running out of memory is an error and does not end the program.
pub struct LargeVec<T> {
    start: NonNull<T>,
    capacity: usize,
    length: usize,
    handle: Handle,
}

// SAFETY: it owns its elements and its region, and regions belong to no thread.
unsafe impl<T: Send> Send for LargeVec<T> {}
// SAFETY: a shared vector hands out shared elements only.
unsafe impl<T: Sync> Sync for LargeVec<T> {}

impl<T> LargeVec<T> {
    /// Creates an empty vector, which has no region yet.
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
    /// Those of [`allocate`].
    pub fn with_capacity(capacity: usize) -> Result<Self, AllocError> {
        let (start, capacity, handle) = allocate::<T>(capacity)?;
        Ok(Self {
            start,
            capacity,
            length: 0,
            handle,
        })
    }

    /// Returns the number of elements that fit without a new region.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    fn resize_to(&mut self, capacity: usize) -> Result<(), AllocError> {
        (self.start, self.capacity) = self.handle.resize::<T>(capacity)?;
        Ok(())
    }

    /// Makes room for `additional` more elements. If the room is too small, it is at least doubled.
    ///
    /// # Errors
    ///
    /// Those of [`allocate`]; the vector is then as it was.
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
    /// Those of [`allocate`]; the element is dropped.
    #[inline]
    pub fn push(&mut self, element: T) -> Result<(), AllocError> {
        if self.length == self.capacity {
            self.reserve(1)?;
        }
        // SAFETY: the length is below the capacity, so the place is the vector's own and empty.
        unsafe { self.start.add(self.length).write(element) };
        self.length += 1;
        Ok(())
    }

    /// Removes the last element and returns it.
    pub fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: the element was the last; the length no longer counts it.
        Some(unsafe { self.start.add(self.length).read() })
    }

    /// Removes an element and returns it; the last element takes its place.
    ///
    /// # Panics
    ///
    /// If there is no such element.
    pub fn swap_remove(&mut self, index: usize) -> T {
        let last = self.length.checked_sub(1);
        let last = last.expect("an empty vector has no element to remove");
        self.swap(index, last);
        self.length = last;
        // SAFETY: the element was the last; the length no longer counts it.
        unsafe { self.start.add(last).read() }
    }

    /// Resizes the vector to `length` elements: adds copies of `element`, or drops the last ones.
    ///
    /// # Errors
    ///
    /// Those of [`allocate`]; the vector is then as it was.
    pub fn resize(&mut self, length: usize, element: T) -> Result<(), AllocError>
    where
        T: Clone,
    {
        let missing = length.saturating_sub(self.length);
        self.reserve(missing)?;
        self.truncate(length);
        self.extend(core::iter::repeat_n(element, missing))
    }

    /// Converts into a vector of this region that drops no elements.
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
    /// Those of [`allocate`]; elements added until then stay.
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
    /// Those of [`allocate`]; the vector is then as it was.
    pub fn extend_from_slice(&mut self, elements: &[T]) -> Result<(), AllocError>
    where
        T: Clone,
    {
        self.reserve(elements.len())?;
        // SAFETY: `reserve` made room behind the existing elements.
        let end = unsafe { self.start.add(self.length) };
        // Counted separately, so that the compiler copies plain elements in one operation. If a
        // clone panics, the elements added so far are counted all the same.
        let mut added = Added(&mut self.length, 0);
        for element in elements {
            // SAFETY: fewer elements have been added than `reserve` made room for.
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
        // The length is set first: an element whose drop panics is not dropped again.
        self.length = length;
        // SAFETY: these elements lie behind the length now, so no other code drops them.
        unsafe {
            let tail = slice::from_raw_parts_mut(self.start.add(length).as_ptr(), dropped);
            core::ptr::drop_in_place(tail);
        }
    }

    /// Drops all elements and keeps the region.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Gives back the memory that a smaller class would not need.
    ///
    /// # Errors
    ///
    /// None today: shrinking happens in place.
    pub fn shrink_to_fit(&mut self) -> Result<(), AllocError> {
        self.resize_to(self.length)
    }

    /// Returns the memory behind the elements to the system, but keeps the room. That is memory of
    /// an earlier user of the region, and of removed elements.
    ///
    /// # Errors
    ///
    /// Those of [`Handle::purge`].
    pub fn purge_spare(&mut self) -> Result<(), RangeError> {
        // In bytes: a region may end with less than an element.
        let first = self.length * size_of::<T>();
        self.handle.purge::<u8>(first..self.handle.bytes())
    }

    /// Asks the system to bring elements into memory; see [`Handle::prefetch_hint`].
    ///
    /// # Errors
    ///
    /// Those of [`Handle::prefetch_hint`]; ranges beyond the vector's length are out of bounds.
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

/// Guard that adds to a length when it goes out of scope, also if a clone panics.
struct Added<'a>(&'a mut usize, usize);

impl Drop for Added<'_> {
    fn drop(&mut self) {
        *self.0 += self.1;
    }
}

/// Guard that gives a region back when it goes out of scope, also if a drop panics.
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
