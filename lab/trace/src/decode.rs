//! Decodes the bytes of a chunk into operations.

use crate::encode::{
    FAIL, FREE, FREE_FOREIGN, FREE_NULL, FREES, NEW_FREE, NEW_SHAPE, RESIZE, SHAPES, STACK, Shape,
    THREAD,
};
use crate::error::Damage;
use crate::operation::{Operation, Step, Time};
use crate::varint::{Fields, take};

/// State before the first operation of a chunk.
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

/// Function number of unused entries of [`Tables`]. No function of a trace has this number.
const NONE: u8 = u8::MAX;

/// Latest time, in steps, to which [`Fields::LARGEST`] steps can be added without exceeding the
/// largest [`Time`].
const EARLY: u64 = u64::MAX / Time::STEP - Fields::LARGEST;

/// Number of functions of the trace, and of stacks so far. Operations refer to lower indexes only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub functions: u8,
    pub stacks: u32,
}

/// Shapes and freeing functions to which operations of a chunk refer, indexed by code.
struct Tables {
    limits: Limits,
    entries: [Shape; 1 << u8::BITS],
    /// Positions of the next shape and of the next freeing function.
    next: (usize, usize),
}

impl Tables {
    fn add_shape(&mut self, shape: Shape) {
        self.entries[self.next.0] = shape;
        self.next.0 = (self.next.0 + 1) % SHAPES;
    }

    fn add_free(&mut self, function: u8) {
        self.entries[usize::from(FREE) + self.next.1] = (function, 0, 0);
        self.next.1 = (self.next.1 + 1) % FREES;
    }

    /// Reads the index of a function; `None` if the trace has no such function.
    #[inline(always)]
    fn function(&self, fields: &mut Fields) -> Option<u8> {
        Some(fields.byte()).filter(|function| *function < self.limits.functions)
    }

    #[inline(always)]
    fn get(&self, code: u8) -> Option<Shape> {
        let entry = self.entries[usize::from(code)];
        (entry.0 != NONE).then_some(entry)
    }
}

/// State of the decoder between operations. It is small enough to stay in registers.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    next_block: u64,
    thread: u32,
    time: u64,
}

/// Calls `visit` with each of the `count` operations that follow the start of a chunk. Returns the
/// number of the process's next block. `limits` are the numbers of functions and stacks so far.
#[inline]
pub(crate) fn visit(
    start: Start,
    bytes: &[u8],
    limits: Limits,
    count: u32,
    mut visit: impl FnMut(Step),
) -> Result<u64, Damage> {
    let mut tables = Tables {
        limits,
        entries: [(NONE, 0, 0); 1 << u8::BITS],
        next: (0, 0),
    };
    let mut cursor = Cursor {
        bytes,
        next_block: start.next_block,
        thread: start.thread,
        time: start.time,
    };
    // With this check, counting blocks cannot overflow below.
    let last = start.next_block.checked_add(count.into());
    last.ok_or(Damage::Number)?;
    let mut left = count;
    loop {
        (cursor, left) = cursor.visit_common(&tables, left, &mut visit);
        if left == 0 {
            break;
        }
        let (operation, stack, after) = cursor.any(&mut tables)?;
        cursor = after;
        left -= 1;
        visit(cursor.step(operation, stack));
    }
    match cursor.bytes {
        [] => Ok(cursor.next_block),
        _ => Err(Damage::Length(count.into())),
    }
}

impl<'a> Cursor<'a> {
    /// Visits the operations that [`common`](Self::common) decodes, up to the first other one.
    /// Returns the cursor at that operation, and the number of operations left.
    #[inline]
    fn visit_common(
        mut self,
        tables: &Tables,
        mut left: u32,
        visit: &mut impl FnMut(Step),
    ) -> (Self, u32) {
        while left > 0 {
            let Some((operation, after)) = self.common(tables) else {
                break;
            };
            self = after;
            left -= 1;
            visit(self.step(operation, None));
        }
        (self, left)
    }

    /// Returns an operation as a [`Step`] with the current thread and time.
    #[inline]
    fn step(&self, operation: Operation, stack: Option<u32>) -> Step {
        Step {
            thread: self.thread,
            time: Time::from_steps(self.time),
            operation,
            stack,
        }
    }

