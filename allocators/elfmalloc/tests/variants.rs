//! Hardened variant in a process that another variant has served before.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use heapdrome_elfmalloc::{Elfmalloc, Hardened};
use heapdrome_malloc_abi::MallocAbi;

const CHILD: &str = "HEAPDROME_SERVED_BEFORE";
const ABORTED: i32 = 6;

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn the_hardened_variant_ends_a_process_that_another_served_before() {
    if std::env::var_os(CHILD).is_some() {
        // After this allocation, slabs have no states.
        assert!(Elfmalloc::allocate(100).is_some());
        let _ = Hardened::allocate(100);
        return;
    }
    let tests = std::env::current_exe().expect("the tests have a path");
    let name = "the_hardened_variant_ends_a_process_that_another_served_before";
    let output = Command::new(tests)
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the tests can be run");
    assert_eq!(output.status.signal(), Some(ABORTED), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("another variant served this process"),
        "{text}"
    );
}
