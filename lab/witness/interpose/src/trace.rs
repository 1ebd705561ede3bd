//! Records that the kernel refused to let this program trace a process.
//!
//! A process has at most one tracer, and here that is the witness. So a debugger cannot trace its
//! program, but may still exit without an error. The record shows the refusal.

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::kernel::{self, number};
use crate::record;
use crate::system;

/// Requests that make the caller, or a process that it names, a tracee.
const BEGINNINGS: [c_int; 3] = [TRACE_ME, ATTACH, SEIZE];
const TRACE_ME: c_int = 0;
const ATTACH: c_int = 16;
const SEIZE: c_int = 0x4206;

/// Requests that read a word. The kernel stores the word, and the C library returns it.
const READS: core::ops::RangeInclusive<c_int> = 1..=3;

const EPERM: isize = 1;

#[unsafe(no_mangle)]
unsafe extern "C" fn ptrace(
    request: c_int,
    process: c_int,
    address: *mut c_void,
    data: *mut c_void,
) -> c_long {
    let mut word: c_long = 0;
    let reads = READS.contains(&request);
    let data = if reads { (&raw mut word).cast() } else { data };
    let arguments = [
        request as usize,
        process as usize,
        address as usize,
        data as usize,
        0,
        0,
    ];
    // SAFETY: the program passes arguments that are valid for its request, and `word` has room for
    // a word that the kernel stores.
    let done = unsafe { kernel::call(number::PTRACE, arguments) };
    // SAFETY: every thread has an errno.
    let errno = unsafe { system::__errno_location() };
    if kernel::is_error(done) {
        if BEGINNINGS.contains(&request) && done == -EPERM {
            note_refusal();
        }
        // SAFETY: every thread has an errno.
        unsafe { *errno = -done as c_int };
        return -1;
    }
    if reads {
        // SAFETY: every thread has an errno. A word that was read may be -1, so a zero errno shows
        // that there was no error.
        unsafe { *errno = 0 };
        return word;
    }
    done as c_long
}

/// Increments the record's count of refusals, and keeps errno.
fn note_refusal() {
    // SAFETY: every thread has an errno. A record stays mapped, and all uses of its count are
    // atomic.
    unsafe {
        let errno = *system::__errno_location();
        let record = record::current();
        let count = AtomicU64::from_ptr(&raw mut (*record).refused_traces);
        count.fetch_add(1, Ordering::Relaxed);
        *system::__errno_location() = errno;
    }
}
