//! Records of a trace: JSON objects for its events that are not operations.

use serde::{Deserialize, Serialize};

use crate::operation::Time;

/// Description of a recording. Every trace begins with this record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Names of the functions; operations refer to a function by its index.
    pub functions: Vec<String>,
    /// The command that was recorded.
    pub command: Vec<String>,
    /// The allocator as the user named it; empty if the user named none.
    pub allocator: String,
    /// Time at which the recording began, in nanoseconds since 1970.
    pub began: u64,
    /// Version of heapdrome that made the recording.
    pub heapdrome: String,
    /// Bytes of a page on the machine.
    pub page_bytes: u64,
    /// Mean number of requested bytes between two recorded blocks; 0 if every block was recorded.
    /// A block of `size` bytes is recorded with the probability
    /// `1 - exp(-max(size, 1) / sample_bytes)`.
    #[serde(default)]
    pub sample_bytes: u64,
    /// Mean number of requested bytes between two blocks whose stack was recorded; 1 if every
    /// recorded block has its stack, 0 if none has. If it exceeds 1, a block has a stack with the
    /// probability given at [`sample_bytes`](Self::sample_bytes), for the larger of the two means.
    #[serde(default)]
    pub stack_bytes: u64,
}

/// Way in which a process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beginning {
    /// A program was executed: the process began with an empty heap.
    Executed,
    /// A process forked: this one began with the blocks of its parent.
    Forked {
        /// The number of the parent in the trace.
        parent: u32,
        /// Number of inherited blocks.
        blocks: u64,
        /// Requested bytes of the inherited blocks.
        bytes: u64,
    },
}

/// Beginning of a program in a process. If the process executes another program, a [`Finish`]
/// record ends this one, and a new `Process` record with the same `pid` follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Number of the process in the trace, from 0.
    pub process: u32,
    /// Process ID, in the process's own PID namespace.
    pub pid: u32,
    /// The executable's path.
    pub program: String,
    /// The object that served `malloc`.
    pub allocator: String,
    /// Time at which the program began.
    pub time: Time,
    /// Way in which the program began: executed or forked.
    pub beginning: Beginning,
}

/// First call of an allocation function by a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Number of the thread's process in the trace.
    pub process: u32,
    /// Number of the thread within its process, from 0.
    pub thread: u32,
    /// Thread ID of the system.
    pub tid: u32,
    /// Time of the thread's first call.
    pub time: Time,
}

/// Resident memory of a process at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// The number of the process in the trace.
    pub process: u32,
    /// Time of the reading.
    pub time: Time,
    /// Bytes of anonymous memory that were resident.
    pub bytes: u64,
}

/// End of a program in a process: the process ended, executed another program, or is no longer
/// recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// The number of the process in the trace.
    pub process: u32,
    /// Time at which the end of the process was noticed.
    pub time: Time,
    /// Maximum of the readings of resident anonymous memory, in bytes; `None` if it was not read.
    pub peak_resident: Option<u64>,
    /// Number of page faults resolved without reading from a disk; `None` if it was not read.
    pub minor_faults: Option<u64>,
    /// Processor time in nanoseconds; `None` if it was not read.
    pub processor_time: Option<u64>,
    /// Nanoseconds for which the process's threads waited for the collector, in total.
    pub waited: u64,
    /// Whether the recording of this process stopped before the process ended.
    pub gave_up: bool,
    /// Times of some of the process's calls; `None` if none was timed.
    pub timed: Option<TimedCalls>,
}

/// Sums over a random sample of a process's calls, and over its calls for large blocks. Every call
/// has the same probability of being in the sample, except those for large blocks, which are never
/// in it.
///
/// A sum of times may be negative by chance, because the time of reading the clock is subtracted
/// from each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedCalls {
    /// Number of calls in the sums.
    pub calls: u64,
    /// Nanoseconds in the allocator.
    pub nanoseconds: i64,
    /// Sum of the squares of each call's nanoseconds in the allocator.
    pub squares: u64,
    /// Nanoseconds that the recorder took for these calls.
    pub recording: i64,
    /// Sum of the squares of the nanoseconds that the recorder took for each of these calls. 0 in
    /// traces of earlier versions of heapdrome.
    #[serde(default)]
    pub recording_squares: u64,
    /// Number of timed calls that are not in the sums, because they took so long that they were
    /// probably interrupted.
    pub interrupted: u64,
    /// Calls for large blocks, which are not in the sample. Empty in traces of earlier versions of
    /// heapdrome.
    #[serde(default)]
    pub large: LargeCalls,
}

