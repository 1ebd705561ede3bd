//! Heap that records every call, and can be made to fail.

#![allow(dead_code)] // Each test program uses another part of it.

use std::collections::HashMap;
use std::sync::{Mutex, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use heapdrome_schema::WorkloadReport;
use heapdrome_workloads::{Failure, Heap, Libc, Parameters, find, run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Enter,
    Leave,
    Allocate { size: usize, alignment: usize },
    Free { size: usize },
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub thread: ThreadId,
    pub address: usize,
    pub call: Call,
}

/// Fault of the heap, with the number of the allocation that triggers it.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Null(usize),
    /// The first byte of this block and of each later block changes at its thread's next
    /// allocation.
    Corrupt(usize),
    Misaligned(usize),
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    allocations: usize,
    /// The block in use that each thread allocated last.
    latest: HashMap<ThreadId, usize>,
}

/// The C library's heap behind a lock, so that the events are in the order of the calls.
#[derive(Debug, Default)]
pub struct Recorder {
    state: Mutex<State>,
    fault: Option<Fault>,
}

impl Recorder {
    pub fn failing(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    pub fn events(self) -> Vec<Event> {
        self.state.into_inner().unwrap().events
    }

    fn note(&self, address: usize, call: Call) {
        let mut state = self.state.lock().unwrap();
        state.note(address, call);
    }
}

impl State {
    fn note(&mut self, address: usize, call: Call) {
        let thread = std::thread::current().id();
        self.events.push(Event {
            thread,
            address,
            call,
        });
    }
}

impl State {
    /// Changes the first byte of the block that this thread allocated last. The workload has
    /// already written the block.
    fn corrupt_latest(&mut self) {
        let latest = self.latest.get(&std::thread::current().id());
        if let Some(address) = latest {
            let block = std::ptr::with_exposed_provenance_mut::<u8>(*address);
            // SAFETY: the block is in use, because `free` removes blocks from the list. The
            // workload may read it at the same time; this test provokes exactly that.
            unsafe { block.write_volatile(!block.read_volatile()) };
        }
    }
}

impl Heap for Recorder {
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8 {
        let mut state = self.state.lock().unwrap();
        state.allocations += 1;
        let number = state.allocations;
        match self.fault {
            Some(Fault::Null(at)) if number == at => return std::ptr::null_mut(),
            Some(Fault::Misaligned(at)) if number == at => {
                return Libc.allocate(size + 16, 0).wrapping_add(1);
            }
            Some(Fault::Corrupt(at)) if number > at => state.corrupt_latest(),
            _ => {}
        }
        let block = Libc.allocate(size, alignment);
        let thread = std::thread::current().id();
        state.latest.insert(thread, block.expose_provenance());
        state.note(block.addr(), Call::Allocate { size, alignment });
        block
    }

    unsafe fn free(&self, block: *mut u8, size: usize) {
        let mut state = self.state.lock().unwrap();
        state.latest.retain(|_, latest| *latest != block.addr());
        state.note(block.addr(), Call::Free { size });
        // SAFETY: by contract the block is in use with this size and is not used afterwards, and
        // `Libc` returned it.
        unsafe { Libc.free(block, size) };
    }

    fn enter(&self) {
        self.note(0, Call::Enter);
    }

    fn leave(&self) {
        self.note(0, Call::Leave);
    }
}

pub fn parameters(workload: &str, words: &str) -> Parameters {
    let words: Vec<_> = words.split_whitespace().collect();
    Parameters::parse(find(workload).unwrap(), &words).unwrap()
}

/// Runs a workload under the recorder; a run that hangs fails the test.
pub fn run_on(
    heap: Recorder,
    workload: &str,
    words: &str,
) -> (Result<WorkloadReport, Failure>, Recorder) {
    let parameters = parameters(workload, words);
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let result = run(&parameters, &heap);
        let _ = send.send((result, heap));
    });
    let limit = Duration::from_secs(120);
    receive.recv_timeout(limit).expect("the run hangs")
}

pub fn record(workload: &str, words: &str) -> (WorkloadReport, Vec<Event>) {
    let (result, heap) = run_on(Recorder::default(), workload, words);
    (result.unwrap(), heap.events())
}

/// Life of one block.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub size: usize,
    pub alignment: usize,
    pub address: usize,
    pub born: usize,
    pub by: ThreadId,
    pub died: usize,
    pub freed_by: ThreadId,
}

/// Returns all blocks, in the order of their allocation. Times are indexes into the list of events.
///
/// Panics if a block is freed twice, with a different size, or never.
pub fn lives(events: &[Event]) -> Vec<Life> {
    let mut open: HashMap<usize, usize> = HashMap::new();
    let mut lives: Vec<Life> = Vec::new();
    for (time, event) in events.iter().enumerate() {
        match event.call {
            Call::Allocate { size, alignment } => {
                assert_eq!(open.insert(event.address, lives.len()), None);
                lives.push(Life {
                    size,
                    alignment,
                    address: event.address,
                    born: time,
                    by: event.thread,
                    died: usize::MAX,
                    freed_by: event.thread,
                });
            }
            Call::Free { size } => {
                let life = &mut lives[open.remove(&event.address).unwrap()];
                assert_eq!(life.size, size);
                (life.died, life.freed_by) = (time, event.thread);
            }
            Call::Enter | Call::Leave => {}
        }
    }
    assert!(open.is_empty(), "{} blocks were never freed", open.len());
    lives
}

/// Returns the maximum total size of the blocks in use.
pub fn shadow_peak(events: &[Event]) -> u64 {
    let mut now = 0;
    let sums = events.iter().map(|event| {
        match event.call {
            Call::Allocate { size, .. } => now += size as u64,
            Call::Free { size } => now -= size as u64,
            Call::Enter | Call::Leave => {}
        }
        now
    });
    sums.max().unwrap_or(0)
}

/// Returns the number of times that the heap becomes empty.
pub fn times_empty(events: &[Event]) -> usize {
    let mut now = 0_u64;
    let after = events.iter().filter_map(|event| {
        match event.call {
            Call::Allocate { .. } => now += 1,
            Call::Free { .. } => now -= 1,
            Call::Enter | Call::Leave => return None,
        }
        Some(now)
    });
    after.filter(|now| *now == 0).count()
}
