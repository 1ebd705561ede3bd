//! Reconstruction of the blocks that a process had when it forked.
//!
//! heapdrome learns of a child only when the child first allocates. By then its parent may have
//! allocated and freed other blocks. The blocks at the fork are therefore the parent's current
//! blocks without those allocated since the fork, which have higher numbers, and with those freed
//! since the fork, which are kept here.

use std::collections::VecDeque;

use crate::addresses::{Addresses, Block};

/// Maximum number of freed blocks kept for children. If blocks freed after a fork had to be
/// dropped, the child of that fork gets the blocks that the parent has when the child first
/// allocates.
const MOST_FREED: usize = 1 << 20;

/// Maximum number of remembered forks whose children have not allocated yet. Most of these children
/// execute another program and never allocate.
const MOST_FORKS: usize = 4096;

/// Forks of one process, and the blocks that it has freed since the first of these forks.
#[derive(Debug, Default)]
pub(crate) struct Forks {
    forks: VecDeque<Fork>,
    freed: VecDeque<(u64, Block)>,
    /// Number of freed blocks that were dropped from the front of `freed`.
    forgotten: u64,
}

/// A fork whose child has not allocated yet.
#[derive(Clone, Copy, Debug)]
struct Fork {
    stamp: u64,
    /// Number of the first block that the process made after the fork.
    next_block: u64,
    /// Number of freed blocks recorded before this fork, including dropped ones.
    freed: u64,
}

impl Forks {
    /// Records a fork. `next_block` is the number of the next allocated block.
    pub(crate) fn fork(&mut self, stamp: u64, next_block: u64) {
        let freed = self.forgotten + self.freed.len() as u64;
        self.forks.push_back(Fork {
            stamp,
            next_block,
            freed,
        });
        if self.forks.len() > MOST_FORKS {
            self.forget_first();
        }
    }

    /// Records a freed block if a remembered fork may need it.
    #[inline]
    pub(crate) fn freed(&mut self, address: u64, block: Block) {
        if self.forks.is_empty() {
            return;
        }
        self.freed.push_back((address, block));
        while self.freed.len() > MOST_FREED {
            self.forget_first();
        }
    }

    /// Returns the blocks that the child of the fork with this stamp inherited. `now` holds the
    /// parent's present blocks, which are returned if the fork is unknown.
    pub(crate) fn inherited(&mut self, stamp: u64, now: &Addresses) -> Addresses {
        let Some(place) = self.forks.iter().position(|fork| fork.stamp == stamp) else {
            return now.inherited(u64::MAX);
        };
        let fork = self.forks[place];
        let mut then = now.inherited(fork.next_block);
        let since = (fork.freed - self.forgotten) as usize;
        for &(address, Block { number, size }) in self.freed.range(since..) {
            if number.is_none_or(|number| number < fork.next_block) {
                then.insert(address, Block { number: None, size });
            }
        }
        self.forks.remove(place);
        self.forget_unneeded();
        then
    }

    fn forget_first(&mut self) {
        self.forks.pop_front();
        self.forget_unneeded();
    }

    /// Drops the freed blocks that no fork needs.
    fn forget_unneeded(&mut self) {
        let all = self.forgotten + self.freed.len() as u64;
        let first = self.forks.front().map_or(all, |fork| fork.freed);
        self.freed.drain(..(first - self.forgotten) as usize);
        self.forgotten = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> Block {
        Block {
            number: Some(number),
            size: 10 + number,
        }
    }

    #[test]
    fn a_child_has_what_its_parent_had_at_the_fork() {
        let (mut forks, mut now) = (Forks::default(), Addresses::default());
        let inherited = Block {
            number: None,
            size: 5,
        };
        now.insert(0x100, inherited);
        now.insert(0x200, block(0));
        forks.freed(0x300, block(1));
        forks.fork(1000, 2);
        now.remove(0x100);
        forks.freed(0x100, inherited);
        forks.fork(2000, 2);
        now.remove(0x200);
        forks.freed(0x200, block(0));
        now.insert(0x200, block(2));
        let mut first = forks.inherited(1000, &now);
        assert_eq!((first.len(), first.bytes()), (2, 15));
        assert_eq!(first.remove(0x100), Some(inherited));
        let second = forks.inherited(2000, &now);
        assert_eq!((second.len(), second.bytes()), (1, 10));
        assert!(forks.freed.is_empty(), "no fork needs them");
        let unknown = forks.inherited(3000, &now);
        assert_eq!((unknown.len(), unknown.bytes()), (1, 12));
    }

    #[test]
    fn what_is_kept_for_children_is_bounded() {
        let (mut forks, now) = (Forks::default(), Addresses::default());
        forks.fork(1, 1);
        for _ in 0..=MOST_FREED {
            forks.freed(0x100, block(0));
        }
        assert_eq!((forks.forks.len(), forks.freed.len()), (0, 0));
        (0..2 * MOST_FORKS as u64).for_each(|stamp| forks.fork(stamp, 1));
        assert_eq!(forks.forks.len(), MOST_FORKS);
        assert_eq!(forks.inherited(0, &now).len(), 0);
    }
}
