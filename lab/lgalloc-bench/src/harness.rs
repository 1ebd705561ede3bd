//! What the measuring process does to itself before it measures.

use heapdrome_paging::{Report, Strategy};

use crate::failure::Failure;
use crate::regions::WorkingSet;
use crate::times;

/// Keeps what the process has so far from being swapped; the working set comes later. Returns whether
/// the system allows it.
pub fn lock() -> bool {
    // SAFETY: mlockall changes no contents.
    unsafe { libc::mlockall(libc::MCL_CURRENT) == 0 }
}

/// A report with what the clock costs, and whether the harness could be locked.
pub fn report(locked: bool) -> Report {
    let mut report = Report::default();
    report
        .distributions
        .insert("clock".to_owned(), times::clock());
    report
        .figures
        .insert("harness_locked".to_owned(), f64::from(u8::from(locked)));
    if !locked {
        report.remarks.push(
            "the harness itself could be swapped: raise ulimit -l, or run as root".to_owned(),
        );
    }
    report
}

/// Advice on the whole working set.
pub fn advise(set: &WorkingSet, strategy: Strategy) -> Result<(), Failure> {
    let advice = match strategy {
        Strategy::Random | Strategy::RandomPrefetch { .. } => libc::MADV_RANDOM,
        Strategy::Sequential => libc::MADV_SEQUENTIAL,
        Strategy::Baseline | Strategy::Prefetch { .. } | Strategy::Batch { .. } => return Ok(()),
    };
    set.regions()
        .iter()
        .try_for_each(|region| region.advise(advice))
}
