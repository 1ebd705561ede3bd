//! Compiles a process of a trace into a program: a flat sequence of calls for each thread.
//!
//! Compiling reads the trace three times: to choose the process, to find the blocks that change
//! threads, and to write the program. It needs memory for the live blocks, and at most two bits for
//! each block that the process ever makes.

mod blocks;
mod emit;
mod functions;
mod slots;
mod streams;
mod survey;
mod table;

use std::fs::File;
use std::io::{self, Seek as _};
use std::os::unix::fs::FileExt as _;

use heapdrome_trace::{Chunk, Ending, Reader, Record, Recording, Step, TraceError};

use crate::options::Speed;
use crate::program::Header;
use emit::Emitter;
use survey::Surveyor;
use table::Table;

/// Reason why a trace cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The trace cannot be read.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// The trace has no operations of the requested process.
    #[error("the trace has no operations of process {asked}; it has those of {known}")]
    NoProcess {
        /// Number of the requested process.
        asked: u32,
        /// List of the numbers of the processes that have operations.
        known: String,
    },
    /// The trace is a sample of its program's calls, with one block for this number of requested
    /// bytes.
    #[error(
        "the trace is a sample, of one block for every {0} bytes requested, and a replay needs every call: \
         record the program again without sampling"
    )]
    Sampled(u64),
    /// No process of the trace has an operation.
    #[error("the trace has no operations to replay")]
    Empty,
    /// The trace frees the block with this number while it is not live.
    #[error("the trace is damaged: it frees block {0} twice")]
    Twice(u64),
    /// The trace has more objects of this kind, such as `threads`, than the engine supports.
    #[error("the trace has too many {0} to be replayed")]
    TooMany(&'static str),
    /// The program cannot be written.
    #[error("cannot write the compiled trace: {0}")]
    Output(#[from] io::Error),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Result of compiling a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The program's header.
    pub header: Header,
    /// Offset in bytes at which the trace is cut off, if it is. The operations before it were
    /// compiled.
    pub cut_off: Option<u64>,
}

/// A trace that is read several times.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a File,
    pub(crate) go_on: &'a dyn Fn() -> bool,
}

impl Source<'_> {
    fn reader(&self) -> Result<Reader<&File>, CompileError> {
        let mut file = self.file;
        file.rewind().map_err(TraceError::from)?;
        let reader = Reader::new(file)?;
        match reader.recording().sample_bytes {
            0 => Ok(reader),
            mean => Err(CompileError::Sampled(mean)),
        }
    }

    /// Calls `visit` with every step of a process, and with the number of the block that the step
    /// makes, if it makes one.
    pub(crate) fn visit(
        &self,
        process: u32,
        mut visit: impl FnMut(Step, u64) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let mut reader = self.reader()?;
        while let Some(chunk) = reader.next_chunk()? {
            let Chunk::Operations(mut operations) = chunk else {
                continue;
            };
            if operations.process != process {
                continue;
            }
            let (mut block, mut outcome) = (operations.first_block, Ok(()));
            operations.visit(|step| {
                if outcome.is_ok() {
                    outcome = visit(step, block);
                }
                block += u64::from(step.operation.makes_block());
            })?;
            outcome?;
            if !(self.go_on)() {
                return Err(CompileError::Interrupted);
            }
        }
        Ok(())
    }

    /// Returns the requested process, or the process with the most operations; the description of
    /// the recording; and the position at which the trace is cut off, if it is.
    pub(crate) fn choose(
        &self,
        asked: Option<u32>,
    ) -> Result<(u32, Recording, Option<u64>), CompileError> {
        let mut reader = self.reader()?;
        let mut counts: Table<u32, u64> = Table::default();
        while let Some(chunk) = reader.next_chunk()? {
            if let Chunk::Operations(operations) = chunk {
                *counts.entry(operations.process).or_default() += u64::from(operations.count);
            }
        }
        let cut_off = match reader.ending() {
            Some(Ending::CutOff { offset }) => Some(offset),
            _ => None,
        };
        // Of processes with equally many operations, choose the one with the lowest number.
        let most = counts
            .iter()
            .max_by_key(|(process, count)| (**count, u32::MAX - **process));
        let most = most.ok_or(CompileError::Empty)?;
        let process = asked.unwrap_or(*most.0);
        if !counts.contains_key(&process) {
            let mut known: Vec<_> = counts.keys().copied().collect();
            known.sort_unstable();
            let known: Vec<_> = known.iter().map(u32::to_string).collect();
            return Err(CompileError::NoProcess {
                asked: process,
                known: known.join(", "),
            });
        }
        Ok((process, reader.recording().clone(), cut_off))
    }
}

/// Checks the beginning of a trace.
///
/// # Errors
/// Returns an error if the file is no trace, is a trace of a newer heapdrome, or is a sample of its
/// program's calls.
pub fn check(trace: &File) -> Result<(), CompileError> {
    let go_on = &|| true;
    Source { file: trace, go_on }.reader().map(|_| ())
}

/// Returns the share of the recorded process's processor time that was spent in the allocator, from
/// 0 to 1; `None` if the trace cannot be read or does not contain the share.
#[must_use]
pub fn share_in_allocator(trace: &File, process: u32) -> Option<f64> {
    let go_on = &|| true;
    let source = Source { file: trace, go_on };
    let mut reader = source.reader().ok()?;
    let (mut calls, mut finish) = (0, None);
    while let Some(chunk) = reader.next_chunk().ok()? {
        match chunk {
            Chunk::Operations(operations) if operations.process == process => {
                calls += u64::from(operations.count);
            }
            Chunk::Operations(_) => {}
            Chunk::Records(records) => {
                let mut finishes = records.into_iter().filter_map(|record| match record {
                    Record::Finish(finish) if finish.process == process => Some(finish),
                    _ => None,
                });
                finish = finishes.next_back().or(finish);
            }
        }
    }
    finish?.share_in_allocator(calls)
}

/// Compiles a process of a trace into the file `program`. Without `process`, compiles the process
/// with the most operations. Calls `go_on` after each chunk of the process, and stops if it returns
/// false.
///
/// # Errors
/// Returns an error if the trace cannot be read, is damaged, is a sample, has no such process or
/// exceeds the engine's limits, if the program cannot be written, or if `go_on` returned false.
pub fn compile(
    trace: &File,
    process: Option<u32>,
    speed: Speed,
    program: &File,
    go_on: &dyn Fn() -> bool,
) -> Result<Compiled, CompileError> {
    let source = Source { file: trace, go_on };
    let (process, recording, cut_off) = source.choose(process)?;
    let mut surveyor = Surveyor::new(speed);
    source.visit(process, |step, block| {
        surveyor.step(step, block);
        Ok(())
    })?;
    let header = Header {
        speed,
        process,
        threads: 0,
        slots: 0,
        operations: 0,
        left_out: 0,
        live: 0,
        floor: 0,
        digest: 0,
        table: 0,
        bytes: 0,
    };
    let calls = functions::calls(&recording);
    let output = program.try_clone()?;
    let mut emitter = Emitter::new(header, surveyor.finish(), calls, output);
    source.visit(process, |step, block| emitter.step(step, block))?;
    let header = emitter.finish()?;
    program.write_all_at(&header.to_bytes(), 0)?;
    Ok(Compiled { header, cut_off })
}
