//! Tests of the sentences of a conclusion, of the sentences on other entrants, and of the ranking
//! of entrants without a comparison.

mod races;
#[path = "races/ratios.rs"]
mod ratios;
#[path = "races/seven.rs"]
mod seven;

use heapdrome_report::{Advice, Conclusion, Exporter, Terminal, interim};
use heapdrome_schema::{Output, RaceResult, Role, Verdict};
use races::{bare, compared, empty, full, usual};
use ratios::{ALL_EVEN, FAST, UNSEEN};
use seven::{EVEN, SAME, race, with_noise};

/// Returns the full text of a race, in lines so wide that no sentence is wrapped.
fn in_full(result: &RaceResult) -> String {
    let terminal = Terminal {
        width: 1000,
        colour: false,
    };
    String::from_utf8(terminal.export(result).expect("it exports")).expect("UTF-8")
}

#[test]
fn the_three_sentences_say_what_to_take_why_and_how_sure() {
    let told = |result: &RaceResult| Conclusion::of(result).to_string();
    assert_eq!(
        told(&race(&[("mimalloc2", FAST)], ALL_EVEN)),
        "Take mimalloc2 if 14% more memory (2.84 MiB) is acceptable; else stay with system. Compared with system: wall time 29% less (27 to \
         31), processor time 28% less (26 to 30), peak memory 14% more (13 to 15). \
         Confidence: 95% after 32 rounds."
    );
    let huge = [(0.73, 0.02), (0.73, 0.02), EVEN];
    let setting = told(&race(
        &[("mimalloc2", FAST), ("system-huge", huge)],
        ALL_EVEN,
    ));
    assert!(
        setting.starts_with("Take system-huge (set GLIBC_TUNABLES=glibc.malloc.hugetlb=1). "),
        "{setting}"
    );
    assert!(
        setting.contains(
            "Unlike mimalloc2, the first in the table, system-huge needs no other library. mimalloc2 was not \
             shown to differ from system-huge in speed, but takes more memory. Compared "
        ),
        "{setting}"
    );
    let busy = told(&race(
        &[("mimalloc2", [(0.9, 0.3), (0.8, 0.02), EVEN])],
        UNSEEN,
    ));
    assert!(
        busy.contains("wall time undecided (0.60 to 1.20), processor time 20% less (18 to 22)"),
        "{busy}"
    );
    assert_eq!(
        told(&race(&[], [SAME, SAME, (1.3, 0.02)])),
        "Stay with system: no allocator matters here. Every rival's time is within 2% of system's, and none \
         was shown to take less memory. Differences under 1.3% may have gone undetected."
    );
    let unclear = told(&with_noise(race(&[], UNSEEN), 0.46));
    assert_eq!(
        unclear,
        "No answer: keep system for now. None was shown to beat system. Only differences above 46% in wall \
         time and 46% in processor time were reliably detectable. Run the race longer or on a quieter machine."
    );
    let unseen = [UNSEEN[0], UNSEEN[1], (0.8, 0.02)];
    let unseen = told(&with_noise(race(&[("jemalloc", unseen)], UNSEEN), 0.46));
    assert!(unseen.contains("jemalloc takes 20% less"), "{unseen}");
}

#[test]
fn equals_are_named_with_the_memory_that_they_take() {
    let time = (0.75, 0.05);
    let told = |known: &[_]| Conclusion::of(&race(known, ALL_EVEN)).why;
    let small = ("jemalloc", [time, time, (1.02, 0.01)]);
    let large = ("rpmalloc", [time, time, (1.5, 0.01)]);
    let level = ("snmalloc", [time, time, (1.14, 0.02)]);
    let begins = |known: &[_], begin: &str| {
        let told = told(known);
        let rest = told.strip_prefix(begin);
        let rest = rest.unwrap_or_else(|| panic!("{told}"));
        assert!(rest.starts_with(" Compared with system: "), "{told}");
    };
    begins(
        &[("mimalloc2", FAST), large],
        "rpmalloc was not shown to differ from mimalloc2 in speed, but takes more memory.",
    );
    begins(
        &[("mimalloc2", FAST), level],
        "snmalloc was not shown to differ from mimalloc2 in speed.",
    );
    begins(
        &[("mimalloc2", FAST), small, large],
        "mimalloc2 and rpmalloc were not shown to differ from jemalloc in speed, but take more memory.",
    );
    begins(
        &[("mimalloc2", FAST), level, large],
        "snmalloc and rpmalloc were not shown to differ from mimalloc2 in speed; rpmalloc takes more memory.",
    );
    let slower = [(0.74, 0.04), (0.74, 0.04), (1.12, 0.005)];
    begins(
        &[("mimalloc2", FAST), ("jemalloc", slower)],
        "jemalloc was not shown to differ from mimalloc2 in speed, but takes less memory.",
    );
}

