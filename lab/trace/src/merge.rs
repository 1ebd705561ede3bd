//! Several traces as one.

use std::collections::HashMap;
use std::io::{Read, Write};

use crate::error::TraceError;
use crate::operation::{Operation, Step, Time};
use crate::reader::{Chunk, Ending, Reader};
use crate::records::{Beginning, Record, Recording};
use crate::writer::Writer;

/// Maximum number of functions that a trace can name.
const MAX_FUNCTIONS: usize = u8::MAX as usize;

/// One of the traces.
struct Part<'a, R> {
    reader: &'a mut Reader<R>,
    /// Nanoseconds by which it began after the first of them.
    shift: u64,
    /// The new place of each function.
    functions: Vec<u8>,
    /// The new number of each process.
    processes: HashMap<u32, u32>,
    /// The latest time up to which it was read, of the merged clock.
    reached: Time,
    ended: bool,
    /// Processor time of its collector, in nanoseconds.
    collector_time: u64,
}

/// Writes the processes of all traces as one trace. Processes are numbered anew, in the order in
/// which they appear. Times count from the beginning of the earliest recording.
///
/// # Errors
/// If reading or writing fails, a trace is damaged, the traces are of different architectures or
/// page sizes, or they name too many functions.
pub fn merge<R: Read, W: Write>(readers: &mut [Reader<R>], sink: W) -> Result<W, TraceError> {
    let recording = together(readers)?;
    let architecture = readers[0].architecture();
    let place = |name: &String| recording.functions.iter().position(|known| known == name);
    let mut parts: Vec<_> = readers
        .iter_mut()
        .map(|reader| {
            let own = reader.recording();
            let functions = own.functions.iter().filter_map(place);
            Part {
                shift: own.began - recording.began,
                functions: functions.map(|place| place as u8).collect(),
                reader,
                processes: HashMap::new(),
                reached: Time(0),
                ended: false,
                collector_time: 0,
            }
        })
        .collect();
    let mut writer = Writer::for_architecture(sink, &recording, architecture)?;
    let mut processes = 0;
    // The part that lags behind goes on, so that the new trace is in the order of time as far as
    // the old ones are.
    while let Some((place, part)) = parts
        .iter_mut()
        .enumerate()
        .filter(|(_, part)| !part.ended)
        .min_by_key(|(_, part)| part.reached)
    {
        let taken = part.chunk(&mut writer, &mut processes);
        taken.map_err(|error| TraceError::Part {
            place,
            error: Box::new(error),
        })?;
    }
    writer.collector_time(parts.iter().map(|part| part.collector_time).sum());
    writer.finish()
}

/// What was recorded, in all traces together.
fn together<R: Read>(readers: &[Reader<R>]) -> Result<Recording, TraceError> {
    let Some(first) = readers.first() else {
        return Err(TraceError::Merge("there is none"));
    };
    let mut all = first.recording().clone();
    for reader in &readers[1..] {
        let recording = reader.recording();
        if reader.architecture() != first.architecture() {
            return Err(TraceError::Merge("they are of different architectures"));
        }
        if recording.page_bytes != all.page_bytes {
            return Err(TraceError::Merge(
                "their machines have different page sizes",
            ));
        }
        all.began = all.began.min(recording.began);
        all.command.push("&".to_owned());
        all.command.extend(recording.command.iter().cloned());
        for (own, other) in [
            (&mut all.allocator, &recording.allocator),
            (&mut all.heapdrome, &recording.heapdrome),
        ] {
            if !own.split(", ").any(|known| known == other) {
                *own = format!("{own}, {other}");
            }
        }
        for name in &recording.functions {
            if !all.functions.contains(name) {
                all.functions.push(name.clone());
            }
        }
    }
    match all.functions.len() {
        0..=MAX_FUNCTIONS => Ok(all),
        _ => Err(TraceError::Merge("together they name too many functions")),
    }
}

impl<R: Read> Part<'_, R> {
    /// Takes the next chunk over, or notes that there is none.
    fn chunk<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        processes: &mut u32,
    ) -> Result<(), TraceError> {
        let shift = self.shift;
        let later = |time: Time| Time(time.0.saturating_add(shift));
        match self.reader.next_chunk()? {
            None => {
                self.ended = true;
                if let Some(Ending::Complete(totals)) = self.reader.ending() {
                    writer.repaired(totals.repaired);
                    self.collector_time = totals.collector_time;
                }
            }
            Some(Chunk::Records(records)) => {
                for mut record in records {
                    if let Some(time) = record.time_mut() {
                        *time = later(*time);
                        self.reached = self.reached.max(*time);
                    }
                    if renumber(&mut record, &mut self.processes, processes) {
                        writer.record(record)?;
                    }
                }
            }
            Some(Chunk::Operations(mut operations)) => {
                let process = new_number(operations.process, &mut self.processes, processes);
                let mut outcome = Ok(());
                operations.visit(|step| {
                    let step = Step {
                        thread: step.thread,
                        time: later(step.time),
                        operation: with_function(step.operation, &self.functions),
                    };
                    self.reached = self.reached.max(step.time);
                    if outcome.is_ok() {
                        outcome = writer.operation(process, step);
                    }
                })?;
                outcome?;
            }
        }
        Ok(())
    }
}

/// The new number of a process; the next free one if it has none yet.
fn new_number(old: u32, known: &mut HashMap<u32, u32>, next: &mut u32) -> u32 {
    *known.entry(old).or_insert_with(|| {
        *next += 1;
        *next - 1
    })
}

/// Gives a record the new numbers. Returns whether the merged trace has it: what is said of a whole
/// trace is said anew.
fn renumber(record: &mut Record, known: &mut HashMap<u32, u32>, next: &mut u32) -> bool {
    let mut renumber = |process: &mut u32| *process = new_number(*process, known, next);
    match record {
        Record::Process(it) => {
            if let Beginning::Forked { parent, .. } = &mut it.beginning {
                renumber(parent);
            }
            renumber(&mut it.process);
        }
        Record::Thread(it) => renumber(&mut it.process),
        Record::Resident(it) => renumber(&mut it.process),
        Record::Finish(it) => renumber(&mut it.process),
        Record::Bypass(_) => {}
        Record::Recording(_) | Record::Totals(_) => return false,
    }
    true
}

/// An operation by the new place of its function.
fn with_function(mut operation: Operation, functions: &[u8]) -> Operation {
    let function = match &mut operation {
        Operation::Make { function, .. }
        | Operation::Free { function, .. }
        | Operation::Resize { function, .. }
        | Operation::FreeNull { function }
        | Operation::FreeForeign { function, .. }
        | Operation::Fail { function, .. } => function,
    };
    *function = functions[usize::from(*function)];
    operation
}
