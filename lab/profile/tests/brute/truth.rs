//! Computes the expected figures of a list of operations, without limits on memory or time.

use std::collections::BTreeMap;

use heapdrome_profile::{Amount, ProcessProfile};
use heapdrome_trace::{Operation, Step};

use crate::trace::MALLOC;

/// A block, with the indices of the operations that made and freed it.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub size: u64,
    pub made: usize,
    pub freed: Option<usize>,
    pub is_resized: bool,
    pub function: u8,
    pub stack: Option<u32>,
}

/// Returns the blocks that these operations make, in the order of their numbers.
pub fn blocks(steps: &[Step]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        if let Operation::Free { block, .. } | Operation::Resize { block, .. } = step.operation {
            blocks[block as usize].freed = Some(place);
        }
        match step.operation {
            Operation::Make { size, function, .. } | Operation::Resize { size, function, .. } => {
                let is_resized = matches!(step.operation, Operation::Resize { .. });
                blocks.push(Block {
                    size,
                    made: place,
                    freed: None,
                    is_resized,
                    function,
                    stack: step.stack,
                });
            }
            _ => {}
        }
    }
    blocks
}

fn sum<'a>(blocks: impl Iterator<Item = &'a Block>) -> Amount {
    blocks.fold(Amount::default(), |sum, block| Amount {
        blocks: sum.blocks + 1,
        bytes: sum.bytes + block.size,
    })
}

/// Returns the blocks that are live after this operation.
pub fn live(blocks: &[Block], place: usize) -> impl Iterator<Item = &Block> {
    let lives =
        move |block: &&Block| block.made <= place && block.freed.is_none_or(|freed| freed > place);
    blocks.iter().filter(lives)
}

/// Returns the live bytes after each operation.
pub fn live_bytes(steps: &[Step]) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut bytes = 0;
    let mut all = Vec::new();
    for step in steps {
        if let Operation::Free { block, .. } | Operation::Resize { block, .. } = step.operation {
            bytes -= sizes[block as usize];
        }
        if let Operation::Make { size, .. } | Operation::Resize { size, .. } = step.operation {
            bytes += size;
            sizes.push(size);
        }
        all.push(bytes);
    }
    all
}

/// Returns whether the thread that made the block frees it in its next operation.
fn is_temporary(steps: &[Step], block: &Block) -> bool {
    let thread = steps[block.made].thread;
    let mut later = (block.made + 1..steps.len()).filter(|place| steps[*place].thread == thread);
    let next = later.next();
    let frees = |place: &usize| matches!(steps[*place].operation, Operation::Free { .. });
    next.is_some() && next == block.freed && next.as_ref().is_some_and(frees)
}

fn power_above(value: u64) -> u64 {
    (0..64)
        .map(|bit| 1 << bit)
        .find(|power| *power > value)
        .unwrap_or(u64::MAX)
}

fn steps_of(values: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, Amount)> {
    let mut steps: BTreeMap<u64, Amount> = BTreeMap::new();
    for (value, size) in values {
        let step = steps.entry(power_above(value)).or_default();
        step.blocks += 1;
        step.bytes += size;
    }
    steps.into_iter().collect()
}

