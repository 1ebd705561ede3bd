//! System calls that bypass the C library.
//!
//! The C library's functions set errno, and some of them are cancellation points. Within malloc,
//! errno must not change, and no thread may be cancelled.

use core::ffi::{c_char, c_int, c_long, c_void};

use crate::system::PROT_READ_WRITE;

/// Numbers of system calls.
#[cfg(target_arch = "x86_64")]
pub mod number {
    use core::ffi::c_long;
    pub const READ: c_long = 0;
    pub const WRITE: c_long = 1;
    pub const CLOSE: c_long = 3;
    pub const MMAP: c_long = 9;
    pub const MUNMAP: c_long = 11;
    pub const SIGPROCMASK: c_long = 14;
    pub const SCHED_YIELD: c_long = 24;
    pub const MINCORE: c_long = 27;
    pub const MADVISE: c_long = 28;
    pub const NANOSLEEP: c_long = 35;
    pub const GETPID: c_long = 39;
    pub const KILL: c_long = 62;
    pub const PTRACE: c_long = 101;
    pub const GETPPID: c_long = 110;
    pub const PRCTL: c_long = 157;
    pub const GETTID: c_long = 186;
    pub const CLOCK_GETTIME: c_long = 228;
    pub const TGKILL: c_long = 234;
    pub const OPENAT: c_long = 257;
    pub const UNLINKAT: c_long = 263;
    pub const READLINKAT: c_long = 267;
    pub const FALLOCATE: c_long = 285;
    pub const PRLIMIT: c_long = 302;
    pub const SECCOMP: c_long = 317;
    pub const PROCESS_VM_READV: c_long = 310;
    pub const KCMP: c_long = 312;
}

/// Numbers of system calls.
#[cfg(target_arch = "aarch64")]
pub mod number {
    use core::ffi::c_long;
    pub const READ: c_long = 63;
    pub const WRITE: c_long = 64;
    pub const CLOSE: c_long = 57;
    pub const MMAP: c_long = 222;
    pub const MUNMAP: c_long = 215;
    pub const SIGPROCMASK: c_long = 135;
    pub const SCHED_YIELD: c_long = 124;
    pub const MINCORE: c_long = 232;
    pub const MADVISE: c_long = 233;
    pub const NANOSLEEP: c_long = 101;
    pub const GETPID: c_long = 172;
    pub const GETPPID: c_long = 173;
    pub const KILL: c_long = 129;
    pub const PTRACE: c_long = 117;
    pub const PRCTL: c_long = 167;
    pub const GETTID: c_long = 178;
    pub const CLOCK_GETTIME: c_long = 113;
    pub const TGKILL: c_long = 131;
    pub const OPENAT: c_long = 56;
    pub const UNLINKAT: c_long = 35;
    pub const READLINKAT: c_long = 78;
    pub const FALLOCATE: c_long = 47;
    pub const PRLIMIT: c_long = 261;
    pub const SECCOMP: c_long = 277;
    pub const PROCESS_VM_READV: c_long = 270;
    pub const KCMP: c_long = 272;
}

/// Largest error number. Results from `-MAX_ERRNO` to -1 are errors.
pub const MAX_ERRNO: isize = 4095;
/// Error number: no such process or thread.
const ESRCH: isize = 3;
/// File descriptor that makes relative paths start at the working directory.
const AT_FDCWD: usize = -100_isize as usize;

/// Makes a system call, and returns its result, which is a negative error number if it failed.
///
/// # Safety
/// The arguments are valid for this call.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn call(number: c_long, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: by contract the arguments are valid. The kernel changes only the three registers that
    // are declared as outputs, and memory that the arguments name.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call, and returns its result, which is a negative error number if it failed.
///
/// # Safety
/// The arguments are valid for this call.
#[cfg(target_arch = "aarch64")]
#[inline]
pub unsafe fn call(number: c_long, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: by contract the arguments are valid. The kernel changes only the register of the
    // result, and memory that the arguments name.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] as isize => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    result
}

/// Returns whether the kernel forbids the calling thread to read the processor's counter.
#[cfg(target_arch = "x86_64")]
pub fn forbids_counter() -> bool {
    const PR_GET_TSC: usize = 25;
    const PR_TSC_SIGSEGV: u32 = 2;
    let mut found = 0_u32;
    let target = (&raw mut found) as usize;
    // SAFETY: the kernel writes an int to `found`, which outlives the call.
    unsafe { call(number::PRCTL, [PR_GET_TSC, target, 0, 0, 0, 0]) };
    found == PR_TSC_SIGSEGV
}

/// Returns whether the kernel forbids the calling thread to read the processor's counter.
#[cfg(target_arch = "aarch64")]
pub fn forbids_counter() -> bool {
    // Linux cannot forbid reading it on this architecture.
    false
}

