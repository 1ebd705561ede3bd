//! A program of allocation calls in memory, from which calls can be removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::Write;

use heapdrome_trace::{
    Beginning, Operation, Process, Record, Recording, Step, Thread, Time, TraceError, Writer,
};

use crate::compile::{CompileError, Source};

/// Maximum number of calls that are held in memory.
const MOST: usize = 1 << 26;

/// A call, and the block that it makes or uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Position of the call in the original program.
    pub id: u32,
    pub thread: u32,
    /// ID of the call that made the block; a resize does not change it. `None` if the call frees
    /// null.
    pub block: Option<u32>,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Make {
        function: u8,
        size: u64,
        alignment: u64,
    },
    Resize {
        function: u8,
        size: u64,
    },
    Free {
        function: u8,
    },
    FreeNull {
        function: u8,
    },
}

impl Call {
    pub(super) fn makes(&self) -> bool {
        matches!(self.what, What::Make { .. })
    }

    /// Returns the call with its size limited to `most`.
    pub(super) fn at_most(self, most: u64) -> Self {
        let mut call = self;
        match &mut call.what {
            What::Make { size, .. } | What::Resize { size, .. } => *size = most.min(*size),
            What::Free { .. } | What::FreeNull { .. } => {}
        }
        call
    }
}

/// Map from each live block's number in the trace to the ID of the call that made it.
#[derive(Default)]
struct Makers(HashMap<u64, u32>);

impl Makers {
    /// Converts a step into a call; `None` for a step that is not replayed. `number` is the number
    /// of the block that the step makes, if it makes one.
    fn call(&mut self, step: Step, number: u64, id: u32) -> Result<Option<Call>, CompileError> {
        let (block, what) = match step.operation {
            Operation::Make {
                function,
                size,
                alignment,
            } => {
                self.0.insert(number, id);
                let what = What::Make {
                    function,
                    size,
                    alignment,
                };
                (Some(id), what)
            }
            Operation::Resize {
                function,
                size,
                block,
            } => {
                let block = self.take(block)?;
                self.0.insert(number, block);
                (Some(block), What::Resize { function, size })
            }
            Operation::Free { function, block } => {
                (Some(self.take(block)?), What::Free { function })
            }
            Operation::FreeNull { function } => (None, What::FreeNull { function }),
            Operation::FreeForeign { .. } | Operation::Fail { .. } => return Ok(None),
        };
        Ok(Some(Call {
            id,
            thread: step.thread,
            block,
            what,
        }))
    }

    fn take(&mut self, block: u64) -> Result<u32, CompileError> {
        self.0.remove(&block).ok_or(CompileError::Twice(block))
    }
}

/// The allocation calls of a process, in the recorded order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    recording: Recording,
    pub(super) calls: Vec<Call>,
}

impl Script {
    /// Reads a process of a trace: the requested one, or the one with the most operations. Failed
    /// calls and frees of unknown blocks are omitted, as in every replay.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, is damaged, is a sample, has no such process
    /// or too many operations, or if `go_on` returned false.
    pub fn read(
        trace: &File,
        process: Option<u32>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Self, CompileError> {
        let source = Source { file: trace, go_on };
        let (process, recording, _) = source.choose(process)?;
        let mut calls = Vec::new();
        let mut makers = Makers::default();
        source.visit(process, |step, number| {
            if calls.len() == MOST {
                return Err(CompileError::TooMany("operations"));
            }
            let call = makers.call(step, number, calls.len() as u32)?;
            calls.extend(call);
            Ok(())
        })?;
        Ok(Self { recording, calls })
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns whether there are no calls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the program with its calls replaced by `calls`.
    pub(super) fn with(&self, calls: Vec<Call>) -> Self {
        Self {
            recording: self.recording.clone(),
            calls,
        }
    }

    /// Returns the calls after applying `change` to each.
    pub(super) fn map(&self, change: impl FnMut(Call) -> Call) -> Vec<Call> {
        self.calls.iter().copied().map(change).collect()
    }

    /// Returns the number of the function of this name, if the recording contains it.
    pub(super) fn function(&self, name: &str) -> Option<u8> {
        let place = self.recording.functions.iter().position(|own| own == name);
        place.and_then(|place| u8::try_from(place).ok())
    }

    /// Writes the program as a trace of one process. Each call takes one step of time.
    ///
    /// # Errors
    /// Returns an error if the sink cannot be written.
    pub fn write<W: Write>(&self, sink: W) -> Result<W, TraceError> {
        let mut writer = Writer::new(sink, &self.recording)?;
        writer.record(Record::Process(Process {
            process: 0,
            pid: 0,
            program: String::new(),
            allocator: String::new(),
            time: Time(0),
            beginning: Beginning::Executed,
        }))?;
        let threads: BTreeSet<u32> = self.calls.iter().map(|call| call.thread).collect();
        for thread in threads {
            writer.record(Record::Thread(Thread {
                process: 0,
                thread,
                tid: thread,
                time: Time(0),
            }))?;
        }
        // Current number of each block in the written trace, by the ID of the call that made the
        // block.
        let mut numbers = HashMap::new();
        let mut next = 0;
        for (place, call) in self.calls.iter().enumerate() {
            let old = call.block.and_then(|block| numbers.remove(&block));
            let operation = call.operation(old.unwrap_or(0));
            if let (true, Some(block)) = (operation.makes_block(), call.block) {
                numbers.insert(block, next);
                next += 1;
            }
            let step = Step {
                thread: call.thread,
                time: Time(place as u64 * Time::STEP),
                operation,
                stack: None,
            };
            writer.operation(0, step)?;
        }
        writer.finish()
    }
}

impl Call {
    /// Returns this call as an operation of the trace to write. `old` is the number that the call's
    /// block has in that trace before this call. Calls that make a block, and frees of null, ignore
    /// it.
    fn operation(&self, old: u64) -> Operation {
        match self.what {
            What::Make {
                function,
                size,
                alignment,
            } => Operation::Make {
                function,
                size,
                alignment,
            },
            What::Resize { function, size } => Operation::Resize {
                function,
                size,
                block: old,
            },
            What::Free { function } => Operation::Free {
                function,
                block: old,
            },
            What::FreeNull { function } => Operation::FreeNull { function },
        }
    }
}

impl Display for Script {
    /// Formats the program with one call a line. Blocks are numbered from 0 in the order in which
    /// they are made.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = BTreeMap::new();
        let name = |function: u8| {
            let name = self.recording.functions.get(usize::from(function));
            name.map_or("?", String::as_str)
        };
        for call in &self.calls {
            let next = numbers.len();
            let block = call
                .block
                .map(|block| *numbers.entry(block).or_insert(next));
            let block = block.map_or_else(|| "NULL".to_owned(), |number| format!("block{number}"));
            write!(f, "thread {}: ", call.thread)?;
            match call.what {
                What::Make {
                    function,
                    size,
                    alignment: 0,
                } => writeln!(f, "{block} = {}({size})", name(function)),
                What::Make {
                    function,
                    size,
                    alignment,
                } => writeln!(
                    f,
                    "{block} = {}({size}) aligned to {alignment}",
                    name(function)
                ),
                What::Resize { function, size } => {
                    writeln!(f, "{block} = {}({block}, {size})", name(function))
                }
                What::Free { function } | What::FreeNull { function } => {
                    writeln!(f, "{}({block})", name(function))
                }
            }?;
        }
        Ok(())
    }
}
