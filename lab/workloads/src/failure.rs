//! Errors before and during a run.

use thiserror::Error;

/// Reason why a workload does not start.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// A word is neither a preset nor a number nor `name=value`.
    #[error("{workload}: cannot read '{word}'; write a preset ({presets}), numbers, or name=value")]
    Word {
        /// Name of the workload.
        workload: &'static str,
        /// Rejected word of the command line.
        word: String,
        /// Names of the workload's presets.
        presets: String,
    },
    /// There is no parameter of this name.
    #[error("{workload} has no parameter '{name}'; it has {known}")]
    Unknown {
        /// Name of the workload.
        workload: &'static str,
        /// Rejected name.
        name: String,
        /// Names of the workload's parameters.
        known: String,
    },
    /// There are more numbers than parameters.
    #[error("{workload} takes at most {most} numbers: {known}")]
    TooMany {
        /// Name of the workload.
        workload: &'static str,
        /// Maximum number of values that the workload takes.
        most: usize,
        /// Names of the workload's parameters in order.
        known: String,
    },
    /// A parameter is given twice.
    #[error("{workload}: {name} is given twice")]
    Twice {
        /// Name of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
    },
    /// A value is not a whole number, or out of its range.
    #[error("{workload}: {name} must be a whole number from {least} to {most}, not '{value}'")]
    Range {
        /// Name of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// Rejected value, as on the command line.
        value: String,
        /// Minimum accepted value.
        least: u64,
        /// Maximum accepted value.
        most: u64,
    },
    /// The parameters contradict each other, or need more memory than is available.
    #[error("{workload}: {reason}")]
    Contradiction {
        /// Name of the workload.
        workload: &'static str,
        /// Reason for the refusal, in one line.
        reason: String,
    },
}

/// Reason why a run failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// The workload of this name runs in a separate program.
    #[error("{0} has a program of its own")]
    Elsewhere(&'static str),
    /// The allocator returned NULL.
    #[error("the allocator returned NULL for {size} bytes with {requested} bytes in use")]
    NoMemory {
        /// Requested size in bytes.
        size: usize,
        /// Requested bytes in use at that moment, according to the workload's own count.
        requested: u64,
    },
    /// A block does not hold the contents that were written into it.
    #[error("a block of {size} bytes at {address:#x} holds {found:#x} instead of {expected:#x}")]
    Corrupt {
        /// The address of the block.
        address: usize,
        /// Requested size of the block in bytes.
        size: usize,
        /// Expected word.
        expected: u64,
        /// Word that was found.
        found: u64,
    },
    /// A block does not have the requested alignment, or the alignment that malloc must give it.
    #[error("a block of {size} bytes at {address:#x} is not aligned to {alignment}")]
    Misaligned {
        /// The address of the block.
        address: usize,
        /// Requested size of the block in bytes.
        size: usize,
        /// Required alignment in bytes.
        alignment: usize,
    },
    /// The system is out of memory for the workload's own arrays.
    #[error(
        "out of memory: cannot map {bytes} bytes for the workload's own arrays; use smaller parameters"
    )]
    Bookkeeping {
        /// Size of the refused mapping in bytes.
        bytes: usize,
    },
    /// A child process failed, for the reason in this text.
    #[error("in a child process: {0}")]
    Child(String),
    /// A child could not be started, or its exit status could not be read.
    #[error("cannot start or collect a process: {0}")]
    Process(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
}
