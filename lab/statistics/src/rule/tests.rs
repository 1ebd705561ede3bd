//! Tests of the rule: error rates, announced differences, estimates computed by hand, resolution,
//! missing and unusual figures, critical values, and the typical estimate.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// Draws normal noise by the method of Box and Muller.
pub(super) fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// Draws `count` log-normal run times around `centre`, with deviation `spread` on the log scale.
fn times(random: &mut ChaCha8Rng, count: usize, centre: f64, spread: f64) -> Vec<f64> {
    (0..count)
        .map(|_| centre * (spread * normal(random)).exp())
        .collect()
}

/// Returns whether any interval at any look at a race of `rounds` rounds excludes the true ratio.
fn ever_wrong(rule: &Rule, ratio: f64, rounds: usize, random: &mut ChaCha8Rng) -> bool {
    let baseline = times(random, rounds, 2.0, 0.03);
    (0..rule.comparisons()).any(|_| {
        let entrant = times(random, rounds, 2.0 * ratio, 0.03);
        (FEWEST_ROUNDS..=rounds).any(|look| {
            let pair = Rounds::new([&entrant[..look], &baseline[..look]], None, 0.0);
            rule.leaves_out(&pair, [0, 1], ratio, ratio)[0] != Shown::Nothing
        })
    })
}

fn wrong_of(races: usize, rule: &Rule, ratio: f64, seed: u64) -> usize {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..races)
        .filter(|_| ever_wrong(rule, ratio, 40, &mut random))
        .count()
}

#[test]
fn all_looks_together_miss_the_true_ratio_as_often_as_they_may() {
    // After 40 rounds, 0.85 * 2/3 of 5% is spent: 2.8%, or 57 of 2000.
    let wrong = wrong_of(2000, &Rule::new(0.05, 1), 1.1, 1);
    assert!((30..=100).contains(&wrong), "{wrong} of 2000");
}

#[test]
fn all_comparisons_together_miss_the_true_ratio_as_often_as_they_may() {
    let wrong = wrong_of(500, &Rule::new(0.05, 8), 1.0, 2);
    assert!((3..=30).contains(&wrong), "{wrong} of 500");
}

#[test]
fn a_single_look_rule_would_fail_the_same_test() {
    // If the usual interval is used at every look, it fails far more often. This proves that the
    // tests of all looks together can fail.
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let single = Boundary::new(0.05, FEWEST_ROUNDS, |_| 1.0).critical(FEWEST_ROUNDS);
    let wrong = (0..300).filter(|_| {
        let logs: Vec<f64> = (0..40).map(|_| normal(&mut random)).collect();
        (FEWEST_ROUNDS..=40).any(|look| {
            let found = trimmed_mean(&logs[..look]).expect("samples");
            found.centre.abs() > single * found.error
        })
    });
    assert!(wrong.count() > 60);
}

#[test]
fn a_doubled_time_is_shown_after_five_rounds_among_eight_rivals() {
    let rule = Rule::new(0.05, 8);
    let mut random = ChaCha8Rng::seed_from_u64(4);
    for _ in 0..50 {
        let baseline = times(&mut random, 5, 1.0, 0.01);
        let entrant = times(&mut random, 5, 2.0, 0.01);
        let slower = rule.compare(&entrant, &baseline, 0.0).expect("five rounds");
        let faster = rule.compare(&baseline, &entrant, 0.0).expect("five rounds");
        assert_eq!(
            (slower.shown(), faster.shown()),
            (Shown::Above, Shown::Below)
        );
        assert!((slower.ratio * faster.ratio - 1.0).abs() < 1e-12);
    }
}

#[test]
fn the_ratio_is_the_geometric_mean_of_the_rounds_ratios() {
    let baseline = [1.0, 2.0, 3.0, 4.0, 5.0];
    let entrant = [2.0, 2.0, 12.0, 16.0, 5.0];
    let estimate = Rule::new(0.05, 1)
        .compare(&entrant, &baseline, 0.0)
        .expect("five rounds");
    assert!((estimate.ratio - 2.0).abs() < 1e-12);
    assert!((estimate.low * estimate.high - 4.0).abs() < 1e-9);
    assert_eq!(estimate.rounds, 5);
    let deviation = 2.0_f64.ln();
    assert!((estimate.deviation - deviation).abs() < 1e-12);
}

