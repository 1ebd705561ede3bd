//! The bytes of a chunk as operations.

use crate::encode::{
    FAIL, FREE, FREE_FOREIGN, FREE_NULL, FREES, NEW_FREE, NEW_SHAPE, RESIZE, SHAPES, Shape, THREAD,
};
use crate::error::Damage;
use crate::operation::{Operation, Step, Time};
use crate::varint::take;

/// What the operations of a chunk begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub process: u32,
    pub next_block: u64,
    thread: u32,
    time: u64,
}

fn number(bytes: &mut &[u8]) -> Result<u32, Damage> {
    u32::try_from(take(bytes)?).map_err(|_| Damage::Number)
}

impl Start {
    pub(crate) fn take(bytes: &mut &[u8]) -> Result<Self, Damage> {
        Ok(Self {
            process: number(bytes)?,
            next_block: take(bytes)?,
            thread: number(bytes)?,
            time: take(bytes)?,
        })
    }
}

/// Entries by their place; the oldest gives way.
struct Table<T, const N: usize> {
    entries: [T; N],
    used: usize,
    next: usize,
}

impl<T: Copy + Default, const N: usize> Table<T, N> {
    fn new() -> Self {
        Self {
            entries: [T::default(); N],
            used: 0,
            next: 0,
        }
    }

    fn add(&mut self, entry: T) {
        self.entries[self.next] = entry;
        self.used = self.used.max(self.next + 1);
        self.next = (self.next + 1) % N;
    }

    #[inline]
    fn get(&self, place: u8) -> Result<T, Damage> {
        let known = self.entries[..self.used].get(usize::from(place));
        known.copied().ok_or(Damage::Code(place))
    }
}

/// Walks through the operations of a chunk.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    functions: u8,
    next_block: u64,
    thread: u32,
    time: u64,
    shapes: Table<Shape, SHAPES>,
    frees: Table<u8, FREES>,
}

impl<'a> Decoder<'a> {
    /// `functions`: how many the trace names.
    pub(crate) fn new(start: Start, bytes: &'a [u8], functions: u8) -> Self {
        Self {
            bytes,
            functions,
            next_block: start.next_block,
            thread: start.thread,
            time: start.time,
            shapes: Table::new(),
            frees: Table::new(),
        }
    }

    /// The number of the block that the next operation makes, if it makes one.
    pub(crate) fn next_block(&self) -> u64 {
        self.next_block
    }

    /// Whether all operations were taken.
    pub(crate) fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub(crate) fn step(&mut self) -> Result<Step, Damage> {
        let mut code = self.code()?;
        while code == THREAD {
            self.thread = number(&mut self.bytes)?;
            code = self.code()?;
        }
        let operation = if code < NEW_SHAPE {
            let (function, size, alignment) = self.shapes.get(code)?;
            Operation::Make {
                function,
                size,
                alignment,
            }
        } else if let Some(place) = code.checked_sub(FREE) {
            let function = self.frees.get(place)?;
            Operation::Free {
                function,
                block: self.block()?,
            }
        } else {
            self.rare(code)?
        };
        let late = take(&mut self.bytes)?;
        self.time = self.time.checked_add(late).ok_or(Damage::Number)?;
        self.next_block += u64::from(operation.makes_block());
        Ok(Step {
            thread: self.thread,
            time: Time::from_steps(self.time),
            operation,
        })
    }

    fn code(&mut self) -> Result<u8, Damage> {
        let (&code, rest) = self.bytes.split_first().ok_or(Damage::End)?;
        self.bytes = rest;
        Ok(code)
    }

    fn function(&mut self) -> Result<u8, Damage> {
        let function = self.code()?;
        if function < self.functions {
            Ok(function)
        } else {
            Err(Damage::Reference)
        }
    }

    fn block(&mut self) -> Result<u64, Damage> {
        let distance = take(&mut self.bytes)?;
        match self.next_block.checked_sub(distance) {
            Some(block) if distance > 0 => Ok(block),
            _ => Err(Damage::Reference),
        }
    }

    fn rare(&mut self, code: u8) -> Result<Operation, Damage> {
        let function = self.function()?;
        Ok(match code {
            NEW_SHAPE => {
                let (size, alignment) = (take(&mut self.bytes)?, take(&mut self.bytes)?);
                self.shapes.add((function, size, alignment));
                Operation::Make {
                    function,
                    size,
                    alignment,
                }
            }
            NEW_FREE => {
                self.frees.add(function);
                Operation::Free {
                    function,
                    block: self.block()?,
                }
            }
            RESIZE => {
                let size = take(&mut self.bytes)?;
                Operation::Resize {
                    function,
                    size,
                    block: self.block()?,
                }
            }
            FREE_NULL => Operation::FreeNull { function },
            FREE_FOREIGN => {
                let size = take(&mut self.bytes)?.checked_sub(1);
                Operation::FreeForeign { function, size }
            }
            FAIL => {
                let (size, alignment) = (take(&mut self.bytes)?, take(&mut self.bytes)?);
                Operation::Fail {
                    function,
                    size,
                    alignment,
                }
            }
            other => return Err(Damage::Code(other)),
        })
    }
}
