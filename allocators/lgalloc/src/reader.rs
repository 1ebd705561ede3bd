//! Reader that prefetches the elements that it will read.

use core::ops::Range;

use heapdrome_pages::{Linux, Pages};

use crate::error::RangeError;
use crate::vec::LargeVec;

/// Order in which elements will be read.
#[derive(Clone, Copy, Debug)]
pub enum Pattern<'a> {
    /// Consecutive elements of this range.
    Sequential(&'a Range<usize>),
    /// Every `stride`th element, starting at `first`.
    Strided {
        /// Index of the first element to read.
        first: usize,
        /// Distance from one index to the next.
        stride: usize,
        /// Number of elements to read.
        count: usize,
    },
    /// Elements with these indices, in this order.
    Indices(&'a [usize]),
}

impl Pattern<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Sequential(range) => range.len(),
            Self::Strided { count, .. } => *count,
            Self::Indices(indices) => indices.len(),
        }
    }

    /// Returns the index of the element that is read at `step`; `None` on overflow. `step` is below
    /// `len`.
    fn at(&self, step: usize) -> Option<usize> {
        match self {
            Self::Sequential(range) => range.start.checked_add(step),
            Self::Strided { first, stride, .. } => step.checked_mul(*stride)?.checked_add(*first),
            Self::Indices(indices) => indices.get(step).copied(),
        }
    }
}

/// Iterator over elements of a vector in a given order. It prefetches each batch of elements before
/// it reads them.
///
/// Prefetching is advice: if the system refuses, reading continues, and [`refusal`](Self::refusal)
/// returns the reason.
#[derive(Debug)]
pub struct Reader<'a, T> {
    vec: &'a LargeVec<T>,
    pattern: Pattern<'a>,
    batch: usize,
    step: usize,
    /// Number of steps whose elements were requested.
    asked: usize,
    /// Page of the last element of the last prefetched run, counted from the vector's start.
    last_page: Option<usize>,
    refusal: Option<RangeError>,
}

impl<'a, T> Reader<'a, T> {
    /// Creates a reader that prefetches `batch` elements at a time, at least one. Until the pattern
    /// ends, it prefetches at least one batch ahead of the element that it reads.
    ///
    /// # Errors
    ///
    /// [`RangeError::OutOfBounds`] if the pattern has an index that is not below the vector's
    /// length.
    pub fn new(
        vec: &'a LargeVec<T>,
        pattern: Pattern<'a>,
        batch: usize,
    ) -> Result<Self, RangeError> {
        let inside = |index: Option<usize>| index.is_some_and(|index| index < vec.len());
        let fits = match pattern {
            Pattern::Indices(indices) => indices.iter().all(|index| *index < vec.len()),
            // Both other patterns ascend, so checking the last index suffices.
            _ => pattern.len() == 0 || inside(pattern.at(pattern.len() - 1)),
        };
        if !fits {
            let length = vec.len().saturating_mul(size_of::<T>());
            return Err(RangeError::OutOfBounds { length });
        }
        Ok(Self {
            vec,
            pattern,
            batch: batch.max(1),
            step: 0,
            asked: 0,
            last_page: None,
            refusal: None,
        })
    }

    /// Returns the error of the last refused prefetch, if any.
    #[must_use]
    pub fn refusal(&self) -> Option<RangeError> {
        self.refusal
    }

    /// Prefetches the next batch. Uses one request for consecutive elements.
    fn ask(&mut self) {
        let end = self
            .asked
            .saturating_add(self.batch)
            .min(self.pattern.len());
        let pattern = self.pattern;
        let mut run: Option<Range<usize>> = None;
        for index in (self.asked..end).filter_map(|step| pattern.at(step)) {
            match &mut run {
                Some(run) if run.end == index => run.end += 1,
                _ => {
                    let before = run.replace(index..index + 1);
                    self.ask_for(before);
                }
            }
        }
        self.ask_for(run);
        self.asked = end;
    }

    /// Prefetches a run, unless it lies within the last prefetched page, as runs of small elements
    /// often do.
    fn ask_for(&mut self, run: Option<Range<usize>>) {
        let Some(run) = run else { return };
        let page = |index: usize| index * size_of::<T>() / Linux.page_size();
        // Saturates, because a run of zero-sized elements has no last byte.
        let last = (run.end * size_of::<T>()).saturating_sub(1) / Linux.page_size();
        if self.last_page == Some(last) && page(run.start) == last {
            return;
        }
        self.last_page = Some(last);
        if let Err(refusal) = self.vec.prefetch_hint(run) {
            self.refusal = Some(refusal);
        }
    }
}

impl<'a, T> Iterator for Reader<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        if self.step >= self.pattern.len() {
            return None;
        }
        let ahead = self.step.saturating_add(self.batch);
        while self.asked < self.pattern.len() && self.asked <= ahead {
            self.ask();
        }
        let element = self.vec.get(self.pattern.at(self.step)?)?;
        self.step += 1;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.pattern.len() - self.step;
        (left, Some(left))
    }
}
