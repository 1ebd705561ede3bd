//! Plain data of races and other measurements, their versioned JSON, and the reading and writing of
//! their files.
//!
//! This crate starts no process, reads no clock and infers no verdicts. Most other crates of the
//! lab use its types: the measurer writes them, the engine computes results from them, and the
//! exporters print them.

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!("heapdrome supports Linux with glibc only so far");

mod changes;
mod collection;
mod condition;
mod entrant;
mod evidence;
mod fidelity;
mod figure;
mod file;
mod gzip;
mod journal;
mod memory;
mod misuse;
mod nearest;
mod paging;
mod plan;
mod proof;
mod redact;
mod result;
mod run;
mod samples;
mod scaling;
mod survival;
mod units;
mod workload;
mod write;

pub use changes::{Change, Changes, ComparedResult, Factor, Judged, Outcome, RacePair};
pub use collection::{
    Absent, Ccdf, CcdfPoint, ClaimResult, Collection, Holds, Member, Purpose, Scale, Table,
};
pub use condition::{Condition, Level};
pub use entrant::{Entrant, Role, merged_setting};
pub use evidence::{CallTime, Evidence, SizeCount, SystemCalls};
pub use fidelity::{Agreement, Claim, Fidelity, FidelityCheck, Property, ReplaySpeed, Replayed};
pub use figure::{COMMON_FIGURES, CPU, PEAK_RSS, WALL, is_common_figure, resolution, spoken};
pub use file::{ReadError, Saved, is_stdin, read_result, read_saved, source_name, to_json};
pub use gzip::{compressed, compressed_if_named, is_compressed};
pub use journal::JournalLine;
pub use memory::{AfterIdle, ImageMemory, MemoryParts, MemoryRun, MemorySample};
pub use misuse::{MisuseOutcome, MisuseRun, MisuseStage};
pub use nearest::{nearest, nearest_or_all};
pub use paging::{
    Burst, Distribution, Experiment, Holder, Instructions, Job, Limit, Order, PagingCell,
    PagingReport, Point, Read, Recycle, Strategy, Throughput, Variant,
};
pub use plan::{Better, Metric, Options, Pace, Part, Plan, Server, Stopping};
pub use proof::{Coverage, Proof, Unserved, UnservedReason};
pub use redact::Redaction;
pub use result::{
    Comparison, EntrantResult, Finding, Machine, NoiseFloor, Output, ProofSummary, RaceResult,
    SCHEMA, Series, Status, Verdict,
};
pub use run::{Ending, Run};
pub use scaling::{Knee, ScalingCurve, ScalingPoint, SweepResult, SweptParameter};
pub use survival::{Multiple, Survival, Trial};
pub use units::{Bytes, Nanoseconds, grouped};
pub use workload::WorkloadReport;
pub use write::{
    FolderError, WriteError, check_writable, fill, make_folder, stream_atomically, write_atomically,
};
