use core::mem::forget;

use heapdrome_pages::Simulated;

use super::*;

#[test]
fn in_the_child_of_a_fork_every_lock_of_heaps_is_free() {
    let heaps = Heaps::new(Simulated::new(1 << 20));
    let heap = heaps.attach().expect("there is memory");
    let bin = heaps.bin(heap, SizeClass::of(64));
    // Threads of the parent held these locks, taken in their order.
    forget((heaps.list.lock(), heap.depot().lock(), bin.lock()));
    forget(heaps.mapped.table.lock());
    // SAFETY: the guards are forgotten, nothing was being changed, and there is no other thread.
    unsafe { heaps.free_locks() };
    assert!(heaps.list.try_lock().is_some());
    assert!(heap.depot().try_lock().is_some() && bin.try_lock().is_some());
    assert!(heaps.mapped.table.try_lock().is_some());
}