#[test]
fn who_wants_less_memory_is_told_what_to_take() {
    let leaner = [(0.9, 0.02), (0.9, 0.02), (1.03, 0.01)];
    let told = |known: &[_]| Conclusion::of(&race(known, ALL_EVEN)).what;
    assert_eq!(
        told(&[("mimalloc2", FAST), ("jemalloc", leaner)]),
        "Take mimalloc2 if 14% more memory (2.84 MiB) is acceptable; else take jemalloc (10% less wall time, 3.0% more \
         memory)."
    );
    let level = [leaner[0], leaner[1], EVEN];
    assert_eq!(
        told(&[("mimalloc2", FAST), ("jemalloc", level)]),
        "Take mimalloc2 if 14% more memory (2.84 MiB) is acceptable; else take jemalloc (10% less wall time)."
    );
    // mimalloc2 takes more processor time but not more memory, so the advice does not offer
    // jemalloc, which saves memory.
    let costly = [FAST[0], (1.2, 0.02), EVEN];
    let small = [leaner[0], EVEN, (0.8, 0.01)];
    let told_of_time = told(&[("mimalloc2", costly), ("jemalloc", small)]);
    assert!(
        told_of_time.ends_with("acceptable; else stay with system."),
        "{told_of_time}"
    );
    let larger = [leaner[0], leaner[1], (1.2, 0.01)];
    assert_eq!(
        told(&[("mimalloc2", FAST), ("jemalloc", larger)]),
        "Take mimalloc2 if 14% more memory (2.84 MiB) is acceptable; else stay with system."
    );
}

#[test]
fn figures_that_nobody_could_read_are_words() {
    let told = with_noise(race(&[], UNSEEN), 654_465.766);
    let told = in_full(&told);
    assert!(
        told.contains("Not even a factor of two was reliably detectable"),
        "{told}"
    );
    assert!(
        told.contains("not even a factor of two is reliably detected;"),
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
    best.output = Output::Different;
    best.known_faults = vec!["a fault".to_owned()];
    if let Some(noise) = &mut result.noise_floor {
        noise.baseline_again = compared(Verdict::Slower, 1.03, 0.01);
    }
    let told = Conclusion::of(&result).sure;
    assert_eq!(
        told,
        "Confidence: 95% after 3 rounds, but a second run of system seemed to take 3.0% more time, so \
         differences of that size prove nothing here and its output differs from that under system. A known \
         fault of mimalloc3: a fault."
    );
}

#[test]
fn the_hardened_are_a_class_of_their_own() {
    let mut result = usual();
    for row in &mut result.entrants {
        row.hardened = row.role == Role::Rival;
    }
    assert!(matches!(Conclusion::of(&result).advice, Advice::Stay));
    let told = in_full(&result);
    assert!(
        told.contains("compared only with hardened allocators"),
        "{told}"
    );
    assert!(
        told.contains("Among the hardened allocators, mimalloc3: wall time 7.4% less"),
        "{told}"
    );
}

#[test]
fn who_is_smaller_and_slower_is_named_in_full() {
    let mut result = race(&[("mimalloc2", FAST)], ALL_EVEN);
    let small = [(1.1, 0.02), (1.1, 0.02), (0.8, 0.02)];
    result.entrants.push(seven::rival("small", small));
    let told = in_full(&result);
    assert!(
        told.contains("Where memory matters more: small, wall and processor time 10.0% more"),
        "{told}"
    );
    // `larger` was not shown to be faster than the baseline and uses more memory, so it has no
    // advantage.
    let larger = [EVEN, EVEN, (1.1, 0.02)];
    let mut result = race(&[("mimalloc2", [FAST[0], FAST[1], (1.5, 0.02)])], ALL_EVEN);
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
        told.contains("An interval needs at least five rounds."),
        "{told}"
    );
    let told = Conclusion::of(&empty()).to_string();
    assert!(told.contains("No round is complete."), "{told}");
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
