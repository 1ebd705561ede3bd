//! Futex calls: sleep until a word changes, and wake a sleeping thread.

use crate::atomic::AtomicU32;

#[cfg(not(modelled))]
use crate::KeepErrno;

/// If `word` is `value`, sleeps until [`wake_one`], for at most `most` milliseconds if given. May
/// return early.
#[cfg(not(modelled))]
pub(crate) fn wait(word: &AtomicU32, value: u32, most: Option<u64>) {
    let _errno = KeepErrno::new();
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let time = most.map(|milliseconds| libc::timespec {
        tv_sec: (milliseconds / 1000) as libc::time_t,
        tv_nsec: (milliseconds % 1000 * 1_000_000) as libc::c_long,
    });
    let limit: *const libc::timespec = time
        .as_ref()
        .map_or(core::ptr::null(), |time| &raw const *time);
    // SAFETY: the word and the time outlive the call, and the kernel only reads them.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, limit) };
}

/// Sleeps in a model. No time passes in models, so only a wakeup ends the sleep.
#[cfg(modelled)]
pub(crate) fn wait(word: &AtomicU32, value: u32, _most: Option<u64>) {
    crate::atomic::futex_wait(word, value);
}

/// Wakes one thread that sleeps on `word`.
#[cfg(not(modelled))]
pub(crate) fn wake_one(word: &AtomicU32) {
    let _errno = KeepErrno::new();
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waking touches no memory.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
}

#[cfg(modelled)]
pub(crate) use crate::atomic::futex_wake as wake_one;

/// If `word` is `value`, sleeps for at most `milliseconds`. A thread that changes the word need not
/// wake the sleeper, whose time limit ends the sleep.
pub fn nap(word: &AtomicU32, value: u32, milliseconds: u64) {
    #[cfg(not(modelled))]
    wait(word, value, Some(milliseconds));
    #[cfg(modelled)]
    {
        let _ = (word, value, milliseconds);
        crate::atomic::yield_now();
    }
}