#[test]
fn too_few_rounds_give_no_estimate() {
    let rule = Rule::new(0.05, 1);
    let five = [1.0; 5];
    assert_eq!(rule.compare(&[], &[], 0.0), None);
    assert_eq!(rule.compare(&five, &[1.0; 4], 0.0), None);
    assert_eq!(rule.compare(&[f64::NAN; 9], &[1.0; 9], 1.0), None);
    assert_eq!(rule.compare(&[0.0; 9], &[1.0; 9], 0.0), None);
    assert_eq!(rule.compare(&[-1.0; 9], &[1.0; 9], 1.0), None);
    assert!(rule.compare(&five, &[1.0; 8], 0.0).is_some());
}

#[test]
fn rounds_that_miss_a_figure_are_left_out_in_pairs() {
    let rule = Rule::new(0.05, 1);
    let gap = [1.0, f64::NAN, 1.1, 0.9, 1.0, 1.2, 0.8];
    let other = [2.0, 50.0, 2.0, 2.0, f64::INFINITY, 2.1, 1.9];
    let whole = rule.compare(&[1.0, 1.1, 0.9, 1.2, 0.8], &[2.0, 2.0, 2.0, 2.1, 1.9], 0.0);
    assert_eq!(rule.compare(&gap, &other, 0.0), whole);
}

#[test]
fn equal_figures_are_told_apart_only_beyond_their_resolution() {
    let rule = Rule::new(0.05, 8);
    let page = 4096.0;
    let compare = |pages: f64| {
        let estimate = rule.compare(&[pages * page; 6], &[100.0 * page; 6], page);
        estimate.expect("six rounds").shown()
    };
    assert_eq!(compare(100.0), Shown::Nothing);
    assert_eq!(compare(101.0), Shown::Nothing);
    assert_eq!(compare(103.0), Shown::Above);
    assert_eq!(compare(97.0), Shown::Below);
}

#[test]
fn zeros_count_as_one_step() {
    let rule = Rule::new(0.05, 1);
    let tick = 0.01;
    let both = rule
        .compare(&[0.0; 6], &[0.0; 6], tick)
        .expect("six rounds");
    assert!((both.ratio - 1.0).abs() < 1e-12);
    assert_eq!(both.shown(), Shown::Nothing);
    let one = rule
        .compare(&[0.0; 6], &[1.0; 6], tick)
        .expect("six rounds");
    assert!((one.ratio - 0.01).abs() < 1e-12);
    assert_eq!(one.shown(), Shown::Below);
}

#[test]
fn identical_figures_without_resolution_have_an_interval_of_no_width() {
    let estimate = Rule::new(0.05, 1)
        .compare(&[3.0; 7], &[3.0; 7], 0.0)
        .expect("seven rounds");
    assert_eq!((estimate.ratio, estimate.shown()), (1.0, Shown::Nothing));
    assert!(estimate.half_width().abs() < 1e-12);
}

#[test]
fn the_half_width_is_a_fraction_of_the_ratio() {
    let estimate = Estimate {
        ratio: 2.0,
        low: 1.6,
        high: 2.5,
        rounds: 5,
        deviation: 0.1,
        floor: 0.0,
    };
    assert!((estimate.half_width() - 0.25).abs() < 1e-12);
}

#[test]
fn the_announced_difference_and_the_rounds_agree() {
    let rule = Rule::new(0.05, 8);
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let series = [1.0; 3].map(|centre| times(&mut random, 12, centre, 0.02));
    let race = Rounds::new(series.iter().map(Vec::as_slice), Some([0, 1]), 0.0);
    let estimate = rule.compare_within(&race, 2, 0).expect("twelve rounds");
    let smallest = rule.smallest_difference(&estimate);
    assert!(smallest > estimate.half_width());
    assert_eq!(rule.rounds_to_show(&estimate, smallest * 1.0001), Some(0));
    let more = rule
        .rounds_to_show(&estimate, smallest / 2.0)
        .expect("within reason");
    assert!((12..60).contains(&more), "{more}");
}