/// Returns whether a result is an error.
pub fn is_error(result: isize) -> bool {
    (-MAX_ERRNO..0).contains(&result)
}

/// Opens a file. Returns its descriptor, or a negative error number.
///
/// # Safety
/// The path ends with a zero.
pub unsafe fn open(path: *const c_char, flags: c_int, mode: u32) -> c_int {
    let arguments = [AT_FDCWD, path as usize, flags as usize, mode as usize, 0, 0];
    // SAFETY: the path ends with a zero.
    unsafe { call(number::OPENAT, arguments) as c_int }
}

/// Closes a file.
pub fn close(file: c_int) {
    // SAFETY: the call touches no memory.
    unsafe { call(number::CLOSE, [file as usize, 0, 0, 0, 0, 0]) };
}

/// Reads bytes of a file. Returns the number of bytes read, or a negative error number.
pub fn read(file: c_int, bytes: &mut [u8]) -> isize {
    let (start, length) = (bytes.as_mut_ptr() as usize, bytes.len());
    // SAFETY: the kernel writes at most `length` bytes to `bytes`, which is borrowed mutably.
    unsafe { call(number::READ, [file as usize, start, length, 0, 0, 0]) }
}

/// Copies parts of this process's memory that might be unmapped to `target`. Returns the number of
/// bytes before the first unmapped part. A part consists of an address and a length.
///
/// # Safety
/// The target has room for the bytes of all parts.
pub unsafe fn copy(target: *mut u8, parts: &[[usize; 2]]) -> usize {
    let length: usize = parts.iter().map(|part| part[1]).sum();
    let (target, first) = ([target as usize, length], parts.as_ptr() as usize);
    let pid = process() as usize;
    let arguments = [pid, target.as_ptr() as usize, 1, first, parts.len(), 0];
    // SAFETY: the target has room for all parts, and the kernel checks the source.
    unsafe { call(number::PROCESS_VM_READV, arguments) }
        .max(0)
        .unsigned_abs()
}

/// Writes bytes to a file. Returns the number of bytes written, or a negative error number.
pub fn write(file: c_int, bytes: &[u8]) -> isize {
    let (start, length) = (bytes.as_ptr() as usize, bytes.len());
    // SAFETY: the kernel only reads `bytes`, which is valid for its length.
    unsafe { call(number::WRITE, [file as usize, start, length, 0, 0, 0]) }
}

/// Reads the target of a link. Returns the number of bytes read, or a negative error number.
///
/// # Safety
/// The path ends with a zero, and the target has room for `length` bytes.
pub unsafe fn readlink(path: *const c_char, target: *mut u8, length: usize) -> isize {
    let (path, target) = (path as usize, target as usize);
    // SAFETY: the path ends with a zero, and the target has room for `length` bytes.
    unsafe { call(number::READLINKAT, [AT_FDCWD, path, target, length, 0, 0]) }
}

/// Returns the soft and the hard limit on a resource; `None` if they are unknown.
pub fn limits(resource: c_int) -> Option<[u64; 2]> {
    let mut limits = [0_u64; 2];
    let (resource, old) = (resource as usize, limits.as_mut_ptr() as usize);
    // SAFETY: `limits` has room for both values that the kernel writes, and the call sets no limit.
    let result = unsafe { call(number::PRLIMIT, [0, resource, 0, old, 0, 0]) };
    (!is_error(result)).then_some(limits)
}

/// Removes a file.
///
/// # Safety
/// The path ends with a zero.
pub unsafe fn unlink(path: *const c_char) {
    // SAFETY: the path ends with a zero.
    unsafe { call(number::UNLINKAT, [AT_FDCWD, path as usize, 0, 0, 0, 0]) };
}

/// Allocates disk space for a file; returns false if that fails.
pub fn fallocate(file: c_int, length: usize) -> bool {
    // SAFETY: the call touches no memory.
    unsafe { call(number::FALLOCATE, [file as usize, 0, 0, length, 0, 0]) == 0 }
}

/// Maps memory for reading and writing: of a file, or anonymous if `file` is -1. Returns null on
/// failure.
pub fn map(length: usize, flags: c_int, file: c_int) -> *mut c_void {
    let (protection, flags) = (PROT_READ_WRITE as usize, flags as usize);
    let arguments = [0, length, protection, flags, file as isize as usize, 0];
    // SAFETY: the kernel chooses the address, because no caller passes MAP_FIXED. A new mapping
    // there changes no existing memory.
    let address = unsafe { call(number::MMAP, arguments) };
    if is_error(address) {
        core::ptr::null_mut()
    } else {
        address as *mut c_void
    }
}