/// Calls that requested or freed a large block. All of them are timed, unless a sandbox forbids it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeCalls {
    /// Number of calls, timed or not.
    pub calls: u64,
    /// Number of calls in the sums.
    pub timed: u64,
    /// Nanoseconds in the allocator.
    pub nanoseconds: i64,
    /// Nanoseconds that the recorder took for these calls.
    pub recording: i64,
    /// Number of timed calls that are not in the sums, because they took so long that they were
    /// probably interrupted.
    pub interrupted: u64,
}

impl TimedCalls {
    /// Minimum number of timed calls from which the time in the allocator is estimated.
    pub const FEWEST: u64 = 30;
}

impl Finish {
    /// Returns the share of the process's processor time that was spent in the allocator, from 0 to
    /// 1, given the process's number of calls. Returns `None` if the share is unknown.
    #[must_use]
    pub fn share_in_allocator(&self, calls: u64) -> Option<f64> {
        let timed = self
            .timed
            .filter(|timed| timed.calls >= TimedCalls::FEWEST)?;
        let processor = self.processor_time.filter(|_| !self.gave_up)? as f64;
        let large = timed.large;
        if large.calls != 0 && large.timed == 0 {
            return None;
        }
        let small = calls.saturating_sub(large.calls) as f64 / timed.calls as f64;
        let all_large = large.calls as f64 / large.timed.max(1) as f64;
        let total = |sampled: i64, large: i64| small * sampled as f64 + all_large * large as f64;
        let allocator = total(timed.nanoseconds, large.nanoseconds).max(0.0);
        let own = processor - total(timed.recording, large.recording);
        // The share is unknown if the calls took more time than the process had.
        (own > 0.0 && allocator <= own).then(|| allocator / own)
    }
}

/// A process of the command that was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bypass {
    /// Process ID, in the recorder's PID namespace; 0 if unknown.
    pub pid: u32,
    /// The executable's path.
    pub program: String,
    /// Reason why the process was not recorded.
    pub reason: String,
}

impl Bypass {
    /// Returns the process ID; `None` if it is unknown.
    #[must_use]
    pub fn known_pid(&self) -> Option<u32> {
        (self.pid != 0).then_some(self.pid)
    }
}

/// A file of code to which stacks refer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Module {
    /// Number of the module in the trace, which is the number of modules before it.
    pub module: u32,
    /// Path of the file.
    pub path: String,
    /// Build ID of the file in hexadecimal digits; empty if it has none.
    pub build_id: String,
}

/// The place of a call in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(Option<u32>, u64)", into = "(Option<u32>, u64)")]
pub struct Frame {
    /// Number of the module that contains the call; `None` if none does.
    pub module: Option<u32>,
    /// Virtual address in the module's ELF file, as in its symbol table; without a module, the
    /// address in memory.
    pub address: u64,
}

impl From<(Option<u32>, u64)> for Frame {
    fn from((module, address): (Option<u32>, u64)) -> Self {
        Self { module, address }
    }
}

impl From<Frame> for (Option<u32>, u64) {
    fn from(frame: Frame) -> Self {
        (frame.module, frame.address)
    }
}

/// The calls that led to an allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Number of the stack in the trace, which is the number of stacks before it.
    pub stack: u32,
    /// Frames of the stack, innermost first, at most [`MAX_FRAMES`](Self::MAX_FRAMES).
    pub frames: Vec<Frame>,
}

impl Stack {
    /// Maximum number of frames of a stack.
    pub const MAX_FRAMES: usize = 128;
}

/// Totals of a trace. A complete trace ends with this record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of operations in the trace.
    pub operations: u64,
    /// Number of operations whose order was repaired, because an address was returned again before
    /// its free was seen.
    pub repaired: u64,
    /// Processor time of the collector, in nanoseconds.
    pub collector_time: u64,
}

/// An event that is not an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// The trace begins.
    Recording(Recording),
    /// A process begins; its operations follow.
    Process(Process),
    /// A thread begins; its operations follow.
    Thread(Thread),
    /// Resident memory of a process at one time.
    Resident(Resident),
    /// A process ended, executed another program, or is no longer recorded. No operation of it
    /// follows.
    Finish(Finish),
    /// A process was not recorded.
    Bypass(Bypass),
    /// A file of code. Stacks that refer to it follow.
    Module(Module),
    /// A stack. Operations that refer to it follow.
    Stack(Stack),
    /// The trace is complete.
    Totals(Totals),
}

