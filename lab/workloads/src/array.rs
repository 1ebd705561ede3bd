//! Arrays for the workload's own data, which the allocator under test does not serve.

use std::ops::{Deref, DerefMut};

use crate::Failure;

/// Types for which all-zero bytes are a valid value.
///
/// # Safety
/// All-zero bytes are a valid value of the type.
pub(crate) unsafe trait Zeroed: Copy {}

// SAFETY: all-zero bytes are the number 0.
unsafe impl Zeroed for u8 {}
// SAFETY: all-zero bytes are the number 0.
unsafe impl Zeroed for u32 {}
// SAFETY: all-zero bytes are the number 0.
unsafe impl Zeroed for u64 {}
// SAFETY: all-zero bytes are the number 0.
unsafe impl Zeroed for usize {}
// SAFETY: all-zero bytes are the null pointer.
unsafe impl Zeroed for *mut u8 {}

/// Returns `bytes`, rounded up to whole pages, at least one.
pub(crate) fn occupied(bytes: u64) -> u64 {
    const PAGE: u64 = 4096;
    bytes.max(1).div_ceil(PAGE).saturating_mul(PAGE)
}

/// Fixed number of values in pages of their own. The pages are made resident when they are mapped,
/// so that this process has no page fault in them later.
#[derive(Debug)]
pub(crate) struct Array<T> {
    first: *mut T,
    length: usize,
}

// SAFETY: an array is the only owner of its pages, and holds plain data. A pointer stored in it is
// dereferenced only by code with its own SAFETY comment.
unsafe impl<T: Zeroed> Send for Array<T> {}

impl<T: Zeroed> Array<T> {
    /// Creates an array of `length` zero values.
    ///
    /// # Errors
    /// Returns a failure if the system is out of memory.
    pub(crate) fn new(length: usize) -> Result<Self, Failure> {
        Self::mapped(length, libc::MAP_PRIVATE)
    }

    /// Creates an array of `length` zero values that forked children share with this process.
    ///
    /// # Errors
    /// Returns a failure if the system is out of memory.
    pub(crate) fn shared(length: usize) -> Result<Self, Failure> {
        Self::mapped(length, libc::MAP_SHARED)
    }

    fn mapped(length: usize, sharing: libc::c_int) -> Result<Self, Failure> {
        let bytes = length.saturating_mul(size_of::<T>()).max(1);
        let lack = Failure::Bookkeeping { bytes };
        if bytes > isize::MAX as usize {
            return Err(lack);
        }
        // SAFETY: a new mapping does not affect existing memory.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                sharing | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        match place == libc::MAP_FAILED {
            true => Err(lack),
            false => Ok(Self {
                first: place.cast(),
                length,
            }),
        }
    }

    /// Returns the size of the array's pages in bytes, which is reported as bookkeeping.
    pub(crate) fn bytes(&self) -> u64 {
        occupied((self.length as u64).saturating_mul(size_of::<T>() as u64))
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `length` values, zero at first, and lives as long as `self`; a
        // page's start is aligned for any `T`. If the mapping is shared, a forked child writes only
        // values that this process reads after the child's end.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

impl<T> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the mapping holds `length` aligned values, as in `deref`; `self` is mutably
        // borrowed, so no other slice of it exists.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.length) }
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        let bytes = (self.length * size_of::<T>()).max(1);
        // SAFETY: `self` owns the mapping, which has this length, and no slice of it outlives
        // `self`.
        unsafe { libc::munmap(self.first.cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_zero_and_stay_as_written() {
        let mut array = Array::<u64>::new(10_000).unwrap();
        assert!(array.iter().all(|value| *value == 0));
        array[9999] = 7;
        assert_eq!(
            (array[9999], array.len(), array.bytes()),
            (7, 10_000, 81_920)
        );
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let array = Array::<u64>::new(usize::MAX / 2);
        assert!(matches!(array, Err(Failure::Bookkeeping { .. })));
    }
}
