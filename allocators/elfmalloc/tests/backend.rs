//! Back-end over simulated pages: generated programs, ended threads, misuse, running out of memory,
//! purges, and the thread-local cache.

mod giving;
mod paths;
mod small_arenas;

use std::collections::HashSet;

use giving::give;
use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::large::allocate_large;
use heapdrome_elfmalloc::heap::large::free_large;
use heapdrome_elfmalloc::heap::local_cache::LocalCache;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::misuse::Misuse;
use heapdrome_elfmalloc::size_class::{CLASSES, UNIT};
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_pages::Simulated;
use small_arenas::backend;

/// Frees a block through the front-end's [`put`](FrontEnd::put).
fn free_by<F: FrontEnd>(
    backend: &Heaps<Simulated>,
    heap: HeapRef,
    class: SizeClass,
    block: *mut u8,
) {
    paths::put::<F>(backend, heap, class, block);
}

fn allocate(backend: &Heaps<Simulated>, heap: HeapRef, class: SizeClass) -> *mut u8 {
    paths::allocate::<Magazines>(backend, heap, class)
}

fn free(backend: &Heaps<Simulated>, heap: HeapRef, class: SizeClass, block: *mut u8) {
    free_by::<Magazines>(backend, heap, class, block);
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn generated_programs_keep_the_invariants_and_give_everything_back() {
    generated_programs::<Magazines>();
}

#[test]
fn generated_programs_do_so_with_the_thread_local_cache() {
    generated_programs::<LocalCache>();
}

/// Live block, with the byte that was written to its first and last byte.
struct Marked {
    block: *mut u8,
    class: SizeClass,
    mark: u8,
}

impl Marked {
    fn new(block: *mut u8, class: SizeClass, mark: u8) -> Self {
        // SAFETY: the block is new, and has the size of its class.
        unsafe {
            block.write(mark);
            block.add(class.size() - 1).write(mark);
        }
        Self { block, class, mark }
    }

    fn check(&self) {
        // SAFETY: the block is live, has the size of its class, and both bytes were written.
        unsafe {
            assert_eq!(self.block.read(), self.mark);
            assert_eq!(self.block.add(self.class.size() - 1).read(), self.mark);
        }
    }
}

fn generated_programs<F: FrontEnd>() {
    let backend = backend(1 << 30);
    let heap = backend.attach().expect("there is memory");
    let mut random = Random(3);
    let mut addresses = HashSet::new();
    let mut live: Vec<Marked> = Vec::new();
    for round in 0..if cfg!(miri) { 200 } else { 60_000 } {
        let grows = round / 5000 % 2 == 0;
        if live.is_empty() || random.below(10) < if grows { 7 } else { 3 } {
            let size = [64, 600, 5000, 40_000][random.below(4)];
            let class = SizeClass::of(random.below(size) + 1);
            let block = paths::allocate::<F>(&backend, heap, class);
            assert!(!block.is_null() && block.addr().is_multiple_of(16));
            assert!(addresses.insert(block.addr()), "handed out twice");
            live.push(Marked::new(block, class, random.below(256) as u8));
        } else {
            let one = live.swap_remove(random.below(live.len()));
            one.check();
            addresses.remove(&one.block.addr());
            free_by::<F>(&backend, heap, one.class, one.block);
        }
        if round % 1000 == 0 {
            backend.check();
        }
    }
    for one in live {
        one.check();
        free_by::<F>(&backend, heap, one.class, one.block);
    }
    // SAFETY: the heap belongs to this thread, which no longer uses it.
    unsafe { detach(&backend, heap) };
    backend.release_kept();
    backend.check();
    assert_eq!(
        backend.shards.slabs(),
        0,
        "an empty slab goes back to the pool"
    );
    assert_eq!(backend.memory().pool.lock().live, Units::NONE);
}

#[test]
fn bursts_in_any_order_come_back_whole() {
    let backend = backend(1 << 30);
    let heap = backend.attach().expect("there is memory");
    let (count, step) = if cfg!(miri) { (20, 29) } else { (5000, 9) };
    for class in (1..=CLASSES)
        .step_by(step)
        .map(|number| SizeClass::from_number(number as u8))
    {
        for order in 0..3 {
            let count = count.min((64 << 20) / class.size());
            let mut blocks: Vec<_> = (0..count)
                .map(|_| allocate(&backend, heap, class))
                .collect();
            let mut random = Random(order);
            match order {
                0 => {}
                1 => blocks.reverse(),
                _ => (1..count)
                    .rev()
                    .for_each(|index| blocks.swap(index, random.below(index + 1))),
            }
            for block in blocks {
                free(&backend, heap, class, block);
            }
            backend.check();
        }
    }
    // SAFETY: the heap belongs to this thread, which no longer uses it.
    unsafe { detach(&backend, heap) };
    // If the test took long, its unused magazines have shrunk. Small magazines keep their blocks
    // after `detach`.
    backend.release_kept();
    assert_eq!(backend.shards.slabs(), 0);
}

#[test]
fn ended_threads_leave_their_slabs_to_others() {
    let backend = backend(1 << 30);
    // The blocks fill more than three slabs.
    let (size, count) = if cfg!(miri) { (1000, 200) } else { (100, 2000) };
    let class = SizeClass::of(size);
    let first = backend.attach().expect("there is memory");
    let kept: Vec<_> = (0..count)
        .map(|_| allocate(&backend, first, class))
        .collect();
    let (half, rest) = kept.split_at(count / 2);
    for &block in half.iter().step_by(2) {
        free(&backend, first, class, block);
    }
    // SAFETY: the heap belongs to this thread, which no longer uses it.
    unsafe { detach(&backend, first) };
    let slabs = backend.shards.slabs();
    let second = backend.attach().expect("there is memory");
    for _ in 0..count / 5 {
        allocate(&backend, second, class);
    }
    backend.check();
    assert_eq!(
        backend.shards.slabs(),
        slabs,
        "the free blocks of an ended thread are used first"
    );
    for &block in rest {
        free(&backend, second, class, block);
    }
    backend.check();
}

#[test]
fn double_and_invalid_frees_are_told_apart() {
    let backend = backend(1 << 30);
    let heap = backend.attach().expect("there is memory");
    let class = SizeClass::of(48);
    let block = allocate(&backend, heap, class);
    let bin = backend.bin(heap, class);
    assert_eq!(give(&backend, Some(bin), class, &mut [block]), Ok(()));
    let again = give(&backend, Some(bin), class, &mut [block]);
    assert_eq!(again, Err(Misuse::DoubleFree(block.addr())));
    let inside = block.wrapping_add(16);
    let odd = give(&backend, Some(bin), class, &mut [inside]);
    assert_eq!(odd, Err(Misuse::NotABlock(inside.addr())));
}

#[test]
fn a_double_free_among_neighbours_is_named() {
    for descending in [false, true] {
        let backend = backend(1 << 30);
        let heap = backend.attach().expect("there is memory");
        let class = SizeClass::of(48);
        let mut blocks: Vec<_> = (0..8).map(|_| allocate(&backend, heap, class)).collect();
        if descending {
            blocks.reverse();
        }
        let bin = backend.bin(heap, class);
        assert_eq!(give(&backend, Some(bin), class, &mut [blocks[5]]), Ok(()));
        let again = give(&backend, Some(bin), class, &mut blocks[2..7].to_vec());
        assert_eq!(again, Err(Misuse::DoubleFree(blocks[5].addr())));
    }
}

#[test]
fn without_memory_there_is_none_and_later_there_is_again() {
    let (limit, size) = if cfg!(miri) {
        (10 << 20, 32_000)
    } else {
        (48 << 20, 4000)
    };
    let backend = backend(limit);
    let heap = backend.attach().expect("there is memory");
    let class = SizeClass::of(size);
    let mut blocks = Vec::new();
    loop {
        let block = allocate(&backend, heap, class);
        if block.is_null() {
            break;
        }
        blocks.push(block);
    }
    assert!(blocks.len() * size > limit / 2, "{}", blocks.len());
    backend.check();
    for block in blocks.drain(..) {
        free(&backend, heap, class, block);
    }
    assert!(!allocate(&backend, heap, class).is_null());
    assert!(allocate_large(&backend, 300_000, UNIT).is_some());
}

#[test]
fn idle_units_are_purged_and_read_as_zero() {
    const SIZE: usize = 3 << 20;
    let backend = backend(1 << 30);
    let large = allocate_large(&backend, SIZE, UNIT).expect("there is memory");
    assert!(large.clean);
    // SAFETY: the block belongs to the test until it is freed.
    unsafe {
        large.block.as_ptr().write_bytes(7, SIZE);
        assert_eq!(free_large(&backend, large.block.addr().get()), Ok(()));
        assert!(
            !allocate_large(&backend, SIZE, UNIT)
                .expect("there is memory")
                .clean
        );
        assert_eq!(free_large(&backend, large.block.addr().get()), Ok(()));
    }
    assert_eq!(
        backend.memory().purge_units(Units::MAX),
        Units::filled_by(SIZE)
    );
    backend.check();
    let again = allocate_large(&backend, SIZE, UNIT).expect("there is memory");
    assert_eq!(again.block, large.block);
    assert!(again.clean);
    // SAFETY: the block belongs to the test.
    assert_eq!(unsafe { again.block.as_ptr().read() }, 0);
}

#[test]
fn the_thread_local_cache_keeps_only_blocks_of_the_slab_that_it_allocates_from() {
    let backend = backend(1 << 30);
    let heap = backend.attach().expect("there is memory");
    let class = SizeClass::of(1024);
    let blocks: Vec<_> = (0..64 * 4)
        .map(|_| paths::allocate::<LocalCache>(&backend, heap, class))
        .collect();
    let (first, last) = (blocks[0], blocks[blocks.len() - 1]);
    let front = &heap.front;
    let top = front.top(class);
    assert!(front.owns(class, last.addr()) && !front.owns(class, first.addr()));
    free_by::<LocalCache>(&backend, heap, class, first);
    assert_eq!(front.top(class), top, "another slab's block is not kept");
    free_by::<LocalCache>(&backend, heap, class, last);
    // SAFETY: `top` was a free slot, so another slot or FULL follows it.
    assert_eq!(front.top(class), unsafe { top.add(1) });
    for &block in &blocks[1..blocks.len() - 1] {
        free_by::<LocalCache>(&backend, heap, class, block);
    }
    // SAFETY: the heap belongs to this thread, which only reads its front from now on, and there is
    // no other thread.
    unsafe { detach(&backend, heap) };
    backend.release_kept();
    backend.check();
    assert_eq!(backend.shards.slabs(), 0);
    assert!(!front.owns(class, last.addr()));
}
