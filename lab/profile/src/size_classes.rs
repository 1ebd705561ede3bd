//! Computes the bytes that a block takes under each allocator's size classes.
//!
//! These functions follow the published sources. They count only the bytes that an allocator
//! reserves for the block: not tables, free blocks, or the unused ends of slabs. A large block may
//! need less memory, because pages that are never touched need none.

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::size_class::{LARGEST, UNIT};

/// An allocator whose size classes are known.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Name of the allocator in heapdrome's registry.
    pub name: &'static str,
    /// Sources that `round` follows.
    pub source: &'static str,
    /// Returns the bytes that a block of this size and alignment takes. The alignment is a power of
    /// two, or 0 for none. The size is at most [`LARGEST_SIZE`].
    pub round: fn(size: u64, alignment: u64) -> u64,
}

/// Number of [`ALLOCATORS`].
pub const COUNT: usize = 6;

/// Maximum size of a request in bytes. A larger request counts as a request of this size, because
/// no address space has room for it.
pub const LARGEST_SIZE: u64 = 1 << 47;

/// The allocators whose size classes are known.
pub const ALLOCATORS: [Allocator; COUNT] = [
    Allocator {
        name: "system",
        source: "glibc 2.41, malloc/malloc.c: request2size, MINSIZE",
        round: glibc,
    },
    Allocator {
        name: "jemalloc",
        source: "jemalloc 5.3.1, sc.h and sz.h: sz_s2u_compute, sz_sa2u",
        round: jemalloc,
    },
    Allocator {
        name: "mimalloc3",
        source: "mimalloc 3.3.2, page-queue.c: mi_bin, mi_good_size; alloc-aligned.c",
        round: mimalloc,
    },
    Allocator {
        name: "tcmalloc",
        source: "tcmalloc of June 2025, size_classes.cc: pages of 8 KiB, alignment of new 16",
        round: tcmalloc,
    },
    Allocator {
        name: "rpmalloc",
        source: "rpmalloc 1.4.3, rpmalloc.c: rpmalloc_initialize, _rpmalloc_adjust_size_class",
        round: rpmalloc,
    },
    Allocator {
        name: "elfmalloc",
        source: "heapdrome-elfmalloc: SizeClass",
        round: elfmalloc,
    },
];

const KIB: u64 = 1 << 10;
const PAGE: u64 = 4 * KIB;

/// Returns the bytes that glibc takes: the size and a header of 8 bytes, rounded up to a multiple
/// of 16, at least 32. Blocks that `malloc` maps separately, in whole pages, get no special
/// treatment, because the threshold for them changes as the program runs.
fn glibc(size: u64, _alignment: u64) -> u64 {
    (size + 8).next_multiple_of(16).max(32)
}

/// Returns the bytes that jemalloc takes. The classes up to 128 are 8 and the multiples of 16.
/// Above these, each doubling of the size has four classes.
fn jemalloc(size: u64, alignment: u64) -> u64 {
    const LARGE: u64 = 16 * KIB;
    const LARGEST_SMALL: u64 = 14 * KIB;
    if alignment <= 1 {
        return jemalloc_class(size);
    }
    if size <= LARGEST_SMALL && alignment <= PAGE {
        let class = jemalloc_class(size.max(1).next_multiple_of(alignment));
        if class < LARGE {
            return class;
        }
    }
    jemalloc_class(size.max(LARGE))
}

fn jemalloc_class(size: u64) -> u64 {
    match size {
        0..=8 => 8,
        9..=16 => 16,
        _ => size.next_multiple_of(quarter(size).max(16)),
    }
}

/// Returns a quarter of the largest power of two below `size`. This is the distance between size
/// classes if each doubling of the size has four of them. `size` must exceed 1.
fn quarter(size: u64) -> u64 {
    (1 << (size - 1).ilog2()) / 4
}

