//! The conclusion of a race: what to take, why, and how sure that is.

mod races;
#[path = "races/seven.rs"]
mod seven;

use heapdrome_record::{Better, Entrant, Metric, RaceResult, Role, Verdict};
use heapdrome_report::{Advice, Conclusion, Exporter, Figure, Terminal, interim};
use races::{bare, compared, empty, full, usual};
use seven::{EVEN, SAME, race, with_noise};

/// The advice of a conclusion, without its sentences.
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

/// Everything that a race says, on lines that do not end.
fn in_full(result: &RaceResult) -> String {
    let terminal = Terminal {
        width: 1000,
        colour: false,
    };
    String::from_utf8(terminal.export(result).expect("it exports")).expect("UTF-8")
}

const MANY: [(f64, f64); 3] = [EVEN; 3];
const FAST: [(f64, f64); 3] = [(0.71, 0.02), (0.72, 0.02), (1.14, 0.01)];
const UNSEEN: [(f64, f64); 3] = [(1.0, 0.5), (1.0, 0.4), (1.0, 0.02)];

/// Holds that each result leads to the advice beside it.
fn advises<const CASES: usize>(cases: [(&str, RaceResult); CASES]) {
    for (place, (expected, result)) in cases.into_iter().enumerate() {
        let told = Conclusion::of(&result);
        assert_eq!(advised(&result), expected, "case {place}: {told}");
    }
}

