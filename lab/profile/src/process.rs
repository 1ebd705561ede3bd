//! Profiles one process.

use std::collections::BTreeMap;

use heapdrome_trace::{Beginning, Finish, Operation, Process, Resident, Step};

use crate::amount::Amount;
use crate::blocks::{Live, Numbered};
use crate::classes::Classes;
use crate::counts::Counts;
use crate::growth::Suspect;
use crate::rounding::Rounding;
use crate::sampling::{Sampling, Variance, Weighed};
use crate::size_classes::LARGEST_SIZE;
use crate::stacks::{Event, Stacks};
use crate::timeline::{Cells, Timeline};

/// Largest plausible alignment. A request with a larger alignment, or one that is not a power of
/// two, counts as a request without one.
const LARGEST_ALIGNMENT: u64 = 1 << 30;

/// State of a process at the time when it had the most live bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peak {
    /// Live blocks, including inherited ones.
    pub live: Amount,
    /// Variance of `live`.
    pub variance: Variance,
    /// Live blocks that were inherited by fork.
    pub inherited: Amount,
    /// Time of the peak, in nanoseconds since the recording began.
    pub time: u64,
}

/// The profile of one program of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessProfile {
    /// The number of the process in the trace.
    pub number: u32,
    /// Beginning of the program, as the trace describes it.
    pub process: Option<Process>,
    /// End of the program, as the trace describes it; `None` if the trace ends before the program.
    pub finish: Option<Finish>,
    /// Times at which the program begins and ends in the trace, in nanoseconds since the recording
    /// began.
    pub span: [u64; 2],
    /// Number of threads that called an allocation function.
    pub threads: u64,
    /// State at the time when most bytes were live.
    pub peak: Peak,
    /// Maximum number of live blocks.
    pub most_blocks: u64,
    /// Maximum of the readings of resident memory, in bytes; `None` if it was never read.
    pub most_resident: Option<u64>,
    /// Calls, blocks and bytes.
    pub counts: Counts,
    /// Stacks whose live bytes only grow, the fastest growing first.
    pub suspects: Vec<Suspect>,
    /// Memory and calls over time. If there are many processes, empty for those with the lowest
    /// peaks.
    pub timeline: Timeline,
}

impl ProcessProfile {
    /// Returns whether the process was recorded until it ended.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.finish.as_ref().is_some_and(|finish| !finish.gave_up)
    }

    /// Returns the resident memory near the time of the peak. Returns `None` if it had not been
    /// read by then, or the process has no timeline.
    #[must_use]
    pub fn resident_at_peak(&self) -> Option<u64> {
        let point = self.timeline.at(self.peak.time)?;
        point.resident.map(|resident| resident.most)
    }
}

/// State of a process while its operations are read.
#[derive(Debug)]
pub(crate) struct Reading {
    profile: ProcessProfile,
    sampling: Sampling,
    blocks: Numbered<u64, Live>,
    /// Live blocks, including inherited ones.
    live: Amount,
    variance: Variance,
    inherited: Amount,
    /// Bytes that were requested so far.
    clock: u64,
    next_block: u64,
    /// For each thread, the block that the thread's latest operation made; `None` if that operation
    /// made no block. Not a hash table, because a hostile trace can choose the numbers of threads.
    threads: BTreeMap<u32, Option<u64>>,
    classes: Classes,
    stacks: Stacks,
    rounding: Rounding,
    cells: Cells,
    has_begun: bool,
}

impl Reading {
    pub(crate) fn new(number: u32, sampling: Sampling, stacks: Option<Sampling>) -> Self {
        Self {
            sampling,
            profile: ProcessProfile {
                number,
                ..ProcessProfile::default()
            },
            blocks: Numbered::default(),
            live: Amount::default(),
            variance: Variance::default(),
            inherited: Amount::default(),
            clock: 0,
            next_block: 0,
            threads: BTreeMap::new(),
            classes: Classes::default(),
            stacks: Stacks::new(sampling, stacks),
            rounding: Rounding::new(),
            cells: Cells::default(),
            has_begun: false,
        }
    }

