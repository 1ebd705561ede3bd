//! Periodic maintenance, which each thread does at its clock checks.

use heapdrome_pages::Pages;
use heapdrome_pages::system::coarse_milliseconds;

use crate::heap::front::{MOST_TICKS, MOST_TICKS_GIVING};
use crate::heap::heaps::Heaps;
use crate::heap::magazine::Magazine;
use crate::heap::thread_heap::HeapRef;
use crate::size_class::{FIRST_SHARED, SizeClass};

/// Checks the clock and does the maintenance that is due: drains magazines, moves to a shard with
/// fewer threads, empties unused magazines, and purges if an epoch has passed.
pub fn look_around<P: Pages>(heaps: &Heaps<P>, heap: HeapRef) {
    let now = coarse_milliseconds();
    let most = if heap.giving.take() {
        MOST_TICKS_GIVING
    } else {
        MOST_TICKS
    };
    heap.clock.set(next_look(heap.clock.get(), now, most));
    heap.front.set_ticks(heap.clock.get().1);
    if heap.outflow.look() {
        drain(heaps, heap);
    }
    if now.wrapping_sub(heap.looked.get()) >= heaps.decay() / 4 {
        heap.looked.set(now);
        heaps.shards.spread(heap.attachment());
        heaps.memory().as_idle(|| empty_unused(heaps, heap));
    }
    heaps.tick();
}

/// Unless the thread's magazines are small, empties them, and lets those of blocks above 4 KiB
/// rest. Called when the thread has given back most of its blocks: the thread may become idle, and
/// no other thread can empty its magazines.
#[cold]
fn drain<P: Pages>(heaps: &Heaps<P>, heap: HeapRef) {
    let balance = heap.outflow.balance();
    if !heaps.has_small_magazines(heap) {
        for (class, magazine) in heap.magazines() {
            if magazine.capacity() != 0 {
                heaps.empty_magazine(heap, class);
                if class.number() >= FIRST_SHARED {
                    magazine.rest();
                }
            }
        }
    }
    heap.outflow.settle(balance);
}

/// Empties the coalescer, and empties and shrinks the magazines that were unused since the last
/// call.
fn empty_unused<P: Pages>(heaps: &Heaps<P>, heap: HeapRef) {
    for (class, magazine) in heap.magazines() {
        if magazine.look() {
            shrink(heaps, heap, class);
        }
    }
    heaps.empty_coalescer(heap);
}

/// Empties a magazine that has slots, and halves its capacity, but not below the first capacity of
/// its class. A resting magazine stays at rest.
fn shrink<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) {
    heaps.empty_magazine(heap, class);
    let magazine = heap.magazine(class);
    let rests = magazine.wake();
    let capacity = magazine.capacity();
    let first = Magazine::first_capacity(class, usize::MAX);
    let smaller = (capacity / 2).max(first);
    if smaller < capacity {
        let memory = heaps.memory();
        magazine.resize(smaller, &heap.metadata, &memory.structures, &memory.pages);
        let saved = (capacity - smaller) * class.size();
        heap.budget.set(heap.budget.get() + saved);
    }
    if rests {
        magazine.rest();
    }
}

/// Returns `now` and the number of frees and refilled blocks until the next clock check, at most
/// `most`. Adapts to the thread's pace, so that some tens of milliseconds pass between checks.
/// `last` is the pair that the last check returned: its time, and the number after which this check
/// was due.
fn next_look(last: (u64, i32), now: u64, most: i32) -> (u64, i32) {
    let ticks = match now.wrapping_sub(last.0) {
        0..10 => last.1 * 2,
        10..50 => last.1,
        passed => i32::try_from(u64::from(last.1.unsigned_abs()) * 25 / passed).unwrap_or(0),
    };
    (now, ticks.clamp(1, most))
}
