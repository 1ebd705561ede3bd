use crate::recorded;
use crate::recorder::Event;

const WORDS: [&str; 4] = ["blocks=2000", "live=1", "min=4096", "max=65536"];

fn with(more: &[&'static str]) -> Vec<&'static str> {
    WORDS.iter().chain(more).copied().collect()
}

/// Returns the bytes in use after each call.
fn in_use(calls: &[Event]) -> Vec<u64> {
    let mut now = 0;
    let after = calls.iter().map(|call| {
        match call.allocated {
            true => now += call.size as u64,
            false => now -= call.size as u64,
        }
        now
    });
    after.collect()
}

#[test]
fn blocks_are_kept_up_to_the_share_of_their_thread() {
    for (threads, share) in [("threads=1", 1 << 20), ("threads=3", (1 << 20) / 3)] {
        let (recorder, report) = recorded("large-blocks", &with(&[threads]));
        for calls in recorder.by_thread() {
            let in_use = in_use(&calls);
            assert!(in_use.iter().all(|bytes| *bytes <= share + 65536));
            // The heap is full before each later allocation, except for the room of one block.
            let later = calls.iter().zip(&in_use).skip(200);
            let before_the_end = later.take_while(|(call, _)| call.block < 1990);
            let least = before_the_end.map(|(_, bytes)| *bytes).min();
            assert!(least > Some(share - 2 * 65536), "{least:?}");
        }
        assert!(report.figures["peak_requested_bytes"] > 0.9 * (1 << 20) as f64);
    }
}

#[test]
fn equal_factors_of_size_are_equally_probable() {
    let (recorder, _) = recorded("large-blocks", &with(&[]));
    let sizes = recorder.sizes();
    for (from, to) in [(4096, 8192), (8192, 16384), (16384, 32768), (32768, 65537)] {
        let share = sizes
            .iter()
            .filter(|size| (from..to).contains(*size))
            .count();
        assert!((400..600).contains(&share), "{from}: {share}");
    }
}

/// The share of written pages must be the parameter `written`. The test counts changed bytes,
/// because the workload writes one byte of each page, and never the value of a fresh byte.
#[test]
fn the_share_that_is_written_is_that_of_the_pages() {
    for (written, expected) in [
        ("written=0", 0.0),
        ("written=25", 0.25),
        ("written=100", 1.0),
    ] {
        let (recorder, _) = recorded("large-blocks", &with(&[written]));
        let events = recorder.events();
        let freed = events.iter().filter(|call| !call.allocated);
        let (mut bytes, mut pages) = (0, 0);
        for call in freed {
            // The tags are 16 bytes at most.
            bytes += (call.size - call.fresh).saturating_sub(16);
            pages += call.size / 4096;
        }
        let share = bytes as f64 / pages as f64;
        assert!((share - expected).abs() < 0.12, "{written}: {share}");
    }
}

#[test]
fn a_block_larger_than_a_threads_share_is_refused() {
    let description = heapdrome_workloads::find("large-blocks").unwrap();
    let refused = heapdrome_workloads::Parameters::parse(description, &["threads=9"]);
    let reason = refused.unwrap_err().to_string();
    assert!(reason.contains("share of live"), "{reason}");
}
