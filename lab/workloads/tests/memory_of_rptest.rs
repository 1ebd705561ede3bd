//! Checks that the workload `rptest` samples memory at the stated moments. This is a separate test
//! program, because no other test may run in its process.

use std::collections::BTreeMap;
use std::ptr;

use heapdrome_workloads::{Heap, Parameters, find, run};

/// Heap that maps every block on its own and unmaps it when it is freed, so that resident memory
/// equals memory in use.
struct Mappings;

impl Heap for Mappings {
    fn allocate(&self, size: usize, _alignment: usize) -> *mut u8 {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new private mapping does not affect existing memory.
        let block = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        match block == libc::MAP_FAILED {
            true => ptr::null_mut(),
            false => block.cast(),
        }
    }

    unsafe fn free(&self, block: *mut u8, size: usize) {
        // SAFETY: `allocate` made the mapping with this size, and no code uses it any longer.
        unsafe { libc::munmap(block.cast(), size) };
    }
}

const THREADS: f64 = 2.0;
const BLOCKS: f64 = 1000.0;
const OPS: f64 = 100.0;

fn figures(size: u64) -> BTreeMap<String, f64> {
    let words = format!("{THREADS} 1 0 2 40 {BLOCKS} {OPS} {size} {size} align=0");
    let words: Vec<_> = words.split_whitespace().collect();
    let parameters = Parameters::parse(find("rptest").unwrap(), &words).unwrap();
    run(&parameters, &Mappings).unwrap().figures
}

#[test]
fn memory_is_sampled_after_the_loops_with_nothing_under_way() {
    // The C library reserves address space for each new thread. This run triggers the reservations
    // now.
    let _ = figures(4096);
    let size = 8192.0;
    let (small, large) = (figures(8192), figures(3 * 8192));
    // Each block lives for one to ten loops, 5.5 on average.
    let kept = THREADS * (BLOCKS + OPS) / 2.0 * size;
    let near = |found: f64, due: f64| {
        assert!((found / due - 1.0).abs() < 0.08, "{found}, not {due}");
    };
    near(small["resident_at_end_bytes"], kept);
    near(large["resident_at_end_bytes"], 3.0 * kept);
    near(
        large["mapped_at_end_bytes"] - small["mapped_at_end_bytes"],
        2.0 * kept,
    );
    let requested = small["peak_requested_bytes"];
    assert!(requested >= kept + OPS * size, "{requested}");
    let share = |name: &str| small[name] / requested;
    assert_eq!(small["overhead"], share("resident_at_end_bytes"));
    assert_eq!(small["overhead_mapped"], share("mapped_at_end_bytes"));
    assert_eq!(small["overhead_peak"], share("peak_resident_bytes"));
    assert!(large["end_resident_bytes"] < large["peak_resident_bytes"] - 2.0 * kept);
}
