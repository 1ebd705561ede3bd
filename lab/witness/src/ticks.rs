//! Reads the processor's counter, with which the counting library times calls.

use std::time::Instant;

/// Reading of the counter and of the clock at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    ticks: u64,
    at: Instant,
}

impl Reading {
    pub(crate) fn now() -> Self {
        Self {
            ticks: ticks(),
            at: Instant::now(),
        }
    }

    /// Returns the counter's ticks per second since this reading; 0 if there is no counter.
    pub(crate) fn rate(self) -> f64 {
        let now = Self::now();
        let seconds = (now.at - self.at).as_secs_f64();
        now.ticks.wrapping_sub(self.ticks) as f64 / seconds.max(1e-9)
    }
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: reading the virtual counter has no side effects.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn ticks() -> u64 {
    0
}
