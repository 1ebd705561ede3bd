use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::Rounds;

fn noise(random: &mut ChaCha8Rng) -> f64 {
    // Heavy tails: a power of the ratio of two uniform draws.
    let [one, two] = [(); 2].map(|()| random.random_range(0.05..1.0_f64));
    (0.05 * (one / two).ln()).exp()
}

fn cells(entrants: &[Vec<f64>]) -> Cells {
    Rounds::new(entrants.iter().map(Vec::as_slice), Some([1, 2]), 0.0).cells(0, 1)
}

#[test]
fn the_tail_is_that_of_all_draws() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for rounds in 3..7_usize {
        let mut draw = |round: usize| Draw {
            scores: [(); MOST_ALIKE].map(|()| random.random_range(-6..=6)),
            count: 2 + round % 2,
        };
        let draws: Vec<Draw> = (0..rounds).map(&mut draw).collect();
        let expected: f64 = draws.iter().map(Draw::mean).sum();
        let mut sums = vec![0.0];
        for draw in &draws {
            // Repeat each of the 2 or 3 scores of a round, so that every round has six equally
            // likely draws.
            let scores: Vec<f64> = draw.scores().iter().map(|s| f64::from(*s)).collect();
            let add = |sum: &f64| -> Vec<f64> {
                (0..6)
                    .map(|place| sum + scores[place % draw.count])
                    .collect()
            };
            sums = sums.iter().flat_map(add).collect();
        }
        for total in [-9.0, -4.5, -0.5, 0.5, 3.0, 8.0_f64] {
            let beyond = |sum: &&f64| (**sum - expected) * total.signum() >= total.abs() - 1e-6;
            let share = sums.iter().filter(beyond).count() as f64 / sums.len() as f64;
            let found = tail(&draws, total);
            assert!(
                (found - share).abs() < 1e-12,
                "{rounds}, {total}: {found}, {share}"
            );
        }
    }
}

/// Rotates the figures of the three exchangeable entrants within each of six rounds, in all 729
/// ways. The share of ways with a tail of at most `p` is at most `p`.
#[test]
fn the_test_is_exact_over_all_orders() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let rounds = 6;
    let times: Vec<Vec<f64>> = (0..5)
        .map(|_| (0..rounds).map(|_| noise(&mut random)).collect())
        .collect();
    let ways = 3_usize.pow(rounds as u32);
    let mut tails: Vec<f64> = (0..ways)
        .map(|way| {
            let mut given = times.clone();
            for round in 0..rounds {
                let turn = way / 3_usize.pow(round as u32) % 3;
                for entrant in 0..3 {
                    given[entrant][round] = times[(entrant + turn) % 3][round];
                }
            }
            let cells = cells(&given);
            let deviate = Randomisation::new(&cells).deviate(0.0);
            crate::boundary::upper_tail(deviate)
        })
        .collect();
    tails.sort_unstable_by(f64::total_cmp);
    // Because of rounding and the tolerance of fits, a few ways may change places.
    for (place, tail) in tails.iter().enumerate().filter(|(_, tail)| **tail < 0.3) {
        let share = (place + 1) as f64 / ways as f64;
        assert!(
            *tail > 0.9 * share - 0.01,
            "{place}: {tail} is less than {share}"
        );
    }
    assert!(tails[0] < 0.02, "{}", tails[0]);
}

#[test]
fn the_centre_is_where_the_test_finds_nothing_and_the_ends_where_it_begins_to_find() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    for rounds in [12, 40, 130] {
        let mut times: Vec<Vec<f64>> = (0..6)
            .map(|_| (0..rounds).map(|_| noise(&mut random)).collect())
            .collect();
        times[0].iter_mut().for_each(|time| *time *= 1.2);
        let cells = cells(&times);
        let mut test = Randomisation::new(&cells);
        let estimate = test.estimate();
        let centre = estimate[0];
        assert!((centre - 1.2_f64.ln()).abs() < 0.1, "{rounds}: {centre}");
        assert!(test.deviate(centre).abs() < 0.1, "{}", test.deviate(centre));
        for side in [-1.0, 1.0] {
            let distance = test.distance(estimate, side, 2.5).expect("within reach");
            let at = |share: f64| centre + side * share * distance;
            let ends = [0.98, 1.02].map(|share| -side * test.deviate(at(share)));
            assert!(ends[0] < 2.5 && ends[1] > 2.5, "{rounds}, {side}: {ends:?}");
        }
    }
}

/// At the number of rounds where the normal tail replaces the exact tail, the deviate changes by
/// less than 5%.
#[test]
fn the_sum_of_many_rounds_is_close_to_normal() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let mut times: Vec<Vec<f64>> = (0..4)
        .map(|_| (0..=MANY).map(|_| noise(&mut random)).collect())
        .collect();
    let mut deviate = |rounds: usize, shift: f64| {
        times.iter_mut().for_each(|times| times.truncate(rounds));
        Randomisation::new(&cells(&times)).deviate(shift)
    };
    let shift = 0.014;
    let [normal, exact] = [MANY + 1, MANY].map(|rounds| deviate(rounds, shift));
    assert!(
        exact < -2.5 && (exact / normal - 1.0).abs() < 0.05,
        "{exact}, {normal}"
    );
}

#[test]
fn a_noisy_rival_gets_less_than_its_place_among_the_draws() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut times: Vec<Vec<f64>> = (0..3)
        .map(|_| (0..20).map(|_| noise(&mut random)).collect())
        .collect();
    for (round, time) in times[0].iter_mut().enumerate() {
        *time = if round % 4 == 0 { 0.5 } else { 2.0 };
    }
    let cells = cells(&times);
    let mut test = Randomisation::new(&cells);
    let found = test.deviate(0.0);
    let draws = test.draws();
    let total: f64 = draws
        .iter()
        .map(|draw| f64::from(draw.scores[0]) - draw.mean())
        .sum();
    let undeflated = -Normal::standard().inverse_cdf(tail(&draws, total));
    assert!(
        found > 1.0 && found < 0.9 * undeflated,
        "{found} of {undeflated}"
    );
}

#[test]
fn an_end_that_the_test_cannot_reach_is_none() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let times: Vec<Vec<f64>> = (0..3)
        .map(|_| (0..6).map(|_| noise(&mut random)).collect())
        .collect();
    let cells = cells(&times);
    // The smallest tail of six rounds is 3^-6, which is a deviate of 2.995.
    let mut test = Randomisation::new(&cells);
    let estimate = test.estimate();
    assert!(test.distance(estimate, 1.0, 2.9).is_some());
    assert_eq!(test.distance(estimate, 1.0, 3.1), None);
    assert_eq!(test.distance(estimate, -1.0, 3.1), None);
}
