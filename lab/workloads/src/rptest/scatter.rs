//! The order in which slots are visited.

/// Sequence that visits each slot once in an order that looks random, and then repeats itself.
///
/// The order comes from a linear congruential generator of full period over the next power of two.
/// Two reversible steps scramble the generator's state, so that every state occurs once; states
/// beyond the last slot are skipped. The generator needs no memory. An array of random indexes
/// would occupy cache that the allocator under test could use.
#[derive(Debug)]
pub struct Scatter {
    state: u64,
    multiplier: u64,
    increment: u64,
    mask: u64,
    shift: u32,
    slots: u64,
}

impl Scatter {
    /// Creates a sequence over `slots` slots, at least one, from 128 random bits.
    pub fn new(slots: usize, random: [u64; 2]) -> Self {
        let slots = slots as u64;
        let bits = slots.next_power_of_two().trailing_zeros();
        let mask = slots.next_power_of_two() - 1;
        Self {
            state: random[0] & mask,
            // A full period needs a multiplier of the form 4k + 1 and an odd increment.
            multiplier: ((random[0] >> 32) << 3) | 5,
            increment: random[1] | 1,
            mask,
            shift: bits.div_ceil(2),
            slots,
        }
    }

    /// Returns the next slot.
    #[inline]
    pub fn visit(&mut self) -> usize {
        loop {
            let next = self.state.wrapping_mul(self.multiplier);
            self.state = next.wrapping_add(self.increment) & self.mask;
            let folded = self.state ^ (self.state >> self.shift);
            let place = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) & self.mask;
            if place < self.slots {
                return place as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_visited_once_before_any_is_visited_again() {
        for slots in [1, 2, 3, 5, 8, 1000, 1024, 50_000] {
            for random in [[0, 0], [7, 8], [u64::MAX, 0x1234_5678_9ABC_DEF0]] {
                let mut scatter = Scatter::new(slots, random);
                for round in 0..2 {
                    let mut seen = vec![false; slots];
                    for _ in 0..slots {
                        let slot = scatter.visit();
                        assert!(
                            !std::mem::replace(&mut seen[slot], true),
                            "{slots}, {round}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn neighbours_in_time_are_scattered_over_the_slots() {
        let slots = 50_000;
        let mut scatter = Scatter::new(slots, [0x0123_4567_89AB_CDEF, 42]);
        let visits: Vec<usize> = (0..slots).map(|_| scatter.visit()).collect();
        // A tenth of the visits reaches each hundredth of the slots about as often as chance would.
        let mut met = [0_u32; 100];
        visits[..slots / 10]
            .iter()
            .for_each(|slot| met[slot * 100 / slots] += 1);
        assert!(met.iter().all(|count| (20..=90).contains(count)), "{met:?}");
        // The distances between consecutive visits vary too: none dominates.
        let mut distances: Vec<usize> = visits
            .windows(2)
            .map(|two| two[0].abs_diff(two[1]))
            .collect();
        distances.sort_unstable();
        let commonest = distances
            .chunk_by(|a, b| a == b)
            .map(<[usize]>::len)
            .max()
            .unwrap_or(0);
        assert!(commonest < slots / 20, "{commonest}");
    }
}