impl Record {
    /// Returns the time of the record; `None` for kinds of record without one.
    #[must_use]
    pub fn time(&self) -> Option<Time> {
        match self {
            Self::Process(it) => Some(it.time),
            Self::Thread(it) => Some(it.time),
            Self::Resident(it) => Some(it.time),
            Self::Finish(it) => Some(it.time),
            Self::Recording(_)
            | Self::Bypass(_)
            | Self::Module(_)
            | Self::Stack(_)
            | Self::Totals(_) => None,
        }
    }

    /// Returns a mutable reference to the [`time`](Self::time) of the record, if it has one.
    pub(crate) fn time_mut(&mut self) -> Option<&mut Time> {
        match self {
            Self::Process(it) => Some(&mut it.time),
            Self::Thread(it) => Some(&mut it.time),
            Self::Resident(it) => Some(&mut it.time),
            Self::Finish(it) => Some(&mut it.time),
            Self::Recording(_)
            | Self::Bypass(_)
            | Self::Module(_)
            | Self::Stack(_)
            | Self::Totals(_) => None,
        }
    }
}

/// Returns a record of each kind.
#[cfg(test)]
pub(crate) fn one_of_each() -> [Record; 9] {
    let (process, time) = (0, Time(0));
    [
        Record::Recording(Recording::default()),
        Record::Process(Process {
            process,
            pid: 1,
            program: String::new(),
            allocator: String::new(),
            time,
            beginning: Beginning::Executed,
        }),
        Record::Thread(Thread {
            process,
            thread: 0,
            tid: 1,
            time,
        }),
        Record::Resident(Resident {
            process,
            time,
            bytes: 0,
        }),
        Record::Finish(Finish {
            process,
            time,
            peak_resident: None,
            minor_faults: None,
            processor_time: None,
            waited: 0,
            gave_up: false,
            timed: None,
        }),
        Record::Bypass(Bypass {
            pid: 1,
            program: String::new(),
            reason: String::new(),
        }),
        Record::Module(Module {
            module: 0,
            path: String::new(),
            build_id: String::new(),
        }),
        Record::Stack(Stack {
            stack: 0,
            frames: Vec::new(),
        }),
        Record::Totals(Totals::default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_in_the_allocator_needs_enough_timed_calls_and_a_whole_recording() {
        let timed = |calls| TimedCalls {
            calls,
            nanoseconds: 20 * calls.cast_signed(),
            recording: 5 * calls.cast_signed(),
            ..TimedCalls::default()
        };
        let mut finish = Finish {
            process: 0,
            time: Time(0),
            peak_resident: None,
            minor_faults: None,
            processor_time: Some(450_000),
            waited: 0,
            gave_up: false,
            timed: Some(timed(100)),
        };
        // Each of 10,000 calls takes 20 ns in the allocator and 5 ns in the recorder.
        assert_eq!(finish.share_in_allocator(10_000), Some(0.5));
        // 100 calls for large blocks take another 1 µs each.
        finish.processor_time = Some(450_000 + 100_000);
        let mut with_large = timed(100);
        with_large.large = LargeCalls {
            calls: 100,
            timed: 100,
            nanoseconds: 100_000,
            ..LargeCalls::default()
        };
        finish.timed = Some(with_large);
        assert_eq!(finish.share_in_allocator(10_100), Some(0.6));
        finish.processor_time = Some(100_000);
        assert_eq!(finish.share_in_allocator(10_100), None, "impossible");
        finish.processor_time = Some(450_000);
        finish.timed = Some(timed(TimedCalls::FEWEST - 1));
        assert_eq!(finish.share_in_allocator(10_000), None);
        finish.timed = Some(timed(100));
        finish.gave_up = true;
        assert_eq!(finish.share_in_allocator(10_000), None);
    }

    #[test]
    fn a_finish_of_an_earlier_heapdrome_has_no_timed_calls() {
        let text = r#"{"finish":{"process":1,"time":2,"peak_resident":null,"minor_faults":3,
            "processor_time":null,"waited":0,"gave_up":false}}"#;
        let read: Record = serde_json::from_str(text).expect("a record");
        let Record::Finish(finish) = read else {
            panic!("a finish, not {read:?}")
        };
        assert_eq!((finish.minor_faults, finish.timed), (Some(3), None));
    }

    #[test]
    fn timed_calls_of_an_earlier_heapdrome_have_no_large_ones() {
        let text = r#"{"calls":5,"nanoseconds":100,"squares":3000,"recording":50,"interrupted":1}"#;
        let read: TimedCalls = serde_json::from_str(text).expect("timed calls");
        assert_eq!((read.nanoseconds, read.recording_squares), (100, 0));
        assert_eq!(read.large, LargeCalls::default());
    }
}
