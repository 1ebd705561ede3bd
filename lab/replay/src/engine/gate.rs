//! How far a thread has come, for others to wait for.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often a waiting thread looks before it sleeps.
const LOOKS: u32 = 200;

/// A count that only rises. It never allocates.
#[derive(Debug, Default)]
pub(super) struct Gate {
    count: AtomicU32,
    sleepers: AtomicU32,
}

impl Gate {
    /// Raises the count by 1. All that the thread did before is seen by those who waited for it.
    pub(super) fn publish(&self) {
        // The order of all of these is one, so that either this thread sees a sleeper, or the
        // sleeper sees the count.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.futex(libc::FUTEX_WAKE, i32::MAX as u32);
        }
    }

    /// Returns once the count is at least this.
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
        // Whatever the call returns, the caller looks at the count again.
        unsafe { libc::syscall(libc::SYS_futex, word, operation, value, no_timeout) };
    }
}
