//! Checks that the workload `burst` reads memory at the stated moments. This is a separate test
//! program, because no other test may run in its process.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Mutex;

use heapdrome_workloads::{Heap, Parameters, find, run};

const MIB: f64 = 1_048_576.0;

/// Heap that maps every block on its own. A frugal heap unmaps a block when it is freed; any other
/// heap keeps the block resident until `trim`.
struct Mappings {
    frugal: bool,
    kept: Mutex<Vec<(usize, usize)>>,
}

fn unmap(address: usize, size: usize) {
    // SAFETY: `allocate` made the mapping with this size, and no code uses it any longer.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(address), size) };
}

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
        match self.frugal {
            true => unmap(block.expose_provenance(), size),
            false => self
                .kept
                .lock()
                .unwrap()
                .push((block.expose_provenance(), size)),
        }
    }

    fn trim(&self) -> bool {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap());
        kept.into_iter()
            .for_each(|(address, size)| unmap(address, size));
        !self.frugal
    }
}

/// Runs burst on blocks of 8 KiB, of which one in 16 survives, and returns the figures.
fn figures(frugal: bool) -> BTreeMap<String, f64> {
    let words = "2 64 8192 8192 16 0 0 0 align=0";
    let words: Vec<_> = words.split_whitespace().collect();
    let parameters = Parameters::parse(find("burst").unwrap(), &words).unwrap();
    let heap = Mappings {
        frugal,
        kept: Mutex::default(),
    };
    run(&parameters, &heap).unwrap().figures
}

/// Compares with a tolerance: the kernel's counters may lag by some pages on each processor, and
/// threads touch their stacks.
fn near(found: f64, due: f64) {
    assert!((found - due).abs() < 8.0 * MIB, "{found}, not {due}");
}

#[test]
fn what_is_left_is_read_after_each_burst() {
    let frugal = figures(true);
    near(frugal["left_silent_bytes"], 0.0);
    near(frugal["left_active_bytes"], 0.0);
    near(frugal["survivor_bytes"], 4.0 * MIB);
    near(
        frugal["survivor_overhead"] * frugal["survivor_bytes"],
        4.0 * MIB,
    );
    for name in ["left_trimmed_bytes", "survivor_overhead_trimmed"] {
        assert!(!frugal.contains_key(name), "it cannot be asked: {name}");
    }
    let keeping = figures(false);
    near(keeping["left_silent_bytes"], 64.0 * MIB);
    near(keeping["left_trimmed_bytes"], 0.0);
    // The blocks that the pulses freed are kept as well: 100 times 8 blocks of 8 KiB in each
    // activity, which is 6.25 MiB.
    near(keeping["left_active_bytes"], (64.0 + 6.25) * MIB);
    let live = keeping["survivor_bytes"];
    near(
        keeping["survivor_overhead"] * live,
        (128.0 + 2.0 * 6.25) * MIB,
    );
    near(keeping["survivor_overhead_trimmed"] * live, 4.0 * MIB);
}
