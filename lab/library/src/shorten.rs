//! Counts the operations of a trace, and writes its first operations as a separate trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use heapdrome_trace::{Chunk, Reader, Time, TraceError, cut};

/// Returns the number of operations of a trace. If any process has more than `most` operations,
/// also returns the earliest time at which a process performs its operation number `most + 1`.
fn count(trace: &Path, most: u64) -> Result<(u64, Option<Time>), TraceError> {
    let mut reader = Reader::new(File::open(trace)?)?;
    let mut counts = BTreeMap::<u32, u64>::new();
    let mut end: Option<Time> = None;
    while let Some(chunk) = reader.next_chunk()? {
        let Chunk::Operations(mut operations) = chunk else {
            continue;
        };
        let own = counts.entry(operations.process).or_default();
        operations.visit(|step| {
            *own += 1;
            if *own == most + 1 && end.is_none_or(|end| step.time < end) {
                end = Some(step.time);
            }
        })?;
    }
    Ok((counts.values().sum(), end))
}

/// Writes the beginning of a trace to another file, so that no process has more than `most`
/// operations. Returns the time at which the trace was cut off. If no process has more than `most`,
/// returns `None` and writes no file.
pub(crate) fn shorten(trace: &Path, most: u64, to: &Path) -> Result<Option<Time>, TraceError> {
    let (_, end) = count(trace, most)?;
    if let Some(end) = end {
        let mut reader = Reader::new(File::open(trace)?)?;
        let file = std::io::BufWriter::new(File::create_new(to)?);
        cut(&mut reader, Time(0), end, file)?
            .into_inner()
            .map_err(|error| error.into_error())?;
    }
    Ok(end)
}

/// Returns the number of operations of a trace.
pub(crate) fn operations(trace: &Path) -> Result<u64, TraceError> {
    Ok(count(trace, u64::MAX - 1)?.0)
}
