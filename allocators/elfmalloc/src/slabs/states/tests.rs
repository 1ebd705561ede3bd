use super::*;
use std::vec;
use std::vec::Vec;

/// Distance between checked addresses. Larger under Miri, which is slow.
const STEP: usize = if cfg!(miri) { 128 } else { 8 };

/// Returns, for each byte of a unit's states, whether it is the state of a block.
fn places(unit: usize, size: usize) -> Vec<bool> {
    let mut memory = vec![0_u8; BYTES];
    let states = NonNull::new(memory.as_mut_ptr()).expect("a vector is not at null");
    let shape = Shape::of(SizeClass::of(size));
    let mut places = vec![false; BYTES];
    for offset in (0..UNIT).step_by(STEP) {
        let address = unit * UNIT + offset;
        let begins = Short::can_begin(address, shape);
        assert_eq!(begins, offset % shape.size() == 0, "{offset} in {size}");
        if begins {
            // SAFETY: `states` points to an array of `BYTES` bytes.
            let Short(place) = unsafe { Short::at(states, address, shape) };
            let place = place.addr().get() - states.addr().get();
            assert!(!std::mem::replace(&mut places[place], true), "{offset}");
        }
    }
    places
}

#[test]
fn each_short_block_of_a_unit_has_a_state_of_its_own() {
    for (unit, size) in [(0, 16), (1, 16), (31, 16), (7, 80), (40, 1024), (1000, 896)] {
        let blocks = (0..UNIT).step_by(STEP).filter(|offset| offset % size == 0);
        let places = places(unit, size);
        let taken = places.iter().filter(|&&taken| taken);
        assert_eq!(taken.count(), blocks.count());
    }
}

#[test]
fn neighbouring_units_begin_in_different_lines() {
    let first = |unit| places(unit, UNIT / 64).iter().position(|&taken| taken);
    assert_ne!(first(5), first(6));
}

#[test]
fn a_state_says_what_it_was_told() {
    for size in [16, 1000, 2000] {
        let mut memory = vec![0_u64; BYTES / 8];
        let states: NonNull<u64> = NonNull::from(&mut *memory).cast();
        let shape = Shape::of(SizeClass::of(size));
        // SAFETY: `states` points to an array of `BYTES` bytes.
        let state = unsafe { Any::at(states.cast(), 3 * UNIT, shape) };
        assert!(state.slack().is_none() && !state.is_freed());
        for slack in [1, 200, MOST_SHORT] {
            state.set_slack(slack);
            assert!(state.slack() == Some(slack) && !state.is_freed());
        }
        state.set_freed();
        assert!(state.slack().is_none() && state.is_freed());
    }
}

#[test]
#[cfg_attr(
    miri,
    ignore = "Miri crashes where an atomic word overlaps atomic bytes"
)]
fn of_a_new_slab_nothing_is_known_whatever_was_there_before() {
    let sizes: &[usize] = if cfg!(miri) {
        &[512, 1024, 1152, 4608]
    } else {
        &[16, 80, 1024, 1152, 4608, 100_000]
    };
    let classes: Vec<_> = sizes.iter().map(|&size| SizeClass::of(size)).collect();
    let most = classes.iter().map(|class| class.geometry().units).max();
    let mut memory = vec![0_u64; usize::from(most.unwrap_or(0)) * BYTES / 8];
    let states: NonNull<u8> = NonNull::from(&mut *memory).cast();
    let first = 77 * UNIT;
    let blocks = |class: SizeClass| {
        (0..usize::from(class.geometry().blocks)).map(move |block| block * class.size())
    };
    let at = |class, offset: usize| {
        // SAFETY: the array has as many bytes as the states of the largest slab.
        unsafe {
            Any::at(
                states.add(offset / UNIT * BYTES),
                first + offset,
                Shape::of(class),
            )
        }
    };
    for (before, after) in classes
        .iter()
        .flat_map(|before| classes.iter().map(|after| (*before, *after)))
    {
        for offset in blocks(before) {
            at(before, offset).set_slack(1);
            at(before, offset).set_freed();
        }
        // SAFETY: the array has as many bytes as the states of the largest slab.
        unsafe { forget_from(states, first, after) };
        assert!(blocks(after).all(|offset| !at(after, offset).is_freed()));
        for offset in (0..usize::from(after.geometry().units) * UNIT).step_by(2 * STEP) {
            let begins = Any::can_begin(first + offset, Shape::of(after));
            assert!(!begins || at(after, offset).slack().is_none(), "{offset}");
        }
    }
}
