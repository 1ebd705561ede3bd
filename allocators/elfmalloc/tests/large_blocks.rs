//! Large blocks over simulated pages: resizing in place, and moving into their own mappings.

mod small_arenas;

use heapdrome_elfmalloc::heap::large::{allocate_large, free_large};
use heapdrome_elfmalloc::misuse::Misuse;
use heapdrome_elfmalloc::size_class::UNIT;
use heapdrome_elfmalloc::units::large::{resize_large, usable};
use small_arenas::backend;

#[test]
fn large_blocks_grow_and_shrink_in_place_where_there_is_room() {
    let backend = backend(1 << 30);
    let large = allocate_large(&backend, 5 * UNIT, UNIT).expect("there is memory");
    // SAFETY: the block belongs to the test, which uses none of its bytes.
    unsafe {
        assert!(resize_large(backend.memory(), large.block, 3 * UNIT));
        assert_eq!(
            usable(backend.memory(), large.block.addr().get()),
            Some(3 * UNIT)
        );
        assert!(resize_large(backend.memory(), large.block, 6 * UNIT));
        let next = allocate_large(&backend, UNIT, UNIT).expect("there is memory");
        assert_eq!(next.block.addr().get(), large.block.addr().get() + 6 * UNIT);
        assert!(
            !resize_large(backend.memory(), large.block, 7 * UNIT),
            "the way is blocked"
        );
    }
    backend.check();
}

#[test]
fn no_large_block_begins_inside_another() {
    let backend = backend(1 << 30);
    let large = allocate_large(&backend, 5 * UNIT, UNIT).expect("there is memory");
    // SAFETY: the block has more than 16 bytes.
    let inside = unsafe { large.block.add(16) };
    assert_eq!(usable(backend.memory(), inside.addr().get()), None);
    // SAFETY: no block begins at the address, and the block around it belongs to the test.
    unsafe {
        assert!(!resize_large(backend.memory(), inside, 3 * UNIT));
        let moved = |size| backend.mapped.resize(backend.memory(), inside, size);
        assert!(moved(UNIT).is_none() && moved(20 * UNIT).is_none());
        let misuse = Misuse::NotABlock(inside.addr().get());
        assert_eq!(free_large(&backend, inside.addr().get()), Err(misuse));
    }
    backend.check();
}

#[test]
fn a_large_block_that_has_to_move_keeps_its_contents_and_leaves_clean_units() {
    let backend = backend(1 << 30);
    let large = allocate_large(&backend, 8 * UNIT, UNIT).expect("there is memory");
    allocate_large(&backend, UNIT, UNIT).expect("the way is blocked");
    // SAFETY: the blocks belong to the test, have the accessed bytes, and are not used after they
    // have moved or are freed.
    unsafe {
        large.block.as_ptr().write_bytes(7, 8 * UNIT);
        assert!(!resize_large(backend.memory(), large.block, 17 * UNIT));
        assert!(
            backend
                .mapped
                .move_to_mapping(backend.memory(), large.block, 9 * UNIT)
                .is_none(),
            "a block below 1 MiB is copied"
        );
        let moved = backend
            .mapped
            .move_to_mapping(backend.memory(), large.block, 17 * UNIT)
            .expect("there is memory");
        let bytes = core::slice::from_raw_parts(moved.as_ptr(), 17 * UNIT);
        let step = if cfg!(miri) { 509 } else { 1 };
        let are = |bytes: &[u8], value| bytes.iter().step_by(step).all(|&byte| byte == value);
        assert!(are(&bytes[..8 * UNIT], 7));
        assert!(are(&bytes[8 * UNIT..], 0));
        let again = allocate_large(&backend, 8 * UNIT, UNIT).expect("there is memory");
        assert_eq!((again.block, again.clean), (large.block, true));
        assert_eq!(again.block.as_ptr().read(), 0);
        assert!(
            backend
                .mapped
                .free(&backend.memory().pages, moved.addr().get())
        );
    }
    backend.check();
}
