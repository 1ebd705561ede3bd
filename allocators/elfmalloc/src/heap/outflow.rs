//! How much a thread has, and when it has given most of that back.

use core::cell::Cell;

/// Fewer blocks are not most of what a thread had.
const LEAST: isize = 256;

/// How many blocks a thread has, and when it has given most of them back. Counted in slow paths, so
/// that those in magazines count as the thread's.
#[derive(Debug)]
pub struct Outflow {
    /// Blocks that left the magazines, less those that came: below zero where the thread has some.
    balance: Cell<isize>,
    /// The least that it was at looks at the clock, since most of that was last given back.
    least: Cell<isize>,
    /// How many blocks magazines held when they were last emptied.
    emptied: Cell<usize>,
}

impl Outflow {
    /// Nothing came or left yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            balance: Cell::new(0),
            least: Cell::new(0),
            emptied: Cell::new(0),
        }
    }

    /// Counts anew, for a thread that begins.
    pub fn forget(&self) {
        self.balance.set(0);
        self.least.set(0);
        self.emptied.set(0);
    }

    /// Blocks that left, less those that came.
    #[must_use]
    pub fn balance(&self) -> isize {
        self.balance.get()
    }

    /// Counts blocks that come.
    #[inline]
    pub fn take(&self, blocks: usize) {
        self.balance.set(self.balance.get() - blocks as isize);
    }

    /// Counts blocks that leave.
    #[inline]
    pub fn give(&self, blocks: usize) {
        self.balance.set(self.balance.get() + blocks as isize);
    }

    /// Notes how much the thread has. True where that is a quarter of the most, at most, and
    /// [`settle`](Self::settle) is to be called. A thread that has none left frees the blocks of
    /// others: then it is true each time as many have left as magazines held, so that emptying them
    /// costs no more than what was freed.
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

    /// Waits for a quarter of what the thread has now; `balance` was the count before its magazines
    /// were emptied.
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
