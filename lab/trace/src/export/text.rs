//! Writes a trace as text, in the form that `docs/trace-format.md` describes.

use std::io::{Read, Write};

use super::Exported;
use crate::error::TraceError;
use crate::operation::{Operation, Step};
use crate::reader::{Chunk, Reader};
use crate::records::Record;

/// Writes a trace as text, with one line for each record and each operation. If `process` is given,
/// omits the operations of other processes.
///
/// # Errors
/// Returns an error if reading or writing fails, or if the trace is damaged.
pub fn text<R: Read, W: Write>(
    reader: &mut Reader<R>,
    process: Option<u32>,
    mut sink: W,
) -> Result<Exported, TraceError> {
    let recording = reader.recording().clone();
    record(&mut sink, &Record::Recording(recording.clone()))?;
    let mut exported = Exported::default();
    while let Some(chunk) = reader.next_chunk()? {
        match chunk {
            Chunk::Records(records) => {
                for it in records {
                    record(&mut sink, &it)?;
                }
            }
            Chunk::Operations(operations)
                if process.is_some_and(|process| process != operations.process) => {}
            Chunk::Operations(mut operations) => {
                let (number, mut next) = (operations.process, operations.first_block);
                let mut outcome = Ok(());
                operations.visit(|step| {
                    if outcome.is_ok() {
                        let function = &recording.functions[usize::from(step.operation.function())];
                        outcome = line(&mut sink, number, step, function, next);
                        next += u64::from(step.operation.makes_block());
                        exported.operations += 1;
                    }
                })?;
                outcome?;
            }
        }
    }
    sink.flush()?;
    Ok(exported)
}

fn record(sink: &mut impl Write, record: &Record) -> Result<(), TraceError> {
    let json = serde_json::to_string(record).map_err(std::io::Error::from)?;
    Ok(writeln!(sink, "# {json}")?)
}

/// Writes the line of an operation. `next` is the number of the block that the operation makes, if
/// it makes one.
fn line(
    sink: &mut impl Write,
    process: u32,
    step: Step,
    function: &str,
    next: u64,
) -> std::io::Result<()> {
    let Step {
        thread,
        time,
        operation,
        stack,
    } = step;
    write!(sink, "{} {process} {thread} ", time.0)?;
    match operation {
        Operation::Make {
            size, alignment, ..
        } => write!(sink, "make {function} {next} {size} {alignment}"),
        Operation::Free { block, .. } => write!(sink, "free {function} {block}"),
        Operation::Resize { size, block, .. } => {
            write!(sink, "resize {function} {next} {size} {block}")
        }
        Operation::FreeNull { .. } => write!(sink, "free-null {function}"),
        Operation::FreeForeign { size, .. } => match size {
            Some(size) => write!(sink, "free-foreign {function} {size}"),
            None => write!(sink, "free-foreign {function} -"),
        },
        Operation::Fail {
            size, alignment, ..
        } => write!(sink, "fail {function} {size} {alignment}"),
    }?;
    match stack {
        Some(stack) => writeln!(sink, " {stack}"),
        None => writeln!(sink),
    }
}
