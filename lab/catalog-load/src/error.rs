//! Errors of one line each. Some of them suggest a fix.

use std::io;
use std::path::PathBuf;

use heapdrome_schema::Bytes;

/// Reason why the workload, or the generation of its data, did not finish.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A value is out of range.
    #[error("{option}: expected 1 to {most}, got {value}")]
    Parameter {
        /// Option that sets the value, such as `-n`.
        option: &'static str,
        /// Rejected value.
        value: u32,
        /// Maximum accepted value.
        most: u32,
    },
    /// There is too little memory.
    #[error(
        "{what} may take up to {needed} of memory, and only {available} is available ({limit}); \
         lower -n, --parallel or -s, or free memory"
    )]
    Memory {
        /// Settings of the run, or name of the command, that needs the memory.
        what: String,
        /// The needed memory, with the margin for other allocators.
        needed: Bytes,
        /// Memory available to this process.
        available: Bytes,
        /// Source of the limit on the available memory.
        limit: &'static str,
    },
    /// A folder holds no data of the workload.
    #[error("{} holds no data of the catalog workload; write some with gen-data first", path.display())]
    NoData {
        /// Folder without data.
        path: PathBuf,
    },
    /// A file has the wrong format.
    #[error("{} is not a file of the catalog workload: {reason}", path.display())]
    Foreign {
        /// File with the wrong format.
        path: PathBuf,
        /// Difference from the expected format.
        reason: String,
    },
    /// The data were written by another version.
    #[error(
        "{} has data format {found}, and this heapdrome reads {expected}; rewrite the data with \
         gen-data, into another folder", path.display()
    )]
    OtherVersion {
        /// File of the other version.
        path: PathBuf,
        /// Version of the data format in the file.
        found: u32,
        /// Version of the data format that this program reads.
        expected: u32,
    },
    /// A file is truncated or changed, or the data in a folder are incomplete.
    #[error("{} is damaged: {reason}; remove its folder and rewrite the data with gen-data", path.display())]
    Damaged {
        /// Damaged file, or folder with incomplete data.
        path: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// More data sets are requested than there are.
    #[error(
        "-n {asked}: expected at most {have}, the data sets in {}; write more with gen-data -n \
         {asked}, into another folder", path.display()
    )]
    TooFewSets {
        /// Requested number of data sets.
        asked: u32,
        /// Number of data sets in the folder.
        have: usize,
        /// Folder of the data sets.
        path: PathBuf,
    },
    /// The data do not have the requested seed.
    #[error("the data in {} have seed {found}, not {asked}", path.display())]
    OtherSeed {
        /// Folder of the data.
        path: PathBuf,
        /// The seed of the data.
        found: u64,
        /// The requested seed.
        asked: u64,
    },
    /// The folder to write holds other data.
    #[error("{} already holds other data ({found}); name another folder, or remove it", path.display())]
    OtherData {
        /// Folder that holds the other data.
        path: PathBuf,
        /// Settings of the other data, such as `n=8 size=100 seed=1`.
        found: String,
    },
    /// The folder to write already exists and was not written by gen-data.
    #[error(
        "{} already exists and was not written by gen-data; name a folder that does not exist",
        path.display()
    )]
    InTheWay {
        /// Path of the existing folder or file.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// File that could not be read.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}; nothing was left behind", path.display())]
    Write {
        /// File that could not be written.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Another operation of the system failed.
    #[error("cannot {what}: {source}")]
    Machine {
        /// The action that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The user interrupted.
    #[error("interrupted; nothing was left behind")]
    Interrupted,
    /// Memory no longer holds what was written to it.
    #[error("the allocator failed: {what}")]
    Corrupted {
        /// Description of the change.
        what: String,
    },
}

impl CatalogError {
    /// Returns the exit status of a process that ends with this error.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Corrupted { .. } => 1,
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}
