//! Writes the operations of one program of one process. Merges the events of its rings into one
//! order, and replaces addresses by block numbers.

use rustc_hash::FxHashMap;
use std::io::Write;

use heapdrome_trace::{Operation, Record, Step, Thread, Time, TraceError, Writer};
use heapdrome_witness::FUNCTIONS;
use heapdrome_witness::ring::{Event, code};

use crate::addresses::{Addresses, Block};
use crate::clock::Clock;
use crate::forks::Forks;
use crate::snapshots::Snapshot;
use crate::streams::{Resizing, Stream};
use crate::unwind::Unwinding;

/// Function recorded for a free that is written before its own entry has been read.
const FREE: u8 = place("free");
const REALLOC: u8 = place("realloc");
const REALLOCARRAY: u8 = place("reallocarray");

const fn place(name: &str) -> u8 {
    let mut index = 0;
    while index < FUNCTIONS.len() {
        if is_same(FUNCTIONS[index].as_bytes(), name.as_bytes()) {
            return index as u8;
        }
        index += 1;
    }
    panic!("no such function")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    a.len() == b.len() && index == a.len()
}

/// Distance in entries from the current entry to the one whose slot is prefetched. One access to
/// main memory takes about as long as handling this many entries.
const AHEAD: usize = 8;

fn is_resize(function: u8) -> bool {
    function == REALLOC || function == REALLOCARRAY
}

/// One program of one process, from its start or fork to its exec or end.
pub(crate) struct Image {
    /// Number of the process in the trace.
    pub number: u32,
    /// Events of each ring, indexed by the ring's number.
    pub streams: Vec<Stream>,
    addresses: Addresses,
    clock: Clock,
    threads: u32,
    next_block: u64,
    time: Time,
    /// Number of frees written to the trace before their entries were read, by address.
    owed: FxHashMap<u64, u32>,
    forks: Forks,
    /// Number of operations whose order was repaired.
    pub repaired: u64,
    /// Unwinder of the stacks; `None` if no stacks are recorded.
    pub unwinding: Option<Unwinding>,
    /// Lower bound of the number of lost stacks.
    pub stacks_lost: u64,
}

impl Image {
    pub(crate) fn new(number: u32, clock: Clock, addresses: Addresses) -> Self {
        Self {
            number,
            streams: Vec::new(),
            addresses,
            clock,
            threads: 0,
            next_block: 0,
            time: Time(0),
            owed: FxHashMap::default(),
            forks: Forks::default(),
            repaired: 0,
            unwinding: None,
            stacks_lost: 0,
        }
    }

    /// Returns the blocks that the child of the fork at the stamp `forked` inherited from this
    /// process.
    pub(crate) fn inherited(&mut self, forked: u64) -> Addresses {
        self.forks.inherited(forked, &self.addresses)
    }

    /// Writes all events up to the stamp `until`, ordered by stamp. Events of one ring keep their
    /// order, even if their stamps are out of order.
    pub(crate) fn emit<W: Write>(
        &mut self,
        until: u64,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        let mut streams = std::mem::take(&mut self.streams);
        self.unwind(&mut streams, writer)?;
        let result = self.emit_streams(&mut streams, until, writer);
        self.streams = streams;
        result
    }

    /// Unwinds complete copies of stacks in the rings of `streams`, at most one lap of each ring.
    fn unwind<W: Write>(
        &mut self,
        streams: &mut [Stream],
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        let Some(unwinding) = &mut self.unwinding else {
            return Ok(());
        };
        for stream in streams {
            let unwind = |snapshot: Snapshot<'_>| unwinding.unwind(snapshot, writer);
            self.stacks_lost += stream.snapshots.drain(unwind)?;
            unwinding.fullest.note(stream.snapshots.fullness());
        }
        Ok(())
    }

    fn emit_streams<W: Write>(
        &mut self,
        streams: &mut [Stream],
        until: u64,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        while let Some((first, limit)) = earliest(streams, until) {
            let stream = &mut streams[first];
            while let Some(event) = stream.take(limit) {
                if let Some(later) = stream.ahead(AHEAD) {
                    self.addresses.prefetch(later.address());
                }
                self.event(stream, event, writer)?;
            }
        }
        Ok(())
    }

    fn event<W: Write>(
        &mut self,
        stream: &mut Stream,
        event: Event,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        self.time = self.time.max(self.clock.time(event.stamp));
        match event.code {
            code::ALIGNMENT => {
                stream.alignment = event.address;
                return Ok(());
            }
            code::FORK => {
                self.forks.fork(event.stamp, self.next_block);
                return Ok(());
            }
            code::THREAD => return self.thread(stream, event.address as u32, writer),
            code::STACK => {
                stream.snapshots.announce(event.size, event.address);
                return Ok(());
            }
            _ => {}
        }
        if let Some(operation) = self.operation(stream, event, writer)? {
            let may_have = operation.may_have_stack() && self.unwinding.is_some();
            let address = if event.code < code::FREED {
                event.address
            } else {
                0
            };
            let stack = may_have.then(|| stream.snapshots.take(address)).flatten();
            self.write(stream, operation, stack, writer)?;
        }
        Ok(())
    }

