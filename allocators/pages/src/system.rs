//! System services for an allocator, other than memory.

use core::ffi::{CStr, c_void};

use crate::KeepErrno;

/// Returns a number that no other live thread has: the address of this thread's control block.
#[cfg(all(target_arch = "x86_64", not(any(miri, modelled))))]
#[inline(always)]
#[must_use]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: `fs` points to the thread's control block, and the ABI keeps the block's own address
    // in its first word. Reading the word has no effect.
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) pointer,
            options(pure, readonly, nostack, preserves_flags));
    }
    pointer
}

/// Returns a number that no other live thread has: the address of this thread's control block.
#[cfg(all(target_arch = "aarch64", not(any(miri, modelled))))]
#[inline(always)]
#[must_use]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reading the thread register has no effect.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer,
            options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

/// Returns a number that no other live thread has: the address of this thread's `errno`.
#[cfg(all(
    not(modelled),
    any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64")))
))]
#[inline]
#[must_use]
pub fn thread_pointer() -> usize {
    // SAFETY: no precondition.
    unsafe { libc::__errno_location() }.addr()
}

#[cfg(modelled)]
pub use crate::atomic::thread_number as thread_pointer;

/// Returns the milliseconds since some fixed moment, with a resolution of a few milliseconds.
/// Normally makes no system call, because the vDSO answers.
#[must_use]
pub fn coarse_milliseconds() -> u64 {
    #[cfg(not(miri))]
    let clock = libc::CLOCK_MONOTONIC_COARSE;
    #[cfg(miri)]
    let clock = libc::CLOCK_MONOTONIC;
    microseconds(clock) / 1000
}

/// Resources that the whole process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Microseconds of processor time.
    pub microseconds: u64,
    /// Number of page faults without disk access.
    pub faults: usize,
    /// Maximum of resident bytes so far. May be inherited from the program that started this
    /// program.
    pub most_resident: usize,
}

/// Returns the usage of the process; `None` if the system does not report it. Makes a system call.
#[must_use]
pub fn usage() -> Option<Usage> {
    let _errno = KeepErrno::new();
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel writes to the local variable only.
    if cfg!(miri) || unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0 {
        return None;
    }
    let [user, system] = [usage.ru_utime, usage.ru_stime]
        .map(|time| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64);
    Some(Usage {
        microseconds: user + system,
        faults: usage.ru_minflt as usize,
        most_resident: usage.ru_maxrss as usize * 1024,
    })
}

/// Divisor of clock readings. Code is slower by about this factor under Miri, where programs would
/// otherwise find at every clock check that their interval has passed.
const SLOWER: u64 = if cfg!(miri) { 1000 } else { 1 };

/// Returns the time of a clock in microseconds, divided by [`SLOWER`]; 0 if the system has no such
/// clock.
fn microseconds(clock: libc::clockid_t) -> u64 {
    let _errno = KeepErrno::new();
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to the local variable only.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    ((now.tv_sec as u64) * 1_000_000 + (now.tv_nsec as u64) / 1000) / SLOWER
}

