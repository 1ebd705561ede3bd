//! Helpers for tests of the whole process.

use std::process::{Command, ExitStatus};

const VARIABLE: &str = "LGALLOC_TEST_ALONE";

/// Returns true in the test's own process. Otherwise starts that process, waits for it, and returns
/// false.
pub fn alone(test: &str) -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let status: ExitStatus = Command::new(program)
        .args(["--exact", test, "--test-threads=1"])
        .env(VARIABLE, "1")
        .status()
        .expect("this program starts");
    assert!(status.success(), "{test}: {status}");
    false
}

/// Writes a byte to each page.
pub fn touch(start: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(4096) {
        // SAFETY: the caller owns the region, which has `bytes` bytes.
        unsafe { start.add(at).write(at as u8) };
    }
}