/// Compares the profile of a process with figures that are computed from its operations.
pub fn check(steps: &[Step], process: &ProcessProfile) {
    let blocks = blocks(steps);
    let counts = &process.counts;
    let freed = || {
        blocks
            .iter()
            .filter_map(|block| Some((block, block.freed?)))
    };
    assert_eq!(counts.made, sum(blocks.iter()));
    assert_eq!(counts.freed, sum(freed().map(|(block, _)| block)));
    assert_eq!(
        counts.left,
        sum(blocks.iter().filter(|block| block.freed.is_none()))
    );
    let other = |(block, freed): &(&Block, usize)| steps[block.made].thread != steps[*freed].thread;
    assert_eq!(
        counts.freed_by_others,
        sum(freed().filter(other).map(|(block, _)| block))
    );
    let temporary = blocks.iter().filter(|block| is_temporary(steps, block));
    assert_eq!(counts.temporary, sum(temporary));
    let sizes = steps_of(blocks.iter().map(|block| (block.size, block.size)));
    assert_eq!(counts.sizes.steps().collect::<Vec<_>>(), sizes);
    let time = |place: usize| steps[place].time.0;
    let lived = freed().map(|(block, freed)| (time(freed) - time(block.made), block.size));
    assert_eq!(
        counts.lived_time.steps().collect::<Vec<_>>(),
        steps_of(lived)
    );
    let between = |from: usize, to: usize| -> u64 {
        let made = blocks
            .iter()
            .filter(|block| block.made > from && block.made < to);
        made.map(|block| block.size).sum()
    };
    let lived = freed().map(|(block, freed)| (between(block.made, freed), block.size));
    assert_eq!(
        counts.lived_bytes.steps().collect::<Vec<_>>(),
        steps_of(lived)
    );
    assert_eq!(
        counts.resizes.calls,
        blocks.iter().filter(|block| block.is_resized).count() as u64
    );
    check_peak(steps, &blocks, process);
    check_timeline(steps, process);
}

fn check_peak(steps: &[Step], blocks: &[Block], process: &ProcessProfile) {
    let bytes = live_bytes(steps);
    let peak = bytes.iter().copied().max().unwrap_or(0);
    let place = bytes.iter().position(|bytes| *bytes == peak).unwrap_or(0);
    assert_eq!(process.peak.live, sum(live(blocks, place)));
    assert_eq!(process.peak.time, steps[place].time.0);
    for class in &process.counts.classes {
        let is_of = |block: &&Block| {
            block.function == class.function && power_above(block.size) == class.below
        };
        assert_eq!(
            class.at_peak,
            sum(live(blocks, place).filter(is_of)),
            "{class:?}"
        );
        assert_eq!(class.made, sum(blocks.iter().filter(is_of)), "{class:?}");
        let left = blocks.iter().filter(|block| block.freed.is_none());
        assert_eq!(class.left, sum(left.filter(is_of)), "{class:?}");
    }
    check_stacks(steps, blocks, process, place);
    let mallocs = process
        .counts
        .classes
        .iter()
        .filter(|class| class.function == MALLOC);
    assert!(mallocs.count() > 1);
}

fn check_stacks(steps: &[Step], blocks: &[Block], process: &ProcessProfile, peak: usize) {
    let mut numbers: Vec<_> = blocks.iter().map(|block| block.stack).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let known: Vec<_> = process.counts.stacks.iter().map(|one| one.stack).collect();
    assert_eq!(known, numbers);
    for one in &process.counts.stacks {
        let is_of = |block: &&Block| block.stack == one.stack;
        assert_eq!(one.made, sum(blocks.iter().filter(is_of)));
        assert_eq!(one.at_peak, sum(live(blocks, peak).filter(is_of)));
        let left = blocks.iter().filter(|block| block.freed.is_none());
        assert_eq!(one.left, sum(left.filter(is_of)));
        let temporary = blocks.iter().filter(|block| is_temporary(steps, block));
        assert_eq!(one.temporary, sum(temporary.filter(is_of)));
    }
}

fn check_timeline(steps: &[Step], process: &ProcessProfile) {
    let bytes = live_bytes(steps);
    let timeline = &process.timeline;
    assert!(timeline.points.len() <= heapdrome_profile::POINTS);
    let calls: u64 = timeline.points.iter().map(|point| point.calls).sum();
    assert_eq!(calls, steps.len() as u64);
    let Some((_, all_but_last)) = timeline.points.split_last() else {
        panic!("no points");
    };
    for point in all_but_last {
        let end = point.time + timeline.width;
        let until = |time: u64| steps.partition_point(|step| step.time.0 < time);
        let (from, to) = (until(point.time), until(end));
        let before = from.checked_sub(1).map_or(0, |place| bytes[place]);
        let most = bytes[from..to].iter().copied().fold(before, u64::max);
        let last = to.checked_sub(1).map_or(0, |place| bytes[place]);
        assert_eq!(
            (point.bytes.most, point.bytes.last),
            (most, last),
            "{point:?}"
        );
    }
}
