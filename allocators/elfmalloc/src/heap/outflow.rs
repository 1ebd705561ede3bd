//! The number of blocks that a thread has, and when it has given most of them back.

use core::cell::Cell;

/// Minimum number of blocks that count as most of what a thread had.
const LEAST: isize = 256;

/// Number of blocks that a thread has, and when it has given most of them back. Only slow paths
/// count, so blocks in magazines count as the thread's.
#[derive(Debug)]
pub struct Outflow {
    /// Blocks that left the magazines minus blocks that entered: negative while the thread has
    /// some.
    balance: Cell<isize>,
    /// Minimum of the balance at looks at the clock since the thread last gave most of it back.
    least: Cell<isize>,
    /// Number of blocks that magazines held when they were last emptied.
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

    /// Returns the number of blocks that left minus those that entered.
    #[must_use]
    pub fn balance(&self) -> isize {
        self.balance.get()
    }

    /// Counts blocks that enter.
    #[inline]
    pub fn take(&self, blocks: usize) {
        self.balance.set(self.balance.get() - blocks as isize);
    }

    /// Counts blocks that leave.
    #[inline]
    pub fn give(&self, blocks: usize) {
        self.balance.set(self.balance.get() + blocks as isize);
    }

    /// Records how much the thread has. Returns whether that is at most a quarter of the maximum;
    /// then [`settle`](Self::settle) must be called. A thread with no blocks left frees those of
    /// others. For such a thread, this returns true each time as many blocks have left as magazines
    /// held, so that emptying these costs no more than the frees did.
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

    /// Starts to wait for a quarter of what the thread has now; `balance` was the count before its
    /// magazines were emptied.
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