/// Returns the bytes that mimalloc takes. The smallest classes are 8 and the multiples of 16 up to
/// 64. Above these, each doubling of the size has four classes, up to 512 KiB. Larger blocks take
/// whole pages. If the blocks of a class lack the requested alignment, a larger block is taken,
/// except for alignments above `LARGEST_WITHIN`.
fn mimalloc(size: u64, alignment: u64) -> u64 {
    const LARGEST_WITHIN: u64 = 64 * KIB;
    let class = mimalloc_class(size);
    let is_power = class <= PAGE && class.is_power_of_two();
    let fits = match alignment {
        0..=8 => true,
        16 => size >= 16,
        _ => alignment <= size && (is_power || alignment == PAGE && class.is_multiple_of(PAGE)),
    };
    match fits || alignment > LARGEST_WITHIN {
        true => class,
        false => mimalloc_class(size.max(16) + alignment - 1),
    }
}

fn mimalloc_class(size: u64) -> u64 {
    match size {
        0..=8 => 8,
        9..=64 => size.next_multiple_of(16),
        _ if size <= 512 * KIB => size.next_multiple_of(quarter(size)),
        _ => size.next_multiple_of(PAGE),
    }
}

const TCMALLOC: [u32; 46] = [
    8, 16, 32, 64, 80, 96, 112, 128, 160, 176, 208, 256, 288, 352, 448, 512, 576, 704, 896, 1024,
    1152, 1408, 1792, 2048, 2688, 3456, 4096, 4736, 6144, 8192, 9472, 12288, 16384, 20480, 28672,
    32768, 40960, 49152, 65536, 73728, 81920, 98304, 114_688, 131_072, 155_648, 204_800,
];

/// Returns the bytes that tcmalloc takes: up to 256 KiB the first fitting class of a list, and
/// above that whole pages of 8 KiB. An aligned block takes the first fitting class that is a
/// multiple of the alignment, or whole pages if the alignment exceeds a page.
fn tcmalloc(size: u64, alignment: u64) -> u64 {
    const LARGEST_CLASS: u64 = 256 * KIB;
    const OWN_PAGE: u64 = 8 * KIB;
    if size > LARGEST_CLASS || alignment > OWN_PAGE {
        return size.max(1).next_multiple_of(OWN_PAGE);
    }
    let first = TCMALLOC.partition_point(|class| u64::from(*class) < size);
    let mut classes = TCMALLOC[first..].iter().map(|class| u64::from(*class));
    let fits = classes.find(|class| class.is_multiple_of(alignment.max(1)));
    fits.unwrap_or(LARGEST_CLASS)
}

/// Returns the bytes that rpmalloc takes: a multiple of 16 up to 1 KiB, then a multiple of 512,
/// then whole spans, then whole pages. Multiples of 512 form one class if equally many of their
/// blocks fit into a span of 64 KiB.
fn rpmalloc(size: u64, alignment: u64) -> u64 {
    const HEADER: u64 = 128;
    if alignment <= 16 {
        return rpmalloc_class(size);
    }
    let multiple = size.max(1).next_multiple_of(HEADER);
    if alignment <= HEADER && size < MEDIUM && multiple <= size + alignment {
        return rpmalloc_class(multiple);
    }
    match alignment <= PAGE {
        true => rpmalloc_class(size + alignment),
        false => (size + HEADER).next_multiple_of(PAGE),
    }
}

/// Size in bytes of rpmalloc's largest blocks that share a span.
const MEDIUM: u64 = 1024 + 512 * 61;

fn rpmalloc_class(size: u64) -> u64 {
    const SPAN: u64 = 64 * KIB;
    const HEADER: u64 = 128;
    match size {
        0..=1024 => size.max(1).next_multiple_of(16),
        1025..=MEDIUM => {
            let blocks = (SPAN - HEADER) / size.next_multiple_of(512);
            (((SPAN - HEADER) / blocks) / 512 * 512).min(MEDIUM)
        }
        _ if size <= 63 * SPAN - HEADER => (size + HEADER).next_multiple_of(SPAN),
        _ => (size + HEADER).next_multiple_of(PAGE),
    }
}

