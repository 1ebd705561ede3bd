//! Errors of one line each. Most of them suggest a fix.

use std::io;
use std::path::PathBuf;

use heapdrome_schema::Bytes;

/// Reason why the workload, or the generation of its data, did not finish.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A value is out of range.
    #[error("{option}: expected 1 to {most}, got {value}")]
    Parameter {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u32,
        /// The maximum.
        most: u32,
    },
    /// There is too little memory.
    #[error(
        "{what} may take up to {needed} of memory, and only {available} is available ({limit}); \
         lower -n, --parallel or -s, or free memory"
    )]
    Memory {
        /// The action that needs the memory.
        what: String,
        /// The needed memory, with the margin for other allocators.
        needed: Bytes,
        /// The available memory.
        available: Bytes,
        /// The source of the limit.
        limit: &'static str,
    },
    /// There are no data.
    #[error("{} holds no data of the catalog workload; write some with gen-data first", path.display())]
    NoData {
        /// The folder.
        path: PathBuf,
    },
    /// A file has the wrong format.
    #[error("{} is not a file of the catalog workload: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The symptom.
        reason: String,
    },
    /// The data were written by another version.
    #[error(
        "{} has data format {found}, and this heapdrome reads {expected}; rewrite the data with \
         gen-data, into another folder", path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version that can be read.
        expected: u32,
    },
    /// A file is truncated or changed.
    #[error("{} is damaged: {reason}; remove its folder and rewrite the data with gen-data", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The symptom.
        reason: String,
    },
    /// More data sets are requested than there are.
    #[error(
        "-n {asked}: expected at most {have}, the data sets in {}; write more with gen-data -n \
         {asked}, into another folder", path.display()
    )]
    TooFewSets {
        /// The requested number.
        asked: u32,
        /// The existing number.
        have: usize,
        /// The folder.
        path: PathBuf,
    },
    /// The data do not have the requested seed.
    #[error("the data in {} have seed {found}, not {asked}", path.display())]
    OtherSeed {
        /// The folder.
        path: PathBuf,
        /// The seed of the data.
        found: u64,
        /// The requested seed.
        asked: u64,
    },
    /// The folder to write holds other data.
    #[error("{} already holds other data ({found}); name another folder, or remove it", path.display())]
    OtherData {
        /// The folder.
        path: PathBuf,
        /// Its contents.
        found: String,
    },
    /// The folder to write already exists and was not written by gen-data.
    #[error(
        "{} already exists and was not written by gen-data; name a folder that does not exist",
        path.display()
    )]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}; nothing was left behind", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another operation of the system failed.
    #[error("cannot {what}: {source}")]
    Machine {
        /// The action that failed.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The user interrupted.
    #[error("interrupted; nothing was left behind")]
    Interrupted,
    /// Memory no longer holds what was written to it.
    #[error("the allocator failed: {what}")]
    Corrupted {
        /// The symptom.
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
