//! Preparations of the measuring process, and the report on its own overhead.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use heapdrome_schema::{PagingReport, Strategy};

use crate::failure::Failure;
use crate::regions::WorkingSet;
use crate::times;

/// Locks the current memory of the process into RAM, and returns whether this succeeded. The
/// working set is allocated later, so the kernel can still swap it.
pub fn lock() -> bool {
    // SAFETY: `mlockall` only pins pages and changes no contents.
    unsafe { libc::mlockall(libc::MCL_CURRENT) == 0 }
}

/// Returns the object that serves `malloc` in this process; `None` if the dynamic loader cannot
/// identify the object.
pub fn malloc_object() -> Option<PathBuf> {
    // SAFETY: all zeros is a valid `Dl_info`, which holds only integers and nullable pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let address: unsafe extern "C" fn(libc::size_t) -> *mut libc::c_void = libc::malloc;
    // SAFETY: `dladdr` accepts any address, and `found` is writable and outlives the call.
    let known = unsafe { libc::dladdr(address as *const libc::c_void, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` succeeded and `dli_fname` is not null, so it points to a NUL-terminated
    // string. The string lives as long as the object, which this process never unloads.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// Returns a report with the cost of the clock and whether the harness is locked, and with a remark
/// if it is not.
pub fn report(locked: bool) -> PagingReport {
    let mut report = PagingReport::default();
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

/// Applies the strategy's advice, if it has any, to the whole working set.
pub fn advise(set: &WorkingSet, strategy: Strategy) -> Result<(), Failure> {
    let advice = match strategy {
        Strategy::Random | Strategy::RandomPrefetch { .. } => libc::MADV_RANDOM,
        Strategy::Sequential => libc::MADV_SEQUENTIAL,
        Strategy::Baseline
        | Strategy::Prefetch { .. }
        | Strategy::Batch { .. }
        | Strategy::Reader { .. } => return Ok(()),
    };
    set.regions()
        .iter()
        .try_for_each(|region| region.advise(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_that_serves_malloc_is_a_file() {
        let object = malloc_object().expect("the tests are linked dynamically");
        assert!(object.is_file(), "{}", object.display());
    }
}
