//! Reads and writes traces, which contain the calls of allocation functions by the processes of a
//! command. The calls of each process are in the order of time.
//!
//! A trace is a header and a sequence of chunks, each compressed and checksummed by itself. It can
//! be read up to the last complete chunk, however its recording ended. `docs/trace-format.md`
//! describes every byte.
//!
//! ```
//! use heapdrome_trace::{Operation, Reader, Recording, Step, Time, Writer};
//!
//! # fn main() -> Result<(), heapdrome_trace::TraceError> {
//! let functions = vec!["malloc".into(), "free".into()];
//! let recording = Recording { functions, ..Recording::default() };
//! let mut writer = Writer::new(Vec::new(), &recording)?;
//! let made = Operation::Make { function: 0, size: 100, alignment: 0 };
//! writer.operation(0, Step { thread: 0, time: Time(160), operation: made, stack: None })?;
//! let freed = Operation::Free { function: 1, block: 0 };
//! writer.operation(0, Step { thread: 0, time: Time(320), operation: freed, stack: None })?;
//! let file = writer.finish()?;
//!
//! let mut reader = Reader::new(&file[..])?;
//! let mut steps = Vec::new();
//! while let Some(chunk) = reader.next_chunk()? {
//!     chunk.visit(|_process, step| steps.push(step))?;
//! }
//! assert_eq!(steps[1].operation, freed);
//! # Ok(())
//! # }
//! ```
//!
//! This crate contains no unsafe code. For a damaged or hostile file, the reader returns an error
//! with the offset of the damage.

#![forbid(unsafe_code)]

mod cut;
mod decode;
mod encode;
mod error;
mod export;
mod known;
mod layout;
mod merge;
mod operation;
#[cfg(test)]
mod page;
mod reader;
mod records;
mod summary;
mod varint;
mod writer;

pub use cut::cut;
pub use error::{Damage, TraceError};
pub use export::{Exported, Foreign, export, text};
pub use layout::{Architecture, VERSION};
pub use merge::merge;
pub use operation::{Operation, Step, Time};
pub use reader::{Chunk, Ending, Operations, Reader};
pub use records::{
    Beginning, Bypass, Finish, Frame, LargeCalls, Module, Process, Record, Recording, Resident,
    Stack, Thread, TimedCalls, Totals,
};
pub use summary::{ProcessSummary, Summary, summarize};
pub use writer::Writer;