    /// Assigns the following events of a ring to another thread.
    fn thread<W: Write>(
        &mut self,
        stream: &mut Stream,
        tid: u32,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        let (process, thread, time) = (self.number, self.threads, self.time);
        self.threads += 1;
        stream.thread = Some(thread);
        stream.resizing.clear();
        writer.record(Record::Thread(Thread {
            process,
            thread,
            tid,
            time,
        }))
    }

    fn write<W: Write>(
        &mut self,
        stream: &Stream,
        operation: Operation,
        stack: Option<u32>,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        self.next_block += u64::from(operation.makes_block());
        let thread = stream.thread.unwrap_or_default();
        writer.operation(
            self.number,
            Step {
                thread,
                time: self.time,
                operation,
                stack,
            },
        )
    }

    fn operation<W: Write>(
        &mut self,
        stream: &mut Stream,
        event: Event,
        writer: &mut Writer<W>,
    ) -> Result<Option<Operation>, TraceError> {
        let Event { address, size, .. } = event;
        let function = event.code % code::FREED;
        if event.code < code::FREED {
            return self.made(stream, function, event, writer).map(Some);
        }
        if event.code < code::FAILED {
            return Ok(self.freed(stream, function, address));
        }
        let alignment = std::mem::take(&mut stream.alignment);
        let resizing = if is_resize(function) {
            stream.resizing.pop()
        } else {
            None
        };
        Ok(Some(match resizing {
            // realloc to 0 bytes has freed the block.
            Some(Resizing { block, .. }) if size == 0 => free(function, block),
            Some(Resizing { address, block, .. }) => {
                // The call failed, so the old block stays live.
                if let Some(block) = block {
                    self.addresses.insert(address, block);
                }
                Operation::Fail {
                    function,
                    size,
                    alignment,
                }
            }
            None => Operation::Fail {
                function,
                size,
                alignment,
            },
        }))
    }

    /// Records that a function returned a block. Returns the operation to write.
    fn made<W: Write>(
        &mut self,
        stream: &mut Stream,
        function: u8,
        event: Event,
        writer: &mut Writer<W>,
    ) -> Result<Operation, TraceError> {
        let Event { address, size, .. } = event;
        let alignment = std::mem::take(&mut stream.alignment);
        let resizing = if is_resize(function) {
            stream.resizing.pop()
        } else {
            None
        };
        let number = Some(self.next_block);
        if let Some(old) = self.addresses.insert(address, Block { number, size })
            && let Some(block) = old.number
        {
            // The previous block at this address was freed, but the entry of that free has not been
            // read yet.
            self.forks.freed(address, old);
            self.repaired += 1;
            *self.owed.entry(address).or_default() += 1;
            let function = FREE;
            self.write(stream, Operation::Free { function, block }, None, writer)?;
        }
        let resized = resizing
            .and_then(|it| it.block)
            .and_then(|block| block.number);
        Ok(match resized {
            Some(block) => Operation::Resize {
                function,
                size,
                block,
            },
            None => Operation::Make {
                function,
                size,
                alignment,
            },
        })
    }

    /// Records that a block is freed, or about to be resized. Returns the operation to write.
    /// Returns `None` for a resize, which is written when the call returns, and for a free that was
    /// written already.
    fn freed(&mut self, stream: &mut Stream, function: u8, address: u64) -> Option<Operation> {
        if address == 0 {
            return Some(Operation::FreeNull { function });
        }
        if let Some(owed) = self.owed.get_mut(&address) {
            *owed -= 1;
            if *owed == 0 {
                self.owed.remove(&address);
            }
            return None;
        }
        let block = self.addresses.remove(address);
        if let Some(block) = block {
            self.forks.freed(address, block);
        }
        if is_resize(function) {
            stream.resizing.push(Resizing { address, block });
            return None;
        }
        Some(free(function, block))
    }
}

/// Returns the index of the stream with the earliest next event, and the stamp up to which its
/// events precede those of all other streams; `None` if all events are later than `until`.
fn earliest(streams: &[Stream], until: u64) -> Option<(usize, u64)> {
    let mut first: Option<(usize, u64)> = None;
    let mut limit = until;
    for (place, stream) in streams.iter().enumerate() {
        let Some(stamp) = stream.peek().map(|event| event.stamp) else {
            continue;
        };
        if stamp > until {
            continue;
        }
        match first {
            Some((_, earliest)) if earliest <= stamp => limit = limit.min(stamp),
            _ => {
                limit = limit.min(first.map_or(until, |(_, stamp)| stamp));
                first = Some((place, stamp));
            }
        }
    }
    first.map(|(place, _)| (place, limit))
}

fn free(function: u8, block: Option<Block>) -> Operation {
    match block {
        Some(Block {
            number: Some(block),
            ..
        }) => Operation::Free { function, block },
        Some(Block { number: None, size }) => Operation::FreeForeign {
            function,
            size: Some(size),
        },
        None => Operation::FreeForeign {
            function,
            size: None,
        },
    }
}
