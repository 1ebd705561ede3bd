//! One thread's access to the heap, which counts calls, checks blocks, and times calls on request.

use crate::account::{Account, Share};
use crate::latency::Latency;
use crate::{Failure, Heap, contents};

/// One thread's access to the heap. It is created and dropped on the thread that uses it.
#[derive(Debug)]
pub(crate) struct Caller<'a, H: Heap> {
    heap: &'a H,
    share: Share<'a>,
    latency: Option<Latency>,
    operations: u64,
    checksum: u64,
}

/// Work of one thread, or of all threads together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Number of blocks allocated plus number of blocks freed.
    pub(crate) operations: u64,
    /// The sum of all contents that were read back; the order does not matter.
    pub(crate) checksum: u64,
    /// The times of single calls, if they were requested.
    pub(crate) latency: Option<Latency>,
}

impl Tally {
    /// Adds the work of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        match (&mut self.latency, other.latency) {
            (Some(own), Some(other)) => own.merge(&other),
            (own, other) => *own = own.take().or(other),
        }
    }

    /// Returns the sum of all tallies.
    pub(crate) fn sum(tallies: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::default();
        tallies.into_iter().for_each(|one| sum.merge(one));
        sum
    }
}

impl<'a, H: Heap> Caller<'a, H> {
    /// Creates an access to `heap` that counts its requests in `account`. If `timed` is set, it
    /// times every call.
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

    /// Allocates a block of `size` bytes and marks it with a tag derived from `key` and `size`.
    /// `alignment` is a power of two, or 0 for malloc's default.
    ///
    /// # Errors
    /// Returns a failure if the heap returns no block or a misaligned one.
    #[inline]
    pub(crate) fn allocate(
        &mut self,
        size: usize,
        alignment: usize,
        key: u64,
    ) -> Result<*mut u8, Failure> {
        let call = || self.heap.allocate(size, alignment);
        let block = match &mut self.latency {
            None => call(),
            Some(latency) => latency.of_malloc(call),
        };
        if block.is_null() {
            return Err(self.no_memory(size));
        }
        self.operations += 1;
        self.share.add(size);
        let due = contents::due_alignment(size, alignment);
        if !block.addr().is_multiple_of(due) {
            return Err(misaligned(block, size, due));
        }
        // SAFETY: the block is not null, so the heap returned `size` bytes, which no other code
        // uses.
        unsafe { contents::write(block, size, contents::tag(key, size)) };
        Ok(block)
    }

    /// Frees a block after checking that it still holds its tag.
    ///
    /// # Errors
    /// Returns a failure if the block no longer holds its tag.
    ///
    /// # Safety
    /// `block` came from [`allocate`](Self::allocate) on the same heap, by this thread or another,
    /// with this size and key; it has not been freed since, no other thread uses it, and it is not
    /// used afterwards.
    #[inline]
    pub(crate) unsafe fn free(
        &mut self,
        block: *mut u8,
        size: usize,
        key: u64,
    ) -> Result<(), Failure> {
        // SAFETY: by this function's contract `block` is in use, has `size` bytes, and was marked
        // by `allocate`, and no other thread uses it.
        let found = unsafe { contents::verify(block, size, contents::tag(key, size)) }?;
        // SAFETY: by this function's contract `block` came from this heap with this size, is in
        // use, and is not used afterwards.
        unsafe { self.free_checked(block, size, found) };
        Ok(())
    }

    /// Checks that a block still holds its tag, and writes the tag again.
    ///
    /// # Errors
    /// Returns a failure if the block no longer holds its tag.
    ///
    /// # Safety
    /// `block` came from [`allocate`](Self::allocate) on the same heap with this size and key; it
    /// has not been freed since, and no other thread uses it.
    pub(crate) unsafe fn rewrite(
        &mut self,
        block: *mut u8,
        size: usize,
        key: u64,
    ) -> Result<(), Failure> {
        let tag = contents::tag(key, size);
        // SAFETY: by this function's contract `block` is in use, has `size` bytes, and was marked
        // by `allocate`, and no other thread uses it.
        let found = unsafe { contents::verify(block, size, tag) }?;
        self.checksum = self.checksum.wrapping_add(found);
        // SAFETY: by this function's contract `block` has `size` bytes, which no other thread uses.
        unsafe { contents::write(block, size, tag) };
        Ok(())
    }