/// Registers the process for [`barrier_in_all_threads`]. Returns false if the system has no such
/// barrier. Makes a system call, which takes milliseconds if the process has several threads.
#[must_use]
pub fn register_barrier() -> bool {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// Makes every thread of the process pass a full memory barrier (`membarrier`, Linux 4.14). Returns
/// false if the system refuses. The process must be [registered](register_barrier).
#[must_use]
pub fn barrier_in_all_threads() -> bool {
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

fn membarrier(command: libc::c_int) -> bool {
    let _errno = KeepErrno::new();
    // SAFETY: the call changes no memory.
    !cfg!(miri) && unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0
}

/// Returns the current limit on the process's address space in bytes; `None` if it is unlimited or
/// unknown.
#[must_use]
pub fn address_space_limit() -> Option<usize> {
    let _errno = KeepErrno::new();
    // SAFETY: both fields are numbers, for which zero is valid.
    let mut limit: libc::rlimit = unsafe { core::mem::zeroed() };
    // SAFETY: the C library writes to the local variable only.
    let known = !cfg!(miri) && unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// Returns the number of processors on which the calling thread may run; `None` if the system does
/// not report it.
#[must_use]
pub fn processors() -> Option<usize> {
    let _errno = KeepErrno::new();
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: all-zero memory is the empty set, and the kernel writes at most `size` bytes.
    let count = unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        if libc::sched_getaffinity(0, size, &raw mut set) != 0 {
            return None;
        }
        libc::CPU_COUNT(&set)
    };
    usize::try_from(count).ok().filter(|&count| count != 0)
}

/// Returns the number of the calling thread's processor; `None` if the system does not report it.
/// Since glibc 2.35, the C library normally reads it from memory that the kernel updates (`rseq`).
/// Otherwise it uses the vDSO, or a system call.
#[cfg(not(miri))]
#[must_use]
pub fn processor() -> Option<usize> {
    let _errno = KeepErrno::new();
    // SAFETY: no precondition.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Starts a detached thread that calls `body` with null and receives no signals. Returns false if
/// the system refuses. May allocate with `malloc`.
pub fn start_thread(body: extern "C" fn(*mut c_void) -> *mut c_void) -> bool {
    let _errno = KeepErrno::new();
    // SAFETY: all structures are local and initialised before use. `body` is a safe function, so it
    // accepts null. The new thread inherits the full signal mask; the calling thread's mask is
    // restored at the end.
    unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        let mut how: libc::pthread_attr_t = core::mem::zeroed();
        let mut thread: libc::pthread_t = core::mem::zeroed();
        libc::sigfillset(&raw mut all);
        if libc::pthread_attr_init(&raw mut how) != 0 {
            return false;
        }
        libc::pthread_attr_setdetachstate(&raw mut how, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let nothing = core::ptr::null_mut();
        let failed = libc::pthread_create(&raw mut thread, &raw const how, body, nothing) != 0;
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut());
        libc::pthread_attr_destroy(&raw mut how);
        !failed
    }
}

/// Returns a random word. Makes a system call.
#[must_use]
pub fn random_word() -> u64 {
    let _errno = KeepErrno::new();
    let mut word = 0_u64;
    let bytes = size_of::<u64>();
    // SAFETY: the kernel writes at most eight bytes to the local variable.
    let got = unsafe {
        libc::syscall(
            libc::SYS_getrandom,
            &raw mut word,
            bytes,
            libc::GRND_NONBLOCK,
        )
    };
    if usize::try_from(got) == Ok(bytes) {
        return word;
    }
    // The kernel has not gathered enough randomness yet, or does not provide the call, so use
    // addresses and the time.
    let place = (&raw const word).addr() as u64;
    let seed = place ^ coarse_milliseconds().rotate_left(32) ^ (thread_pointer() as u64);
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

unsafe extern "C" {
    static environ: *const *const libc::c_char;
}

/// Returns the value of an environment variable; `None` if it is not set.
///
/// # Safety
///
/// No other thread changes the environment during the call, and the value is not used after the
/// variable has changed.
#[must_use]
pub unsafe fn variable(name: &CStr) -> Option<&'static CStr> {
    let name = name.to_bytes();
    // SAFETY: environ is null or a null-terminated list of C strings. By the contract of this
    // function, no other thread changes it during the call, and the caller does not use the value
    // after the variable has changed.
    unsafe {
        let mut entry = environ;
        if entry.is_null() {
            return None;
        }
        while !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes_with_nul();
            if let Some([b'=', value @ ..]) = text.strip_prefix(name) {
                return CStr::from_bytes_with_nul(value).ok();
            }
            entry = entry.add(1);
        }
    }
    None
}

/// Writes bytes to standard error, and ignores failures. Does not allocate.
pub fn write_error(text: &[u8]) {
    let _errno = KeepErrno::new();
    write_all(libc::STDERR_FILENO, text);
}

/// Appends bytes to a file, which is created if it does not exist. Returns false if not all bytes
/// could be written. Does not allocate.
pub fn append_to_file(path: &CStr, text: &[u8]) -> bool {
    let _errno = KeepErrno::new();
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOCTTY;
    let everybody: libc::c_uint = 0o666;
    // SAFETY: the path is NUL-terminated.
    let file = uninterrupted(|| unsafe { libc::open(path.as_ptr(), flags, everybody) });
    if file < 0 {
        return false;
    }
    let done = write_all(file, text);
    // SAFETY: the file was opened here, and no other code knows its number.
    unsafe { libc::close(file) };
    done
}

/// Writes bytes to an open file. Returns false if not all bytes could be written. May change
/// `errno`.
pub(crate) fn write_all(file: libc::c_int, mut text: &[u8]) -> bool {
    while !text.is_empty() {
        // SAFETY: the bytes are valid for the call.
        let written =
            uninterrupted(|| unsafe { libc::write(file, text.as_ptr().cast(), text.len()) });
        match usize::try_from(written) {
            Ok(count) if count > 0 => text = &text[count.min(text.len())..],
            _ => return false,
        }
    }
    true
}

/// Repeats a system call as long as signal handlers interrupt it, and returns its result.
fn uninterrupted<T: PartialEq + From<i8>>(call: impl Fn() -> T) -> T {
    loop {
        let result = call();
        // SAFETY: the address is the calling thread's own errno.
        let interrupted = unsafe { *libc::__errno_location() } == libc::EINTR;
        if result != T::from(-1) || !interrupted {
            return result;
        }
    }
}

/// Returns whether the process may have more rights than the user who started it (setuid). Such a
/// process must not use file names from the environment.
#[must_use]
pub fn is_privileged() -> bool {
    // SAFETY: no precondition.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Ends the process with the C library's `abort`.
pub fn abort() -> ! {
    // SAFETY: no precondition.
    unsafe { libc::abort() }
}
