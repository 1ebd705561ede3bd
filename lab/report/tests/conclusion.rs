//! Tests of the advice of a race: the recommended entrant, or the reason for recommending none.

mod races;
#[path = "races/ratios.rs"]
mod ratios;
#[path = "races/seven.rs"]
mod seven;

use heapdrome_report::{Advice, Conclusion, Figure};
use heapdrome_schema::{Better, Entrant, Metric, RaceResult, Verdict};
use races::{compared, empty, usual};
use ratios::{ALL_EVEN, FAST, UNSEEN};
use seven::{EVEN, SAME, race, with_noise};

/// Formats the advice of a race, such as `mimalloc2 for Wall`.
fn advised(result: &RaceResult) -> String {
    match Conclusion::of(result).advice {
        Advice::Take {
            entrant,
            gain,
            is_setting,
        } => {
            let setting = if is_setting { ", a setting" } else { "" };
            format!("{} for {gain:?}{setting}", entrant.allocator)
        }
        other => format!("{other:?}"),
    }
}

/// Asserts that each result leads to the advice that precedes it.
fn advises<const CASES: usize>(cases: [(&str, RaceResult); CASES]) {
    for (place, (expected, result)) in cases.into_iter().enumerate() {
        let told = Conclusion::of(&result);
        assert_eq!(advised(&result), expected, "case {place}: {told}");
    }
}

#[test]
fn what_is_better_in_one_figure_and_worse_in_none_is_taken() {
    advises([
        ("mimalloc2 for Wall", race(&[("mimalloc2", FAST)], ALL_EVEN)),
        // The machine is busy, so wall time decides nothing, but mimalloc2 gains processor time.
        (
            "mimalloc2 for Processor",
            race(&[("mimalloc2", [(0.9, 0.3), (0.8, 0.02), EVEN])], UNSEEN),
        ),
        (
            "jemalloc for Memory",
            race(&[("jemalloc", [SAME, SAME, (0.8, 0.02)])], ALL_EVEN),
        ),
        // The intervals of mimalloc2 and rpmalloc on wall time overlap, so mimalloc2 wins by its
        // lower processor time.
        (
            "mimalloc2 for Wall",
            race(
                &[
                    ("mimalloc2", [(0.85, 0.14), (0.7, 0.02), EVEN]),
                    ("rpmalloc", [(0.80, 0.15), (0.85, 0.02), EVEN]),
                ],
                ALL_EVEN,
            ),
        ),
    ]);
}

#[test]
fn a_setting_is_taken_where_it_reaches_what_a_library_reaches() {
    let with_setting = |setting: (f64, f64)| {
        let entrants = [
            ("mimalloc2", FAST),
            ("system-huge", [setting, setting, EVEN]),
        ];
        race(&entrants, ALL_EVEN)
    };
    advises([
        (
            "system-huge for Wall, a setting",
            with_setting((0.73, 0.02)),
        ),
        ("mimalloc2 for Wall", with_setting((0.9, 0.02))),
    ]);
}

#[test]
fn of_equals_the_least_product_of_time_and_memory_is_taken() {
    let small = |ratio| [(ratio, 0.03), (ratio, 0.03), (1.03, 0.01)];
    let large = [(0.71, 0.02), (0.71, 0.02), (1.14, 0.02)];
    let beside = |one| race(&[("mimalloc2", FAST), ("jemalloc", one)], ALL_EVEN);
    advises([
        ("jemalloc for Wall", beside(small(0.75))),
        // jemalloc was shown to be slower than mimalloc2.
        ("mimalloc2 for Wall", beside(small(0.80))),
        // jemalloc was not shown to use less memory than mimalloc2.
        ("mimalloc2 for Wall", beside(large)),
        // jemalloc uses less memory than mimalloc2, but its product of time and memory is larger.
        (
            "mimalloc2 for Wall",
            beside([(0.8, 0.08), (0.8, 0.08), (1.12, 0.005)]),
        ),
        // jemalloc was not shown to be slower, but its estimated gain is less than half of
        // mimalloc2's.
        (
            "mimalloc2 for Wall",
            beside([(0.86, 0.14), (0.86, 0.14), (0.9, 0.01)]),
        ),
    ]);
    let mut left = beside(small(0.75));
    for row in &mut left.entrants {
        row.decided_after = (row.allocator == "jemalloc").then_some(9);
    }
    assert_eq!(advised(&left), "mimalloc2 for Wall");
    let told = Conclusion::of(&left).why;
    assert!(!told.contains("jemalloc"), "{told}");
    // In a suite, an entrant leaves once its targets are decided, so the early end does not mean
    // that jemalloc was beaten.
    left.asked = ["suite", "real"].map(str::to_owned).to_vec();
    assert_eq!(advised(&left), "jemalloc for Wall");
}

