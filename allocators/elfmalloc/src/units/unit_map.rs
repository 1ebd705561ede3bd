//! Set of units, as a bitmap with a summary. A search for a member reads at most one summary word
//! for each 256 MiB up to the highest unit that was ever a member.

/// Number of words of the bitmap that one summary word describes.
const GROUP: usize = 64;
/// Distance in words between two consecutive groups of a map. A summary word precedes each group.
/// Between the two groups lies a group of the other map of the pair.
const STRIDE: usize = 2 * (GROUP + 1);

/// Set of numbers below a length.
///
/// The groups of the two sets of a pair alternate in memory. So both sets of a small arena, with
/// their summaries, lie on one page.
///
/// Invariant: a bit of a summary word is set if and only if the corresponding word of the bitmap is
/// not zero.
#[derive(Debug)]
pub struct UnitMap {
    /// First summary word, directly before the first group of the bitmap.
    groups: *mut u64,
    /// Number of summary words that may differ from zero.
    summary_words: usize,
}

impl UnitMap {
    /// Returns the number of words of memory for two sets of numbers below `units`.
    #[must_use]
    pub const fn words_of_pair(units: usize) -> usize {
        units.div_ceil(64 * GROUP) * STRIDE
    }

    /// Creates a set of length 0, without memory.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            groups: core::ptr::null_mut(),
            summary_words: 0,
        }
    }

    /// Returns the memory of the set. For the first set of a pair, this is the memory of the pair.
    #[must_use]
    pub const fn memory(&self) -> *mut u64 {
        self.groups
    }

    /// Creates two empty sets.
    ///
    /// # Safety
    ///
    /// `memory` points to [`words_of_pair`](Self::words_of_pair) zero words that no other code
    /// uses. All numbers passed to the sets are below the argument of that call.
    #[must_use]
    pub unsafe fn pair(memory: *mut u64) -> [Self; 2] {
        // SAFETY: a pair has at least one group of each set.
        [memory, unsafe { memory.add(GROUP + 1) }].map(|groups| Self {
            groups,
            summary_words: 0,
        })
    }

    /// Returns the place of a word of the bitmap.
    #[inline]
    fn place(&self, index: usize) -> *mut u64 {
        let within = index / GROUP * STRIDE + 1 + index % GROUP;
        self.groups.wrapping_add(within)
    }

    /// Returns the place of a summary word.
    #[inline]
    fn summary_place(&self, index: usize) -> *mut u64 {
        self.groups.wrapping_add(index * STRIDE)
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        debug_assert!(index < self.summary_words * GROUP);
        // SAFETY: callers read a word only if its summary bit is set, which implies that the word
        // exists, or if the word holds a number below the length.
        unsafe { *self.place(index) }
    }

    /// Adds or removes `count` consecutive numbers from `first` on, all below the length. Returns
    /// the number of changes.
    pub(crate) fn change(&mut self, first: usize, count: usize, member: bool) -> usize {
        if member && count != 0 {
            let last = first + count - 1;
            self.summary_words = self.summary_words.max(last / 4096 + 1);
        }
        let mut changed = 0;
        let mut index = first;
        let mut left = count;
        while left != 0 {
            let shift = index % 64;
            let here = left.min(64 - shift);
            let mask = (!0_u64 >> (64 - here)) << shift;
            // SAFETY: the numbers are below the length; the callers in this crate ensure that.
            unsafe {
                let word = self.place(index / 64);
                let before = *word;
                *word = if member {
                    before | mask
                } else {
                    before & !mask
                };
                changed += (before ^ *word).count_ones() as usize;
                let summary = self.summary_place(index / 4096);
                let bit = 1 << (index / 64 % 64);
                *summary = if *word == 0 {
                    *summary & !bit
                } else {
                    *summary | bit
                };
            }
            index += here;
            left -= here;
        }
        changed
    }

    /// Returns whether `number`, which is below the length, is in the set.
    #[must_use]
    pub(crate) fn contains(&self, number: usize) -> bool {
        number / 4096 < self.summary_words && self.word(number / 64) >> (number % 64) & 1 == 1
    }

    /// Returns the first member from `from` on.
    #[must_use]
    pub fn first_from(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        if word >= self.summary_words * 64 {
            return None;
        }
        if self.summary_bit(word) {
            let bits = self.word(word) & (!0 << (from % 64));
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
        }
        let next = self.next_word(word + 1)?;
        Some(next * 64 + self.word(next).trailing_zeros() as usize)
    }

    /// Returns the last member below `end`.
    #[must_use]
    pub fn last_before(&self, end: usize) -> Option<usize> {
        let end = end.min(self.summary_words * 4096);
        let word = end / 64;
        if !end.is_multiple_of(64) && self.summary_bit(word) {
            let bits = self.word(word) & !(!0 << (end % 64));
            if bits != 0 {
                return Some(word * 64 + 63 - bits.leading_zeros() as usize);
            }
        }
        let below = |index: usize| {
            let bits = self.summary_word(index);
            if index == word / 64 {
                bits & !(!0 << (word % 64))
            } else {
                bits
            }
        };
        let index = (0..self.summary_words.min(word / 64 + 1))
            .rev()
            .find(|&index| below(index) != 0)?;
        let word = index * 64 + 63 - below(index).leading_zeros() as usize;
        Some(word * 64 + 63 - self.word(word).leading_zeros() as usize)
    }

    /// Returns the number of consecutive members from `first` on, at most `limit`.
    #[must_use]
    pub fn run_from(&self, first: usize, limit: usize) -> usize {
        let mut length = 0;
        while length < limit && (first + length) / 64 < self.summary_words * 64 {
            let index = first + length;
            if !self.summary_bit(index / 64) {
                break;
            }
            let ones = (!(self.word(index / 64) >> (index % 64))).trailing_zeros() as usize;
            let here = ones.min(64 - index % 64);
            length += here;
            if here < 64 - index % 64 {
                break;
            }
        }
        length.min(limit)
    }

    /// Returns the number of consecutive members directly before `end`, at most `limit`.
    #[must_use]
    pub(crate) fn run_before(&self, end: usize, limit: usize) -> usize {
        let mut length = 0;
        while length < limit && length < end && self.contains(end - length - 1) {
            length += 1;
        }
        length
    }

    /// Returns the start of the first run of `count` members such that start plus `before` is a
    /// multiple of `alignment`, a power of two.
    #[must_use]
    pub fn find_run(&self, count: usize, alignment: usize, before: usize) -> Option<usize> {
        let mut from = 0;
        loop {
            let first = self.first_from(from)?;
            let first = first + ((first + before).wrapping_neg() & (alignment - 1));
            let length = self.run_from(first, count);
            if length == count {
                return Some(first);
            }
            from = first + length + usize::from(length == 0);
        }
    }

    fn summary_word(&self, index: usize) -> u64 {
        // SAFETY: callers pass an index below the number of summary words.
        unsafe { *self.summary_place(index) }
    }

    fn summary_bit(&self, word: usize) -> bool {
        word / 64 < self.summary_words && self.summary_word(word / 64) >> (word % 64) & 1 == 1
    }

    /// Returns the index of the first non-zero word from `word` on.
    fn next_word(&self, word: usize) -> Option<usize> {
        let mut index = word / 64;
        if index >= self.summary_words {
            return None;
        }
        let mut bits = self.summary_word(index) & (!0 << (word % 64));
        while bits == 0 {
            index += 1;
            if index == self.summary_words {
                return None;
            }
            bits = self.summary_word(index);
        }
        Some(index * 64 + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use std::vec;

    #[test]
    fn it_answers_as_an_ordered_set_does() {
        let units = if cfg!(miri) { 5000 } else { 10_000 };
        let mut memory = vec![0_u64; UnitMap::words_of_pair(units)];
        // SAFETY: the memory is zero, large enough, and used by the pair alone.
        let [mut other, mut map] = unsafe { UnitMap::pair(memory.as_mut_ptr()) };
        other.change(0, units, true);
        let mut shadow = BTreeSet::new();
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..if cfg!(miri) { 5 } else { 2000 } {
            let count = draw(300) + 1;
            let first = draw(units - count);
            let member = draw(2) == 0;
            map.change(first, count, member);
            for number in first..first + count {
                if member {
                    shadow.insert(number);
                } else {
                    shadow.remove(&number);
                }
            }
            let from = draw(units);
            assert_eq!(map.first_from(from), shadow.range(from..).next().copied());
            assert_eq!(map.last_before(units), shadow.last().copied());
            assert_eq!(map.last_before(usize::MAX), shadow.last().copied());
            assert_eq!(
                map.last_before(from),
                shadow.range(..from).next_back().copied()
            );
            assert_eq!(map.contains(from), shadow.contains(&from));
            let run = (from..units)
                .take_while(|number| shadow.contains(number))
                .count();
            assert_eq!(map.run_from(from, 100), run.min(100));
            let back = (0..from)
                .rev()
                .take_while(|number| shadow.contains(number))
                .count();
            assert_eq!(map.run_before(from, 50), back.min(50));
            let wanted = draw(90) + 1;
            let before = draw(1000);
            let mut aligned = (0..units).filter(|first| (first + before).is_multiple_of(4));
            let naive = aligned
                .find(|&first| (first..first + wanted).all(|number| shadow.contains(&number)));
            assert_eq!(map.find_run(wanted, 4, before), naive);
        }
        assert_eq!(other.run_from(0, units), units, "the other set of the pair");
    }
}
