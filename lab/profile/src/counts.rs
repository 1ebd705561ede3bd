//! Counts calls, blocks and bytes of a process, and adds those of several.

use crate::amount::Amount;
use crate::classes::{self, Class};
use crate::digits::Digits;
use crate::resizes::Resizes;
use crate::sampling::Variance;
use crate::size_classes::{ALLOCATORS, COUNT};
use crate::stacks::{self, StackUse};

/// Calls of one allocation function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCalls {
    /// Number of calls; of a sampled trace, the estimated number of calls that returned a block.
    pub calls: u64,
    /// Number of calls that requested a block and returned none.
    pub failed: u64,
}

/// Memory of the blocks under the size classes of one of [`ALLOCATORS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounded {
    /// Sum of the bytes that all blocks took, including freed blocks.
    pub made: u64,
    /// Maximum number of bytes that live blocks took at one time. For several processes, the sum of
    /// their maxima.
    pub most_live: u64,
}

/// Calls, blocks and bytes of a process, or of several. A block that is resized counts as freed,
/// and its successor as made.
///
/// Counts of a sampled trace are estimates. Those that a sample cannot show stay zero: `temporary`,
/// `lived_bytes` and `resizes`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Calls of each function, in the order of the names of the recording.
    pub functions: Vec<FunctionCalls>,
    /// Blocks that were made.
    pub made: Amount,
    /// Variance of `made`.
    pub made_variance: Variance,
    /// Number of blocks in the trace: all that were made, or a sample of them.
    pub recorded: u64,
    /// Blocks that were made and freed.
    pub freed: Amount,
    /// Blocks that were freed by a thread that had not made them.
    pub freed_by_others: Amount,
    /// Blocks that were freed by the next operation of the thread that made them. Resized blocks do
    /// not count.
    pub temporary: Amount,
    /// Blocks that were made and not freed.
    pub left: Amount,
    /// Variance of `left`.
    pub left_variance: Variance,
    /// Inherited blocks that were not freed.
    pub inherited_left: Amount,
    /// Blocks that were inherited by fork and freed.
    pub inherited_freed: Amount,
    /// Number of frees of blocks that the trace does not contain and that were not inherited, such
    /// as blocks made before the recording began.
    pub foreign_frees: u64,
    /// Number of frees of a null pointer.
    pub null_frees: u64,
    /// Number of frees of blocks that were free already, according to the trace.
    pub repeated_frees: u64,
    /// Largest number of bytes for which a call failed; 0 if no call failed.
    pub largest_failed: u64,
    /// Blocks that were made, by size.
    pub sizes: Digits,
    /// Freed blocks by their lifetime in nanoseconds.
    pub lived_time: Digits,
    /// Freed blocks by the bytes that their process requested during their lifetime.
    pub lived_bytes: Digits,
    /// Blocks by function and size.
    pub classes: Vec<Class>,
    /// Blocks by the stack that requested them, in the order of the stacks' numbers; empty if no
    /// stacks were recorded.
    pub stacks: Vec<StackUse>,
    /// Calls that resized a block, and the chains that they form.
    pub resizes: Resizes,
    /// Maximum of requested live bytes, without inherited blocks. For several processes, the sum of
    /// their maxima.
    pub most_requested: u64,
    /// Memory of the blocks under the size classes of each of [`ALLOCATORS`].
    pub rounded: [Rounded; COUNT],
}

impl Counts {
    /// Returns the number of calls of all functions.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.functions.iter().map(|function| function.calls).sum()
    }

    /// Returns the number of failed calls of all functions.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.functions.iter().map(|function| function.failed).sum()
    }

    /// Returns the names of [`ALLOCATORS`], each with its figures.
    pub fn rounded(&self) -> impl Iterator<Item = (&'static str, Rounded)> + '_ {
        let names = ALLOCATORS.iter().map(|allocator| allocator.name);
        names.zip(self.rounded)
    }

    /// Adds calls of a function, and returns the counts of this function.
    pub(crate) fn call(&mut self, function: u8, calls: u64) -> &mut FunctionCalls {
        let place = usize::from(function);
        if self.functions.len() <= place {
            self.functions.resize(place + 1, FunctionCalls::default());
        }
        let function = &mut self.functions[place];
        function.calls = function.calls.saturating_add(calls);
        function
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.functions.len() < other.functions.len() {
            self.functions
                .resize(other.functions.len(), FunctionCalls::default());
        }
        for (own, other) in self.functions.iter_mut().zip(&other.functions) {
            own.calls = own.calls.saturating_add(other.calls);
            own.failed += other.failed;
        }
        self.made.add(other.made);
        self.made_variance.add(other.made_variance);
        self.recorded += other.recorded;
        self.freed.add(other.freed);
        self.freed_by_others.add(other.freed_by_others);
        self.temporary.add(other.temporary);
        self.left.add(other.left);
        self.left_variance.add(other.left_variance);
        self.inherited_left.add(other.inherited_left);
        self.inherited_freed.add(other.inherited_freed);
        self.foreign_frees += other.foreign_frees;
        self.null_frees += other.null_frees;
        self.repeated_frees += other.repeated_frees;
        self.largest_failed = self.largest_failed.max(other.largest_failed);
        self.sizes.add(&other.sizes);
        self.lived_time.add(&other.lived_time);
        self.lived_bytes.add(&other.lived_bytes);
        classes::add(&mut self.classes, &other.classes);
        stacks::add(&mut self.stacks, &other.stacks);
        self.resizes.add(&other.resizes);
        self.most_requested = self.most_requested.saturating_add(other.most_requested);
        for (own, other) in self.rounded.iter_mut().zip(other.rounded) {
            own.made = own.made.saturating_add(other.made);
            own.most_live = own.most_live.saturating_add(other.most_live);
        }
    }
}