    /// Decodes a common operation: one that refers to the tables, resizes a block or frees a null
    /// pointer, and whose numbers are short. Returns `None` for all others, and near the end of the
    /// content.
    #[inline(always)]
    fn common(mut self, tables: &Tables) -> Option<(Operation, Self)> {
        let (bytes, _) = self.bytes.split_first_chunk()?;
        let (code, mut fields) = Fields::new(bytes);
        let (operation, late) = if let Some((function, size, alignment)) = tables.get(code) {
            if code >= FREE {
                let [distance, late] = fields.pair()?;
                let block = self.live(distance)?;
                (Operation::Free { function, block }, late)
            } else {
                self.next_block += 1;
                let make = Operation::Make {
                    function,
                    size,
                    alignment,
                };
                (make, fields.number()?)
            }
        } else if code == FREE_NULL {
            let function = tables.function(&mut fields)?;
            (Operation::FreeNull { function }, fields.number()?)
        } else if code == RESIZE {
            let function = tables.function(&mut fields)?;
            let size = fields.number()?;
            let [distance, late] = fields.pair()?;
            // Only a resize can be longer than the bytes that were read at once.
            if fields.taken() > Fields::BYTES {
                return None;
            }
            let block = self.live(distance)?;
            self.next_block += 1;
            let resize = Operation::Resize {
                function,
                size,
                block,
            };
            (resize, late)
        } else {
            return None;
        };
        if self.time > EARLY {
            return None;
        }
        self.time += late;
        self.bytes = self.bytes.get(fields.taken()..)?;
        Some((operation, self))
    }

    /// Returns the number of the next block minus `distance`; `None` if no block has that number.
    #[inline(always)]
    fn live(&self, distance: u64) -> Option<u64> {
        (distance.wrapping_sub(1) < self.next_block).then(|| self.next_block - distance)
    }

    /// Decodes any operation, and the number of its stack if it has one.
    #[cold]
    #[inline(never)]
    fn any(mut self, tables: &mut Tables) -> Result<(Operation, Option<u32>, Self), Damage> {
        let mut code = self.code()?;
        while code == THREAD {
            self.thread = number(&mut self.bytes)?;
            code = self.code()?;
        }
        let mut stack = None;
        if code == STACK {
            let number = number(&mut self.bytes)?;
            if number >= tables.limits.stacks {
                return Err(Damage::Reference);
            }
            stack = Some(number);
            code = self.code()?;
        }
        let operation = if (NEW_SHAPE..FREE).contains(&code) {
            self.rare(code, tables)?
        } else {
            let (function, size, alignment) = tables.get(code).ok_or(Damage::Code(code))?;
            if code >= FREE {
                let block = self.block()?;
                Operation::Free { function, block }
            } else {
                Operation::Make {
                    function,
                    size,
                    alignment,
                }
            }
        };
        if stack.is_some() && !operation.may_have_stack() {
            return Err(Damage::Code(code));
        }
        let late = take(&mut self.bytes)?;
        self.time = self.time.checked_add(late).ok_or(Damage::Number)?;
        self.next_block += u64::from(operation.makes_block());
        Ok((operation, stack, self))
    }

    fn code(&mut self) -> Result<u8, Damage> {
        let (&code, rest) = self.bytes.split_first().ok_or(Damage::End)?;
        self.bytes = rest;
        Ok(code)
    }

    fn block(&mut self) -> Result<u64, Damage> {
        let distance = take(&mut self.bytes)?;
        match self.next_block.checked_sub(distance) {
            Some(block) if distance > 0 => Ok(block),
            _ => Err(Damage::Reference),
        }
    }

    /// Decodes the rest of an operation whose code is not an index into the tables.
    fn rare(&mut self, code: u8, tables: &mut Tables) -> Result<Operation, Damage> {
        let function = self.code()?;
        if function >= tables.limits.functions {
            return Err(Damage::Reference);
        }
        Ok(match code {
            NEW_SHAPE => {
                let (size, alignment) = (take(&mut self.bytes)?, take(&mut self.bytes)?);
                tables.add_shape((function, size, alignment));
                Operation::Make {
                    function,
                    size,
                    alignment,
                }
            }
            NEW_FREE => {
                tables.add_free(function);
                let block = self.block()?;
                Operation::Free { function, block }
            }
            RESIZE => {
                let size = take(&mut self.bytes)?;
                let block = self.block()?;
                Operation::Resize {
                    function,
                    size,
                    block,
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
