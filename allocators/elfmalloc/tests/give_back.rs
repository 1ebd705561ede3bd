//! Memory goes back to the system after a burst. The file has only one test, because it inspects
//! the whole process.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use heapdrome_elfmalloc::Elfmalloc;
use heapdrome_malloc_abi::MallocAbi;

/// Number of blocks that each thread of a burst allocates.
const BLOCKS: usize = 60_000;
const THREADS: usize = 2;
/// Maximum number of bytes that may stay resident after a burst, in addition to those before it.
const SLACK: usize = 4 << 20;
/// Maximum time to wait: far more than necessary, for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the resident bytes, summed over all mappings. The counts of `statm` would lack recent
/// changes, which each processor adds in batches.
fn resident() -> usize {
    let sums = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux says it");
    let kibibytes: usize = sums
        .lines()
        .find_map(|line| line.strip_prefix("Rss:")?.strip_suffix("kB"))
        .and_then(|number| number.trim().parse().ok())
        .expect("a line says it in KiB");
    kibibytes << 10
}

fn allocate(size: usize) -> NonNull<u8> {
    let block = Elfmalloc::allocate_fast(size).or_else(|| Elfmalloc::allocate(size));
    block.expect("there is memory")
}

fn free(block: NonNull<u8>) {
    // SAFETY: the block belongs to the test, which no longer uses it.
    unsafe {
        if !Elfmalloc::deallocate_fast(block.as_ptr()) {
            Elfmalloc::deallocate(block);
        }
    }
}

/// Allocates blocks of various sizes and frees them in random order, in threads that then end.
/// Keeps one in `keep` blocks, or none if `keep` is zero, and returns the addresses of the kept
/// blocks.
fn burst(keep: usize) -> Vec<usize> {
    let work = || {
        let mut random = 7_usize;
        let mut draw = move || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            random >> 33
        };
        let mut blocks = Vec::with_capacity(BLOCKS);
        for _ in 0..BLOCKS {
            let size = draw() % [64, 500, 2000][draw() % 3] + 1;
            let block = allocate(size);
            // SAFETY: the block has at least `size` bytes, and belongs to this thread.
            unsafe { block.as_ptr().write_bytes(1, size) };
            blocks.push(block);
        }
        for index in (1..BLOCKS).rev() {
            blocks.swap(index, draw() % (index + 1));
        }
        let kept = blocks.split_off(BLOCKS - BLOCKS.checked_div(keep).unwrap_or(0));
        blocks.into_iter().for_each(free);
        kept.into_iter().map(|block| block.addr().get()).collect()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results
            .flat_map(|kept: Result<Vec<usize>, _>| kept.expect("it ends"))
            .collect()
    })
}

/// Allocates and frees until at most `limit` bytes are resident, or until [`PATIENCE`] has passed.
/// Returns the resident bytes.
fn wait_for(limit: usize) -> usize {
    let begin = Instant::now();
    while resident() > limit && begin.elapsed() < PATIENCE {
        for _ in 0..10 {
            free(allocate(100));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    resident()
}

#[test]
fn memory_goes_back_at_once_when_asked_for_and_soon_while_any_thread_allocates() {
    burst(0);
    Elfmalloc::trim(0);
    let before = resident();
    burst(0);
    Elfmalloc::trim(0);
    let trimmed = resident();
    assert!(
        trimmed <= before + SLACK,
        "after malloc_trim {trimmed}, before {before}"
    );
    burst(0);
    assert!(wait_for(before + SLACK) <= before + SLACK, "after a while");
    // A few surviving blocks hold little memory: the pages between them go back.
    let kept = burst(1000);
    let blocks = BLOCKS * THREADS / 1000;
    assert_eq!(kept.len(), blocks);
    let limit = before + SLACK + blocks * 2 * 4096;
    assert!(wait_for(limit) <= limit, "with survivors");
}
