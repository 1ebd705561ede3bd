use core::mem::forget;

use heapdrome_pages::Simulated;

use super::*;

#[test]
fn in_the_child_of_a_fork_every_lock_is_free() {
    let shards = Shards::new(Simulated::new(1 << 20));
    let bin = shards.bin_without_heap(SizeClass::of(64));
    // Threads of the parent held these locks, taken in their order.
    forget((shards.purging.lock(), shards.list.lock(), bin.lock()));
    let memory = &shards.memory;
    forget((memory.pool.lock(), memory.structures.lock()));
    // SAFETY: the guards are forgotten, nothing was being changed, and there is no other thread.
    unsafe { shards.free_locks() };
    assert!(shards.purging.try_lock().is_some());
    assert!(shards.list.try_lock().is_some());
    assert!(bin.try_lock().is_some());
    assert!(memory.pool.try_lock().is_some() && memory.structures.try_lock().is_some());
}