    /// Records how the process began.
    pub(crate) fn begin(&mut self, process: Process) {
        let time = process.time.0;
        self.pass(time);
        self.stacks.begin(time);
        if let Beginning::Forked { blocks, bytes, .. } = process.beginning {
            self.inherited = Amount { blocks, bytes };
            self.live.add(self.inherited);
            self.rise(time);
        }
        self.cells.hold(time, self.live.bytes, self.live.blocks);
        self.profile.process = Some(process);
    }

    /// Records a reading of the process's resident memory.
    pub(crate) fn resident(&mut self, resident: Resident) {
        self.pass(resident.time.0);
        self.cells.resident(resident.time.0, resident.bytes);
        let most = &mut self.profile.most_resident;
        *most = Some(most.unwrap_or(0).max(resident.bytes));
    }

    pub(crate) fn next_block(&mut self, number: u64) {
        self.next_block = number;
    }

    /// Returns the latest time so far.
    pub(crate) fn now(&self) -> u64 {
        self.profile.span[1]
    }

    /// Counts an operation.
    pub(crate) fn step(&mut self, step: Step) {
        let (time, operation) = (step.time.0, step.operation);
        self.pass(time);
        let before = self.live;
        let made = operation.makes_block().then_some(self.next_block);
        let latest = self.threads.entry(step.thread).or_insert(None);
        let latest = std::mem::replace(latest, made);
        let calls = self.calls(&operation);
        let counted = self.profile.counts.call(operation.function(), calls);
        counted.failed += u64::from(matches!(operation, Operation::Fail { .. }));
        match operation {
            Operation::Make {
                size, alignment, ..
            } => self.make(&step, size, alignment, 0),
            Operation::Free { block, .. } => {
                // A sampled trace does not contain every call of a thread, so it shows no temporary
                // blocks.
                let is_temporary = latest == Some(block) && self.sampling.is_whole();
                if let Some(freed) = self.free(&step, block, is_temporary) {
                    let temporary = &mut self.profile.counts.temporary;
                    temporary.add(Amount::one(freed.size).filter(is_temporary));
                }
            }
            Operation::Resize { size, block, .. } => self.resize(&step, size, block),
            Operation::FreeNull { .. } => self.profile.counts.null_frees += 1,
            Operation::FreeForeign { size, .. } => self.free_foreign(size),
            Operation::Fail { size, .. } => {
                let largest = &mut self.profile.counts.largest_failed;
                *largest = size.max(*largest);
            }
        }
        self.rise(time);
        let [bytes, blocks] = [
            [before.bytes, self.live.bytes],
            [before.blocks, self.live.blocks],
        ];
        self.cells.call(time, calls, bytes, blocks);
    }

    /// Returns the number of calls that an operation stands for. In a sampled trace, only calls
    /// that returned a block count, because the number of other calls cannot be estimated.
    fn calls(&self, operation: &Operation) -> u64 {
        match *operation {
            _ if self.sampling.is_whole() => 1,
            Operation::Make { size, .. } | Operation::Resize { size, .. } => {
                let block = self.weigh(size.min(LARGEST_SIZE), self.next_block);
                block.amount.blocks
            }
            _ => 0,
        }
    }

    fn weigh(&self, size: u64, block: u64) -> Weighed {
        self.sampling.weigh(size, block)
    }

    /// Extends the span of the process to this time.
    fn pass(&mut self, time: u64) {
        let [from, to] = &mut self.profile.span;
        *from = if self.has_begun {
            time.min(*from)
        } else {
            time
        };
        *to = time.max(*to);
        self.has_begun = true;
    }

    /// Updates the maxima, and records a peak if the process has more live bytes now than ever
    /// before.
    fn rise(&mut self, time: u64) {
        let profile = &mut self.profile;
        profile.most_blocks = profile.most_blocks.max(self.live.blocks);
        let requested = self.live.bytes.saturating_sub(self.inherited.bytes);
        profile.counts.most_requested = profile.counts.most_requested.max(requested);
        if self.live.bytes > profile.peak.live.bytes {
            profile.peak = Peak {
                live: self.live,
                variance: self.variance,
                inherited: self.inherited,
                time,
            };
            self.classes.peak();
            self.stacks.peak();
        }
    }