    /// Grows a block, which may move, or allocates one if `block` is null. Writes nothing into it.
    /// `old` is the size of the block, or 0 if there is none. A growth counts as one block freed
    /// and one allocated.
    ///
    /// # Errors
    /// Returns a failure if the heap returns no block or a misaligned one.
    ///
    /// # Safety
    /// `block` is null, or came from this function on the same heap with the size `old`; it has not
    /// been freed since, and is not used afterwards unless this function fails.
    #[inline]
    pub(crate) unsafe fn grow(
        &mut self,
        block: *mut u8,
        old: usize,
        new: usize,
    ) -> Result<*mut u8, Failure> {
        // SAFETY: by this function's contract `block` is null, or came from `reallocate` of this
        // heap with the size `old`, and thus with the default alignment. It is in use, and is not
        // used afterwards unless the result is null.
        let call = || unsafe { self.heap.reallocate(block, old, new) };
        let grown = match &mut self.latency {
            None => call(),
            Some(latency) => latency.of_malloc(call),
        };
        if grown.is_null() {
            return Err(self.no_memory(new));
        }
        self.operations += 1 + u64::from(!block.is_null());
        self.share.subtract(old);
        self.share.add(new);
        let due = contents::due_alignment(new, 0);
        match grown.addr().is_multiple_of(due) {
            true => Ok(grown),
            false => Err(misaligned(grown, new, due)),
        }
    }

    /// Frees a block whose contents the caller has checked. `found` is a sum of the contents for
    /// the checksum.
    ///
    /// # Safety
    /// `block` came from this heap with this size; it has not been freed since and is not used
    /// afterwards.
    #[inline]
    pub(crate) unsafe fn free_checked(&mut self, block: *mut u8, size: usize, found: u64) {
        self.checksum = self.checksum.wrapping_add(found);
        // SAFETY: by this function's contract `block` came from this heap with this size, is in
        // use, and is not used afterwards.
        let call = || unsafe { self.heap.free(block, size) };
        match &mut self.latency {
            None => call(),
            Some(latency) => latency.of_free(call),
        }
        self.operations += 1;
        self.share.subtract(size);
    }

    /// Fills `blocks` with blocks of these `sizes`, without writing or reading them, and returns
    /// the sum of the sizes. The blocks, at most [`stretch`](crate::account::stretch) of them, are
    /// counted together, so that the count adds little to the cost of a call.
    ///
    /// # Errors
    /// Returns a failure if the heap returns no block.
    #[inline]
    pub(crate) fn allocate_stretch(
        &mut self,
        blocks: &mut [*mut u8],
        sizes: &[usize],
    ) -> Result<usize, Failure> {
        let heap = self.heap;
        let refused = match &mut self.latency {
            None => fill(blocks, sizes, |size| heap.allocate(size, 0)),
            Some(latency) => fill(blocks, sizes, |size| {
                latency.of_malloc(|| heap.allocate(size, 0))
            }),
        };
        let sum = sizes[..refused.unwrap_or(sizes.len())].iter().sum();
        self.operations += blocks.len() as u64;
        self.share.add(sum);
        match refused {
            None => Ok(sum),
            Some(place) => Err(self.no_memory(sizes[place])),
        }
    }

    /// Frees the blocks of [`allocate_stretch`](Self::allocate_stretch), whose sizes `draw` repeats
    /// and whose total is `sum` bytes. All blocks are counted before the first is freed.
    ///
    /// # Safety
    /// The blocks came from the same heap with these sizes; none has been freed since or is used
    /// afterwards.
    #[inline(always)] // Otherwise the state of `draw` would not stay in registers.
    pub(crate) unsafe fn free_stretch(
        &mut self,
        blocks: &[*mut u8],
        sum: usize,
        mut draw: impl FnMut() -> usize,
    ) {
        self.operations += blocks.len() as u64;
        self.share.subtract(sum);
        let heap = self.heap;
        // SAFETY: by this function's contract the blocks came from this heap with the sizes that
        // `draw` repeats, are in use, and are not used afterwards.
        let free = |block: &*mut u8, size| unsafe { heap.free(*block, size) };
        match &mut self.latency {
            None => blocks.iter().for_each(|block| free(block, draw())),
            Some(latency) => {
                for block in blocks {
                    let size = draw();
                    latency.of_free(|| free(block, size));
                }
            }
        }
    }

    /// Publishes this thread's count of requested bytes. The account is exact once all threads have
    /// published theirs and met.
    pub(crate) fn flush(&mut self) {
        self.share.flush();
    }

    /// Returns the work that was done.
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

/// Fills `blocks` by `allocate` with these sizes. Returns the index of the first allocation that
/// failed.
#[inline]
fn fill(
    blocks: &mut [*mut u8],
    sizes: &[usize],
    mut allocate: impl FnMut(usize) -> *mut u8,
) -> Option<usize> {
    for (place, (block, size)) in blocks.iter_mut().zip(sizes).enumerate() {
        *block = allocate(*size);
        if block.is_null() {
            return Some(place);
        }
    }
    None
}

#[cold]
fn misaligned(block: *const u8, size: usize, alignment: usize) -> Failure {
    Failure::Misaligned {
        address: block.addr(),
        size,
        alignment,
    }
}
