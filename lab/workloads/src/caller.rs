//! One thread's way to the heap: it counts, checks and, where asked, times every call.

use std::time::Instant;

use crate::account::{Account, Share};
use crate::latency::Latency;
use crate::{Failure, Heap, contents};

/// One thread's way to the heap. It is created and dropped on the thread that uses it.
#[derive(Debug)]
pub(crate) struct Caller<'a, H: Heap> {
    heap: &'a H,
    share: Share<'a>,
    latency: Option<Latency>,
    operations: u64,
    checksum: u64,
}

/// What one thread did, or all of them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Blocks allocated and blocks freed.
    pub(crate) operations: u64,
    /// The sum of all contents that were read back, in any order.
    pub(crate) checksum: u64,
    /// The times of single calls, where they were asked for.
    pub(crate) latency: Option<Latency>,
}

impl Tally {
    /// Adds another thread's.
    pub(crate) fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        match (&mut self.latency, other.latency) {
            (Some(own), Some(other)) => own.merge(&other),
            (own, other) => *own = own.take().or(other),
        }
    }

    /// All of them together.
    pub(crate) fn sum(tallies: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::default();
        tallies.into_iter().for_each(|one| sum.merge(one));
        sum
    }
}

impl<'a, H: Heap> Caller<'a, H> {
    /// A way to `heap` whose requests are counted in `account`; with `timed`, every call is timed.
    pub(crate) fn new(heap: &'a H, account: &'a Account, timed: bool) -> Self {
        heap.enter();
        Self {
            heap,
            share: account.share(),
            latency: Latency::when(timed),
            operations: 0,
            checksum: 0,
        }
    }

    /// A block of `size` bytes, marked with a tag that follows from `key` and `size`.
    /// `alignment` is 0 for what malloc gives, or a power of two.
    ///
    /// # Errors
    /// When the heap gives none, or one that is not aligned.
    #[inline]
    pub(crate) fn allocate(
        &mut self,
        size: usize,
        alignment: usize,
        key: u64,
    ) -> Result<*mut u8, Failure> {
        let block = self.allocate_bare(size, alignment)?;
        let due = contents::due_alignment(size, alignment);
        if !block.addr().is_multiple_of(due) {
            return Err(misaligned(block, size, due));
        }
        // SAFETY: the heap gave `size` bytes, which nobody else uses.
        unsafe { contents::write(block, size, contents::tag(key, size)) };
        Ok(block)
    }

    /// Frees a block after looking whether it still holds its tag.
    ///
    /// # Errors
    /// When it does not.
    ///
    /// # Safety
    /// `block` came from [`allocate`](Self::allocate) on the same heap, by this thread or another,
    /// with this size and key; it has not been freed since and is not used afterwards.
    #[inline]
    pub(crate) unsafe fn free(
        &mut self,
        block: *mut u8,
        size: usize,
        key: u64,
    ) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the block.
        let found = unsafe { contents::verify(block, size, contents::tag(key, size)) }?;
        self.checksum = self.checksum.wrapping_add(found);
        // SAFETY: the caller vouches for the block.
        unsafe { self.free_bare(block, size) };
        Ok(())
    }

    /// A block of `size` bytes that is neither written nor looked at.
    ///
    /// # Errors
    /// When the heap gives none.
    #[inline]
    pub(crate) fn allocate_bare(
        &mut self,
        size: usize,
        alignment: usize,
    ) -> Result<*mut u8, Failure> {
        let block = match &mut self.latency {
            None => self.heap.allocate(size, alignment),
            Some(latency) => {
                let begin = Instant::now();
                let block = self.heap.allocate(size, alignment);
                latency.malloc_since(begin);
                block
            }
        };
        if block.is_null() {
            return Err(self.no_memory(size));
        }
        self.operations += 1;
        self.share.add(size);
        Ok(block)
    }

    /// Frees a block without looking at it.
    ///
    /// # Safety
    /// As for [`free`](Self::free), but for the contents.
    #[inline]
    pub(crate) unsafe fn free_bare(&mut self, block: *mut u8, size: usize) {
        match &mut self.latency {
            // SAFETY: the caller vouches for the block.
            None => unsafe { self.heap.free(block, size) },
            Some(latency) => {
                let begin = Instant::now();
                // SAFETY: the caller vouches for the block.
                unsafe { self.heap.free(block, size) };
                latency.free_since(begin);
            }
        }
        self.operations += 1;
        self.share.subtract(size);
    }

    /// Passes this thread's count of requested bytes on, so that the account is exact when all
    /// threads have done so and met.
    pub(crate) fn flush(&mut self) {
        self.share.flush();
    }

    /// What was done.
    pub(crate) fn finish(mut self) -> Tally {
        self.flush();
        Tally {
            operations: self.operations,
            checksum: self.checksum,
            latency: self.latency.take(),
        }
    }

    #[cold]
    fn no_memory(&self, size: usize) -> Failure {
        Failure::NoMemory {
            size,
            requested: self.share.in_use(),
        }
    }
}

impl<H: Heap> Drop for Caller<'_, H> {
    fn drop(&mut self) {
        self.heap.leave();
    }
}

#[cold]
fn misaligned(block: *const u8, size: usize, alignment: usize) -> Failure {
    Failure::Misaligned {
        address: block.addr(),
        size,
        alignment,
    }
}
