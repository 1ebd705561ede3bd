//! Heap of the calling thread, from its first allocation until the thread ends.
//!
//! A thread that only frees gets a heap only after some frees, because it may be about to end.
//! After the destructors of the thread's keys have run, the C library frees some more blocks, such
//! as tables of thread-local variables. A heap created then would never be reused.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut, without_provenance_mut};

use heapdrome_malloc_abi::{ThreadExit, end_thread, thread_slot};
use heapdrome_pages::system;

use super::{Elfmalloc, HEAPS, register_fork_handlers, start};
use crate::heap::front::{ENDED, Front, NO_HEAP, Shared};
use crate::heap::quarantine::Quarantine;
use crate::heap::thread_heap::{HeapRef, ThreadHeap};
use crate::heap::threads::detach;

/// Number of frees after which a thread that only frees gets a heap; until then its blocks enter no
/// magazine. The C library frees fewer blocks for most ending threads. jemalloc has a similar
/// limit, 128.
const FREES_WITHOUT: usize = 64;

static THREAD_EXIT: ThreadExit = ThreadExit::new(thread_ends);

thread_slot!(
    /// Front of the calling thread's heap, or a static front.
    HEAP: Shared<Front> = NO_HEAP, "heapdrome_elfmalloc_heap"
);

thread_slot!(
    /// Number of blocks that the thread has freed without a heap, stored as an address; at most
    /// [`FREES_WITHOUT`].
    FREED: u8 = null, "heapdrome_elfmalloc_freed"
);

thread_slot!(
    /// The calling thread's quarantine, for the fast path of the hardened variant. Null until the
    /// thread first frees a block through its heap on the slow path, and after the thread's end.
    /// Also null while the location of the states is unknown, and if freed blocks are overwritten
    /// completely.
    QUARANTINE: Quarantine = null, "heapdrome_elfmalloc_quarantine"
);

unsafe extern "C" fn thread_ends(word: *mut c_void) {
    // SAFETY: this is the key's destructor. Every armed value is a pointer to a heap, which is
    // never freed. The heap is used only if `HEAP` points to it, so it belongs to this thread. From
    // then on, the thread uses `ENDED`, whose presence is shared, so any thread may detach the heap
    // once.
    unsafe {
        let Some(heap) = THREAD_EXIT.ends::<ThreadHeap>(word) else {
            return;
        };
        // The C library may store the values of keys beside the stack. A value that was set after
        // the destructors had run is then seen by the next thread on that stack. By that time
        // another thread may own the heap.
        if HEAP::get().cast() != heap.as_ptr() {
            return;
        }
        HEAP::set((&raw const ENDED).cast_mut());
        // Another thread may soon own the heap and use its quarantine, so this thread must not.
        QUARANTINE::set(null_mut());
        end_thread::<Elfmalloc>(
            |heap| detach(&HEAPS, HeapRef::from_ptr(heap.cast())),
            heap.cast(),
        );
    }
}

/// Returns the quarantine that the calling thread's fast path may use, or null.
#[inline(always)]
pub(crate) fn quarantine() -> *mut Quarantine {
    QUARANTINE::get()
}

/// Allows the fast path to use the calling thread's quarantine.
pub(crate) fn set_quarantine(quarantine: *mut Quarantine) {
    QUARANTINE::set(quarantine);
}

#[inline(always)]
pub(crate) fn front() -> &'static Front {
    // SAFETY: the slot points to a static front, or to the front of a heap, and heaps are never
    // freed.
    unsafe { &(*HEAP::get()).0 }
}

/// Returns the calling thread's heap; `None` if it has none.
#[inline]
pub(crate) fn present_heap() -> Option<HeapRef> {
    let front = HEAP::get();
    let none = core::ptr::eq(front, &raw const ENDED) || core::ptr::eq(front, &raw const NO_HEAP);
    if none {
        return None;
    }
    // SAFETY: the slot is never null, and it is neither of the statics, so it holds the calling
    // thread's heap.
    Some(unsafe { HeapRef::from_ptr(NonNull::new_unchecked(front.cast())) })
}

