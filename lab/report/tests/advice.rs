//! The conclusion of a race: what it recommends, and what it does not.

mod races;

use heapdrome_record::{RaceResult, Role, Verdict};
use heapdrome_report::{Exporter, Terminal, interim};
use races::{bare, compared, empty, full, rival, usual};

/// The race as a terminal shows it whose lines do not end.
fn conclusion(result: &RaceResult) -> String {
    let terminal = Terminal {
        width: 1000,
        colour: false,
    };
    String::from_utf8(terminal.export(result).expect("it exports")).expect("UTF-8")
}

#[test]
fn the_conclusion_names_the_price_in_memory() {
    let mut result = usual();
    result
        .entrants
        .retain(|entrant| entrant.allocator != "mimalloc3");
    let small = rival(
        "small",
        compared(Verdict::Slower, 1.1, 0.02),
        compared(Verdict::Less, 0.8, 0.02),
    );
    result.entrants.push(small);
    let told = conclusion(&result);
    assert!(
        told.contains("Take jemalloc: 1.07x faster (1.05 to 1.09), 30% more memory than system."),
        "{told}"
    );
    assert!(
        told.contains("Where memory matters more: small, 1.10x slower, 20% less memory."),
        "{told}"
    );
}

#[test]
fn what_the_baseline_beats_on_memory_is_no_choice_for_memory() {
    let mut result = usual();
    let others = ["mimalloc3", "rpmalloc"];
    result
        .entrants
        .retain(|entrant| !others.contains(&entrant.allocator.as_str()));
    for (name, memory) in [
        ("larger", compared(Verdict::More, 1.1, 0.02)),
        ("even", compared(Verdict::Undecided, 1.0, 0.02)),
    ] {
        let told = {
            let mut result = result.clone();
            let wall = compared(Verdict::Undecided, 1.0, 0.01);
            result.entrants.push(rival(name, wall, memory));
            conclusion(&result)
        };
        let chosen = told.contains(&format!("Where memory matters more: {name}"));
        assert_eq!(chosen, name == "even", "{told}");
    }
}

#[test]
fn who_is_smaller_and_not_slower_is_taken_where_none_is_faster() {
    let mut result = usual();
    result.entrants.truncate(4);
    let small = rival(
        "small",
        compared(Verdict::Undecided, 1.0, 0.01),
        compared(Verdict::Less, 0.8, 0.02),
    );
    result.entrants.push(small);
    let told = conclusion(&result);
    assert!(
        told.contains("Take small: no difference in time shown, 20% less memory than system."),
        "{told}"
    );
}

#[test]
fn less_memory_is_no_advice_where_time_could_not_be_seen() {
    let mut result = usual();
    result.entrants.truncate(4);
    let small = rival(
        "small",
        compared(Verdict::Undecided, 1.0, 0.5),
        compared(Verdict::Less, 0.8, 0.02),
    );
    result.entrants.push(small);
    if let Some(noise) = &mut result.noise_floor {
        noise.smallest_difference = 0.46;
    }
    let told = conclusion(&result);
    assert!(!told.contains("Take small"), "{told}");
    assert!(
        told.contains(
            "small takes less memory than system (20% less), and this race could show great \
             differences of time only."
        ),
        "{told}"
    );
}

#[test]
fn the_hardened_are_a_class_of_their_own() {
    let mut result = usual();
    for row in &mut result.entrants {
        row.hardened = row.role == Role::Rival;
    }
    let told = conclusion(&result);
    assert!(
        told.contains("recommends nothing beside system but what is hardened"),
        "{told}"
    );
    assert!(
        told.contains("Of the hardened: mimalloc3 1.08x faster, 12% less memory; jemalloc 1.07x"),
        "{told}"
    );
}

#[test]
fn a_race_that_sees_only_great_differences_recommends_nothing() {
    let mut result = usual();
    result.entrants.truncate(4);
    if let Some(noise) = &mut result.noise_floor {
        noise.smallest_difference = 0.46;
    }
    let told = conclusion(&result);
    assert!(told.contains("This race recommends nothing"), "{told}");
    assert!(
        told.contains("Differences under 46% may have gone unseen."),
        "{told}"
    );
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
    let told = conclusion(&result);
    assert!(
        told.contains(
            "Before you take mimalloc3: its output differs from that under system and it has 1 known \
             fault (see the notes)."
        ),
        "{told}"
    );
}

#[test]
fn a_baseline_that_beats_itself_is_told() {
    let mut result = usual();
    if let Some(noise) = &mut result.noise_floor {
        noise.baseline_again = compared(Verdict::Slower, 1.03, 0.01);
    }
    let told = conclusion(&result);
    assert!(
        told.contains("Beware: system seemed 1.03x slower (1.02 to 1.04) than itself"),
        "{told}"
    );
}

#[test]
fn without_a_winner_nothing_is_claimed() {
    let mut result = usual();
    result.entrants.truncate(4);
    let told = conclusion(&result);
    assert!(
        told.contains("Stay with system: none was shown to be faster or smaller."),
        "{told}"
    );
    result.entrants.truncate(1);
    assert!(conclusion(&result).contains("There is nothing to compare with system."));
    assert!(conclusion(&empty()).contains("No round is complete"));
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