#[test]
fn a_difference_below_the_resolution_or_of_nothing_cannot_be_shown() {
    let rule = Rule::new(0.05, 1);
    let estimate = rule
        .compare(&[100.0; 6], &[100.0; 6], 2.0)
        .expect("six rounds");
    assert_eq!(rule.rounds_to_show(&estimate, 0.01), None);
    assert_eq!(rule.rounds_to_show(&estimate, 0.05), Some(0));
    let noisy = rule
        .compare(&[1.0, 9.0, 2.0, 8.0, 3.0], &[5.0; 5], 0.0)
        .expect("five rounds");
    for difference in [0.0, 1e-9, f64::NAN] {
        assert_eq!(rule.rounds_to_show(&noisy, difference), None);
    }
}

#[test]
fn a_rule_out_of_range_is_brought_into_it() {
    assert!((Rule::new(f64::NAN, 0).alpha() - 0.05).abs() < 1e-12);
    assert_eq!(Rule::new(0.05, 0).comparisons(), 1);
    let strictest = Rule::new(-1.0, 1000).compare(&[2.0; 5], &[1.0; 5], 0.0);
    assert_eq!(strictest.expect("five rounds").shown(), Shown::Above);
}

#[test]
fn students_quantiles_are_those_of_the_tables() {
    for (tail, freedom, table) in [
        (0.025, 4.0, 2.776_445),
        (0.005, 9.0, 3.249_836),
        (0.0005, 4.0, 8.610_302),
        (0.0005, 30.0, 3.645_959),
    ] {
        let found = student_quantile(tail, freedom);
        assert!((found - table).abs() < 1e-4, "{found} is not {table}");
    }
    let tiny = student_quantile(1e-7, 4.0);
    assert!(tiny.is_finite() && tiny > 60.0, "{tiny}");
}

#[test]
fn critical_values_stay_above_a_single_look_and_far_rounds_are_cheap() {
    let rule = Rule::new(0.05, 8);
    for rounds in [5, 10, 40, 400] {
        assert!(rule.critical(rounds) > rule.fixed_critical());
    }
    assert!(rule.critical(400) < rule.critical(5));
}

#[test]
fn the_typical_estimate_has_the_median_noise() {
    let noisy = |deviation| Estimate {
        ratio: 1.0,
        low: 0.9,
        high: 1.1,
        rounds: 9,
        deviation,
        floor: 0.0,
    };
    assert_eq!(typical(&[]), None);
    assert_eq!(
        typical(&[noisy(0.3), noisy(0.1), noisy(0.2)]),
        Some(noisy(0.2))
    );
    let between = typical(&[noisy(0.3), noisy(0.1)]).expect("two estimates");
    assert!((between.deviation - 0.2).abs() < 1e-12);
}

#[test]
fn nothing_panics_on_any_figures() {
    let odd = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1e308,
        1e-308,
        5e-324,
        f64::MAX,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let mut draw = || odd[random.random_range(0..odd.len())];
    for _ in 0..2000 {
        let series = [(); 2].map(|()| (0..14).map(|_| draw()).collect::<Vec<f64>>());
        let rule = Rule::new(draw(), 3);
        let difference = draw();
        if let Some(estimate) = rule.compare(&series[0], &series[1], draw()) {
            assert!(estimate.low <= estimate.ratio && estimate.ratio <= estimate.high);
            let _ = (estimate.shown(), estimate.half_width());
            let _ = rule.smallest_difference(&estimate);
            let _ = rule.rounds_to_show(&estimate, difference);
        }
        let _ = (crate::drift(&series[0]), crate::outliers(&series[0]));
        let _ = (
            crate::welch(&series[0], &series[1]),
            crate::mean(&series[0]),
        );
    }
}