#[test]
fn a_gain_whose_estimate_does_not_matter_is_told_and_not_taken() {
    let barely = [EVEN, (0.987, 0.01), (1.13, 0.02)];
    let worse = [(1.1, 0.02), (1.1, 0.02), EVEN];
    let result = race(&[("mimalloc2", barely)], worse);
    let told = Conclusion::of(&result);
    assert!(matches!(told.advice, Advice::Stay), "{told}");
    assert!(
        told.why.starts_with(
            "mimalloc2 takes 1.3% less processor time, too little to act on (under 2%); "
        ),
        "{told}"
    );
}

#[test]
fn what_is_worse_in_one_figure_is_not_taken() {
    let slower = [(1.2, 0.05), (1.2, 0.05), (1.3, 0.02)];
    let one = |ratios| race(&[("mimalloc2", ratios)], ALL_EVEN);
    advises([
        ("Stay", race(&[], ALL_EVEN)),
        ("Stay", race(&[], slower)),
        // mimalloc2 uses less processor time, but takes longer.
        ("Stay", one([(1.1, 0.05), (0.8, 0.02), EVEN])),
        // mimalloc2 uses less memory, but is slower.
        ("Stay", one([(1.1, 0.05), EVEN, (0.8, 0.02)])),
        // mimalloc2 uses more memory and was not shown to be faster, so it has no advantage.
        ("Stay", one([EVEN, EVEN, (1.11, 0.02)])),
    ]);
}

#[test]
fn what_is_level_and_what_is_undecided_are_told_apart() {
    advises([
        ("NoneMatters", race(&[], [SAME, SAME, (1.3, 0.02)])),
        (
            "NoneMatters",
            race(
                &[("rpmalloc", [(0.99, 0.005), SAME, EVEN])],
                [SAME, SAME, EVEN],
            ),
        ),
        ("Unclear", with_noise(race(&[], UNSEEN), 0.46)),
        // The machine is busy, so wall time decides nothing, but all processor times are within 2%.
        (
            "NoneMatters",
            with_noise(race(&[], [UNSEEN[0], SAME, EVEN]), 0.46),
        ),
        // jemalloc uses less memory, but its cost in time is unknown.
        (
            "Unclear",
            with_noise(
                race(&[("jemalloc", [UNSEEN[0], UNSEEN[1], (0.8, 0.02)])], UNSEEN),
                0.46,
            ),
        ),
        ("NoAnswer", empty()),
    ]);
}

/// A ratio that was shown to be below 1, but by less than 2%.
const LITTLE: (f64, f64) = (0.99, 0.002);

#[test]
fn a_gain_too_small_to_act_on_is_told_and_not_taken() {
    let one = |ratios, others| race(&[("mimalloc2", ratios)], others);
    let told = |result: &RaceResult| Conclusion::of(result).to_string();
    advises([
        ("Stay", one([EVEN, EVEN, LITTLE], ALL_EVEN)),
        ("Stay", one([LITTLE, LITTLE, EVEN], ALL_EVEN)),
        ("NoneMatters", one([SAME, SAME, LITTLE], [SAME, SAME, EVEN])),
        (
            "NoneMatters",
            with_noise(
                one([UNSEEN[0], SAME, LITTLE], [UNSEEN[0], SAME, EVEN]),
                0.46,
            ),
        ),
        // mimalloc2 gains too little in one figure to act on, but enough in another.
        (
            "mimalloc2 for Memory",
            one([LITTLE, LITTLE, (0.8, 0.02)], ALL_EVEN),
        ),
        (
            "mimalloc2 for Processor",
            one([LITTLE, (0.9, 0.02), EVEN], ALL_EVEN),
        ),
    ]);
    for (ratios, others, expected) in [
        (
            [EVEN, EVEN, LITTLE],
            ALL_EVEN,
            "Stay with system. mimalloc2 takes 1.0% less memory than system, too little to act on (under 2%).",
        ),
        (
            [LITTLE, LITTLE, LITTLE],
            [SAME, SAME, EVEN],
            "Every rival's time is within 2% of system's; mimalloc2 takes 1.0% less wall time and mimalloc2 \
             takes 1.0% less memory than system, too little to act on (under 2%).",
        ),
        (
            [UNSEEN[0], SAME, LITTLE],
            [UNSEEN[0], SAME, EVEN],
            "Every rival's processor time is within 2% of system's; mimalloc2 takes 1.0% less memory than \
             system, too little to act on (under 2%).",
        ),
    ] {
        let text = told(&one(ratios, others));
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("one was shown"), "{text}");
    }
    // Every rival uses slightly less memory, but is slower. This is not a gain.
    let slower = told(&race(&[], [(1.2, 0.05), (1.2, 0.05), LITTLE]));
    assert!(
        slower.contains("None was shown to beat system;"),
        "{slower}"
    );
}

