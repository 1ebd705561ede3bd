//! Errors before and during a run.

use thiserror::Error;

/// Reason why a workload does not start.
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
        /// The names of all parameters.
        known: String,
    },
    /// More numbers than parameters.
    #[error("{workload} takes at most {most} numbers: {known}")]
    TooMany {
        /// The workload.
        workload: &'static str,
        /// Maximum number of values that the workload takes.
        most: usize,
        /// Names of the workload's parameters in order.
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
    /// A value is not a whole number, or out of its range.
    #[error("{workload}: {name} must be a whole number from {least} to {most}, not '{value}'")]
    Range {
        /// The workload.
        workload: &'static str,
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: String,
        /// The least value.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// The parameters contradict each other, or need more memory than is available.
    #[error("{workload}: {reason}")]
    Contradiction {
        /// The workload.
        workload: &'static str,
        /// Why.
        reason: String,
    },
}

/// Reason why a run failed: the fault of the allocator or of the machine.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// The workload has a program of its own.
    #[error("{0} has a program of its own")]
    Elsewhere(&'static str),
    /// The allocator returned NULL.
    #[error("the allocator returned NULL for {size} bytes with {requested} bytes in use")]
    NoMemory {
        /// The requested size.
        size: usize,
        /// The bytes in use according to the workload's own count.
        requested: u64,
    },
    /// A block does not hold the contents that were written into it.
    #[error("a block of {size} bytes at {address:#x} holds {found:#x} instead of {expected:#x}")]
    Corrupt {
        /// The address of the block.
        address: usize,
        /// Its size as requested.
        size: usize,
        /// The expected contents.
        expected: u64,
        /// The contents that were found.
        found: u64,
    },
    /// A block does not have the requested alignment.
    #[error("a block of {size} bytes at {address:#x} is not aligned to {alignment}")]
    Misaligned {
        /// The address of the block.
        address: usize,
        /// Its size as requested.
        size: usize,
        /// The required alignment.
        alignment: usize,
    },
    /// The system is out of memory for the workload's own arrays.
    #[error(
        "out of memory: cannot map {bytes} bytes for the workload's own arrays; use smaller parameters"
    )]
    Bookkeeping {
        /// The bytes that they need.
        bytes: usize,
    },
    /// A child process failed.
    #[error("in a child process: {0}")]
    Child(String),
    /// A child could not be started, or its end could not be read.
    #[error("cannot start or collect a process: {0}")]
    Process(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
}
