//! Heap that passes calls on to the C library and records them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread::ThreadId;

use heapdrome_workloads::{Heap, Libc};

/// Byte that fills a fresh block.
const FRESH: u8 = 0xee;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    /// Whether a block was allocated; otherwise it was freed.
    pub(crate) allocated: bool,
    /// The block's number, in the order of allocation.
    pub(crate) block: usize,
    /// Requested size of the block in bytes.
    pub(crate) size: usize,
    /// For a freed block, the number of bytes unchanged since its allocation.
    pub(crate) fresh: usize,
}

/// State of the heap, counted from its calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shadow {
    /// Number of blocks in use.
    pub(crate) live: usize,
    /// The peak of the bytes in use.
    pub(crate) peak: u64,
    current: u64,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    shadow: Shadow,
    /// The number and size of the block at an address.
    blocks: HashMap<usize, (usize, usize)>,
    /// Number of blocks that were allocated.
    numbered: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<State>);

impl Recorder {
    /// Returns all calls in their order.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().events.clone()
    }

    /// Returns the calls of each thread. The threads are in the order of their first calls.
    pub(crate) fn by_thread(&self) -> Vec<Vec<Event>> {
        let mut threads: Vec<Vec<Event>> = Vec::new();
        for event in self.events() {
            match threads.iter_mut().find(|one| one[0].thread == event.thread) {
                Some(own) => own.push(event),
                None => threads.push(vec![event]),
            }
        }
        threads
    }

    /// Returns the sizes of all blocks in the order of allocation.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let events = self.events();
        let allocated = events.iter().filter(|event| event.allocated);
        allocated.map(|event| event.size as u64).collect()
    }

    /// Returns the current state of the heap.
    pub(crate) fn shadow(&self) -> Shadow {
        self.0.lock().unwrap().shadow
    }
}

impl State {
    /// Records a fresh block.
    fn allocated(&mut self, block: *mut u8, size: usize) {
        let number = self.numbered;
        self.numbered += 1;
        assert!(self.blocks.insert(block.addr(), (number, size)).is_none());
        self.shadow.live += 1;
        self.shadow.current += size as u64;
        self.shadow.peak = self.shadow.peak.max(self.shadow.current);
        self.events.push(Event {
            thread: std::thread::current().id(),
            allocated: true,
            block: number,
            size,
            fresh: size,
        });
    }

    /// Records that a block in use is freed.
    fn freed(&mut self, block: *mut u8, size: usize) {
        let known = self.blocks.remove(&block.addr());
        let (number, true_size) = known.expect("only blocks in use are freed");
        assert_eq!(size, true_size, "a block is freed with its size");
        // SAFETY: the callers pass a block in use with its size. `FRESH` was written to all of its
        // bytes when it was allocated, and no other thread uses it.
        let bytes = unsafe { std::slice::from_raw_parts(block, size) };
        let fresh = bytes.iter().filter(|byte| **byte == FRESH).count();
        self.shadow.live -= 1;
        self.shadow.current -= size as u64;
        self.events.push(Event {
            thread: std::thread::current().id(),
            allocated: false,
            block: number,
            size,
            fresh,
        });
    }
}

impl Heap for Recorder {
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8 {
        let block = Libc.allocate(size, alignment);
        // SAFETY: no request of these tests fails, so the block has `size` bytes. No other code
        // uses it yet.
        unsafe { block.write_bytes(FRESH, size) };
        self.0.lock().unwrap().allocated(block, size);
        block
    }

    unsafe fn free(&self, block: *mut u8, size: usize) {
        self.0.lock().unwrap().freed(block, size);
        // SAFETY: `Libc` returned the block with this size. By contract the block is in use, and is
        // not used afterwards.
        unsafe { Libc.free(block, size) };
    }

    unsafe fn reallocate(&self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        if block.is_null() {
            return self.allocate(new, 0);
        }
        let mut state = self.0.lock().unwrap();
        state.freed(block, old);
        // SAFETY: `Libc` returned the block with the size `old` and malloc's default alignment. By
        // contract it is in use, and is not used afterwards: no request of these tests fails.
        let grown = unsafe { Libc.reallocate(block, old, new) };
        // SAFETY: no request of these tests fails, so the block has `new` bytes, at least `old`. No
        // other code uses the fresh ones yet.
        unsafe { grown.add(old).write_bytes(FRESH, new - old) };
        state.allocated(grown, new);
        grown
    }
}