#[test]
fn a_price_too_small_to_matter_is_no_condition() {
    let more = (1.007, 0.005);
    let result = race(&[("mimalloc2", [FAST[0], FAST[1], more])], ALL_EVEN);
    let what = Conclusion::of(&result).what;
    assert_eq!(what, "Take mimalloc2.");
}

#[test]
fn nothing_that_the_baseline_beats_is_ever_taken() {
    let values = [0.8, 1.0, 1.25];
    for wall in values {
        for processor in values {
            for memory in values {
                let ratios = [wall, processor, memory].map(|ratio| (ratio, 0.03));
                let result = race(&[("mimalloc2", ratios)], ALL_EVEN);
                let taken = Conclusion::of(&result).taken().is_some();
                let gains = wall < 1.0
                    || wall == 1.0 && processor < 1.0
                    || wall == 1.0 && processor == 1.0 && memory < 1.0;
                assert_eq!(taken, gains, "{ratios:?}");
            }
        }
    }
}

#[test]
fn a_command_that_hardly_uses_malloc_is_not_raced_for_longer() {
    let mut result = with_noise(race(&[], UNSEEN), 0.46);
    for row in &mut result.entrants {
        row.minor_faults = races::series(1_000.0);
        let proof = row.proof.as_mut().expect("a proof");
        (proof.calls, proof.requested_bytes) = (13, 2_000);
    }
    assert_eq!(advised(&result), "NoneMatters");
    let told = Conclusion::of(&result).to_string();
    let what = "Stay with system: malloc hardly matters here. The command's calls of malloc take less than 1%";
    assert!(told.starts_with(what), "{told}");
    assert!(!told.contains("Run the race longer"), "{told}");
    // Calls that may take more than 1% of the processor time may matter, so the advice is
    // `Unclear`.
    for row in &mut result.entrants {
        row.proof.as_mut().expect("a proof").calls = 135_000;
    }
    assert_eq!(advised(&result), "Unclear");
}

#[test]
fn only_judged_figures_decide() {
    let less = [(1.0, 0.3), (0.8, 0.02), EVEN];
    let mut result = race(&[("mimalloc2", less)], ALL_EVEN);
    assert_eq!(advised(&result), "mimalloc2 for Processor");
    result.options.judged = vec!["wall_s".to_owned()];
    assert_eq!(advised(&result), "Stay");
}

#[test]
fn a_judged_metric_goes_before_times_and_its_direction_counts() {
    let mut result = race(&[("jemalloc", FAST)], ALL_EVEN);
    result.options.judged = vec!["rps".to_owned()];
    for (better, expected) in [(Better::Higher, "mimalloc2"), (Better::Lower, "rpmalloc")] {
        let (name, pattern) = ("rps".to_owned(), "x".to_owned());
        result.options.metrics = vec![Metric {
            name,
            pattern,
            better,
        }];
        for row in &mut result.entrants {
            let ratio = match row.allocator.as_str() {
                "mimalloc2" => compared(Verdict::More, 1.2, 0.05),
                "jemalloc" => compared(Verdict::More, 1.1, 0.01),
                "rpmalloc" => compared(Verdict::Less, 0.9, 0.05),
                _ => compared(Verdict::Undecided, 1.0, 0.05),
            };
            row.versus_baseline.insert("rps".to_owned(), ratio);
        }
        assert_eq!(advised(&result), format!("{expected} for Metric"));
    }
}

#[test]
fn what_runs_today_is_no_change() {
    let mut result = race(&[("mimalloc2", FAST)], ALL_EVEN);
    let mut rivals = result.entrants.iter_mut();
    let today = rivals.find(|row| row.allocator == "mimalloc2");
    today.expect("it races").allocator = Entrant::AS_IS.to_owned();
    let conclusion = Conclusion::of(&result);
    assert!(conclusion.taken().is_none());
    assert_eq!(
        conclusion.what,
        "Stay with as-is, as the command runs today."
    );
}

#[test]
fn nothing_is_taken_without_a_proof() {
    let mut result = race(&[("mimalloc2", FAST), ("jemalloc", FAST)], ALL_EVEN);
    let mut rivals = result.entrants.iter_mut();
    let best = rivals.find(|row| row.allocator == "mimalloc2");
    best.expect("it races").proof = None;
    assert_eq!(advised(&result), "jemalloc for Wall");
    for row in &mut result.entrants {
        row.proof = None;
    }
    assert_eq!(advised(&result), "Unproven");
    let told = Conclusion::of(&result).to_string();
    assert!(told.contains("It is not proven which"), "{told}");
}

#[test]
fn a_figure_that_no_race_has_is_left_out() {
    let mut result = usual();
    for row in &mut result.entrants {
        row.versus_baseline.remove("peak_rss_bytes");
    }
    let told = Conclusion::of(&result);
    assert!(
        matches!(
            told.advice,
            Advice::Take {
                gain: Figure::Wall,
                ..
            }
        ),
        "{told}"
    );
    assert!(!told.to_string().contains("memory"), "{told}");
}
