//! Key that detects the end of threads, created by the first allocating thread. Also a thread's
//! heap while destructors of other keys still free blocks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{NonNull, without_provenance_mut};

use heapdrome_elfmalloc::heap::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::heap::refill::refill;
use heapdrome_elfmalloc::heap::thread_heap::{HeapRef, ThreadHeap};
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlock;
use heapdrome_models::scene::{SETTINGS, Sent, Shared, give, many, new_backend};
use heapdrome_models::thread_exit::ThreadExit;
use heapdrome_models::{end_of_thread, join, keys, model, spawn};
use heapdrome_pages::atomic::thread_number;
use heapdrome_pages::thread_key;

thread_local! {
    /// States of threads that have ended.
    static ENDED: RefCell<Vec<usize>> = RefCell::default();
    /// Back-end of the process.
    static BACKEND: RefCell<Option<Shared>> = RefCell::default();
    /// Heap of each thread, until it ends.
    static HEAPS: RefCell<HashMap<usize, HeapRef>> = RefCell::default();
    /// Number of times that the settings were read.
    static STARTED: Cell<usize> = Cell::default();
    /// Number of blocks that another library still has to free.
    static LEFT: Cell<usize> = Cell::default();
}

static NOTES: ThreadExit = ThreadExit::new(note_the_end);
static EXIT: ThreadExit = ThreadExit::new(thread_ends);

unsafe extern "C" fn note_the_end(word: *mut c_void) {
    // SAFETY: `end_of_thread` calls this destructor with the armed value.
    if let Some(state) = unsafe { NOTES.ends::<u64>(word) } {
        ENDED.with_borrow_mut(|ended| ended.push(state.addr().get()));
    }
}

#[test]
fn threads_that_are_armed_first_at_once_share_one_key_and_end_once() {
    fn live(state: usize) {
        let state = NonNull::new(without_provenance_mut::<u64>(state)).expect("not null");
        assert!(NOTES.arm(state));
        end_of_thread();
    }
    model(3, || {
        ENDED.set(Vec::new());
        let handle = spawn(|| live(16));
        live(32);
        join(handle);
        let mut ended = ENDED.take();
        ended.sort_unstable();
        assert_eq!(ended, [16, 32]);
        assert_eq!(keys(), 1, "the superfluous key was not deleted");
    });
}

fn process() -> Shared {
    BACKEND.with_borrow(|backend| backend.clone().expect("the process has begun"))
}

/// Begins a process in which no thread has allocated. Creates two heaps in advance, because loom's
/// atomics of their locks must be older than the threads.
fn begin() -> Shared {
    let backend = new_backend();
    let heaps = [backend.attach(), backend.attach()].map(|heap| heap.expect("there is memory"));
    for heap in heaps {
        // SAFETY: the heap belongs to this thread, which no longer uses it.
        unsafe { detach(&backend, heap) };
    }
    BACKEND.set(Some(backend.clone()));
    HEAPS.set(HashMap::new());
    backend
}

/// Ends the process, and asserts that no blocks are left.
fn end(backend: &Shared) {
    // The heap of an ended thread still holds small magazines for the next thread, so give their
    // blocks back first.
    backend.release_kept();
    backend.check();
    assert_eq!(backend.shards.slabs(), 0, "every block has come back");
    BACKEND.set(None);
}

/// Destructor of the key, like elfmalloc's.
unsafe extern "C" fn thread_ends(word: *mut c_void) {
    // SAFETY: `end_of_thread` calls this destructor with the armed value: the thread's heap, which
    // the thread no longer uses.
    unsafe {
        if let Some(heap) = EXIT.ends::<ThreadHeap>(word) {
            HEAPS.with_borrow_mut(|heaps| heaps.remove(&thread_number()));
            detach(&process(), HeapRef::from_ptr(heap));
        }
    }
}

/// Allocates blocks like elfmalloc at a thread's first allocation.
fn allocate_first(backend: &Shared, count: usize) -> Vec<*mut u8> {
    backend.start(|| {
        STARTED.set(STARTED.get() + 1);
        SETTINGS
    });
    let heap = backend.attach().expect("there is memory");
    HEAPS.with_borrow_mut(|heaps| heaps.insert(thread_number(), heap));
    assert!(EXIT.arm(heap.as_ptr()));
    let block = || {
        // Keeps the thread from checking the clock.
        heap.front.set_ticks(i32::MAX);
        let block = heap.front.allocate(many().size());
        if block.is_null() {
            return refill(backend, heap, many());
        }
        block
    };
    (0..count).map(|_| block()).collect()
}

/// Frees a block like elfmalloc.
fn free(block: *mut u8) {
    let heap = HEAPS.with_borrow(|heaps| heaps.get(&thread_number()).copied());
    match heap {
        Some(heap) => {
            let block = NonNull::new(block).expect("a block");
            // SAFETY: callers pass an allocated block of this class, which the model no longer
            // uses.
            let block = unsafe { FreeBlock::new(many(), block) };
            Magazines::put(&*process(), heap, block);
        }
        None => give(&process(), many(), block),
    }
}

#[test]
fn threads_that_allocate_first_at_once_start_one_allocator() {
    model(1, || {
        let backend = begin();
        STARTED.set(0);
        let other = backend.clone();
        let handle = spawn(move || {
            let block = allocate_first(&other, 1)[0];
            end_of_thread();
            Sent(block)
        });
        let mine = allocate_first(&backend, 1)[0];
        end_of_thread();
        let theirs = join(handle).get();
        assert_ne!(mine, theirs);
        assert_eq!(STARTED.get(), 1, "settings are asked for once");
        give(&backend, many(), mine);
        give(&backend, many(), theirs);
        end(&backend);
    });
}

/// Acts as another library's destructor, which sets its value again as long as it has blocks to
/// free.
unsafe extern "C" fn free_another(word: *mut c_void) {
    let heap = HEAPS.with_borrow(|heaps| heaps.contains_key(&thread_number()));
    assert!(
        heap || LEFT.get() != 4,
        "in the first round the thread has its heap"
    );
    free(word.cast());
    LEFT.set(LEFT.get() - 1);
    if LEFT.get() != 0 {
        // SAFETY: key 1 is the second key that was created. The value is the next of the adjacent
        // blocks, which the destructor may free.
        assert!(unsafe { thread_key::set(1, word.wrapping_byte_add(many().size())) });
    }
}

#[test]
fn blocks_freed_by_later_destructors_come_back_while_others_end() {
    model(1, || {
        let backend = begin();
        let first = allocate_first(&backend, 1)[0];
        // SAFETY: every value of the key is an allocated block, which the destructor may free.
        let key = unsafe { thread_key::create(free_another) }.expect("there are keys");
        assert_eq!(key, 1);
        let other = backend.clone();
        let handle = spawn(move || {
            // Refills hand out blocks in ascending order, so the other library has four adjacent
            // blocks.
            let blocks = allocate_first(&other, 4);
            LEFT.set(4);
            // SAFETY: the key exists, and the value is an allocated block, which the destructor may
            // free.
            assert!(unsafe { thread_key::set(key, blocks[0].cast()) });
            end_of_thread();
        });
        free(first);
        end_of_thread();
        join(handle);
        assert_eq!(LEFT.get(), 0, "every round came");
        end(&backend);
    });
}