/// Returns the calling thread's heap, created on demand; `None` if the thread is ending or out of
/// memory.
#[inline]
pub(crate) fn heap() -> Option<HeapRef> {
    present_heap().or_else(first_heap)
}

/// Returns the heap for a free by the calling thread. Creates a heap only after [`FREES_WITHOUT`]
/// frees without one; until then, returns `None`.
#[inline]
pub(crate) fn heap_to_free() -> Option<HeapRef> {
    present_heap().or_else(|| {
        let freed = FREED::get().addr();
        if freed == FREES_WITHOUT {
            return first_heap();
        }
        FREED::set(without_provenance_mut(freed + 1));
        None
    })
}

// This function is cold, but every process runs it. So it has its own section: otherwise the
// compiler would place it among cold functions that few processes run.
#[cold]
#[unsafe(link_section = ".text.slow")]
fn first_heap() -> Option<HeapRef> {
    if core::ptr::eq(HEAP::get(), &raw const ENDED) {
        return None;
    }
    start();
    // The first thread uses one shard on any machine, so the number of processors is not needed
    // yet.
    if HEAPS.shards.threads() != 0 {
        HEAPS
            .shards
            .widen(system::processors().unwrap_or(usize::MAX));
    }
    let heap = HEAPS.attach()?;
    HEAP::set(heap.as_ptr().as_ptr().cast());
    // Arming may allocate, so the heap must already be set. If arming fails, the heap is not reused
    // after the thread ends, which only costs memory.
    THREAD_EXIT.arm(heap.as_ptr());
    register_fork_handlers();
    Some(heap)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::vec::Vec;

    use heapdrome_malloc_abi::MallocAbi;

    use super::*;
    use crate::{Elfmalloc, ElfmallocL};

    struct Sent<T>(T);
    // SAFETY: only one thread at a time uses each sent value, or the receiver uses only its
    // address.
    unsafe impl<T> Send for Sent<T> {}

    impl<T> Sent<T> {
        fn get(self) -> T {
            self.0
        }
    }

    fn frees_without_a_heap<A: MallocAbi>() {
        let block = || A::allocate(100).expect("there is memory");
        let blocks = Sent((0..=FREES_WITHOUT).map(|_| block()).collect::<Vec<_>>());
        let other = thread::spawn(move || {
            let mut blocks = blocks.get();
            let last = blocks.pop().expect("a block");
            for block in blocks {
                // SAFETY: the block belongs to the test, which no longer uses it.
                unsafe { A::deallocate(block) };
                assert!(present_heap().is_none(), "a few frees make no heap");
            }
            // SAFETY: the block belongs to the test, which no longer uses it.
            unsafe { A::deallocate(last) };
            assert!(present_heap().is_some(), "who goes on gets one");
        });
        other.join().expect("it ends well");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no destructors of keys")]
    fn a_thread_that_frees_gets_a_heap_when_it_goes_on() {
        frees_without_a_heap::<Elfmalloc>();
        frees_without_a_heap::<ElfmallocL>();
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no destructors of keys")]
    fn a_value_that_another_left_ends_no_heap() {
        let own = heap().expect("there is memory");
        let mine = Sent(own);
        let other = thread::spawn(move || {
            let mine = mine.get();
            // Value that the key has when its destructor runs a second time.
            let word = mine.as_ptr().as_ptr().map_addr(|address| address | 1);
            // SAFETY: the word is the heap of another thread, like a value that is left on a reused
            // stack. The destructor compares it with `HEAP` before it uses the heap.
            unsafe { thread_ends(word.cast()) };
            let next = HEAPS.attach().expect("there is memory");
            assert_ne!(next, mine, "it was given to this thread too");
            // SAFETY: the heap belongs to this thread, which no longer uses it.
            unsafe { detach(&HEAPS, next) };
        });
        other.join().expect("it ends well");
        assert_eq!(present_heap(), Some(own));
    }
}