    fn make(&mut self, step: &Step, size: u64, alignment: u64, resizes: u32) {
        let size = size.min(LARGEST_SIZE);
        let usable = alignment.is_power_of_two() && alignment <= LARGEST_ALIGNMENT;
        let alignment = if usable { alignment } else { 0 };
        let function = step.operation.function();
        let block = Live {
            size,
            alignment,
            time: step.time.0,
            clock: self.clock.saturating_add(size),
            thread: step.thread,
            stack: step.stack,
            resizes,
            function,
        };
        let Weighed { amount, variance } = self.weigh(size, self.next_block);
        self.clock = block.clock;
        self.stacks.made(Event {
            stack: step.stack,
            size,
            block: self.next_block,
            time: step.time.0,
        });
        self.blocks.insert(self.next_block, block);
        self.next_block += 1;
        self.live.add(amount);
        self.variance.add(variance);
        let counts = &mut self.profile.counts;
        counts.made.add(amount);
        counts.made_variance.add(variance);
        counts.recorded += 1;
        counts.sizes.count(size, amount);
        self.classes.made(function, size, amount);
        self.rounding.made(size, alignment, amount.blocks);
    }

    /// Frees a block and returns its data; `None` if the block is not live.
    fn free(&mut self, step: &Step, block: u64, is_temporary: bool) -> Option<Live> {
        let Some(freed) = self.blocks.remove(&block) else {
            self.profile.counts.repeated_frees += 1;
            return None;
        };
        self.stacks.freed(
            Event {
                stack: freed.stack,
                size: freed.size,
                block,
                time: step.time.0,
            },
            is_temporary,
        );
        let Weighed { amount, variance } = self.weigh(freed.size, block);
        self.live.subtract(amount);
        self.variance.subtract(variance);
        let counts = &mut self.profile.counts;
        counts.freed.add(amount);
        let is_by_other = freed.thread != step.thread;
        counts.freed_by_others.add(amount.filter(is_by_other));
        let lived = step.time.0.saturating_sub(freed.time);
        counts.lived_time.count(lived, amount);
        if self.sampling.is_whole() {
            let requested = self.clock.saturating_sub(freed.clock);
            counts.lived_bytes.count(requested, amount);
        }
        self.classes.freed(freed.function, freed.size, amount);
        self.rounding
            .freed(freed.size, freed.alignment, amount.blocks);
        Some(freed)
    }

    fn resize(&mut self, step: &Step, size: u64, block: u64) {
        let old = self.free(step, block, false);
        let resizes = old.map_or(0, |old| old.resizes.saturating_add(1));
        if let Some(old) = old.filter(|_| self.sampling.is_whole()) {
            let to = size.min(LARGEST_SIZE);
            self.profile.counts.resizes.count(old.size, to, resizes);
        }
        self.make(step, size, 0, resizes);
    }

    /// Counts the free of an inherited block if `size` is known, and otherwise the free of a block
    /// that the trace does not contain.
    fn free_foreign(&mut self, size: Option<u64>) {
        let counts = &mut self.profile.counts;
        let Some(size) = size else {
            counts.foreign_frees += 1;
            return;
        };
        let one = Amount::one(size);
        counts.inherited_freed.add(one);
        self.inherited.subtract(one);
        self.live.subtract(one);
    }

    /// Returns the profile, and the timeline for the sum over processes. A process without `finish`
    /// ends at `end`, the end of the trace.
    pub(crate) fn finish(mut self, finish: Option<Finish>, end: u64) -> (ProcessProfile, Cells) {
        let time = finish.as_ref().map_or(end, |finish| finish.time.0);
        self.pass(time.max(self.profile.span[1]));
        self.cells.end(self.profile.span[1], finish.is_some());
        let mut profile = self.profile;
        profile.threads = self.threads.len() as u64;
        for (number, block) in &self.blocks {
            let Weighed { amount, variance } = self.sampling.weigh(block.size, *number);
            profile.counts.left.add(amount);
            profile.counts.left_variance.add(variance);
        }
        profile.counts.inherited_left = self.inherited;
        profile.counts.classes = self.classes.finish();
        let (stacks, suspects) = self.stacks.finish(profile.span[1]);
        profile.counts.stacks = stacks;
        profile.suspects = suspects;
        profile.counts.rounded = self.rounding.counts;
        profile.timeline = self.cells.timeline();
        profile.finish = finish;
        (profile, self.cells)
    }
}
