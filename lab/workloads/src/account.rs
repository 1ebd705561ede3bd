//! Counts the bytes in use over all threads, and their peak.
//!
//! Each thread counts on its own and publishes its balance whenever it has moved by [`FLUSH`] bytes
//! in either direction. On one thread the peak is exact. On several threads it is within [`BATCH`]
//! bytes per thread of the truth. It can be too low, because an unpublished balance hides less than
//! [`FLUSH`] bytes. It can be too high, because a thread publishes its high-water mark together
//! with a balance that may have fallen by twice [`FLUSH`] since. A [`stretch`] of blocks that is
//! counted in one step hides at most [`FLUSH`] bytes more. The bound therefore also holds for
//! stretches, if each is counted after its last allocation and before its first free.

use std::sync::atomic::{AtomicI64, Ordering};

/// Maximum error of the peak in bytes per thread, if there are several threads.
pub const BATCH: u64 = 64 * 1024;

/// Balance in bytes, positive or negative, at which a thread publishes it.
const FLUSH: i64 = BATCH as i64 / 2;

/// Maximum number of blocks in a stretch, however small they are. Counting costs almost nothing at
/// this length.
pub(crate) const LONGEST: usize = 64;

/// Returns the number of blocks of at most `largest` bytes that may be counted together: the number
/// that fits in [`FLUSH`] bytes, from 1 to [`LONGEST`].
pub(crate) fn stretch(largest: u64) -> usize {
    (FLUSH as u64 / largest.max(1)).clamp(1, LONGEST as u64) as usize
}

/// Bytes in use and their peak, over all threads.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Account {
    current: AtomicI64,
    peak: AtomicI64,
}

impl Account {
    /// Returns the published number of bytes in use.
    pub(crate) fn current(&self) -> u64 {
        // Relaxed: this is only a count, and no other read depends on it.
        self.current.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Returns the peak of the bytes in use.
    pub(crate) fn peak(&self) -> u64 {
        // Relaxed: callers read the peak after they have joined the threads, which orders all
        // updates before this.
        self.peak.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Creates the share of one thread.
    pub(crate) fn share(&self) -> Share<'_> {
        Share {
            account: self,
            balance: 0,
            highest: 0,
        }
    }
}

/// Balance of one thread since it last published: bytes allocated minus bytes freed, and the
/// maximum of this difference.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    account: &'a Account,
    balance: i64,
    highest: i64,
}