#[test]
fn what_is_better_in_one_figure_and_worse_in_none_is_taken() {
    advises([
        ("mimalloc2 for Wall", race(&[("mimalloc2", FAST)], MANY)),
        // The machine is busy: wall time decides nothing.
        (
            "mimalloc2 for Processor",
            race(&[("mimalloc2", [(0.9, 0.3), (0.8, 0.02), EVEN])], UNSEEN),
        ),
        (
            "jemalloc for Memory",
            race(&[("jemalloc", [SAME, SAME, (0.8, 0.02)])], MANY),
        ),
        // Of two whose wall times overlap, the one that takes less processor time.
        (
            "mimalloc2 for Wall",
            race(
                &[
                    ("mimalloc2", [(0.85, 0.14), (0.7, 0.02), EVEN]),
                    ("rpmalloc", [(0.80, 0.15), (0.85, 0.02), EVEN]),
                ],
                MANY,
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
        race(&entrants, MANY)
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
fn what_is_worse_in_one_figure_is_not_taken() {
    let slower = [(1.2, 0.05), (1.2, 0.05), (1.3, 0.02)];
    let one = |ratios| race(&[("mimalloc2", ratios)], MANY);
    advises([
        ("Stay", race(&[], MANY)),
        ("Stay", race(&[], slower)),
        // Less processor time, but longer.
        ("Stay", one([(1.1, 0.05), (0.8, 0.02), EVEN])),
        // Less memory, but slower.
        ("Stay", one([(1.1, 0.05), EVEN, (0.8, 0.02)])),
        // As fast, with more memory: the baseline beats it.
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
        // The machine is busy, but the processor does the same.
        (
            "NoneMatters",
            with_noise(race(&[], [UNSEEN[0], SAME, EVEN]), 0.46),
        ),
        // Less memory, at an unknown price in time.
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

#[test]
fn nothing_that_the_baseline_beats_is_ever_taken() {
    let values = [0.8, 1.0, 1.25];
    for wall in values {
        for processor in values {
            for memory in values {
                let ratios = [wall, processor, memory].map(|ratio| (ratio, 0.03));
                let result = race(&[("mimalloc2", ratios)], MANY);
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
fn the_three_sentences_say_what_to_take_why_and_how_sure() {
    let told = |result: &RaceResult| Conclusion::of(result).to_string();
    assert_eq!(
        told(&race(&[("mimalloc2", FAST)], MANY)),
        "Take mimalloc2 if 14% more memory is acceptable. Against system: wall time 1.41x faster (1.37 to \
         1.45), processor time 1.39x faster (1.35 to 1.43), peak memory 14% more (13 to 15). This is 95% \
         sure after 32 rounds."
    );
    let huge = [(0.73, 0.02), (0.73, 0.02), EVEN];
    let setting = told(&race(&[("mimalloc2", FAST), ("system-huge", huge)], MANY));
    assert!(
        setting.starts_with("Take system-huge (set GLIBC_TUNABLES=glibc.malloc.hugetlb=1). "),
        "{setting}"
    );
    assert!(
        setting.contains("; mimalloc2 is as fast within the noise. "),
        "{setting}"
    );
    let busy = told(&race(
        &[("mimalloc2", [(0.9, 0.3), (0.8, 0.02), EVEN])],
        UNSEEN,
    ));
    assert!(
        busy.contains(
            "wall time undecided (0.60 to 1.20), processor time 1.25x faster (1.22 to 1.28)"
        ),
        "{busy}"
    );
    assert_eq!(
        told(&race(&[], [SAME, SAME, (1.3, 0.02)])),
        "Stay with system: no allocator matters here. Every rival takes system's time within 2%, and none \
         was shown to take less memory. Differences under 1.3% may have gone unseen."
    );
    let unclear = told(&with_noise(race(&[], UNSEEN), 0.46));
    assert_eq!(
        unclear,
        "No answer: keep system for now. None was shown to beat system. Only differences above 46% in wall \
         time and 46% in processor time were sure to be shown: run it longer or on a quieter machine."
    );
    let unseen = [UNSEEN[0], UNSEEN[1], (0.8, 0.02)];
    let unseen = told(&with_noise(race(&[("jemalloc", unseen)], UNSEEN), 0.46));
    assert!(unseen.contains("jemalloc takes 20% less"), "{unseen}");
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
    let what =
        "Stay with system: malloc hardly matters here. Its calls of malloc take less than 1%";
    assert!(told.starts_with(what), "{told}");
    assert!(!told.contains("run it longer"), "{told}");
    // Calls that take a tenth of its time may matter.
    for row in &mut result.entrants {
        row.proof.as_mut().expect("a proof").calls = 135_000_000;
    }
    assert_eq!(advised(&result), "Unclear");
}

#[test]
fn figures_that_nobody_could_read_are_words() {
    let told = with_noise(race(&[], UNSEEN), 654_465.766);
    let told = in_full(&told);
    assert!(
        told.contains("Not even a factor of two was sure to be shown"),
        "{told}"
    );
    assert!(
        told.contains("could have shown: more than a factor of ten;"),
        "{told}"
    );
    assert!(!told.contains("65446"), "{told}");
}

#[test]
fn what_speaks_against_the_best_is_told_with_it() {
    let mut result = usual();
    let best = result
        .entrants
        .iter_mut()
        .find(|row| row.allocator == "mimalloc3");
    let best = best.expect("it races");
    best.output = "different".to_owned();
    best.known_faults = vec!["a fault".to_owned()];
    if let Some(noise) = &mut result.noise_floor {
        noise.baseline_again = compared(Verdict::Slower, 1.03, 0.01);
    }
    let told = Conclusion::of(&result).sure;
    assert_eq!(
        told,
        "This is 95% sure after 3 rounds, but system seemed 1.03x slower (1.02 to 1.04) than itself, so \
         differences of that size prove nothing here, its output differs from that under system and it \
         has 1 known fault."
    );
}

#[test]
fn only_judged_figures_decide() {
    let less = [(1.0, 0.3), (0.8, 0.02), EVEN];
    let mut result = race(&[("mimalloc2", less)], MANY);
    assert_eq!(advised(&result), "mimalloc2 for Processor");
    result.options.judged = vec!["wall_s".to_owned()];
    assert_eq!(advised(&result), "Stay");
}

#[test]
fn a_judged_metric_goes_before_times_and_its_direction_counts() {
    let mut result = race(&[("jemalloc", FAST)], MANY);
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
    let mut result = race(&[("mimalloc2", FAST)], MANY);
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
    let mut result = race(&[("mimalloc2", FAST), ("jemalloc", FAST)], MANY);
    let mut rivals = result.entrants.iter_mut();
    let best = rivals.find(|row| row.allocator == "mimalloc2");
    best.expect("it races").proof = None;
    assert_eq!(advised(&result), "jemalloc for Wall");
    for row in &mut result.entrants {
        row.proof = None;
    }
    assert_eq!(advised(&result), "Unproven");
    let told = Conclusion::of(&result).to_string();
    assert!(told.contains("No proof was taken"), "{told}");
}

#[test]
fn the_hardened_are_a_class_of_their_own() {
    let mut result = usual();
    for row in &mut result.entrants {
        row.hardened = row.role == Role::Rival;
    }
    assert_eq!(advised(&result), "Stay");
    let told = in_full(&result);
    assert!(
        told.contains("Only hardened allocators were compared"),
        "{told}"
    );
    assert!(
        told.contains("Of the hardened, mimalloc3: wall time 1.08x faster"),
        "{told}"
    );
}

#[test]
fn who_is_smaller_and_slower_is_named_in_full() {
    let mut result = race(&[("mimalloc2", FAST)], MANY);
    let small = [(1.1, 0.02), (1.1, 0.02), (0.8, 0.02)];
    result.entrants.push(seven::rival("small", small));
    let told = in_full(&result);
    assert!(
        told.contains("Where memory matters more: small, wall time 1.10x slower"),
        "{told}"
    );
    // One that is as fast as the baseline and larger is beaten by it.
    let larger = [EVEN, EVEN, (1.1, 0.02)];
    let mut result = race(&[("mimalloc2", [FAST[0], FAST[1], (1.5, 0.02)])], MANY);
    result.entrants.push(seven::rival("larger", larger));
    let told = in_full(&result);
    assert!(
        !told.contains("Where memory matters more: larger"),
        "{told}"
    );
}

#[test]
fn without_a_comparison_nothing_is_claimed() {
    let mut result = usual();
    result.entrants.truncate(1);
    let told = Conclusion::of(&result).to_string();
    assert!(
        told.contains("There is nothing to compare with system."),
        "{told}"
    );
    result.entrants.push(full("x", Role::Rival, 1.0, 1.0));
    let told = Conclusion::of(&result).to_string();
    assert!(
        told.contains("There is no interval before five rounds."),
        "{told}"
    );
    let told = Conclusion::of(&empty()).to_string();
    assert!(told.contains("No round is complete."), "{told}");
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

#[test]
fn entrants_without_a_comparison_are_ranked_by_their_medians() {
    let mut result = usual();
    result.entrants = vec![
        full("slow", Role::Rival, 90.0, 1.0),
        full("system", Role::Baseline, 75.0, 1.0),
        bare("unknown", Role::Rival),
        full("fast", Role::Rival, 60.0, 1.0),
    ];
    let told = interim(
        &result,
        Terminal {
            width: 100,
            colour: false,
        },
    );
    let place = |name: &str| told.find(&format!("\n{name}")).expect("it is there");
    let places = ["fast", "system", "slow", "unknown"].map(place);
    assert!(places.is_sorted(), "{told}");
}
