use crate::recorded;
use crate::recorder::Event;
use crate::statistics::chi_square;

#[test]
fn sizes_are_drawn_evenly() {
    let (recorder, _) = recorded("shbench", &["iterations=100"]);
    let (found, limit) = chi_square(&recorder.sizes(), 1, 64, 64);
    assert!(found < limit, "{found} {limit}");
    let (recorder, _) = recorded("shbench", &["iterations=100", "min=97", "max=4096"]);
    let (found, limit) = chi_square(&recorder.sizes(), 97, 4096, 100);
    assert!(found < limit, "{found} {limit}");
}

/// Returns, for each round except the last, the numbers of the blocks freed at its end. The last
/// round is left out because the kept blocks are freed with it.
fn ends_of_rounds(calls: &[Event], blocks: usize, short_lived: usize) -> Vec<Vec<usize>> {
    let mut ends = Vec::new();
    for (place, call) in calls.iter().enumerate() {
        let last = call.allocated && call.block % blocks == blocks - 1;
        let freed = calls[place + 1..].iter().take_while(|one| !one.allocated);
        let freed: Vec<_> = freed.map(|one| one.block).collect();
        if last && place + 1 + freed.len() < calls.len() {
            // The round's last block may be a kept block, whose slot held a block that was freed.
            let before = freed.len() - short_lived;
            assert!(before <= 1, "{before}");
            ends.push(freed[before..].to_vec());
        }
    }
    ends
}

#[test]
fn shares_are_exact_and_freed_newest_first_then_oldest_first() {
    for (lifo, fifo) in [(40, 40), (70, 10), (0, 50), (50, 0), (33, 33), (100, 0)] {
        let (lifo_word, fifo_word) = (format!("lifo={lifo}"), format!("fifo={fifo}"));
        let words = [
            "iterations=6",
            "blocks=200",
            "kept=30",
            &lifo_word,
            &fifo_word,
        ];
        let (recorder, report) = recorded("shbench", &words);
        assert_eq!(report.operations, 2 * 6 * 200);
        let (newest_first, oldest_first) = (2 * lifo, 2 * fifo);
        let ends = ends_of_rounds(&recorder.events(), 200, newest_first + oldest_first);
        assert_eq!(ends.len(), 5);
        for (round, freed) in ends.iter().enumerate() {
            let own = round * 200..(round + 1) * 200;
            assert!(
                freed.iter().all(|block| own.contains(block)),
                "{lifo} {fifo}"
            );
            let (stack, queue) = freed.split_at(newest_first);
            assert!(stack.is_sorted_by(|one, next| one > next), "{lifo} {fifo}");
            assert!(queue.is_sorted_by(|one, next| one < next), "{lifo} {fifo}");
        }
    }
}

/// Checks that the lifetime of a kept block, counted in later kept blocks, is geometric with the
/// number of slots as its mean.
#[test]
fn kept_blocks_live_until_a_later_one_takes_their_slot() {
    let slots = 20;
    let words = ["iterations=50", "blocks=100", "lifo=0", "fifo=0", "kept=20"];
    let (recorder, _) = recorded("shbench", &words);
    let mut allocated = 0;
    let mut lives = Vec::new();
    for call in recorder.events() {
        allocated += usize::from(call.allocated);
        // Blocks that remain at the end have not been replaced.
        if !call.allocated && allocated < 5000 {
            lives.push(allocated - 1 - call.block);
        }
    }
    lives.sort_unstable();
    let mean = lives.iter().sum::<usize>() as f64 / lives.len() as f64;
    let median = lives[lives.len() / 2] as f64;
    assert!((mean / f64::from(slots) - 1.0).abs() < 0.1, "{mean}");
    let expected = f64::from(slots) * 2_f64.ln();
    assert!((median / expected - 1.0).abs() < 0.15, "{median}");
}

#[test]
fn rounds_are_divided_among_threads_and_blocks_stay_with_theirs() {
    let words = ["threads=3", "iterations=8", "blocks=50", "kept=10"];
    let (recorder, report) = recorded("shbench", &words);
    assert_eq!(report.operations, 2 * 8 * 50);
    let threads = recorder.by_thread();
    let mut lengths: Vec<_> = threads.iter().map(Vec::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [2 * 2 * 50, 3 * 2 * 50, 3 * 2 * 50]);
    for calls in threads {
        let numbers = |allocated| {
            let own = calls.iter().filter(|call| call.allocated == allocated);
            let mut numbers: Vec<_> = own.map(|call| call.block).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(numbers(true), numbers(false));
    }
}
