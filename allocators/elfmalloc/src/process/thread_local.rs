//! Heap of the calling thread, from its first allocation until it ends.
//!
//! A thread that only frees gets a heap after some frees. It may be a thread that is ending: after
//! the destructors of its keys, the C library frees some blocks for it, such as the tables of
//! thread-local variables of stacks that it no longer keeps. No thread would ever take over a heap
//! that was created then.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut, without_provenance_mut};

use heapdrome_malloc_abi::{MallocAbi, ThreadExit, end_thread, thread_slot};
use heapdrome_pages::system;

use super::{Elfmalloc, HEAPS, start};
use crate::heap::front::{ENDED, Front, NO_HEAP, Shared};
use crate::heap::quarantine::Quarantine;
use crate::heap::thread_heap::{HeapRef, ThreadHeap};
use crate::heap::threads::detach;

/// Number of blocks that a thread without a heap gives back to their slabs one by one. The C
/// library frees fewer for most threads that end, and a thread that is there to free soon exceeds
/// it. jemalloc does likewise, and counts to 128.
const FREES_WITHOUT: usize = 64;

static THREAD_EXIT: ThreadExit = ThreadExit::new(thread_ends);

thread_slot!(
    /// The calling thread's heap.
    HEAP: Shared<Front> = NO_HEAP, "heapdrome_elfmalloc_heap"
);

thread_slot!(
    /// Number of blocks that the thread freed while it had no heap, as an address; at most
    /// [`FREES_WITHOUT`].
    FREED: u8 = null, "heapdrome_elfmalloc_freed"
);

thread_slot!(
    /// The calling thread's quarantine, for the fast path of the hardened variant. It is null until
    /// the thread has freed a block, once the thread has ended, while the location of the states is
    /// unknown, and if whole blocks are overwritten.
    QUARANTINE: Quarantine = null, "heapdrome_elfmalloc_quarantine"
);

unsafe extern "C" fn thread_ends(word: *mut c_void) {
    // SAFETY: the word is the value that was armed: a heap, which is this thread's if it uses it.
    unsafe {
        let Some(heap) = THREAD_EXIT.ends::<ThreadHeap>(word) else {
            return;
        };
        // The C library keeps the keys' values with a stack. If a value was set after they had been
        // looked through, the next thread on that stack finds it, when the heap may already have
        // been given to a third thread.
        if HEAP::get().cast() != heap.as_ptr() {
            return;
        }
        HEAP::set((&raw const ENDED).cast_mut());
        // The next thread that gets the heap may soon use its quarantine.
        QUARANTINE::set(null_mut());
        end_thread::<Elfmalloc>(
            |heap| detach(&HEAPS, HeapRef::from_ptr(heap.cast())),
            heap.cast(),
        );
    }
}

/// Returns the calling thread's quarantine; null if it has none for the fast path.
#[inline(always)]
pub(crate) fn quarantine() -> *mut Quarantine {
    QUARANTINE::get()
}

/// Lets the fast path use the calling thread's quarantine.
pub(crate) fn set_quarantine(quarantine: *mut Quarantine) {
    QUARANTINE::set(quarantine);
}

#[inline(always)]
pub(crate) fn front() -> &'static Front {
    // SAFETY: the slot points to a front that lives as long as its thread: a static, or a heap's.
    unsafe { &(*HEAP::get()).0 }
}

/// Returns the heap that the thread has, without creating one.
#[inline]
pub(crate) fn present_heap() -> Option<HeapRef> {
    let front = HEAP::get();
    let none = core::ptr::eq(front, &raw const ENDED) || core::ptr::eq(front, &raw const NO_HEAP);
    if none {
        return None;
    }
    // SAFETY: the slot is never null. It holds the calling thread's heap, unless it holds one of
    // the statics.
    Some(unsafe { HeapRef::from_ptr(NonNull::new_unchecked(front.cast())) })
}

/// Returns the thread's heap, created on demand; `None` if the thread is about to end, or if there
/// is no memory.
#[inline]
pub(crate) fn heap() -> Option<HeapRef> {
    present_heap().or_else(first_heap)
}

/// Returns the heap of a thread that frees a block; `None` also for the first frees of a thread
/// without a heap.
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

#[cold]
fn first_heap() -> Option<HeapRef> {
    if core::ptr::eq(HEAP::get(), &raw const ENDED) {
        return None;
    }
    start();
    HEAPS
        .shards
        .widen(system::processors().unwrap_or(usize::MAX));
    let heap = HEAPS.attach()?;
    HEAP::set(heap.as_ptr().as_ptr().cast());
    // Arming may allocate, which the heap in place can serve. If it fails, this thread's heap is
    // not reused after it ends, which only costs memory.
    THREAD_EXIT.arm(heap.as_ptr());
    Elfmalloc::fork_gate().register::<Elfmalloc>();
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
    // SAFETY: each sent value is used by one thread at a time, or only its address is used.
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
                // SAFETY: the block is the test's own.
                unsafe { A::deallocate(block) };
                assert!(present_heap().is_none(), "a few frees make no heap");
            }
            // SAFETY: the block is the test's own.
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
            // The value of the second round.
            let word = mine.as_ptr().as_ptr().map_addr(|address| address | 1);
            // SAFETY: the word is a thread's heap, as it may be found with a stack.
            unsafe { thread_ends(word.cast()) };
            let next = HEAPS.attach().expect("there is memory");
            assert_ne!(next, mine, "it was given to this thread too");
            // SAFETY: the heap is this thread's, which does not use it.
            unsafe { detach(&HEAPS, next) };
        });
        other.join().expect("it ends well");
        assert_eq!(present_heap(), Some(own));
    }
}
