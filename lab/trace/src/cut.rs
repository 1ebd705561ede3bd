//! Writes a part of a trace as a trace of its own.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};

use crate::error::TraceError;
use crate::operation::{Operation, Step, Time};
use crate::reader::{Chunk, Reader};
use crate::records::{Beginning, Finish, Process, Record, Thread};
use crate::writer::Writer;

/// A block that is live at the reader's position.
struct Block {
    thread: u32,
    function: u8,
    size: u64,
    alignment: u64,
    stack: Option<u32>,
    /// Number of the block in the new trace, once it has one.
    number: Option<u64>,
}

/// State of a process while its operations are read.
#[derive(Default)]
struct Cut {
    /// Records about the process and its threads that the new trace does not have yet.
    records: Vec<Record>,
    /// Whether the new trace contains the process.
    open: bool,
    /// Whether the process began, or called an allocation function, before the part's end.
    seen: bool,
    /// Whether the process began in the part.
    began_within: bool,
    finished: bool,
    /// Number of blocks that the process has made so far.
    made: u64,
    /// Number of blocks that the process has made in the new trace.
    written: u64,
    live: HashMap<u64, Block>,
    /// Number of inherited blocks that were freed before the part begins, and their size in bytes.
    inherited_freed: (u64, u64),
}

/// Interval of time. Includes its first time, and excludes its second one.
#[derive(Clone, Copy)]
struct Part(Time, Time);

impl Part {
    fn has_begun(self, time: Time) -> bool {
        time >= self.0
    }

    fn has(self, time: Time) -> bool {
        time >= self.0 && time < self.1
    }

    /// Converts `time` to the clock of the new trace. Returns 0 for times before the part.
    fn shifted(self, time: Time) -> Time {
        Time(time.0.saturating_sub(self.0.0))
    }
}

/// Writes a part of a trace as a new trace: the operations from `from`, rounded down to a multiple
/// of [`Time::STEP`], up to but excluding `to`. Time in the new trace begins at `from`. The new
/// trace first repeats the calls that made the blocks that are live at `from`. Processes keep their
/// numbers, and those that ended before `from` are omitted. If a process continues after `to`, the
/// new trace records that its recording stopped there.
///
/// # Errors
/// Returns an error if reading or writing fails, or if the trace is damaged.
pub fn cut<R: Read, W: Write>(
    reader: &mut Reader<R>,
    from: Time,
    to: Time,
    sink: W,
) -> Result<W, TraceError> {
    let part = Part(Time(from.0 / Time::STEP * Time::STEP), to);
    let mut recording = reader.recording().clone();
    recording.began = recording.began.saturating_add(part.0.0);
    let mut writer = Writer::for_architecture(sink, &recording, reader.architecture())?;
    let mut processes = BTreeMap::<u32, Cut>::new();
    while let Some(chunk) = reader.next_chunk()? {
        match chunk {
            Chunk::Records(records) => {
                for record in records {
                    keep(record, part, &mut processes, &mut writer)?;
                }
            }
            Chunk::Operations(mut operations) => {
                let number = operations.process;
                let process = processes.entry(number).or_default();
                let mut outcome = Ok(());
                operations.visit(|step| {
                    if outcome.is_ok() {
                        outcome = process.add(number, step, part, &mut writer);
                    }
                })?;
                outcome?;
            }
        }
    }
    for (number, process) in &mut processes {
        if process.seen && !process.finished {
            process.open(*number, part, &mut writer)?;
            writer.record(Record::Finish(stopped(*number, part)))?;
        }
    }
    writer.finish()
}

/// Returns the final record of a process that continues after the part. In the new trace, the
/// recording of that process stops at the part's end.
fn stopped(process: u32, part: Part) -> Finish {
    Finish {
        process,
        time: part.shifted(part.1),
        peak_resident: None,
        minor_faults: None,
        processor_time: None,
        waited: 0,
        gave_up: true,
        timed: None,
    }
}

/// Copies a record that the new trace needs. Keeps the records of a process and its threads in
/// `processes` until the process is written.
fn keep<W: Write>(
    mut record: Record,
    part: Part,
    processes: &mut BTreeMap<u32, Cut>,
    writer: &mut Writer<W>,
) -> Result<(), TraceError> {
    let time = record.time();
    if let Some(time) = record.time_mut() {
        *time = part.shifted(*time);
    }
    let within = time.is_none_or(|time| part.has(time));
    match record {
        Record::Recording(_) | Record::Totals(_) => Ok(()),
        // Modules and stacks keep their numbers, so all are needed.
        Record::Bypass(_) | Record::Module(_) | Record::Stack(_) => writer.record(record),
        Record::Resident(_) if !within => Ok(()),
        Record::Resident(resident) => {
            let process = processes.entry(resident.process).or_default();
            process.open(resident.process, part, writer)?;
            writer.record(record)
        }
        Record::Process(Process { process, .. }) | Record::Thread(Thread { process, .. }) => {
            if time.is_some_and(|time| time >= part.1) {
                return Ok(());
            }
            let is_beginning = matches!(record, Record::Process(_));
            let process = processes.entry(process).or_default();
            process.seen = true;
            process.began_within |= is_beginning && within;
            match process.open {
                true => writer.record(record),
                false => {
                    process.records.push(record);
                    Ok(())
                }
            }
        }
        Record::Finish(finish) => {
            let ended = time.is_some_and(|time| time < part.1);
            let process = processes.entry(finish.process).or_default();
            process.finish(finish, within, ended, part, writer)
        }
    }
}

