//! What can go wrong, before and during a run.

use thiserror::Error;

/// Why a workload does not start.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// A word is neither a preset nor a number nor `name=value`.
    #[error("{workload}: cannot read '{word}'; write a preset ({presets}), numbers, or name=value")]
    Word {
        /// The workload.
        workload: &'static str,
        /// The word.
        word: String,
        /// The names of its presets.
        presets: String,
    },
    /// There is no parameter of this name.
    #[error("{workload} has no parameter '{name}'; it has {known}")]
    Unknown {
        /// The workload.
        workload: &'static str,
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// More numbers than parameters.
    #[error("{workload} takes at most {most} numbers: {known}")]
    TooMany {
        /// The workload.
        workload: &'static str,
        /// How many it takes.
        most: usize,
        /// The names of its parameters in order.
        known: String,
    },
    /// A parameter is given twice.
    #[error("{workload}: {name} is given twice")]
    Twice {
        /// The workload.
        workload: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// A value is no whole number, or out of its range.
    #[error("{workload}: {name} must be a whole number from {least} to {most}, not '{value}'")]
    Range {
        /// The workload.
        workload: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// The least value.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// The parameters contradict each other, or need more memory than there is.
    #[error("{workload}: {reason}")]
    Contradiction {
        /// The workload.
        workload: &'static str,
        /// Why.
        reason: String,
    },
}

/// Why a run did not come to its end: the allocator is at fault, or the machine.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// The workload of this name has a program of its own.
    #[error("{0} has a program of its own")]
    Elsewhere(&'static str),
    /// The allocator returned NULL.
    #[error("the allocator returned NULL for {size} bytes with {requested} bytes in use")]
    NoMemory {
        /// The size that was asked for.
        size: usize,
        /// The bytes in use by the workload's own count.
        requested: u64,
    },
    /// A block does not hold what was written into it.
    #[error("a block of {size} bytes at {address:#x} holds {found:#x} instead of {expected:#x}")]
    Corrupt {
        /// Where the block is.
        address: usize,
        /// Its size as requested.
        size: usize,
        /// What should be there.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A block is not aligned as was asked for.
    #[error("a block of {size} bytes at {address:#x} is not aligned to {alignment}")]
    Misaligned {
        /// Where the block is.
        address: usize,
        /// Its size as requested.
        size: usize,
        /// The alignment that was due.
        alignment: usize,
    },
    /// The system has no memory for the workload's own arrays.
    #[error(
        "the system has no {bytes} bytes for the workload's own arrays; take smaller parameters"
    )]
    Bookkeeping {
        /// The bytes that it needs.
        bytes: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
}