/// Unmaps a mapping.
///
/// # Safety
/// This library has mapped the memory with this length, and nothing refers to it any longer.
pub unsafe fn unmap(address: *mut c_void, length: usize) {
    // SAFETY: by contract, this library has mapped the memory, and nothing refers to it any longer.
    unsafe { call(number::MUNMAP, [address as usize, length, 0, 0, 0, 0]) };
}

/// Advises the kernel about memory. Returns false if the kernel refuses.
///
/// # Safety
/// This library has mapped the memory, and nothing relies on properties that the advice changes.
pub unsafe fn advise(address: *mut c_void, length: usize, advice: c_int) -> bool {
    let (address, advice) = (address as usize, advice as usize);
    // SAFETY: this library has mapped the memory, and nothing relies on properties that the advice
    // changes.
    unsafe { call(number::MADVISE, [address, length, advice, 0, 0, 0]) == 0 }
}

/// Returns whether a page that begins at this address is mapped.
pub fn is_mapped(address: usize) -> bool {
    let mut resident = 0_u8;
    let answer = (&raw mut resident) as usize;
    // SAFETY: `answer` is the address of `resident`, which has room for the state of one page.
    unsafe { call(number::MINCORE, [address, 1, answer, 0, 0, 0]) == 0 }
}

/// Returns the ID of this process.
pub fn process() -> u32 {
    // SAFETY: the call touches no memory.
    unsafe { call(number::GETPID, [0; 6]) as u32 }
}

/// Returns the ID of the parent process.
pub fn parent() -> u32 {
    // SAFETY: the call touches no memory.
    unsafe { call(number::GETPPID, [0; 6]) as u32 }
}

/// Returns whether two processes share their memory; false if the kernel does not report it.
pub fn share_memory(one: u32, other: u32) -> bool {
    const KCMP_VM: usize = 1;
    // SAFETY: the call touches no memory.
    unsafe {
        call(
            number::KCMP,
            [one as usize, other as usize, KCMP_VM, 0, 0, 0],
        ) == 0
    }
}

/// Returns the ID of the calling thread.
pub fn thread() -> u32 {
    // SAFETY: the call touches no memory.
    unsafe { call(number::GETTID, [0; 6]) as u32 }
}

/// Returns whether a process does not exist.
pub fn lacks_process(pid: u32) -> bool {
    // SAFETY: the call touches no memory, and signal 0 is never sent.
    unsafe { call(number::KILL, [pid as usize, 0, 0, 0, 0, 0]) == -ESRCH }
}

/// Returns whether a thread of a process does not exist.
pub fn lacks_thread(pid: u32, tid: u32) -> bool {
    let (pid, tid) = (pid as usize, tid as usize);
    // SAFETY: the call touches no memory, and signal 0 is never sent.
    unsafe { call(number::TGKILL, [pid, tid, 0, 0, 0, 0]) == -ESRCH }
}

/// Returns the processor time of this process in nanoseconds; 0 if the kernel does not report it.
pub fn processor_time() -> u64 {
    const CLOCK_PROCESS_CPUTIME_ID: usize = 2;
    clock(CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the processor time of the calling thread in nanoseconds; 0 if the kernel does not report
/// it.
pub fn thread_time() -> u64 {
    const CLOCK_THREAD_CPUTIME_ID: usize = 3;
    clock(CLOCK_THREAD_CPUTIME_ID)
}

fn clock(clock: usize) -> u64 {
    let mut time = [0_u64; 2];
    let target = (&raw mut time) as usize;
    // SAFETY: the kernel writes two words to `time`, which outlives the call.
    unsafe { call(number::CLOCK_GETTIME, [clock, target, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// Lets other threads run.
pub fn yield_to_others() {
    // SAFETY: the call touches no memory.
    unsafe { call(number::SCHED_YIELD, [0; 6]) };
}

/// Sleeps for this many nanoseconds, which must be less than a second.
pub fn sleep(nanoseconds: u64) {
    let time = [0, nanoseconds];
    // SAFETY: the kernel reads the two words of `time` and writes nothing.
    unsafe { call(number::NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// Sets the signals that the calling thread blocks, and returns the previously blocked ones.
pub fn block_signals(signals: u64) -> u64 {
    const SET: usize = 2;
    let mut before = 0_u64;
    let (new, old) = ((&raw const signals) as usize, (&raw mut before) as usize);
    let arguments = [SET, new, old, size_of::<u64>(), 0, 0];
    // SAFETY: the kernel reads `signals` and writes `before`, which outlive the call. Both are one
    // word long, as the last argument says.
    unsafe { call(number::SIGPROCMASK, arguments) };
    before
}