impl Cut {
    /// Writes the process, its threads and its live blocks to the new trace, unless this was done
    /// before.
    fn open<W: Write>(
        &mut self,
        number: u32,
        part: Part,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        if std::mem::replace(&mut self.open, true) {
            return Ok(());
        }
        for mut record in self.records.drain(..) {
            if let Record::Process(process) = &mut record
                && let Beginning::Forked { blocks, bytes, .. } = &mut process.beginning
            {
                *blocks = blocks.saturating_sub(self.inherited_freed.0);
                *bytes = bytes.saturating_sub(self.inherited_freed.1);
            }
            writer.record(record)?;
        }
        let mut blocks: Vec<_> = self.live.iter_mut().collect();
        blocks.sort_unstable_by_key(|(old, _)| **old);
        for (_, block) in blocks {
            let operation = Operation::Make {
                function: block.function,
                size: block.size,
                alignment: block.alignment,
            };
            let (thread, time) = (block.thread, part.shifted(part.0));
            writer.operation(
                number,
                Step {
                    thread,
                    time,
                    operation,
                    stack: block.stack,
                },
            )?;
            block.number = Some(self.written);
            self.written += 1;
        }
        Ok(())
    }

    /// Handles the end of the process. `within` states whether it ended in the part, and `ended`
    /// whether it ended before the part's end.
    fn finish<W: Write>(
        &mut self,
        finish: Finish,
        within: bool,
        ended: bool,
        part: Part,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        self.finished = ended;
        if within {
            self.open(finish.process, part, writer)?;
            writer.record(Record::Finish(match self.began_within {
                true => finish,
                // These figures count from the beginning of the process, which lies before the
                // part.
                false => Finish {
                    peak_resident: None,
                    minor_faults: None,
                    processor_time: None,
                    timed: None,
                    ..finish
                },
            }))?;
        }
        if ended {
            self.live = HashMap::new();
        }
        Ok(())
    }

    /// Copies a step if it belongs to the part. Tracks the blocks of every step before the part's
    /// end.
    fn add<W: Write>(
        &mut self,
        number: u32,
        step: Step,
        part: Part,
        writer: &mut Writer<W>,
    ) -> Result<(), TraceError> {
        if step.time >= part.1 {
            return Ok(());
        }
        self.seen = true;
        let within = part.has_begun(step.time);
        if within {
            self.open(number, part, writer)?;
        }
        let operation = self.follow(step, within);
        if !within {
            return Ok(());
        }
        self.written += u64::from(operation.makes_block());
        let time = part.shifted(step.time);
        writer.operation(
            number,
            Step {
                time,
                operation,
                ..step
            },
        )
    }

    /// Tracks the blocks of a step, and returns the step's operation with block numbers of the new
    /// trace.
    fn follow(&mut self, step: Step, within: bool) -> Operation {
        let operation = match step.operation {
            Operation::Free { function, block } => match self.free(block) {
                Some(block) => Operation::Free { function, block },
                None => Operation::FreeForeign {
                    function,
                    size: None,
                },
            },
            Operation::Resize {
                function,
                size,
                block,
            } => match self.free(block) {
                Some(block) => Operation::Resize {
                    function,
                    size,
                    block,
                },
                None => Operation::Make {
                    function,
                    size,
                    alignment: 0,
                },
            },
            other => other,
        };
        match step.operation {
            Operation::Make {
                size, alignment, ..
            } => self.make(step, size, alignment, within),
            Operation::Resize { size, .. } => self.make(step, size, 0, within),
            Operation::FreeForeign { size, .. } if !within => {
                self.inherited_freed.0 += u64::from(size.is_some());
                self.inherited_freed.1 = self.inherited_freed.1.saturating_add(size.unwrap_or(0));
            }
            _ => {}
        }
        operation
    }

    /// Removes a live block. Returns the block's number in the new trace, if it has one.
    fn free(&mut self, block: u64) -> Option<u64> {
        self.live.remove(&block)?.number
    }

    fn make(&mut self, step: Step, size: u64, alignment: u64, within: bool) {
        let block = Block {
            thread: step.thread,
            function: step.operation.function(),
            size,
            alignment,
            stack: step.stack,
            number: within.then_some(self.written),
        };
        self.live.insert(self.made, block);
        self.made += 1;
    }
}
