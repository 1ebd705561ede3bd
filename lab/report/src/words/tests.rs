use super::*;

fn compared(verdict: Verdict, ratio: f64, low: f64, high: f64) -> Comparison {
    let rounds_to_show_one_percent = Some(14);
    Comparison {
        ratio,
        low,
        high,
        rounds: 12,
        verdict,
        rounds_to_show_one_percent,
        misses: Vec::new(),
    }
}

fn told(verdict: Verdict, ends: [f64; 3]) -> String {
    comparison(&compared(verdict, ends[0], ends[1], ends[2]), true)
}

#[test]
fn a_ratio_of_times_reads_as_a_percentage() {
    let faster = told(Verdict::Faster, [0.926, 0.909, 0.943]);
    assert_eq!(faster, "7.4% less (5.7 to 9.1)");
    let slower = told(Verdict::Slower, [1.25, 1.2, 1.31]);
    assert_eq!(slower, "25% more (20 to 31)");
}

#[test]
fn no_end_of_a_shown_difference_reads_as_none() {
    let near = told(Verdict::Faster, [0.997, 0.995, 0.999]);
    assert_eq!(near, "0.3% less (0.1 to 0.5)");
    let nearer = told(Verdict::Less, [0.998, 0.997, 0.9998]);
    assert_eq!(nearer, "0.20% less (0.02 to 0.30)");
}

#[test]
fn large_ratios_are_not_more_exact_than_they_are() {
    let saved = told(Verdict::Faster, [0.0004, 0.0003, 0.0005]);
    assert_eq!(saved, "less than 1/1000 as much");
    let saved = told(Verdict::Faster, [0.004, 0.003, 0.005]);
    assert_eq!(saved, "99.6% less (99.5 to 99.7)");
    assert_eq!(
        told(Verdict::Slower, [14.04, 13.0, 15.2]),
        "14.0x as much (13.0 to 15.2)"
    );
    assert_eq!(
        told(Verdict::Slower, [240.4, 230.0, 251.0]),
        "240x as much (230 to 251)"
    );
}

#[test]
fn amounts_are_percentages_up_to_twice_as_much() {
    assert_eq!(
        told(Verdict::Less, [0.88, 0.86, 0.90]),
        "12% less (10 to 14)"
    );
    assert_eq!(
        told(Verdict::More, [1.3, 1.28, 1.32]),
        "30% more (28 to 32)"
    );
    assert_eq!(told(Verdict::More, [1.3, 1.299, 1.301]), "30% more");
    assert_eq!(
        told(Verdict::More, [2.5, 2.4, 2.6]),
        "2.50x as much (2.40 to 2.60)"
    );
    assert_eq!(
        told(Verdict::More, [1.032, 1.029, 1.035]),
        "3.2% more (2.9 to 3.5)"
    );
}

#[test]
fn an_undecided_comparison_tells_what_would_decide_it() {
    let undecided = compared(Verdict::Undecided, 0.998, 0.985, 1.011);
    assert_eq!(comparison(&undecided, true), "no difference shown");
    assert_eq!(
        comparison_in_full(&undecided),
        "no difference shown, 0.998 (0.985 to 1.011) over 12 rounds; about 14 more rounds would show 1%"
    );
}

#[test]
fn what_is_not_a_number_is_not_told_as_one() {
    let nan = told(Verdict::Faster, [f64::NAN, 0.9, 1.1]);
    assert_eq!(nan, "unknown");
    assert_eq!(told(Verdict::Slower, [1.2, 0.0, f64::INFINITY]), "unknown");
    let early = compared(Verdict::Undecided, 1.2, 0.0, f64::INFINITY);
    assert_eq!(comparison(&early, true), NO_DIFFERENCE);
    assert_eq!(
        plain_ratio(&early),
        "1.200 (too few rounds for an interval)"
    );
    assert_eq!(fraction(f64::NAN), "an unknown amount");
}

#[test]
fn small_ratios_keep_three_digits() {
    assert_eq!(
        [1.0, 0.1, 0.052_31, 0.004_999, 0.0].map(bare_ratio),
        ["1.000", "0.100", "0.0523", "0.00500", "0.000"]
    );
    let compared = compared(Verdict::Faster, 0.052_31, 0.049_9, 0.054_7);
    assert_eq!(plain_ratio(&compared), "0.0523 (0.0499 to 0.0547)");
}

#[test]
fn numbers_are_short() {
    assert_eq!(short_number(1_240_332.0), "1.24M");
    assert_eq!(short_number(3500.0), "3.50k");
    assert_eq!(short_number(42.0), "42");
    assert_eq!(short_number(-0.5), "-0.50");
    assert_eq!(
        [0.031_42, 0.003_142, 0.000_031_42].map(short_number),
        ["0.0314", "0.00314", "0.0000314"]
    );
    assert_eq!(count(1, "process"), "1 process");
    assert_eq!(count(1200, "process"), "1,200 processes");
    assert_eq!(fraction(0.013), "1.3%");
}
