use crate::recorded;

#[test]
fn every_step_frees_one_block_and_allocates_another() {
    let (recorder, _) = recorded("churn", &["blocks=50", "steps=2000"]);
    let events = recorder.events();
    let (filled, rest) = events.split_at(50);
    let (steps, freed) = rest.split_at(2 * 2000);
    assert!(filled.iter().all(|call| call.allocated));
    assert!(freed.iter().all(|call| !call.allocated));
    for step in steps.chunks(2) {
        assert_eq!([step[0].allocated, step[1].allocated], [false, true]);
    }
}

/// A block's lifetime in steps is geometric, because its slot is drawn at random.
#[test]
fn slots_are_drawn_at_random() {
    let (recorder, _) = recorded("churn", &["blocks=50", "steps=20000"]);
    let events = recorder.events();
    let frees = events[50..events.len() - 50].iter().step_by(2);
    let lives = frees.enumerate().map(|(step, call)| step + 50 - call.block);
    let mut lives: Vec<_> = lives.collect();
    lives.sort_unstable();
    let median = lives[lives.len() / 2] as f64;
    assert!((median / (50.0 * 2_f64.ln()) - 1.0).abs() < 0.1, "{median}");
}

#[test]
fn half_of_the_sizes_are_small_and_the_mean_is_the_documented_one() {
    let (recorder, _) = recorded("churn", &["steps=100000"]);
    let sizes = recorder.sizes();
    let small = sizes.iter().filter(|size| **size < 128).count() as f64;
    let share = small / sizes.len() as f64;
    assert!((share - 0.5).abs() < 0.02, "{share}");
    let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
    assert!((mean - 242.6).abs() < 3.0, "{mean}");
}
