//! What the measuring process does to itself before it measures.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use heapdrome_schema::{PagingReport, Strategy};

use crate::failure::Failure;
use crate::regions::WorkingSet;
use crate::times;

/// Keeps what the process has so far from being swapped; the working set comes later. Returns
/// whether the system allows it.
pub fn lock() -> bool {
    // SAFETY: mlockall changes no contents.
    unsafe { libc::mlockall(libc::MCL_CURRENT) == 0 }
}

/// The object that serves `malloc` in this process; `None` where the dynamic loader cannot tell.
pub fn malloc_object() -> Option<PathBuf> {
    // SAFETY: a Dl_info of zeros is a valid one, and only a place to write to here.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let address: unsafe extern "C" fn(libc::size_t) -> *mut libc::c_void = libc::malloc;
    // SAFETY: any address may be asked for, and `found` outlives the call.
    let known = unsafe { libc::dladdr(address as *const libc::c_void, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader names the object by a string that ends with a zero and stays as long as
    // the object, which is never unloaded here.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// A report with what the clock costs, and whether the harness could be locked.
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

/// Advice on the whole working set.
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