impl Share<'_> {
    /// Counts a block that was allocated.
    #[inline]
    pub(crate) fn add(&mut self, size: usize) {
        self.balance += size as i64;
        self.highest = self.highest.max(self.balance);
        if self.balance >= FLUSH {
            self.flush();
        }
    }

    /// Counts a block that was freed; any thread may have allocated it.
    #[inline]
    pub(crate) fn subtract(&mut self, size: usize) {
        self.balance -= size as i64;
        if self.balance <= -FLUSH {
            self.flush();
        }
    }

    /// Publishes the balance: adds it to the account, updates the peak, and sets the balance to
    /// zero.
    #[cold]
    pub(crate) fn flush(&mut self) {
        // Relaxed: no other memory depends on the counts. `before` is the value just before this
        // addition, in whatever order the threads add.
        let before = self
            .account
            .current
            .fetch_add(self.balance, Ordering::Relaxed);
        let highest = before + self.highest;
        // The peak only grows: if it is already as high, skip the write.
        if highest > self.account.peak.load(Ordering::Relaxed) {
            self.account.peak.fetch_max(highest, Ordering::Relaxed);
        }
        self.balance = 0;
        self.highest = 0;
    }

    /// Returns the bytes in use as far as this thread knows: the published count plus its own
    /// balance.
    pub(crate) fn in_use(&self) -> u64 {
        self.account.current().saturating_add_signed(self.balance)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_one_thread_is_exact() {
        let account = Account::default();
        let mut share = account.share();
        let (mut shadow, mut shadow_peak) = (0_u64, 0);
        let mut blocks = Vec::new();
        let mut random = crate::random::Random::new(5, 0);
        for _ in 0..100_000 {
            if blocks.is_empty() || random.below(100) < 52 {
                let size = random.between(1, 100_000) as usize;
                blocks.push(size);
                shadow += size as u64;
                share.add(size);
            } else {
                let size = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
                shadow -= size as u64;
                share.subtract(size);
            }
            shadow_peak = shadow_peak.max(shadow);
        }
        share.flush();
        assert_eq!((account.current(), account.peak()), (shadow, shadow_peak));
    }

    /// Interleaves the threads by hand, so that the true peak is known.
    #[test]
    fn the_peak_of_several_threads_is_within_a_batch_for_each() {
        const THREADS: usize = 7;
        for seed in 0..20 {
            let account = Account::default();
            let mut shares: Vec<_> = (0..THREADS).map(|_| account.share()).collect();
            let mut random = crate::random::Random::new(seed, 0);
            let (mut now, mut peak) = (0_u64, 0);
            let mut blocks = Vec::new();
            for _ in 0..50_000 {
                let share = &mut shares[random.below(THREADS as u64) as usize];
                if blocks.is_empty() || random.below(2) == 0 {
                    let size = random.between(1, 9000) as usize;
                    blocks.push(size);
                    share.add(size);
                    now += size as u64;
                } else {
                    let size = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
                    share.subtract(size);
                    now -= size as u64;
                }
                peak = peak.max(now);
            }
            drop(shares);
            let off = account.peak().abs_diff(peak);
            assert!(off <= THREADS as u64 * BATCH, "{off} of {peak}");
            assert_eq!(account.current(), now);
        }
    }

    /// All threads allocate and free repeatedly, and count each stretch of blocks in one step.
    /// Blocks of other threads may come between any two blocks of a stretch. The counted peak must
    /// stay within one batch per thread.
    #[test]
    fn the_peak_is_as_near_where_stretches_are_counted() {
        const THREADS: usize = 5;
        const BLOCKS: usize = 300;
        let stretch = stretch(1000);
        for seed in 0..20 {
            let account = Account::default();
            let mut random = crate::random::Random::new(seed, 0);
            let mut size = |_: usize| random.between(1, 1000) as usize;
            let mut sizes = |_: usize| (0..BLOCKS).map(&mut size).collect::<Vec<_>>();
            let sizes: [_; THREADS] = std::array::from_fn(&mut sizes);
            let mut shares: Vec<_> = (0..THREADS).map(|_| account.share()).collect();
            let mut places = [0; THREADS];
            let (mut now, mut peak) = (0_u64, 0);
            for _ in 0..THREADS * BLOCKS * 10 {
                let thread = random.below(THREADS as u64) as usize;
                let (allocates, place) = (places[thread] < BLOCKS, places[thread] % BLOCKS);
                places[thread] = (places[thread] + 1) % (2 * BLOCKS);
                let (begin, size) = (place / stretch * stretch, sizes[thread][place]);
                let end = (begin + stretch).min(BLOCKS);
                let sum: usize = sizes[thread][begin..end].iter().sum();
                if allocates {
                    now += size as u64;
                    if place + 1 == end {
                        shares[thread].add(sum);
                    }
                } else {
                    if place == begin {
                        shares[thread].subtract(sum);
                    }
                    now -= size as u64;
                }
                peak = peak.max(now);
            }
            drop(shares);
            let off = account.peak().abs_diff(peak);
            assert!(off <= THREADS as u64 * BATCH, "{off} of {peak}");
        }
    }

    #[test]
    fn a_stretch_has_no_more_bytes_than_a_balance_that_is_passed_on() {
        let found = [0, 1, 512, 513, 1000, 32_768, 32_769, u64::MAX].map(stretch);
        assert_eq!(found, [64, 64, 64, 63, 32, 1, 1, 1]);
    }
}
