//! Iterator over the elements of a [`LargeVec`] by value.

use core::mem::ManuallyDrop;
use core::ops::Range;

use crate::vec::LargeVec;

/// Iterator over the elements of a [`LargeVec`], by value.
#[derive(Debug)]
pub struct IntoIter<T> {
    /// Owner of the region. Only the elements with indices in `left` remain.
    vec: LargeVec<ManuallyDrop<T>>,
    left: Range<usize>,
}

impl<T> IntoIter<T> {
    fn take(&mut self, index: Option<usize>) -> Option<T> {
        let element = &mut self.vec[index?];
        // SAFETY: `left` no longer contains the index, so no code takes or drops the element again.
        Some(unsafe { ManuallyDrop::take(element) })
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let index = self.left.next();
        self.take(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl<T> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        let index = self.left.next_back();
        self.take(index)
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

impl<T> Drop for IntoIter<T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<T> IntoIterator for LargeVec<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter {
            left: 0..self.len(),
            vec: self.without_drops(),
        }
    }
}

impl<'a, T> IntoIterator for &'a LargeVec<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut LargeVec<T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
