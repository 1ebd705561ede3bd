//! Which object served malloc, in which processes.

use serde::{Deserialize, Serialize};

use crate::Nanoseconds;

/// Why a process did not run on the entrant's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnservedReason {
    /// The program has no dynamic loader, so nothing can be preloaded.
    StaticBinary,
    /// The kernel runs the program with raised rights, so the loader ignores `LD_PRELOAD`.
    RaisedRights,
    /// The program or a library of its own defines malloc and comes first.
    BundledAllocator,
    /// A parent started the program without `LD_PRELOAD`.
    ClearedEnvironment,
    /// Libraries loaded with `RTLD_DEEPBIND` look for malloc in themselves first.
    DeepBind,
    /// The program is for another machine or word size than the library.
    OtherMachine,
    /// The loader was told to preload the library and did not: missing, unreadable or foreign.
    NotLoaded,
}

/// Programs of the command's tree that the entrant's allocator did not serve, taken together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unserved {
    /// The path of the executable.
    pub program: String,
    /// How many processes ran it unserved.
    pub processes: u64,
    /// Their part of the CPU time of the whole tree, from 0 to 1.
    pub cpu_share: f64,
    /// Why.
    pub reason: UnservedReason,
    /// The object that served them instead, where it could be told.
    pub served_by: Option<String>,
    /// What to do about it, in one sentence.
    pub advice: String,
}

/// How much of the command ran on the entrant's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// Every process that could allocate.
    Whole,
    /// Not every one, but at least [`Proof::ENOUGH`] of the CPU time.
    Most,
    /// Less than that: the run says nothing about the allocator.
    TooLittle,
}

/// What one unmeasured run under the witness showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Whether the row counts.
    pub coverage: Coverage,
    /// The path of the object that served most of the calls.
    pub served_by: Option<String>,
    /// Calls of the allocation ABI that reached that object.
    pub calls: u64,
    /// Bytes that those calls asked for, with all that was freed again; 0 in proofs of an older
    /// heapdrome.
    #[serde(default)]
    pub requested_bytes: u64,
    /// Processes seen; one that replaces its program counts again.
    pub processes: u64,
    /// Processes that the object served.
    pub served_processes: u64,
    /// Whether a program called `operator new`; `None` in proofs that did not look.
    #[serde(default)]
    pub operator_new: Option<bool>,
    /// CPU time of the tree.
    pub cpu: Nanoseconds,
    /// What was not served, the greatest share of CPU time first.
    pub unserved: Vec<Unserved>,
    /// What the reader should know although the row counts, such as CPython's own allocator.
    pub warnings: Vec<String>,
    /// A hash over all that the proof depends on; another hash makes the proof void.
    pub key: String,
    /// The cell of the collection in which it was taken, where that is another one: with the same
    /// program, library and environment, and other parameters, whose calls these are.
    #[serde(default)]
    pub taken_in: Option<String>,
}

impl Proof {
    /// The share of the tree's CPU time that the allocator must have served for its row to count.
    pub const ENOUGH: f64 = 0.9;
}
