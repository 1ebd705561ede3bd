//! Merges several traces into one.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{Read, Write};

use crate::error::TraceError;
use crate::operation::{Operation, Step, Time};
use crate::reader::{Chunk, Ending, Reader};
use crate::records::{Beginning, Frame, Module, Record, Recording, Stack};
use crate::writer::Writer;

/// Maximum number of functions that a trace can name.
const MAX_FUNCTIONS: usize = u8::MAX as usize;

/// One of the merged traces.
struct Part<'a, R> {
    reader: &'a mut Reader<R>,
    /// Nanoseconds from the beginning of the earliest recording to the beginning of this one.
    shift: u64,
    /// New index of each function, indexed by the old one.
    functions: Vec<u8>,
    /// New number of each process. The key is the old number.
    processes: HashMap<u32, u32>,
    /// New number of each module, indexed by the old one.
    modules: Vec<u32>,
    /// New number of each stack, indexed by the old one.
    stacks: Vec<u32>,
    /// Latest time read so far, on the clock of the merged trace.
    reached: Time,
    ended: bool,
    /// Processor time of this trace's collector, in nanoseconds.
    collector_time: u64,
}

/// Numbers assigned in the merged trace so far.
#[derive(Default)]
struct All {
    /// Number of processes.
    processes: u32,
    /// Number of each module. Path and build ID are the key.
    modules: HashMap<(String, String), u32>,
    /// Number of each stack. The frames are the key.
    stacks: HashMap<Vec<Frame>, u32>,
}

/// Writes the processes of all traces as one trace. Processes, modules and stacks get new numbers
/// in the order in which they appear, and equal modules or stacks become one. Times count from the
/// beginning of the earliest recording.
///
/// # Errors
/// Returns an error if reading or writing fails, a trace is damaged, there is no trace, the traces
/// are of different architectures, page sizes or rates of sampling, or they name too many
/// functions.
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
                modules: Vec::new(),
                stacks: Vec::new(),
                reached: Time(0),
                ended: false,
                collector_time: 0,
            }
        })
        .collect();
    let mut writer = Writer::for_architecture(sink, &recording, architecture)?;
    let mut all = All::default();
    // Continue with the part that has been read up to the earliest time. The merged trace is thus
    // as well ordered by time as its parts.
    while let Some((place, part)) = parts
        .iter_mut()
        .enumerate()
        .filter(|(_, part)| !part.ended)
        .min_by_key(|(_, part)| part.reached)
    {
        let taken = part.chunk(&mut writer, &mut all);
        taken.map_err(|error| TraceError::Part {
            place,
            error: Box::new(error),
        })?;
    }
    writer.collector_time(parts.iter().map(|part| part.collector_time).sum());
    writer.finish()
}

/// Returns the description of the merged recording.
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
        if recording.sample_bytes != all.sample_bytes {
            return Err(TraceError::Merge("they were sampled at different rates"));
        }
        all.stack_bytes = match (all.stack_bytes, recording.stack_bytes) {
            // A trace without stacks has no rate, so it merges with any other.
            (0, bytes) | (bytes, 0) => bytes,
            (bytes, other) if bytes == other => bytes,
            _ => {
                return Err(TraceError::Merge(
                    "their stacks were sampled at different rates",
                ));
            }
        };
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
    /// Copies the next chunk, or records that the trace has ended.
    fn chunk<W: Write>(&mut self, writer: &mut Writer<W>, all: &mut All) -> Result<(), TraceError> {
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
                    if self.renumber(&mut record, all) {
                        writer.record(record)?;
                    }
                }
            }
            Some(Chunk::Operations(mut operations)) => {
                let process = new_number(operations.process, &mut self.processes, all);
                let mut outcome = Ok(());
                operations.visit(|step| {
                    let step = Step {
                        thread: step.thread,
                        time: later(step.time),
                        operation: with_function(step.operation, &self.functions),
                        stack: step.stack.map(|stack| self.stacks[stack as usize]),
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

    /// Gives a record its new numbers. Returns whether to write the record. Records about a whole
    /// trace are not copied, nor are modules and stacks that the merged trace contains already.
    fn renumber(&mut self, record: &mut Record, all: &mut All) -> bool {
        let mut renumber =
            |process: &mut u32| *process = new_number(*process, &mut self.processes, all);
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
            Record::Module(it) => return self.renumber_module(it, all),
            Record::Stack(it) => return self.renumber_stack(it, all),
            Record::Recording(_) | Record::Totals(_) => return false,
        }
        true
    }

    fn renumber_module(&mut self, module: &mut Module, all: &mut All) -> bool {
        let key = (module.path.clone(), module.build_id.clone());
        let (number, is_new) = intern(key, &mut all.modules);
        self.modules.push(number);
        module.module = number;
        is_new
    }

    fn renumber_stack(&mut self, stack: &mut Stack, all: &mut All) -> bool {
        for frame in &mut stack.frames {
            frame.module = frame.module.map(|module| self.modules[module as usize]);
        }
        let (number, is_new) = intern(stack.frames.clone(), &mut all.stacks);
        self.stacks.push(number);
        stack.stack = number;
        is_new
    }
}

/// Returns the new number of a process. Assigns the next free number if it has none yet.
fn new_number(old: u32, known: &mut HashMap<u32, u32>, all: &mut All) -> u32 {
    *known.entry(old).or_insert_with(|| {
        all.processes += 1;
        all.processes - 1
    })
}

/// Returns the number of an entry, and whether the entry is new. A new entry takes the next number.
fn intern<K: Eq + Hash>(key: K, known: &mut HashMap<K, u32>) -> (u32, bool) {
    let next = known.len() as u32;
    let number = *known.entry(key).or_insert(next);
    (number, number == next)
}

/// Returns an operation with its function's new index.
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
