//! Counts the contents of a trace.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use crate::error::TraceError;
use crate::operation::{Operation, Step, Time};
use crate::reader::{Chunk, Ending, Reader};
use crate::records::{Beginning, Bypass, Finish, Process, Record};

/// Counts of one process.
#[derive(Clone, Debug, Default)]
pub struct ProcessSummary {
    /// Beginning of the process, if it is in the trace.
    pub process: Option<Process>,
    /// End of the process, if it is in the trace.
    pub finish: Option<Finish>,
    /// Number of threads that called an allocation function.
    pub threads: u64,
    /// Number of operations.
    pub operations: u64,
    /// Number of blocks that the process made.
    pub blocks: u64,
    /// Number of blocks that the process made and had not freed at its last operation in the trace.
    pub live_blocks: u64,
    /// Requested bytes of the blocks that the process made and had not freed at its last operation
    /// in the trace.
    pub live_bytes: u64,
    /// Maximum of requested live bytes, including inherited blocks.
    pub peak_live_bytes: u64,
}

/// Contents of a trace.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Way in which the trace ends.
    pub ending: Ending,
    /// Bytes of the trace that were read.
    pub bytes: u64,
    /// Number of operations of all processes.
    pub operations: u64,
    /// Size of all compressed chunks of operations in bytes, excluding headers.
    pub operation_bytes: u64,
    /// Size of all decompressed chunks of operations in bytes.
    pub operation_content: u64,
    /// The latest time in the trace.
    pub last: Time,
    /// The processes. The key is the number of the process in the trace.
    pub processes: BTreeMap<u32, ProcessSummary>,
    /// Processes of the command that were not recorded.
    pub bypassed: Vec<Bypass>,
    /// Number of stacks in the trace.
    pub stacks: u64,
    /// Number of operations with a stack.
    pub with_stack: u64,
    /// Number of modules in the trace.
    pub modules: u64,
}

/// A process while its operations are read.
#[derive(Default)]
struct Live {
    summary: ProcessSummary,
    sizes: HashMap<u64, u64>,
    /// Requested bytes of live blocks that the process made. In a hostile trace, their sum may not
    /// fit into 64 bits.
    bytes: u128,
    /// Requested bytes of live blocks that the process inherited.
    inherited: u128,
    /// Maximum of the sum of `bytes` and `inherited`.
    peak: u128,
}

impl Live {
    fn add(&mut self, step: &Step) {
        let summary = &mut self.summary;
        summary.operations += 1;
        if let Operation::Free { block, .. } | Operation::Resize { block, .. } = step.operation {
            self.bytes -= u128::from(self.sizes.remove(&block).unwrap_or(0));
        }
        if let Operation::FreeForeign {
            size: Some(size), ..
        } = step.operation
        {
            self.inherited = self.inherited.saturating_sub(size.into());
        }
        if let Operation::Make { size, .. } | Operation::Resize { size, .. } = step.operation {
            self.sizes.insert(summary.blocks, size);
            summary.blocks += 1;
            self.bytes += u128::from(size);
            self.peak = self.peak.max(self.bytes + self.inherited);
        }
    }

    fn begin(&mut self, process: Process) {
        if let Beginning::Forked { bytes, .. } = process.beginning {
            self.inherited = bytes.into();
            self.peak = self.peak.max(self.bytes + self.inherited);
        }
        self.summary.process = Some(process);
    }

    fn finished(mut self) -> ProcessSummary {
        let most = |bytes| u64::try_from(bytes).unwrap_or(u64::MAX);
        self.summary.live_blocks = self.sizes.len() as u64;
        self.summary.live_bytes = most(self.bytes);
        self.summary.peak_live_bytes = most(self.peak);
        self.summary
    }
}

/// Reads a trace to its end and counts its contents. Needs memory for the live blocks of each
/// process.
///
/// # Errors
/// Returns an error if reading fails or the trace is damaged.
pub fn summarize<R: Read>(reader: &mut Reader<R>) -> Result<Summary, TraceError> {
    let mut processes = BTreeMap::<u32, Live>::new();
    let (mut operation_bytes, mut operation_content) = (0, 0);
    let mut last = Time(0);
    let mut bypassed = Vec::new();
    let (mut stacks, mut with_stack, mut modules) = (0, 0, 0);
    while let Some(chunk) = reader.next_chunk()? {
        match chunk {
            Chunk::Records(records) => {
                for record in records {
                    last = last.max(record.time().unwrap_or_default());
                    modules += u64::from(matches!(record, Record::Module(_)));
                    stacks += u64::from(matches!(record, Record::Stack(_)));
                    note(record, &mut processes, &mut bypassed);
                }
            }
            Chunk::Operations(mut operations) => {
                operation_bytes += operations.bytes;
                operation_content += operations.content_bytes;
                let live = processes.entry(operations.process).or_default();
                operations.visit(|step| {
                    live.add(&step);
                    with_stack += u64::from(step.stack.is_some());
                    last = last.max(step.time);
                })?;
            }
        }
    }
    let finished = processes
        .into_iter()
        .map(|(number, live)| (number, live.finished()));
    let processes: BTreeMap<_, _> = finished.collect();
    Ok(Summary {
        ending: reader.ending().unwrap_or(Ending::CutOff { offset: 0 }),
        bytes: reader.bytes_read(),
        operations: processes.values().map(|it| it.operations).sum(),
        operation_bytes,
        operation_content,
        last,
        processes,
        bypassed,
        stacks,
        with_stack,
        modules,
    })
}

fn note(record: Record, processes: &mut BTreeMap<u32, Live>, bypassed: &mut Vec<Bypass>) {
    let process = match &record {
        Record::Process(it) => it.process,
        Record::Thread(it) => it.process,
        Record::Finish(it) => it.process,
        _ => {
            if let Record::Bypass(bypass) = record {
                bypassed.push(bypass);
            }
            return;
        }
    };
    let live = processes.entry(process).or_default();
    match record {
        Record::Process(it) => live.begin(it),
        Record::Thread(_) => live.summary.threads += 1,
        Record::Finish(it) => live.summary.finish = Some(it),
        _ => {}
    }
}
