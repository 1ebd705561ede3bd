//! Random sequences of pages to read.

use heapdrome_schema::Order;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// An endless sequence of page numbers, determined by its seed.
#[derive(Clone, Debug)]
pub struct Draws {
    random: SplitMix64,
    pages: usize,
    /// The shuffled order; empty for independent draws.
    order: Vec<usize>,
    next: usize,
}

impl Draws {
    /// Returns a sequence of draws from `pages` pages.
    pub fn new(order: Order, pages: usize, seed: u64) -> Self {
        let order = match order {
            Order::Uniform => Vec::new(),
            Order::Permutation => (0..pages).collect(),
        };
        Self {
            random: SplitMix64::seed_from_u64(seed),
            pages,
            next: order.len(),
            order,
        }
    }

    /// Returns the number of the next page to read.
    pub fn draw(&mut self) -> usize {
        if self.order.is_empty() {
            return self.below(self.pages);
        }
        if self.next == self.order.len() {
            self.next = 0;
            for last in (1..self.order.len()).rev() {
                let other = self.below(last + 1);
                self.order.swap(last, other);
            }
        }
        self.next += 1;
        self.order[self.next - 1]
    }

    /// Draws a number below `end`. The bias is at most `end / 2^64`, which is too small to measure.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.random.next_u64()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_draws_hit_every_part_alike() {
        let mut draws = Draws::new(Order::Uniform, 1000, 7);
        let mut tenths = [0_i32; 10];
        for _ in 0..100_000 {
            tenths[draws.draw() / 100] += 1;
        }
        // The tolerance is six standard deviations of a binomial count with mean 10,000.
        assert!(
            tenths.iter().all(|count| (count - 10_000).abs() < 570),
            "{tenths:?}"
        );
    }

    #[test]
    fn a_permutation_draws_every_page_once_and_then_in_another_order() {
        let mut draws = Draws::new(Order::Permutation, 64, 7);
        let mut round = || (0..64).map(|_| draws.draw()).collect::<Vec<_>>();
        let (first, second) = (round(), round());
        assert_ne!(first, second);
        for mut pages in [first, second] {
            pages.sort_unstable();
            assert!(pages.iter().copied().eq(0..64));
        }
    }

    #[test]
    fn two_with_one_seed_draw_the_same() {
        let mut one = Draws::new(Order::Uniform, 1 << 20, 3);
        let mut two = one.clone();
        let mut other = Draws::new(Order::Uniform, 1 << 20, 4);
        let drawn: Vec<_> = (0..50).map(|_| one.draw()).collect();
        assert!(drawn.iter().all(|page| two.draw() == *page));
        assert!(drawn.iter().any(|page| other.draw() != *page));
    }
}
