//! Evidence of which object served malloc in each process.

use serde::{Deserialize, Serialize};

use crate::Nanoseconds;

/// Reason why a process did not run on the entrant's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnservedReason {
    /// The program has no dynamic loader, so nothing can be preloaded.
    StaticBinary,
    /// The kernel runs the program with elevated privileges, so the loader ignores `LD_PRELOAD`.
    RaisedRights,
    /// The program or one of its own libraries defines malloc and comes first in symbol lookup.
    BundledAllocator,
    /// A parent process started the program without `LD_PRELOAD`.
    ClearedEnvironment,
    /// Libraries loaded with `RTLD_DEEPBIND` find their own malloc first.
    DeepBind,
    /// The program is for another architecture or word size than the library.
    OtherMachine,
    /// The loader was asked to preload the library but did not, because the library is missing,
    /// unreadable or for another machine.
    NotLoaded,
}

/// Processes of one program that the entrant's allocator did not serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unserved {
    /// Path of the executable.
    pub program: String,
    /// Number of unserved processes that ran the program.
    pub processes: u64,
    /// Share of these processes in the processor time of the whole tree, from 0 to 1.
    pub cpu_share: f64,
    /// Reason why the entrant's allocator did not serve these processes.
    pub reason: UnservedReason,
    /// Object that served these processes instead, if it could be determined.
    pub served_by: Option<String>,
    /// Remedy, in one sentence.
    pub advice: String,
}

/// Part of the command that the entrant's allocator served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// Every process that could allocate.
    Whole,
    /// Processes with at least [`Proof::ENOUGH`] of the processor time, but not all of them.
    Most,
    /// Processes with less than [`Proof::ENOUGH`] of the processor time, or no call at all. The row
    /// is invalid, because the run says nothing about the allocator.
    TooLittle,
}

/// Findings of one unmeasured run under the witness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Part of the command that the allocator served. This part determines whether the row is
    /// valid.
    pub coverage: Coverage,
    /// Path of the object that served most of the calls, if it is known.
    pub served_by: Option<String>,
    /// Number of calls of the allocation ABI that reached the entrant's allocator.
    pub calls: u64,
    /// Bytes requested by the calls in `calls`, including memory that was freed again. 0 in proofs
    /// of an older heapdrome.
    #[serde(default)]
    pub requested_bytes: u64,
    /// Number of processes seen, except those that only executed another program. A process that
    /// replaces its program later counts again.
    pub processes: u64,
    /// Number of these processes that the entrant's allocator served.
    pub served_processes: u64,
    /// Whether a program called `operator new`; `None` in proofs that did not record this.
    #[serde(default)]
    pub operator_new: Option<bool>,
    /// Processor time of the process tree.
    pub cpu: Nanoseconds,
    /// Unserved programs, in descending order of their share of the processor time.
    pub unserved: Vec<Unserved>,
    /// Warnings for the reader that do not exclude the row, such as CPython's own allocator.
    pub warnings: Vec<String>,
    /// Hash of everything that the proof depends on. If the hash changes, the proof is invalid.
    pub key: String,
    /// Cell of the collection in which the proof was taken, if it was another cell. That cell has
    /// the same program, library and environment, but other parameters, so the numbers of calls do
    /// not apply to this cell.
    #[serde(default)]
    pub taken_in: Option<String>,
}

impl Proof {
    /// Minimum share of the tree's processor time, in processes that the allocator serves, for a
    /// valid row.
    pub const ENOUGH: f64 = 0.9;
}
