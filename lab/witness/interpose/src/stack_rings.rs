//! Manages the rings of stacks of this process: one for each thread whose stacks are recorded.

use core::sync::atomic::Ordering;

use crate::control;
use crate::extent::read_maps;
use crate::folder::{self, Name};
use crate::kernel;
use crate::own::{IMAGE, is_sandboxed, own, pid};
use crate::ring::Ring;
use crate::stack_ring::{LAST_MAPS, MAPS_END, MAPS_PREFIX, PREFIX, StackRing};
use crate::system;

/// Returns the ring of stacks that belongs to a thread's ring. Creates it on first use. Returns
/// `None` if shared memory ran out, or if a sandbox may forbid creating it.
pub fn of(ring: &Ring) -> Option<&'static StackRing> {
    // Relaxed: the lock on the list orders the threads that use the ring in turn.
    let known = match ring.stacks.load(Ordering::Relaxed) {
        // In a sandbox, system calls may be forbidden, so no ring is created.
        0 if is_sandboxed() => NO_STACKS,
        0 => make_stacks(ring),
        known => known,
    };
    if known == NO_STACKS {
        control::stack_left_out();
        return None;
    }
    // SAFETY: the ring of stacks stays mapped like the ring itself, and all its fields are atomics.
    Some(unsafe { &*(known as *const StackRing) })
}

/// Writes the list of this process's memory mappings to a file before the process ends, if it has
/// recorded a stack. Libraries may have been loaded since the first stack.
pub fn end() {
    let has_stacks = own().is_some_and(|own| own.mapped.load(Ordering::Relaxed) != 0);
    if !has_stacks || is_sandboxed() {
        return;
    }
    let (pid, image) = (pid(), IMAGE.load(Ordering::Relaxed));
    write_maps(&Name::new(MAPS_PREFIX, pid, image).and(LAST_MAPS));
}

/// Writes the list of this process's memory mappings into a new file.
fn write_maps(name: &Name) {
    folder::write_new(name.bytes(), |write| {
        read_maps(&mut *write);
        write(MAPS_END.as_bytes());
    });
}

/// Value of [`Ring::stacks`] if there can be no ring of stacks.
const NO_STACKS: usize = 1;

/// Creates the ring of stacks for a ring of calls. Returns its address, or `NO_STACKS` on failure.
#[cold]
fn make_stacks(ring: &Ring) -> usize {
    if own().is_some_and(|own| own.mapped.swap(1, Ordering::Relaxed) == 0) {
        write_maps(&Name::new(MAPS_PREFIX, ring.pid, ring.image));
    }
    let name = Name::new(PREFIX, ring.pid, ring.image).and(ring.number);
    let length = size_of::<StackRing>();
    let made = folder::map(name.bytes(), true, length).map_or(NO_STACKS, |memory| {
        // SAFETY: the memory was just mapped, and no forked child relies on it.
        unsafe { kernel::advise(memory, length, system::MADV_DONTFORK) };
        memory as usize
    });
    // Relaxed: only threads of this process read the word. The collector opens the file by its
    // name.
    ring.stacks.store(made, Ordering::Relaxed);
    made
}
