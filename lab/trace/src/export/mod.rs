//! Exports traces in formats of other tools.

mod android;
mod malloc_bench;
mod text;

use std::collections::HashMap;
use std::io::{Read, Write};

use crate::error::TraceError;
use crate::operation::{Operation, Step};
use crate::reader::{Chunk, Reader};
use crate::records::Record;

pub use text::text;

/// Export format of another tool. An export contains one process, without failed calls and without
/// frees of blocks that are not live in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Lines of Android's `memory_replay`, and of `record_allocs` in its malloc debug.
    Android,
    /// The protocol buffer `Tracefile` of malloc-bench.
    MallocBench,
}

/// Numbers of operations that an export wrote, and of those that it omitted because its format
/// cannot express them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of written operations.
    pub operations: u64,
    /// Number of omitted calls that returned no block.
    pub failed: u64,
    /// Number of omitted frees of blocks that are not live in the trace.
    pub foreign: u64,
}

/// A live block and its name in the exported format.
#[derive(Clone, Copy)]
struct Block {
    /// Number of the block in the trace.
    number: u64,
    size: u64,
    alignment: u64,
    /// Number or address of the block in the exported format.
    name: u64,
}

/// A call, with names of blocks in the exported format.
enum Call {
    Make(Block),
    Free(Option<Block>),
    Resize(Block, Block),
}

/// Writer of one process's calls in an exported format.
trait Format {
    /// Records the system's ID of a thread.
    fn thread(&mut self, _thread: u32, _tid: u32) {}
    /// Returns a name for the block with this number and size.
    fn name(&mut self, number: u64, size: u64) -> u64;
    /// Records that a block is freed, so that another block may get its name.
    fn freed(&mut self, _block: Block) {}
    fn call(&mut self, thread: u32, function: &str, call: &Call) -> std::io::Result<()>;
    /// Writes the end of the export. `live` contains the blocks that were never freed.
    fn finish(&mut self, live: Vec<Block>) -> std::io::Result<()>;
}

/// Writes one process of a trace in the format of another tool.
///
/// # Errors
/// Returns an error if reading or writing fails, or if the trace is damaged.
pub fn export<R: Read, W: Write>(
    reader: &mut Reader<R>,
    process: u32,
    format: Foreign,
    mut sink: W,
) -> Result<Exported, TraceError> {
    match format {
        Foreign::Android => run(reader, process, &mut android::Lines::new(&mut sink)),
        Foreign::MallocBench => run(reader, process, &mut malloc_bench::File::new(&mut sink)),
    }
}

fn run<R: Read>(
    reader: &mut Reader<R>,
    process: u32,
    format: &mut impl Format,
) -> Result<Exported, TraceError> {
    let functions = reader.recording().functions.clone();
    let mut state = State::default();
    while let Some(chunk) = reader.next_chunk()? {
        match chunk {
            Chunk::Records(records) => {
                for record in records {
                    if let Record::Thread(thread) = record
                        && thread.process == process
                    {
                        format.thread(thread.thread, thread.tid);
                    }
                }
            }
            Chunk::Operations(mut operations) if operations.process == process => {
                let mut outcome = Ok(());
                operations.visit(|step| {
                    if outcome.is_ok() {
                        let function = &functions[usize::from(step.operation.function())];
                        outcome = state.step(step, function, format);
                    }
                })?;
                outcome?;
            }
            // Other processes are skipped. The reader then does not check the numbers of their
            // blocks.
            Chunk::Operations(_) => {}
        }
    }
    let mut live: Vec<_> = state.live.into_values().collect();
    live.sort_unstable_by_key(|block| block.number);
    format.finish(live)?;
    Ok(state.exported)
}

#[derive(Default)]
struct State {
    live: HashMap<u64, Block>,
    made: u64,
    exported: Exported,
}

impl State {
    fn step(
        &mut self,
        step: Step,
        function: &str,
        format: &mut impl Format,
    ) -> std::io::Result<()> {
        let call = match step.operation {
            Operation::Make {
                size, alignment, ..
            } => Call::Make(self.make(size, alignment, format)),
            Operation::Resize { size, block, .. } => match self.live.remove(&block) {
                Some(old) => {
                    format.freed(old);
                    Call::Resize(old, self.make(size, 0, format))
                }
                None => Call::Make(self.make(size, 0, format)),
            },
            Operation::Free { block, .. } => match self.live.remove(&block) {
                Some(block) => {
                    format.freed(block);
                    Call::Free(Some(block))
                }
                None => {
                    self.exported.foreign += 1;
                    return Ok(());
                }
            },
            Operation::FreeNull { .. } => Call::Free(None),
            Operation::FreeForeign { .. } => {
                self.exported.foreign += 1;
                return Ok(());
            }
            Operation::Fail { .. } => {
                self.exported.failed += 1;
                return Ok(());
            }
        };
        self.exported.operations += 1;
        format.call(step.thread, function, &call)
    }

    fn make(&mut self, size: u64, alignment: u64, format: &mut impl Format) -> Block {
        let number = self.made;
        self.made += 1;
        let block = Block {
            number,
            size,
            alignment,
            name: format.name(number, size),
        };
        self.live.insert(number, block);
        block
    }
}
