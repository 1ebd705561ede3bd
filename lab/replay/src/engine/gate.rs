//! Counts the progress of a thread, so that other threads can wait for it.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of times that a waiting thread reads the count before it sleeps.
const LOOKS: u32 = 200;

/// Monotonic count of a thread's progress. Its functions never allocate.
#[derive(Debug, Default)]
pub(super) struct Gate {
    count: AtomicU32,
    sleepers: AtomicU32,
}

impl Gate {
    /// Raises the count by 1. A thread that waited for this count sees all earlier effects of the
    /// calling thread.
    pub(super) fn publish(&self) {
        // SeqCst orders the accesses to both words in `publish` and `wait`: either this thread sees
        // a sleeper, or the sleeper sees the new count.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.futex(libc::FUTEX_WAKE, i32::MAX as u32);
        }
    }

    /// Waits until the count is at least `count`.
    pub(super) fn wait(&self, count: u32) {
        for _ in 0..LOOKS {
            if self.count.load(Ordering::Acquire) >= count {
                return;
            }
            std::hint::spin_loop();
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        loop {
            let now = self.count.load(Ordering::SeqCst);
            if now >= count {
                break;
            }
            self.futex(libc::FUTEX_WAIT, now);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn futex(&self, operation: i32, value: u32) {
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        let (word, no_timeout) = (self.count.as_ptr(), ptr::null::<libc::timespec>());
        // SAFETY: `word` is a word of this gate, which outlives the call; the kernel only reads it.
        // The result is ignored because `wait` reads the count again.
        unsafe { libc::syscall(libc::SYS_futex, word, operation, value, no_timeout) };
    }
}