/// Returns the bytes that elfmalloc takes: a class of its slabs up to [`LARGEST`], then whole
/// [`UNIT`]s.
fn elfmalloc(size: u64, alignment: u64) -> u64 {
    let unit = UNIT as u64;
    let (Ok(bytes), Ok(aligned)) = (usize::try_from(size), usize::try_from(alignment.max(1)))
    else {
        return size.next_multiple_of(unit);
    };
    let class = match (bytes <= LARGEST, aligned <= 16) {
        (true, true) => Some(SizeClass::of(bytes)),
        (true, false) => SizeClass::of_aligned(bytes, aligned),
        (false, _) => None,
    };
    let large = || size.max(1).next_multiple_of(unit);
    class.map_or_else(large, |class| class.size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that each of [`ALLOCATORS`] takes for a size without an alignment.
    fn all(size: u64) -> [u64; COUNT] {
        ALLOCATORS.map(|allocator| (allocator.round)(size, 0))
    }

    #[test]
    fn sizes_become_those_of_the_sources() {
        assert_eq!(all(0), [32, 8, 8, 8, 16, 16]);
        assert_eq!(all(1), [32, 8, 8, 8, 16, 16]);
        assert_eq!(all(24), [32, 32, 32, 32, 32, 32]);
        assert_eq!(all(25), [48, 32, 32, 32, 32, 32]);
        assert_eq!(all(100), [112, 112, 112, 112, 112, 112]);
        assert_eq!(all(130), [144, 160, 160, 160, 144, 144]);
        assert_eq!(all(1000), [1008, 1024, 1024, 1024, 1008, 1024]);
        assert_eq!(all(5000), [5008, 5120, 5120, 6144, 5120, 5120]);
        assert_eq!(
            all(20_000),
            [20_016, 20_480, 20_480, 20_480, 21_504, 20_480]
        );
        let mib = 1 << 20;
        assert_eq!(all(mib), [mib + 16, mib, mib, mib, mib + 65_536, mib]);
        let more = [
            mib + 16,
            mib + 262_144,
            mib + 4096,
            mib + 8192,
            mib + 65_536,
            mib + 65_536,
        ];
        assert_eq!(all(mib + 1), more);
    }

    #[test]
    fn no_block_is_smaller_than_what_was_asked_for() {
        let sizes = (0..5000).chain((12..48).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1].map(|size| size.min(LARGEST_SIZE))
        }));
        for size in sizes {
            for allocator in ALLOCATORS {
                for alignment in [0, 1, 2, 8, 16, 32, 64, 128, 256, 4096, 65_536, 1 << 30] {
                    let block = (allocator.round)(size, alignment);
                    let name = allocator.name;
                    assert!(
                        block >= size.max(1),
                        "{name}: {size} at {alignment}: {block}"
                    );
                }
            }
        }
    }

    /// The expected numbers are computed as mimalloc's and rpmalloc's sources compute their tables.
    #[test]
    fn computed_classes_are_those_of_the_tables() {
        for size in 65..=512 * KIB {
            let words = size.div_ceil(8) - 1;
            let bit = u64::from(words.ilog2());
            let bin = (bit << 2) + ((words >> (bit - 2)) & 3) - 3;
            let largest = (((bin + 3) & 3) + 5) << (((bin + 3) >> 2) - 2);
            assert_eq!(mimalloc_class(size), largest * 8, "{size}");
        }
        let mut classes: Vec<u64> = (1..=61).map(|step| 1024 + 512 * step).collect();
        let blocks = |size: u64| (65_536 - 128) / size;
        for place in 0..classes.len() {
            let size = classes[place];
            for before in classes[..place].iter_mut().rev() {
                match blocks(*before) == blocks(size) {
                    true => *before = size,
                    false => break,
                }
            }
        }
        for size in 1025..=MEDIUM {
            let class = classes[((size - 1025) / 512) as usize];
            assert_eq!(rpmalloc_class(size), class, "{size}");
        }
    }
}
