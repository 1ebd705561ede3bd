use std::vec::Vec;

use heapdrome_pages::Simulated;

use super::*;

fn fallback() -> (Fallback, Simulated) {
    (Fallback::new(), Simulated::new(1 << 30))
}

#[test]
fn blocks_are_aligned_and_apart_and_near_a_header_of_no_allocator() {
    let (fallback, pages) = fallback();
    let sizes = [0, 1, 16, 100, 5000, 70_000, 3 << 20];
    let alignments = [1, 16, 64, 4096, 512 << 10, 1 << 20, 4 << 20];
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    for (size, alignment) in sizes.into_iter().zip(alignments.into_iter().cycle()) {
        for alignment in [16, alignment] {
            let block = fallback.allocate(&pages, size, alignment);
            let block = block.expect("there is memory");
            let address = block.addr().get();
            assert!(address.is_multiple_of(alignment.max(16)));
            let usable = fallback.usable_size(address).expect("it is one of these");
            assert!(usable >= size.max(1));
            // SAFETY: the block has `usable` bytes and lies in a chunk, whose header lies at the
            // last multiple of `CHUNK` before the block.
            unsafe {
                block.write_bytes(0xff, usable);
                let header = (address - 1) & !(CHUNK - 1);
                let header = block.as_ptr().with_addr(header).cast::<*mut u8>();
                assert!((*header).is_null());
            }
            assert!(
                blocks
                    .iter()
                    .all(|&(other, end)| end <= address || address + usable <= other)
            );
            blocks.push((address, address + usable));
        }
    }
    for (address, _) in blocks {
        assert_eq!(fallback.free(&pages, address, true), Freed::Done);
        assert_eq!(fallback.free(&pages, address, true), Freed::NotABlock);
    }
}

#[test]
fn addresses_that_are_no_blocks_are_known() {
    let (fallback, pages) = fallback();
    assert_eq!(fallback.free(&pages, 4096, false), Freed::Elsewhere);
    let block = fallback.allocate(&pages, 100, 16).expect("there is memory");
    let address = block.addr().get();
    for inside in [
        address + 16,
        address + 8,
        address - 16,
        (address & !(CHUNK - 1)) + 8,
    ] {
        assert_eq!(fallback.free(&pages, inside, false), Freed::NotABlock);
    }
    let end = (address & !(CHUNK - 1)) + CHUNK;
    for outside in [end, end + 16, address + CHUNK] {
        assert_eq!(fallback.free(&pages, outside, false), Freed::Elsewhere);
    }
    assert_eq!(fallback.usable_size(address + CHUNK), None);
}

#[test]
fn chunks_are_used_again_when_they_are_empty() {
    let (fallback, pages) = fallback();
    let mut reserved = 0;
    for round in 0..20 {
        let blocks: Vec<_> = (0..100)
            .map(|index| fallback.allocate(&pages, 1000 * index, 16))
            .collect();
        for block in blocks {
            let address = block.expect("there is memory").addr().get();
            assert_eq!(fallback.free(&pages, address, round % 2 == 0), Freed::Done);
        }
        if round == 0 {
            reserved = pages.reserved();
        }
    }
    assert_eq!(pages.reserved(), reserved);
    fallback.purge(&pages);
    assert!(pages.calls().purge > 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let (fallback, pages) = fallback();
    assert!(fallback.allocate(&pages, usize::MAX, 16).is_none());
    assert!(
        fallback
            .allocate(&pages, isize::MAX as usize, 1 << 62)
            .is_none()
    );
    pages.set_limit(0);
    assert!(fallback.allocate(&pages, 16, 16).is_none());
    pages.set_limit(1 << 30);
    assert!(fallback.allocate(&pages, 16, 16).is_some());
}

#[test]
fn a_chunk_that_a_thread_of_the_parent_was_purging_serves_the_child() {
    let (fallback, pages) = fallback();
    let block = fallback.allocate(&pages, 100, 16).expect("there is memory");
    assert_eq!(fallback.free(&pages, block.addr().get(), true), Freed::Done);
    let chunk = fallback.chunks().next().expect("there is one");
    // SAFETY: chunks are never unmapped.
    unsafe { (*chunk.as_ptr()).state.store(pack(0, CLAIMED), Relaxed) };
    assert_eq!(take(chunk, 16, 16), None);
    fallback.restore_in_child();
    assert!(take(chunk, 16, 16).is_some());
}
