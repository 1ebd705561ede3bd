//! Profiles a trace in one pass.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use heapdrome_trace::{
    Architecture, Bypass, Chunk, Ending, Finish, Reader, Record, Recording, TraceError,
};

use heapdrome_symbols::Symbols;

use crate::process::{ProcessProfile, Reading};
use crate::sampling::Sampling;
use crate::stacks::Code;
use crate::sum::{All, Sum};
use crate::timeline::Timeline;

/// Maximum number of processes with a timeline. Those with the highest peaks have one.
const TIMELINES: usize = 32;

/// Findings of one pass over a trace.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Description of the recording, such as its command and the names of allocation functions.
    pub recording: Recording,
    /// The architecture of the machine that recorded.
    pub architecture: Architecture,
    /// Ending of the trace, which may be cut off.
    pub ending: Ending,
    /// The processes, sorted by their numbers in the trace.
    pub processes: Vec<ProcessProfile>,
    /// Files of code and frames of the recorded stacks.
    pub code: Code,
    /// Names of the functions in the stacks of `code`; empty until
    /// [`name_code`](Self::name_code) has been called.
    pub symbols: Symbols,
    /// Processes of the command that were not recorded.
    pub bypassed: Vec<Bypass>,
    /// Sums and bounds of the figures of all processes.
    pub all: All,
}

impl Profile {
    /// Returns the parameters of the sample of blocks.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        Sampling::of_blocks(&self.recording)
    }

    /// Returns the name of an allocation function by its index; `?` if the recording has no such
    /// name.
    #[must_use]
    pub fn function(&self, function: u8) -> &str {
        let name = self.recording.functions.get(usize::from(function));
        name.map_or("?", String::as_str)
    }

    /// Returns the page size of the machine that recorded, in bytes; 4096 if the recording does
    /// not contain it.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        match self.recording.page_bytes {
            0 => 4096,
            bytes => bytes,
        }
    }

    /// Returns whether the trace has stacks.
    #[must_use]
    pub fn has_stacks(&self) -> bool {
        !self.code.stacks.is_empty()
    }

    /// Reads the names of the functions in the stacks from the files of code on this machine, and
    /// from their debug information in the folder `debug`.
    pub fn name_code(&mut self, debug: &Path) {
        let stacks = self.all.counts.stacks.iter();
        let stacks = stacks.filter_map(|one| self.code.stacks.get(one.stack? as usize));
        let frames = stacks.flatten().copied();
        self.symbols = Symbols::find(&self.code.modules, frames, debug);
    }

    /// Returns the process with the most live bytes at one time; `None` if the trace has no
    /// process.
    #[must_use]
    pub fn largest(&self) -> Option<&ProcessProfile> {
        let processes = self.processes.iter();
        processes.max_by_key(|process| process.peak.live.bytes)
    }
}

/// Reads a trace to its end and profiles it.
///
/// # Errors
/// Returns an error if reading fails or the trace is damaged. A trace that was cut off is no error.
pub fn profile<R: Read>(mut reader: Reader<R>) -> Result<Profile, TraceError> {
    let mut pass = Pass {
        sampling: Sampling::of_blocks(reader.recording()),
        with_stack: Sampling::of_stacks(reader.recording()),
        ..Pass::default()
    };
    while let Some(chunk) = reader.next_chunk()? {
        match chunk {
            Chunk::Records(records) => records.into_iter().for_each(|record| pass.record(record)),
            Chunk::Operations(mut operations) => {
                let process = pass.process(operations.process);
                process.next_block(operations.first_block);
                operations.visit(|step| process.step(step))?;
                let now = process.now();
                pass.now = pass.now.max(now);
            }
        }
    }
    let ending = reader.ending().unwrap_or(Ending::CutOff { offset: 0 });
    let (recording, architecture) = (reader.recording().clone(), reader.architecture());
    pass.finish_all();
    let mut processes = pass.finished;
    processes.sort_by_key(|process| process.number);
    Ok(Profile {
        recording,
        architecture,
        ending,
        processes,
        code: pass.code,
        symbols: Symbols::default(),
        bypassed: pass.bypassed,
        all: pass.sum.finish(),
    })
}

/// State of the pass over a trace, from which the profile is made.
#[derive(Default)]
struct Pass {
    sampling: Sampling,
    /// Parameters of the sample of blocks with a stack; `None` if no stacks were recorded.
    with_stack: Option<Sampling>,
    code: Code,
    running: BTreeMap<u32, Reading>,
    finished: Vec<ProcessProfile>,
    /// Indices in `finished` of the processes that have a timeline.
    with_timeline: Vec<usize>,
    bypassed: Vec<Bypass>,
    sum: Sum,
    /// The latest time in the trace so far.
    now: u64,
}

impl Pass {
    fn process(&mut self, number: u32) -> &mut Reading {
        let running = self.running.entry(number);
        running.or_insert_with(|| Reading::new(number, self.sampling, self.with_stack))
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Process(process) => {
                self.now = self.now.max(process.time.0);
                self.process(process.process).begin(process);
            }
            Record::Resident(resident) => {
                self.now = self.now.max(resident.time.0);
                self.process(resident.process).resident(resident);
            }
            Record::Finish(finish) => {
                self.now = self.now.max(finish.time.0);
                self.process(finish.process);
                self.finish(finish.process, Some(finish));
            }
            Record::Bypass(bypass) => self.bypassed.push(bypass),
            Record::Module(module) => self.code.modules.push(module),
            Record::Stack(stack) => self.code.stacks.push(stack.frames),
            Record::Recording(_) | Record::Thread(_) | Record::Totals(_) => {}
        }
    }

    /// Ends all processes that the trace does not end.
    fn finish_all(&mut self) {
        let running: Vec<u32> = self.running.keys().copied().collect();
        running
            .into_iter()
            .for_each(|number| self.finish(number, None));
    }

    fn finish(&mut self, number: u32, finish: Option<Finish>) {
        let Some(reading) = self.running.remove(&number) else {
            return;
        };
        let (profile, cells) = reading.finish(finish, self.now);
        self.sum.add(&profile, cells);
        self.with_timeline.push(self.finished.len());
        self.finished.push(profile);
        if self.with_timeline.len() > TIMELINES {
            let peak = |place: &usize| self.finished[*place].peak.live.bytes;
            let smallest = (0..self.with_timeline.len())
                .min_by_key(|entry| peak(&self.with_timeline[*entry]))
                .unwrap_or_default();
            let place = self.with_timeline.swap_remove(smallest);
            self.finished[place].timeline = Timeline::default();
        }
    }
}
