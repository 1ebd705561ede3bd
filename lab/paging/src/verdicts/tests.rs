use heapdrome_schema::{Distribution, Experiment, Job};

use super::*;

const BASE: [f64; 7] = [100.0, 50.0, 100.0, 80.0, 90.0, 60.0, 110.0];

fn cell(part: Experiment, name: &str, figure: &str, values: &[f64]) -> Cell {
    let mut cell = Cell::new(part, name, Job::Probe, None);
    for (place, value) in values.iter().enumerate() {
        cell.reports.push(PagingReport {
            round: place as u32 + 1,
            figures: [(figure.to_owned(), *value)].into(),
            distributions: [(
                "read".to_owned(),
                Distribution::new([200, 80_000].map(|time| (Nanoseconds(time), 50))),
            )]
            .into(),
            ..PagingReport::default()
        });
    }
    cell
}

fn holds(cells: &[Cell], start: &str) -> Holds {
    let cells: Vec<&Cell> = cells.iter().collect();
    let found = claims(&cells, 2);
    let claim = found.iter().find(|claim| claim.claim.starts_with(start));
    claim.expect("the claim is there").holds
}

const PREFETCH: &str = "A prefetching thread";

fn strategies(prefetch: &[f64]) -> [Cell; 2] {
    let of = |name, rates| cell(Experiment::Strategies, name, "reads_per_s", rates);
    [of("baseline", &BASE), of("prefetch (32 ahead)", prefetch)]
}

fn times(factor: f64) -> [f64; 7] {
    let mut off = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0].into_iter();
    BASE.map(|rate| rate * factor * off.next().unwrap_or(1.0))
}

const NOISY: [f64; 7] = [160.0, 60.0, 90.0, 190.0, 95.0, 100.0, 140.0];

#[test]
fn a_sentence_holds_if_its_interval_lies_where_it_says() {
    assert_eq!(holds(&strategies(&times(2.0)), PREFETCH), Holds::Held);
    assert_eq!(holds(&strategies(&times(1.0)), PREFETCH), Holds::NotHeld);
    assert_eq!(holds(&strategies(&NOISY), PREFETCH), Holds::Undecided);
}

#[test]
fn what_was_not_run_or_failed_decides_nothing() {
    assert_eq!(holds(&[], PREFETCH), Holds::CannotBeTested);
    let few = strategies(&times(2.0)[..4]);
    assert_eq!(holds(&few, PREFETCH), Holds::Undecided);
    let mut failed = strategies(&[]);
    failed[1].failure = Some("no swap".to_owned());
    assert_eq!(holds(&failed, PREFETCH), Holds::Undecided);
    let mut rejected = strategies(&times(2.0));
    for report in &mut rejected[0].reports[1..4] {
        report.rejected = Some("crooked".to_owned());
    }
    assert_eq!(holds(&rejected, PREFETCH), Holds::Undecided);
}

/// Rounds that were measured before a cell was given up still count.
#[test]
fn rounds_before_a_cell_was_given_up_count_and_its_end_is_told() {
    let mut ended = strategies(&times(2.0));
    ended[1].failure = Some("killed".to_owned());
    let cells: Vec<&Cell> = ended.iter().collect();
    let told = claims(&cells, 2);
    let told = told.iter().find(|claim| claim.claim.starts_with(PREFETCH));
    let told = told.expect("the claim is there");
    assert_eq!(told.holds, Holds::Held);
    let because = &told.because;
    assert!(
        because.contains("no longer run after 7 rounds: killed"),
        "{because}"
    );
}

#[test]
fn shares_and_quantiles_of_distributions_are_tested() {
    let cells = [cell(
        Experiment::Paging,
        "random reads",
        "reads_per_s",
        &[1.0; 3],
    )];
    assert_eq!(holds(&cells, "With three times"), Holds::Held);
    assert_eq!(holds(&cells, "The latencies of random reads"), Holds::Held);
    assert_eq!(holds(&cells, "About half of the reads (40%"), Holds::Held);
}

/// Returns a cell whose reports contain lgalloc's time and the published crate's time.
fn both(own: &[f64], published: &[f64]) -> Cell {
    let mut cell = cell(
        Experiment::Throughput,
        "lgalloc x 1",
        "op_without_clock_ns",
        own,
    );
    for (report, time) in cell.reports.iter_mut().zip(published) {
        report.figures.insert("published_ns".to_owned(), *time);
    }
    cell
}

#[test]
fn a_target_is_reached_missed_or_open_by_its_interval() {
    let of = |own: &[f64]| targets(&[&both(own, &BASE)])[0].holds;
    assert_eq!(of(&times(0.4)), Holds::Held);
    assert_eq!(of(&times(0.6)), Holds::NotHeld);
    assert_eq!(of(&NOISY.map(|time| time / 2.5)), Holds::Undecided);
    assert_eq!(of(&[1.0, 1.0]), Holds::Undecided, "too few rounds");
    assert!(targets(&[]).is_empty(), "what was not run is not spoken of");
}

#[test]
fn what_is_open_and_can_be_measured_is_asked_for() {
    let cells = |own: &[f64]| {
        let clock = cell(Experiment::Throughput, "clock", "op_ns", &BASE);
        [clock, both(own, &BASE)]
    };
    let noisy = NOISY.map(|time| time / 2.5);
    assert_eq!(open_cells(&cells(&noisy), 1), [1]);
    assert!(open_cells(&cells(&times(0.4)), 1).is_empty());
    let mut failed = cells(&noisy);
    failed[1].failure = Some("no swap".to_owned());
    assert!(open_cells(&failed, 1).is_empty());
    let few = strategies(&times(2.0)[..4]);
    assert_eq!(
        open_cells(&few, 1),
        [0, 1],
        "no interval of its sentence yet"
    );
    assert!(open_cells(&strategies(&NOISY), 1).is_empty());
}

#[test]
fn a_target_may_compare_two_cells() {
    let cold = |name: &str, median: u64| {
        let mut cell = cell(Experiment::Paging, name, "rate", &[0.0; 6]);
        for report in &mut cell.reports {
            let times = Distribution::new([(Nanoseconds(median), 10)]);
            report.distributions.insert("cold".to_owned(), times);
        }
        cell
    };
    let own = cold("regions again", 2_000_000);
    let other = cold("regions again, lgalloc-published", 9_000_000);
    let found = targets(&[&own, &other]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].holds, Holds::Held, "{found:?}");
}

#[test]
fn every_claim_has_tests_or_a_reason_and_every_test_a_range() {
    let (claims, targets) = (read(CLAIMS), read(TARGETS));
    assert!(claims.len() > 20 && targets.len() >= 8);
    for claim in claims.iter().chain(&targets) {
        let told = &claim.claim;
        assert_eq!(claim.tests.is_empty(), claim.untestable.is_some(), "{told}");
        let ranged = |test: &Test| test.low.is_some() || test.high.is_some();
        assert!(claim.tests.iter().all(ranged), "{told}");
    }
}
