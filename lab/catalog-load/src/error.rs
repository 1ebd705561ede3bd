//! What can go wrong, and what to do about it, in one line each.

use std::io;
use std::path::PathBuf;

use heapdrome_schema::Bytes;

/// Why the workload, or the making of its data, did not finish.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A value is out of its limits.
    #[error("{option} cannot be {value}: it goes from 1 to {most}")]
    Parameter {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u32,
        /// The greatest value.
        most: u32,
    },
    /// The memory would not do.
    #[error(
        "{what} may take up to {needed} of memory and {available} can be had ({limit}); lower -n, \
         --parallel or -s, or make room"
    )]
    Memory {
        /// What was to be done.
        what: String,
        /// What it takes, with the margin for other allocators.
        needed: Bytes,
        /// What can be had.
        available: Bytes,
        /// What sets the limit.
        limit: &'static str,
    },
    /// There are no data.
    #[error("{} holds no data of the catalog workload; write some with gen-data first", path.display())]
    NoData {
        /// The folder.
        path: PathBuf,
    },
    /// A file is not what its name says.
    #[error("{} is not a file of the catalog workload: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How it is seen.
        reason: String,
    },
    /// The data were written by another version.
    #[error(
        "{} has data format {found}, and this heapdrome reads {expected}; write the data anew with \
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
    /// A file is cut short or changed.
    #[error("{} is damaged: {reason}; remove its folder and write the data anew with gen-data", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How it is seen.
        reason: String,
    },
    /// More data sets are asked for than there are.
    #[error(
        "-n {asked} asks for more data sets than the {have} in {}; write more with gen-data -n \
         {asked}, into another folder", path.display()
    )]
    TooFewSets {
        /// The number asked for.
        asked: u32,
        /// The number there is.
        have: usize,
        /// The folder.
        path: PathBuf,
    },
    /// The data have another seed than the one asked for.
    #[error("the data in {} have seed {found}, not {asked}", path.display())]
    OtherSeed {
        /// The folder.
        path: PathBuf,
        /// The seed of the data.
        found: u64,
        /// The seed asked for.
        asked: u64,
    },
    /// The folder to write holds other data.
    #[error("{} already holds other data ({found}); name another folder, or remove it", path.display())]
    OtherData {
        /// The folder.
        path: PathBuf,
        /// What is in it.
        found: String,
    },
    /// The folder to write is something else already.
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
    /// The machine refused something else.
    #[error("cannot {what}: {source}")]
    Machine {
        /// What was tried.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The person asked for an end.
    #[error("interrupted; nothing was left behind")]
    Interrupted,
    /// What was read back from memory is not what was put there.
    #[error("the allocator failed: {what}")]
    Corrupted {
        /// How it is seen.
        what: String,
    },
}

impl CatalogError {
    /// The exit status of a process that ends with this error.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Corrupted { .. } => 1,
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}
