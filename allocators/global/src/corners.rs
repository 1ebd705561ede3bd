//! Statistics, refusals, errno, and huge pages.

use std::alloc::{Layout, alloc, alloc_zeroed, realloc};
use std::hint::black_box;

use heapdrome_malloc_abi::MallocAbi;

const LARGE: usize = 8 << 20;

/// Checks that the program's allocations come from the allocator.
pub fn served<A: MallocAbi>() {
    let before = A::statistics().live;
    let block = black_box(vec![1_u8; LARGE]);
    assert!(A::statistics().live >= before + LARGE);
    drop(block);
    assert!(A::statistics().live < before + LARGE);
}

/// Checks that requests that are too large return null, or an error from a collection, and leave
/// existing blocks unchanged.
pub fn refusals() {
    assert!(Vec::<u64>::new().try_reserve_exact(1 << 59).is_err());
    for alignment in [1, 16, 64, 1 << 20] {
        let layout = |size| Layout::from_size_align(size, alignment).expect("a layout that can be");
        for size in [1 << 62, isize::MAX as usize - (1 << 20)] {
            // SAFETY: the sizes are not zero.
            unsafe {
                assert!(black_box(alloc(layout(size))).is_null());
                assert!(black_box(alloc_zeroed(layout(size))).is_null());
            }
        }
        // SAFETY: the block is live and has this layout; a failed `realloc` changes neither.
        unsafe {
            let block = black_box(alloc(layout(9)));
            assert!(!block.is_null());
            block.write_bytes(5, 9);
            assert!(black_box(realloc(block, layout(9), 1 << 62)).is_null());
            assert!((0..9).all(|at| block.add(at).read() == 5));
        }
    }
}

/// Checks that allocating and freeing do not change errno.
pub fn errno() {
    const MARK: i32 = 12345;
    // SAFETY: the address is the calling thread's own errno, always valid.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the address is the calling thread's own errno.
    unsafe { place.write(MARK) };
    for power in 0..25 {
        let mut kept = Vec::new();
        for _ in 0..(1_usize << 16 >> power).max(2) {
            kept.push(black_box(Vec::<u8>::with_capacity(1 << power)));
        }
        kept.iter_mut()
            .for_each(|block| block.reserve_exact((1 << power) + 1));
        drop(kept);
        // SAFETY: the address is the calling thread's own errno.
        let now = unsafe { place.read() };
        assert_eq!(now, MARK, "blocks of {} bytes", 1 << power);
    }
}

/// Checks that the allocator requests no huge pages, although the heap is large.
pub fn small_pages() {
    let heap: Vec<Vec<u8>> = (0..1000).map(|_| vec![1; 64 << 10]).collect();
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("the kernel tells");
    let asked =
        |line: &str| line.starts_with("VmFlags:") && line.split(' ').any(|flag| flag == "hg");
    assert!(!maps.lines().any(asked));
    drop(black_box(heap));
}
