//! Encodes the operations of one process as the bytes of a chunk.

use rustc_hash::FxHashMap;

use crate::error::TraceError;
use crate::operation::{Operation, Step};
use crate::varint::put;

/// Maximum number of shapes to which a chunk can refer by a single byte.
pub(crate) const SHAPES: usize = 0xe0;
/// Maximum number of freeing functions to which a chunk can refer by a single byte.
pub(crate) const FREES: usize = 8;

pub(crate) const NEW_SHAPE: u8 = 0xe0;
pub(crate) const NEW_FREE: u8 = 0xe1;
pub(crate) const RESIZE: u8 = 0xe2;
pub(crate) const FREE_NULL: u8 = 0xe3;
pub(crate) const FAIL: u8 = 0xe4;
pub(crate) const FREE_FOREIGN: u8 = 0xe5;
pub(crate) const THREAD: u8 = 0xe6;
pub(crate) const STACK: u8 = 0xe7;
pub(crate) const FREE: u8 = 0xe8;

/// A call that makes a block, without the block: function, size, alignment.
pub(crate) type Shape = (u8, u64, u64);

/// A chunk of operations that is being filled.
#[derive(Debug)]
pub(crate) struct Encoder {
    process: u32,
    next_block: u64,
    thread: u32,
    /// Time of the last operation, in steps.
    time: u64,
    bytes: Vec<u8>,
    operations: u32,
    shapes: Table<Shape>,
    frees: Table<u8>,
}

/// A table whose oldest entry is replaced when it is full.
#[derive(Debug)]
struct Table<T> {
    places: FxHashMap<T, u8>,
    entries: Vec<T>,
    next: usize,
    capacity: usize,
}

impl<T: Copy + Eq + std::hash::Hash> Table<T> {
    fn new(capacity: usize) -> Self {
        let (places, entries) = (FxHashMap::default(), Vec::with_capacity(capacity));
        Self {
            places,
            entries,
            next: 0,
            capacity,
        }
    }

    fn place(&self, entry: T) -> Option<u8> {
        self.places.get(&entry).copied()
    }

    fn add(&mut self, entry: T) {
        if self.entries.len() < self.capacity {
            self.entries.push(entry);
        } else {
            let old = std::mem::replace(&mut self.entries[self.next], entry);
            self.places.remove(&old);
        }
        self.places.insert(entry, self.next as u8);
        self.next = (self.next + 1) % self.capacity;
    }

    fn clear(&mut self) {
        self.places.clear();
        self.entries.clear();
        self.next = 0;
    }
}

impl Encoder {
    pub(crate) fn new(process: u32) -> Self {
        Self {
            process,
            next_block: 0,
            thread: 0,
            time: 0,
            bytes: Vec::new(),
            operations: 0,
            shapes: Table::new(SHAPES),
            frees: Table::new(FREES),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn operations(&self) -> u32 {
        self.operations
    }

    /// Clears the encoded operations. The next operation begins a new chunk.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.operations = 0;
        self.shapes.clear();
        self.frees.clear();
    }

    pub(crate) fn add(&mut self, step: Step) -> Result<(), TraceError> {
        let time = step.time.steps();
        let late = time.checked_sub(self.time);
        let late = late.ok_or(TraceError::Order("it is earlier than the one before it"))?;
        let distance = self.distance(&step.operation)?;
        if step.stack.is_some() && !step.operation.may_have_stack() {
            return Err(TraceError::Order("it has a stack and asks for no block"));
        }
        if self.bytes.is_empty() {
            for number in [
                self.process.into(),
                self.next_block,
                step.thread.into(),
                time,
            ] {
                put(&mut self.bytes, number);
            }
            self.thread = step.thread;
        }
        if step.thread != self.thread {
            self.bytes.push(THREAD);
            put(&mut self.bytes, step.thread.into());
            self.thread = step.thread;
        }
        if let Some(stack) = step.stack {
            self.bytes.push(STACK);
            put(&mut self.bytes, stack.into());
        }
        self.operation(step.operation, distance);
        put(&mut self.bytes, if self.operations == 0 { 0 } else { late });
        self.time = time;
        self.operations += 1;
        self.next_block += u64::from(step.operation.makes_block());
        Ok(())
    }

    /// Returns the number of the next block minus that of the freed block; 0 if the operation frees
    /// no block of the trace. Returns an error if the block was not made yet.
    fn distance(&self, operation: &Operation) -> Result<u64, TraceError> {
        match *operation {
            Operation::Free { block, .. } | Operation::Resize { block, .. } => {
                match self.next_block.checked_sub(block) {
                    None | Some(0) => {
                        Err(TraceError::Order("it frees a block that is not made yet"))
                    }
                    Some(distance) => Ok(distance),
                }
            }
            _ => Ok(0),
        }
    }

    fn operation(&mut self, operation: Operation, distance: u64) {
        let bytes = &mut self.bytes;
        match operation {
            Operation::Make {
                function,
                size,
                alignment,
            } => {
                let shape = (function, size, alignment);
                if let Some(place) = self.shapes.place(shape) {
                    bytes.push(place);
                } else {
                    bytes.extend([NEW_SHAPE, function]);
                    put(bytes, size);
                    put(bytes, alignment);
                    self.shapes.add(shape);
                }
            }
            Operation::Free { function, .. } => {
                if let Some(place) = self.frees.place(function) {
                    bytes.push(FREE + place);
                } else {
                    bytes.extend([NEW_FREE, function]);
                    self.frees.add(function);
                }
                put(bytes, distance);
            }
            Operation::Resize { function, size, .. } => {
                bytes.extend([RESIZE, function]);
                put(bytes, size);
                put(bytes, distance);
            }
            Operation::FreeNull { function } => bytes.extend([FREE_NULL, function]),
            Operation::FreeForeign { function, size } => {
                bytes.extend([FREE_FOREIGN, function]);
                put(bytes, size.map_or(0, |size| size.saturating_add(1)));
            }
            Operation::Fail {
                function,
                size,
                alignment,
            } => {
                bytes.extend([FAIL, function]);
                put(bytes, size);
                put(bytes, alignment);
            }
        }
    }
}
