//! Live blocks of a process by number. Most blocks die young, so the youngest are kept in an array.
//! Only blocks that grow old move to a hash table.

use super::table::Table;

/// Number of places for young blocks, a power of two. A block becomes old when a newer block needs
/// its place.
const YOUNG: usize = 4096;

/// Live blocks, each with a value of type `T`.
pub(super) struct Blocks<T> {
    /// Young blocks, each at the index of its number modulo [`YOUNG`].
    young: Box<[Option<(u64, T)>]>,
    old: Table<u64, T>,
    count: usize,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self {
            young: (0..YOUNG).map(|_| None).collect(),
            old: Table::default(),
            count: 0,
        }
    }
}

impl<T> Blocks<T> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a block with a new number.
    #[inline]
    pub(super) fn insert(&mut self, number: u64, block: T) {
        self.count += 1;
        if let Some((number, block)) = self.young[place(number)].replace((number, block)) {
            self.old.insert(number, block);
        }
    }

    /// Removes a block and returns its value; `None` if the block is not live.
    #[inline]
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let young = self.young[place(number)].take_if(|(young, _)| *young == number);
        let block = match young {
            Some((_, block)) => Some(block),
            None => self.old.remove(&number),
        };
        self.count -= usize::from(block.is_some());
        block
    }
}

fn place(number: u64) -> usize {
    number as usize % YOUNG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn young_and_old_blocks_are_removed_once() {
        let mut blocks = Blocks::default();
        let numbers = 0..3 * YOUNG as u64;
        for number in numbers.clone() {
            blocks.insert(number, number * 7);
        }
        assert_eq!(blocks.len(), 3 * YOUNG);
        for number in numbers.step_by(5).chain([1, YOUNG as u64 + 1]) {
            assert_eq!(blocks.remove(number), Some(number * 7));
            assert_eq!(blocks.remove(number), None);
        }
        assert_eq!(blocks.remove(u64::MAX), None);
        assert_eq!(blocks.len(), 3 * YOUNG - (3 * YOUNG).div_ceil(5) - 2);
    }
}
