//! Groups blocks by the stack that requested them, counts those that were live at the peak, and
//! follows the live bytes of each stack.

use heapdrome_trace::{Frame, Module};

use crate::amount::Amount;
use crate::blocks::Numbered;
use crate::growth::{Candidate, Grid, Series, Suspect, suspects};
use crate::sampling::{Sampling, Variance, Weighed};

/// The stacks of a trace, and the files of code to which they refer.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The files of code, indexed by their numbers in the trace.
    pub modules: Vec<Module>,
    /// The frames of each stack, innermost first, indexed by the stack's number in the trace.
    pub stacks: Vec<Vec<Frame>>,
}

/// Blocks of one stack. If stacks were recorded only for a sample of the recorded blocks, the
/// blocks with a stack represent all blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StackUse {
    /// Number of the stack in the trace; `None` for blocks without a stack.
    pub stack: Option<u32>,
    /// Blocks that were requested.
    pub made: Amount,
    /// Blocks that were live when their process had the most live bytes.
    pub at_peak: Amount,
    /// Variance of `at_peak`.
    pub at_peak_variance: Variance,
    /// Blocks that were freed by the next call of the thread that made them, except resized ones;
    /// none in a sampled trace.
    pub temporary: Amount,
    /// Blocks that were live when their process ended.
    pub left: Amount,
}

impl StackUse {
    /// Adds the blocks of `other`. Keeps the number of this stack.
    pub fn add(&mut self, other: &Self) {
        self.made.add(other.made);
        self.at_peak.add(other.at_peak);
        self.at_peak_variance.add(other.at_peak_variance);
        self.temporary.add(other.temporary);
        self.left.add(other.left);
    }
}

/// The stacks of one process.
///
/// The blocks at the peak are derived as in [`Classes`](crate::classes::Classes).
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    sampling: Option<Sampling>,
    /// Whether blocks without a stack count separately, because the blocks with a stack do not
    /// represent them.
    counts_others: bool,
    /// Indices in `entries`, by stack. The key `u32::MAX` is for blocks without a stack.
    places: Numbered<u32, u32>,
    entries: Vec<Entry>,
    touched: Vec<u32>,
    grid: Grid,
}

#[derive(Debug)]
struct Entry {
    of: StackUse,
    left_variance: Variance,
    /// Live blocks now, minus those at the peak, modulo 2^64.
    since: Amount,
    since_variance: Variance,
    is_touched: bool,
    series: Series,
}

/// The making or the freeing of a block.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub stack: Option<u32>,
    pub size: u64,
    /// Number of the block in the trace.
    pub block: u64,
    /// Time at which the block is made or freed.
    pub time: u64,
}

impl Stacks {
    /// Creates the stacks of a process. `blocks` is the sample of all blocks, and `stacks` is the
    /// sample of blocks with a stack.
    pub(crate) fn new(blocks: Sampling, stacks: Option<Sampling>) -> Self {
        Self {
            sampling: stacks,
            counts_others: stacks == Some(blocks),
            ..Self::default()
        }
    }

    /// Records when the process began.
    pub(crate) fn begin(&mut self, time: u64) {
        self.grid.begin(time);
    }

    /// Counts a block that was made.
    pub(crate) fn made(&mut self, event: Event) {
        let Some((entry, weighed)) = self.entry(event) else {
            return;
        };
        entry.of.made.add(weighed.amount);
        entry.of.left.add(weighed.amount);
        entry.left_variance.add(weighed.variance);
        entry.since = entry.since.wrapping_add(weighed.amount);
        entry.since_variance.add(weighed.variance);
        self.note(event);
    }

    /// Counts a block that was freed.
    pub(crate) fn freed(&mut self, event: Event, is_temporary: bool) {
        let Some((entry, weighed)) = self.entry(event) else {
            return;
        };
        entry.of.left.subtract(weighed.amount);
        entry.left_variance.subtract(weighed.variance);
        entry.since = entry.since.wrapping_sub(weighed.amount);
        entry.since_variance.subtract(weighed.variance);
        entry.of.temporary.add(weighed.amount.filter(is_temporary));
        self.note(event);
    }

    /// Records that the process has more live bytes now than ever before.
    pub(crate) fn peak(&mut self) {
        for place in self.touched.drain(..) {
            let entry = &mut self.entries[place as usize];
            entry.since = Amount::default();
            entry.since_variance = Variance::default();
            entry.is_touched = false;
        }
    }

    /// Returns the entry of the stack of a block that is made or freed, and the amounts that the
    /// block represents. Adds the entry to `touched`. Returns `None` if the block does not count.
    fn entry(&mut self, event: Event) -> Option<(&mut Entry, Weighed)> {
        let sampling = self.sampling?;
        if event.stack.is_none() && !self.counts_others {
            return None;
        }
        let next = self.entries.len() as u32;
        let key = event.stack.unwrap_or(u32::MAX);
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.entries.push(Entry::new(event.stack));
        }
        let entry = &mut self.entries[place as usize];
        if !std::mem::replace(&mut entry.is_touched, true) {
            self.touched.push(place);
        }
        Some((entry, sampling.weigh(event.size, event.block)))
    }

    /// Records the live bytes of a stack after a change.
    fn note(&mut self, event: Event) {
        let shift = self.grid.shift(event.time);
        let key = event.stack.unwrap_or(u32::MAX);
        if let Some(place) = self.places.get(&key) {
            let entry = &mut self.entries[*place as usize];
            let cell = self.grid.cell(event.time);
            entry.series.note(shift, cell, entry.of.left.bytes);
        }
    }

    /// Returns the stacks in the order of their numbers, and those whose live bytes only grow.
    pub(crate) fn finish(self, end: u64) -> (Vec<StackUse>, Vec<Suspect>) {
        let all = self.entries.iter().filter_map(Entry::candidate).collect();
        let mut suspects = suspects(self.grid, end, all);
        let mut stacks: Vec<StackUse> = self.entries.into_iter().map(Entry::finish).collect();
        stacks.sort_unstable_by_key(|one| one.stack);
        for suspect in &mut suspects {
            let place = stacks.binary_search_by_key(&Some(suspect.stack), |one| one.stack);
            suspect.left = place.map_or(Amount::default(), |place| stacks[place].left);
        }
        (stacks, suspects)
    }
}

impl Entry {
    fn new(stack: Option<u32>) -> Self {
        Self {
            of: StackUse {
                stack,
                ..StackUse::default()
            },
            left_variance: Variance::default(),
            since: Amount::default(),
            since_variance: Variance::default(),
            is_touched: false,
            series: Series::default(),
        }
    }

    fn candidate(&self) -> Option<Candidate<'_>> {
        Some(Candidate {
            stack: self.of.stack?,
            series: &self.series,
            variance: self.left_variance.bytes,
        })
    }

    fn finish(self) -> StackUse {
        let mut variance = self.left_variance;
        variance.subtract(self.since_variance);
        StackUse {
            at_peak: self.of.left.wrapping_sub(self.since),
            at_peak_variance: variance,
            ..self.of
        }
    }
}

/// Adds the stacks of one process to the sums over several processes.
pub(crate) fn add(all: &mut Vec<StackUse>, other: &[StackUse]) {
    for one in other {
        match all.binary_search_by_key(&one.stack, |own| own.stack) {
            Ok(place) => all[place].add(one),
            Err(place) => all.insert(place, *one),
        }
    }
}
