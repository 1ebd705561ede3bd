//! Counts the blocks of a thread, to detect that it has given most of them back.

use core::cell::Cell;

/// Minimum number of blocks that a thread must give back before [`Outflow::look`] returns true.
const LEAST: isize = 256;

/// Count of a thread's blocks, which shows when it has given most of them back. Only slow paths
/// update it, so it includes the blocks in magazines.
#[derive(Debug)]
pub struct Outflow {
    /// Number of blocks that have left the thread's heap, minus those that have entered it:
    /// negative while the thread has blocks of its own.
    balance: Cell<isize>,
    /// Minimum of the balance, sampled at clock checks, since the thread last gave back most of its
    /// blocks.
    least: Cell<isize>,
    /// Number of blocks that left the heap when its magazines were last emptied.
    emptied: Cell<usize>,
}

impl Outflow {
    /// Creates the counts of a thread without blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            balance: Cell::new(0),
            least: Cell::new(0),
            emptied: Cell::new(0),
        }
    }

    /// Resets the counts for a new thread.
    pub fn forget(&self) {
        self.balance.set(0);
        self.least.set(0);
        self.emptied.set(0);
    }

    /// Returns the number of blocks that have left the heap, minus those that have entered it.
    #[must_use]
    pub fn balance(&self) -> isize {
        self.balance.get()
    }

    /// Counts blocks that enter the heap.
    #[inline]
    pub fn take(&self, blocks: usize) {
        self.balance.set(self.balance.get() - blocks as isize);
    }

    /// Counts blocks that leave the heap.
    #[inline]
    pub fn give(&self, blocks: usize) {
        self.balance.set(self.balance.get() + blocks as isize);
    }

    /// Samples the number of blocks that the thread has. Returns whether it is at most a quarter of
    /// the maximum, and at least `LEAST` below it; the caller must then call
    /// [`settle`](Self::settle). A thread without blocks of its own can only free blocks of other
    /// threads. For such a thread, this returns true whenever it has freed as many blocks as its
    /// magazines held when they were last emptied, and at least `LEAST`. So emptying costs no more
    /// than the frees.
    pub fn look(&self) -> bool {
        let wait = match self.least.get() {
            0.. => self.emptied.get() as isize,
            least => -least / 4 * 3,
        };
        let balance = self.balance.get();
        let least = self.least.get().min(balance);
        self.least.set(least);
        balance >= least + wait.max(LEAST)
    }

    /// Makes the thread's current number of blocks the new maximum. `balance` is the balance before
    /// its magazines were emptied.
    pub(super) fn settle(&self, balance: isize) {
        self.emptied.set((self.balance.get() - balance) as usize);
        self.least.set(self.balance.get());
    }
}

impl Default for Outflow {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_most_is_waited_for_and_then_a_quarter_of_that() {
        let outflow = Outflow::new();
        outflow.take(16_000);
        assert!(!outflow.look());
        for part in [12_000, 3_000] {
            outflow.give(part - 1);
            assert!(!outflow.look());
            outflow.give(1);
            assert!(outflow.look());
            outflow.settle(outflow.balance());
        }
    }

    #[test]
    fn what_magazines_held_is_waited_for_where_the_thread_has_nothing_of_its_own() {
        let outflow = Outflow::new();
        outflow.give(LEAST as usize);
        assert!(outflow.look());
        let before = outflow.balance();
        outflow.give(5_000);
        outflow.settle(before);
        outflow.give(4_999);
        assert!(!outflow.look());
        outflow.give(1);
        assert!(outflow.look());
    }

    #[test]
    fn few_blocks_are_not_waited_for() {
        let outflow = Outflow::new();
        for _ in 0..3 {
            outflow.give(LEAST as usize - 1);
            assert!(!outflow.look());
            outflow.give(1);
            assert!(outflow.look());
            outflow.settle(outflow.balance());
        }
    }
}
