//! Checks whether a program's own `operator new` takes its memory from malloc.
//!
//! Calls to an `operator new` that the program defines bypass the counting library. Most such
//! operators pass each call on to malloc, where the library counts it. If the operator keeps a
//! pool, the raced allocator does not serve these calls. To find out on x86-64, a hardware
//! breakpoint stops the program's first thread at the start of the operator, until [`MOST`] calls
//! have been watched. If the library counts nothing between two stops, the first of the two calls
//! reached no malloc.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::layout::{FUNCTIONS, Function, Record};
use crate::ledger::{open, takes_memory};

/// Maximum number of watched calls. Each watched call stops the thread.
const MOST: u32 = 1_000;

/// Minimum number of watched calls that supports a finding.
const FEWEST: u32 = 20;

/// Findings on a program's own `operator new`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnNew {
    /// Number of watched calls that were followed by another stop at the operator.
    pub(crate) watched: u32,
    /// Number of watched calls that reached no malloc.
    pub(crate) apart: u32,
}

impl OwnNew {
    /// Returns whether the operator serves most of its calls itself.
    pub(crate) fn keeps_a_pool(self) -> bool {
        self.watched >= FEWEST && 2 * self.apart > self.watched
    }
}

/// Process that stops at its own `operator new`.
#[derive(Debug)]
pub(crate) struct NewWatch {
    pid: i32,
    address: u64,
    record: Option<File>,
    /// Number of calls to C functions that return memory, read from the record at the latest stop.
    /// `None` if the record could not be read.
    counted: Option<u64>,
    stops: u32,
    found: OwnNew,
}

impl NewWatch {
    /// Sets a breakpoint that stops the first thread of a process at `address`. Returns `None` if
    /// the breakpoint cannot be set.
    pub(crate) fn begin(pid: i32, address: u64) -> Option<Self> {
        breakpoint::set(pid, address).then_some(Self {
            pid,
            address,
            record: None,
            counted: None,
            stops: 0,
            found: OwnNew::default(),
        })
    }

    /// Records a stop of the first thread by SIGTRAP, and returns whether it was at the breakpoint.
    /// `record` is the path of the process's record.
    pub(crate) fn stopped(&mut self, record: &Path) -> bool {
        if !breakpoint::is_cause(self.pid, self.address) {
            return false;
        }
        if self.record.is_none() {
            self.record = open(record);
        }
        let counted = self.record.as_ref().and_then(counted);
        if let (Some(before), Some(now)) = (self.counted, counted) {
            self.found.watched += 1;
            self.found.apart += u32::from(before == now);
        }
        self.counted = counted;
        // Count the stop even if the program has no record. It has none if the library was not
        // loaded into it.
        self.stops += 1;
        if self.stops > MOST {
            breakpoint::clear(self.pid);
        }
        true
    }

    pub(crate) fn found(&self) -> OwnNew {
        self.found
    }
}

/// Returns the number of calls to C functions that return memory, as a record has counted them so
/// far over all threads. Returns `None` if the record cannot be read.
fn counted(record: &File) -> Option<u64> {
    const SIZE: usize = FUNCTIONS.len() * size_of::<Function>();
    let mut bytes = [0; SIZE];
    let start = std::mem::offset_of!(Record, functions) as u64;
    record.read_exact_at(&mut bytes, start).ok()?;
    let functions = bytes.chunks_exact(size_of::<Function>()).zip(FUNCTIONS);
    let calls = functions.filter(|(_, name)| takes_memory(name));
    let calls = calls.filter_map(|(function, _)| {
        let at = std::mem::offset_of!(Function, calls);
        let word = function.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(word))
    });
    Some(calls.sum())
}

#[cfg(target_arch = "x86_64")]
mod breakpoint {
    use std::mem::offset_of;

    /// Value of `si_code` for a SIGTRAP that a hardware breakpoint raised (`TRAP_HWBKPT`).
    const BY_HARDWARE: i32 = 4;

    /// Number of the debug register that contains the address, DR0.
    const ADDRESS: usize = 0;
    /// Number of the debug register that enables the breakpoint, DR7.
    const CONTROL: usize = 7;

    /// Bit of DR7 that makes the thread stop when it executes the instruction at the address in
    /// DR0.
    const EXECUTED: u64 = 1;

    fn write(thread: i32, register: usize, value: u64) -> bool {
        let place = offset_of!(libc::user, u_debugreg) + register * size_of::<u64>();
        // SAFETY: the kernel writes only to its copy of the thread's registers, and fails if the
        // thread is not a tracee of this process.
        unsafe { libc::ptrace(libc::PTRACE_POKEUSER, thread, place, value) == 0 }
    }

    pub(super) fn set(thread: i32, address: u64) -> bool {
        write(thread, ADDRESS, address) && write(thread, CONTROL, EXECUTED)
    }

    pub(super) fn clear(thread: i32) {
        write(thread, CONTROL, 0);
    }

    /// Returns whether a thread was stopped by the breakpoint at `address`. When the thread
    /// continues, it executes the instruction at `address` without another stop.
    pub(super) fn is_cause(thread: i32, address: u64) -> bool {
        // SAFETY: all-zero bytes are a valid `siginfo_t`, and `signal` outlives the call. The
        // address is read only from a SIGTRAP that the processor raised, which has one.
        unsafe {
            let mut signal: libc::siginfo_t = std::mem::zeroed();
            let known = libc::ptrace(libc::PTRACE_GETSIGINFO, thread, 0, &raw mut signal) == 0;
            known && signal.si_code == BY_HARDWARE && signal.si_addr() as u64 == address
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod breakpoint {
    pub(super) fn set(_: i32, _: u64) -> bool {
        false
    }

    pub(super) fn clear(_: i32) {}

    pub(super) fn is_cause(_: i32, _: u64) -> bool {
        false
    }
}
